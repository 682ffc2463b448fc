"""Slicing, gathering, scattering and sorting."""

from __future__ import annotations

import builtins
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from retrograde.core.recorders import changes
from retrograde.core.tensor import Tensor
from retrograde.ops import arithmetic, indexing, shaping, slicing
from retrograde.ops.arguments import indices_from, integer, integer_array, integers, shape_from
from retrograde.ops.checks import check_range
from retrograde.ops.conversion import as_tensor, numeric_dtype, one_dtype
from retrograde.ops.host_functions import host_function
from retrograde.ops.variable_scatter import check_ordered
from retrograde.toplevel._bad_indices import (
    drop_out_of_bounds,
    gather_or_zero,
    ignores_bad_indices,
)
from retrograde.values import dtypes
from retrograde.values.arguments import shown
from retrograde.values.composites import dispatched
from retrograde.values.conversion import tensor_or_variable
from retrograde.values.errors import invalid, to_list
from retrograde.values.shapes import TensorShape, broadcast, normalize_axis

newaxis = None  # x[tf.newaxis]


def slice(input_: Any, begin: Any, size: Any, name: Any = None) -> Tensor:
    """Extracts the slice that starts at `begin` and has `size`; -1 means "to the end".

    >>> tf.slice([[1, 2, 3], [4, 5, 6]], [0, 1], [2, -1]).numpy()
    array([[2, 3], [5, 6]], dtype=int32)
    """
    x = as_tensor(input_)
    shape = x._spec.shape
    sizes = integers(size, "slice", ndim=1)
    if -1 not in sizes and len(sizes) == len(shape) and _is_dynamic(begin):
        return _dynamic_slice(x, as_tensor(begin), sizes)
    begins = integers(begin, "slice", ndim=1)
    if not len(begins) == len(sizes) == len(shape):
        raise invalid(
            f"slice: expected begin and size with {len(shape)} numbers, one for each axis. "
            f"Received: {begins} and {sizes}."
        )
    where = []
    for axis, (start, count, n) in enumerate(zip(begins, sizes, shape, strict=True)):
        stop = n if count == -1 else start + count
        if not 0 <= start <= stop <= n:
            raise invalid(
                f"slice: begin {start} and size {count} are out of bounds for axis {axis} of size "
                f"{n}."
            )
        where.append((start, stop, 1))
    return shaping.take_slice(x, where=tuple(where))


def _is_dynamic(begin: Any) -> bool:
    """Returns whether `begin` changes between calls to a traced function."""
    parts = begin if isinstance(begin, (list, tuple)) else (begin,)
    return any([x is not None and changes(x._read()) for x in map(tensor_or_variable, parts)])


def _dynamic_slice(x: Tensor, begin: Tensor, sizes: tuple[int, ...]) -> Tensor:
    """Extracts a slice whose position changes between calls to a traced function."""
    for axis, (size, n) in enumerate(zip(sizes, x._spec.shape, strict=True)):
        requirement = f"slice: size {size} along axis {axis} of size {n} requires begin"
        start = check_range(begin[axis], low=0, high=n - size + 1, requirement=requirement)
        indices = start + np.arange(size).astype(begin._spec.dtype)
        x = indexing.gather(x, indices, axis=axis, dense_gradient=True)
    return x


