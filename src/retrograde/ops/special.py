"""Special functions: error, gamma, Bessel, Fresnel, Dawson and Spence functions."""

from __future__ import annotations

import math

import numpy as np

from retrograde.core.rules import Spec, identity_rule
from retrograde.ops._arrays import on_host, scalar, special_function, widen
from retrograde.ops._families import elementwise
from retrograde.ops._incomplete_gamma import igamma_derivative_kernel
from retrograde.ops.arithmetic import equal, guarded_product, log, select, sign
from retrograde.ops.casting import ones_like, zeros_like
from retrograde.ops.elementary import cos, exp, function, log1p, sin
from retrograde.values import dtypes

_SINGLE_AND_DOUBLE = frozenset({np.dtype(np.float32), np.dtype(np.float64)})


def _special_kernel(name):
    """Creates the kernel that calls `name` of `scipy.special` or `jax.scipy.special`."""
    return lambda xp, *xs: special_function(xp, name)(*map(widen, xs)).astype(xs[0].dtype)


def _replace_negative(xp, x, y, value):
    """Returns `y`, with `value` where x is negative, as in TensorFlow."""
    return xp.where(x < 0, scalar(value, y), y)


# Error functions

_HALF_SQRT_PI = math.sqrt(math.pi) / 2
_SQRT_TWO_PI = math.sqrt(2 * math.pi)

erfinv = function(
    "erfinv",
    _special_kernel("erfinv"),
    lambda g, y, _x: guarded_product(g, exp(y * y)) * scalar(_HALF_SQRT_PI, y),
    accepts=dtypes.FLOATING,
)
ndtri = function(
    "ndtri",
    _special_kernel("ndtri"),
    lambda g, y, _x: guarded_product(g, exp(y * y * scalar(0.5, y))) * scalar(_SQRT_TWO_PI, y),
    accepts=dtypes.FLOATING,
)
dawsn = function(
    "dawsn",
    _special_kernel("dawsn"),
    lambda g, y, x: guarded_product(g, scalar(1, y) - x * y * scalar(2, y)),
    accepts=dtypes.FLOATING,
)


# The gamma function and its relatives


def _lgamma_kernel(xp, x):
    y = special_function(xp, "gammaln")(widen(x)).astype(x.dtype)
    return xp.where(x == -math.inf, scalar(math.inf, x), y)


lgamma = function(
    "lgamma",
    _lgamma_kernel,
    lambda g, _y, x: guarded_product(g, digamma(x)),
    accepts=dtypes.FLOATING,
)


def _digamma_kernel(xp, x):
    y = special_function(xp, "digamma")(widen(x)).astype(x.dtype)
    return xp.where(x == 0, scalar(math.nan, x), y)


digamma = function(
    "digamma",
    _digamma_kernel,
    lambda g, _y, x: guarded_product(g, polygamma(ones_like(x), x)),
    accepts=dtypes.FLOATING,
)

zeta = elementwise(
    "zeta",
    _special_kernel("zeta"),
    None,
    lambda g, _y, x, q: -guarded_product(g, x * zeta(x + 1, q)),
    accepts=dtypes.FLOATING,
    costly=True,
)


def _polygamma_kernel(xp, a, x):
    """Computes the derivative of digamma of order a, which must be an integer."""
    n, q = widen(a), widen(x)
    sign = xp.where(n % 2 == 0, -1, 1).astype(n.dtype)
    y = sign * special_function(xp, "gamma")(n + 1) * special_function(xp, "zeta")(n + 1, q)
    y = xp.where(n == 0, _digamma_kernel(xp, q), y)
    valid = (n >= 0) & (n == xp.floor(n))
    return xp.where(valid, y, scalar(math.nan, y)).astype(a.dtype)


polygamma = elementwise(
    "polygamma",
    _polygamma_kernel,
    None,
    lambda g, _y, a, x: guarded_product(g, polygamma(a + 1, x)),
    accepts=dtypes.FLOATING,
    costly=True,
)


