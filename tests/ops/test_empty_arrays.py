"""Empty arrays and axes of size 1 in eager, replayed and compiled calls."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import retrograde as tf

SHAPES = [(0,), (0, 3), (3, 0), (0, 0), (2, 0, 3)]

FUNCTIONS = {
    "sort": tf.sort,
    "sort along the first axis": lambda x: tf.sort(x, axis=0),
    "sort descending": lambda x: tf.sort(x, direction="DESCENDING"),
    "argsort": tf.argsort,
    "top_k": lambda x: tf.math.top_k(x, k=0)[0],
    "cumprod": tf.math.cumprod,
    "cumulative_logsumexp": tf.math.cumulative_logsumexp,
    "gather": lambda x: tf.gather(x, tf.zeros([0, 2], tf.int32)),
    "gather in batches": lambda x: tf.gather(x, tf.zeros(x.shape, tf.int32)[..., :0], axis=-1),
    "gather_nd": lambda x: tf.gather_nd(x, tf.zeros([0, 2, 1], tf.int32)),
    "reduce_prod": tf.reduce_prod,
    "reduce_max": lambda x: tf.reduce_max(x, axis=0),
    "reduce_logsumexp": lambda x: tf.reduce_logsumexp(x, axis=-1),
    "softmax": tf.nn.softmax,
    "frame": lambda x: tf.signal.frame(x, 2, 1),
}


@pytest.mark.parametrize("compiles", [False, True], ids=["replayed", "compiled"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_empty_arrays_agree_with_eager_calls(name, shape, compiles):
    x, f = tf.zeros(shape), FUNCTIONS[name]
    expected = f(x)
    function = tf.function(f, jit_compile=compiles)
    for _ in range(3):
        y = function(x)
        assert (y.shape, y.dtype) == (expected.shape, expected.dtype)
        np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize("axis", [0, -1, None])
@pytest.mark.parametrize("shape", [(1,), (1, 3), (3, 1), (1, 1), *SHAPES], ids=str)
def test_derivatives_of_reduce_prod_agree_with_jax(shape, axis):
    array = np.random.default_rng(0).uniform(0.5, 2.0, shape).astype(np.float32)
    x = tf.constant(array)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = tf.reduce_prod(x, axis=axis)
        first = inner.gradient(y, x)
    second = outer.gradient(first, x)

    gradient = jax.grad(lambda x: jnp.sum(jnp.prod(x, axis=axis)))
    np.testing.assert_allclose(first, gradient(array), rtol=1e-6)
    expected = jax.grad(lambda x: jnp.sum(gradient(x)))(array)
    np.testing.assert_allclose(second, expected, rtol=1e-5)
