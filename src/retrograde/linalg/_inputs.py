"""Conversion and checks of matrix arguments."""

from __future__ import annotations

from typing import Any

from retrograde.core.tensor import Tensor
from retrograde.ops.conversion import as_tensor, same_dtype
from retrograde.values.errors import invalid
from retrograde.values.shapes import broadcast


def matrices_of(value: Any, op_name: str) -> Tensor:
    """Converts `value` to a tensor with matrices in its last two axes."""
    x = as_tensor(value)
    if x.ndim < 2:
        raise invalid(f"{op_name}: input must be at least 2-dim. Received: shape {x._spec.shape}.")
    return x


def squares_of(value: Any, op_name: str) -> Tensor:
    """Converts `value` to a tensor with square matrices in its last two axes."""
    x = matrices_of(value, op_name)
    rows, columns = x._spec.shape[-2:]
    if rows != columns:
        raise invalid(f"{op_name}: the matrices must be square. Received: shape {x._spec.shape}.")
    return x


def equations_of(matrix: Any, rhs: Any, op_name: str) -> tuple[Tensor, Tensor]:
    """Converts a square matrix and its right-hand sides; their leading axes broadcast."""
    a, b = same_dtype(matrix, rhs)
    a, b = squares_of(a, op_name), matrices_of(b, op_name)
    return check_compatible(a, b, op_name)


def check_compatible(a: Tensor, b: Tensor, op_name: str) -> tuple[Tensor, Tensor]:
    """Returns both tensors if they have the same number of rows and broadcastable leading axes."""
    shape_a, shape_b = a._spec.shape, b._spec.shape
    if shape_a[-2] != shape_b[-2] or broadcast(shape_a[:-2], shape_b[:-2]) is None:
        raise invalid(
            f"{op_name}: matrices of shape {shape_a} and right-hand sides of shape {shape_b} are "
            "incompatible. Expected the same number of rows, and leading axes that broadcast."
        )
    return a, b
