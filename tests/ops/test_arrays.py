"""Array helpers that work with NumPy and JAX."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from retrograde.core.rules import Spec
from retrograde.ops._arrays import fast_mask, fast_where, on_host


def _halves(x):
    return x / 2, np.argsort(x)


def test_host_callbacks_under_xla():
    x = np.array([3.0, 1.0, 2.0], np.float32)
    specs = Spec(x.shape, x.dtype), Spec(x.shape, np.dtype(np.int64))

    with jax.enable_x64(True):
        actual = jax.jit(lambda x: on_host(jnp, _halves, specs, x))(x)

    for a, e in zip(actual, on_host(np, _halves, specs, x), strict=True):
        assert a.dtype == e.dtype
        np.testing.assert_array_equal(a, e)


def test_a_single_result_is_not_a_tuple():
    x = np.array([3.0, 1.0], np.float32)

    y = jax.jit(lambda x: on_host(jnp, np.sort, Spec(x.shape, x.dtype), x))(x)

    np.testing.assert_array_equal(y, [1.0, 3.0])


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.complex64, np.int32])
@pytest.mark.parametrize("shapes", [((5000,), (5000,), ()), ((50, 100), (100,), (50, 1))])
def test_fast_where_is_identical_to_where(shapes, dtype):
    """Compares all bits, also of Inf, NaN and -0."""
    rng = np.random.default_rng(0)
    special = np.array([np.inf, -np.inf, np.nan, -0.0, 0.0, 1.5, -2.5, 3.0])
    with np.errstate(invalid="ignore"):
        x1, x2 = (rng.choice(special, shape).astype(dtype) for shape in shapes[1:])
    condition = rng.random(shapes[0]) < 0.5

    selected = fast_where(np, condition, x1, x2)
    masked = fast_mask(np, condition, x1)

    assert selected.dtype == masked.dtype == dtype
    assert selected.tobytes() == np.where(condition, x1, x2).tobytes()
    assert masked.tobytes() == np.where(condition, x1, np.zeros((), dtype)).tobytes()
