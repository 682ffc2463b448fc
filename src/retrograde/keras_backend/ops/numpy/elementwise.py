"""Elementwise functions."""

from __future__ import annotations

import math as python_math

import numpy as np

import retrograde as tf
from retrograde import math
from retrograde.core.apply import apply
from retrograde.core.tensor import Tensor
from retrograde.keras_backend.ops._functions import binary, unary
from retrograde.keras_backend.ops._inputs import (
    FLOAT64,
    INT64,
    boolean_pair,
    booleans,
    common_dtype,
    inexact,
    inexact_pair,
    numeric,
    numeric_pair,
    of_dtype,
    pair,
    promote,
    tensor,
    to_int,
)
from retrograde.numpy_functions import elementwise as shared
from retrograde.numpy_functions import shaping
from retrograde.numpy_functions.elementwise import is_bool, numeric_or_logical
from retrograde.ops import arithmetic as ar
from retrograde.ops import elementary as el
from retrograde.ops import powers, special
from retrograde.ops._families import conj as conj_primitive
from retrograde.ops.casting import identity, to_dtype
from retrograde.values import dtypes


def _wide_inexact(x):
    """Converts `x` to a floating-point or complex tensor; int64 becomes float64."""
    x = tensor(x)
    return to_dtype(x, FLOAT64) if x._spec.dtype == INT64 else inexact(x)


def _wide_inexact_pair(x1, x2):
    x1, x2 = pair(x1, x2)
    return _wide_inexact(x1), _wide_inexact(x2)


def _scale(x, factor):
    return x * Tensor(x._spec.dtype.type(factor))


# Arithmetic

add = binary(ar.add)
subtract = binary(ar.subtract)
multiply = binary(ar.multiply)
divide = true_divide = binary(ar.divide, inexact_pair)
divide_no_nan = binary(ar.divide_no_nan, inexact_pair)
mod = binary(ar.mod, numeric_pair)
fmod = binary(ar.truncate_mod, numeric_pair)
gcd = binary(ar.gcd)
lcm = binary(ar.lcm)
square = unary(ar.square, numeric)


def floor_divide(x1, x2):
    x1, x2 = pair(x1, x2)
    if is_bool(x1):
        x1, x2 = (to_dtype(x, np.dtype(np.int8)) for x in (x1, x2))
    return apply(ar.floor_divide, (x1, x2))


def negative(x):
    x = tensor(x)
    if x._spec.dtype.kind == "u":
        return apply(ar.subtract, (tf.zeros_like(x), x))
    return apply(ar.negative, (x,))


def reciprocal(x):
    x = tensor(x)
    if x._spec.dtype in dtypes.INEXACT:
        return apply(ar.reciprocal, (x,))
    x = numeric(x)
    return apply(ar.truncate_divide, (tf.ones_like(x), x))


# Comparison of values, and rounding

maximum = binary(ar.maximum)
minimum = binary(ar.minimum)
signbit = unary(ar.sign_bit, numeric)
floor = unary(el.floor)
ceil = unary(el.ceil)
nextafter = binary(special.nextafter, inexact_pair)


def _ignoring_nan(extreme, x1, x2):
    """Computes the maximum or minimum; where one value is NaN, returns the other."""
    x1, x2 = pair(x1, x2)
    y = extreme(x1, x2)
    if x1._spec.dtype not in dtypes.FLOATING:
        return y
    y = ar.select(ar.is_nan(x1), x2, y)
    return ar.select(ar.is_nan(x2), x1, y)


def fmax(x1, x2):
    return _ignoring_nan(maximum, x1, x2)


def fmin(x1, x2):
    return _ignoring_nan(minimum, x1, x2)


def clip(x, x_min, x_max):
    """Clips `x` to bounds. If the lower bound exceeds the upper one, the upper one wins."""
    x = numeric(x)
    dtype = x._spec.dtype
    for bound, extreme in ((x_min, ar.maximum), (x_max, ar.minimum)):
        if bound is not None:
            x = apply(extreme, pair(x, bound))
    return to_dtype(x, dtype)


def absolute(x):
    x = tensor(x)
    return identity(x) if is_bool(x) else math.abs(x)


abs = absolute


def fabs(x):
    return math.abs(inexact(x))


def sign(x):
    x = tensor(x)
    return identity(x) if is_bool(x) else apply(ar.sign, (x,))


def heaviside(x1, x2):
    return shared.heaviside(*_wide_inexact_pair(x1, x2))


def trunc(x):
    x = tensor(x)
    return shared.trunc(x) if x._spec.dtype in dtypes.INEXACT else identity(x)


def round(x, decimals=0):
    x = tensor(x)
    if x._spec.dtype in dtypes.INEXACT:
        return shared.around(x, decimals) if decimals else apply(el.round_, (x,))
    if to_int(decimals) >= 0:
        return identity(numeric(x))
    return to_dtype(shared.around(to_dtype(x, FLOAT64), decimals), numeric(x)._spec.dtype)


def nan_to_num(x, nan=0.0, posinf=None, neginf=None):
    x = tensor(x)
    dtype = x._spec.dtype
    if dtype not in dtypes.INEXACT:
        return identity(x)
    if dtype in dtypes.COMPLEX:
        parts = (nan_to_num(f(x), nan, posinf, neginf) for f in (math.real, math.imag))
        return tf.complex(*parts)
    limits = dtypes.of(dtype)
    posinf = limits.max if posinf is None else posinf
    neginf = limits.min if neginf is None else neginf
    y = ar.select(ar.is_nan(x), of_dtype(nan, dtype), x)
    y = ar.select(ar.equal(x, of_dtype(np.inf, dtype)), of_dtype(posinf, dtype), y)
    return ar.select(ar.equal(x, of_dtype(-np.inf, dtype)), of_dtype(neginf, dtype), y)


