"""fit, evaluate, predict and their relatives; steps that users write on tapes."""

import threading

import numpy as np
import pytest

import retrograde as tf
from retrograde import keras

RNG = np.random.default_rng(0)
X = RNG.standard_normal((64, 5)).astype(np.float32)
Y = (X[:, :1] - 2 * X[:, 1:2] > 0).astype(np.float32)

WAYS = {
    "eagerly": {"run_eagerly": True},
    "replayed": {"jit_compile": False},
    "compiled": {"jit_compile": True},
}


# XLA takes a second or more for each model, so it compiles those in which something is at stake.
@pytest.fixture(params=["eagerly", "replayed"])
def way(request):
    return WAYS[request.param]


every_way = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)


def make_model(**options):
    keras.utils.set_random_seed(3)
    model = keras.Sequential(
        [
            keras.layers.Dense(8, activation="tanh"),
            keras.layers.BatchNormalization(),
            keras.layers.Dense(1, activation="sigmoid"),
        ]
    )
    settings = {"optimizer": "adam", "loss": "binary_crossentropy", "metrics": ["mae"]}
    model.compile(**settings | {"jit_compile": False} | options)
    return model


def fit(model, *data, **options):
    return model.fit(*data, **{"verbose": 0, "batch_size": 16, "shuffle": False} | options).history


def test_the_loss_goes_down_and_metrics_are_kept(way):
    model = make_model(optimizer=keras.optimizers.Adam(0.05), **way)
    history = fit(model, X, Y, epochs=10, validation_data=(X, Y))

    assert set(history) == {"loss", "mae", "val_loss", "val_mae"}
    assert history["loss"][-1] < 0.6 * history["loss"][0]
    loss, mae = model.evaluate(X, Y, verbose=0)
    expected = [history["val_loss"][-1], history["val_mae"][-1]]
    np.testing.assert_allclose([loss, mae], expected, rtol=1e-6)
    prediction = model.predict(X, verbose=0)
    np.testing.assert_allclose(np.mean(np.abs(prediction - Y)), mae, rtol=1e-5)


def test_all_ways_to_run_a_step_agree():
    histories = [fit(make_model(**way), X, Y, epochs=3) for way in WAYS.values()]

    for history in histories[1:]:
        np.testing.assert_allclose(history["loss"], histories[0]["loss"], rtol=1e-5)
        np.testing.assert_allclose(history["mae"], histories[0]["mae"], rtol=1e-5)


def test_one_step_is_what_pen_and_paper_say():
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1, use_bias=False)])
    model.set_weights([np.array([[1.0], [2.0]])])
    model.compile(keras.optimizers.SGD(0.1), "mse")
    x, y = np.array([[1.0, 1.0], [2.0, 0.0]]), np.array([[2.0], [2.0]])
    # predictions 3 and 2, errors 1 and 0, loss 1/2, gradient 2/2 * 1 * (1, 1)
    loss = model.train_on_batch(x, y)

    np.testing.assert_allclose(loss, 0.5)
    np.testing.assert_allclose(model.get_weights()[0], [[0.9], [1.9]], rtol=1e-6)


@every_way
def test_the_last_batch_may_be_smaller(way):
    model = make_model(**way)
    fit(model, X[:42], Y[:42], epochs=2)

    assert model.predict(X[:42], batch_size=16, verbose=0).shape == (42, 1)
    assert int(model.optimizer.iterations) == 6


def test_several_steps_per_execution(way):
    together = make_model(steps_per_execution=3, **way)
    one_by_one = make_model(**way)
    losses = [fit(model, X, Y, epochs=2)["loss"] for model in (together, one_by_one)]

    np.testing.assert_allclose(*losses, rtol=1e-6)
    np.testing.assert_allclose(
        together.predict(X, verbose=0), one_by_one.predict(X, verbose=0), rtol=1e-5
    )


def test_sample_weights_and_class_weights_agree(way):
    weights = np.where(Y[:, 0] > 0, 3.0, 0.5)
    by_sample = fit(make_model(**way), X, Y, sample_weight=weights)["loss"]
    by_class = fit(make_model(**way), X, Y, class_weight={0: 0.5, 1: 3.0})["loss"]

    np.testing.assert_allclose(by_sample, by_class, rtol=1e-6)
    assert not np.allclose(by_sample, fit(make_model(**way), X, Y)["loss"])


