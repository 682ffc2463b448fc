"""Shapes of results, found out without the inputs: on small ones, or by JAX without any."""

import numpy as np
import pytest

import retrograde as tf
from retrograde import keras
from retrograde.core import namespaces
from retrograde.keras_backend.symbolic import compute_output_spec

SMALL, LARGE = 4, 1 << 40  # of the large ones no machine could make an array
both = pytest.mark.parametrize("width", [SMALL, LARGE], ids=["on small inputs", "by JAX"])


def symbol(*shape, dtype="float32"):
    return keras.KerasTensor(shape, dtype)


@both
def test_shapes_dtypes_and_what_is_no_tensor(width):
    def f(x, scale=1.0):
        y = keras.ops.sum(x * scale, -1)
        return {
            "rows": y,
            "where": keras.ops.argmax(x, 1),
            "wide": keras.ops.cast(y, "float64"),
            1: "f",
        }

    found = compute_output_spec(f, symbol(None, 3, width), scale=2.0)

    assert (found["rows"].shape, found["rows"].dtype) == ((None, 3), "float32")
    assert (found["where"].shape, found["where"].dtype) == ((None, width), "int32")
    assert found["wide"].dtype == "float64" and found[1] == "f"


@both
def test_layers_and_models_of_users(width):
    class Twice(keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = keras.layers.Dense(5)

        def call(self, x):
            return keras.ops.concatenate([self.dense(x[..., :2]), self.dense(x[..., :2])], -1)

    model = Twice()

    assert model(symbol(None, 7, width)).shape == (None, 7, 10)
    assert model.dense.kernel.shape == (2, 5)
    assert model(tf.ones((3, 7, 2))).shape == (3, 7, 10)


def test_sizes_that_are_not_known_may_have_to_be_the_same():
    assert compute_output_spec(keras.ops.matmul, symbol(4, None), symbol(None, 4)).shape == (4, 4)
    assert compute_output_spec(lambda x: x @ x, symbol(None, None)).shape == (None, None)


def test_a_function_that_needs_values_gets_some():
    def f(x):
        return x[: int(keras.ops.sum(x[0, :2]))]

    assert compute_output_spec(f, symbol(9, 5000)).shape == (2, 5000)


@both
def test_nothing_is_left_behind(width):
    v = keras.Variable(1.0)

    def f(x):
        v.assign_add(keras.ops.sum(x[..., 0]))
        return x * v

    before = namespaces.foreign
    with tf.GradientTape() as tape:
        compute_output_spec(f, symbol(2, width))
    assert v.numpy() == 1.0
    assert namespaces.foreign == before
    assert tape.watched_variables() == ()


def test_errors_say_what_was_wrong():
    with pytest.raises(tf.errors.InvalidArgumentError, match="incompatible shapes"):
        compute_output_spec(keras.ops.add, symbol(None, 3), symbol(None, 4))


class Recorded(keras.Model):
    """Its `call` is a function, and its weights are made when that is first called."""

    def __init__(self):
        super().__init__()
        self.dense = keras.layers.Dense(3)
        self.norm = keras.layers.BatchNormalization()

    @tf.function
    def call(self, x, training=False):
        return self.norm(self.dense(x), training=training)


@pytest.mark.parametrize("rows", [1, 2, 3])  # 2 and 3 stand for a batch of unknown size
def test_a_function_is_not_recorded_while_only_shapes_are_asked_for(rows):
    x = np.arange(4.0 * rows, dtype=np.float32).reshape(rows, 4)
    by_call, by_shape = Recorded(), Recorded()
    by_call(np.zeros_like(x))
    by_shape(keras.Input((4,)))

    for model in (by_call, by_shape):
        kernel = np.arange(12.0, dtype=np.float32).reshape(4, 3)
        model.dense.set_weights([kernel, np.ones(3)])
        for _ in range(2):
            np.testing.assert_allclose(model(x), (x @ kernel + 1) / np.sqrt(1.001), rtol=1e-5)
        np.testing.assert_array_equal(model.norm.moving_mean, np.zeros(3))
