"""Indices outside of a tensor, as `bad_indices_policy` treats them."""

from __future__ import annotations

import numpy as np

from retrograde.core.tensor import Tensor
from retrograde.ops import arithmetic, indexing, reduction, shaping, slicing
from retrograde.values.arguments import shown
from retrograde.values.errors import invalid


def are_ignored(policy: str, op_name: str) -> bool:
    """Whether coordinates outside count nothing; otherwise they are an error."""
    if policy not in ("", "DEFAULT", "ERROR", "IGNORE"):
        raise invalid(
            f"{op_name}: bad_indices_policy must be 'DEFAULT', 'ERROR' or 'IGNORE'. Received: "
            f"{shown(policy)}."
        )
    return policy == "IGNORE"


def _inside(indices: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Which of the coordinates in the last axis of `indices` point into `shape`."""
    zero = np.zeros((), indices._spec.dtype)
    sizes = np.array(shape[: indices._spec.shape[-1]], indices._spec.dtype)
    fits = arithmetic.logical_and(
        arithmetic.less(indices, Tensor(sizes)), arithmetic.greater_equal(indices, Tensor(zero))
    )
    return reduction.all(fits, axis=(indices._spec.ndim - 1,), keepdims=False)


def gathered(x: Tensor, indices: Tensor, batch: int) -> Tensor:
    """What is at the coordinates, and zeros or empty strings for those outside."""
    inside = _inside(indices, x._spec.shape[batch:])
    outer, zero = inside._spec.shape, Tensor(np.zeros((), indices._spec.dtype))
    known = arithmetic.select(shaping.reshape(inside, shape=(*outer, 1)), indices, zero)
    y = indexing.gather_nd(x, known, batch_dims=batch)
    beside = (1,) * (y._spec.ndim - len(outer))
    nothing = Tensor(np.full((), b"" if y._spec.dtype.kind == "O" else 0, y._spec.dtype))
    return arithmetic.select(shaping.reshape(inside, shape=(*outer, *beside)), y, nothing)


def left_out(indices: Tensor, values: Tensor, shape: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    """The coordinates that point into `shape`, and the values that go there."""
    inside = _inside(indices, shape)
    return tuple(slicing.boolean_mask(x, inside, 0) for x in (indices, values))
