"""Comparison, logic and classification of elements."""

from __future__ import annotations

from typing import Any

import numpy as np

import retrograde as tf
from retrograde import math
from retrograde.core.tensor import Tensor
from retrograde.experimental.numpy._inputs import inexact, promote, tensor_of
from retrograde.ops.casting import to_dtype
from retrograde.values import dtypes

_BOOL = np.dtype(bool)
_INT32 = np.dtype(np.int32)


# Comparison


def equal(x1: Any, x2: Any) -> Tensor:
    """Returns `x1 == x2` elementwise."""
    return math.equal(*promote(x1, x2))


def not_equal(x1: Any, x2: Any) -> Tensor:
    """Returns `x1 != x2` elementwise."""
    return math.not_equal(*promote(x1, x2))


def _promote_ordered(x1: Any, x2: Any) -> list[Tensor]:
    """Promotes both to a common dtype; booleans become integers, which are ordered."""
    return [to_dtype(x, _INT32) if x._spec.dtype == _BOOL else x for x in promote(x1, x2)]


def greater(x1: Any, x2: Any) -> Tensor:
    """Returns `x1 > x2` elementwise."""
    return math.greater(*_promote_ordered(x1, x2))


def greater_equal(x1: Any, x2: Any) -> Tensor:
    """Returns `x1 >= x2` elementwise."""
    return math.greater_equal(*_promote_ordered(x1, x2))


def less(x1: Any, x2: Any) -> Tensor:
    """Returns `x1 < x2` elementwise."""
    return math.less(*_promote_ordered(x1, x2))


def less_equal(x1: Any, x2: Any) -> Tensor:
    """Returns `x1 <= x2` elementwise."""
    return math.less_equal(*_promote_ordered(x1, x2))


def array_equal(a1: Any, a2: Any) -> Tensor:
    """Returns whether two arrays have the same shape and elements."""
    x1, x2 = promote(a1, a2)
    if x1._spec.shape != x2._spec.shape:
        return tf.zeros((), bool)
    return math.reduce_all(math.equal(x1, x2))


def isclose(
    a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False
) -> Tensor:
    """Returns whether `|a - b| <= atol + rtol * |b|`; for integers, whether they are equal.

    >>> tf.experimental.numpy.isclose([1.0, 2.0], [1.0 + 1e-9, 2.1]).numpy()
    array([ True, False])
    """
    a, b = promote(a, b)
    if a._spec.dtype not in dtypes.INEXACT:
        return math.equal(a, b)
    near = math.abs(a - b) <= atol + rtol * math.abs(b)
    return near | (math.is_nan(a) & math.is_nan(b)) if equal_nan else near


def allclose(
    a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False
) -> Tensor:
    """Returns whether all elements are close; see `isclose`."""
    return math.reduce_all(isclose(a, b, rtol, atol, equal_nan))


# Booleans


def logical_and(x1: Any, x2: Any) -> Tensor:
    """Returns the logical and; nonzero numbers are true."""
    return math.logical_and(tensor_of(x1, _BOOL), tensor_of(x2, _BOOL))


def logical_or(x1: Any, x2: Any) -> Tensor:
    """Returns the logical or; nonzero numbers are true."""
    return math.logical_or(tensor_of(x1, _BOOL), tensor_of(x2, _BOOL))


def logical_xor(x1: Any, x2: Any) -> Tensor:
    """Returns the logical exclusive or; nonzero numbers are true."""
    return math.logical_xor(tensor_of(x1, _BOOL), tensor_of(x2, _BOOL))


def logical_not(x: Any) -> Tensor:
    """Returns the logical not; nonzero numbers are true."""
    return math.logical_not(tensor_of(x, _BOOL))


# Classification


def isnan(x: Any) -> Tensor:
    """Returns whether elements are NaN."""
    return math.is_nan(inexact(x))


def isfinite(x: Any) -> Tensor:
    """Returns whether elements are finite."""
    return math.is_finite(inexact(x))


def isinf(x: Any) -> Tensor:
    """Returns whether elements are infinite."""
    return math.is_inf(inexact(x))


def isneginf(x: Any) -> Tensor:
    """Returns whether elements are -Inf."""
    return inexact(x) == -np.inf


def isposinf(x: Any) -> Tensor:
    """Returns whether elements are +Inf."""
    return inexact(x) == np.inf


def iscomplex(x: Any) -> Tensor:
    """Returns whether elements have a nonzero imaginary part."""
    return math.imag(tensor_of(x)) != 0


def isreal(x: Any) -> Tensor:
    """Returns whether elements have a zero imaginary part."""
    return math.imag(tensor_of(x)) == 0


def iscomplexobj(x: Any) -> bool:
    """Returns whether `x` has a complex dtype."""
    return tensor_of(x)._spec.dtype in dtypes.COMPLEX


def isrealobj(x: Any) -> bool:
    """Returns whether `x` does not have a complex dtype."""
    return not iscomplexobj(x)