def as_dataset():
    return tf.data.Dataset.from_tensor_slices((X, Y)).batch(16)


def as_generator():
    for i in range(0, 64, 16):
        yield X[i : i + 16], Y[i : i + 16]


class AsPyDataset(keras.utils.PyDataset):
    def __len__(self):
        return 4

    def __getitem__(self, i):
        return X[16 * i : 16 * i + 16], Y[16 * i : 16 * i + 16]


@pytest.mark.parametrize("source", [as_dataset, as_generator, AsPyDataset])
def test_batches_may_come_from_anywhere(source):
    expected = fit(make_model(), X, Y)["loss"]
    actual = fit(make_model(), source(), batch_size=None)["loss"]

    np.testing.assert_allclose(actual, expected, rtol=1e-6)


def test_tensors_are_data_too():
    expected = fit(make_model(), X, Y, epochs=2)["loss"]
    actual = fit(make_model(), tf.constant(X), tf.constant(Y), epochs=2)["loss"]

    np.testing.assert_allclose(actual, expected, rtol=1e-6)


def test_datasets_validate_predict_and_weigh_classes():
    model = make_model()
    history = fit(model, as_dataset(), batch_size=None, validation_data=as_dataset(), epochs=2)
    np.testing.assert_allclose(
        history["val_loss"][-1], model.evaluate(as_dataset(), verbose=0)[0], rtol=1e-6
    )
    np.testing.assert_allclose(
        model.predict(as_dataset().map(lambda x, _: x), verbose=0),
        model.predict(X, batch_size=16, verbose=0),
        rtol=1e-6,
    )

    weighted = fit(make_model(), as_dataset(), batch_size=None, class_weight={0: 0.5, 1: 3.0})
    expected = fit(make_model(), X, Y, class_weight={0: 0.5, 1: 3.0})
    np.testing.assert_allclose(weighted["loss"], expected["loss"], rtol=1e-6)


def test_endless_datasets_end_with_the_epoch():
    history = fit(make_model(), as_dataset().repeat(), batch_size=None, steps_per_epoch=4, epochs=2)

    np.testing.assert_allclose(
        history["loss"], fit(make_model(), X, Y, epochs=2)["loss"], rtol=1e-6
    )


def test_datasets_hold_targets_and_weights_themselves():
    with pytest.raises(ValueError, match="`y` should not be passed"):
        make_model().fit(as_dataset(), Y)
    with pytest.raises(ValueError, match="`sample_weights` should not be passed"):
        make_model().fit(as_dataset(), sample_weight=Y)


def test_batch_by_batch(way):
    model = make_model(**way)
    before = model.test_on_batch(X, Y, return_dict=True)
    for _ in range(20):
        model.train_on_batch(X, Y)
    after = model.test_on_batch(X, Y, return_dict=True)

    assert after["loss"] < before["loss"]
    np.testing.assert_allclose(model.predict_on_batch(X), model.predict(X, verbose=0), rtol=1e-5)


# Steps that users write


class Penalised(keras.Model):
    """A model whose loss holds the size of the gradient of its output by its input."""

    def __init__(self):
        super().__init__()
        self.hidden = keras.layers.Dense(8, activation="tanh")
        self.out = keras.layers.Dense(1)
        self.penalty = keras.metrics.Mean(name="penalty")

    def call(self, x):
        return self.out(self.hidden(x))

    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            with tf.GradientTape() as inner:
                inner.watch(x)
                predicted = self(x, training=True)
            slope = inner.gradient(predicted, x)
            penalty = tf.reduce_mean(tf.square(slope))
            loss = self.compute_loss(y=y, y_pred=predicted) + penalty
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables, strict=True))
        self.penalty.update_state(penalty)
        return {"loss": loss, **{m.name: m.result() for m in self.metrics}}


def test_a_step_with_two_nested_tapes():
    histories = []
    for way in WAYS.values():
        keras.utils.set_random_seed(1)
        model = Penalised()
        model.compile(keras.optimizers.SGD(0.1), "mse", **way)
        histories.append(fit(model, X, Y, epochs=4))

    assert histories[0]["penalty"][-1] < histories[0]["penalty"][0]
    for history in histories[1:]:
        np.testing.assert_allclose(history["penalty"], histories[0]["penalty"], rtol=1e-4)


