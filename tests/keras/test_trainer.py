"""`fit`, `evaluate`, `predict` and custom training steps."""

import threading

import numpy as np
import pytest

import retrograde as tf
from retrograde import keras

RNG = np.random.default_rng(0)
X = RNG.standard_normal((64, 5)).astype(np.float32)
Y = (X[:, :1] - 2 * X[:, 1:2] > 0).astype(np.float32)

MODES = {
    "eager": {"run_eagerly": True},
    "replayed": {"jit_compile": False},
    "compiled": {"jit_compile": True},
}


# XLA needs a second or more for each model, so only some tests compile.
@pytest.fixture(params=["eager", "replayed"])
def mode(request):
    return MODES[request.param]


every_mode = pytest.mark.parametrize("mode", MODES.values(), ids=MODES)


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


def test_fit_reduces_the_loss_and_returns_metrics(mode):
    model = make_model(optimizer=keras.optimizers.Adam(0.05), **mode)
    history = fit(model, X, Y, epochs=10, validation_data=(X, Y))

    assert set(history) == {"loss", "mae", "val_loss", "val_mae"}
    assert history["loss"][-1] < 0.6 * history["loss"][0]
    loss, mae = model.evaluate(X, Y, verbose=0)
    expected = [history["val_loss"][-1], history["val_mae"][-1]]
    np.testing.assert_allclose([loss, mae], expected, rtol=1e-6)
    prediction = model.predict(X, verbose=0)
    np.testing.assert_allclose(np.mean(np.abs(prediction - Y)), mae, rtol=1e-5)


def test_all_modes_agree():
    histories = [fit(make_model(**mode), X, Y, epochs=3) for mode in MODES.values()]

    for history in histories[1:]:
        np.testing.assert_allclose(history["loss"], histories[0]["loss"], rtol=1e-5)
        np.testing.assert_allclose(history["mae"], histories[0]["mae"], rtol=1e-5)


def test_one_step_computed_by_hand():
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1, use_bias=False)])
    model.set_weights([np.array([[1.0], [2.0]])])
    model.compile(keras.optimizers.SGD(0.1), "mse")
    x, y = np.array([[1.0, 1.0], [2.0, 0.0]]), np.array([[2.0], [2.0]])
    # predictions 3 and 2, errors 1 and 0, loss 1/2, gradient 2/2 * 1 * (1, 1)
    loss = model.train_on_batch(x, y)

    np.testing.assert_allclose(loss, 0.5)
    np.testing.assert_allclose(model.get_weights()[0], [[0.9], [1.9]], rtol=1e-6)


@every_mode
def test_the_last_batch_may_be_smaller(mode):
    model = make_model(**mode)
    fit(model, X[:42], Y[:42], epochs=2)

    assert model.predict(X[:42], batch_size=16, verbose=0).shape == (42, 1)
    assert int(model.optimizer.iterations) == 6


def test_several_steps_per_execution(mode):
    three_steps = make_model(steps_per_execution=3, **mode)
    one_step = make_model(**mode)
    losses = [fit(model, X, Y, epochs=2)["loss"] for model in (three_steps, one_step)]

    np.testing.assert_allclose(*losses, rtol=1e-6)
    np.testing.assert_allclose(
        three_steps.predict(X, verbose=0), one_step.predict(X, verbose=0), rtol=1e-5
    )


def test_sample_weights_and_class_weights_agree(mode):
    weights = np.where(Y[:, 0] > 0, 3.0, 0.5)
    by_sample = fit(make_model(**mode), X, Y, sample_weight=weights)["loss"]
    by_class = fit(make_model(**mode), X, Y, class_weight={0: 0.5, 1: 3.0})["loss"]

    np.testing.assert_allclose(by_sample, by_class, rtol=1e-6)
    assert not np.allclose(by_sample, fit(make_model(**mode), X, Y)["loss"])


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
def test_data_sources(source):
    expected = fit(make_model(), X, Y)["loss"]
    actual = fit(make_model(), source(), batch_size=None)["loss"]

    np.testing.assert_allclose(actual, expected, rtol=1e-6)


def test_tensors_as_data():
    expected = fit(make_model(), X, Y, epochs=2)["loss"]
    actual = fit(make_model(), tf.constant(X), tf.constant(Y), epochs=2)["loss"]

    np.testing.assert_allclose(actual, expected, rtol=1e-6)


