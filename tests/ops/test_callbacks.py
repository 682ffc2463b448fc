"""Host callbacks in compiled programs preserve all bits of their inputs and outputs."""

import jax
import numpy as np
import pytest

import retrograde as tf
from retrograde.core.rules import Spec
from retrograde.ops._callbacks import call_on_host

VALUES = {
    "int64": [2**53 + 1, -3],
    "uint64": [2**64 - 1, 5],
    "float64": [1 + 2.0**-50, -np.inf],
    "complex128": [1 + 2.0**-50 + 3j, 2 - (1 + 2.0**-50) * 1j],
    "int32": [7, -7],
    "float32": [1.5, np.inf],
    "complex64": [1 + 2j, 3 - 4j],
    "bool": [True, False],
}


@pytest.mark.parametrize("shape", [(), (2,), (3, 2), (0, 2)])
@pytest.mark.parametrize("dtype", VALUES)
def test_all_bits_are_preserved(dtype, shape):
    x = np.resize(np.array(VALUES[dtype], dtype), shape)
    spec, seen = Spec(x.shape, x.dtype), []

    def callback(x, y):
        seen.append((x.dtype, x.shape))
        return x, y[..., ::-1] if y.ndim else y

    with jax.enable_x64(True):
        y = jax.jit(lambda x: call_on_host(callback, [spec] * 2, [x, x]))(x)
        first, second = map(np.asarray, y)

    assert seen == [(x.dtype, x.shape)] * bool(x.size)  # XLA does not call it if results are empty
    assert first.dtype == second.dtype == x.dtype
    np.testing.assert_array_equal(first, x)
    np.testing.assert_array_equal(second, x[..., ::-1] if x.ndim else x)


def test_64_bit_numbers_are_preserved_in_a_large_program():
    """Uses a program that JAX runs in another thread."""
    x = tf.constant(np.random.default_rng(0).uniform(1, 2, (300, 300)))

    def f(x):
        y = tf.linalg.matmul(x, x, transpose_b=True) / 300 + 10 * tf.eye(300, dtype=x.dtype)
        return tf.reduce_sum(tf.sin(tf.linalg.logm(tf.cast(y[:4, :4], tf.complex128))))

    compiled = tf.function(f, jit_compile=True)
    for _ in range(2):
        actual = compiled(x)
    np.testing.assert_allclose(actual, f(x), rtol=1e-12)
