"""Comparing, and what is true of each element."""

from __future__ import annotations

from typing import Any

import numpy as np

import retrograde as tf
from retrograde import math
from retrograde.core.tensor import Tensor
from retrograde.experimental.numpy._inputs import inexact, promoted, tensor_of
from retrograde.ops.casting import to_dtype
from retrograde.values import dtypes

_BOOL = np.dtype(bool)
_INT32 = np.dtype(np.int32)


# Comparing


def equal(x1: Any, x2: Any) -> Tensor:
    """Whether `x1 == x2`, for each element."""
    return math.equal(*promoted(x1, x2))


def not_equal(x1: Any, x2: Any) -> Tensor:
    """Whether `x1 != x2`, for each element."""
    return math.not_equal(*promoted(x1, x2))


def _ordered(x1: Any, x2: Any) -> list[Tensor]:
    """Both, of one dtype; booleans as integers, which have an order."""
    return [to_dtype(x, _INT32) if x._spec.dtype == _BOOL else x for x in promoted(x1, x2)]


def greater(x1: Any, x2: Any) -> Tensor:
    """Whether `x1 > x2`, for each element."""
    return math.greater(*_ordered(x1, x2))


def greater_equal(x1: Any, x2: Any) -> Tensor:
    """Whether `x1 >= x2`, for each element."""
    return math.greater_equal(*_ordered(x1, x2))


def less(x1: Any, x2: Any) -> Tensor:
    """Whether `x1 < x2`, for each element."""
    return math.less(*_ordered(x1, x2))


def less_equal(x1: Any, x2: Any) -> Tensor:
    """Whether `x1 <= x2`, for each element."""
    return math.less_equal(*_ordered(x1, x2))


def array_equal(a1: Any, a2: Any) -> Tensor:
    """Whether two arrays have the same shape and the same elements."""
    x1, x2 = promoted(a1, a2)
    if x1._spec.shape != x2._spec.shape:
        return tf.zeros((), bool)
    return math.reduce_all(math.equal(x1, x2))


def isclose(
    a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False
) -> Tensor:
    """Whether `a` is as close to `b` as `atol + rtol * |b|`; integers, whether they are equal.

    >>> tf.experimental.numpy.isclose([1.0, 2.0], [1.0 + 1e-9, 2.1]).numpy()
    array([ True, False])
    """
    a, b = promoted(a, b)
    if a._spec.dtype not in dtypes.INEXACT:
        return math.equal(a, b)
    near = math.abs(a - b) <= atol + rtol * math.abs(b)
    return near | (math.is_nan(a) & math.is_nan(b)) if equal_nan else near


def allclose(
    a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False
) -> Tensor:
    """Whether all elements are close, as `isclose` says."""
    return math.reduce_all(isclose(a, b, rtol, atol, equal_nan))


# Booleans


def logical_and(x1: Any, x2: Any) -> Tensor:
    """Whether both are true; numbers are true unless they are zero."""
    return math.logical_and(tensor_of(x1, _BOOL), tensor_of(x2, _BOOL))


def logical_or(x1: Any, x2: Any) -> Tensor:
    """Whether one is true, or both; numbers are true unless they are zero."""
    return math.logical_or(tensor_of(x1, _BOOL), tensor_of(x2, _BOOL))


def logical_xor(x1: Any, x2: Any) -> Tensor:
    """Whether just one is true; numbers are true unless they are zero."""
    return math.logical_xor(tensor_of(x1, _BOOL), tensor_of(x2, _BOOL))


def logical_not(x: Any) -> Tensor:
    """Whether `x` is not true; numbers are true unless they are zero."""
    return math.logical_not(tensor_of(x, _BOOL))


# What is true of an element


def isnan(x: Any) -> Tensor:
    """Whether elements are nan."""
    return math.is_nan(inexact(x))


def isfinite(x: Any) -> Tensor:
    """Whether elements are neither infinite nor nan."""
    return math.is_finite(inexact(x))


def isinf(x: Any) -> Tensor:
    """Whether elements are infinite."""
    return math.is_inf(inexact(x))


def isneginf(x: Any) -> Tensor:
    """Whether elements are negative and infinite."""
    return inexact(x) == -np.inf


def isposinf(x: Any) -> Tensor:
    """Whether elements are positive and infinite."""
    return inexact(x) == np.inf


def iscomplex(x: Any) -> Tensor:
    """Whether elements have an imaginary part other than zero."""
    return math.imag(tensor_of(x)) != 0


def isreal(x: Any) -> Tensor:
    """Whether elements have no imaginary part, or one of zero."""
    return math.imag(tensor_of(x)) == 0


def iscomplexobj(x: Any) -> bool:
    """Whether `x` has a dtype of complex numbers."""
    return tensor_of(x)._spec.dtype in dtypes.COMPLEX


def isrealobj(x: Any) -> bool:
    """Whether `x` has another dtype than one of complex numbers."""
    return not iscomplexobj(x)