copy = unary(identity, tensor)


# Powers, exponentials and logarithms

power = binary(ar.power, numeric_pair)
sqrt = unary(el.sqrt)
cbrt = unary(powers.cube_root, _wide_inexact)
hypot = binary(powers.hypot, _wide_inexact_pair)
exp = unary(el.exp)
exp2 = unary(powers.exp2)
expm1 = unary(el.expm1)
log = unary(el.log)
log2 = unary(powers.log2)
log10 = unary(powers.log10)
log1p = unary(el.log1p)


def logaddexp(x1, x2):
    return shared.logaddexp(*inexact_pair(x1, x2))


def logaddexp2(x1, x2):
    return shared.logaddexp2(*inexact_pair(x1, x2))


def ldexp(x1, x2):
    x1, x2 = tensor(x1), tensor(x2)
    if x2._spec.dtype not in dtypes.INTEGER:
        raise TypeError(
            f"ldexp: the exponents must be integers. Received: x2 of dtype {x2.dtype.name}."
        )
    dtype = common_dtype(x1._spec.dtype, x2._spec.dtype, float)
    return to_dtype(x1, dtype) * powers.exp2(to_dtype(x2, dtype))


def i0(x):
    return apply(special.bessel_i, (_wide_inexact(x),), {"order": 0})


# Trigonometric and hyperbolic functions

sin = unary(el.sin)
cos = unary(el.cos)
tan = unary(el.tan)
arcsin = unary(el.asin)
arccos = unary(el.acos)
arctan = unary(el.atan)
arctan2 = binary(el.atan2, inexact_pair)
sinh = unary(el.sinh)
cosh = unary(el.cosh)
tanh = unary(el.tanh)
arcsinh = unary(el.asinh)
arccosh = unary(el.acosh)
arctanh = unary(el.atanh)


def sinc(x):
    return shared.sinc(inexact(x))


def deg2rad(x):
    return _scale(_wide_inexact(x), python_math.pi / 180)


def rad2deg(x):
    return _scale(_wide_inexact(x), 180 / python_math.pi)


# Complex numbers


def real(x):
    x = tensor(x)
    return math.real(x) if x._spec.dtype in dtypes.COMPLEX else identity(x)


def imag(x):
    x = tensor(x)
    return math.imag(x) if x._spec.dtype in dtypes.COMPLEX else tf.zeros_like(x)


def conjugate(x):
    x = tensor(x)
    return conj_primitive(x) if x._spec.dtype in dtypes.COMPLEX else identity(x)


conj = conjugate


def angle(x):
    return math.angle(inexact(x))


# Bitwise functions. Keras names their arguments `x` and `y`.


def bitwise_and(x, y):
    return numeric_or_logical(ar.bitwise_and, *pair(x, y))


def bitwise_or(x, y):
    return numeric_or_logical(ar.bitwise_or, *pair(x, y))


def bitwise_xor(x, y):
    return numeric_or_logical(ar.bitwise_xor, *pair(x, y))


def bitwise_invert(x):
    return numeric_or_logical(ar.invert, tensor(x))


bitwise_not = bitwise_invert


def bitwise_left_shift(x, y):
    return apply(ar.left_shift, numeric_pair(x, y))


left_shift = bitwise_left_shift


def bitwise_right_shift(x, y):
    return apply(ar.right_shift, numeric_pair(x, y))


right_shift = bitwise_right_shift


# Comparisons and predicates

equal = binary(ar.equal)
not_equal = binary(ar.not_equal)
greater = binary(ar.greater, numeric_pair)
greater_equal = binary(ar.greater_equal, numeric_pair)
less = binary(ar.less, numeric_pair)
less_equal = binary(ar.less_equal, numeric_pair)
logical_and = binary(ar.logical_and, boolean_pair)
logical_or = binary(ar.logical_or, boolean_pair)
logical_xor = binary(ar.logical_xor, boolean_pair)
logical_not = unary(ar.logical_not, booleans)
isfinite = unary(ar.is_finite)
isinf = unary(ar.is_inf)
isnan = unary(ar.is_nan)


def isneginf(x):
    x = inexact(x)
    return ar.equal(x, of_dtype(-np.inf, x._spec.dtype))


def isposinf(x):
    x = inexact(x)
    return ar.equal(x, of_dtype(np.inf, x._spec.dtype))


def isreal(x):
    x = tensor(x)
    if x._spec.dtype in dtypes.COMPLEX:
        x = math.imag(x)
        return ar.equal(x, tf.zeros_like(x))
    return tf.ones_like(x, bool)


def isclose(x1, x2, rtol=1e-5, atol=1e-8, equal_nan=False):
    """Returns whether `|x1 - x2| <= atol + rtol * |x2|`. Equal infinities are close."""
    x1, x2 = inexact_pair(x1, x2)
    size = absolute(x2)
    limit = of_dtype(atol, size._spec.dtype) + _scale(size, rtol)
    near = ar.logical_and(absolute(x1 - x2) <= limit, isfinite(x2))
    near = ar.logical_or(near, ar.equal(x1, x2))
    if equal_nan:
        near = ar.logical_or(near, ar.logical_and(isnan(x1), isnan(x2)))
    return near


# Selection


def select(condlist, choicelist, default=0):
    y, *choices = promote(default, *choicelist)
    return shaping.select([booleans(condition) for condition in condlist], choices, y)
