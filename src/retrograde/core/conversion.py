"""What Python and NumPy values become: TensorFlow's rules for the dtype of a constant."""

from __future__ import annotations

from typing import Any

import numpy as np

from retrograde.core import dtypes
from retrograde.core.dtypes import DType
from retrograde.core.shapes import TensorShape
from retrograde.core.tensor import Holder

_INT32_MIN, _INT32_MAX = -(2**31), 2**31 - 1
_FLOAT32_MAX = float(np.finfo(np.float32).max)
_PYTHON_NUMBERS = (bool, int, float, complex)


def as_array(value: Any, dtype: np.dtype | None = None, hint: np.dtype | None = None) -> Any:
    """The array that a Python or NumPy value becomes; a fresh one, that nobody else can change.

    Without `dtype`, Python numbers become int32, float32, bool or complex128 and NumPy values
    keep their dtype, as in TensorFlow. `hint` is a dtype to use if the value fits it.
    """
    if isinstance(value, (np.ndarray, np.generic)):
        return _from_numpy(value, dtype or hint)
    held = held_by(value)
    if held is not None:
        return refuse_dtype(held._read()._array, dtype)
    if hint is not None and dtype is None:
        try:
            return as_array(value, hint)
        except (TypeError, ValueError):
            return as_array(value)
    if isinstance(value, _PYTHON_NUMBERS):
        return _from_number(value, dtype)
    if isinstance(value, (str, bytes)):
        return _from_leaves(np.array(value, object), value, dtype)
    if isinstance(value, (list, tuple, range)):
        return _from_sequence(value, dtype)
    return _from_object(value, dtype)


def refuse_dtype(array: Any, dtype: np.dtype | None) -> Any:
    """`array`, if it has the dtype that is asked for; a tensor is never cast by conversion."""
    if dtype is not None and array.dtype != dtype:
        raise ValueError(
            f"Tensor conversion requested dtype {dtypes.of(dtype).name} for a tensor with dtype "
            f"{dtypes.of(array.dtype).name}. Use tf.cast to change the dtype."
        )
    return array


def _from_numpy(value: Any, dtype: np.dtype | None) -> Any:
    kind = value.dtype.kind
    if kind in "SU":
        value = np.asarray(value, object)
        return _from_leaves(value, value, dtype)
    if kind == "O":
        return _from_sequence(value.tolist(), dtype)
    if dtype is not None and kind == "c" and dtype.kind != "c":
        raise TypeError(f"Cannot convert a {value.dtype} array to dtype {dtypes.of(dtype).name}.")
    target = dtype or dtypes.as_dtype(value.dtype).numpy_dtype
    with np.errstate(all="ignore"):
        return (
            value.astype(target, order="C") if value.ndim else np.asarray(value).astype(target)[()]
        )


def _from_number(value: Any, dtype: np.dtype | None) -> Any:
    if dtype is None:
        dtype = _natural_dtype(type(value), value, value)
    elif not _fits(type(value), dtype):
        raise TypeError(f"Cannot convert {value!r} to a tensor of dtype {dtypes.of(dtype).name}.")
    with np.errstate(all="ignore"):
        if type(value) is int and dtype.kind in "iu":
            return np.asarray(value, np.int64).astype(dtype)[()]
        return dtype.type(value)


def _fits(python_type: type, dtype: np.dtype) -> bool:
    """Whether a Python number of this type may become `dtype` without being asked twice."""
    if python_type is complex:
        return dtype.kind == "c"
    if python_type is float:
        return dtype in dtypes.INEXACT
    if python_type is int:
        return dtype in dtypes.NUMERIC
    return dtype.kind not in "O"


def _natural_dtype(python_type: type, low: Any, high: Any) -> np.dtype:
    """What TensorFlow makes of Python numbers between `low` and `high`."""
    if python_type is bool:
        return dtypes.bool_.numpy_dtype
    if python_type is complex:
        return dtypes.complex128.numpy_dtype
    if python_type is float:
        for end in (low, high):
            if _FLOAT32_MAX < abs(end) < float("inf"):
                raise ValueError(
                    f"The Python float {end!r} is out of range for float32. "
                    "Pass dtype=tf.float64 to keep it."
                )
        return dtypes.float32.numpy_dtype
    if _INT32_MIN <= low and high <= _INT32_MAX:
        return dtypes.int32.numpy_dtype
    if -(2**63) <= low and high < 2**63:
        return dtypes.int64.numpy_dtype
    raise ValueError(f"Python integers from {low} to {high} are out of range for int64.")