def test_datasets_in_validation_prediction_and_class_weights():
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


def test_infinite_datasets_with_steps_per_epoch():
    history = fit(make_model(), as_dataset().repeat(), batch_size=None, steps_per_epoch=4, epochs=2)

    np.testing.assert_allclose(
        history["loss"], fit(make_model(), X, Y, epochs=2)["loss"], rtol=1e-6
    )


def test_datasets_with_separate_targets_or_weights_raise():
    with pytest.raises(ValueError, match="`y` should not be passed"):
        make_model().fit(as_dataset(), Y)
    with pytest.raises(ValueError, match="`sample_weights` should not be passed"):
        make_model().fit(as_dataset(), sample_weight=Y)


def test_functions_of_one_batch(mode):
    model = make_model(**mode)
    before = model.test_on_batch(X, Y, return_dict=True)
    for _ in range(20):
        model.train_on_batch(X, Y)
    after = model.test_on_batch(X, Y, return_dict=True)

    assert after["loss"] < before["loss"]
    np.testing.assert_allclose(model.predict_on_batch(X), model.predict(X, verbose=0), rtol=1e-5)


# Custom steps


class GradientPenalty(keras.Model):
    """A model with a penalty on the gradient of its output with respect to its input."""

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
                y_pred = self(x, training=True)
            input_gradient = inner.gradient(y_pred, x)
            penalty = tf.reduce_mean(tf.square(input_gradient))
            loss = self.compute_loss(y=y, y_pred=y_pred) + penalty
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables, strict=True))
        self.penalty.update_state(penalty)
        return {"loss": loss, **{m.name: m.result() for m in self.metrics}}


def test_a_step_with_two_nested_tapes():
    histories = []
    for mode in MODES.values():
        keras.utils.set_random_seed(1)
        model = GradientPenalty()
        model.compile(keras.optimizers.SGD(0.1), "mse", **mode)
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


@every_mode
def test_a_step_with_two_optimizers(mode):
    keras.utils.set_random_seed(2)
    tf.random.set_seed(2)
    gan = GAN()
    gan.compile(keras.optimizers.Adam(0.05), keras.optimizers.Adam(0.01), **mode)
    before = [w.numpy() for w in gan.weights]
    history = fit(gan, X, epochs=5)

    assert history["d_loss"][-1] < history["d_loss"][0]
    assert all(np.any(a != w.numpy()) for a, w in zip(before, gan.weights, strict=True))


def test_only_trainable_weights_change(mode):
    shared = keras.layers.Dense(5, activation="tanh")
    frozen = keras.layers.Dense(4, trainable=False)
    a, b = keras.Input((5,)), keras.Input((5,))
    output = keras.layers.Dense(1)(frozen(keras.layers.add([shared(a), shared(b)])))
    model = keras.Model([a, b], output)
    model.compile("sgd", "mse", **mode)
    before = [w.numpy() for w in model.weights]
    fit(model, [X, X], Y)
    changed = [np.any(w.numpy() != b) for w, b in zip(model.weights, before, strict=True)]

    assert [w.path for w, m in zip(model.weights, changed, strict=True) if m] == [
        w.path for w in model.trainable_weights
    ]


# Callbacks


def test_callbacks_with_tapes_see_current_weights():
    x = tf.constant(X[:3])
    sizes = []

    class RecordJacobian(keras.callbacks.Callback):
        def on_epoch_end(self, *_, **__):
            with tf.GradientTape() as tape:
                y = self.model(x)
            jacobian = tape.jacobian(y, self.model.layers[0].kernel)
            sizes.append((jacobian.shape, float(tf.reduce_sum(jacobian**2))))

    fit(make_model(), X, Y, epochs=3, callbacks=[RecordJacobian()])

    assert {tuple(shape) for shape, _ in sizes} == {(3, 1, 5, 8)}
    assert len({size for _, size in sizes}) == 3


@pytest.mark.parametrize("hook", ["on_batch_end", "on_train_batch_end"])
def test_batch_callbacks_run_in_the_training_thread(hook, mode):
    calls = []

    def record(_, batch, logs=None):
        calls.append((batch, type(logs["loss"]), threading.current_thread()))

    callback = type("Recorder", (keras.callbacks.Callback,), {hook: record})()
    fit(make_model(**mode), X, Y, callbacks=[keras.callbacks.Callback(), callback])

    assert calls == [(batch, float, threading.current_thread()) for batch in range(4)]


