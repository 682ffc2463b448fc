"""What the numerical namespaces make of their arguments before they compute."""

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
    """`primitive` of one value, or of each element of a composite tensor."""
    try:
        return apply(primitive, (x if type(x) is Tensor else as_tensor(x),))
    except NotOneTensor as refusal:
        return dispatch_to_composite(refusal, primitive, x)


def binary(primitive: Primitive, x: Any, y: Any) -> Tensor:
    """`primitive` of two values; numbers and arrays take the dtype of the tensor beside them."""
    try:
        return apply(primitive, pair(x, y))
    except NotOneTensor as refusal:
        return dispatch_to_composite(refusal, primitive, x, y)


def pair(x: Any, y: Any) -> tuple[Tensor, Tensor]:
    """Both values as tensors; what is no tensor must be able to take the dtype of one that is."""
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
        return as_tensor(value, dtype)  # which says what is wrong


def truth(value: Any) -> Tensor:
    """`value` as truth values; Python numbers are none, though Python takes them for such."""
    plain = tensor_or_variable(value) is None and not isinstance(value, IndexedSlices)
    return as_tensor(value, dtypes.bool_.numpy_dtype if plain else None)


def axis_of(axis: Any, x: Tensor, what: str) -> int:
    """One axis of `x`, counted from the front; a tensor may name it."""
    if not isinstance(axis, int):
        (axis,) = _axes_in(axis, what, 1)
    return normalize_axis(axis, x.ndim, what)


def axes_of(axis: Any, x: Tensor, what: str) -> tuple[int, ...]:
    """The axes of `x` that an integer, a list, a tensor or `None` (for all) names."""
    if axis is not None and not isinstance(axis, int):
        axis = _axes_in(axis, what)
    return normalize_axes(axis, x.ndim, what)


def _axes_in(axis: Any, what: str, count: int | None = None) -> list[int]:
    """The integers in `axis`, which leave for Python."""
    if type(axis) in (list, tuple) and all(type(a) is int for a in axis):
        axes = list(axis)
    else:
        wrong = invalid if count is None else TypeError
        axes = np.ravel(integer_array(axis, f"{what}: axis", wrong)).tolist()
    if count is not None and len(axes) != count:
        raise invalid(f"{what}: expected a single axis. Received: {axes}.")
    return axes


def dtype_name(x: Tensor) -> str:
    """The name of the dtype of `x`, for messages."""
    return dtypes.of(x._spec.dtype).name


def accept(x: Tensor, allowed: tuple[str, ...], argument: str, what: str) -> None:
    """Refuses `x` unless its dtype is one of `allowed`."""
    if dtype_name(x) not in allowed:
        raise invalid(
            f"{what}: `{argument}` has dtype {dtype_name(x)}. Expected one of {', '.join(allowed)}."
        )
