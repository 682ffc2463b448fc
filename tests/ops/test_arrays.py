"""What NumPy and JAX do differently."""

import jax
import jax.numpy as jnp
import numpy as np

from retrograde.core.rules import Spec
from retrograde.ops._arrays import on_host


def _halves(x):
    return x / 2, np.argsort(x)


def test_the_host_serves_xla_where_it_has_nothing_of_its_own():
    x = np.array([3.0, 1.0, 2.0], np.float32)
    specs = Spec(x.shape, x.dtype), Spec(x.shape, np.dtype(np.int64))

    with jax.enable_x64(True):
        actual = jax.jit(lambda x: on_host(jnp, _halves, specs, x))(x)

    for a, e in zip(actual, on_host(np, _halves, specs, x), strict=True):
        assert a.dtype == e.dtype
        np.testing.assert_array_equal(a, e)


def test_one_result_of_the_host_is_no_tuple():
    x = np.array([3.0, 1.0], np.float32)

    y = jax.jit(lambda x: on_host(jnp, np.sort, Spec(x.shape, x.dtype), x))(x)

    np.testing.assert_array_equal(y, [1.0, 3.0])
