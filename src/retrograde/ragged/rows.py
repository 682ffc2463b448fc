"""Row operations of ragged tensors: gather, concat, stack, split, reverse, tile and others."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from retrograde.core.tensor import Tensor
from retrograde.ops import indexing
from retrograde.ops.arguments import indices_from
from retrograde.ops.conversion import as_tensor
from retrograde.ops.shaping import split, unstack
from retrograde.ragged.partition import RowPartition
from retrograde.ragged.tensor import RaggedTensor
from retrograde.toplevel import shaping as dense
from retrograde.toplevel.indexing import gather as dense_gather
from retrograde.values.arguments import as_text, shown
from retrograde.values.conversion import tensor_or_variable
from retrograde.values.errors import allocate, invalid
from retrograde.values.shapes import normalize_axis


def rank_of(x: Any) -> int:
    """Returns the number of axes of a ragged or dense tensor."""
    return x.shape.rank


def row_count(x: Any) -> int:
    """Returns the number of rows of a ragged or dense tensor."""
    return x._partition.nrows if isinstance(x, RaggedTensor) else x.shape[0]


def take_rows(x: Any, rows: np.ndarray, uniform: bool = False) -> Any:
    """Gathers rows of `x`; with `uniform`, uniform row lengths are preserved."""
    if not isinstance(x, RaggedTensor):
        return indexing.gather(x, Tensor(rows), axis=0)
    part = x._partition
    lengths = part.lengths[rows]
    values = take_rows(x.values, concatenated_ranges(part.starts[rows], lengths), uniform)
    length = part.uniform_row_length
    if uniform and length is not None:
        kept = RowPartition.uniform(length, length * len(rows), len(rows), part.dtype)
    else:
        kept = RowPartition.from_lengths(lengths, part.dtype)
    return RaggedTensor(values, kept, internal=True)


def concatenated_ranges(starts: np.ndarray, lengths: np.ndarray, step: Any = 1) -> np.ndarray:
    """Concatenates the ranges that begin at `starts` and have `lengths` elements."""
    ends = np.cumsum(lengths)
    count = ends[-1] if len(ends) else 0
    within = allocate("a range", np.arange, count) - np.repeat(ends - lengths, lengths)
    return np.repeat(starts, lengths) + within * step


def expand_dims(x: Any, axis: int) -> Any:
    """Inserts an axis of size 1 before `axis`, which must not be negative."""
    if not isinstance(x, RaggedTensor):
        return dense.expand_dims(x, axis)
    nrows = x._partition.nrows
    if axis > 1:
        return x.with_values(expand_dims(x.values, axis - 1))
    length, count = (nrows, 1) if axis == 0 else (1, nrows)
    return RaggedTensor(
        x, RowPartition.uniform(length, nrows, count, x._partition.dtype), internal=True
    )


def as_ragged(x: Any, ragged_rank: int) -> RaggedTensor:
    """Converts `x` to a RaggedTensor with at least `ragged_rank` ragged axes."""
    if not isinstance(x, RaggedTensor):
        return RaggedTensor.from_tensor(as_tensor(x), ragged_rank=ragged_rank)
    missing = ragged_rank - x.ragged_rank
    if missing <= 0:
        return x
    inner = RaggedTensor.from_tensor(x.flat_values, ragged_rank=missing)
    return x.with_flat_values(inner)


def concat(values: Sequence[Any], axis: int) -> Any:
    """Concatenates ragged and dense tensors along `axis`."""
    ranks = {rank_of(v) for v in values}
    if len(ranks) > 1:
        raise ValueError(
            f"concat: the shapes {', '.join(str(v.shape) for v in values)} have different ranks."
        )
    axis = normalize_axis(axis, *ranks, "concat", ValueError)
    deepest = max(v.ragged_rank for v in values if isinstance(v, RaggedTensor))
    return _concat([as_ragged(v, deepest) for v in values], axis)


def _concat(xs: list, axis: int) -> Any:
    if not isinstance(xs[0], RaggedTensor):
        return dense.concat(xs, axis)
    if axis == 0:
        lengths = np.concatenate([x._partition.lengths for x in xs])
        part = RowPartition.from_lengths(lengths, xs[0]._partition.dtype)
        return RaggedTensor(_concat([x.values for x in xs], 0), part, internal=True)
    _check_rows(xs, "concat")
    if axis > 1:
        if not all(x._partition.equals(xs[0]._partition) for x in xs):
            raise invalid("concat: the tensors have rows of different lengths.")
        return xs[0].with_values(_concat([x.values for x in xs], axis - 1))
    count = xs[0]._partition.nrows
    stacked = _concat(xs, 0)  # row i of the inputs is at i, i + count, i + 2 * count, …
    order = np.arange(count * len(xs)).reshape(len(xs), count).T.ravel()
    lengths = np.sum([x._partition.lengths for x in xs], axis=0)
    merged = take_rows(stacked, order).values
    part = RowPartition.from_lengths(lengths, xs[0]._partition.dtype)
    return RaggedTensor(merged, part, internal=True)


def _check_rows(xs: list, op_name: str) -> None:
    counts = [x._partition.nrows for x in xs]
    if len(set(counts)) > 1:
        raise invalid(f"{op_name}: the tensors have {counts} rows. Expected equal numbers.")


def stack(values: Sequence[Any], axis: int) -> Any:
    """Stacks ragged or dense tensors along a new axis."""
    ranks = {rank_of(v) for v in values}
    if len(ranks) > 1:
        raise ValueError(
            f"stack: the shapes {', '.join(str(v.shape) for v in values)} have different ranks."
        )
    axis = normalize_axis(axis, *(rank + 1 for rank in ranks), "stack", ValueError)
    if any(isinstance(v, RaggedTensor) for v in values):
        return concat([expand_dims(v, axis) for v in values], axis)
    return _stack_dense(values, axis)


def _stack_dense(values: Sequence[Any], axis: int) -> Any:
    if axis or not rank_of(values[0]):
        return dense.stack(values, axis)
    lengths = np.array([v.shape[0] for v in values], np.int32)
    part = RowPartition.from_lengths(lengths, np.dtype(np.int32))
    if rank_of(values[0]) == 1:
        return RaggedTensor(dense.concat(values, 0), part, internal=True)
    parts = [RaggedTensor.from_tensor(v, ragged_rank=rank_of(v) - 1) for v in values]
    return RaggedTensor(_concat(parts, 0), part, internal=True)


def gather(params: Any, indices: Any, axis: Any, batch_dims: int) -> Any:
    """Gathers rows of `params` at `indices`; at least one of them is ragged."""
    if isinstance(indices, RaggedTensor):
        if batch_dims == 1:
            return _gather_within(params, indices)
        return indices.with_flat_values(gather(params, indices.flat_values, axis, batch_dims))
    if not isinstance(params, RaggedTensor):
        return dense_gather(params, indices, axis=axis, batch_dims=batch_dims)
    if axis not in (None, 0, batch_dims) or batch_dims:
        raise ValueError(
            "gather: only rows can be gathered from a RaggedTensor. Received: "
            f"axis={as_text(axis)}, batch_dims={as_text(batch_dims)}."
        )
    index_array = np.asarray(indices_from(indices, "gather"))
    count = params._partition.nrows
    wrong = (index_array < 0) | (index_array >= count)
    if wrong.any():
        raise invalid(f"gather: index {index_array[wrong][0]} is not in [0, {count}).")
    if not index_array.ndim:
        return params[int(index_array)]
    rows = take_rows(params, index_array.ravel())
    for size in reversed(index_array.shape[1:]):
        lengths = np.full(rows._partition.nrows // size if size else 0, size)
        part = RowPartition.from_lengths(lengths, params._partition.dtype)
        rows = RaggedTensor(rows, part, internal=True)
    return rows


def _gather_within(params: Any, indices: RaggedTensor) -> RaggedTensor:
    """Gathers from row i of `params` the elements at row i of `indices`."""
    params = as_ragged(params, 1)
    _check_rows([params, indices], "gather")
    part, rows = params._partition, indices._coordinates()[:, 0]
    within = np.asarray(indices.flat_values)
    wrong = (within < 0) | (within >= part.lengths[rows])
    if wrong.any():
        raise invalid(f"gather: index {within[wrong][0]} is outside its row.")
    return indices.with_flat_values(take_rows(params.values, part.starts[rows] + within))


def reverse(x: Any, axes: set[int]) -> Any:
    """Reverses the elements along `axes`."""
    if not isinstance(x, RaggedTensor):
        return dense.reverse(x, sorted(axes)) if axes else x
    part = x._partition
    values = reverse(x.values, {a - 1 for a in axes if a > 1})
    if 1 in axes:
        values = take_rows(
            values, concatenated_ranges(part.limits - 1, part.lengths, -1), uniform=True
        )
    x = x.with_values(values)
    return take_rows(x, np.arange(part.nrows)[::-1], uniform=True) if 0 in axes else x


def boolean_mask(data: Any, mask: Any) -> Any:
    """Keeps the rows (or with a mask of higher rank, the elements) for which `mask` is true."""
    if isinstance(mask, RaggedTensor) or mask.ndim > 1:
        data, mask = as_ragged(data, 1), as_ragged(mask, 1)
        if not data._partition.equals(mask._partition):
            raise invalid("boolean_mask: data and mask have rows of different lengths.")
        kept = boolean_mask(data.values, mask.values)
        if isinstance(mask.values, RaggedTensor) or mask.values.ndim > 1:
            return data.with_values(kept)
        marked = np.asarray(mask.values)
        counts = np.bincount(data._partition.rowids[marked], minlength=data._partition.nrows)
        part = RowPartition.from_lengths(counts, data._partition.dtype)
        return RaggedTensor(kept, part, internal=True)
    marked = np.asarray(mask)
    if rank_of(data) == 0 or marked.ndim == 0:
        raise ValueError(
            "boolean_mask: data and mask must have at least one axis. Received: shapes "
            f"{data.shape} and {marked.shape}."
        )
    size = row_count(data)
    if marked.dtype != bool or marked.shape != (size,):
        raise ValueError(
            f"boolean_mask: expected {size} booleans. Received: dtype {marked.dtype}, shape "
            f"{marked.shape}."
        )
    return take_rows(data, np.flatnonzero(marked))


def as_tensors(values: Any) -> list:
    """Converts the elements of a list to tensors, except for RaggedTensors."""
    hint = next(
        (v.flat_values if isinstance(v, RaggedTensor) else tensor_or_variable(v) for v in values),
        None,
    )
    dtype = None if hint is None else hint._spec.dtype
    return [v if isinstance(v, RaggedTensor) else as_tensor(v, hint=dtype) for v in values]


def unstack_rows(x: Any) -> list:
    """Returns the rows of a ragged or dense tensor."""
    if not isinstance(x, RaggedTensor):
        return list(unstack(as_tensor(x), axis=0))
    part = x._partition
    if isinstance(x.values, RaggedTensor):
        return list(x)
    return list(split(x.values, sizes=tuple(part.lengths.tolist()), axis=0)) if part.nrows else []


def tile(x: RaggedTensor, multiples: Sequence[int]) -> RaggedTensor:
    """Repeats `x` along each axis."""
    for axis, times in enumerate(multiples):
        if times == 0:
            x = x[(*[slice(None)] * axis, slice(0))]
        elif times != 1:
            x = concat([x] * times, axis)
    return x


def squeeze(x: Any, axis: int) -> Any:
    """Removes `axis`, which must have size 1."""
    if not isinstance(x, RaggedTensor):
        return dense.squeeze(x, axis)
    if axis > 1:
        return x.with_values(squeeze(x.values, axis - 1))
    lengths = x._partition.lengths if axis else np.array([x._partition.nrows])
    if (lengths != 1).any():
        raise invalid(
            f"squeeze: axis {as_text(axis)} has the lengths {lengths.tolist()}. Expected 1."
        )
    return x.values


def split_rows(x: RaggedTensor, sizes: Sequence[int]) -> list[RaggedTensor]:
    """Splits `x` into parts with these numbers of rows."""
    ends = np.cumsum([0, *sizes])
    if ends[-1] != x._partition.nrows:
        raise invalid(
            f"split: {x._partition.nrows} rows cannot be split into {shown(list(sizes))}."
        )
    return [take_rows(x, np.arange(a, b), uniform=True) for a, b in itertools.pairwise(ends)]
