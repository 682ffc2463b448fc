"""Elementary functions, rounding, and activations with custom rules."""

from __future__ import annotations

import numpy as np

from retrograde.fusion.output_arguments import OutArgument, is_float, is_single_or_double
from retrograde.ops import _normal_distribution
from retrograde.ops._arrays import (
    HALF,
    fast_mask,
    fast_where,
    in_place,
    numpy_dtype_of,
    one,
    scalar,
    special_function,
    widen,
    zero,
)
from retrograde.ops._families import elementwise
from retrograde.ops.arithmetic import (
    absolute,
    guarded_divide,
    guarded_product,
    log,
    no_nan,
    select,
    square,
)
from retrograde.ops.casting import zeros_like
from retrograde.ops.complex_numbers import imag, make_complex_kernel
from retrograde.values import dtypes

__all__ = ["log"]


def function(name, kernel, partial, accepts=dtypes.INEXACT, writes=None):
    """Creates a costly elementwise function of one input, whose rule consists of a few calls."""
    return elementwise(
        name, kernel, partial, accepts=accepts, costly=True, cheap_rule=True, writes=writes
    )


exp = function("exp", "exp", lambda g, y, _x: guarded_product(g, y))
# exp(x), not y + 1, which cancels where y is close to -1.
expm1 = function("expm1", "expm1", lambda g, _y, x: guarded_product(g, exp(x), owned=True))


def _log1p_kernel(xp, x, out=None):
    if x.dtype.kind != "c":
        return xp.log1p(x) if out is None else np.log1p(x, out)
    a, b = x.real, x.imag
    near = xp.log1p(a * (a + scalar(2, a)) + b * b) * scalar(0.5, a)  # NumPy computes log(1 + a)
    size = xp.where(xp.abs(x) < 0.5, near, xp.log(x + one(x.dtype)).real)
    return make_complex_kernel(xp, size, xp.arctan2(b, a + one(a.dtype)))


log1p = function(
    "log1p",
    _log1p_kernel,
    lambda g, _y, x: guarded_divide(g, x + 1),
    writes=OutArgument(may_alias=(0,), supports=is_float),
)
sqrt = function("sqrt", "sqrt", lambda g, y, _x: guarded_divide(g, y + y))


def _rsqrt_kernel(xp, x, out=None):
    y = xp.sqrt(x) if out is None else np.sqrt(x, out)
    return in_place(xp.divide, one(x.dtype), y, out)


rsqrt = function(
    "rsqrt",
    _rsqrt_kernel,
    lambda g, y, _x: guarded_product(
        guarded_product(guarded_product(g, y) * scalar(-0.5, y), y), y
    ),
    writes=OutArgument(may_alias=(0,), supports=is_float),
)

sin = function("sin", "sin", lambda g, _y, x: guarded_product(g, cos(x), owned=True))
cos = function("cos", "cos", lambda g, _y, x: -guarded_product(g, sin(x), owned=True))


def _tan_rule(g, y, x):
    if numpy_dtype_of(x).kind != "c":
        return guarded_product(g, y * y + 1, owned=True)
    # Far from the real line y * y is close to -1, so y * y + 1 would cancel.
    e = exp(select(imag(x) < 0, -x, x) * scalar(2j, x))
    return guarded_product(g, e * 4 / square(e + 1))


