"""What the functions of matrices make of their arguments before they compute."""

from __future__ import annotations

from typing import Any

from retrograde.core.tensor import Tensor
from retrograde.ops.conversion import as_tensor, same_dtype
from retrograde.values.errors import invalid
from retrograde.values.shapes import broadcast


def matrices_of(value: Any, op_name: str) -> Tensor:
    """`value` as a tensor with matrices in its last two axes."""
    x = as_tensor(value)
    if x.ndim < 2:
        raise invalid(f"{op_name}: input must be at least 2-dim. Received: shape {x._spec.shape}.")
    return x


def squares_of(value: Any, op_name: str) -> Tensor:
    """`value` as a tensor with square matrices in its last two axes."""
    x = matrices_of(value, op_name)
    rows, columns = x._spec.shape[-2:]
    if rows != columns:
        raise invalid(f"{op_name}: the matrices must be square. Received: shape {x._spec.shape}.")
    return x


def equations_of(matrix: Any, rhs: Any, op_name: str) -> tuple[Tensor, Tensor]:
    """Square matrices, and right-hand sides with as many rows; their other axes broadcast."""
    a, b = same_dtype(matrix, rhs)
    a, b = squares_of(a, op_name), matrices_of(b, op_name)
    return fitting(a, b, op_name)


def fitting(a: Tensor, b: Tensor, op_name: str) -> tuple[Tensor, Tensor]:
    """Both, if they have as many rows and axes in front of them that broadcast."""
    of_a, of_b = a._spec.shape, b._spec.shape
    if of_a[-2] != of_b[-2] or broadcast(of_a[:-2], of_b[:-2]) is None:
        raise invalid(
            f"{op_name}: matrices of shape {of_a} and right-hand sides of shape {of_b} do not fit. "
            "Expected as many rows in both, and leading axes that broadcast."
        )
    return a, b
