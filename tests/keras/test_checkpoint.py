"""Keras models, optimizers and metrics in `tf.train.Checkpoint`."""

import numpy as np
import pytest

import retrograde as tf
from retrograde import keras

layers = keras.layers
X = np.random.default_rng(1).normal(size=(8, 4)).astype(np.float32)
Y = X[:, :1] ** 2
Checkpoint = tf.train.Checkpoint


class Blocks(keras.Model):
    """A model with layers in attributes, a list and a dict, and one created in `build`."""

    def __init__(self):
        super().__init__()
        self.first = layers.Dense(5, activation="tanh")
        self.middle = [layers.Dense(5), layers.Dropout(0.3)]
        self.named = {"norm": layers.LayerNormalization(), 3: layers.Dense(4)}
        self.scale = tf.Variable(1.5)

    def build(self, shape):
        self.last = layers.Dense(1)
        super().build(shape)

    def call(self, x, training=False):
        x = self.first(x)
        for layer in self.middle:
            x = layer(x, training=training) if isinstance(layer, layers.Dropout) else layer(x)
        return self.last(self.named[3](self.named["norm"](x))) * self.scale


def sequential():
    return keras.Sequential(
        [layers.Dense(3, activation="tanh"), layers.BatchNormalization(), layers.Dense(1)]
    )


def functional():
    x = keras.Input((4,))
    y = layers.Dense(3, activation="relu", name="hidden")(x)
    return keras.Model(x, layers.Dense(1)(layers.Dropout(0.5)(y)))


def recurrent_model():
    return keras.Sequential([layers.Reshape((4, 1)), layers.GRU(3), layers.Dense(1)])


MODELS = {
    "sequential": sequential,
    "functional": functional,
    "subclassed": Blocks,
    "recurrent": recurrent_model,
}
OPTIMIZERS = {
    "sgd": lambda: keras.optimizers.SGD(0.05, momentum=0.9),
    "adam": lambda: keras.optimizers.Adam(0.05),
    "rmsprop": lambda: keras.optimizers.RMSprop(0.01, centered=True),
    "schedule": lambda: keras.optimizers.AdamW(
        keras.optimizers.schedules.ExponentialDecay(0.1, 2, 0.5)
    ),
}


def train(model, optimizer, steps):
    """Runs a custom training loop. Returns the loss before each step."""
    losses = []
    for _ in range(steps):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(tf.constant(X), training=True) - Y) ** 2)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        losses.append(float(loss))
    return losses


@pytest.mark.parametrize(
    ("model_name", "optimizer_name"),
    [*((model_name, "adam") for model_name in MODELS), *(("sequential", o) for o in OPTIMIZERS)],
)
def test_training_resumes(model_name, optimizer_name, tmp_path):
    """Restores into a built model and into one that is built afterwards."""
    model, optimizer = MODELS[model_name](), OPTIMIZERS[optimizer_name]()
    train(model, optimizer, 3)
    path = Checkpoint(model=model, optimizer=optimizer, step=tf.Variable(3)).save(tmp_path / "c")
    expected = train(model, optimizer, 3)

    for built in (True, False):
        model, optimizer, step = MODELS[model_name](), OPTIMIZERS[optimizer_name](), tf.Variable(0)
        if built:
            train(model, optimizer, 1)
        status = Checkpoint(model=model, optimizer=optimizer, step=step).restore(path)
        if built:
            status.assert_consumed()
        assert train(model, optimizer, 3) == expected
        assert int(step) == 3
        status.assert_consumed()


def test_variable_names_are_attribute_paths(tmp_path):
    model = Blocks()
    model(X)
    path = Checkpoint(model=model).write(tmp_path / "a")
    names = {
        name.removesuffix("/.ATTRIBUTES/VARIABLE_VALUE").removeprefix("model/")
        for name, _ in tf.train.list_variables(path)[1:]
    }
    assert names == {
        *("first/_kernel", "first/bias", "last/_kernel", "last/bias", "scale"),
        *("middle/0/_kernel", "middle/0/bias", "middle/1/seed_generator/state"),
        *("named/norm/gamma", "named/norm/beta", "named/3/_kernel", "named/3/bias"),
    }


def test_model_is_restored_from_a_larger_checkpoint(tmp_path):
    model, optimizer = sequential(), keras.optimizers.Adam()
    train(model, optimizer, 2)
    path = Checkpoint(model=model, optimizer=optimizer).save(tmp_path / "c")
    other = sequential()
    other.build((None, 4))
    status = Checkpoint(model=other).restore(path)
    status.assert_existing_objects_matched().expect_partial()
    for v, w in zip(model.variables, other.variables, strict=True):
        np.testing.assert_array_equal(v.numpy(), w.numpy())


def test_single_layer_is_restored(tmp_path):
    model = Blocks()
    model(X)
    path = Checkpoint(model=model).write(tmp_path / "a")
    part = tf.Module()
    part.first = layers.Dense(5)
    Checkpoint(model=part).read(path).expect_partial()
    part.first(X)
    np.testing.assert_array_equal(part.first.kernel.numpy(), model.first.kernel.numpy())


def test_model_as_root_of_the_checkpoint(tmp_path):
    model = sequential()
    model(X)
    path = Checkpoint(model).write(tmp_path / "a")
    other = sequential()
    status = Checkpoint(other).read(path)
    other(X)
    status.assert_consumed()
    np.testing.assert_array_equal(other(X).numpy(), model(X).numpy())


def test_shape_mismatch_raises_without_side_effects(tmp_path):
    path = Checkpoint(model=functional()).write(tmp_path / "a")
    x = keras.Input((4,))
    other = keras.Model(x, layers.Dense(1)(layers.Dropout(0.5)(layers.Dense(7)(x))))
    before = [v.numpy() for v in other.variables]
    with pytest.raises(ValueError, match="incompatible tensor with shape"):
        Checkpoint(model=other).read(path)
    for v, w in zip(other.variables, before, strict=True):
        np.testing.assert_array_equal(v.numpy(), w)


def test_metrics_are_restored(tmp_path):
    metric = keras.metrics.Mean()
    metric.update_state([1.0, 3.0])
    path = Checkpoint(metric=metric).write(tmp_path / "a")
    other = keras.metrics.Mean()
    Checkpoint(metric=other).read(path).assert_consumed()
    other.update_state(5.0)
    assert float(other.result()) == 3.0


def test_checkpoint_after_fit(tmp_path):
    model = sequential()
    model.compile("adam", "mse", metrics=["mae"], run_eagerly=True)
    model.fit(X, Y, epochs=2, verbose=0)
    path = Checkpoint(model=model).save(tmp_path / "c")
    expected = model.predict(X, verbose=0)
    other = sequential()
    other.compile("adam", "mse", metrics=["mae"], run_eagerly=True)
    status = Checkpoint(model=other).restore(path)
    np.testing.assert_array_equal(other.predict(X, verbose=0), expected)
    other.fit(X, Y, epochs=1, verbose=0)
    status.assert_existing_objects_matched().expect_partial()
    assert int(other.optimizer.iterations) == int(model.optimizer.iterations) + 1
