"""Functions of each element: arithmetic, rounding, powers, angles, the parts of complex numbers."""

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
    promoted,
    promoted_inexact,
    refuse,
    tensor_of,
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
    """`x1 + x2`; of booleans, whether one is true.

    >>> tf.experimental.numpy.add(tf.constant([1, 2]), 0.5).numpy()
    array([1.5, 2.5])
    """
    return numeric_or_logical(ar.add, *promoted(x1, x2))


def subtract(x1: Any, x2: Any) -> Tensor:
    """`x1 - x2`."""
    return math.subtract(*promoted(x1, x2))


def multiply(x1: Any, x2: Any) -> Tensor:
    """`x1 * x2`; of booleans, whether both are true."""
    return numeric_or_logical(ar.multiply, *promoted(x1, x2))


def true_divide(x1: Any, x2: Any) -> Tensor:
    """`x1 / x2`; integers and booleans become floats."""
    x1, x2 = promoted(x1, x2)
    if is_bool(x1):
        x1, x2 = to_dtype(x1, FLOAT), to_dtype(x2, FLOAT)
    return math.truediv(x1, x2)


def divide(x1: Any, x2: Any) -> Tensor:
    """`x1 / x2`; integers and booleans become floats."""
    return true_divide(x1, x2)


def _divisible(x1: Any, x2: Any) -> list[Tensor]:
    """Both, of one dtype; booleans as int8."""
    return [to_dtype(x, _INT8) if is_bool(x) else x for x in promoted(x1, x2)]


def floor_divide(x1: Any, x2: Any) -> Tensor:
    """`x1 / x2`, rounded down."""
    return math.floordiv(*_divisible(x1, x2))


def mod(x1: Any, x2: Any) -> Tensor:
    """What remains of `x1` after division by `x2`; it has the sign of `x2`."""
    return math.floormod(*_divisible(x1, x2))


def remainder(x1: Any, x2: Any) -> Tensor:
    """What remains of `x1` after division by `x2`; it has the sign of `x2`."""
    return mod(x1, x2)


def divmod(x1: Any, x2: Any) -> tuple[Tensor, Tensor]:
    """The quotient, rounded down, and what remains."""
    return floor_divide(x1, x2), mod(x1, x2)


def reciprocal(x: Any) -> Tensor:
    """`1 / x`."""
    return math.reciprocal(tensor_of(x))


def negative(x: Any) -> Tensor:
    """`-x`."""
    return math.negative(tensor_of(x))


def positive(x: Any) -> Tensor:
    """`x` itself."""
    return array_of(x)


def gcd(x1: Any, x2: Any) -> Tensor:
    """The greatest common divisor.

    >>> tf.experimental.numpy.gcd([12, 0], [18, 5]).numpy()
    array([6, 5])
    """
    return apply(ar.gcd, _integers(x1, x2, "gcd"))


def lcm(x1: Any, x2: Any) -> Tensor:
    """The least common multiple."""
    return apply(ar.lcm, _integers(x1, x2, "lcm"))


def _integers(x1: Any, x2: Any, op_name: str) -> tuple[Tensor, ...]:
    x1, x2 = promoted(x1, x2)
    if x1._spec.dtype not in dtypes.INTEGER:
        raise ValueError(f"{op_name}: expected integers. Received: {x1.dtype.name}.")
    return x1, x2


def bitwise_and(x1: Any, x2: Any) -> Tensor:
    """The bits that are set in both."""
    return numeric_or_logical(ar.bitwise_and, *promoted(x1, x2))


def bitwise_or(x1: Any, x2: Any) -> Tensor:
    """The bits that are set in one of them, or in both."""
    return numeric_or_logical(ar.bitwise_or, *promoted(x1, x2))


def bitwise_xor(x1: Any, x2: Any) -> Tensor:
    """The bits that are set in just one of them."""
    return numeric_or_logical(ar.bitwise_xor, *promoted(x1, x2))


def bitwise_not(x: Any) -> Tensor:
    """The bits that are not set."""
    return numeric_or_logical(ar.invert, tensor_of(x))


# Order and rounding


def maximum(x1: Any, x2: Any) -> Tensor:
    """The greater of the two; of booleans, whether one is true."""
    number = isinstance(x2, numbers.Real) and not isinstance(x2, bool)
    if number and x2 == 0 and isinstance(x1, Tensor) and not is_bool(x1):
        return nn.relu(x1)  # whose dtype is that of x1, and whose derivative at 0 is 0
    return numeric_or_logical(ar.maximum, *promoted(x1, x2))