def strided_slice(
    input_: Any,
    begin: Any,
    end: Any,
    strides: Any = None,
    begin_mask: int = 0,
    end_mask: int = 0,
    ellipsis_mask: int = 0,
    new_axis_mask: int = 0,
    shrink_axis_mask: int = 0,
    var: Any = None,
    name: Any = None,
) -> Tensor:
    """Computes `input_[begin:end:strides]` for several axes at once.

    Bit i of a mask applies to element i: `begin_mask` and `end_mask` ignore the bound, and the
    others mark an ellipsis, a new axis, or an integer instead of a slice.
    """
    begins, ends = (integers(v, "strided_slice", ndim=1) for v in (begin, end))
    steps = (1,) * len(begins) if strides is None else integers(strides, "strided_slice", ndim=1)
    if not len(begins) == len(ends) == len(steps):
        raise invalid(
            "strided_slice: expected begin, end and strides of equal length. Received: "
            f"{begins}, {ends} and {steps}."
        )
    key = []
    for i, (start, stop, step) in enumerate(zip(begins, ends, steps, strict=True)):
        if ellipsis_mask >> i & 1:
            key.append(Ellipsis)
        elif new_axis_mask >> i & 1:
            key.append(None)
        elif shrink_axis_mask >> i & 1:
            key.append(start)
        else:
            start = None if begin_mask >> i & 1 else start
            key.append(builtins.slice(start, None if end_mask >> i & 1 else stop, step))
    return slicing.get_item(as_tensor(input_), tuple(key))


def boolean_mask(tensor: Any, mask: Any, axis: Any = None, name: Any = "boolean_mask") -> Tensor:
    """Selects the elements where `mask` is true, over as many axes as it has, starting at `axis`.

    >>> tf.boolean_mask([1, 2, 3], [True, False, True]).numpy()
    array([1, 3], dtype=int32)
    """
    x, keep = as_tensor(tensor), as_tensor(mask)
    first = 0 if axis is None else integer(axis, "boolean_mask")
    size = keep._spec.shape
    if not size:
        raise ValueError("boolean_mask: the mask cannot be a scalar.")
    first += x._spec.ndim if first < 0 else 0
    covered = x._spec.shape[first : first + len(size)]
    if covered != size:
        raise ValueError(
            f"boolean_mask: shapes {covered} of the masked axes and {size} of the mask are "
            "incompatible."
        )
    return slicing.boolean_mask(x, keep, first)


@dispatched
def where(condition: Any, x: Any = None, y: Any = None, name: Any = None) -> Tensor:
    """Selects `x` where `condition` is true, else `y`; without them, returns the true indices.

    All three broadcast against each other. The gradient of elements that are not selected is zero,
    even if they are not finite.

    >>> tf.where([True, False, True], [1, 2, 3], 0).numpy(), tf.where([False, True]).numpy()
    (array([1, 0, 3], dtype=int32), array([[1]]))
    """
    if (x is None) != (y is None):
        raise ValueError("where: x and y must both be non-None or both be None.")
    if x is None:
        return _true_indices(as_tensor(condition))
    keep = as_tensor(condition, np.dtype(bool))
    x1, x2 = one_dtype((x, y))
    if x1._spec.dtype != x2._spec.dtype:
        raise invalid(
            f"where: x has dtype {x1.dtype.name} and y {x2.dtype.name}. Expected the same dtype."
        )
    shapes = [tuple(t._spec.shape) for t in (keep, x1, x2)]
    if broadcast(*shapes) is None:
        raise invalid("where: condition {}, x {} and y {} must be broadcastable.".format(*shapes))
    return arithmetic.select(keep, x1, x2)


@host_function(dynamic_shapes=True)
def _true_indices(condition: Tensor) -> Tensor:
    array = np.asarray(condition)
    if not array.ndim or array.dtype.kind == "O":
        raise invalid(
            "where: without x and y, the condition must be a numeric or bool tensor of rank >= 1. "
            f"Received: shape {array.shape}, dtype {condition.dtype.name}."
        )
    return Tensor(np.argwhere(array).astype(np.int64))


