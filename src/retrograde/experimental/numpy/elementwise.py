"""Elementwise functions: arithmetic, rounding, powers, trigonometry, complex numbers."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

import retrograde as tf
from retrograde import math, nn
from retrograde.core.apply import apply
from retrograde.core.tensor import Tensor
from retrograde.experimental.numpy._inputs import (
    FLOAT,
    array_of,
    inexact,
    promote,
    promote_inexact,
    tensor_of,
    unsupported_argument,
)
from retrograde.numpy_functions import elementwise as shared
from retrograde.numpy_functions.elementwise import is_bool, numeric_or_logical
from retrograde.numpy_functions.shaping import broadcast_all
from retrograde.ops import arithmetic as ar
from retrograde.ops.arguments import integer
from retrograde.ops.casting import to_dtype
from retrograde.toplevel import clipping
from retrograde.values import dtypes

pi = np.pi
e = np.e
inf = np.inf
newaxis = None

_INT8 = np.dtype(np.int8)


# Arithmetic


def add(x1: Any, x2: Any) -> Tensor:
    """Computes `x1 + x2`; for booleans, logical or.

    >>> tf.experimental.numpy.add(tf.constant([1, 2]), 0.5).numpy()
    array([1.5, 2.5])
    """
    return numeric_or_logical(ar.add, *promote(x1, x2))


def subtract(x1: Any, x2: Any) -> Tensor:
    """Computes `x1 - x2`."""
    return math.subtract(*promote(x1, x2))


def multiply(x1: Any, x2: Any) -> Tensor:
    """Computes `x1 * x2`; for booleans, logical and."""
    return numeric_or_logical(ar.multiply, *promote(x1, x2))


def true_divide(x1: Any, x2: Any) -> Tensor:
    """Computes `x1 / x2`; integers and booleans become floats."""
    x1, x2 = promote(x1, x2)
    if is_bool(x1):
        x1, x2 = to_dtype(x1, FLOAT), to_dtype(x2, FLOAT)
    return math.truediv(x1, x2)


def divide(x1: Any, x2: Any) -> Tensor:
    """Computes `x1 / x2`; integers and booleans become floats."""
    return true_divide(x1, x2)


def _promote_numeric(x1: Any, x2: Any) -> list[Tensor]:
    """Promotes both to a common dtype; booleans become int8."""
    return [to_dtype(x, _INT8) if is_bool(x) else x for x in promote(x1, x2)]


def floor_divide(x1: Any, x2: Any) -> Tensor:
    """Computes `x1 / x2`, rounded down."""
    return math.floordiv(*_promote_numeric(x1, x2))


def mod(x1: Any, x2: Any) -> Tensor:
    """Computes the remainder of `x1 / x2`, with the sign of `x2`."""
    return math.floormod(*_promote_numeric(x1, x2))


def remainder(x1: Any, x2: Any) -> Tensor:
    """Computes the remainder of `x1 / x2`, with the sign of `x2`."""
    return mod(x1, x2)


def divmod(x1: Any, x2: Any) -> tuple[Tensor, Tensor]:
    """Computes the quotient, rounded down, and the remainder."""
    return floor_divide(x1, x2), mod(x1, x2)


def reciprocal(x: Any) -> Tensor:
    """Computes `1 / x`."""
    return math.reciprocal(tensor_of(x))


def negative(x: Any) -> Tensor:
    """Computes `-x`."""
    return math.negative(tensor_of(x))


def positive(x: Any) -> Tensor:
    """Returns `x`."""
    return array_of(x)


def gcd(x1: Any, x2: Any) -> Tensor:
    """Computes the greatest common divisor.

    >>> tf.experimental.numpy.gcd([12, 0], [18, 5]).numpy()
    array([6, 5])
    """
    return apply(ar.gcd, _promote_integers(x1, x2, "gcd"))


def lcm(x1: Any, x2: Any) -> Tensor:
    """Computes the least common multiple."""
    return apply(ar.lcm, _promote_integers(x1, x2, "lcm"))


def _promote_integers(x1: Any, x2: Any, op_name: str) -> tuple[Tensor, ...]:
    x1, x2 = promote(x1, x2)
    if x1._spec.dtype not in dtypes.INTEGER:
        raise ValueError(f"{op_name}: expected integers. Received: {x1.dtype.name}.")
    return x1, x2


def bitwise_and(x1: Any, x2: Any) -> Tensor:
    """Computes the bitwise and."""
    return numeric_or_logical(ar.bitwise_and, *promote(x1, x2))


def bitwise_or(x1: Any, x2: Any) -> Tensor:
    """Computes the bitwise or."""
    return numeric_or_logical(ar.bitwise_or, *promote(x1, x2))


def bitwise_xor(x1: Any, x2: Any) -> Tensor:
    """Computes the bitwise exclusive or."""
    return numeric_or_logical(ar.bitwise_xor, *promote(x1, x2))


def bitwise_not(x: Any) -> Tensor:
    """Computes the bitwise complement."""
    return numeric_or_logical(ar.invert, tensor_of(x))


# Comparison and rounding


def maximum(x1: Any, x2: Any) -> Tensor:
    """Computes the elementwise maximum; for booleans, logical or."""
    is_number = isinstance(x2, numbers.Real) and not isinstance(x2, bool)
    if is_number and x2 == 0 and isinstance(x1, Tensor) and not is_bool(x1):
        return nn.relu(x1)  # keeps the dtype of x1 and has derivative 0 at 0
    return numeric_or_logical(ar.maximum, *promote(x1, x2))


def minimum(x1: Any, x2: Any) -> Tensor:
    """Computes the elementwise minimum; for booleans, logical and."""
    return numeric_or_logical(ar.minimum, *promote(x1, x2))


def clip(a: Any, a_min: Any, a_max: Any) -> Tensor:
    """Limits `a` to the range from `a_min` to `a_max`; one of them may be `None`."""
    if a_min is None and a_max is None:
        raise ValueError("clip: expected at least one of `a_min` and `a_max`.")
    if a_min is None:
        return minimum(a, a_max)
    if a_max is None:
        return maximum(a, a_min)
    return clipping.clip_by_value(*broadcast_all(promote(a, a_min, a_max)))


def abs(x: Any) -> Tensor:
    """Computes the absolute value, which is real for complex numbers too."""
    return math.abs(tensor_of(x))


def absolute(x: Any) -> Tensor:
    """Computes the absolute value, which is real for complex numbers too."""
    return abs(x)


def fabs(x: Any) -> Tensor:
    """Computes the absolute value."""
    return abs(x)


def sign(x: Any, out: Any = None, where: Any = None, **kwargs: Any) -> Tensor:
    """Returns -1, 0 or 1 for the sign of `x`; for complex numbers, `x / |x|`."""
    for name, value in {"out": out, "where": where, **kwargs}.items():
        if value is not None:
            raise unsupported_argument(name, "sign")
    return math.sign(tensor_of(x))


def signbit(x: Any) -> Tensor:
    """Returns whether `x` is negative."""
    x = tensor_of(x)
    return tf.zeros_like(x) if is_bool(x) else x < 0


def heaviside(x1: Any, x2: Any) -> Tensor:
    """Returns 0 where `x1` is negative, 1 where it is positive, and `x2` where it is zero."""
    return shared.heaviside(*promote_inexact(x1, x2))


def ceil(x: Any) -> Tensor:
    """Rounds up."""
    return math.ceil(inexact(x))


def floor(x: Any) -> Tensor:
    """Rounds down."""
    return math.floor(inexact(x))


def fix(x: Any) -> Tensor:
    """Rounds toward zero."""
    return shared.trunc(inexact(x))


def around(a: Any, decimals: int = 0) -> Tensor:
    """Rounds to `decimals` decimal places; negative `decimals` round to tens, hundreds, etc.

    >>> tf.experimental.numpy.around([1.25, 2.37], 1).numpy()
    array([1.2, 2.4])
    """
    x = tensor_of(a)
    return to_dtype(shared.around(inexact(x), decimals), x._spec.dtype)


def round(a: Any, decimals: int = 0) -> Tensor:
    """Rounds to `decimals` decimal places; negative `decimals` round to tens, hundreds, etc."""
    return around(a, decimals)


def nextafter(x1: Any, x2: Any) -> Tensor:
    """Returns the next float after `x1` in the direction of `x2`."""
    return math.nextafter(*promote(x1, x2))


def diff(a: Any, n: int = 1, axis: int = -1) -> Tensor:
    """Computes the `n`-th discrete difference along `axis`.

    >>> tf.experimental.numpy.diff([1, 3, 7]).numpy()
    array([2, 4])
    """
    return shared.diff(array_of(a), integer(n, "diff: n"), axis)


# Powers, exponentials and logarithms


def power(x1: Any, x2: Any) -> Tensor:
    """Computes `x1` to the power of `x2`."""
    return math.pow(*promote(x1, x2))


def float_power(x1: Any, x2: Any) -> Tensor:
    """Computes `x1` to the power of `x2`; integers give integers, as in TensorFlow."""
    return power(x1, x2)


def square(x: Any) -> Tensor:
    """Computes `x * x`."""
    return math.square(tensor_of(x))


def sqrt(x: Any) -> Tensor:
    """Computes the square root."""
    return math.sqrt(inexact(x))


def cbrt(x: Any) -> Tensor:
    """Computes the cube root, which is negative for negative numbers."""
    x = inexact(x)
    root = math.pow(tf.where(x < 0, -x, x), 1 / 3)
    return tf.where(x < 0, -root, root)


def hypot(x1: Any, x2: Any) -> Tensor:
    """Computes the square root of `x1**2 + x2**2`."""
    x1, x2 = promote_inexact(x1, x2)
    return math.sqrt(math.square(x1) + math.square(x2))


def exp(x: Any) -> Tensor:
    """Computes the exponential."""
    return math.exp(inexact(x))


def exp2(x: Any) -> Tensor:
    """Computes 2 to the power of `x`."""
    return 2.0 ** inexact(x)


def expm1(x: Any) -> Tensor:
    """Computes `exp(x) - 1`, accurately near zero."""
    return math.expm1(inexact(x))


def log(x: Any) -> Tensor:
    """Computes the natural logarithm."""
    return math.log(inexact(x))


def log2(x: Any) -> Tensor:
    """Computes the base-2 logarithm."""
    return log(x) / float(np.log(2))


def log10(x: Any) -> Tensor:
    """Computes the base-10 logarithm."""
    return log(x) / float(np.log(10))


def log1p(x: Any) -> Tensor:
    """Computes `log(1 + x)`, accurately near zero."""
    return math.log1p(inexact(x))


def logaddexp(x1: Any, x2: Any) -> Tensor:
    """Computes `log(exp(x1) + exp(x2))` without overflow.

    >>> tf.experimental.numpy.logaddexp(1000.0, 1000.0).numpy().round(3)
    np.float64(1000.693)
    """
    return shared.logaddexp(*promote_inexact(x1, x2))


def logaddexp2(x1: Any, x2: Any) -> Tensor:
    """Computes `log2(2**x1 + 2**x2)` without overflow."""
    return shared.logaddexp2(*promote_inexact(x1, x2))


# Trigonometric and hyperbolic functions


def sin(x: Any) -> Tensor:
    """Computes the sine.

    >>> tf.experimental.numpy.sin([0, 1]).numpy().round(3)
    array([0.   , 0.841])
    """
    return math.sin(inexact(x))


def cos(x: Any) -> Tensor:
    """Computes the cosine."""
    return math.cos(inexact(x))


def tan(x: Any) -> Tensor:
    """Computes the tangent."""
    return math.tan(inexact(x))


def arcsin(x: Any) -> Tensor:
    """Computes the inverse sine."""
    return math.asin(inexact(x))


def arccos(x: Any) -> Tensor:
    """Computes the inverse cosine."""
    return math.acos(inexact(x))


def arctan(x: Any) -> Tensor:
    """Computes the inverse tangent."""
    return math.atan(inexact(x))


def arctan2(x1: Any, x2: Any) -> Tensor:
    """Computes the angle of the point (`x2`, `x1`)."""
    return math.atan2(*promote(x1, x2))


def sinh(x: Any) -> Tensor:
    """Computes the hyperbolic sine."""
    return math.sinh(inexact(x))


def cosh(x: Any) -> Tensor:
    """Computes the hyperbolic cosine."""
    return math.cosh(inexact(x))


def tanh(x: Any) -> Tensor:
    """Computes the hyperbolic tangent."""
    return math.tanh(inexact(x))


def arcsinh(x: Any) -> Tensor:
    """Computes the inverse hyperbolic sine."""
    return math.asinh(inexact(x))


def arccosh(x: Any) -> Tensor:
    """Computes the inverse hyperbolic cosine."""
    return math.acosh(inexact(x))


def arctanh(x: Any) -> Tensor:
    """Computes the inverse hyperbolic tangent."""
    return math.atanh(inexact(x))


def sinc(x: Any) -> Tensor:
    """Computes `sin(pi * x) / (pi * x)`, which is 1 at zero."""
    return shared.sinc(inexact(x))


def deg2rad(x: Any) -> Tensor:
    """Converts degrees to radians."""
    return inexact(x) * (np.pi / 180.0)


def rad2deg(x: Any) -> Tensor:
    """Converts radians to degrees."""
    return inexact(x) * (180.0 / np.pi)


# Complex numbers


def real(val: Any) -> Tensor:
    """Returns the real part."""
    return math.real(array_of(val))


def imag(val: Any) -> Tensor:
    """Returns the imaginary part, which is zero for real numbers."""
    return math.imag(tensor_of(val))


def conj(x: Any) -> Tensor:
    """Returns the complex conjugate; real numbers stay unchanged."""
    return math.conj(array_of(x))


def conjugate(x: Any) -> Tensor:
    """Returns the complex conjugate; real numbers stay unchanged."""
    return conj(x)


def angle(z: Any, deg: bool = False) -> Tensor:
    """Returns the angle in radians or degrees. For real numbers it is 0 or pi.

    >>> tf.experimental.numpy.angle([1j, -1.0], deg=True).numpy()
    array([ 90., 180.])
    """
    x = inexact(z)
    y = math.angle(x)
    return rad2deg(y) if deg else y
