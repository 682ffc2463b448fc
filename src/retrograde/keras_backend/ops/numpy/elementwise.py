"""Functions of each element: arithmetic, order, rounding, powers, angles, complex numbers, bits."""

from __future__ import annotations

import math as numbers_math

import numpy as np

import retrograde as tf
from retrograde import math
from retrograde.core.apply import apply
from retrograde.core.tensor import Tensor
from retrograde.experimental.numpy import elementwise as ours
from retrograde.keras_backend.ops._inputs import (
    FLOAT64,
    INT64,
    common_dtype,
    inexact,
    inexact_pair,
    number_pair,
    numbers,
    of_dtype,
    pair,
    promoted,
    tensor,
    truths,
    whole,
)
from retrograde.ops import arithmetic as ar
from retrograde.ops import elementary as el
from retrograde.ops import powers, special
from retrograde.ops._families import conj as conjugated
from retrograde.ops.casting import identity, to_dtype
from retrograde.values import dtypes


def _is_bool(x):
    return x._array.dtype.kind == "b"


def _wide_inexact(x):
    """`x` as floats or complex numbers; int64 as float64."""
    x = tensor(x)
    return to_dtype(x, FLOAT64) if x._array.dtype == INT64 else inexact(x)


def _scaled(x, factor):
    return x * Tensor(x._array.dtype.type(factor))


# Arithmetic


def add(x1, x2):
    x1, x2 = pair(x1, x2)
    return apply(ar.logical_or if _is_bool(x1) else ar.add, (x1, x2))


def subtract(x1, x2):
    return apply(ar.subtract, pair(x1, x2))


def multiply(x1, x2):
    x1, x2 = pair(x1, x2)
    return apply(ar.logical_and if _is_bool(x1) else ar.multiply, (x1, x2))


def divide(x1, x2):
    return apply(ar.divide, inexact_pair(x1, x2))


def true_divide(x1, x2):
    return divide(x1, x2)


def divide_no_nan(x1, x2):
    return apply(ar.divide_no_nan, inexact_pair(x1, x2))


def floor_divide(x1, x2):
    x1, x2 = pair(x1, x2)
    if _is_bool(x1):
        x1, x2 = (to_dtype(x, np.dtype(np.int8)) for x in (x1, x2))
    return apply(ar.floor_divide, (x1, x2))


def mod(x1, x2):
    return apply(ar.mod, number_pair(x1, x2))


def fmod(x1, x2):
    return apply(ar.truncate_mod, number_pair(x1, x2))


def negative(x):
    x = tensor(x)
    if x._array.dtype.kind == "u":
        return apply(ar.subtract, (tf.zeros_like(x), x))
    return apply(ar.negative, (x,))


def reciprocal(x):
    x = tensor(x)
    if x._array.dtype in dtypes.INEXACT:
        return apply(ar.reciprocal, (x,))
    x = numbers(x)
    return apply(ar.truncate_divide, (tf.ones_like(x), x))


def square(x):
    return apply(ar.square, (numbers(x),))


def gcd(x1, x2):
    return apply(ar.gcd, pair(x1, x2))


def lcm(x1, x2):
    return apply(ar.lcm, pair(x1, x2))


# Order and rounding


def maximum(x1, x2):
    x1, x2 = pair(x1, x2)
    return apply(ar.logical_or if _is_bool(x1) else ar.maximum, (x1, x2))


def minimum(x1, x2):
    x1, x2 = pair(x1, x2)
    return apply(ar.logical_and if _is_bool(x1) else ar.minimum, (x1, x2))


def _past_nan(extreme, x1, x2):
    """The extreme of two values; where one is nan, the other."""
    x1, x2 = pair(x1, x2)
    y = extreme(x1, x2)
    if x1._array.dtype not in dtypes.FLOATING:
        return y
    y = ar.select(ar.is_nan(x1), x2, y)
    return ar.select(ar.is_nan(x2), x1, y)


def fmax(x1, x2):
    return _past_nan(maximum, x1, x2)


def fmin(x1, x2):
    return _past_nan(minimum, x1, x2)


def clip(x, x_min, x_max):
    """Within bounds; where these lie the wrong way round, the upper one counts."""
    x = numbers(x)
    own = x._array.dtype
    for bound, extreme in ((x_min, ar.maximum), (x_max, ar.minimum)):
        if bound is not None:
            x = apply(extreme, pair(x, bound))
    return to_dtype(x, own)


def absolute(x):
    x = tensor(x)
    return identity(x) if _is_bool(x) else math.abs(x)


def abs(x):
    return absolute(x)