@dispatched
def gather(
    params: Any,
    indices: Any,
    validate_indices: Any = None,
    axis: Any = None,
    batch_dims: int = 0,
    name: Any = None,
) -> Tensor:
    """Gathers the slices of `params` at `indices` along `axis`.

    The first `batch_dims` axes of both are matched: each batch element has its own indices.

    >>> tf.gather(["a", "b", "c"], [2, 0]).numpy()
    array([b'c', b'a'], dtype=object)
    """
    x, indices = as_tensor(params), indices_from(indices, "gather")
    requested = 0 if batch_dims is None else integer(batch_dims, "gather: batch_dims")
    batch = requested + indices._spec.ndim if requested < 0 else requested
    if x._spec.ndim <= batch:
        raise invalid(f"gather: params must have at least {batch + 1} axes.")
    along = requested if axis is None else integer(axis, "gather")
    position = normalize_axis(along, x._spec.ndim, "gather")
    if not batch:
        # For a negative axis, TensorFlow's gradient is dense.
        return indexing.gather(x, indices, axis=position, dense_gradient=along < 0)
    _check_batches(x, indices, batch, "gather")
    if position < batch:
        raise invalid(f"gather: expected axis >= batch_dims. Received: {position} and {batch}.")
    return gather_batches(x, indices, position, batch)


def _check_batches(x: Tensor, indices: Tensor, batch: int, op_name: str) -> None:
    shapes = tuple(x._spec.shape[:batch]), tuple(indices._spec.shape[:batch])
    if shapes[0] != shapes[1] or len(shapes[0]) < batch:
        raise invalid(
            f"{op_name}: params and indices start with {shapes[0]} and {shapes[1]}. Expected the "
            f"first batch_dims={batch} axes to have the same sizes."
        )


def gather_batches(x: Tensor, indices: Tensor, axis: int, batch: int) -> Tensor:
    """Gathers along `axis`, with separate indices for each batch element."""
    ndim, index_ndim = x._spec.ndim, indices._spec.ndim - batch
    others = [i for i in builtins.range(ndim) if i != axis]
    front = shaping.transpose(x, perm=(*others[:batch], axis, *others[batch:]))
    last = shaping.reshape(indices, shape=(*indices._spec.shape, 1))
    y = indexing.gather_nd(front, last, batch_dims=batch)
    order = list(builtins.range(y._spec.ndim))
    taken_axes, rest = order[batch : batch + index_ndim], order[batch + index_ndim :]
    between = axis - batch
    return shaping.transpose(
        y, perm=(*order[:batch], *rest[:between], *taken_axes, *rest[between:])
    )


@dispatched
def gather_nd(
    params: Any,
    indices: Any,
    batch_dims: int = 0,
    name: Any = None,
    bad_indices_policy: str = "",
) -> Tensor:
    """Gathers the elements or slices at the coordinates in the last axis of `indices`.

    >>> tf.gather_nd([[1, 2], [3, 4]], [[0, 1], [1, 0]]).numpy()
    array([2, 3], dtype=int32)
    """
    x, indices = as_tensor(params), indices_from(indices, "gather_nd")
    batch = integer(batch_dims, "gather_nd: batch_dims")
    if batch and not 0 < batch < builtins.min(x._spec.ndim, indices._spec.ndim):
        raise ValueError(
            "gather_nd: batch_dims must be non-negative and less than the rank of params and "
            f"indices. Received: {batch} for shapes {x.shape} and {indices.shape}."
        )
    _check_coordinates(indices, x._spec.ndim - batch, "gather_nd")
    _check_batches(x, indices, batch, "gather_nd")
    if ignores_bad_indices(bad_indices_policy, "gather_nd"):
        return gather_or_zero(x, indices, batch)
    return indexing.gather_nd(x, indices, batch_dims=batch)


def _check_coordinates(indices: Tensor, ndim: int, op_name: str) -> None:
    shape = indices._spec.shape
    if not shape or shape[-1] > ndim:
        raise invalid(
            f"{op_name}: indices have shape {shape}. Expected a last axis with at most {ndim} "
            "coordinates, the number of axes to index."
        )