class GAN(keras.Model):
    """Two models and two optimizers in one step."""

    def __init__(self):
        super().__init__()
        self.generator = keras.Sequential([keras.Input((3,)), keras.layers.Dense(5)])
        self.discriminator = keras.Sequential([keras.Input((5,)), keras.layers.Dense(1)])

    def compile(self, d_optimizer, g_optimizer, **options):
        super().compile(**options)
        self.d_optimizer, self.g_optimizer = d_optimizer, g_optimizer
        self.loss_fn = keras.losses.BinaryCrossentropy(from_logits=True)

    def train_step(self, real):
        noise = tf.random.normal((len(real), 3))
        with tf.GradientTape() as d_tape, tf.GradientTape() as g_tape:
            fake = self.generator(noise)
            on_real, on_fake = self.discriminator(real), self.discriminator(fake)
            d_loss = self.loss_fn(tf.ones_like(on_real), on_real)
            d_loss += self.loss_fn(tf.zeros_like(on_fake), on_fake)
            g_loss = self.loss_fn(tf.ones_like(on_fake), on_fake)
        for loss, tape, part, optimizer in (
            (d_loss, d_tape, self.discriminator, self.d_optimizer),
            (g_loss, g_tape, self.generator, self.g_optimizer),
        ):
            gradients = tape.gradient(loss, part.trainable_weights)
            optimizer.apply_gradients(zip(gradients, part.trainable_weights, strict=True))
        return {"d_loss": d_loss, "g_loss": g_loss}


@every_way
def test_a_step_with_two_optimizers(way):
    keras.utils.set_random_seed(2)
    tf.random.set_seed(2)
    gan = GAN()
    gan.compile(keras.optimizers.Adam(0.05), keras.optimizers.Adam(0.01), **way)
    before = [w.numpy() for w in gan.weights]
    history = fit(gan, X, epochs=5)

    assert history["d_loss"][-1] < history["d_loss"][0]
    assert all(np.any(a != w.numpy()) for a, w in zip(before, gan.weights, strict=True))


def test_frozen_layers_stay_and_shared_ones_learn_once(way):
    shared = keras.layers.Dense(5, activation="tanh")
    frozen = keras.layers.Dense(4, trainable=False)
    a, b = keras.Input((5,)), keras.Input((5,))
    output = keras.layers.Dense(1)(frozen(keras.layers.add([shared(a), shared(b)])))
    model = keras.Model([a, b], output)
    model.compile("sgd", "mse", **way)
    before = [w.numpy() for w in model.weights]
    fit(model, [X, X], Y)
    moved = [np.any(w.numpy() != b) for w, b in zip(model.weights, before, strict=True)]

    assert [w.path for w, m in zip(model.weights, moved, strict=True) if m] == [
        w.path for w in model.trainable_weights
    ]


# Callbacks


def test_callbacks_see_live_weights_and_may_use_tapes():
    x = tf.constant(X[:3])
    sizes = []

    class Watch(keras.callbacks.Callback):
        def on_epoch_end(self, *_, **__):
            with tf.GradientTape() as tape:
                y = self.model(x)
            jacobian = tape.jacobian(y, self.model.layers[0].kernel)
            sizes.append((jacobian.shape, float(tf.reduce_sum(jacobian**2))))

    fit(make_model(), X, Y, epochs=3, callbacks=[Watch()])

    assert {tuple(shape) for shape, _ in sizes} == {(3, 1, 5, 8)}
    assert len({size for _, size in sizes}) == 3


@pytest.mark.parametrize("hook", ["on_batch_end", "on_train_batch_end"])
def test_callbacks_hear_of_batches_in_the_thread_of_the_loop(hook, way):
    heard = []

    def note(_, batch, logs=None):
        heard.append((batch, type(logs["loss"]), threading.current_thread()))

    listener = type("Listener", (keras.callbacks.Callback,), {hook: note})()
    fit(make_model(**way), X, Y, callbacks=[keras.callbacks.Callback(), listener])

    assert heard == [(batch, float, threading.current_thread()) for batch in range(4)]


def test_callbacks_that_are_functions_hear_of_evaluation_and_prediction():
    heard = []
    hooks = ("on_test_batch_begin", "on_test_batch_end", "on_predict_batch_end")
    callback = keras.callbacks.Callback()
    for hook in hooks:
        setattr(callback, hook, lambda batch, hook=hook, **_: heard.append((hook, batch)))
    model = make_model()
    model.evaluate(X, Y, batch_size=64, verbose=0, callbacks=[callback])
    model.predict(X, batch_size=64, verbose=0, callbacks=[callback])

    assert heard == [(hook, 0) for hook in hooks]