def _from_sequence(value: Any, dtype: np.dtype | None) -> Any:
    leaves, shape = [], shape_of_nested(value)
    _collect(value, shape, leaves)
    types = {type(leaf) for leaf in leaves}
    if types <= {bool, int, float, complex}:
        return _from_numbers(leaves, types, shape, value, dtype)
    if types <= {str, bytes}:
        return _from_leaves(np.array(leaves, object).reshape(shape), value, dtype)
    if any(t in types for t in (bool, int, float, complex, str, bytes)) and (
        types & {str, bytes, type(None)}
    ):
        raise ValueError(
            f"Can't convert a Python sequence with mixed types to a tensor: {_names(types)}."
        )
    arrays = [as_array(leaf) for leaf in leaves]
    target = dtype or _common_dtype(leaves, arrays)
    arrays = [as_array(leaf, target) for leaf in leaves]
    return np.stack(arrays).reshape((*shape, *arrays[0].shape))


def _names(types: set) -> str:
    return ", ".join(sorted(t.__name__ for t in types))


def _common_dtype(leaves: list, arrays: list) -> np.dtype:
    """The dtype of the first leaf that has one of its own; Python numbers take it."""
    for leaf, array in zip(leaves, arrays, strict=True):
        if not isinstance(leaf, _PYTHON_NUMBERS):
            return array.dtype
    return arrays[0].dtype


def shape_of_nested(value: Any) -> tuple[int, ...]:
    """The shape of nested lists and tuples, read along their first elements."""
    shape = []
    while isinstance(value, (list, tuple, range)):
        shape.append(len(value))
        if not value:
            break
        value = value[0]
    return tuple(shape)


def _collect(value: Any, shape: tuple[int, ...], leaves: list) -> None:
    nested = isinstance(value, (list, tuple, range))
    if nested != bool(shape) or (nested and len(value) != shape[0]):
        raise ValueError("Can't convert a non-rectangular Python sequence to a tensor.")
    if not nested:
        leaves.append(value)
    elif len(shape) == 1 and not any(isinstance(v, (list, tuple, range)) for v in value):
        leaves.extend(value)
    else:
        for element in value:
            _collect(element, shape[1:], leaves)


def _from_numbers(leaves: list, types: set, shape: tuple, value: Any, dtype: Any) -> np.ndarray:
    if not leaves:
        return np.zeros(shape, dtype or np.float32)
    if type(leaves[0]) is bool and types != {bool}:
        raise ValueError(
            "Can't convert a Python sequence with mixed types to a tensor: bool first."
        )
    widest = next(t for t in (complex, float, int, bool) if t in types)
    if dtype is None:
        ordered = widest in (int, float)
        finite = [v for v in leaves if abs(v) != float("inf")] if ordered else leaves
        low, high = (min(finite, default=0), max(finite, default=0)) if ordered else (0, 0)
        dtype = _natural_dtype(widest, low, high)
    elif not _fits(widest, dtype):
        raise TypeError(f"Cannot convert {value!r} to a tensor of dtype {dtypes.of(dtype).name}.")
    with np.errstate(all="ignore"):
        if widest is int and dtype.kind in "iu":
            return np.array(leaves, np.int64).astype(dtype).reshape(shape)
        return np.array(leaves, dtype).reshape(shape)


def _from_leaves(array: np.ndarray, value: Any, dtype: np.dtype | None) -> np.ndarray:
    if dtype is not None and dtype != object:
        raise TypeError(f"Cannot convert {value!r} to a tensor of dtype {dtypes.of(dtype).name}.")
    encode = np.frompyfunc(lambda s: s.encode() if isinstance(s, str) else s, 1, 1)
    return np.asarray(encode(array), object)


def _from_object(value: Any, dtype: np.dtype | None) -> Any:
    """The array of an object that knows how to become one."""
    if isinstance(value, DType):
        raise ValueError(f"Attempt to convert a dtype ({value!r}) to a tensor.")
    if hasattr(value, "__array__"):
        return _from_numpy(np.asarray(value), dtype)
    if isinstance(value, TensorShape):
        value.assert_is_fully_defined()
        return np.array(value.as_list(), dtype or np.int32)
    raise ValueError(
        f"Attempt to convert a value ({value!r}) with an unsupported type ({type(value)}) to a "
        "tensor. Expected a number, a string, a nested list of these, or an array."
    )


def held_by(value: Any) -> Any:
    """The Tensor or Variable that `value` is or stands for, or `None`.

    Objects of other libraries take part by a method `__retrograde_tensor__` that returns the
    Tensor or Variable they hold.
    """
    if isinstance(value, Holder):
        return value
    method = getattr(type(value), "__retrograde_tensor__", None)
    return None if method is None else held_by(method(value))
