"""Top-k, permutations, binning, and search in sorted sequences."""

from __future__ import annotations

import numpy as np

from retrograde.core.apply import Primitive
from retrograde.ops.shaping import broadcast_batched
from retrograde.values import dtypes
from retrograde.values.errors import invalid

_MANY = 128  # from this many elements, partitioning before sorting is faster


def _top_k_indices_kernel(xp, x, *, k, dtype):
    if xp is not np:
        import jax

        return jax.lax.top_k(x, k)[1].astype(dtype)
    n = x.shape[-1]
    if n < _MANY or 4 * k > n or not x.size or not k:
        return _descending_argsort(x)[..., :k].astype(dtype)
    kth_largest = np.partition(x, n - k, axis=-1)[..., n - k : n - k + 1]
    if not np.array_equal(
        kth_largest, kth_largest
    ):  # NaN counts as the largest, but does not compare
        return _descending_argsort(x)[..., :k].astype(dtype)
    above = ~(x <= kth_largest)
    level = x == kth_largest
    ties = k - np.count_nonzero(above, axis=-1, keepdims=True)
    selected = above | (level & (np.cumsum(level, axis=-1) <= ties))
    indices = np.nonzero(selected)[-1].reshape((*x.shape[:-1], k))
    order = _descending_argsort(np.take_along_axis(x, indices, -1))
    return np.take_along_axis(indices, order, -1).astype(dtype)


def _descending_argsort(x):
    """Sorts from the largest to the smallest; equal elements keep their order."""
    last = x.shape[-1] - 1
    return np.flip(last - np.argsort(np.flip(x, -1), axis=-1, stable=True), -1)


top_k_indices = Primitive(  # the indices of the k largest along the last axis, largest first
    "top_k_indices",
    _top_k_indices_kernel,
    vjps=None,
    batch=lambda _, x, **attrs: top_k_indices(x, **attrs),
    accepts=dtypes.REAL,
)


def _in_top_k_kernel(xp, predictions, targets, *, k):
    classes = predictions.shape[-1]
    index = xp.clip(targets, 0, max(classes - 1, 0))[..., None]
    target_scores = xp.take_along_axis(predictions, index, axis=-1)
    inside = (targets >= 0) & (targets < classes)
    finite = xp.all(xp.isfinite(predictions), axis=-1)
    return inside & finite & (xp.sum(predictions > target_scores, axis=-1) < k)


in_top_k = Primitive(
    "in_top_k",
    _in_top_k_kernel,
    vjps=None,
    batch=lambda batched, *xs, k: in_top_k(*broadcast_batched(batched, xs), k=k),
)


def _invert_permutation_kernel(xp, x):
    n = x.shape[-1]
    if xp is np:
        outside = (x < 0) | (x >= n)
        if outside.any():
            raise invalid(
                f"invert_permutation: {x[outside][0]} is not in [0, {n}). Expected each of the "
                f"numbers from 0 to {n - 1} once."
            )
    y = xp.argsort(x, axis=-1, stable=True).astype(x.dtype)
    if xp is np:
        in_order = np.take_along_axis(x, y, -1)
        repeated = in_order[..., 1:] == in_order[..., :-1]
        if repeated.any():
            raise invalid(
                f"invert_permutation: {in_order[..., 1:][repeated][0]} occurs more than once. "
                f"Expected each of the numbers from 0 to {n - 1} once."
            )
    return y


invert_permutation = Primitive(
    "invert_permutation",
    _invert_permutation_kernel,
    vjps=None,
    batch=lambda _, x: invert_permutation(x),
    accepts=dtypes.INTEGER,
)


def _bins_kernel(xp, x, *, low, high, count, strict):
    """Returns the index of the bin of each element; elements out of range go to the end bins."""
    if strict and xp is np and x.dtype.kind == "f" and np.isnan(x).any():
        raise invalid("histogram_fixed_width: expected values without nan.")
    if x.dtype.kind in "iu":
        x = x.astype(np.float64 if xp is np else np.float32)
    span = x.dtype.type(high) - x.dtype.type(low)
    part = xp.floor((x - x.dtype.type(low)) / span * x.dtype.type(count))
    return xp.clip(part, 0, count - 1).astype(np.int32)


bins = Primitive(
    "bins",
    _bins_kernel,
    vjps=None,
    batch=lambda _, x, **attrs: bins(x, **attrs),
    accepts=dtypes.REAL,
)


def _search_sorted_kernel(xp, sequence, values, *, side, dtype):
    if sequence.ndim == 1:
        return xp.searchsorted(sequence, values, side=side).astype(dtype)
    # Each batch element has its own sequence. The index is the number of smaller elements.
    rows = sequence.reshape(sequence.shape[0], *(1,) * (values.ndim - 1), sequence.shape[-1])
    smaller = rows < values[..., None] if side == "left" else rows <= values[..., None]
    return xp.sum(smaller, axis=-1).astype(dtype)


search_sorted = Primitive(  # the indices at which to insert values into a sorted sequence
    "search_sorted",
    _search_sorted_kernel,
    vjps=None,
    batch=lambda batched, sequence, values, **attrs: search_sorted(
        *(broadcast_batched(batched, (sequence, values)) if batched[0] else (sequence, values)),
        **attrs,
    ),
    accepts=dtypes.REAL,
)


def _is_in_kernel(xp, x, elements):
    if elements.ndim == 1:
        return xp.isin(x, elements)
    rows = elements.reshape(elements.shape[0], *(1,) * (x.ndim - 1), elements.shape[-1])
    return xp.any(x[..., None] == rows, axis=-1)


is_in = Primitive(  # whether each element of x is among the elements of a vector
    "is_in",
    _is_in_kernel,
    vjps=None,
    batch=lambda batched, x, elements: is_in(
        *(broadcast_batched(batched, (x, elements)) if batched[1] else (x, elements))
    ),
    accepts=dtypes.NUMERIC | dtypes.BOOL,
)
