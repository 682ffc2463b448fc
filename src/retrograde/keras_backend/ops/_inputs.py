"""Converts arguments to tensors and promotes their dtypes by Keras's rules."""

from __future__ import annotations

import functools
import operator
from typing import Any

import numpy as np
from keras.src.backend import config
from keras.src.backend.common import dtypes as keras_dtypes

from retrograde.core.tensor import Tensor, wrap
from retrograde.keras_backend.conversion import convert_to_tensor, numpy_dtype
from retrograde.ops.casting import to_dtype
from retrograde.shape_inference.abstract_array import is_abstract
from retrograde.values import dtypes
from retrograde.values.shapes import TensorShape, normalize_axis

BOOL = np.dtype(bool)
INT32 = np.dtype(np.int32)
INT64 = np.dtype(np.int64)
UINT32 = np.dtype(np.uint32)
FLOAT32 = np.dtype(np.float32)
FLOAT64 = np.dtype(np.float64)

_SUM_DTYPES = {"b": INT32, "i": INT32, "u": UINT32}


# Dtypes


def floatx() -> np.dtype:
    """Returns Keras's default float dtype."""
    return numpy_dtype(config.floatx())


def _key(kind: Any) -> Any:
    """Returns Keras's name of a dtype; returns Python types unchanged."""
    return kind if isinstance(kind, type) else dtypes.of(kind).name


@functools.cache
def _cached_common_dtype(floatx: str, *kinds: Any) -> np.dtype:
    """Returns the promoted dtype. `floatx` is part of the cache key only."""
    return numpy_dtype(keras_dtypes.result_type(*map(_key, kinds)))


def common_dtype(*kinds: Any) -> np.dtype:
    """Returns the promoted dtype of `kinds`: NumPy dtypes, or Python's `int` and `float`."""
    return _cached_common_dtype(config.floatx(), *kinds)


def sum_dtype(dtype: np.dtype) -> np.dtype:
    """Returns the dtype of a Keras sum: at least 32 bits for integers and booleans."""
    return _SUM_DTYPES[dtype.kind] if dtype.kind in _SUM_DTYPES and dtype.itemsize < 4 else dtype


# Tensors


def tensor(x: Any) -> Tensor:
    """Converts `x` to a tensor."""
    return x if isinstance(x, Tensor) else convert_to_tensor(x)


def of_dtype(x: Any, dtype: np.dtype) -> Tensor:
    """Converts `x` to a tensor of `dtype`."""
    if isinstance(x, (int, float)):
        return wrap(np.asarray(x).astype(dtype))
    return to_dtype(tensor(x), dtype)


def _kind(x: Any) -> Any:
    """Returns the type for dtype promotion: a tensor's dtype or a number's Python type."""
    if isinstance(x, Tensor):
        return x._spec.dtype
    return next(kind for kind in (bool, int, float) if isinstance(x, kind))


def _tensor_or_number(x: Any) -> Any:
    return x if isinstance(x, (Tensor, int, float)) else convert_to_tensor(x)


def promote(*xs: Any) -> list[Tensor]:
    """Converts `xs` to tensors of their promoted dtype. Python numbers are weakly typed."""
    xs = [_tensor_or_number(x) for x in xs]
    kinds = [_kind(x) for x in xs]
    if len(set(kinds)) == 1 and isinstance(kinds[0], np.dtype):
        return xs
    dtype = common_dtype(*kinds)
    return [of_dtype(x, dtype) for x in xs]


def pair(x1: Any, x2: Any) -> tuple[Tensor, Tensor]:
    """Converts two values to tensors of one dtype. The fast paths cover the common cases."""
    x1, x2 = _tensor_or_number(x1), _tensor_or_number(x2)
    if isinstance(x1, Tensor):
        dtype = x1._spec.dtype
        if isinstance(x2, Tensor):
            if x2._spec.dtype is dtype:
                return x1, x2
        elif dtype in dtypes.FLOATING:
            return x1, wrap(dtype.type(x2))
    elif isinstance(x2, Tensor) and x2._spec.dtype in dtypes.FLOATING:
        return wrap(x2._spec.dtype.type(x1)), x2
    x1, x2 = promote(x1, x2)
    return x1, x2


def inexact(x: Any) -> Tensor:
    """Converts `x` to a floating-point or complex tensor; integers and booleans become `floatx`."""
    x = tensor(x)
    return x if x._spec.dtype in dtypes.INEXACT else to_dtype(x, floatx())


def inexact_pair(x1: Any, x2: Any) -> tuple[Tensor, Tensor]:
    """Converts two values to tensors of one floating-point or complex dtype."""
    x1, x2 = pair(x1, x2)
    return inexact(x1), inexact(x2)


def numeric(x: Any) -> Tensor:
    """Converts `x` to a numeric tensor; booleans become int32."""
    x = tensor(x)
    return to_dtype(x, INT32) if x._spec.dtype.kind == "b" else x


def numeric_pair(x1: Any, x2: Any) -> tuple[Tensor, Tensor]:
    """Converts two values to tensors of one numeric dtype; booleans become int32."""
    x1, x2 = pair(x1, x2)
    return numeric(x1), numeric(x2)


def booleans(x: Any) -> Tensor:
    """Converts `x` to a boolean tensor; nonzero numbers are true."""
    x = tensor(x)
    return x if x._spec.dtype.kind == "b" else to_dtype(x, BOOL)


def boolean_pair(x1: Any, x2: Any) -> tuple[Tensor, Tensor]:
    """Converts two values to boolean tensors."""
    return booleans(x1), booleans(x2)


def at_least_float32(x: Tensor) -> Tensor:
    """Casts a half-precision tensor to float32."""
    return to_dtype(x, FLOAT32) if x._spec.dtype.itemsize < 4 else x


# Shapes and axes


def to_int(value: Any) -> int:
    """Converts an integer or an integer tensor to a Python int."""
    if is_abstract(value):
        return value if isinstance(value, int) else value._spec.item()
    return value if type(value) is int else operator.index(value)


def to_ints(value: Any) -> tuple[int, ...]:
    """Converts one or several integers or integer tensors to a tuple of Python ints."""
    if type(value) is int:
        return (value,)
    if isinstance(value, (list, tuple, TensorShape)):
        return tuple(map(to_int, value))
    if is_abstract(value):
        return (value,) if isinstance(value, int) else tuple(value._spec.integers())
    array = np.asarray(value)
    return tuple(array.reshape(-1).tolist()) if array.dtype.kind in "iu" else (to_int(value),)


def canonicalize_axis(axis: Any, ndim: int, op_name: str) -> int:
    """Returns the axis as a non-negative number. `op_name` is the operation for the error."""
    return normalize_axis(axis, ndim, op_name, ValueError)


def canonicalize_axes(axis: Any, ndim: int, op_name: str) -> tuple[int, ...]:
    """Returns the sorted axes as non-negative numbers. `None` means all axes."""
    if axis is None:
        return tuple(range(ndim))
    if type(axis) is int:
        return (canonicalize_axis(axis, ndim, op_name),)
    return tuple(sorted(canonicalize_axis(a, ndim, op_name) for a in to_ints(axis)))


def shape_of(x: Tensor) -> tuple[int, ...]:
    """Returns the shape as a tuple."""
    return tuple(x._spec.shape)
