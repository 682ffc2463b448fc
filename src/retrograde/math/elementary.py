"""Elementary functions, rounding and complex numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from retrograde.core.apply import apply
from retrograde.core.tensor import Tensor
from retrograde.math._inputs import binary, dtype_name, unary
from retrograde.ops import arithmetic as ar
from retrograde.ops import complex_numbers as cx
from retrograde.ops import elementary as el
from retrograde.ops._families import conjugate
from retrograde.ops.casting import identity, ones_like, zeros_like
from retrograde.ops.conversion import as_tensor
from retrograde.ops.operators import absolute_of
from retrograde.values import dtypes
from retrograde.values.composites import dispatched


def square(x: Any, name: str | None = None) -> Tensor:
    """Computes `x * x`.

    >>> tf.math.square([-2.0, 3.0]).numpy()
    array([4., 9.], dtype=float32)
    """
    return unary(ar.square, x)


def sqrt(x: Any, name: str | None = None) -> Tensor:
    """Computes the square root; NaN for negative `x`.

    >>> tf.math.sqrt([4.0, 9.0]).numpy()
    array([2., 3.], dtype=float32)
    """
    return unary(el.sqrt, x)


def rsqrt(x: Any, name: str | None = None) -> Tensor:
    """Computes `1 / sqrt(x)`."""
    return unary(el.rsqrt, x)


def reciprocal(x: Any, name: str | None = None) -> Tensor:
    """Computes `1 / x`."""
    return unary(ar.reciprocal, x)


@dispatched
def reciprocal_no_nan(x: Any, name: str | None = None) -> Tensor:
    """Computes `1 / x`, and returns 0 where `x` is 0.

    >>> tf.math.reciprocal_no_nan([0.0, 4.0]).numpy()
    array([0.  , 0.25], dtype=float32)
    """
    x = as_tensor(x)
    return apply(ar.divide_no_nan, (ones_like(x), x))


def exp(x: Any, name: str | None = None) -> Tensor:
    """Computes the exponential of `x`.

    >>> tf.math.exp([0.0, 1.0]).numpy().round(3)
    array([1.   , 2.718], dtype=float32)
    """
    return unary(el.exp, x)


def expm1(x: Any, name: str | None = None) -> Tensor:
    """Computes `exp(x) - 1`, accurately for small `x`."""
    return unary(el.expm1, x)


def log(x: Any, name: str | None = None) -> Tensor:
    """Computes the natural logarithm."""
    return unary(el.log, x)


def log1p(x: Any, name: str | None = None) -> Tensor:
    """Computes `log(1 + x)`, accurately for small `x`."""
    return unary(el.log1p, x)


def sigmoid(x: Any, name: str | None = None) -> Tensor:
    """Computes `1 / (1 + exp(-x))`.

    >>> tf.math.sigmoid([-100.0, 0.0, 100.0]).numpy()
    array([0. , 0.5, 1. ], dtype=float32)
    """
    return unary(el.sigmoid, x)


@dispatched
def log_sigmoid(x: Any, name: str | None = None) -> Tensor:
    """Computes `log(sigmoid(x))` without overflow."""
    return -unary(el.softplus, -as_tensor(x))


def softplus(features: Any, name: str | None = None) -> Tensor:
    """Computes `log(1 + exp(x))` without overflow."""
    return unary(el.softplus, features)


def softsign(features: Any, name: str | None = None) -> Tensor:
    """Computes `x / (1 + |x|)`.

    >>> tf.math.softsign([-3.0, 0.0, 1.0]).numpy()
    array([-0.75,  0.  ,  0.5 ], dtype=float32)
    """
    return unary(el.softsign, features)


def sin(x: Any, name: str | None = None) -> Tensor:
    """Computes the sine of `x` in radians."""
    return unary(el.sin, x)


def cos(x: Any, name: str | None = None) -> Tensor:
    """Computes the cosine of `x` in radians."""
    return unary(el.cos, x)


def tan(x: Any, name: str | None = None) -> Tensor:
    """Computes the tangent of `x` in radians."""
    return unary(el.tan, x)


def asin(x: Any, name: str | None = None) -> Tensor:
    """Computes the inverse sine, between -pi/2 and pi/2."""
    return unary(el.asin, x)


def acos(x: Any, name: str | None = None) -> Tensor:
    """Computes the inverse cosine, between 0 and pi."""
    return unary(el.acos, x)


def atan(x: Any, name: str | None = None) -> Tensor:
    """Computes the inverse tangent, between -pi/2 and pi/2."""
    return unary(el.atan, x)


def atan2(y: Any, x: Any, name: str | None = None) -> Tensor:
    """Computes the angle of the point (`x`, `y`), between -pi and pi.

    >>> tf.math.atan2([1.0], [-1.0]).numpy()
    array([2.3561945], dtype=float32)
    """
    return binary(el.atan2, y, x)


def sinh(x: Any, name: str | None = None) -> Tensor:
    """Computes the hyperbolic sine."""
    return unary(el.sinh, x)


def cosh(x: Any, name: str | None = None) -> Tensor:
    """Computes the hyperbolic cosine."""
    return unary(el.cosh, x)


def tanh(x: Any, name: str | None = None) -> Tensor:
    """Computes the hyperbolic tangent."""
    return unary(el.tanh, x)


def asinh(x: Any, name: str | None = None) -> Tensor:
    """Computes the inverse hyperbolic sine."""
    return unary(el.asinh, x)


def acosh(x: Any, name: str | None = None) -> Tensor:
    """Computes the non-negative inverse hyperbolic cosine; NaN below 1."""
    return unary(el.acosh, x)


def atanh(x: Any, name: str | None = None) -> Tensor:
    """Computes the inverse hyperbolic tangent."""
    return unary(el.atanh, x)


def erf(x: Any, name: str | None = None) -> Tensor:
    """Computes the error function: 2/sqrt(pi) times the integral of exp(-t*t) from 0 to `x`."""
    return unary(el.erf, x)


@dispatched
def abs(x: Any, name: str | None = None) -> Tensor:
    """Computes the absolute value, which is real for complex `x` too. Its gradient at 0 is 0.

    >>> tf.math.abs([-2.0, 3.0]).numpy(), tf.math.abs(3 + 4j).numpy()
    (array([2., 3.], dtype=float32), np.float64(5.0))
    """
    return absolute_of(as_tensor(x))


def sign(x: Any, name: str | None = None) -> Tensor:
    """Returns -1, 0 or 1, or z / |z| for complex z. Its gradient is 0."""
    return unary(ar.sign, x)


# Rounding: not differentiable


def floor(x: Any, name: str | None = None) -> Tensor:
    """Rounds down to an integer, as a float."""
    return unary(el.floor, x)


def ceil(x: Any, name: str | None = None) -> Tensor:
    """Rounds up to an integer, as a float."""
    return unary(el.ceil, x)


@dispatched
def round(x: Any, name: str | None = None) -> Tensor:
    """Rounds to the nearest integer, half to even, as a float. Integers stay unchanged.

    >>> tf.math.round([0.5, 1.5, 2.5]).numpy()
    array([0., 2., 2.], dtype=float32)
    """
    x = as_tensor(x)
    return apply(identity if x._spec.dtype.kind in "iu" else el.round_, (x,))


def rint(x: Any, name: str | None = None) -> Tensor:
    """Rounds to the nearest integer, half to even, as a float."""
    return unary(el.rint, x)


def is_nan(x: Any, name: str | None = None) -> Tensor:
    """Returns whether each element is NaN."""
    return unary(ar.is_nan, x)


def is_inf(x: Any, name: str | None = None) -> Tensor:
    """Returns whether each element is infinite."""
    return unary(ar.is_inf, x)


def is_finite(x: Any, name: str | None = None) -> Tensor:
    """Returns whether each element is finite: neither Inf nor NaN.

    >>> tf.math.is_finite([1.0, np.inf, np.nan]).numpy()
    array([ True, False, False])
    """
    return unary(ar.is_finite, x)


# Complex numbers


@dispatched
def real(input: Any, name: str | None = None) -> Tensor:
    """Returns the real part; real numbers stay unchanged."""
    x = as_tensor(input)
    return apply(cx.real if x._spec.dtype.kind == "c" else identity, (_numeric(x, "real"),))


@dispatched
def imag(input: Any, name: str | None = None) -> Tensor:
    """Returns the imaginary part, which is 0 for real numbers.

    >>> tf.math.imag([1 + 2j, 3 - 4j]).numpy()
    array([ 2., -4.])
    """
    x = as_tensor(input)
    return apply(cx.imag if x._spec.dtype.kind == "c" else zeros_like, (x,))


@dispatched
def conj(x: Any, name: str | None = None) -> Tensor:
    """Returns the complex conjugate; real numbers stay unchanged."""
    x = as_tensor(x)
    return apply(conjugate if x._spec.dtype.kind == "c" else identity, (_numeric(x, "conj"),))


@dispatched
def angle(input: Any, name: str | None = None) -> Tensor:
    """Returns the angle of complex numbers, from -pi to pi. It is 0 or pi for real numbers.

    >>> tf.math.angle([1 + 1j, -1 + 0j]).numpy()
    array([0.78539816, 3.14159265])
    """
    x = as_tensor(input)
    dtype = x._spec.dtype
    if dtype.kind == "c":
        return apply(el.atan2, (apply(cx.imag, (x,)), apply(cx.real, (x,))))
    if dtype not in dtypes.FLOATING:
        raise TypeError(
            f"angle: dtype {dtype_name(x)} has no angle. Expected a float or complex dtype."
        )
    pi, zero = Tensor(dtype.type(math.pi)), Tensor(np.zeros((), dtype)[()])
    return apply(ar.select, (x < zero, pi, zero))


def _numeric(x: Tensor, op_name: str) -> Tensor:
    if x._spec.dtype not in dtypes.NUMERIC:
        raise TypeError(f"{op_name}: expected a numeric tensor. Received: dtype {dtype_name(x)}.")
    return x