def _igamma_kernel(xp, a, x):
    y = special_function(xp, "gammainc")(widen(a), widen(x)).astype(x.dtype)
    y = xp.where(a > 0, y, scalar(math.nan, y))
    return xp.where(x == 0, scalar(0, y), y)


def _igammac_kernel(xp, a, x):
    y = special_function(xp, "gammaincc")(widen(a), widen(x)).astype(x.dtype)
    return xp.where(a > 0, y, scalar(math.nan, y))


def _gamma_density(a, x):
    """Computes d igamma(a, x) / dx = x ** (a - 1) * exp(-x) / gamma(a)."""
    return exp(guarded_product(a - 1, log(x)) - x - lgamma(a))


def _gamma_density_derivative(a, x, order):
    """Differentiates the density p `order` times w.r.t. a: p' = p * (log(x) - digamma(a))."""
    if not order:
        return _gamma_density(a, x)
    factors = [log(x) - digamma(a)]
    for n in range(1, order):
        factors.append(-polygamma(ones_like(a) * n, a))
    return sum(
        _gamma_density_derivative(a, x, k) * factors[order - 1 - k] * math.comb(order - 1, k)
        for k in range(order)
    )


igamma_derivative = elementwise(  # the derivative of igamma of this `order` w.r.t. a
    "igamma_derivative",
    igamma_derivative_kernel,
    lambda g, _y, a, x, *, order: guarded_product(g, igamma_derivative(a, x, order=order + 1)),
    lambda g, _y, a, x, *, order: guarded_product(g, _gamma_density_derivative(a, x, order)),
    accepts=dtypes.FLOATING,
    costly=True,
)
igamma = elementwise(
    "igamma",
    _igamma_kernel,
    lambda g, _y, a, x: guarded_product(g, igamma_derivative(a, x, order=1)),
    lambda g, _y, a, x: guarded_product(g, _gamma_density(a, x)),
    accepts=dtypes.FLOATING,
    costly=True,
)
igammac = elementwise(
    "igammac",
    _igammac_kernel,
    lambda g, _y, a, x: -guarded_product(g, igamma_derivative(a, x, order=1)),
    lambda g, _y, a, x: -guarded_product(g, _gamma_density(a, x)),
    accepts=dtypes.FLOATING,
    costly=True,
)


def _betainc_kernel(xp, a, b, x):
    y = special_function(xp, "betainc")(a, b, x)
    return xp.where((a > 0) & (b > 0), y, scalar(math.nan, y))


def _beta_density(a, b, x):
    """Computes the derivative of betainc with respect to x."""
    powers = guarded_product(a - 1, log(x)) + guarded_product(b - 1, log1p(-x))
    return exp(powers + lgamma(a + b) - lgamma(a) - lgamma(b))


betainc = elementwise(
    "betainc",
    _betainc_kernel,
    None,
    None,
    lambda g, _y, a, b, x: guarded_product(g, _beta_density(a, b, x)),
    accepts=_SINGLE_AND_DOUBLE,
    costly=True,
)

nextafter = elementwise(
    "nextafter",
    "nextafter",
    identity_rule,
    lambda g, _y, _x1, _x2: zeros_like(g),
    accepts=dtypes.FLOATING,
)


# Integrals


def _expint_kernel(xp, x):
    y = special_function(xp, "expi")(widen(x)).astype(x.dtype)
    y = xp.where(x == 0, scalar(-math.inf, y), y)
    y = xp.where(x == math.inf, scalar(math.inf, y), y)
    return _replace_negative(xp, x, y, math.nan)


expint = function(
    "expint",
    _expint_kernel,
    lambda g, _y, x: guarded_product(g, exp(x) / x),
    accepts=dtypes.FLOATING,
)
spence = function(
    "spence",
    _special_kernel("spence"),
    lambda g, _y, x: guarded_product(g, _spence_derivative(x)),
    accepts=dtypes.FLOATING,
)


def _spence_derivative(x):
    """Computes log(x) / (1 - x), and near x = 1 its linear expansion (x - 3) / 2."""
    at_one = equal(x, ones_like(x))
    usable = select(at_one, x + 1, x)
    return select(at_one, x * scalar(0.5, x) - scalar(1.5, x), log(usable) / (1 - usable))


