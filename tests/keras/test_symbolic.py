"""Shape inference, by running on small inputs or with `jax.eval_shape`."""

import numpy as np
import pytest

import retrograde as tf
from retrograde import keras
from retrograde.core import namespaces
from retrograde.keras_backend.symbolic import compute_output_spec

SMALL, LARGE = 4, 1 << 40  # arrays of the large size cannot be allocated
small_and_large = pytest.mark.parametrize("width", [SMALL, LARGE], ids=["small", "eval_shape"])


def symbolic(*shape, dtype="float32"):
    return keras.KerasTensor(shape, dtype)


@small_and_large
def test_shapes_dtypes_and_non_tensors(width):
    def f(x, scale=1.0):
        y = keras.ops.sum(x * scale, -1)
        return {
            "rows": y,
            "where": keras.ops.argmax(x, 1),
            "wide": keras.ops.cast(y, "float64"),
            1: "f",
        }

    spec = compute_output_spec(f, symbolic(None, 3, width), scale=2.0)

    assert (spec["rows"].shape, spec["rows"].dtype) == ((None, 3), "float32")
    assert (spec["where"].shape, spec["where"].dtype) == ((None, width), "int32")
    assert spec["wide"].dtype == "float64" and spec[1] == "f"


@small_and_large
def test_custom_layers_and_models(width):
    class Twice(keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = keras.layers.Dense(5)

        def call(self, x):
            return keras.ops.concatenate([self.dense(x[..., :2]), self.dense(x[..., :2])], -1)

    model = Twice()

    assert model(symbolic(None, 7, width)).shape == (None, 7, 10)
    assert model.dense.kernel.shape == (2, 5)
    assert model(tf.ones((3, 7, 2))).shape == (3, 7, 10)


def test_unknown_dimensions_that_must_be_equal():
    assert compute_output_spec(keras.ops.matmul, symbolic(4, None), symbolic(None, 4)).shape == (
        4,
        4,
    )
    assert compute_output_spec(lambda x: x @ x, symbolic(None, None)).shape == (None, None)


def test_functions_that_need_values_run_on_dummy_inputs():
    def f(x):
        return x[: int(keras.ops.sum(x[0, :2]))]

    assert compute_output_spec(f, symbolic(9, 5000)).shape == (2, 5000)


@small_and_large
def test_no_side_effects(width):
    v = keras.Variable(1.0)

    def f(x):
        v.assign_add(keras.ops.sum(x[..., 0]))
        return x * v

    before = namespaces.foreign
    with tf.GradientTape() as tape:
        compute_output_spec(f, symbolic(2, width))
    assert v.numpy() == 1.0
    assert namespaces.foreign == before
    assert tape.watched_variables() == ()


def test_errors_propagate():
    with pytest.raises(tf.errors.InvalidArgumentError, match="incompatible shapes"):
        compute_output_spec(keras.ops.add, symbolic(None, 3), symbolic(None, 4))


class TracedModel(keras.Model):
    """A model whose `call` is a `tf.function` that creates the weights when first called."""

    def __init__(self):
        super().__init__()
        self.dense = keras.layers.Dense(3)
        self.norm = keras.layers.BatchNormalization()

    @tf.function
    def call(self, x, training=False):
        return self.norm(self.dense(x), training=training)


# 2 and 3 are the sizes that replace an unknown batch size.
@pytest.mark.parametrize("rows", [1, 2, 3])
def test_shape_inference_does_not_trace(rows):
    x = np.arange(4.0 * rows, dtype=np.float32).reshape(rows, 4)
    called, built_from_shape = TracedModel(), TracedModel()
    called(np.zeros_like(x))
    built_from_shape(keras.Input((4,)))

    for model in (called, built_from_shape):
        kernel = np.arange(12.0, dtype=np.float32).reshape(4, 3)
        model.dense.set_weights([kernel, np.ones(3)])
        for _ in range(2):
            np.testing.assert_allclose(model(x), (x @ kernel + 1) / np.sqrt(1.001), rtol=1e-5)
        np.testing.assert_array_equal(model.norm.moving_mean, np.zeros(3))
