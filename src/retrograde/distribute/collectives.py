"""Sums, means and concatenations over replicas, of structures of tensors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from retrograde.core.apply import apply
from retrograde.core.indexed_slices import IndexedSlices
from retrograde.core.tensor import Tensor
from retrograde.distribute import replica_threads
from retrograde.distribute.context import context
from retrograde.distribute.reduction import ReduceOp
from retrograde.ops import arithmetic as ar
from retrograde.ops import collectives
from retrograde.ops.conversion import as_tensor
from retrograde.values import dtypes, nest

BUCKET_BYTES = 4 << 20  # large enough that latency does not count


def all_reduce(op: ReduceOp, value: Any, bytes_per_pack: int = 0) -> Any:
    """Returns the sum or mean over all replicas of each tensor in a structure.

    Tensors are sent in buckets. `IndexedSlices` stay sparse: the rows of all replicas are
    concatenated.
    """
    if not _has_others():
        return value
    leaves = list(nest.leaves(value))
    results: list[Any] = list(leaves)
    indices = []
    for i, leaf in enumerate(leaves):
        if isinstance(leaf, IndexedSlices):
            results[i] = _concatenate_rows(op, leaf)
        elif leaf is not None:
            indices.append(i)
    tensors = [as_tensor(leaves[i]) for i in indices]
    for i, y in zip(indices, reduce_tensors(op, tensors, bytes_per_pack), strict=True):
        results[i] = y
    return nest.pack(value, iter(results))


def reduce_tensors(
    op: ReduceOp, tensors: Sequence[Tensor], bytes_per_pack: int = 0
) -> list[Tensor]:
    """Returns the sum or mean over all replicas of each tensor: one collective for each bucket."""
    if context.local is not None:
        sums = replica_threads.sum_over_replicas(tensors)
        return sums if op is ReduceOp.SUM else [divide_by_num_replicas(y) for y in sums]
    results: list[Any] = [None] * len(tensors)
    for bucket in buckets(tensors, bytes_per_pack or BUCKET_BYTES):
        sums = apply(collectives.all_reduce, tuple([tensors[i] for i in bucket]))
        for i, y in zip(bucket, sums, strict=True):
            results[i] = y if op is ReduceOp.SUM else divide_by_num_replicas(y)
    return results


def buckets(tensors: Sequence[Tensor], size: int) -> Iterator[list[int]]:
    """Yields buckets: indices of tensors of one dtype with at most `size` bytes in total.

    Tensors keep their order. A tensor with more than `size` bytes gets its own bucket.
    """
    specs = [x._spec for x in tensors]
    for dtype in dict.fromkeys(spec.dtype for spec in specs):
        bucket: list[int] = []
        used = 0
        for i, spec in enumerate(specs):
            if spec.dtype != dtype:
                continue
            nbytes = spec.size * dtype.itemsize
            if bucket and used + nbytes > size:
                yield bucket
                bucket, used = [], 0
            bucket.append(i)
            used += nbytes
        if bucket:
            yield bucket


def divide_by_num_replicas(total: Tensor, num_replicas: int | None = None) -> Tensor:
    """Divides a sum over all replicas by the number of replicas, by default of this context."""
    dtype = total._spec.dtype
    if num_replicas is None:
        local = 1 if context.strategy is None else context.strategy.num_replicas_in_sync
        num_replicas = max(collectives.num_replicas(), local)
    count = Tensor(np.array(num_replicas, dtype)[()])
    if dtype in dtypes.INEXACT:
        return apply(ar.divide, (total, count))
    return apply(ar.floor_divide, (total, count))


def _concatenate_rows(op: ReduceOp, slices: IndexedSlices) -> IndexedSlices:
    values = as_tensor(slices.values)
    values, indices = (all_gather(x, 0) for x in (values, as_tensor(slices.indices)))
    return IndexedSlices(
        values if op is ReduceOp.SUM else divide_by_num_replicas(values),
        indices,
        slices.dense_shape,
    )


def all_gather(value: Any, axis: int) -> Any:
    """Returns the tensors of all replicas, concatenated along `axis`."""
    x = as_tensor(value)
    if not _has_others():
        return x
    if context.local is not None:
        return replica_threads.gather_from_replicas(x, axis % max(x.ndim, 1))
    return apply(collectives.all_gather, (x,), {"axis": axis % max(x.ndim, 1)})


def _has_others() -> bool:
    """Returns whether there are other replicas to exchange values with."""
    return (
        context.local is not None
        or collectives.current_group().size > 1
        or collectives.in_spmd_program()
    )


def combine_local(op: ReduceOp, tensors: Sequence[Any]) -> Tensor:
    """Returns the sum or mean of the values of the replicas of this process."""
    parts = tuple([as_tensor(x) for x in tensors])
    (first,) = apply(collectives.sum_replicas, parts, {"replicas": len(parts)})
    if op is ReduceOp.SUM:
        return first
    count = Tensor(np.array(len(tensors), first._spec.dtype)[()])
    is_inexact = first._spec.dtype in dtypes.INEXACT
    return apply(ar.divide if is_inexact else ar.floor_divide, (first, count))


def broadcast_from_first(value: Any) -> Tensor:
    """Returns the tensor of the first replica."""
    (y,) = apply(collectives.broadcast_from_first, (as_tensor(value),))
    return y