def _fresnel_kernel(i):
    def kernel(xp, x):
        return special_function(xp, "fresnel")(widen(x))[i].astype(x.dtype)

    return kernel


def _fresnel_phase(x):
    return x * x * scalar(math.pi / 2, x)


fresnel_sin = function(
    "fresnel_sin",
    _fresnel_kernel(0),
    lambda g, _y, x: guarded_product(g, sin(_fresnel_phase(x))),
    accepts=dtypes.FLOATING,
)
fresnel_cos = function(
    "fresnel_cos",
    _fresnel_kernel(1),
    lambda g, _y, x: guarded_product(g, cos(_fresnel_phase(x))),
    accepts=dtypes.FLOATING,
)


_FAR = 1e6

# Bessel functions of integer order. Derivatives combine the orders below and above. There is no
# division by x, so derivatives of any order are correct at 0.


def _bessel(name, fast, general, below, above, own=None, negative=None, in_jax=False):
    """Creates a primitive `(x, *, order)`.

    `fast` are SciPy's functions of orders 0 and 1, and `general` is the one of any order. JAX has
    the `fast` ones if `in_jax`. The derivative is half the sum of the order below times `below` and
    the order above times `above`, plus `own(y, x)` for scaled functions. `negative` is the result
    for negative x, where the function is not real.
    """

    def upward_recurrence(x, order):
        """Computes higher orders from orders 0 and 1; exact if x is much larger than the order."""
        before, y = (special_function(np, f)(x) for f in fast)
        same_sign = below == above
        for n in range(1, order):
            step = x.dtype.type(-below if same_sign else below) * (2 * n / x) * y
            before, y = y, (before if same_sign else -before) + step
        return y

    def on_arrays(x, order):
        if order < 2:
            y = special_function(np, fast[order])(x)
        else:
            y = special_function(np, general)(x.dtype.type(order), x)
            far = np.abs(x) > _FAR  # SciPy's general function becomes NaN there
            if far.any():
                higher = upward_recurrence(x, order)
                y = np.where(far & np.isfinite(higher), higher, y)
        return y if negative is None else _replace_negative(np, x, y, negative)

    def kernel(xp, x, *, order):
        if in_jax and order < 2:
            return special_function(xp, fast[order])(widen(x)).astype(x.dtype)
        spec = Spec(x.shape, x.dtype)
        return on_host(xp, lambda x: on_arrays(widen(x), order).astype(spec.dtype), spec, x)

    def derivative(x, order):
        next_order = primitive(x, order=order + 1)
        if not order:  # orders -1 and 1 differ at most in sign
            return next_order if above > 0 else -next_order
        down = primitive(x, order=order - 1)
        both = down + next_order if below == above else down - next_order
        return both * scalar(0.5 * below, x)

    if own is None:
        rule = lambda g, _y, x, *, order: guarded_product(g, derivative(x, order))  # noqa: E731
    else:
        rule = lambda g, y, x, *, order: guarded_product(g, derivative(x, order) + own(y, x))  # noqa: E731
    primitive = elementwise(name, kernel, rule, accepts=dtypes.FLOATING, costly=True)
    return primitive


bessel_i = _bessel("bessel_i", ("i0", "i1"), "iv", 1, 1, in_jax=True)
bessel_ie = _bessel(
    "bessel_ie", ("i0e", "i1e"), "ive", 1, 1, own=lambda y, x: -sign(x) * y, in_jax=True
)
bessel_j = _bessel("bessel_j", ("j0", "j1"), "jv", 1, -1)
bessel_k = _bessel("bessel_k", ("k0", "k1"), "kv", -1, -1, negative=math.inf)
bessel_ke = _bessel(
    "bessel_ke", ("k0e", "k1e"), "kve", -1, -1, own=lambda y, _: y, negative=math.inf
)
bessel_y = _bessel("bessel_y", ("y0", "y1"), "yv", 1, -1, negative=-math.inf)
