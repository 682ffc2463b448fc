"""The vectorized float32 kernels are as precise as they state, for every value."""

import numpy as np
import pytest
import scipy.special

import retrograde as tf
from retrograde.fusion.blocks import MIN_THREADED_SIZE_IF_COSTLY
from retrograde.ops import _normal_distribution as kernels
from retrograde.ops.elementary import normal_cdf

SPECIAL = np.float32([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40, -1e-40, 1e-20, 3e38, -3e38])


def error_in_ulps(actual, expected):
    assert actual.dtype == np.float32
    return np.abs(actual - expected) / np.spacing(np.abs(expected).astype(np.float32))


def test_error_of_erf():
    x = np.linspace(-5.0, 5.0, 1_000_003, dtype=np.float32)
    assert error_in_ulps(kernels.erf(x), scipy.special.erf(x.astype(float))).max() < 0.54


def test_error_of_erf_near_zero():
    x = np.geomspace(1e-37, 1e-2, 100_000, dtype=np.float32)
    assert error_in_ulps(kernels.erf(x), scipy.special.erf(x.astype(float))).max() < 0.54


# The error in the tail is the rounding error of x * x / 2, the argument of an exponential.
@pytest.mark.parametrize(
    ("low", "high", "ulps"), [(-12, -4, 70), (-4, -1, 10), (-1, 1, 5), (1, 9, 2)]
)
def test_error_of_the_normal_cdf(low, high, ulps):
    x = np.linspace(low, high, 500_003, dtype=np.float32)
    error = error_in_ulps(kernels.normal_cdf(x), scipy.special.ndtr(x.astype(float)))
    assert error.max() < ulps


def test_special_values():
    np.testing.assert_array_equal(kernels.erf(SPECIAL), scipy.special.erf(SPECIAL))
    np.testing.assert_array_equal(kernels.normal_cdf(SPECIAL), scipy.special.ndtr(SPECIAL))


@pytest.mark.parametrize("f", [tf.math.erf, normal_cdf, tf.nn.gelu], ids=["erf", "cdf", "gelu"])
@pytest.mark.parametrize(
    "size", [kernels.VECTORIZED - 1, kernels.VECTORIZED, MIN_THREADED_SIZE_IF_COSTLY + 1]
)
def test_functions_agree_with_float64_at_all_sizes(f, size):
    x = np.random.default_rng(size).normal(0.0, 3.0, size)
    single = f(tf.constant(x, tf.float32)).numpy()
    np.testing.assert_allclose(single, f(tf.constant(x)).numpy(), 1e-5, 1e-6)


@pytest.mark.parametrize(
    "size",
    [
        MIN_THREADED_SIZE_IF_COSTLY - 1,
        MIN_THREADED_SIZE_IF_COSTLY + 1,
        3 * MIN_THREADED_SIZE_IF_COSTLY + 100,
    ],
)
def test_results_do_not_depend_on_blocks(size):
    x = np.random.default_rng(0).normal(0.0, 3.0, size).astype(np.float32)
    np.testing.assert_array_equal(tf.math.erf(x).numpy(), kernels.erf(x))


@pytest.mark.parametrize("dtype", [tf.float16, tf.bfloat16])
def test_half_precision_is_rounded_once(dtype):
    x = tf.cast(np.linspace(-4.0, 4.0, kernels.VECTORIZED), dtype)
    expected = tf.cast(kernels.erf(tf.cast(x, tf.float32).numpy()), dtype)
    np.testing.assert_array_equal(tf.math.erf(x).numpy(), expected.numpy())
