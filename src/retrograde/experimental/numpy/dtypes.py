"""The dtypes, and NumPy's promotion rules."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from retrograde.core.indexed_slices import IndexedSlices
from retrograde.values import dtypes
from retrograde.values.arguments import shown
from retrograde.values.conversion import MAX_AXES, nesting_error, tensor_or_variable
from retrograde.values.dtypes import DType

bool_ = np.bool_
int8, int16, int32, int64, int_ = np.int8, np.int16, np.int32, np.int64, np.int_
uint8, uint16, uint32, uint64 = np.uint8, np.uint16, np.uint32, np.uint64
float16, float32, float64, float_ = np.float16, np.float32, np.float64, np.float64
complex64, complex128, complex_ = np.complex64, np.complex128, np.complex128
inexact, object_, string_, unicode_ = np.inexact, np.object_, np.bytes_, np.str_
iinfo, issubdtype = np.iinfo, np.issubdtype

_prefers_float32 = False


def prefer_float32(prefer: bool) -> None:
    """Sets whether a Python float counts as float32 instead of float64."""
    global _prefers_float32
    _prefers_float32 = prefer


def result_type(*arrays_and_dtypes: Any) -> DType:
    """Returns the dtype to which values of these dtypes are promoted.

    Python numbers take the dtype of other values, unless that dtype is of a lower kind.

    >>> tnp = tf.experimental.numpy
    >>> tnp.result_type(1, 0.5), tnp.result_type(tf.int32, 0.5), tnp.result_type(tf.float16, 0.5)
    (tf.float64, tf.float64, tf.float16)
    """
    return dtypes.of(common_dtype(*arrays_and_dtypes))


def common_dtype(*values: Any) -> np.dtype:
    """Returns the `result_type` as a NumPy dtype."""
    sources = _distinct(_sources(values)) or [np.float64]
    try:
        promoted = np.result_type(*sources)
    except TypeError:
        names = sorted({_name(source) for source in sources})
        raise TypeError(
            f"Cannot promote {', '.join(names)} to a common dtype. Cast one of them first."
        ) from None
    return dtypes.as_dtype(promoted).numpy_dtype


def parse_dtype(dtype: Any) -> np.dtype | None:
    """Returns the NumPy dtype of an argument `dtype`, or `None`; `float` means float64."""
    return None if dtype is None else common_dtype(dtype)


def _sources(values: Any, depth: int = 0) -> Iterator[Any]:
    """Yields the arguments for `numpy.result_type`: dtypes, and Python numbers unchanged."""
    if depth > MAX_AXES:
        raise nesting_error()
    for value in values:
        x = tensor_or_variable(value)
        if x is not None:
            yield x._spec.dtype
        elif isinstance(value, DType):
            yield _numpy_type(value)
        elif isinstance(value, (list, tuple)):
            yield from _sources(value, depth + 1)
        elif isinstance(value, IndexedSlices):
            yield dtypes.as_dtype(value.dtype).numpy_dtype
        elif isinstance(value, (np.ndarray, np.generic)):
            yield value.dtype
        elif isinstance(value, range):  # may be too long for an array
            yield np.dtype(np.int64)
        elif isinstance(value, int | float | complex):
            yield value
        elif isinstance(value, str | type | np.dtype):
            yield _numpy_type(value)
        else:
            yield np.asarray(value).dtype


def _distinct(sources: Iterator[Any]) -> list:
    """Keeps one source per dtype or type, and the smallest and largest Python integer.

    In the presence of a float or complex dtype, Python integers and floats are dropped, because
    NumPy would widen bfloat16 for them.
    """
    kept, integers = {}, set()
    for source in sources:
        kind = type(source)
        if kind is int:
            integers.add(source)
        else:
            kept[source if isinstance(source, np.dtype) else kind] = source
    if any(isinstance(s, np.dtype) and s in dtypes.INEXACT for s in kept.values()):
        return [source for kind, source in kept.items() if kind is not float]
    floats = [_prefer_float32(source) for source in kept.values()]
    return [*floats, *({min(integers), max(integers)} if integers else ())]


def _prefer_float32(source: Any) -> Any:
    """Converts a Python float or complex number to single precision if that is preferred."""
    if not _prefers_float32 or not isinstance(source, float | complex):
        return source
    return np.float32(0) if isinstance(source, float) else np.complex64(0)


def _name(source: Any) -> str:
    if isinstance(source, int | float | complex):
        return f"a Python {type(source).__name__}"
    return str(np.dtype(source))


def promote_types(type1: Any, type2: Any) -> np.dtype:
    """Returns the smallest NumPy dtype to which both can be cast safely.

    >>> tf.experimental.numpy.promote_types(tf.int32, tf.float32)
    dtype('float64')
    """
    return np.promote_types(_numpy_type(type1), _numpy_type(type2))


def finfo(dtype: Any) -> np.finfo:
    """Returns the limits of a float dtype."""
    return np.finfo(_numpy_type(dtype))


def _numpy_type(dtype: Any) -> np.dtype:
    try:
        return np.dtype(dtype.as_numpy_dtype if isinstance(dtype, DType) else dtype)
    except (TypeError, ValueError, SyntaxError, RecursionError):  # not a dtype
        raise TypeError(
            f"Cannot convert {shown(dtype)} to a dtype. Expected a retrograde or NumPy dtype, a "
            "Python number type, or the name of one of these."
        ) from None