tan = function("tan", "tan", _tan_rule)
asin = function("asin", "arcsin", lambda g, _y, x: guarded_divide(g, sqrt(1 - x * x)))
acos = function("acos", "arccos", lambda g, _y, x: -guarded_divide(g, sqrt(1 - x * x)))
atan = function("atan", "arctan", lambda g, _y, x: guarded_divide(g, x * x + 1))
sinh = function("sinh", "sinh", lambda g, _y, x: guarded_product(g, cosh(x), owned=True))
cosh = function("cosh", "cosh", lambda g, _y, x: guarded_product(g, sinh(x), owned=True))
tanh = function("tanh", "tanh", lambda g, y, _x: tanh_grad(g, y))
asinh = function("asinh", "arcsinh", lambda g, y, _x: guarded_divide(g, cosh(y)))
acosh = function("acosh", "arccosh", lambda g, y, _x: guarded_divide(g, sinh(y)))
atanh = function("atanh", "arctanh", lambda g, _y, x: guarded_divide(g, 1 - x * x))
atan2 = elementwise(
    "atan2",
    "arctan2",
    lambda g, _y, x1, x2: guarded_product(g, x2 / (x1 * x1 + x2 * x2)),
    lambda g, _y, x1, x2: -guarded_product(g, x1 / (x1 * x1 + x2 * x2)),
    accepts=dtypes.FLOATING,
    costly=True,
)

_TWO_OVER_SQRT_PI = 1.1283791670955126


def _is_vectorized(xp, x):
    """Returns whether `_normal_distribution` has a kernel for x that is faster than SciPy's."""
    return xp is np and x.dtype == np.float32 and x.size >= _normal_distribution.VECTORIZED


def _erf_kernel(xp, x):
    wide = widen(x)
    if _is_vectorized(xp, wide):
        return _normal_distribution.erf(wide).astype(x.dtype, copy=False)
    return special_function(xp, "erf")(wide).astype(x.dtype)


erf = function(
    "erf",
    _erf_kernel,
    lambda g, _y, x: guarded_product(g, exp(-x * x)) * scalar(_TWO_OVER_SQRT_PI, x),
    accepts=dtypes.FLOATING,
)
erfc = function(
    "erfc",
    lambda xp, x: special_function(xp, "erfc")(widen(x)).astype(x.dtype),
    lambda g, _y, x: guarded_product(g, exp(-x * x)) * scalar(-_TWO_OVER_SQRT_PI, x),
    accepts=dtypes.FLOATING,
)


def _times_sigmoid(xp, factor, x, out):
    """Returns `factor` times the sigmoid of x."""
    if x.dtype in HALF:  # exp overflows early
        return _times_sigmoid(xp, widen(factor), widen(x), None).astype(x.dtype)
    y = xp.exp(-x) if out is None else np.exp(np.negative(x, out), out)
    y = in_place(xp.add, one(x.dtype), y, out)
    return in_place(xp.divide, factor, y, out)


def _sigmoid_kernel(xp, x, out=None):
    if x.dtype.kind != "c":
        return _times_sigmoid(xp, one(x.dtype), x, out)
    left = x.real < 0  # complex exp overflows to NaN, not to Inf
    power = xp.exp(xp.where(left, x, -x))
    return xp.where(left, power, one(x.dtype)) / (one(x.dtype) + power)


sigmoid = function(
    "sigmoid",
    _sigmoid_kernel,
    lambda g, y, _x: sigmoid_grad(g, y),
    writes=OutArgument(may_alias=(0,), supports=is_single_or_double),
)


# The gradients of tanh and sigmoid are primitives, since they are so common: one call and one array
# instead of three, at each order of differentiation.


def _times(xp, g, derivative, out):
    if xp is np and not g.ndim and g == 1:  # as in the gradient of a sum
        return derivative
    return no_nan(xp, g, in_place(xp.multiply, g, derivative, out))


def _tanh_grad_kernel(xp, g, y, out=None):
    square = y * y if out is None else np.multiply(y, y, out)
    return _times(xp, g, in_place(xp.subtract, one(y.dtype), square, out), out)


def _sigmoid_grad_kernel(xp, g, y, out=None):
    complement = one(y.dtype) - y if out is None else np.subtract(one(y.dtype), y, out)
    return _times(xp, g, in_place(xp.multiply, y, complement, out), out)


tanh_grad = elementwise(  # g * (1 - y * y)
    "tanh_grad",
    _tanh_grad_kernel,
    lambda h, _out, _g, y: tanh_grad(h, y),
    lambda h, _out, g, y: scaled_product(g, h, y, scale=-2),
    accepts=dtypes.INEXACT,
    writes=OutArgument(may_alias=(1,), supports=is_float),
)


