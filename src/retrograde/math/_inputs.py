"""Conversion and checks of the arguments of the numerical namespaces."""

from __future__ import annotations

from typing import Any

import numpy as np

from retrograde.core.apply import Primitive, apply
from retrograde.core.indexed_slices import IndexedSlices
from retrograde.core.tensor import Tensor
from retrograde.core.variable import Variable
from retrograde.ops.arguments import integer_array
from retrograde.ops.conversion import as_tensor, one_dtype
from retrograde.values import dtypes
from retrograde.values.composites import NotOneTensor, dispatch_to_composite
from retrograde.values.conversion import tensor_or_variable
from retrograde.values.errors import invalid
from retrograde.values.shapes import normalize_axes, normalize_axis

_NUMBERS = (int, float)


def unary(primitive: Primitive, x: Any) -> Tensor:
    """Applies `primitive` to one value, or to each element of a composite tensor."""
    try:
        return apply(primitive, (x if type(x) is Tensor else as_tensor(x),))
    except NotOneTensor as error:
        return dispatch_to_composite(error, primitive, x)


def binary(primitive: Primitive, x: Any, y: Any) -> Tensor:
    """Applies `primitive` to two values; Python numbers and arrays take the dtype of the tensor."""
    try:
        return apply(primitive, pair(x, y))
    except NotOneTensor as error:
        return dispatch_to_composite(error, primitive, x, y)


def pair(x: Any, y: Any) -> tuple[Tensor, Tensor]:
    """Converts both values to tensors; values that are not tensors take the other's dtype."""
    x = x._read() if type(x) is Variable else x
    y = y._read() if type(y) is Variable else y
    if isinstance(x, Tensor):
        if isinstance(y, Tensor):
            return x, y
        if type(y) in _NUMBERS and x._spec.dtype in dtypes.FLOATING:
            return x, _number(y, x._spec.dtype)
    elif isinstance(y, Tensor) and type(x) in _NUMBERS and y._spec.dtype in dtypes.FLOATING:
        return _number(x, y._spec.dtype), y
    return tuple(one_dtype((x, y)))


def _number(value: float, dtype: np.dtype) -> Tensor:
    try:
        return Tensor(dtype.type(value))
    except OverflowError:
        return as_tensor(value, dtype)  # raises with an explanation


def as_bool(value: Any) -> Tensor:
    """Converts `value` to a bool tensor; Python numbers are refused, unlike in Python's `bool`."""
    is_python = tensor_or_variable(value) is None and not isinstance(value, IndexedSlices)
    return as_tensor(value, dtypes.bool_.numpy_dtype if is_python else None)


def axis_of(axis: Any, x: Tensor, op_name: str) -> int:
    """Returns one axis of `x` as a non-negative integer; `axis` may be a tensor."""
    if not isinstance(axis, int):
        (axis,) = axis_values(axis, op_name, 1)
    return normalize_axis(axis, x.ndim, op_name)


def axes_of(axis: Any, x: Tensor, op_name: str) -> tuple[int, ...]:
    """Returns the axes of `x` named by an integer, a list, a tensor or `None` (all axes)."""
    if axis is not None and not isinstance(axis, int):
        axis = axis_values(axis, op_name)
    return normalize_axes(axis, x.ndim, op_name)


def axis_values(axis: Any, op_name: str, count: int | None = None) -> list[int]:
    """Returns the integers in `axis`; a tensor is converted to Python."""
    if type(axis) in (list, tuple) and all(type(a) is int for a in axis):
        axes = list(axis)
    else:
        error = invalid if count is None else TypeError
        axes = np.ravel(integer_array(axis, f"{op_name}: axis", error)).tolist()
    if count is not None and len(axes) != count:
        raise invalid(f"{op_name}: expected a single axis. Received: {axes}.")
    return axes


def dtype_name(x: Tensor) -> str:
    """Returns the name of the dtype of `x`, for messages."""
    return dtypes.of(x._spec.dtype).name


def check_dtype(x: Tensor, allowed: tuple[str, ...], argument: str, op_name: str) -> None:
    """Raises an error unless the dtype of `x` is one of `allowed`."""
    if dtype_name(x) not in allowed:
        raise invalid(
            f"{op_name}: `{argument}` has dtype {dtype_name(x)}. Expected one of "
            f"{', '.join(allowed)}."
        )
