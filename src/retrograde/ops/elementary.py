"""Elementary functions, rounding, and the activations that have a rule of their own."""

from __future__ import annotations

import numpy as np

from retrograde.fusion.output_arguments import Writes, has_bits, is_float
from retrograde.ops._arrays import (
    HALF,
    chosen_where,
    kept_where,
    one,
    over,
    plain_dtype,
    scalar,
    special,
    widened,
    zero,
)
from retrograde.ops._families import elementwise
from retrograde.ops.arithmetic import absolute, guarded, guarded_divide, log, no_nan, select, square
from retrograde.ops.casting import zeros_like
from retrograde.ops.complex_numbers import imag, joined
from retrograde.values import dtypes

__all__ = ["log"]


def function(name, kernel, partial, accepts=dtypes.INEXACT, writes=None):
    """A costly elementwise function of one input, with a rule of a few calls."""
    return elementwise(
        name, kernel, partial, accepts=accepts, costly=True, cheap_rule=True, writes=writes
    )


exp = function("exp", "exp", lambda g, y, _x: guarded(g, y))
# exp(x), not y + 1, of which nothing is left where y is nearly -1.
expm1 = function("expm1", "expm1", lambda g, _y, x: guarded(g, exp(x), ours=True))


def _log1p_kernel(xp, x, out=None):
    if x.dtype.kind != "c":
        return xp.log1p(x) if out is None else np.log1p(x, out)
    a, b = x.real, x.imag
    near = xp.log1p(a * (a + scalar(2, a)) + b * b) * scalar(0.5, a)  # NumPy adds 1 to a first
    size = xp.where(xp.abs(x) < 0.5, near, xp.log(x + one(x.dtype)).real)
    return joined(xp, size, xp.arctan2(b, a + one(a.dtype)))


log1p = function(
    "log1p",
    _log1p_kernel,
    lambda g, _y, x: guarded_divide(g, x + 1),
    writes=Writes(over=(0,), fits=is_float),
)
sqrt = function("sqrt", "sqrt", lambda g, y, _x: guarded_divide(g, y + y))


def _rsqrt_kernel(xp, x, out=None):
    y = xp.sqrt(x) if out is None else np.sqrt(x, out)
    return over(xp.divide, one(x.dtype), y, out)


rsqrt = function(
    "rsqrt",
    _rsqrt_kernel,
    lambda g, y, _x: guarded(guarded(guarded(g, y) * scalar(-0.5, y), y), y),
    writes=Writes(over=(0,), fits=is_float),
)

sin = function("sin", "sin", lambda g, _y, x: guarded(g, cos(x), ours=True))
cos = function("cos", "cos", lambda g, _y, x: -guarded(g, sin(x), ours=True))


def _tan_rule(g, y, x):
    if plain_dtype(x).kind != "c":
        return guarded(g, y * y + 1, ours=True)
    # Far from the real line y * y is nearly -1, and the difference is all that matters.
    turned = exp(select(imag(x) < 0, -x, x) * scalar(2j, x))
    return guarded(g, turned * 4 / square(turned + 1))


tan = function("tan", "tan", _tan_rule)
asin = function("asin", "arcsin", lambda g, _y, x: guarded_divide(g, sqrt(1 - x * x)))
acos = function("acos", "arccos", lambda g, _y, x: -guarded_divide(g, sqrt(1 - x * x)))
atan = function("atan", "arctan", lambda g, _y, x: guarded_divide(g, x * x + 1))
sinh = function("sinh", "sinh", lambda g, _y, x: guarded(g, cosh(x), ours=True))
cosh = function("cosh", "cosh", lambda g, _y, x: guarded(g, sinh(x), ours=True))
tanh = function("tanh", "tanh", lambda g, y, _x: tanh_back(g, y))
asinh = function("asinh", "arcsinh", lambda g, y, _x: guarded_divide(g, cosh(y)))
acosh = function("acosh", "arccosh", lambda g, y, _x: guarded_divide(g, sinh(y)))
atanh = function("atanh", "arctanh", lambda g, _y, x: guarded_divide(g, 1 - x * x))
atan2 = elementwise(
    "atan2",
    "arctan2",
    lambda g, _y, x1, x2: guarded(g, x2 / (x1 * x1 + x2 * x2)),
    lambda g, _y, x1, x2: -guarded(g, x1 / (x1 * x1 + x2 * x2)),
    accepts=dtypes.FLOATING,
    costly=True,
)

_TWO_OVER_SQRT_PI = 1.1283791670955126

erf = function(
    "erf",
    lambda xp, x: special(xp, "erf")(widened(x)).astype(x.dtype),
    lambda g, _y, x: guarded(g, exp(-x * x)) * scalar(_TWO_OVER_SQRT_PI, x),
    accepts=dtypes.FLOATING,
)
erfc = function(
    "erfc",
    lambda xp, x: special(xp, "erfc")(widened(x)).astype(x.dtype),
    lambda g, _y, x: guarded(g, exp(-x * x)) * scalar(-_TWO_OVER_SQRT_PI, x),
    accepts=dtypes.FLOATING,
)


