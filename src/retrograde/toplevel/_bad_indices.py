"""Out-of-bounds indices, handled according to `bad_indices_policy`."""

from __future__ import annotations

import numpy as np

from retrograde.core.tensor import Tensor
from retrograde.ops import arithmetic, indexing, reduction, shaping, slicing
from retrograde.values.arguments import shown
from retrograde.values.errors import invalid


def ignores_bad_indices(policy: str, op_name: str) -> bool:
    """Returns whether out-of-bounds indices are ignored instead of raising an error."""
    if policy not in ("", "DEFAULT", "ERROR", "IGNORE"):
        raise invalid(
            f"{op_name}: bad_indices_policy must be 'DEFAULT', 'ERROR' or 'IGNORE'. Received: "
            f"{shown(policy)}."
        )
    return policy == "IGNORE"


def _in_bounds(indices: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Returns which coordinates in the last axis of `indices` are within `shape`."""
    zero = np.zeros((), indices._spec.dtype)
    sizes = np.array(shape[: indices._spec.shape[-1]], indices._spec.dtype)
    valid = arithmetic.logical_and(
        arithmetic.less(indices, Tensor(sizes)), arithmetic.greater_equal(indices, Tensor(zero))
    )
    return reduction.all(valid, axis=(indices._spec.ndim - 1,), keepdims=False)


def gather_or_zero(x: Tensor, indices: Tensor, batch: int) -> Tensor:
    """Gathers at `indices`; out-of-bounds indices give zeros or empty strings."""
    in_bounds = _in_bounds(indices, x._spec.shape[batch:])
    outer, zero = in_bounds._spec.shape, Tensor(np.zeros((), indices._spec.dtype))
    safe = arithmetic.select(shaping.reshape(in_bounds, shape=(*outer, 1)), indices, zero)
    y = indexing.gather_nd(x, safe, batch_dims=batch)
    ones = (1,) * (y._spec.ndim - len(outer))
    filler = Tensor(np.full((), b"" if y._spec.dtype.kind == "O" else 0, y._spec.dtype))
    return arithmetic.select(shaping.reshape(in_bounds, shape=(*outer, *ones)), y, filler)


def drop_out_of_bounds(
    indices: Tensor, values: Tensor, shape: tuple[int, ...]
) -> tuple[Tensor, Tensor]:
    """Returns the indices within `shape` and their values."""
    in_bounds = _in_bounds(indices, shape)
    return tuple(slicing.boolean_mask(x, in_bounds, 0) for x in (indices, values))