def test_callback_functions_in_evaluate_and_predict():
    calls = []
    hooks = ("on_test_batch_begin", "on_test_batch_end", "on_predict_batch_end")
    callback = keras.callbacks.Callback()
    for hook in hooks:
        setattr(callback, hook, lambda batch, hook=hook, **_: calls.append((hook, batch)))
    model = make_model()
    model.evaluate(X, Y, batch_size=64, verbose=0, callbacks=[callback])
    model.predict(X, batch_size=64, verbose=0, callbacks=[callback])

    assert calls == [(hook, 0) for hook in hooks]


def test_metrics_without_callbacks_are_not_read():
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


def test_data_ending_within_an_execution(mode):
    model = make_model(steps_per_execution=3, **mode)
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
def test_batch_structures(batch, mode):
    received = []

    class Model(keras.Model):
        def train_step(self, data):
            received.append(data)
            parts = [part for part in tf.nest.flatten(data) if part is not None]
            return {"loss": tf.add_n([tf.reduce_sum(part) for part in parts])}

    model = Model()
    model.compile("sgd", **mode)
    function = model.make_train_function()
    first, second = (float(function([batch])["loss"]) for _ in range(2))

    tf.nest.assert_same_structure(received[0], batch)
    parts = [part for part in tf.nest.flatten(batch) if part is not None]
    np.testing.assert_allclose([first, second], sum(part.sum() for part in parts), rtol=1e-5)
    assert len(received) == (2 if "run_eagerly" in mode else 1)


def test_early_stopping_and_checkpoints(tmp_path):
    path = tmp_path / "best.weights.h5"
    stopping = keras.callbacks.EarlyStopping("loss", min_delta=100.0, patience=1)
    checkpoint = keras.callbacks.ModelCheckpoint(path, save_weights_only=True)
    model = make_model()
    history = fit(model, X, Y, epochs=10, callbacks=[stopping, checkpoint])
    assert len(history["loss"]) == 2

    other = make_model()
    other.build((None, 5))
    other.optimizer.build(other.trainable_variables)
    other.load_weights(path)
    np.testing.assert_array_equal(other.predict(X, verbose=0), model.predict(X, verbose=0))


@every_mode
def test_learning_rate_schedule(mode):
    model = make_model(optimizer=keras.optimizers.SGD(1.0), **mode)
    kernels = []
    scheduler = keras.callbacks.LearningRateScheduler(lambda epoch, rate: 0.0 if epoch else rate)
    recorder = keras.callbacks.LambdaCallback(
        on_epoch_end=lambda *_: kernels.append(model.layers[0].kernel.numpy())
    )
    fit(model, X, Y, epochs=3, callbacks=[scheduler, recorder])

    np.testing.assert_array_equal(kernels[1], kernels[0])
    np.testing.assert_array_equal(kernels[2], kernels[0])


def test_progress_bar(capsys):
    make_model().fit(X, Y, batch_size=16, verbose=1)

    assert "4/4" in capsys.readouterr().out


# Interrupts and errors


class Interrupting(keras.callbacks.Callback):
    def on_train_batch_begin(self, batch, **_):
        if batch == 2:
            raise KeyboardInterrupt


@every_mode
def test_training_resumes_after_an_interrupt(mode):
    model = make_model(**mode)
    with pytest.raises(KeyboardInterrupt):
        fit(model, X, Y, callbacks=[Interrupting()])

    assert int(model.optimizer.iterations) == 2
    fit(model, X, Y)
    assert int(model.optimizer.iterations) == 6