def scatter_nd(
    indices: Any, updates: Any, shape: Any, bad_indices_policy: str = "", name: Any = None
) -> Tensor:
    """Adds `updates` to zeros of `shape`, at the coordinates in the last axis of `indices`.

    >>> tf.scatter_nd([[1], [3], [1]], [9, 10, 11], [5]).numpy()
    array([ 0, 20,  0, 10,  0], dtype=int32)
    """
    indices, values = indices_from(indices, "scatter_nd"), as_tensor(updates)
    sizes = shape_from(shape, "scatter_nd")
    _check_updates(indices, values, sizes, "scatter_nd")
    if ignores_bad_indices(bad_indices_policy, "scatter_nd"):
        indices, values = drop_out_of_bounds(indices, values, sizes)
    return indexing.scatter_nd(values, indices, shape=sizes, batch_dims=0)


def _check_updates(indices: Tensor, values: Tensor, shape: tuple[int, ...], op_name: str) -> None:
    _check_coordinates(indices, len(shape), op_name)
    *outer, depth = indices._spec.shape
    expected = (*outer, *shape[depth:])
    if tuple(values._spec.shape) != expected:
        raise invalid(
            f"{op_name}: updates have shape {tuple(values._spec.shape)}. Expected {expected} for "
            f"indices of shape {tuple(indices._spec.shape)} into shape {tuple(shape)}."
        )


def _scatter_operands(
    tensor: Any, indices: Any, updates: Any, op_name: str, policy: str = ""
) -> tuple[Tensor, ...]:
    x, values = one_dtype((tensor, updates))
    indices = indices_from(indices, op_name)
    if x._spec.dtype != values._spec.dtype:
        raise invalid(
            f"{op_name}: the tensor has dtype {x.dtype.name} and the updates {values.dtype.name}. "
            "Expected the same dtype."
        )
    _check_updates(indices, values, x._spec.shape, op_name)
    if ignores_bad_indices(policy, op_name):
        indices, values = drop_out_of_bounds(indices, values, x._spec.shape)
    return x, values, indices


def tensor_scatter_nd_add(
    tensor: Any, indices: Any, updates: Any, bad_indices_policy: str = "", name: Any = None
) -> Tensor:
    """Adds `updates` to `tensor` at the coordinates in the last axis of `indices`."""
    x, values, indices = _scatter_operands(
        tensor, indices, updates, "tensor_scatter_nd_add", bad_indices_policy
    )
    return x + indexing.scatter_nd(values, indices, shape=tuple(x._spec.shape), batch_dims=0)


def tensor_scatter_nd_sub(
    tensor: Any, indices: Any, updates: Any, bad_indices_policy: str = "", name: Any = None
) -> Tensor:
    """Subtracts `updates` from `tensor` at the coordinates in the last axis of `indices`."""
    x, values, indices = _scatter_operands(
        tensor, indices, updates, "tensor_scatter_nd_sub", bad_indices_policy
    )
    return x - indexing.scatter_nd(values, indices, shape=tuple(x._spec.shape), batch_dims=0)


def tensor_scatter_nd_update(tensor: Any, indices: Any, updates: Any, name: Any = None) -> Tensor:
    """Replaces elements of `tensor` by `updates` at the coordinates in `indices`.

    >>> tf.tensor_scatter_nd_update([1, 2, 3], [[0], [2]], [10, 30]).numpy()
    array([10,  2, 30], dtype=int32)
    """
    x, values, indices = _scatter_operands(tensor, indices, updates, "tensor_scatter_nd_update")
    return indexing.put_nd(x, values, indices, batch_dims=0)


def tensor_scatter_nd_max(
    tensor: Any, indices: Any, updates: Any, bad_indices_policy: str = "", name: Any = None
) -> Tensor:
    """Takes the maximum of `tensor` and `updates` at the coordinates in `indices`."""
    x, values, indices = _scatter_operands(
        tensor, indices, updates, "tensor_scatter_nd_max", bad_indices_policy
    )
    check_ordered(x._spec, "tensor_scatter_nd_max")
    return indexing.max_nd(x, values, indices, batch_dims=0)


