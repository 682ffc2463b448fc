"""Samples whose parameters have gradients: each keeps its quantile while they change.

A sample x is fixed by F(x; parameters) = u, with F its distribution function. So the derivative
by a parameter is -(dF/dparameter) / (dF/dx). The rules read y, which depends on the parameters
itself: thus derivatives of higher order are right too.
"""

from __future__ import annotations

import math

import numpy as np

from retrograde.ops._arrays import special, widened
from retrograde.ops._families import elementwise
from retrograde.ops._incomplete_gamma import gamma_sample_slope_kernel
from retrograde.ops.arithmetic import guarded, is_finite, log, mask, maximum, minimum, select
from retrograde.ops.casting import ones_like, zeros_like
from retrograde.ops.elementary import exp
from retrograde.ops.special import polygamma
from retrograde.values import dtypes


def _slope_by_sample(a, x, order):
    """The slope differentiated by x, from how log(density) changes with `a` and with x."""
    digammas = polygamma(ones_like(a) * order, a)
    result = digammas - gamma_sample_slope(a, x, order=order) * ((a - 1) / x - 1)
    if not order:
        return result - log(x)
    return result - gamma_sample_slope(a, x, order=order - 1) / x * order


gamma_sample_slope = elementwise(
    "gamma_sample_slope",
    gamma_sample_slope_kernel,
    lambda g, _y, a, x, *, order: guarded(g, gamma_sample_slope(a, x, order=order + 1)),
    lambda g, _y, a, x, *, order: guarded(g, _slope_by_sample(a, x, order)),
    accepts=dtypes.FLOATING,
    costly=True,
)


def _drawn(xp, x, *parameters):
    """The sample itself, in the shape of all inputs."""
    return xp.broadcast_to(x, np.broadcast_shapes(x.shape, *(p.shape for p in parameters)))


implicit_gamma = elementwise(  # x, drawn with the shape parameter a
    "implicit_gamma",
    _drawn,
    None,
    lambda g, y, _x, a: guarded(g, gamma_sample_slope(a, y, order=0)),
    accepts=dtypes.FLOATING,
)


def _normal_span_kernel(xp, a, b):
    """Differences are taken on the side where the probabilities are small."""
    low, high = widened(a), widened(b)
    right = low + high > 0
    near, far = xp.where(right, -low, high), xp.where(right, -high, low)
    below = special(xp, "log_ndtr")
    log_span = below(near) + xp.log(-xp.expm1(below(far) - below(near)))
    y = xp.exp(log_span + low * low / 2 + 0.5 * math.log(2 * math.pi))
    return xp.where(low == high, xp.zeros((), y.dtype), y).astype(a.dtype)


def _fall(a, b):
    """The normal density at b over that at a."""
    return exp((a - b) * (a + b) / 2)


normal_span = elementwise(  # the normal probability between a and b, over the density at a
    "normal_span",
    _normal_span_kernel,
    lambda g, y, a, _b: guarded(g, a * y - 1),
    lambda g, _y, a, b: guarded(g, _fall(a, b)),
    accepts=dtypes.FLOATING,
    costly=True,
)


def _pull(x, low, high):
    """How far a standard normal sample between two ends moves with the lower one.

    That is p(low) / p(x), times the probability above x, over all there is. If the ends lie to the
    left, the densities are compared with that at the upper one, which is the largest.
    """
    left = low + high < 0
    at_x, at_low = select(left, -high, x), select(left, -high, low)
    to_x, to_low = select(left, -x, high), select(left, -low, high)
    fall = exp(mask((x - low) * (x + low) / 2, left))
    return fall * normal_span(at_x, to_x) / normal_span(at_low, to_low)


# An end that is further than this from the sample and from the mean counts nothing, and what is
# computed with it neither overflows nor is infinite.
_FAR = {
    dtypes.float64.numpy_dtype: 30,
    dtypes.float32.numpy_dtype: 12,
    dtypes.bfloat16.numpy_dtype: 12,
    dtypes.float16.numpy_dtype: 4,
}


def _standardised(y, mean, stddev, low, high):
    """The sample, the ends, and how far it moves with each."""
    x, a, b = ((v - mean) / stddev for v in (y, low, high))
    far = _FAR[getattr(x.dtype, "numpy_dtype", x.dtype)]
    a = maximum(a, minimum(x, zeros_like(x)) - far)
    b = minimum(b, maximum(x, zeros_like(x)) + far)
    return x, a, b, _pull(x, a, b), _pull(-x, -b, -a)


def _mean_partial(g, y, _x, mean, stddev, low, high):
    *_, lower, upper = _standardised(y, mean, stddev, low, high)
    return g * (1 - lower - upper)


def _stddev_partial(g, y, _x, mean, stddev, low, high):
    x, a, b, lower, upper = _standardised(y, mean, stddev, low, high)
    return g * (x - lower * a - upper * b)


def _low_partial(g, y, _x, mean, stddev, low, high):
    return mask(g * _standardised(y, mean, stddev, low, high)[3], is_finite(low))


def _high_partial(g, y, _x, mean, stddev, low, high):
    return mask(g * _standardised(y, mean, stddev, low, high)[4], is_finite(high))


implicit_truncated_normal = elementwise(  # x, drawn with mean, stddev, lower and upper end
    "implicit_truncated_normal",
    _drawn,
    None,
    _mean_partial,
    _stddev_partial,
    _low_partial,
    _high_partial,
    accepts=dtypes.FLOATING,
)