def _scaled_product_kernel(xp, a, b, c, *, scale, out=None):
    result = a * b if out is None else np.multiply(a, b, out)
    result = in_place(xp.multiply, c, result, out)
    return no_nan(xp, a, in_place(xp.multiply, scalar(scale, result), result, out))


scaled_product = elementwise(  # scale * a * b * c, but 0 where a is 0
    "scaled_product",
    _scaled_product_kernel,
    lambda g, _y, _a, b, c, *, scale: scaled_product(g, b, c, scale=scale),
    lambda g, _y, a, _b, c, *, scale: scaled_product(a, g, c, scale=scale),
    lambda g, _y, a, b, _c, *, scale: scaled_product(a, b, g, scale=scale),
    accepts=dtypes.INEXACT,
    writes=OutArgument(may_alias=(1,), supports=is_float),
)
sigmoid_grad = elementwise(  # g * y * (1 - y)
    "sigmoid_grad",
    _sigmoid_grad_kernel,
    lambda h, _out, _g, y: sigmoid_grad(h, y),
    lambda h, _out, g, y: guarded_product(guarded_product(g, h), 1 - y * 2),
    accepts=dtypes.INEXACT,
    writes=OutArgument(supports=is_float),
)


def _softplus_kernel(xp, x, out=None):
    if out is None:
        return xp.logaddexp(x, zero(x.dtype))
    return np.logaddexp(x, zero(x.dtype), out)


softplus = function(
    "softplus",
    _softplus_kernel,
    lambda g, _y, x: guarded_product(g, sigmoid(x), owned=True),
    accepts=dtypes.FLOATING,
    writes=OutArgument(may_alias=(0,), supports=is_float),
)
softsign = elementwise(
    "softsign",
    lambda xp, x: x / (xp.abs(x) + 1),
    lambda g, _y, x: guarded_divide(g, square(absolute(x) + 1)),
    accepts=dtypes.FLOATING,
)


def _relu_grad_kernel(xp, g, s, *, upper, slope, out=None):
    inside = s > zero(s.dtype)
    if upper is not None:
        inside &= s < upper
    if not slope:
        return fast_mask(xp, inside, g, out)
    return fast_where(xp, inside, g, g * scalar(slope, g), out)


# The gradient of piecewise linear activations: g where 0 < s < upper, elsewhere g * slope. It is a
# step function of s, so its derivative with respect to s is zero, not None.
relu_grad = elementwise(
    "relu_grad",
    _relu_grad_kernel,
    lambda h, _y, _g, s, **attrs: relu_grad(h, s, **attrs),
    lambda h, _y, _g, _s, **_: zeros_like(h),
    accepts=dtypes.REAL,
    holomorphic=False,
    writes=OutArgument(may_alias=(0, 1), supports=is_single_or_double),
)


def _relu_kernel(xp, x, out=None):
    if out is None:
        return xp.maximum(x, zero(x.dtype))
    return np.maximum(x, zero(x.dtype), out=out)


relu = elementwise(
    "relu",
    _relu_kernel,
    lambda g, y, _x: relu_grad(g, y, upper=None, slope=0.0),
    accepts=dtypes.REAL,
    holomorphic=False,
    writes=OutArgument(may_alias=(0,)),
)
relu6 = elementwise(
    "relu6",
    lambda xp, x: xp.clip(x, 0, 6).astype(x.dtype),
    lambda g, y, _x: relu_grad(g, y, upper=6.0, slope=0.0),
    accepts=dtypes.REAL,
    holomorphic=False,
)
leaky_relu = elementwise(
    "leaky_relu",
    lambda xp, x, *, alpha: fast_where(xp, x > 0, x, x * scalar(alpha, x)),
    lambda g, _y, x, *, alpha: relu_grad(g, x, upper=None, slope=alpha),
    accepts=dtypes.FLOATING,
    holomorphic=False,
)
elu = elementwise(
    "elu",
    lambda xp, x: fast_where(xp, x < 0, xp.expm1(xp.minimum(x, xp.zeros((), x.dtype))), x),
    lambda g, y, _x: select(y < 0, guarded_product(g, y + 1), g),
    accepts=dtypes.FLOATING,
    costly=True,
    holomorphic=False,
)