def minimum(x1: Any, x2: Any) -> Tensor:
    """The lesser of the two; of booleans, whether both are true."""
    return numeric_or_logical(ar.minimum, *promoted(x1, x2))


def clip(a: Any, a_min: Any, a_max: Any) -> Tensor:
    """`a` between `a_min` and `a_max`, one of which may be `None`."""
    if a_min is None and a_max is None:
        raise ValueError("clip: expected at least one of `a_min` and `a_max`.")
    if a_min is None:
        return minimum(a, a_max)
    if a_max is None:
        return maximum(a, a_min)
    return clipping.clip_by_value(*broadcast_all(promoted(a, a_min, a_max)))


def abs(x: Any) -> Tensor:
    """The absolute value, which is real for complex numbers too."""
    return math.abs(tensor_of(x))


def absolute(x: Any) -> Tensor:
    """The absolute value, which is real for complex numbers too."""
    return abs(x)


def fabs(x: Any) -> Tensor:
    """The absolute value."""
    return abs(x)


def sign(x: Any, out: Any = None, where: Any = None, **kwargs: Any) -> Tensor:
    """-1, 0 or 1 as `x` is negative, zero or positive; of complex numbers `x / |x|`."""
    for name, value in {"out": out, "where": where, **kwargs}.items():
        if value is not None:
            raise refuse(name, "sign")
    return math.sign(tensor_of(x))


def signbit(x: Any) -> Tensor:
    """Whether `x` is less than zero."""
    x = tensor_of(x)
    return tf.zeros_like(x) if is_bool(x) else x < 0


def heaviside(x1: Any, x2: Any) -> Tensor:
    """0 where `x1` is negative, 1 where it is positive, `x2` where it is zero."""
    return shared.heaviside(*promoted_inexact(x1, x2))


def ceil(x: Any) -> Tensor:
    """`x`, rounded up."""
    return math.ceil(inexact(x))


def floor(x: Any) -> Tensor:
    """`x`, rounded down."""
    return math.floor(inexact(x))


def fix(x: Any) -> Tensor:
    """`x`, rounded towards zero."""
    return shared.trunc(inexact(x))


def around(a: Any, decimals: int = 0) -> Tensor:
    """`a`, rounded to some decimals; for a negative number of them, to tens, hundreds, ….

    >>> tf.experimental.numpy.around([1.25, 2.37], 1).numpy()
    array([1.2, 2.4])
    """
    own = tensor_of(a)
    return to_dtype(shared.around(inexact(own), decimals), own._spec.dtype)


def round(a: Any, decimals: int = 0) -> Tensor:
    """`a`, rounded to some decimals; for a negative number of them, to tens, hundreds, …."""
    return around(a, decimals)


def nextafter(x1: Any, x2: Any) -> Tensor:
    """The next float after `x1`, in the direction of `x2`."""
    return math.nextafter(*promoted(x1, x2))


def diff(a: Any, n: int = 1, axis: int = -1) -> Tensor:
    """The differences of neighbours along `axis`, taken `n` times.

    >>> tf.experimental.numpy.diff([1, 3, 7]).numpy()
    array([2, 4])
    """
    return shared.diff(array_of(a), integer(n, "diff: n"), axis)


# Powers, exponentials and logarithms


def power(x1: Any, x2: Any) -> Tensor:
    """`x1` to the power of `x2`."""
    return math.pow(*promoted(x1, x2))


def float_power(x1: Any, x2: Any) -> Tensor:
    """`x1` to the power of `x2`; of integers an integer, as in TensorFlow."""
    return power(x1, x2)


def square(x: Any) -> Tensor:
    """`x * x`."""
    return math.square(tensor_of(x))


def sqrt(x: Any) -> Tensor:
    """The square root."""
    return math.sqrt(inexact(x))


def cbrt(x: Any) -> Tensor:
    """The cube root, negative for negative numbers."""
    x = inexact(x)
    root = math.pow(tf.where(x < 0, -x, x), 1 / 3)
    return tf.where(x < 0, -root, root)


def hypot(x1: Any, x2: Any) -> Tensor:
    """The square root of `x1**2 + x2**2`."""
    x1, x2 = promoted_inexact(x1, x2)
    return math.sqrt(math.square(x1) + math.square(x2))


