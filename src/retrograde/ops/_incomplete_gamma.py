"""Derivatives of any order of the incomplete gamma function with respect to its first argument.

With prefactor = x ** a * exp(-x) / gamma(a + 1), which has derivatives in closed form,

    igamma(a, x)     = prefactor * (1 + x * integral of exp(-(a + 1) * u + x * (1 - exp(-u))))
    1 - igamma(a, x) = prefactor * a / x * integral of (1 + u / x) ** (a - 1) * exp(-u)

for u from 0 to infinity. Differentiating an integral with respect to `a` multiplies its integrand
by powers of -u, or of log(1 + u / x). These do not change sign, so there is no cancellation at any
order. A substitution makes the integrands decay doubly exponentially at both ends. Then the
trapezoidal rule is accurate to rounding error with a fixed number of points, regardless of the size
of the arguments.

Functions of `a` are represented by lists of Taylor coefficients: the value, the derivative, half
the second derivative, and so on.
"""

from __future__ import annotations

import math

import numpy as np

from retrograde.ops._arrays import special_function, widen

_STEP = 0.1
_POINTS = np.arange(-3.75, 4.25, _STEP)
_NODES = np.exp(_POINTS - np.exp(-_POINTS))
_WEIGHTS = _STEP * _NODES * (1 + np.exp(-_POINTS))
_LARGE = 25.0  # above this, Stirling's series is accurate to rounding error


def igamma_derivative_kernel(xp, a, x, *, order):
    """Computes the `order`-th derivative of igamma(a, x) with respect to `a`.

    The result is NaN unless a > 0 and x >= 0.
    """
    dtype = a.dtype
    a, x = (v.astype(np.float64) if xp is np else widen(v) for v in (a, x))
    valid = (a > 0) & (x >= 0)
    on_boundary = (x == 0) | (x == math.inf) | (a == math.inf)
    usable = valid & ~on_boundary
    a, x = xp.where(usable, a, 1), xp.where(usable, x, 1)
    prefactor = _prefactor(xp, a, x, order)
    y = _product(prefactor, _ratio_to_prefactor(xp, a, x, order))[order] * math.factorial(order)
    return xp.where(usable, y, xp.where(valid, 0.0, math.nan)).astype(dtype)


def gamma_sample_derivative_kernel(xp, a, x, *, order):
    """Computes the derivative of a gamma sample x with respect to `a` at a fixed quantile.

    It is minus the derivative of igamma with respect to `a`, divided by the density
    prefactor * a / x. The prefactor cancels, so nothing overflows for large `a`. The result
    is differentiated `order` more times with respect to `a`.
    """
    dtype = a.dtype
    a, x = (v.astype(np.float64) if xp is np else widen(v) for v in (a, x))
    usable = (a > 0) & (x > 0) & (a < math.inf) & (x < math.inf)
    is_zero = (a > 0) & (x == 0)
    a, x = xp.where(usable, a, 1), xp.where(usable, x, 1)
    ratio = _ratio_to_prefactor(xp, a, x, order + 1)
    derivative = _product(_log_prefactor_derivative_series(xp, a, xp.log(x), order), ratio[:-1])
    derivative = [derivative[k] + (k + 1) * ratio[k + 1] for k in range(order + 1)]
    inverse_density = [x / a * (-1 / a) ** k for k in range(order + 1)]
    y = -_product(inverse_density, derivative)[order] * math.factorial(order)
    return xp.where(usable, y, xp.where(is_zero, 0.0, math.nan)).astype(dtype)


def _ratio_to_prefactor(xp, a, x, order):
    """Returns igamma / prefactor if igamma is the smaller tail, else -(1 - igamma) / prefactor."""
    low = x <= xp.maximum(a, 1)
    if xp is not np:
        below = _lower_ratio(xp, a, xp.where(low, x, 1), order)
        above = _upper_ratio(xp, a, xp.where(low, a + 1, x), order)
        return [xp.where(low, p, -q) for p, q in zip(below, above, strict=True)]
    y = np.empty((order + 1, *low.shape))
    y[:, low] = _lower_ratio(np, a[low], x[low], order)
    y[:, ~low] = np.negative(_upper_ratio(np, a[~low], x[~low], order))
    return list(y)


def _product(p, q):
    return [sum(p[j] * q[k - j] for j in range(k + 1)) for k in range(len(p))]


def _prefactor(xp, a, x, order):
    log_x = xp.log(x)
    derivatives = _log_prefactor_derivative_series(xp, a, log_x, order - 1)
    y = [xp.exp(_log_prefactor(xp, a, x, log_x))]
    for k in range(1, order + 1):
        y.append(sum(derivatives[j] * y[k - 1 - j] for j in range(k)) / k)
    return y


def _log_prefactor_derivative_series(xp, a, log_x, order):
    """Returns the series of d log(prefactor) / da = log(x) - digamma(a + 1)."""
    derivatives = [log_x - special_function(xp, "digamma")(a + 1)]
    for k in range(1, order + 1):  # the polygamma function over k!, with alternating signs
        derivatives.append(
            (-1.0) ** k * special_function(xp, "zeta")(xp.full_like(a, k + 1), a + 1)
        )
    return derivatives


def _log_prefactor(xp, a, x, log_x):
    """Returns log(prefactor), by Stirling's series for large `a`, where the terms nearly cancel."""
    b = xp.maximum(a, _LARGE)
    relative_offset = (x - b) / b
    stirling_correction = (1 / 12 - (1 / 360 - (1 / 1260 - 1 / 1680 / b**2) / b**2) / b**2) / b
    large = (
        b * (xp.log1p(relative_offset) - relative_offset)
        - xp.log(2 * math.pi * b) / 2
        - stirling_correction
    )
    return xp.where(a > _LARGE, large, a * log_x - x - special_function(xp, "gammaln")(a + 1))


def _integrals(xp, integrand, width, order):
    """Returns the integrals of f * h**k / k! for k up to `order`; `integrand(u)` returns (f, h)."""

    def terms(node, weight):
        u = node * width
        term, factor = integrand(u)
        term = weight * term
        yield term
        for k in range(1, order + 1):
            term = term * factor / k
            yield term

    if xp is np:  # adds one point at a time, because the arrays may be large
        pairs = zip(_NODES.tolist(), _WEIGHTS.tolist(), strict=True)
        totals = [0.0] * (order + 1)
        for pair in pairs:
            totals = [total + term for total, term in zip(totals, terms(*pair), strict=True)]
        return [width * total for total in totals]
    shape = (-1,) + (1,) * width.ndim
    columns = terms(*(xp.asarray(v, width.dtype).reshape(shape) for v in (_NODES, _WEIGHTS)))
    return [width * xp.sum(column, axis=0) for column in columns]


def _lower_ratio(xp, a, x, order):
    """Returns the series of igamma(a, x) / prefactor."""

    def integrand(u):
        return xp.exp(-(a + 1) * u - x * xp.expm1(-u)), -u

    y = _integrals(xp, integrand, 1 / (a + 1 - x + xp.sqrt(x)), order)
    return [1 + x * y[0], *(x * part for part in y[1:])]


def _upper_ratio(xp, a, x, order):
    """Returns the series of (1 - igamma(a, x)) / prefactor."""

    def integrand(u):
        log_ratio = xp.log1p(u / x)
        return xp.exp((a - 1) * log_ratio - u), log_ratio

    y = _integrals(xp, integrand, 1 / (1 - (a - 1) / x + xp.sqrt(a) / x), order)
    y = [part / x for part in y]
    return [a * y[0], *(a * y[k] + y[k - 1] for k in range(1, order + 1))]
