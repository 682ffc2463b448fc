"""Keras variables wrap `tf.Variable`; tapes, optimizers and conversions accept both."""

import gc
import weakref

import numpy as np
import pytest

import retrograde as tf
from retrograde import keras


@pytest.fixture
def layer():
    layer = keras.layers.Dense(2, kernel_initializer="ones")
    layer.build((None, 3))
    return layer


X = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], np.float32)


def test_keras_variable_wraps_a_variable():
    v = keras.Variable([1.0, 2.0], name="v", trainable=False)

    assert isinstance(v._value, tf.Variable)
    assert v._value.name == "v:0" and not v._value.trainable
    v.trainable = True
    assert v._value.trainable


def test_keras_variable_from_an_existing_variable():
    variable = tf.Variable([1.0, 2.0])
    v = keras.Variable(variable)
    v.assign([3.0, 4.0])

    assert v.shape == (2,) and v.dtype == "float32"
    np.testing.assert_array_equal(v.numpy(), [3.0, 4.0])


def test_tapes_watch_trainable_keras_variables():
    v, frozen = keras.Variable(3.0), keras.Variable(2.0, trainable=False)
    with tf.GradientTape() as tape:
        y = v * v * frozen

    assert [w.name for w in tape.watched_variables()] == [v._value.name]
    dv, dfrozen = tape.gradient(y, [v, frozen])
    assert dv.numpy() == 12.0 and dfrozen is None


def test_mixed_and_nested_sources():
    v, w, x = keras.Variable(2.0), tf.Variable(3.0), tf.constant(5.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = v * w * x
    gradients = tape.gradient(y, {"keras": [v], "tf": (w, {"x": x})})

    assert gradients["keras"][0].numpy() == 15.0
    assert gradients["tf"][0].numpy() == 10.0 and gradients["tf"][1]["x"].numpy() == 6.0


def test_explicit_watch_of_a_keras_variable():
    v, w = keras.Variable(2.0), keras.Variable(3.0)
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(v)
        y = v * w

    dv, dw = tape.gradient(y, [v, w])
    assert dv.numpy() == 3.0 and dw is None


def test_jacobians_and_forward_mode_of_keras_variables():
    v = keras.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        y = v * v
    np.testing.assert_array_equal(tape.jacobian(y, v), [[2.0, 0.0], [0.0, 4.0]])

    with tf.autodiff.ForwardAccumulator(v, tf.constant([1.0, 10.0])) as accumulator:
        y = v * v
    np.testing.assert_array_equal(accumulator.jvp(y), [2.0, 40.0])


def test_second_order_through_a_layer(layer):
    x = tf.constant(X)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = tf.reduce_sum(layer(x) ** 2)
        dx = inner.gradient(y, x)
        penalty = tf.reduce_sum(dx**2)
    gradient = outer.gradient(penalty, layer.kernel)

    # y = |xW|^2, dx = 2 x W W^T, penalty = 4 |x W W^T|^2 with W = ones(3, 2).
    # The derivative for each entry of W depends only on its row of x.
    step = 1e-2
    expected = np.zeros((3, 2))
    for i, j in np.ndindex(3, 2):
        values = []
        for sign in (1, -1):
            w = np.ones((3, 2))
            w[i, j] += sign * step
            values.append(np.sum((2 * X.astype(float) @ w @ w.T) ** 2))
        expected[i, j] = (values[0] - values[1]) / (2 * step)
    np.testing.assert_allclose(gradient, expected, rtol=1e-4)


def test_gradients_have_the_dtype_of_the_variable():
    layer = keras.layers.Dense(2, dtype="mixed_bfloat16")
    with tf.GradientTape() as tape:
        y = layer(X)
        loss = tf.reduce_sum(y)

    assert y.dtype == "bfloat16"
    assert [g.dtype.name for g in tape.gradient(loss, layer.trainable_variables)] == ["float32"] * 2


def test_gradient_under_autocast_inside_a_layer():
    class WeightGradient(keras.layers.Layer):
        def build(self, _):
            self.w = self.add_weight(shape=(), initializer="ones")

        def call(self, x):
            with tf.GradientTape() as tape:
                y = self.w * x
            return tape.gradient(y, self.w)

    gradient = WeightGradient(dtype="mixed_bfloat16")(tf.constant([1.0, 2.0]))
    assert gradient.numpy() == 3.0


def test_operations_accept_keras_variables():
    v = keras.Variable([[1.0, 2.0]])

    assert tf.convert_to_tensor(v).dtype is tf.float32
    np.testing.assert_array_equal(tf.matmul(v, v, transpose_b=True), [[5.0]])
    np.testing.assert_array_equal(tf.constant([[1.0, 1.0]]) + v, [[2.0, 3.0]])
    np.testing.assert_array_equal(np.ones(2, np.float32) + v, [[2.0, 3.0]])
    assert tf.is_tensor(np.ones(2, np.float32) + v)


def test_in_place_updates_do_not_change_earlier_values():
    v = keras.Variable([1.0, 2.0])
    before = v.value
    after = v.assign_add(tf.constant([1.0, 1.0]))
    v.assign_sub(tf.constant([5.0, 5.0]))

    np.testing.assert_array_equal(before, [1.0, 2.0])
    np.testing.assert_array_equal(after, [2.0, 3.0])
    np.testing.assert_array_equal(v, [-3.0, -2.0])


def test_updates_convert_and_broadcast():
    v = keras.Variable([1.0, 2.0])
    v.assign_add(1)
    v.assign_sub(np.array([0.5, 0.5]))

    np.testing.assert_array_equal(v, [1.5, 2.5])
    with pytest.raises(ValueError, match="must match"):
        v.assign([1.0])


def test_stateless_scopes():
    v = keras.Variable(2.0)
    mapped = tf.constant(5.0)
    with keras.StatelessScope([(v, mapped)]) as scope:
        with tf.GradientTape() as tape:
            tape.watch(v)
            y = v * v
        assert tape.gradient(y, v).numpy() == 10.0
        v.assign_add(tf.constant(1.0))
    assert scope.get_current_value(v).numpy() == 6.0 and v.numpy() == 2.0


def test_modules_collect_keras_variables(layer):
    class Both(tf.Module):
        def __init__(self):
            super().__init__()
            self.dense = layer.kernel
            self.scale = tf.Variable(1.0)

    assert len(Both().trainable_variables) == 2


@pytest.mark.parametrize("name", ["SGD", "Adam", "RMSprop", "Adafactor", "Lion"])
def test_optimizers_accept_both_kinds_of_variables(name):
    optimizer = getattr(keras.optimizers, name)(0.1)
    tf_variable, keras_variable = tf.Variable([1.0, 2.0]), keras.Variable([1.0, 2.0])
    for _ in range(3):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.square(tf_variable)) + tf.reduce_sum(tf.square(keras_variable))
        gradients = tape.gradient(loss, [tf_variable, keras_variable])
        optimizer.apply_gradients(zip(gradients, [tf_variable, keras_variable], strict=True))

    assert np.all(tf_variable.numpy() < [1.0, 2.0])
    np.testing.assert_array_equal(tf_variable.numpy(), keras_variable.numpy())