def tensor_scatter_nd_min(
    tensor: Any, indices: Any, updates: Any, bad_indices_policy: str = "", name: Any = None
) -> Tensor:
    """Takes the minimum of `tensor` and `updates` at the coordinates in `indices`."""
    x, values, indices = _scatter_operands(
        tensor, indices, updates, "tensor_scatter_nd_min", bad_indices_policy
    )
    check_ordered(x._spec, "tensor_scatter_nd_min")
    return indexing.min_nd(x, values, indices, batch_dims=0)


def reverse_sequence(
    input: Any,
    seq_lengths: Any,
    seq_axis: int | None = None,
    batch_axis: int | None = None,
    name: Any = None,
) -> Tensor:
    """Reverses the first `seq_lengths[b]` elements along `seq_axis` in each batch element b.

    >>> tf.reverse_sequence([[1, 2, 3], [4, 5, 6]], [2, 3], seq_axis=1).numpy()
    array([[2, 1, 3], [6, 5, 4]], dtype=int32)
    """
    x = as_tensor(input)
    ndim = x._spec.ndim
    along = normalize_axis(seq_axis, ndim, "reverse_sequence")
    batch = normalize_axis(batch_axis or 0, ndim, "reverse_sequence")
    if along == batch:
        raise invalid(
            f"reverse_sequence: seq_axis and batch_axis must differ. Received: {along} for both."
        )
    indices = _reversed_indices(seq_lengths, x._spec.shape, batch, along)
    order = (batch, *(i for i in builtins.range(ndim) if i != batch))
    y = gather_batches(shaping.transpose(x, perm=order), indices, order.index(along), 1)
    return shaping.transpose(y, perm=tuple(order.index(i) for i in builtins.range(ndim)))


@host_function
def _reversed_indices(seq_lengths: Any, shape: tuple, batch: int, along: int) -> Tensor:
    """Returns the source index of each element, for each batch element."""
    lengths = integer_array(seq_lengths, "reverse_sequence")
    if lengths.ndim != 1:
        raise invalid(
            f"reverse_sequence: expected a list of lengths. Received: {shown(seq_lengths)}."
        )
    lengths, size = lengths[:, None], shape[along]
    if lengths.shape[0] != shape[batch] or not ((lengths >= 0) & (lengths <= size)).all():
        raise invalid(
            f"reverse_sequence: lengths {lengths[:, 0].tolist()} do not match shape "
            f"{tuple(shape)}. Expected one length of at most {size} for each batch element."
        )
    steps = np.arange(size)
    return Tensor(np.where(steps < lengths, lengths - 1 - steps, steps))


_MAX_PARTITIONS = 10**6  # each is a tensor; creating this many takes seconds


@dispatched
def dynamic_partition(
    data: Any, partitions: Any, num_partitions: int, name: Any = None
) -> list[Tensor]:
    """Partitions the slices of `data`: slice i goes to partition `partitions[i]`."""
    x, parts = as_tensor(data), as_tensor(partitions)
    shape, covered = tuple(x._spec.shape), parts._spec.shape
    if shape[: len(covered)] != covered:
        raise invalid(
            f"dynamic_partition: data of shape {shape} must start with the shape {covered} of the "
            "partitions."
        )
    count = integer(num_partitions, "dynamic_partition", TypeError)
    if count < 1:
        raise invalid(f"dynamic_partition: expected at least one partition. Received: {count}.")
    if count > _MAX_PARTITIONS:
        raise invalid(
            f"dynamic_partition: expected at most {_MAX_PARTITIONS} partitions. Received: {count}."
        )
    flat = shaping.reshape(x, shape=(parts._spec.size, *shape[len(covered) :]))
    return [indexing.gather(flat, indices, axis=0) for indices in _partition_indices(parts, count)]