def exp(x: Any) -> Tensor:
    """e to the power of `x`."""
    return math.exp(inexact(x))


def exp2(x: Any) -> Tensor:
    """2 to the power of `x`."""
    return 2.0 ** inexact(x)


def expm1(x: Any) -> Tensor:
    """`exp(x) - 1`, precise near zero."""
    return math.expm1(inexact(x))


def log(x: Any) -> Tensor:
    """The natural logarithm."""
    return math.log(inexact(x))


def log2(x: Any) -> Tensor:
    """The logarithm to base 2."""
    return log(x) / float(np.log(2))


def log10(x: Any) -> Tensor:
    """The logarithm to base 10."""
    return log(x) / float(np.log(10))


def log1p(x: Any) -> Tensor:
    """`log(1 + x)`, precise near zero."""
    return math.log1p(inexact(x))


def logaddexp(x1: Any, x2: Any) -> Tensor:
    """`log(exp(x1) + exp(x2))`, without overflow.

    >>> tf.experimental.numpy.logaddexp(1000.0, 1000.0).numpy().round(3)
    np.float64(1000.693)
    """
    return shared.logaddexp(*promoted_inexact(x1, x2))


def logaddexp2(x1: Any, x2: Any) -> Tensor:
    """`log2(2**x1 + 2**x2)`, without overflow."""
    return shared.logaddexp2(*promoted_inexact(x1, x2))


# Angles and hyperbolic functions


def sin(x: Any) -> Tensor:
    """The sine.

    >>> tf.experimental.numpy.sin([0, 1]).numpy().round(3)
    array([0.   , 0.841])
    """
    return math.sin(inexact(x))


def cos(x: Any) -> Tensor:
    """The cosine."""
    return math.cos(inexact(x))


def tan(x: Any) -> Tensor:
    """The tangent."""
    return math.tan(inexact(x))


def arcsin(x: Any) -> Tensor:
    """The inverse of the sine."""
    return math.asin(inexact(x))


def arccos(x: Any) -> Tensor:
    """The inverse of the cosine."""
    return math.acos(inexact(x))


def arctan(x: Any) -> Tensor:
    """The inverse of the tangent."""
    return math.atan(inexact(x))


def arctan2(x1: Any, x2: Any) -> Tensor:
    """The angle of the point with height `x1` and breadth `x2`."""
    return math.atan2(*promoted(x1, x2))


def sinh(x: Any) -> Tensor:
    """The hyperbolic sine."""
    return math.sinh(inexact(x))


def cosh(x: Any) -> Tensor:
    """The hyperbolic cosine."""
    return math.cosh(inexact(x))


def tanh(x: Any) -> Tensor:
    """The hyperbolic tangent."""
    return math.tanh(inexact(x))


def arcsinh(x: Any) -> Tensor:
    """The inverse of the hyperbolic sine."""
    return math.asinh(inexact(x))


def arccosh(x: Any) -> Tensor:
    """The inverse of the hyperbolic cosine."""
    return math.acosh(inexact(x))


def arctanh(x: Any) -> Tensor:
    """The inverse of the hyperbolic tangent."""
    return math.atanh(inexact(x))


def sinc(x: Any) -> Tensor:
    """`sin(pi * x) / (pi * x)`, which is 1 at zero."""
    return shared.sinc(inexact(x))


def deg2rad(x: Any) -> Tensor:
    """Degrees as radians."""
    return inexact(x) * (np.pi / 180.0)


def rad2deg(x: Any) -> Tensor:
    """Radians as degrees."""
    return inexact(x) * (180.0 / np.pi)


# Parts of complex numbers


def real(val: Any) -> Tensor:
    """The real part."""
    return math.real(array_of(val))


def imag(val: Any) -> Tensor:
    """The imaginary part, which is zero for real numbers."""
    return math.imag(tensor_of(val))


def conj(x: Any) -> Tensor:
    """The complex conjugate; real numbers stay as they are."""
    return math.conj(array_of(x))


def conjugate(x: Any) -> Tensor:
    """The complex conjugate; real numbers stay as they are."""
    return conj(x)


def angle(z: Any, deg: bool = False) -> Tensor:
    """The angle of complex numbers, in radians or degrees; of real ones that is 0 or pi.

    >>> tf.experimental.numpy.angle([1j, -1.0], deg=True).numpy()
    array([ 90., 180.])
    """
    x = inexact(z)
    y = math.angle(x)
    return rad2deg(y) if deg else y
