"""What the numerical namespaces make of their arguments before they compute."""

from __future__ import annotations

from typing import Any

import numpy as np

from retrograde.core import dtypes
from retrograde.core.conversion import held_by
from retrograde.core.dispatch import Primitive, apply
from retrograde.core.shapes import normalise_axes, normalise_axis
from retrograde.core.tensor import Tensor
from retrograde.ops.conversion import as_tensor, one_dtype


def unary(primitive: Primitive, x: Any) -> Tensor:
    """`primitive` of one value."""
    return apply(primitive, (x if type(x) is Tensor else as_tensor(x),))


def binary(primitive: Primitive, x: Any, y: Any) -> Tensor:
    """`primitive` of two values; numbers and arrays take the dtype of the tensor beside them."""
    if type(x) is Tensor and type(y) is Tensor:
        return apply(primitive, (x, y))
    return apply(primitive, tuple(one_dtype((x, y))))


def axis_of(axis: Any, x: Tensor, what: str) -> int:
    """One axis of `x`, counted from the front; a tensor without axes may name it."""
    held = held_by(axis)
    return normalise_axis(axis if held is None else int(held._read()), x.ndim, what)


def axes_of(axis: Any, x: Tensor, what: str) -> tuple[int, ...]:
    """The axes of `x` that an integer, a list, a tensor or `None` (for all) names."""
    held = held_by(axis)
    if held is not None:
        axis = np.ravel(held._read().numpy())
    return normalise_axes(axis, x.ndim, what)


def dtype_name(x: Tensor) -> str:
    """The name of the dtype of `x`, for messages."""
    return dtypes.of(x._array.dtype).name