def fabs(x):
    return math.abs(inexact(x))


def sign(x):
    x = tensor(x)
    return identity(x) if _is_bool(x) else apply(ar.sign, (x,))


def signbit(x):
    return apply(ar.sign_bit, (numbers(x),))


def heaviside(x1, x2):
    x1, x2 = (_wide_inexact(x) for x in pair(x1, x2))
    return ours.heaviside(x1, x2)


def floor(x):
    return apply(el.floor, (inexact(x),))


def ceil(x):
    return apply(el.ceil, (inexact(x),))


def trunc(x):
    x = tensor(x)
    if x._array.dtype not in dtypes.INEXACT:
        return identity(x)
    return ar.select(x < 0, el.ceil(x), el.floor(x))


def round(x, decimals=0):
    x = tensor(x)
    if x._array.dtype in dtypes.INEXACT:
        return ours.around(x, decimals) if decimals else apply(el.round_, (x,))
    if whole(decimals) >= 0:
        return identity(numbers(x))
    return to_dtype(ours.around(to_dtype(x, FLOAT64), decimals), numbers(x)._array.dtype)


def nextafter(x1, x2):
    x1, x2 = inexact_pair(x1, x2)
    return apply(special.nextafter, (x1, x2))


def nan_to_num(x, nan=0.0, posinf=None, neginf=None):
    x = tensor(x)
    own = x._array.dtype
    if own not in dtypes.INEXACT:
        return identity(x)
    if own in dtypes.COMPLEX:
        parts = (nan_to_num(f(x), nan, posinf, neginf) for f in (math.real, math.imag))
        return tf.complex(*parts)
    limits = dtypes.of(own)
    posinf = limits.max if posinf is None else posinf
    neginf = limits.min if neginf is None else neginf
    y = ar.select(ar.is_nan(x), of_dtype(nan, own), x)
    y = ar.select(ar.equal(x, of_dtype(np.inf, own)), of_dtype(posinf, own), y)
    return ar.select(ar.equal(x, of_dtype(-np.inf, own)), of_dtype(neginf, own), y)


def copy(x):
    return identity(tensor(x))


# Powers, exponentials and logarithms


def power(x1, x2):
    x1, x2 = number_pair(x1, x2)
    return apply(ar.power, (x1, x2))


def sqrt(x):
    return apply(el.sqrt, (inexact(x),))


def cbrt(x):
    return apply(powers.cube_root, (_wide_inexact(x),))


def hypot(x1, x2):
    x1, x2 = pair(x1, x2)
    return apply(powers.hypot, (_wide_inexact(x1), _wide_inexact(x2)))


def exp(x):
    return apply(el.exp, (inexact(x),))


def exp2(x):
    return apply(powers.exp2, (inexact(x),))


def expm1(x):
    return apply(el.expm1, (inexact(x),))


def log(x):
    return apply(el.log, (inexact(x),))


def log2(x):
    return apply(powers.log2, (inexact(x),))


def log10(x):
    return apply(powers.log10, (inexact(x),))


def log1p(x):
    return apply(el.log1p, (inexact(x),))


def logaddexp(x1, x2):
    return ours.logaddexp(*inexact_pair(x1, x2))


def logaddexp2(x1, x2):
    return ours.logaddexp2(*inexact_pair(x1, x2))


def ldexp(x1, x2):
    x1, x2 = tensor(x1), tensor(x2)
    if x2._array.dtype not in dtypes.INTEGER:
        raise TypeError(
            f"ldexp: the exponents must be integers. Received: x2 of dtype {x2.dtype.name}."
        )
    dtype = common_dtype(x1._array.dtype, x2._array.dtype, float)
    return to_dtype(x1, dtype) * powers.exp2(to_dtype(x2, dtype))


def i0(x):
    return apply(special.bessel_i, (_wide_inexact(x),), {"order": 0})


# Angles and hyperbolic functions


def sin(x):
    return apply(el.sin, (inexact(x),))


def cos(x):
    return apply(el.cos, (inexact(x),))


def tan(x):
    return apply(el.tan, (inexact(x),))


def arcsin(x):
    return apply(el.asin, (inexact(x),))


def arccos(x):
    return apply(el.acos, (inexact(x),))


def arctan(x):
    return apply(el.atan, (inexact(x),))


def arctan2(x1, x2):
    return apply(el.atan2, inexact_pair(x1, x2))


def sinh(x):
    return apply(el.sinh, (inexact(x),))


def cosh(x):
    return apply(el.cosh, (inexact(x),))


def tanh(x):
    return apply(el.tanh, (inexact(x),))


