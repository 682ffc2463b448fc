"""Reductions over segments: rows with the same segment id."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from retrograde.core.apply import apply
from retrograde.core.tensor import Tensor
from retrograde.math._inputs import dtype_name
from retrograde.math.arithmetic import maximum, truediv, truncatediv
from retrograde.math.elementary import sqrt
from retrograde.ops import segments
from retrograde.ops._arrays import HALF
from retrograde.ops.arguments import integer
from retrograde.ops.casting import to_dtype
from retrograde.ops.conversion import as_tensor
from retrograde.ops.host_functions import host_function
from retrograde.ops.indexing import scatter_add
from retrograde.ops.shaping import reshape, take_slice
from retrograde.values import dtypes
from retrograde.values.composites import dispatched
from retrograde.values.errors import invalid

_ID_DTYPES = frozenset(map(np.dtype, (np.int32, np.int64)))

# A segmentation is (rows, ids, number of segments, whether the last segment holds dropped rows).
_Segmentation = tuple[Tensor, Tensor, int, bool]


def segment_sum(data: Any, segment_ids: Any, name: str | None = None) -> Tensor:
    """Sums the rows with the same id; empty segments are 0.

    `segment_ids` must be sorted.

    >>> tf.math.segment_sum([[1, 2], [3, 4], [5, 6]], [0, 0, 2]).numpy()
    array([[4, 6],
           [0, 0],
           [5, 6]], dtype=int32)
    """
    return _sum(_sorted_segments(data, segment_ids, dtypes.NUMERIC, "segment_sum"))


def segment_mean(data: Any, segment_ids: Any, name: str | None = None) -> Tensor:
    """Averages the rows with the same id; empty segments are 0.

    `segment_ids` must be sorted.
    """
    rows, *segmentation = _sorted_segments(data, segment_ids, dtypes.NUMERIC, "segment_mean")
    if rows._spec.dtype.kind in "iu":
        return truncatediv(_sum((rows, *segmentation)), _count(rows, *segmentation))
    return _average(truediv, rows, *segmentation)


def segment_prod(data: Any, segment_ids: Any, name: str | None = None) -> Tensor:
    """Multiplies the rows with the same id; empty segments are 1.

    `segment_ids` must be sorted.
    """
    return _reduce(
        segments.segment_prod, _sorted_segments(data, segment_ids, dtypes.NUMERIC, "segment_prod")
    )


def segment_max(data: Any, segment_ids: Any, name: str | None = None) -> Tensor:
    """Computes the maximum of the rows with the same id; empty segments are 0.

    `segment_ids` must be sorted.

    >>> tf.math.segment_max([1.0, 5.0, 3.0], [0, 0, 1]).numpy()
    array([5., 3.], dtype=float32)
    """
    segmentation = _sorted_segments(data, segment_ids, dtypes.REAL, "segment_max")
    return _reduce(segments.segment_max, segmentation, empty=0)


def segment_min(data: Any, segment_ids: Any, name: str | None = None) -> Tensor:
    """Computes the minimum of the rows with the same id; empty segments are 0.

    `segment_ids` must be sorted.
    """
    segmentation = _sorted_segments(data, segment_ids, dtypes.REAL, "segment_min")
    return _reduce(segments.segment_min, segmentation, empty=0)


@dispatched
def unsorted_segment_sum(
    data: Any, segment_ids: Any, num_segments: Any, name: str | None = None
) -> Tensor:
    """Sums the elements with the same id; elements with a negative id are dropped.

    `segment_ids` has the shape of `data` or of its leading axes.

    >>> tf.math.unsorted_segment_sum([1.0, 2.0, 4.0], [1, -1, 1], 3).numpy()
    array([0., 5., 0.], dtype=float32)
    """
    allowed = dtypes.NUMERIC
    return _sum(
        _unsorted_segments(data, segment_ids, num_segments, allowed, "unsorted_segment_sum")
    )


@dispatched
def unsorted_segment_mean(
    data: Any, segment_ids: Any, num_segments: Any, name: str | None = None
) -> Tensor:
    """Averages the elements with the same id; empty segments are 0."""
    allowed = dtypes.REAL
    segmentation = _unsorted_segments(
        data, segment_ids, num_segments, allowed, "unsorted_segment_mean"
    )
    return _average(truediv, *segmentation)


@dispatched
def unsorted_segment_sqrt_n(
    data: Any, segment_ids: Any, num_segments: Any, name: str | None = None
) -> Tensor:
    """Sums the elements with the same id and divides by the square root of their number."""
    allowed = dtypes.FLOATING
    segmentation = _unsorted_segments(
        data, segment_ids, num_segments, allowed, "unsorted_segment_sqrt_n"
    )
    return _average(lambda total, count: total / sqrt(count), *segmentation)


@dispatched
def unsorted_segment_prod(
    data: Any, segment_ids: Any, num_segments: Any, name: str | None = None
) -> Tensor:
    """Multiplies the elements with the same id; empty segments are 1."""
    allowed = dtypes.NUMERIC
    segmentation = _unsorted_segments(
        data, segment_ids, num_segments, allowed, "unsorted_segment_prod"
    )
    return _reduce(segments.segment_prod, segmentation)


@dispatched
def unsorted_segment_max(
    data: Any, segment_ids: Any, num_segments: Any, name: str | None = None
) -> Tensor:
    """Computes the maximum of the elements with the same id.

    Empty segments get the lowest value of the dtype.
    """
    allowed = dtypes.REAL
    segmentation = _unsorted_segments(
        data, segment_ids, num_segments, allowed, "unsorted_segment_max"
    )
    return _reduce(segments.segment_max, segmentation, empty=segmentation[0].dtype.min)


@dispatched
def unsorted_segment_min(
    data: Any, segment_ids: Any, num_segments: Any, name: str | None = None
) -> Tensor:
    """Computes the minimum of the elements with the same id.

    Empty segments get the highest value of the dtype.
    """
    allowed = dtypes.REAL
    segmentation = _unsorted_segments(
        data, segment_ids, num_segments, allowed, "unsorted_segment_min"
    )
    return _reduce(segments.segment_min, segmentation, empty=segmentation[0].dtype.max)


# Conversion of the arguments to rows and their ids


def _convert_and_check(
    data: Any, segment_ids: Any, allowed: frozenset, op_name: str
) -> tuple[Tensor, Tensor]:
    x, ids = as_tensor(data), as_tensor(segment_ids)
    if x._spec.dtype not in allowed:
        names = ", ".join(d.name for d in dtypes.ALL if d.numpy_dtype in allowed)
        raise invalid(
            f"{op_name}: dtype {dtype_name(x)} is not supported. Expected one of {names}."
        )
    if ids._spec.dtype not in _ID_DTYPES:
        raise invalid(
            f"{op_name}: expected segment_ids of dtype int32 or int64. Received: {dtype_name(ids)}."
        )
    return x, ids


def _sorted_segments(
    data: Any, segment_ids: Any, allowed: frozenset, op_name: str
) -> _Segmentation:
    x, ids = _convert_and_check(data, segment_ids, allowed, op_name)
    if ids.ndim != 1 or not x.ndim or ids.shape[0] != x.shape[0]:
        raise invalid(
            f"{op_name}: expected one id for each row of data. Received: segment_ids of shape "
            f"{ids._spec.shape} for data of shape {x._spec.shape}."
        )
    return x, ids, _check_sorted(ids, op_name)._spec.size, False


@host_function(dynamic_shapes=True)
def _check_sorted(ids: Tensor, op_name: str) -> Tensor:
    """Raises an error unless the ids are sorted, and returns a tensor as long as the segments."""
    values = np.asarray(ids)
    if values.size and values[0] < 0:
        raise invalid(
            f"{op_name}: expected segment_ids >= 0. Received: segment_ids[0] = {values[0]}."
        )
    decreases = np.flatnonzero(values[1:] < values[:-1])
    if decreases.size:
        index = int(decreases[0]) + 1
        raise invalid(
            f"{op_name}: expected sorted segment_ids. Received: segment_ids[{index}] = "
            f"{values[index]} after {values[index - 1]}. Use unsorted_{op_name} for unsorted ids."
        )
    return Tensor(np.zeros(values[-1] + 1 if values.size else 0, bool))


def _unsorted_segments(
    data: Any, segment_ids: Any, num_segments: Any, allowed: frozenset, op_name: str
) -> _Segmentation:
    ids = as_tensor(segment_ids)
    if ids._spec.dtype == np.int16 and op_name == "unsorted_segment_sum":
        ids = to_dtype(ids, np.dtype(np.int32))
    x, ids = _convert_and_check(data, ids, allowed, op_name)
    count, shape = integer(num_segments, f"{op_name}: num_segments", TypeError), ids._spec.shape
    if count < 0:
        raise invalid(f"{op_name}: expected num_segments >= 0. Received: {count}.")
    if x._spec.shape[: len(shape)] != shape:
        raise invalid(
            f"{op_name}: expected the shape of data to start with the shape of segment_ids. "
            f"Received: data of shape {x._spec.shape}, segment_ids of shape {shape}."
        )
    size = math.prod(shape)
    ids = apply(segments.segment_rows, (ids,), {"num_segments": count})
    rows = reshape(x, shape=(size, *x._spec.shape[len(shape) :]))
    return rows, reshape(ids, shape=(size,)), count + 1, True


def _drop_last(y: Tensor, has_dropped: bool) -> Tensor:
    if not has_dropped:
        return y
    first, *others = y._spec.shape
    return take_slice(y, where=((0, first - 1, 1), *((0, n, 1) for n in others)))


def _reduce(primitive: Any, segmentation: _Segmentation, **attrs: Any) -> Tensor:
    rows, ids, count, has_dropped = segmentation
    y = apply(primitive, (rows, ids), {"num_segments": count, **attrs})
    return _drop_last(y, has_dropped)


def _sum(segmentation: _Segmentation) -> Tensor:
    rows, ids, count, has_dropped = segmentation
    y = apply(scatter_add, (rows, ids), {"shape": (count, *rows._spec.shape[1:])})
    return _drop_last(y, has_dropped)


def _count(rows: Tensor, ids: Tensor, count: int, has_dropped: bool) -> Tensor:
    """Counts the rows of each segment, at least 1, in a shape that broadcasts against them."""
    dtype = rows._spec.dtype
    ones = Tensor(np.ones(ids._spec.shape, dtypes.of(dtype).real_dtype.numpy_dtype))
    sizes = to_dtype(maximum(_sum((ones, ids, count, has_dropped)), 1), dtype)
    return reshape(sizes, shape=(sizes._spec.shape[0],) + (1,) * (rows.ndim - 1))


def _average(divide: Callable, rows: Tensor, *segmentation: Any) -> Tensor:
    """Computes `divide(sum, count)`; half precision is summed in float32 to avoid overflow."""
    dtype = rows._spec.dtype
    if dtype in HALF:
        rows = to_dtype(rows, np.dtype(np.float32))
    y = divide(_sum((rows, *segmentation)), _count(rows, *segmentation))
    return to_dtype(y, dtype) if dtype in HALF else y
