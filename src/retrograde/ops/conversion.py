"""Values become tensors: what every public function does first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from retrograde.core import indexed_slices
from retrograde.core.indexed_slices import IndexedSlices
from retrograde.core.tensor import Tensor
from retrograde.ops.casting import to_dtype
from retrograde.ops.shaping import stack
from retrograde.values import dtypes
from retrograde.values.conversion import (
    CONVERSIONS,
    MAX_AXES,
    as_array,
    check_dtype,
    convert_by_registered_function,
    nesting_error,
    tensor_or_variable,
)
from retrograde.values.errors import invalid


def as_tensor(value: Any, dtype: np.dtype | None = None, hint: np.dtype | None = None) -> Tensor:
    """`value` as a tensor for use as an input.

    Nested lists that hold tensors are stacked, which tapes can follow. A Variable gives the tensor
    it holds, which goes by the variable's own name on tapes: hand out `identity` of it, never
    that tensor itself.
    """
    if type(value) is Tensor and dtype is None:
        return value
    held = tensor_or_variable(value)
    if held is not None:
        tensor = held._read()
        check_dtype(tensor._spec, dtype)
        return tensor
    if CONVERSIONS:
        tensor = convert_by_registered_function(value, dtype, hint)
        if tensor is not None:
            return tensor
    if isinstance(value, IndexedSlices):
        return as_tensor(indexed_slices.dense(value), dtype)
    if isinstance(value, (list, tuple)) and holds_tensor(value):
        return _packed(value, dtype, hint)
    return Tensor(as_array(value, dtype, hint))


def holds_tensor(value: Any, depth: int = 0) -> bool:
    """Whether a tensor or variable is, or is somewhere in, nested lists."""
    if isinstance(value, (list, tuple)):
        if depth > MAX_AXES:
            raise nesting_error()
        return any(holds_tensor(element, depth + 1) for element in value)
    return tensor_or_variable(value) is not None


def _packed(value: Any, dtype: np.dtype | None, hint: np.dtype | None) -> Tensor:
    """A list with tensors in it, stacked; the numbers beside them take their dtype.

    A `dtype` that is asked for is one that the tensors in the list are cast to.
    """
    if dtype is None:
        return stack(*one_dtype(value), axis=0)
    return stack(*(_element(element, dtype, hint) for element in value), axis=0)


def _element(value: Any, dtype: np.dtype, hint: np.dtype | None) -> Tensor:
    held = tensor_or_variable(value)
    if held is None:
        return as_tensor(value, dtype, hint)
    if (dtype.kind == "O") != (held._spec.dtype.kind == "O"):
        raise TypeError(
            f"Cannot convert a tensor of dtype {held.dtype.name} in a list to dtype "
            f"{dtypes.of(dtype).name}."
        )
    return to_dtype(held._read(), dtype)


def _dtype_within(value: Any, depth: int = 0) -> np.dtype | None:
    if isinstance(value, (list, tuple)):
        if depth > MAX_AXES:
            raise nesting_error()
        return next(filter(None, (_dtype_within(v, depth + 1) for v in value)), None)
    held = tensor_or_variable(value)
    return None if held is None else held._spec.dtype


def same_dtype(*values: Any) -> tuple[Tensor, ...]:
    """Tensors of `values`; the first that has a dtype of its own lends it to Python numbers."""
    hint = next((v._spec.dtype for v in map(tensor_or_variable, values) if v is not None), None)
    if hint is None:
        first = as_tensor(values[0])
        return (first, *(as_tensor(v, hint=first._spec.dtype) for v in values[1:]))
    return tuple([as_tensor(v, hint=hint) for v in values])


def one_dtype(values: Sequence[Any]) -> list[Tensor]:
    """Tensors of `values`; what is no tensor must be able to take the dtype of the first that is.

    Unlike `same_dtype`, a Python float beside an integer tensor is a `TypeError`.
    """
    dtype = _dtype_within(list(values))
    tensors = []
    for value in values:
        tensors.append(as_tensor(value, None if tensor_or_variable(value) is not None else dtype))
        dtype = tensors[0]._spec.dtype if dtype is None else dtype
    return tensors


def count_dtype(dtype: Any, default: Any, what: str) -> np.dtype:
    """The NumPy dtype of numbers that an `out_type` argument names; `default` if it is `None`."""
    found = np.dtype(default) if dtype is None else dtypes.as_dtype(dtype).numpy_dtype
    if found not in dtypes.NUMERIC:
        raise invalid(f"{what}: expected a dtype of numbers. Received: {dtypes.of(found).name}.")
    return found


def numpy_dtype(dtype: Any) -> np.dtype | None:
    """The NumPy dtype that a `dtype` argument names; `None` stays `None`."""
    return None if dtype is None else dtypes.as_dtype(dtype).numpy_dtype
