"""Conversion of arguments: to tensors, of the dtype that Keras's rules give."""

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
from retrograde.values import dtypes
from retrograde.values.shapes import normalize_axis

BOOL = np.dtype(bool)
INT32 = np.dtype(np.int32)
INT64 = np.dtype(np.int64)
UINT32 = np.dtype(np.uint32)
FLOAT32 = np.dtype(np.float32)
FLOAT64 = np.dtype(np.float64)

_SHORT = {"b": INT32, "i": INT32, "u": UINT32}


# Dtypes


def floatx() -> np.dtype:
    """The dtype that Keras gives to floats where nothing else decides."""
    return numpy_dtype(config.floatx())


def _key(kind: Any) -> Any:
    """A dtype as Keras names it; Python's types as they are."""
    return kind if isinstance(kind, type) else dtypes.of(kind).name


@functools.cache
def _meeting(floatx: str, *kinds: Any) -> np.dtype:
    """The dtype in which values of `kinds`, dtypes or Python's int and float, meet."""
    return numpy_dtype(keras_dtypes.result_type(*map(_key, kinds)))


def common_dtype(*kinds: Any) -> np.dtype:
    """The dtype in which values of `kinds` meet: NumPy dtypes, or Python's `int` and `float`."""
    return _meeting(config.floatx(), *kinds)


def summed_dtype(dtype: np.dtype) -> np.dtype:
    """The dtype in which Keras adds up: at least 32 bits for integers and booleans."""
    return _SHORT[dtype.kind] if dtype.kind in _SHORT and dtype.itemsize < 4 else dtype


# Tensors


def tensor(x: Any) -> Tensor:
    """`x` as a tensor."""
    return x if isinstance(x, Tensor) else convert_to_tensor(x)


def of_dtype(x: Any, dtype: np.dtype) -> Tensor:
    """`x` as a tensor of `dtype`."""
    if isinstance(x, (int, float)):
        return wrap(np.asarray(x).astype(dtype))
    return to_dtype(tensor(x), dtype)


def _kind(x: Any) -> Any:
    """What decides about the dtype: that of a tensor, or Python's type of a number."""
    if isinstance(x, Tensor):
        return x._spec.dtype
    return next(kind for kind in (bool, int, float) if isinstance(x, kind))


def _tensor_or_number(x: Any) -> Any:
    return x if isinstance(x, (Tensor, int, float)) else convert_to_tensor(x)


def promoted(*xs: Any) -> list[Tensor]:
    """Tensors of `xs`, of the dtype in which they meet; Python's numbers give way to tensors."""
    xs = [_tensor_or_number(x) for x in xs]
    kinds = [_kind(x) for x in xs]
    if len(set(kinds)) == 1 and isinstance(kinds[0], np.dtype):
        return xs
    dtype = common_dtype(*kinds)
    return [of_dtype(x, dtype) for x in xs]


def pair(x1: Any, x2: Any) -> tuple[Tensor, Tensor]:
    """Two values as tensors of one dtype; nearly always they are such already."""
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
    x1, x2 = promoted(x1, x2)
    return x1, x2


def inexact(x: Any) -> Tensor:
    """`x` as a tensor of floats or complex numbers; integers and booleans as `floatx`."""
    x = tensor(x)
    return x if x._spec.dtype in dtypes.INEXACT else to_dtype(x, floatx())


def inexact_pair(x1: Any, x2: Any) -> tuple[Tensor, Tensor]:
    """Two values as tensors of one dtype, which is one of floats or complex numbers."""
    x1, x2 = pair(x1, x2)
    return inexact(x1), inexact(x2)


def numbers(x: Any) -> Tensor:
    """`x` as a tensor of numbers; booleans as int32."""
    x = tensor(x)
    return to_dtype(x, INT32) if x._spec.dtype.kind == "b" else x


def number_pair(x1: Any, x2: Any) -> tuple[Tensor, Tensor]:
    """Two values as tensors of one dtype of numbers; booleans as int32."""
    x1, x2 = pair(x1, x2)
    return numbers(x1), numbers(x2)


def booleans(x: Any) -> Tensor:
    """`x` as booleans: numbers are true unless they are zero."""
    x = tensor(x)
    return x if x._spec.dtype.kind == "b" else to_dtype(x, BOOL)


def boolean_pair(x1: Any, x2: Any) -> tuple[Tensor, Tensor]:
    """Two values as booleans."""
    return booleans(x1), booleans(x2)


def single(x: Tensor) -> Tensor:
    """`x` in float32 if it has half precision."""
    return to_dtype(x, FLOAT32) if x._spec.dtype.itemsize < 4 else x


# Shapes and axes


def whole(value: Any) -> int:
    """One integer, which may be given as a tensor."""
    return value if type(value) is int else operator.index(value)


def wholes(value: Any) -> tuple[int, ...]:
    """Several integers, or one, which may be given as tensors."""
    if type(value) is int:
        return (value,)
    if isinstance(value, (list, tuple)):
        return tuple(map(whole, value))
    array = np.asarray(value)
    return tuple(array.reshape(-1).tolist()) if array.dtype.kind in "iu" else (whole(value),)


def axis_of(axis: Any, ndim: int, what: str) -> int:
    """One axis, counted from the front."""
    return normalize_axis(axis, ndim, what, ValueError)


def axes_of(axis: Any, ndim: int, what: str) -> tuple[int, ...]:
    """The axes that an integer, several, or `None` (for all) name, counted from the front."""
    if axis is None:
        return tuple(range(ndim))
    if type(axis) is int:
        return (axis_of(axis, ndim, what),)
    return tuple(sorted(axis_of(a, ndim, what) for a in wholes(axis)))


def shape_of(x: Tensor) -> tuple[int, ...]:
    """The shape, as a tuple."""
    return tuple(x._spec.shape)
