"""Implicit reparameterization: gradients of samples with respect to distribution parameters.

A sample x satisfies F(x; parameters) = u for a fixed quantile u, where F is the CDF. So its
derivative with respect to a parameter is -(dF/dparameter) / (dF/dx). The rules read y, which itself
depends on the parameters, so higher-order derivatives are correct, too.
"""

from __future__ import annotations

import math

import numpy as np

from retrograde.ops._arrays import numpy_dtype_of, special_function, widen
from retrograde.ops._families import elementwise
from retrograde.ops._incomplete_gamma import gamma_sample_derivative_kernel
from retrograde.ops.arithmetic import (
    guarded_product,
    is_finite,
    log,
    mask,
    maximum,
    minimum,
    select,
)
from retrograde.ops.casting import ones_like, zeros_like
from retrograde.ops.elementary import exp
from retrograde.ops.special import polygamma
from retrograde.values import dtypes


def _derivative_wrt_sample(a, x, order):
    """Differentiates `gamma_sample_derivative` with respect to x, using d log(density)."""
    digammas = polygamma(ones_like(a) * order, a)
    result = digammas - gamma_sample_derivative(a, x, order=order) * ((a - 1) / x - 1)
    if not order:
        return result - log(x)
    return result - gamma_sample_derivative(a, x, order=order - 1) / x * order


gamma_sample_derivative = elementwise(
    "gamma_sample_derivative",
    gamma_sample_derivative_kernel,
    lambda g, _y, a, x, *, order: guarded_product(
        g, gamma_sample_derivative(a, x, order=order + 1)
    ),
    lambda g, _y, a, x, *, order: guarded_product(g, _derivative_wrt_sample(a, x, order)),
    accepts=dtypes.FLOATING,
    costly=True,
)


def _sample_kernel(xp, x, *parameters):
    """Returns the sample, broadcast to the shape of all inputs."""
    return xp.broadcast_to(x, np.broadcast_shapes(x.shape, *(p.shape for p in parameters)))


implicit_gamma = elementwise(  # x, sampled with the shape parameter a
    "implicit_gamma",
    _sample_kernel,
    None,
    lambda g, y, _x, a: guarded_product(g, gamma_sample_derivative(a, y, order=0)),
    accepts=dtypes.FLOATING,
)


def _normal_span_kernel(xp, a, b):
    """Subtracts probabilities of the smaller tail, to avoid cancellation."""
    low, high = widen(a), widen(b)
    right = low + high > 0
    near, far = xp.where(right, -low, high), xp.where(right, -high, low)
    below = special_function(xp, "log_ndtr")
    log_span = below(near) + xp.log(-xp.expm1(below(far) - below(near)))
    y = xp.exp(log_span + low * low / 2 + 0.5 * math.log(2 * math.pi))
    return xp.where(low == high, xp.zeros((), y.dtype), y).astype(a.dtype)


def _density_ratio(a, b):
    """Returns the normal density at b divided by the density at a."""
    return exp((a - b) * (a + b) / 2)


normal_span = elementwise(  # the normal probability of [a, b], divided by the density at a
    "normal_span",
    _normal_span_kernel,
    lambda g, y, a, _b: guarded_product(g, a * y - 1),
    lambda g, _y, a, b: guarded_product(g, _density_ratio(a, b)),
    accepts=dtypes.FLOATING,
    costly=True,
)


def _derivative_wrt_low(x, low, high):
    """Returns the derivative of a truncated standard normal sample with respect to `low`.

    It is p(low) / p(x), times the probability of [x, high] divided by the probability of [low,
    high]. If the interval is mostly negative, the densities are divided by p(high), the largest.
    """
    left = low + high < 0
    at_x, at_low = select(left, -high, x), select(left, -high, low)
    to_x, to_low = select(left, -x, high), select(left, -low, high)
    ratio = exp(mask((x - low) * (x + low) / 2, left))
    return ratio * normal_span(at_x, to_x) / normal_span(at_low, to_low)


# A bound that is further than this from both the sample and the mean has no influence. It is
# clipped to this distance, so that nothing overflows.
_FAR = {
    dtypes.float64.numpy_dtype: 30,
    dtypes.float32.numpy_dtype: 12,
    dtypes.bfloat16.numpy_dtype: 12,
    dtypes.float16.numpy_dtype: 4,
}


def _standardize(y, mean, stddev, low, high):
    """Returns the standardized sample and bounds, and the derivatives w.r.t. the bounds."""
    x, a, b = ((v - mean) / stddev for v in (y, low, high))
    far = _FAR[numpy_dtype_of(x)]
    a = maximum(a, minimum(x, zeros_like(x)) - far)
    b = minimum(b, maximum(x, zeros_like(x)) + far)
    return x, a, b, _derivative_wrt_low(x, a, b), _derivative_wrt_low(-x, -b, -a)


def _mean_partial(g, y, _x, mean, stddev, low, high):
    *_, lower, upper = _standardize(y, mean, stddev, low, high)
    return g * (1 - lower - upper)


def _stddev_partial(g, y, _x, mean, stddev, low, high):
    x, a, b, lower, upper = _standardize(y, mean, stddev, low, high)
    return g * (x - lower * a - upper * b)


def _low_partial(g, y, _x, mean, stddev, low, high):
    return mask(g * _standardize(y, mean, stddev, low, high)[3], is_finite(low))


def _high_partial(g, y, _x, mean, stddev, low, high):
    return mask(g * _standardize(y, mean, stddev, low, high)[4], is_finite(high))


implicit_truncated_normal = elementwise(  # x, sampled with mean, stddev, low and high
    "implicit_truncated_normal",
    _sample_kernel,
    None,
    _mean_partial,
    _stddev_partial,
    _low_partial,
    _high_partial,
    accepts=dtypes.FLOATING,
)
