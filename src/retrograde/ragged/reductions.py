"""Reductions of ragged tensors, one axis at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from retrograde import math
from retrograde.core.apply import Primitive, apply
from retrograde.core.tensor import Tensor
from retrograde.ops import arithmetic as ar
from retrograde.ops import indexing, reduction
from retrograde.ops._arrays import compute_dtype
from retrograde.ops.arguments import integer_array
from retrograde.ops.casting import cast_discrete, ones_like, stop_gradient, to_dtype
from retrograde.ops.elementary import exp, log
from retrograde.ops.shaping import reshape
from retrograde.ragged.partition import RowPartition
from retrograde.ragged.rows import expand_dims, rank_of
from retrograde.ragged.tensor import RaggedTensor
from retrograde.values import dtypes
from retrograde.values.arguments import as_int, as_text
from retrograde.values.errors import allocate

# `combine(values, ids, count)` reduces the rows of a tensor to `count` rows; `ids` has the output
# row of each input row.


def _any(values: Tensor, ids: np.ndarray, count: int) -> Tensor:
    ones = cast_discrete(values, dtype=np.dtype(np.int32))
    return math.unsorted_segment_sum(ones, ids, count) > 0


def _all(values: Tensor, ids: np.ndarray, count: int) -> Tensor:
    return apply(ar.logical_not, (_any(apply(ar.logical_not, (values,)), ids, count),))


_COMBINE = {
    "sum": math.unsorted_segment_sum,
    "prod": math.unsorted_segment_prod,
    "max": math.unsorted_segment_max,
    "min": math.unsorted_segment_min,
    "any": _any,
    "all": _all,
}


def reduce(primitive: Primitive, x: RaggedTensor, axis: Any, keepdims: Any) -> Any:
    """Reduces over one axis, several, or with `None` over all."""
    axes = _axes(axis, rank_of(x))
    if primitive.name == "mean":
        return _mean(x, axes, keepdims)
    if primitive.name == "logsumexp":
        return _logsumexp(x, axes, keepdims)
    if len(axes) == rank_of(x):
        flat = x.flat_values
        y = primitive(flat, axis=tuple(range(flat.ndim)), keepdims=False)
        return reshape(y, shape=(1,) * len(axes)) if keepdims else y
    y: Any = x
    for a in reversed(axes):
        y = _reduce_axis(primitive, y, a)
    if keepdims:
        for a in axes:
            y = expand_dims(y, a)
    return y


def _axes(axis: Any, rank: int) -> list[int]:
    axes = (
        range(rank) if axis is None else integer_array(axis, "axis", TypeError).reshape(-1).tolist()
    )
    for a in axes:
        if not -rank <= a < rank:
            raise ValueError(f"axis={a} is out of bounds: expected -{rank} <= axis < {rank}.")
    return sorted({a % rank for a in axes})


def _reduce_axis(primitive: Primitive, x: Any, axis: int) -> Any:
    if not isinstance(x, RaggedTensor):
        return primitive(x, axis=(axis,), keepdims=False)
    part = x._partition
    if axis > 1:
        return x.with_values(_reduce_axis(primitive, x.values, axis - 1))
    combine = _COMBINE[primitive.name]
    if axis == 1:
        return combine_rows(combine, x.values, part.rowids, part.nrows)
    return combine_rows(combine, x.values, part.positions, int(part.lengths.max(initial=0)))


def combine_rows(combine: Callable, values: Any, ids: np.ndarray, count: int) -> Any:
    """Applies `combine` also to ragged rows, combining the elements at equal positions."""
    if not isinstance(values, RaggedTensor):
        return combine(values, ids, count)
    part = values._partition
    lengths = allocate("a reduction", np.zeros, count, part.dtype)
    np.maximum.at(lengths, ids, part.lengths)
    rows = RowPartition.from_lengths(lengths, part.dtype)
    inner_ids = rows.starts[ids][part.rowids] + part.positions
    inner = combine_rows(combine, values.values, inner_ids, int(rows.splits[-1]))
    return RaggedTensor(inner, rows, internal=True)


def _mean(x: RaggedTensor, axes: list[int], keepdims: Any) -> Any:
    total = reduce(reduction.sum, x, axes, keepdims)
    counts = x.with_flat_values(ones_like(x.flat_values))
    return math.divide(total, reduce(reduction.sum, counts, axes, keepdims))


def _logsumexp(x: RaggedTensor, axes: list[int], keepdims: Any) -> Any:
    """Computes logsumexp, subtracting the global maximum so that nothing overflows."""
    flat = x.flat_values
    largest = stop_gradient(reduction.max(flat, axis=tuple(range(flat.ndim)), keepdims=False))
    largest = ar.mask(largest, ar.is_finite(largest))
    total = reduce(reduction.sum, x.with_flat_values(exp(flat - largest)), axes, keepdims)
    if isinstance(total, RaggedTensor):
        return total.with_flat_values(log(total.flat_values) + largest)
    return log(total) + largest


def reduce_variance(
    _: Any, input_tensor: RaggedTensor, axis: Any = None, keepdims: bool = False, name: Any = None
) -> Any:
    """Computes the variance as mean square minus squared mean, as TensorFlow does here."""
    if input_tensor.flat_values._spec.dtype not in dtypes.INEXACT:
        input_tensor = input_tensor.with_flat_values(
            to_dtype(input_tensor.flat_values, np.dtype(np.float64))
        )
    axes = _axes(axis, rank_of(input_tensor))
    mean = _mean(input_tensor, axes, keepdims)
    y = math.subtract(_mean(input_tensor * input_tensor, axes, keepdims), mean * mean)
    if y.dtype.is_complex:
        return y
    return math.maximum(y, 0.0)  # rounding errors can make the difference negative


def softmax(_: Any, logits: RaggedTensor, axis: Any = None, name: Any = None) -> RaggedTensor:
    """Computes the softmax within each innermost row."""
    rank = rank_of(logits)
    last = -1 if axis is None else as_int(axis, "softmax: axis")
    if last % rank != rank - 1:
        raise ValueError(
            f"softmax: a RaggedTensor supports only the last axis. Received: axis={as_text(axis)}."
        )
    if logits.ragged_rank < rank - 1:
        return logits.with_flat_values(math.softmax(logits.flat_values))
    part, dtype = logits._partitions[-1], logits.flat_values._spec.dtype
    # Half precision is computed in float32 and rounded once, at the end.
    x = to_dtype(logits.flat_values, compute_dtype(dtype))
    ids = part.rowids
    largest = stop_gradient(_COMBINE["max"](x, ids, part.nrows))
    e = exp(x - indexing.gather(largest, Tensor(ids), axis=0))
    total = math.unsorted_segment_sum(e, ids, part.nrows)
    y = e / indexing.gather(total, Tensor(ids), axis=0)
    return logits.with_flat_values(to_dtype(y, dtype))