def test_metrics_that_no_callback_listens_to_are_not_read():
    read = set()

    class Loss(tf.Tensor):
        def __array__(self, *args, **kwargs):
            read.add(float(self._array))
            return super().__array__(*args, **kwargs)

    model = make_model(run_eagerly=True)
    losses = iter(np.arange(8, dtype=np.float32))
    model.train_step = lambda _data: {"loss": Loss(next(losses))}
    fit(model, X, Y)
    assert read == {3.0}  # at the end of the epoch
    fit(
        model,
        X,
        Y,
        callbacks=[keras.callbacks.LambdaCallback(on_train_batch_end=lambda *_, **__: 0)],
    )
    assert read == {3.0, 4.0, 5.0, 6.0, 7.0}


def test_data_that_runs_out_within_an_execution_ends_the_epoch(way):
    model = make_model(steps_per_execution=3, **way)
    batches = ((X[i : i + 16], Y[i : i + 16]) for i in range(0, 64, 16))
    with pytest.warns(UserWarning, match="Your input ran out of data"):
        fit(model, batches, steps_per_epoch=9, batch_size=None)

    assert int(model.optimizer.iterations) == 4


BATCHES = {
    "x": (X,),
    "no weights": (X, Y, None),
    "no targets": (X, None, Y),
    "all": (X, Y, Y),
    "two inputs": ({"a": X, "b": Y}, Y),
    "an array": X,
    "a list": [X, Y],
}


@pytest.mark.parametrize("batch", BATCHES.values(), ids=BATCHES)
def test_batches_of_every_structure_reach_the_step(batch, way):
    seen = []

    class Model(keras.Model):
        def train_step(self, data):
            seen.append(data)
            parts = [part for part in tf.nest.flatten(data) if part is not None]
            return {"loss": tf.add_n([tf.reduce_sum(part) for part in parts])}

    model = Model()
    model.compile("sgd", **way)
    function = model.make_train_function()
    first, second = (float(function([batch])["loss"]) for _ in range(2))

    tf.nest.assert_same_structure(seen[0], batch)
    parts = [part for part in tf.nest.flatten(batch) if part is not None]
    np.testing.assert_allclose([first, second], sum(part.sum() for part in parts), rtol=1e-5)
    assert len(seen) == (2 if "run_eagerly" in way else 1)


def test_early_stopping_and_checkpoints(tmp_path):
    path = tmp_path / "best.weights.h5"
    stopping = keras.callbacks.EarlyStopping("loss", min_delta=100.0, patience=1)
    keeping = keras.callbacks.ModelCheckpoint(path, save_weights_only=True)
    model = make_model()
    history = fit(model, X, Y, epochs=10, callbacks=[stopping, keeping])
    assert len(history["loss"]) == 2

    other = make_model()
    other.build((None, 5))
    other.optimizer.build(other.trainable_variables)
    other.load_weights(path)
    np.testing.assert_array_equal(other.predict(X, verbose=0), model.predict(X, verbose=0))


@every_way
def test_a_schedule_changes_the_learning_rate_of_a_compiled_step(way):
    model = make_model(optimizer=keras.optimizers.SGD(1.0), **way)
    rates = []
    scheduler = keras.callbacks.LearningRateScheduler(lambda epoch, rate: 0.0 if epoch else rate)
    looking = keras.callbacks.LambdaCallback(
        on_epoch_end=lambda *_: rates.append(model.layers[0].kernel.numpy())
    )
    fit(model, X, Y, epochs=3, callbacks=[scheduler, looking])

    np.testing.assert_array_equal(rates[1], rates[0])
    np.testing.assert_array_equal(rates[2], rates[0])


def test_the_progress_bar_is_shown(capsys):
    make_model().fit(X, Y, batch_size=16, verbose=1)

    assert "4/4" in capsys.readouterr().out


# Mishaps


class Interrupting(keras.callbacks.Callback):
    def on_train_batch_begin(self, batch, **_):
        if batch == 2:
            raise KeyboardInterrupt