def arcsinh(x):
    return apply(el.asinh, (inexact(x),))


def arccosh(x):
    return apply(el.acosh, (inexact(x),))


def arctanh(x):
    return apply(el.atanh, (inexact(x),))


def sinc(x):
    return ours.sinc(inexact(x))


def deg2rad(x):
    return _scaled(_wide_inexact(x), numbers_math.pi / 180)


def rad2deg(x):
    return _scaled(_wide_inexact(x), 180 / numbers_math.pi)


# Complex numbers


def real(x):
    x = tensor(x)
    return math.real(x) if x._array.dtype in dtypes.COMPLEX else identity(x)


def imag(x):
    x = tensor(x)
    return math.imag(x) if x._array.dtype in dtypes.COMPLEX else tf.zeros_like(x)


def conjugate(x):
    x = tensor(x)
    return conjugated(x) if x._array.dtype in dtypes.COMPLEX else identity(x)


def conj(x):
    return conjugate(x)


def angle(x):
    return math.angle(inexact(x))


# Bits


def _by_bits(of_truths, of_integers, x, y):
    x, y = pair(x, y)
    return apply(of_truths if _is_bool(x) else of_integers, (x, y))


def bitwise_and(x, y):
    return _by_bits(ar.logical_and, ar.bitwise_and, x, y)


def bitwise_or(x, y):
    return _by_bits(ar.logical_or, ar.bitwise_or, x, y)


def bitwise_xor(x, y):
    return _by_bits(ar.logical_xor, ar.bitwise_xor, x, y)


def bitwise_invert(x):
    x = tensor(x)
    return apply(ar.logical_not if _is_bool(x) else ar.invert, (x,))


def bitwise_not(x):
    return bitwise_invert(x)


def bitwise_left_shift(x, y):
    return apply(ar.left_shift, number_pair(x, y))


def left_shift(x, y):
    return bitwise_left_shift(x, y)


def bitwise_right_shift(x, y):
    return apply(ar.right_shift, number_pair(x, y))


def right_shift(x, y):
    return bitwise_right_shift(x, y)


# Comparing, and what is true of an element


def equal(x1, x2):
    return apply(ar.equal, pair(x1, x2))


def not_equal(x1, x2):
    return apply(ar.not_equal, pair(x1, x2))


def greater(x1, x2):
    return apply(ar.greater, number_pair(x1, x2))


def greater_equal(x1, x2):
    return apply(ar.greater_equal, number_pair(x1, x2))


def less(x1, x2):
    return apply(ar.less, number_pair(x1, x2))


def less_equal(x1, x2):
    return apply(ar.less_equal, number_pair(x1, x2))


def isclose(x1, x2, rtol=1e-5, atol=1e-8, equal_nan=False):
    """Whether the distance is at most `atol + rtol * |x2|`; infinities are close to themselves."""
    x1, x2 = inexact_pair(x1, x2)
    size = absolute(x2)
    limit = of_dtype(atol, size._array.dtype) + _scaled(size, rtol)
    near = ar.logical_and(absolute(x1 - x2) <= limit, isfinite(x2))
    near = ar.logical_or(near, ar.equal(x1, x2))
    if equal_nan:
        near = ar.logical_or(near, ar.logical_and(isnan(x1), isnan(x2)))
    return near


def logical_and(x1, x2):
    return apply(ar.logical_and, (truths(x1), truths(x2)))


def logical_or(x1, x2):
    return apply(ar.logical_or, (truths(x1), truths(x2)))


def logical_xor(x1, x2):
    return apply(ar.logical_xor, (truths(x1), truths(x2)))


def logical_not(x):
    return apply(ar.logical_not, (truths(x),))


def isfinite(x):
    return apply(ar.is_finite, (inexact(x),))


def isinf(x):
    return apply(ar.is_inf, (inexact(x),))


def isnan(x):
    return apply(ar.is_nan, (inexact(x),))


def isneginf(x):
    x = inexact(x)
    return ar.equal(x, of_dtype(-np.inf, x._array.dtype))


def isposinf(x):
    x = inexact(x)
    return ar.equal(x, of_dtype(np.inf, x._array.dtype))


def isreal(x):
    x = tensor(x)
    if x._array.dtype in dtypes.COMPLEX:
        x = math.imag(x)
        return ar.equal(x, tf.zeros_like(x))
    return tf.ones_like(x, bool)


# Choosing


def select(condlist, choicelist, default=0):
    y, *choices = promoted(default, *choicelist)
    for condition, choice in zip(reversed(condlist), reversed(choices), strict=True):
        y = ar.select(truths(condition), choice, y)
    return y