def test_model_works_after_an_error_in_a_step(mode):
    class Failing(keras.Sequential):
        fail = False

        def train_step(self, data):
            logs = super().train_step(data)
            if self.fail:
                raise RuntimeError("in the middle of a step")
            return logs

    model = Failing([keras.Input((5,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse", **mode)
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


def test_keras_2_loss_scaling_api():
    results = []
    for scaled in (False, True):
        layer = keras.layers.Dense(1, kernel_initializer="ones")
        optimizer = keras.optimizers.SGD(0.1)
        if scaled:
            optimizer = keras.mixed_precision.LossScaleOptimizer(optimizer)
        for _ in range(3):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(layer(X) - Y))
                objective = optimizer.get_scaled_loss(loss) if scaled else loss
            gradients = tape.gradient(objective, layer.trainable_variables)
            if scaled:
                gradients = optimizer.get_unscaled_gradients(gradients)
            gradients, _ = tf.clip_by_global_norm(gradients, 1.0)
            optimizer.apply_gradients(zip(gradients, layer.trainable_variables, strict=True))
        results.append(layer.get_weights())

    for plain, scaled in zip(*results, strict=True):
        np.testing.assert_allclose(scaled, plain, rtol=1e-6)


@every_mode
def test_infinite_gradients_skip_the_step_and_halve_the_scale(mode):
    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.Input((5,)), keras.layers.Dense(1, dtype="mixed_float16")])
    optimizer = keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.01), 2.0**10)
    model.compile(optimizer, "mse", **mode)
    fit(model, X, Y)
    assert int(optimizer.inner_optimizer.iterations) == 4

    before = model.get_weights()
    model.train_on_batch(X * 1e30, Y)
    for now, then in zip(model.get_weights(), before, strict=True):
        np.testing.assert_array_equal(now, then)
    assert float(optimizer.dynamic_scale) == 2.0**9


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16", "float64"])
def test_dtype_policies(policy, mode):
    keras.utils.set_random_seed(1)
    layers = [keras.layers.Dense(8, "relu", dtype=policy), keras.layers.Dense(1, dtype=policy)]
    model = keras.Sequential(layers)
    model.compile("sgd", "mse", **mode)
    history = fit(model, X, Y, epochs=5)

    assert history["loss"][-1] < history["loss"][0]
    assert model.layers[0].kernel.dtype == ("float64" if policy == "float64" else "float32")


def test_errors_keep_their_class_and_message_through_keras():
    layer = keras.layers.Lambda(lambda x: tf.matmul(x, x))
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        layer(tf.ones((2, 3)))

    assert "matmul: the inner dimensions differ, 3 and 2." in str(caught.value)
    assert "Exception encountered when calling Lambda.call()." in str(caught.value)


@pytest.mark.parametrize("name", ["Adam", "RMSprop", "Adagrad", "SGD"])
def test_sparse_gradients_sum_repeated_rows(name):
    table, dense_table = (keras.Variable(np.ones((3, 2), np.float32)) for _ in range(2))
    sparse_optimizer, dense_optimizer = (getattr(keras.optimizers, name)(0.1) for _ in range(2))
    for _ in range(3):
        with tf.GradientTape() as tape:
            rows = tf.gather(table.value, [0, 0, 1])
            loss = tf.reduce_sum(rows**2 * [[1.0], [0.2], [0.5]])
        gradient = tape.gradient(loss, table)
        assert isinstance(gradient, tf.IndexedSlices)
        sparse_optimizer.apply_gradients([(gradient, table)])
        dense_optimizer.apply_gradients([(dense_table.value * [[2.4], [1.0], [0.0]], dense_table)])

    np.testing.assert_allclose(table, dense_table, rtol=1e-5)
    np.testing.assert_array_equal(table[2], [1.0, 1.0])


def test_fit_on_an_empty_dataset_changes_nothing():
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    before = [w.numpy() for w in model.weights]
    empty = tf.data.Dataset.from_tensor_slices((np.zeros([0, 2]), np.zeros([0, 1]))).batch(2)

    history = model.fit(empty, verbose=0)
    assert history.history == {}
    for old, weight in zip(before, model.weights, strict=True):
        np.testing.assert_array_equal(old, weight)


def test_tensorboard_accepts_layers_that_cannot_be_serialized(tmp_path):
    class Apply(keras.layers.Layer):
        def __init__(self, function):
            super().__init__()
            self.function = function

        def call(self, x):
            return self.function(x)

    model = keras.Sequential([keras.Input((2,)), Apply(lambda x: x), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    callback = keras.callbacks.TensorBoard(tmp_path)
    with pytest.warns(UserWarning, match="TensorBoard does not show the graph of the model"):
        model.fit(np.zeros([2, 2]), np.zeros([2, 1]), verbose=0, callbacks=[callback])