_SELU_SCALE = 1.0507009873554805
_SELU_SCALE_ALPHA = 1.7580993408473766


def _selu_kernel(xp, x):
    below = xp.expm1(xp.minimum(x, xp.zeros((), x.dtype))) * scalar(_SELU_SCALE_ALPHA, x)
    return fast_where(xp, x < 0, below, x * scalar(_SELU_SCALE, x))


selu = elementwise(
    "selu",
    _selu_kernel,
    lambda g, y, _x: select(
        y < 0, guarded_product(g, y + scalar(_SELU_SCALE_ALPHA, y)), g * scalar(_SELU_SCALE, y)
    ),
    accepts=dtypes.FLOATING,
    costly=True,
    holomorphic=False,
)

_SQRT_HALF, _SQRT_TWO_OVER_PI = 0.7071067811865476, 0.7978845608028654
_CUBIC = 0.044715


def _normal_cdf_kernel(xp, x):
    wide = widen(x)
    if _is_vectorized(xp, wide):
        return _normal_distribution.normal_cdf(wide).astype(x.dtype, copy=False)
    y = special_function(xp, "erfc")(wide * scalar(-_SQRT_HALF, wide)) * scalar(0.5, wide)
    return y.astype(x.dtype)


def _normal_density(x):
    return exp(x * x * scalar(-0.5, x)) * scalar(0.5 * _SQRT_TWO_OVER_PI, x)


normal_cdf = function(
    "normal_cdf",
    _normal_cdf_kernel,
    lambda g, _y, x: guarded_product(g, _normal_density(x), owned=True),
    accepts=dtypes.FLOATING,
)


def _approximate_normal_cdf(xp, x):
    inner = (x + x * x * x * scalar(_CUBIC, x)) * scalar(_SQRT_TWO_OVER_PI, x)
    return (xp.tanh(inner) + 1) * scalar(0.5, x)


def _gelu_kernel(xp, x, *, approximate):
    wide = widen(x)
    cdf = _approximate_normal_cdf if approximate else _normal_cdf_kernel
    return (wide * cdf(xp, wide)).astype(x.dtype, copy=False)


def _gelu_partial(g, _y, x, *, approximate):
    """Computes g * (p + x dp/dx), where p is the normal CDF at x."""
    if approximate:
        squared = x * x
        t = tanh((x + x * squared * scalar(_CUBIC, x)) * scalar(_SQRT_TWO_OVER_PI, x))
        inner = (squared * scalar(3 * _CUBIC, x) + 1) * scalar(_SQRT_TWO_OVER_PI, x)
        derivative = ((1 - t * t) * inner * x + t + 1) * scalar(0.5, x)
    else:
        derivative = normal_cdf(x) + x * _normal_density(x)
    return guarded_product(g, derivative)


gelu = elementwise(
    "gelu", _gelu_kernel, _gelu_partial, accepts=dtypes.FLOATING, costly=True, holomorphic=False
)


def _silu_partial(g, _y, x):
    s = sigmoid(x)
    return guarded_product(g, (x * (1 - s) + 1) * s)


silu = elementwise(
    "silu",
    lambda xp, x, out=None: _times_sigmoid(xp, x, x, out),
    _silu_partial,
    accepts=dtypes.FLOATING,
    costly=True,
    holomorphic=False,
    writes=OutArgument(supports=is_single_or_double),
)

floor = elementwise("floor", "floor", None, accepts=dtypes.REAL)
ceil = elementwise("ceil", "ceil", None, accepts=dtypes.REAL)
round_ = elementwise("round", "round", None, accepts=dtypes.NUMERIC)
rint = elementwise("rint", "rint", None, accepts=dtypes.FLOATING)
