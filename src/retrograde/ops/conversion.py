"""Converts arguments to tensors, the first step of every public function."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from retrograde.core import indexed_slices, namespaces
from retrograde.core.indexed_slices import IndexedSlices
from retrograde.core.tensor import Tensor
from retrograde.ops.casting import to_dtype
from retrograde.ops.shaping import stack
from retrograde.shape_inference.abstract_array import array_of_sizes
from retrograde.values import dtypes
from retrograde.values.conversion import (
    CONVERSIONS,
    MAX_AXES,
    ConvertsItself,
    as_array,
    check_dtype,
    convert_by_registered_function,
    nesting_error,
    tensor_or_variable,
)
from retrograde.values.errors import invalid
from retrograde.values.sizes import has_size


def as_tensor(value: Any, dtype: np.dtype | None = None, hint: np.dtype | None = None) -> Tensor:
    """Returns `value` as a tensor, for use as an input.

    Nested lists that contain tensors are stacked, which tapes record. A Variable is converted to
    its current tensor, which shares the id of the variable on tapes: return `identity` of it to
    the user, never that tensor itself.
    """
    if type(value) is Tensor and dtype is None:
        return value
    holder = tensor_or_variable(value)
    if holder is not None:
        tensor = holder._read()
        check_dtype(tensor._spec, dtype)
        return tensor
    if CONVERSIONS:
        tensor = convert_by_registered_function(value, dtype, hint)
        if tensor is not None:
            return tensor
    if isinstance(value, IndexedSlices):
        return as_tensor(indexed_slices.dense(value), dtype)
    if isinstance(value, (list, tuple)) and holds_tensor(value):
        return _stack(value, dtype, hint)
    if namespaces.foreign and namespaces.evaluator() and has_size(value):
        return Tensor(array_of_sizes(value, dtype or hint or np.dtype(np.int32)))
    try:
        return Tensor(as_array(value, dtype, hint))
    except ConvertsItself:
        return _from_protocol(value, dtype, hint)


def _from_protocol(value: Any, dtype: np.dtype | None, hint: np.dtype | None) -> Tensor:
    """Converts an object with `__tf_tensor__`, or a list that contains one."""
    if isinstance(value, (list, tuple)):
        return _stack(value, dtype, hint)
    tensor = as_tensor(value.__tf_tensor__(None if dtype is None else dtypes.of(dtype), None))
    check_dtype(tensor._spec, dtype)
    return tensor


def holds_tensor(value: Any, depth: int = 0) -> bool:
    """Returns whether `value` is a tensor or variable, or nested lists that contain one."""
    if isinstance(value, (list, tuple)):
        if depth > MAX_AXES:
            raise nesting_error()
        return any(holds_tensor(element, depth + 1) for element in value)
    return tensor_or_variable(value) is not None


def _stack(value: Any, dtype: np.dtype | None, hint: np.dtype | None) -> Tensor:
    """Stacks a list that contains tensors. Numbers in the list take the dtype of the tensors.

    If `dtype` is given, the tensors are cast to it.
    """
    if dtype is None:
        return stack(*one_dtype(value), axis=0)
    return stack(*(_element(element, dtype, hint) for element in value), axis=0)


def _element(value: Any, dtype: np.dtype, hint: np.dtype | None) -> Tensor:
    holder = tensor_or_variable(value)
    if holder is None:
        return as_tensor(value, dtype, hint)
    if (dtype.kind == "O") != (holder._spec.dtype.kind == "O"):
        raise TypeError(
            f"Cannot convert a tensor of dtype {holder.dtype.name} in a list to dtype "
            f"{dtypes.of(dtype).name}."
        )
    return to_dtype(holder._read(), dtype)


def _dtype_within(value: Any, depth: int = 0) -> np.dtype | None:
    if isinstance(value, (list, tuple)):
        if depth > MAX_AXES:
            raise nesting_error()
        return next(filter(None, (_dtype_within(v, depth + 1) for v in value)), None)
    holder = tensor_or_variable(value)
    return None if holder is None else holder._spec.dtype


def same_dtype(*values: Any) -> tuple[Tensor, ...]:
    """Converts `values` to tensors. Numbers take the dtype of the first tensor if they fit it."""
    hint = next((v._spec.dtype for v in map(tensor_or_variable, values) if v is not None), None)
    if hint is None:
        first = as_tensor(values[0])
        return (first, *(as_tensor(v, hint=first._spec.dtype) for v in values[1:]))
    return tuple([as_tensor(v, hint=hint) for v in values])


def one_dtype(values: Sequence[Any]) -> list[Tensor]:
    """Converts `values` to tensors. Other values must be convertible to the dtype of the first one.

    Unlike `same_dtype`, a Python float next to an integer tensor raises `TypeError`.
    """
    dtype = _dtype_within(list(values))
    tensors = []
    for value in values:
        tensors.append(as_tensor(value, None if tensor_or_variable(value) is not None else dtype))
        dtype = tensors[0]._spec.dtype if dtype is None else dtype
    return tensors


def numeric_dtype(dtype: Any, default: Any, op_name: str) -> np.dtype:
    """Returns the numeric NumPy dtype of an `out_type` argument; `default` if it is `None`."""
    numpy_dtype = np.dtype(default) if dtype is None else dtypes.as_dtype(dtype).numpy_dtype
    if numpy_dtype not in dtypes.NUMERIC:
        raise invalid(
            f"{op_name}: expected a numeric dtype. Received: {dtypes.of(numpy_dtype).name}."
        )
    return numpy_dtype


def numpy_dtype(dtype: Any) -> np.dtype | None:
    """Returns the NumPy dtype of a `dtype` argument; `None` stays `None`."""
    return None if dtype is None else dtypes.as_dtype(dtype).numpy_dtype
