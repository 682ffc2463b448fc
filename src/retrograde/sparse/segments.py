"""Sums of rows take by index: products with a sparse matrix that nobody has to write down."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from retrograde.core.tensor import Tensor
from retrograde.ops.arguments import integer, integer_array
from retrograde.ops.casting import to_dtype
from retrograde.ops.conversion import as_tensor
from retrograde.ops.host_functions import host_function
from retrograde.ops.indexing import gather
from retrograde.ops.shaping import reshape
from retrograde.ops.sparse_products import sparse_matmul
from retrograde.values import dtypes
from retrograde.values.errors import invalid


def segment_sum(
    data: Any,
    indices: Any,
    segment_ids: Any,
    num_segments: Any = None,
    name: str | None = None,
    sparse_gradient: bool = False,
) -> Tensor:
    """Sums of rows of `data`: row `indices[i]` goes to the sum `segment_ids[i]`.

    The ids are sorted. A segment without rows is 0. With `sparse_gradient` the gradient comes
    as IndexedSlices.

    >>> rows = tf.constant([[1.0], [2.0], [4.0]])
    >>> tf.sparse.segment_sum(rows, [0, 2, 2], [0, 0, 1]).numpy()
    array([[5.],
           [4.]], dtype=float32)
    """
    x = as_tensor(data)
    if x._spec.dtype not in dtypes.REAL:
        raise invalid(f"segment_sum: dtype {x.dtype.name} is not supported. Expected real numbers.")
    weigh = np.ones_like
    return _segments(x, indices, segment_ids, num_segments, sparse_gradient, weigh, "segment_sum")


def segment_mean(
    data: Any,
    indices: Any,
    segment_ids: Any,
    num_segments: Any = None,
    name: str | None = None,
    sparse_gradient: bool = False,
) -> Tensor:
    """Means of rows of `data`, put together as in `segment_sum`."""
    x = _floats(data, "segment_mean")
    return _segments(
        x, indices, segment_ids, num_segments, sparse_gradient, np.reciprocal, "segment_mean"
    )


def segment_sqrt_n(
    data: Any,
    indices: Any,
    segment_ids: Any,
    num_segments: Any = None,
    name: str | None = None,
    sparse_gradient: bool = False,
) -> Tensor:
    """Sums of rows of `data`, divided by the square root of their number."""
    x = _floats(data, "segment_sqrt_n")
    weigh = _one_over_root
    return _segments(
        x, indices, segment_ids, num_segments, sparse_gradient, weigh, "segment_sqrt_n"
    )


def _one_over_root(counts: np.ndarray) -> np.ndarray:
    return 1 / np.sqrt(counts)


def _floats(data: Any, op_name: str) -> Tensor:
    x = as_tensor(data)
    if x._spec.dtype not in dtypes.FLOATING:
        raise invalid(f"{op_name}: expected floats. Received: dtype {x.dtype.name}. Use tf.cast.")
    return x


def _segments(
    x: Tensor,
    indices: Any,
    ids: Any,
    count: Any,
    sparse_gradient: bool,
    weigh: Callable,
    op_name: str,
) -> Tensor:
    """The product of `x` and a sparse matrix that has weights, by the size of each segment."""
    matrix = _matrix(x._spec.shape, indices, ids, count, sparse_gradient, weigh, op_name)
    places, weights, used, marks = matrix
    weights, count = to_dtype(weights, x._spec.dtype), marks._spec.size
    if sparse_gradient:  # that of a gather, of each row once
        x = gather(x, used, axis=0)
    flat = reshape(x, shape=(x.shape[0], math.prod(x.shape[1:])))
    y = sparse_matmul(weights, flat, places, shape=(count, x.shape[0]))
    return reshape(y, shape=(count, *x.shape[1:]))


@host_function(dynamic_shapes=True)
def _matrix(
    shape: tuple, indices: Any, ids: Any, count: Any, each_once: bool, weigh: Callable, op_name: str
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Where its weights are, the weights, the rows of data, and something as long as the result.

    The rows are those that are used at all if `each_once`.
    """
    rows, segments, count = _checked(shape, indices, ids, count, op_name)
    sizes = np.bincount(segments, minlength=count)[segments].astype(np.float64)
    used = np.arange(shape[0])
    if each_once:
        used, rows = np.unique(rows, return_inverse=True)
    places, marks = np.stack([segments, rows], 1), np.zeros(count, bool)
    return Tensor(places), Tensor(weigh(sizes)), Tensor(used.astype(np.int32)), Tensor(marks)


def _checked(
    shape: tuple, indices: Any, ids: Any, count: Any, op_name: str
) -> tuple[np.ndarray, np.ndarray, int]:
    rows, segments = (integer_array(v, op_name) for v in (indices, ids))
    if not shape or rows.ndim != 1 or segments.shape != rows.shape:
        raise invalid(
            f"{op_name}: expected data with at least one axis, and as many indices as segment_ids "
            f"along one axis. Received: shapes {tuple(shape)}, {rows.shape} and {segments.shape}."
        )
    if (np.diff(segments) < 0).any() or (segments < 0).any():
        raise invalid(f"{op_name}: segment_ids must be sorted and not negative.")
    wrong = (rows < 0) | (rows >= shape[0])
    if wrong.any():
        place = int(np.argmax(wrong))
        raise invalid(f"{op_name}: indices[{place}] = {rows[place]} is not in [0, {shape[0]}).")
    needed = int(segments[-1]) + 1 if len(segments) else 0
    if count is None:
        return rows, segments, needed
    count = integer(count, f"{op_name}: num_segments")
    if count < needed:
        raise invalid(
            f"{op_name}: segment_ids must be smaller than num_segments. Received: {needed - 1} and "
            f"{count}."
        )
    return rows, segments, count