def _over_sigmoid(xp, numerator, x, out):
    """`numerator` times the sigmoid of x."""
    if x.dtype in HALF:  # where an exponential overflows soon
        return _over_sigmoid(xp, widened(numerator), widened(x), None).astype(x.dtype)
    y = xp.exp(-x) if out is None else np.exp(np.negative(x, out), out)
    y = over(xp.add, one(x.dtype), y, out)
    return over(xp.divide, numerator, y, out)


def _sigmoid_kernel(xp, x, out=None):
    if x.dtype.kind != "c":
        return _over_sigmoid(xp, one(x.dtype), x, out)
    left = x.real < 0  # an exponential that overflows would make nan here, not infinity
    power = xp.exp(xp.where(left, x, -x))
    return xp.where(left, power, one(x.dtype)) / (one(x.dtype) + power)


sigmoid = function(
    "sigmoid",
    _sigmoid_kernel,
    lambda g, y, _x: sigmoid_back(g, y),
    writes=Writes(over=(0,), fits=has_bits),
)


# The rules of tanh and sigmoid are primitives, since networks are differentiated by them so often,
# and in physics several times over: one call and one array in place of three.


def _times(xp, g, slope, out):
    if xp is np and not g.ndim and g == 1:  # as in the blocks of a large array behind a sum
        return slope
    return no_nan(xp, g, over(xp.multiply, g, slope, out))


def _tanh_back_kernel(xp, g, y, out=None):
    slope = y * y if out is None else np.multiply(y, y, out)
    return _times(xp, g, over(xp.subtract, one(y.dtype), slope, out), out)


def _sigmoid_back_kernel(xp, g, y, out=None):
    slope = one(y.dtype) - y if out is None else np.subtract(one(y.dtype), y, out)
    return _times(xp, g, over(xp.multiply, y, slope, out), out)


tanh_back = elementwise(  # g * (1 - y * y)
    "tanh_back",
    _tanh_back_kernel,
    lambda h, _out, _g, y: tanh_back(h, y),
    lambda h, _out, g, y: triple(g, h, y, scale=-2),
    accepts=dtypes.INEXACT,
    writes=Writes(over=(1,), fits=is_float),
)


def _triple_kernel(xp, a, b, c, *, scale, out=None):
    result = a * b if out is None else np.multiply(a, b, out)
    result = over(xp.multiply, c, result, out)
    return no_nan(xp, a, over(xp.multiply, scalar(scale, result), result, out))


triple = elementwise(  # scale * a * b * c, and 0 where a is 0, whatever the others are
    "triple",
    _triple_kernel,
    lambda g, _y, _a, b, c, *, scale: triple(g, b, c, scale=scale),
    lambda g, _y, a, _b, c, *, scale: triple(a, g, c, scale=scale),
    lambda g, _y, a, b, _c, *, scale: triple(a, b, g, scale=scale),
    accepts=dtypes.INEXACT,
    writes=Writes(over=(1,), fits=is_float),
)
sigmoid_back = elementwise(  # g * y * (1 - y)
    "sigmoid_back",
    _sigmoid_back_kernel,
    lambda h, _out, _g, y: sigmoid_back(h, y),
    lambda h, _out, g, y: guarded(guarded(g, h), 1 - y * 2),
    accepts=dtypes.INEXACT,
    writes=Writes(fits=is_float),
)


def _softplus_kernel(xp, x, out=None):
    if out is None:
        return xp.logaddexp(x, zero(x.dtype))
    return np.logaddexp(x, zero(x.dtype), out)


softplus = function(
    "softplus",
    _softplus_kernel,
    lambda g, _y, x: guarded(g, sigmoid(x), ours=True),
    accepts=dtypes.FLOATING,
    writes=Writes(over=(0,), fits=is_float),
)
softsign = elementwise(
    "softsign",
    lambda xp, x: x / (xp.abs(x) + 1),
    lambda g, _y, x: guarded_divide(g, square(absolute(x) + 1)),
    accepts=dtypes.FLOATING,
)


def _gate_kernel(xp, g, s, *, upper, slope, out=None):
    inside = s > zero(s.dtype)
    if upper is not None:
        inside &= s < upper
    if not slope:
        return kept_where(xp, inside, g, out)
    return chosen_where(xp, inside, g, g * scalar(slope, g), out)


# The derivative of the functions that bend at 0: g where 0 < s < upper, elsewhere g * slope. It
# depends on s, if only in steps, and so is connected to it, with a zero.
gate = elementwise(
    "gate",
    _gate_kernel,
    lambda h, _y, _g, s, **attrs: gate(h, s, **attrs),
    lambda h, _y, _g, _s, **_: zeros_like(h),
    accepts=dtypes.REAL,
    holomorphic=False,
    writes=Writes(over=(0, 1), fits=has_bits),
)