@every_way
def test_an_interrupted_model_can_go_on(way):
    model = make_model(**way)
    with pytest.raises(KeyboardInterrupt):
        fit(model, X, Y, callbacks=[Interrupting()])

    assert int(model.optimizer.iterations) == 2
    fit(model, X, Y)
    assert int(model.optimizer.iterations) == 6


def test_an_error_in_a_step_leaves_the_model_as_it_was(way):
    class Failing(keras.Sequential):
        fail = False

        def train_step(self, data):
            logs = super().train_step(data)
            if self.fail:
                raise RuntimeError("in the middle of a step")
            return logs

    model = Failing([keras.Input((5,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse", **way)
    model.fail = True
    with pytest.raises(RuntimeError, match="in the middle"):
        fit(model, X, Y)

    model.fail = False
    model.make_train_function(force=True)
    assert len(fit(model, X, Y)["loss"]) == 1
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(model(X))
    assert tape.gradient(loss, model.trainable_variables)[0].shape == (5, 1)


# Mixed precision


def test_scaled_losses_as_keras_2_spells_them():
    results = []
    for scaled in (False, True):
        layer = keras.layers.Dense(1, kernel_initializer="ones")
        optimizer = keras.optimizers.SGD(0.1)
        if scaled:
            optimizer = keras.mixed_precision.LossScaleOptimizer(optimizer)
        for _ in range(3):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(layer(X) - Y))
                to_derive = optimizer.get_scaled_loss(loss) if scaled else loss
            gradients = tape.gradient(to_derive, layer.trainable_variables)
            if scaled:
                gradients = optimizer.get_unscaled_gradients(gradients)
            gradients, _ = tf.clip_by_global_norm(gradients, 1.0)
            optimizer.apply_gradients(zip(gradients, layer.trainable_variables, strict=True))
        results.append(layer.get_weights())

    for plain, scaled in zip(*results, strict=True):
        np.testing.assert_allclose(scaled, plain, rtol=1e-6)


@every_way
def test_a_step_with_infinite_gradients_is_left_out_and_halves_the_scale(way):
    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.Input((5,)), keras.layers.Dense(1, dtype="mixed_float16")])
    optimizer = keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.01), 2.0**10)
    model.compile(optimizer, "mse", **way)
    fit(model, X, Y)
    assert int(optimizer.inner_optimizer.iterations) == 4

    before = model.get_weights()
    model.train_on_batch(X * 1e30, Y)
    for now, then in zip(model.get_weights(), before, strict=True):
        np.testing.assert_array_equal(now, then)
    assert float(optimizer.dynamic_scale) == 2.0**9


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16", "float64"])
def test_other_dtypes_train(policy, way):
    keras.utils.set_random_seed(1)
    layers = [keras.layers.Dense(8, "relu", dtype=policy), keras.layers.Dense(1, dtype=policy)]
    model = keras.Sequential(layers)
    model.compile("sgd", "mse", **way)
    history = fit(model, X, Y, epochs=5)

    assert history["loss"][-1] < history["loss"][0]
    assert model.layers[0].kernel.dtype == ("float64" if policy == "float64" else "float32")


def test_errors_of_ours_keep_their_class_and_message_on_their_way_through_keras():
    layer = keras.layers.Lambda(lambda x: tf.matmul(x, x))
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        layer(tf.ones((2, 3)))

    assert "matmul: the inner dimensions differ, 3 and 2." in str(caught.value)
    assert "Exception encountered when calling Lambda.call()." in str(caught.value)


@pytest.mark.parametrize("kind", ["Adam", "RMSprop", "Adagrad", "SGD"])
def test_rows_that_are_read_twice_are_updated_by_the_sum_of_their_gradients(kind):
    table, whole = (keras.Variable(np.ones((3, 2), np.float32)) for _ in range(2))
    by_rows, by_whole = (getattr(keras.optimizers, kind)(0.1) for _ in range(2))
    for _ in range(3):
        with tf.GradientTape() as tape:
            rows = tf.gather(table.value, [0, 0, 1])
            loss = tf.reduce_sum(rows**2 * [[1.0], [0.2], [0.5]])
        gradient = tape.gradient(loss, table)
        assert isinstance(gradient, tf.IndexedSlices)
        by_rows.apply_gradients([(gradient, table)])
        by_whole.apply_gradients([(whole.value * [[2.4], [1.0], [0.0]], whole)])

    np.testing.assert_allclose(table, whole, rtol=1e-5)
    np.testing.assert_array_equal(table[2], [1.0, 1.0])