def test_missing_gradients_warn():
    optimizer = keras.optimizers.SGD(1.0)
    v, w = keras.Variable(1.0), keras.Variable(1.0)
    with pytest.warns(UserWarning, match="Gradients do not exist for variables"):
        optimizer.apply_gradients([(tf.constant(0.25), v), (None, w)])

    assert v.numpy() == 0.75 and w.numpy() == 1.0


def test_optimizers_accept_embedding_gradients():
    layer = keras.layers.Embedding(4, 2, embeddings_initializer="ones")
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(layer(np.array([1, 1, 3])))
    gradients = tape.gradient(loss, layer.trainable_variables)
    assert isinstance(gradients[0], tf.IndexedSlices)
    assert gradients[0].indices.numpy().tolist() == [1, 1, 3]
    keras.optimizers.SGD(0.5).apply(gradients, layer.trainable_variables)

    np.testing.assert_array_equal(layer.get_weights()[0], [[1, 1], [0, 0], [1, 1], [0.5, 0.5]])


def test_tensors_as_weights(layer):
    """Differentiates through an inner training step, as in MAML."""
    x, y = tf.constant(X), tf.constant([[1.0, 0.0], [0.0, 1.0]])
    kernel, bias = layer.kernel, layer.bias
    adapted = keras.layers.Dense(2)
    adapted.build((None, 3))

    def loss_fn(layer):
        return tf.reduce_mean(tf.square(layer(x) - y))

    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            loss = loss_fn(layer)
        dkernel, dbias = inner.gradient(loss, [kernel, bias])
        adapted._kernel = kernel - 0.01 * dkernel
        adapted.bias = bias - 0.01 * dbias
        meta_loss = loss_fn(adapted)
    gradient = outer.gradient(meta_loss, kernel)

    def loss_after_step(w):
        b, a = np.zeros(2), X.astype(float)
        g = 2 * (a @ w + b - y.numpy()) / 4
        w2, b2 = w - 0.01 * a.T @ g, b - 0.01 * g.sum(0)
        return np.mean((a @ w2 + b2 - y.numpy()) ** 2)

    expected = np.zeros((3, 2))
    for i, j in np.ndindex(3, 2):
        e = np.zeros((3, 2))
        e[i, j] = 1e-5
        w = kernel.numpy().astype(float)
        expected[i, j] = (loss_after_step(w + e) - loss_after_step(w - e)) / 2e-5
    np.testing.assert_allclose(gradient, expected, rtol=1e-4)


def test_tensors_store_masks_and_logits():
    masked = keras.layers.Masking()(np.array([[[1.0], [0.0]]], np.float32))
    np.testing.assert_array_equal(masked._keras_mask, [[True, False]])

    logits = tf.constant([[1.0, 2.0]])
    assert keras.activations.softmax(logits)._keras_logits is logits
    assert not hasattr(logits, "trainable")
    logits.trainable = False  # quantized layers set this on tensors that replace weights
    assert not logits.trainable


def test_deleted_layer_frees_its_variables():
    layer = keras.layers.Dense(2)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(layer(X))
    tape.gradient(loss, layer.trainable_variables)
    variable = weakref.ref(layer.kernel._value)
    del layer, tape, loss
    gc.collect()

    assert variable() is None


def test_keras_seed_sets_the_global_seed():
    draws = []
    for _ in range(2):
        keras.utils.set_random_seed(5)
        draws.append((tf.random.normal((3,)).numpy(), keras.random.normal((3,)).numpy()))

    for first, second in zip(*draws, strict=True):
        np.testing.assert_array_equal(first, second)


def test_shape_is_a_tensor_shape():
    layer = keras.layers.Dense(2)
    layer.build((None, 3))

    assert layer.kernel.shape.as_list() == [3, 2]
    assert layer.kernel.shape == (3, 2)
    assert np.zeros(layer.kernel.shape).shape == (3, 2)