def _relu_kernel(xp, x, out=None):
    if out is None:
        return xp.maximum(x, zero(x.dtype))
    return np.maximum(x, zero(x.dtype), out=out)


relu = elementwise(
    "relu",
    _relu_kernel,
    lambda g, y, _x: gate(g, y, upper=None, slope=0.0),
    accepts=dtypes.REAL,
    holomorphic=False,
    writes=Writes(over=(0,)),
)
relu6 = elementwise(
    "relu6",
    lambda xp, x: xp.clip(x, 0, 6).astype(x.dtype),
    lambda g, y, _x: gate(g, y, upper=6.0, slope=0.0),
    accepts=dtypes.REAL,
    holomorphic=False,
)
leaky_relu = elementwise(
    "leaky_relu",
    lambda xp, x, *, alpha: chosen_where(xp, x > 0, x, x * scalar(alpha, x)),
    lambda g, _y, x, *, alpha: gate(g, x, upper=None, slope=alpha),
    accepts=dtypes.FLOATING,
    holomorphic=False,
)
elu = elementwise(
    "elu",
    lambda xp, x: chosen_where(xp, x < 0, xp.expm1(xp.minimum(x, xp.zeros((), x.dtype))), x),
    lambda g, y, _x: select(y < 0, guarded(g, y + 1), g),
    accepts=dtypes.FLOATING,
    costly=True,
    holomorphic=False,
)

_SELU_SCALE = 1.0507009873554805
_SELU_SCALE_ALPHA = 1.7580993408473766


def _selu_kernel(xp, x):
    below = xp.expm1(xp.minimum(x, xp.zeros((), x.dtype))) * scalar(_SELU_SCALE_ALPHA, x)
    return chosen_where(xp, x < 0, below, x * scalar(_SELU_SCALE, x))


selu = elementwise(
    "selu",
    _selu_kernel,
    lambda g, y, _x: select(
        y < 0, guarded(g, y + scalar(_SELU_SCALE_ALPHA, y)), g * scalar(_SELU_SCALE, y)
    ),
    accepts=dtypes.FLOATING,
    costly=True,
    holomorphic=False,
)

_SQRT_HALF, _SQRT_TWO_OVER_PI = 0.7071067811865476, 0.7978845608028654
_CUBIC = 0.044715


def _below_kernel(xp, x, approximate):
    """The probability that a normal variate is below x; or nearly so, by a tanh."""
    if approximate:
        inner = (x + x * x * x * scalar(_CUBIC, x)) * scalar(_SQRT_TWO_OVER_PI, x)
        return (xp.tanh(inner) + 1) * scalar(0.5, x)
    return special(xp, "erfc")(x * scalar(-_SQRT_HALF, x)) * scalar(0.5, x)


def _gelu_kernel(xp, x, *, approximate):
    wide = widened(x)
    return (wide * _below_kernel(xp, wide, approximate)).astype(x.dtype, copy=False)


def _gelu_partial(g, _y, x, *, approximate):
    """g * (p + x dp/dx), where p is the probability to be below x."""
    if approximate:
        squared = x * x
        t = tanh((x + x * squared * scalar(_CUBIC, x)) * scalar(_SQRT_TWO_OVER_PI, x))
        slope = (squared * scalar(3 * _CUBIC, x) + 1) * scalar(_SQRT_TWO_OVER_PI, x)
        slope = ((1 - t * t) * slope * x + t + 1) * scalar(0.5, x)
    else:
        density = exp(x * x * scalar(-0.5, x)) * scalar(0.5 * _SQRT_TWO_OVER_PI, x)
        slope = erfc(x * scalar(-_SQRT_HALF, x)) * scalar(0.5, x) + x * density
    return guarded(g, slope)


gelu = elementwise(
    "gelu", _gelu_kernel, _gelu_partial, accepts=dtypes.FLOATING, costly=True, holomorphic=False
)


def _silu_partial(g, _y, x):
    s = sigmoid(x)
    return guarded(g, (x * (1 - s) + 1) * s)


silu = elementwise(
    "silu",
    lambda xp, x, out=None: _over_sigmoid(xp, x, x, out),
    _silu_partial,
    accepts=dtypes.FLOATING,
    costly=True,
    holomorphic=False,
    writes=Writes(fits=has_bits),
)

floor = elementwise("floor", "floor", None, accepts=dtypes.REAL)
ceil = elementwise("ceil", "ceil", None, accepts=dtypes.REAL)
round_ = elementwise("round", "round", None, accepts=dtypes.NUMERIC)
rint = elementwise("rint", "rint", None, accepts=dtypes.FLOATING)
