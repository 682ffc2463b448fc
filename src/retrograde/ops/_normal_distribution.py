"""Rational approximations of `erf` and of the normal CDF for float32 arrays in NumPy.

SciPy computes them one element at a time, in 18 ns per element. These kernels consist of vectorized
calls, which take 5 ns. For short arrays, the overhead of the calls is larger than the gain, so
primitives use SciPy for arrays of less than `VECTORIZED` elements. Blocks of large arrays are never
shorter, so the result of an element does not depend on the block.
"""

from __future__ import annotations

import numpy as np

VECTORIZED = 8192

# Minimax approximations by weighted linear least squares, highest power first.
# exp(t * t / 2) * CDF(-t) for t in [0, 14.5]; then exp(-t * t / 2) underflows. Error 6e-9.
_TAIL_NUMERATOR = (0.0041163056, 0.040633257, 0.1832353, 0.4382953, 0.5)
_TAIL_DENOMINATOR = (0.010317928, 0.10185891, 0.46947104, 1.202504, 1.6744756, 1.0)
_MAX_TAIL = 20.0

# erf(x) / x as a function of x * x, for x in [0, 3.92]; then erf rounds to 1. Error 2e-9.
_ERF_NUMERATOR = (
    -1.2799859155e-08, 4.6092449624e-06, 0.00037675938328, 0.0038386252192,
    0.0542439987582, 0.185135328229, 1.12837916915,
)  # fmt: skip
_ERF_DENOMINATOR = (
    6.23992781794e-05, 0.00130152595823, 0.0154300550257, 0.113873785392, 0.497405319016, 1.0,
)  # fmt: skip
_MAX_ERF = 3.92


def _polynomial(x: np.ndarray, coefficients: tuple[float, ...]) -> np.ndarray:
    first, *middle, last = coefficients
    y = x * first
    for coefficient in middle:
        y += coefficient
        y *= x
    y += last
    return y


def erf(x: np.ndarray) -> np.ndarray:
    """Computes `erf` of a float32 array in float64. The error is 0.53 units in the last place."""
    wide = x.astype(np.float64)
    np.clip(wide, -_MAX_ERF, _MAX_ERF, wide)
    squared = wide * wide
    wide *= _polynomial(squared, _ERF_NUMERATOR)
    wide /= _polynomial(squared, _ERF_DENOMINATOR)
    return wide.astype(np.float32)


def normal_cdf(x: np.ndarray) -> np.ndarray:
    """Computes the standard normal CDF of a float32 array."""
    t = np.abs(x)
    np.minimum(t, _MAX_TAIL, out=t)
    tail = _polynomial(t, _TAIL_NUMERATOR)
    tail /= _polynomial(t, _TAIL_DENOMINATOR)
    t *= t
    t *= -0.5
    tail *= np.exp(t, t)
    # The CDF is 1 - tail for positive x, and tail for negative x.
    y = np.copysign(np.float32(0.5), x, t)
    y += 0.5
    y -= tail
    return np.abs(y, y)
