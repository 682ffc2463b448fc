"""Segment sums of gathered rows, computed as products with a sparse matrix."""

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
    """Sums rows of `data`: row `indices[i]` is added to segment `segment_ids[i]`.

    The ids must be sorted. A segment without rows is 0. With `sparse_gradient`, the gradient is
    an IndexedSlices.

    >>> rows = tf.constant([[1.0], [2.0], [4.0]])
    >>> tf.sparse.segment_sum(rows, [0, 2, 2], [0, 0, 1]).numpy()
    array([[5.],
           [4.]], dtype=float32)
    """
    x = as_tensor(data)
    if x._spec.dtype not in dtypes.REAL:
        raise invalid(f"segment_sum: dtype {x.dtype.name} is not supported. Expected real numbers.")
    weights_for = np.ones_like
    return _segments(
        x, indices, segment_ids, num_segments, sparse_gradient, weights_for, "segment_sum"
    )


def segment_mean(
    data: Any,
    indices: Any,
    segment_ids: Any,
    num_segments: Any = None,
    name: str | None = None,
    sparse_gradient: bool = False,
) -> Tensor:
    """Computes means of rows of `data`, grouped as in `segment_sum`."""
    x = _float_tensor(data, "segment_mean")
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
    """Sums rows of `data` as `segment_sum` and divides by the square root of their number."""
    x = _float_tensor(data, "segment_sqrt_n")
    weights_for = _inverse_sqrt
    return _segments(
        x, indices, segment_ids, num_segments, sparse_gradient, weights_for, "segment_sqrt_n"
    )


def _inverse_sqrt(counts: np.ndarray) -> np.ndarray:
    return 1 / np.sqrt(counts)


def _float_tensor(data: Any, op_name: str) -> Tensor:
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
    weights_for: Callable,
    op_name: str,
) -> Tensor:
    """Multiplies `x` by a sparse matrix whose weights depend on the segment sizes."""
    matrix = _matrix(x._spec.shape, indices, ids, count, sparse_gradient, weights_for, op_name)
    entries, weights, used, output = matrix
    weights, count = to_dtype(weights, x._spec.dtype), output._spec.size
    if sparse_gradient:  # the gradient of gather is an IndexedSlices
        x = gather(x, used, axis=0)
    flat = reshape(x, shape=(x.shape[0], math.prod(x.shape[1:])))
    y = sparse_matmul(weights, flat, entries, shape=(count, x.shape[0]))
    return reshape(y, shape=(count, *x.shape[1:]))


@host_function(dynamic_shapes=True)
def _matrix(
    shape: tuple,
    indices: Any,
    ids: Any,
    count: Any,
    unique_rows: bool,
    weights_for: Callable,
    op_name: str,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Returns indices and weights of the sparse matrix, the used rows, and a tensor of output size.

    Without `unique_rows`, all rows of the data count as used.
    """
    rows, segments, count = _check_segments(shape, indices, ids, count, op_name)
    sizes = np.bincount(segments, minlength=count)[segments].astype(np.float64)
    used = np.arange(shape[0])
    if unique_rows:
        used, rows = np.unique(rows, return_inverse=True)
    entries, output = np.stack([segments, rows], 1), np.zeros(count, bool)
    return (
        Tensor(entries),
        Tensor(weights_for(sizes)),
        Tensor(used.astype(np.int32)),
        Tensor(output),
    )


def _check_segments(
    shape: tuple, indices: Any, ids: Any, count: Any, op_name: str
) -> tuple[np.ndarray, np.ndarray, int]:
    rows, segments = (integer_array(v, op_name) for v in (indices, ids))
    if not shape or rows.ndim != 1 or segments.shape != rows.shape:
        raise invalid(
            f"{op_name}: expected data with at least one axis, and indices and segment_ids as "
            f"vectors of the same length. Received: shapes {tuple(shape)}, {rows.shape} and "
            f"{segments.shape}."
        )
    if (np.diff(segments) < 0).any() or (segments < 0).any():
        raise invalid(f"{op_name}: segment_ids must be sorted and not negative.")
    wrong = (rows < 0) | (rows >= shape[0])
    if wrong.any():
        i = int(np.argmax(wrong))
        raise invalid(f"{op_name}: indices[{i}] = {rows[i]} is not in [0, {shape[0]}).")
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