@host_function(dynamic_shapes=True)
def _partition_indices(partitions: Tensor, count: int) -> list[Tensor]:
    """Returns the indices of the slices of each partition."""
    parts = integer_array(partitions, "dynamic_partition")
    if parts.size and not (parts.min() >= 0 and parts.max() < count):
        raise invalid(
            f"dynamic_partition: partitions must be in [0, {count}). Received: {parts.tolist()}."
        )
    return [Tensor(np.flatnonzero(parts == i)) for i in builtins.range(count)]


def dynamic_stitch(indices: Sequence[Any], data: Sequence[Any], name: Any = None) -> Tensor:
    """Merges slices in the order of `indices`; for duplicate indices the last slice wins.

    >>> tf.dynamic_stitch([[0, 2], [1]], [[10, 30], [20]]).numpy()
    array([10, 20, 30], dtype=int32)
    """
    indices = [as_tensor(i) for i in to_list("dynamic_stitch", indices)]
    xs = one_dtype(to_list("dynamic_stitch", data))
    if not indices or len(indices) != len(xs):
        raise (ValueError if indices else invalid)(
            f"dynamic_stitch: {len(indices)} lists of indices for {len(xs)} of data. Expected the "
            "same number, at least one."
        )
    rest = tuple(xs[0]._spec.shape[indices[0]._spec.ndim :])
    sizes = [p._spec.size for p in indices]
    rows = [shaping.reshape(x, shape=(n, *rest)) for x, n in zip(xs, sizes, strict=True)]
    targets, template = _stitch_targets(indices)
    dtype = xs[0]._spec.dtype
    filler = b"" if dtype.kind == "O" else 0
    empty = Tensor(np.full((*template._spec.shape, *rest), filler, dtype))
    values = shaping.concat(*rows, axis=0)
    return indexing.put_nd(empty, values, targets, batch_dims=0)


@host_function(dynamic_shapes=True)
def _stitch_targets(indices: list[Tensor]) -> tuple[Tensor, Tensor]:
    """Returns the target of each slice, and a tensor as long as the result."""
    targets = np.concatenate([integer_array(i, "dynamic_stitch").reshape(-1) for i in indices])
    return Tensor(targets[:, None]), Tensor(np.zeros(targets.max(initial=-1) + 1, bool))


def argsort(
    values: Any,
    axis: int = -1,
    direction: str = "ASCENDING",
    stable: bool = False,
    name: Any = None,
) -> Tensor:
    """Returns the indices that sort `values` along `axis`. The sort is stable.

    >>> tf.argsort([3, 1, 2]).numpy()
    array([1, 2, 0], dtype=int32)
    """
    x = as_tensor(values)
    position = _check_axis(axis, x, "argsort")
    return indexing.argsort(x, axis=position, descending=_is_descending(direction))


def _check_axis(axis: Any, x: Tensor, op_name: str) -> int:
    if axis is None or isinstance(axis, range) or np.ndim(axis):
        raise ValueError(f"{op_name}: `axis` must be a single integer. Received: {shown(axis)}.")
    return normalize_axis(axis, x._spec.ndim, op_name)


def _is_descending(direction: str) -> bool:
    if direction not in ("ASCENDING", "DESCENDING"):
        raise ValueError(
            f"Argument `direction` should be one of ASCENDING, DESCENDING. Received: "
            f"{shown(direction)}."
        )
    return direction == "DESCENDING"


def sort(values: Any, axis: int = -1, direction: str = "ASCENDING", name: Any = None) -> Tensor:
    """Sorts along `axis` in ascending or descending order.

    >>> tf.sort([3, 1, 2], direction="DESCENDING").numpy()
    array([3, 2, 1], dtype=int32)
    """
    x = as_tensor(values)
    position = _check_axis(axis, x, "sort")
    order = indexing.argsort(x, axis=position, descending=_is_descending(direction))
    last = x._spec.ndim - 1
    if not last:
        return indexing.gather(x, order, axis=0, dense_gradient=True)
    swap = tuple({position: last, last: position}.get(i, i) for i in builtins.range(last + 1))
    x, order = shaping.transpose(x, perm=swap), shaping.transpose(order, perm=swap)
    return shaping.transpose(gather_batches(x, order, last, last), perm=swap)


@host_function
def searchsorted(
    sorted_sequence: Any,
    values: Any,
    side: str = "left",
    out_type: Any = dtypes.int32,
    name: Any = None,
) -> Tensor:
    """Returns the insertion index of each of `values` in a sorted sequence, row by row.

    >>> tf.searchsorted([1, 3, 5], [0, 3, 6]).numpy()
    array([0, 1, 3], dtype=int32)
    """
    if side not in ("left", "right"):
        raise ValueError(
            f"searchsorted: `side` must be 'right' or 'left'. Received: {shown(side)}."
        )
    rows, queries = (np.asarray(as_tensor(x)) for x in (sorted_sequence, values))
    count = math.prod(rows.shape[:-1])
    if count != math.prod(queries.shape[:-1]) or not rows.ndim or not queries.ndim:
        raise invalid(
            f"searchsorted: shapes {rows.shape} and {queries.shape} do not have the same number of "
            "rows."
        )
    if rows.dtype != queries.dtype or rows.dtype not in dtypes.REAL:
        names = " and ".join(dtypes.of(x.dtype).name for x in (rows, queries))
        raise invalid(f"searchsorted: expected the same real dtype for both. Received: {names}.")
    flat = [x.reshape(count, x.shape[-1]) for x in (rows, queries)]
    insertions = [np.searchsorted(row, v, side) for row, v in zip(*flat, strict=True)]
    return Tensor(
        np.array(insertions, numeric_dtype(out_type, np.int32, "searchsorted")).reshape(
            queries.shape
        )
    )


class Unique(NamedTuple):
    """The result of `tf.unique`."""

    y: Tensor
    idx: Tensor


class UniqueWithCounts(NamedTuple):
    """The result of `tf.unique_with_counts`."""

    y: Tensor
    idx: Tensor
    count: Tensor


def unique(x: Any, out_idx: Any = dtypes.int32, name: Any = None) -> Unique:
    """Returns the distinct values of a vector, in order of occurrence, and each element's index.

    >>> y, idx = tf.unique([5, 7, 5])
    >>> y.numpy(), idx.numpy()
    (array([5, 7], dtype=int32), array([0, 1, 0], dtype=int32))
    """
    return Unique(*unique_with_counts(x, out_idx)[:2])


@host_function(dynamic_shapes=True)
def unique_with_counts(x: Any, out_idx: Any = dtypes.int32, name: Any = None) -> UniqueWithCounts:
    """Returns `tf.unique` and the number of occurrences of each value."""
    array = np.asarray(as_tensor(x))
    if array.ndim != 1:
        raise invalid(f"unique: expected a vector. Received: shape {array.shape}.")
    values, first, inverse, counts = np.unique(
        array, return_index=True, return_inverse=True, return_counts=True, equal_nan=False
    )
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(order.size)
    dtype = numeric_dtype(out_idx, np.int32, "unique")
    results = values[order], rank[inverse].astype(dtype), counts[order].astype(dtype)
    return UniqueWithCounts(*map(Tensor, results))


@host_function(dynamic_shapes=True)
def unravel_index(indices: Any, dims: Any, name: Any = None) -> Tensor:
    """Converts flat indices to coordinates in an array of shape `dims`.

    >>> tf.unravel_index([5, 1], [2, 3]).numpy()
    array([[1, 0], [2, 1]], dtype=int32)
    """
    flat = indices_from(indices, "unravel_index")
    array, shape = np.asarray(flat), TensorShape(shape_from(dims, "unravel_index"))
    if array.size and not (array.min() >= 0 and array.max() < shape.num_elements()):
        raise invalid(f"unravel_index: index is out of bound for shape {shape}.")
    indices = np.unravel_index(array, tuple(shape)) if shape.rank else ()
    return Tensor(np.array(indices, flat._spec.dtype).reshape(shape.rank, *array.shape))
