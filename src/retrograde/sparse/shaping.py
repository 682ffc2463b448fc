"""Reshaping, slicing, splitting and concatenation of sparse tensors."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from retrograde.core.indexed_slices import IndexedSlices
from retrograde.core.tensor import Tensor
from retrograde.ops.arguments import integer, integer_array
from retrograde.ops.casting import stop_gradient
from retrograde.ops.conversion import as_tensor
from retrograde.ops.host_functions import host_function
from retrograde.ops.indexing import gather
from retrograde.ops.shaping import broadcast_to, stack
from retrograde.ops.shaping import concat as concat_tensors
from retrograde.ops.slicing import true_indices
from retrograde.sparse._indices import (
    as_sparse,
    check_same_dtype,
    indices_array,
    make_sparse,
    shape_of,
    sort_order,
    take,
)
from retrograde.sparse.tensor import HANDLERS, SparseTensor
from retrograde.values.arguments import expect, shown
from retrograde.values.errors import invalid, reports_out_of_memory
from retrograde.values.shapes import normalize_axis


def reorder(sp_input: Any, name: str | None = None) -> SparseTensor:
    """Sorts the indices in row-major order.

    >>> x = tf.SparseTensor([[1], [0]], [5.0, 7.0], [2])
    >>> tf.sparse.reorder(x).values.numpy()
    array([7., 5.], dtype=float32)
    """
    x = as_sparse(sp_input)
    return _permute_and_sort(x.indices, x.values, shape_of(x))


def _permute_and_sort(
    indices: Tensor, values: Tensor, shape: Sequence[int], axes: Sequence[int] | None = None
) -> SparseTensor:
    """Creates a SparseTensor with its axes permuted to `axes` and its indices sorted."""
    ordered, order = _sorted_indices(indices, range(len(shape)) if axes is None else axes)
    return make_sparse(ordered, take(values, order), shape)


@host_function
def _sorted_indices(indices: Tensor, axes: Sequence[int]) -> tuple[Tensor, Tensor]:
    columns = np.asarray(indices)[:, list(axes)]
    order = sort_order(columns)
    return Tensor(columns[order]), Tensor(order)


def transpose(sp_input: Any, perm: Any = None, name: str | None = None) -> SparseTensor:
    """Permutes the axes to the order `perm`, by default the reverse order.

    >>> x = tf.SparseTensor([[0, 2]], [5.0], [2, 3])
    >>> tf.sparse.transpose(x).indices.numpy()
    array([[2, 0]])
    """
    x = as_sparse(sp_input)
    shape = shape_of(x)
    rank = len(shape)
    order = [*range(rank)][::-1] if perm is None else _integers(perm, "transpose: perm")
    if sorted(order) != [*range(rank)]:
        raise ValueError(
            f"transpose: perm must be a permutation of the {rank} axes. Received: {order}."
        )
    return _permute_and_sort(x.indices, x.values, [shape[i] for i in order], order)


def _integers(value: Any, op_name: str) -> list[int]:
    return integer_array(value, op_name).reshape(-1).tolist()


def reshape(sp_input: Any, shape: Any, name: str | None = None) -> SparseTensor:
    """Changes the dense shape; one dimension may be -1 and is then inferred.

    >>> x = tf.SparseTensor([[1, 0]], [5.0], [2, 2])
    >>> tf.sparse.reshape(x, [-1]).indices.numpy()
    array([[2]])
    """
    x = as_sparse(sp_input)
    before = shape_of(x)
    after = _infer_shape(_integers(shape, "reshape: shape"), before)
    return make_sparse(_reshape_indices(x.indices, before, after), x.values, after)


@host_function
def _reshape_indices(indices: Tensor, before: Sequence[int], after: Sequence[int]) -> Tensor:
    flat = np.asarray(indices) @ np.array(_strides(before), np.int64)
    new_indices = np.empty((len(flat), len(after)), np.int64)
    for axis, stride in enumerate(_strides(after)):
        new_indices[:, axis], flat = np.divmod(flat, max(stride, 1))
    return Tensor(new_indices)


def _strides(shape: Sequence[int]) -> list[int]:
    return [math.prod(shape[i + 1 :]) for i in range(len(shape))]


def _infer_shape(shape: list[int], before: tuple[int, ...]) -> list[int]:
    """Returns `shape` with its -1 replaced."""
    total, known = math.prod(before), math.prod(n for n in shape if n != -1)
    if total >= 2**63:
        raise invalid(f"reshape: shape {before} has {total} elements, more than an int64 can hold.")
    if shape.count(-1) > 1:
        raise invalid(f"reshape: only one dimension may be -1. Received: shape {shape}.")
    if -1 in shape and known and total % known == 0:
        return [total // known if n == -1 else n for n in shape]
    if -1 in shape or known != total:
        raise invalid(
            f"reshape: a SparseTensor of shape {before} has {total} elements including zeros, "
            f"which is not compatible with the shape {shape}."
        )
    return shape


def expand_dims(sp_input: Any, axis: Any = None, name: str | None = None) -> SparseTensor:
    """Inserts an axis of size 1 before `axis`, by default at the end."""
    x = as_sparse(sp_input)
    shape = list(shape_of(x))
    new_axis = -1 if axis is None else integer(axis, "expand_dims: axis")
    position = normalize_axis(new_axis, len(shape) + 1, "expand_dims")
    shape.insert(position, 1)
    return make_sparse(_with_column(x.indices, position), x.values, shape)


@host_function
def _with_column(indices: Tensor, position: int) -> Tensor:
    """Inserts a column of zeros."""
    return Tensor(np.insert(np.asarray(indices), position, 0, axis=1))


def reset_shape(sp_input: Any, new_shape: Any = None) -> SparseTensor:
    """Enlarges the dense shape to `new_shape`, or without it shrinks it to fit the values.

    >>> x = tf.SparseTensor([[0, 1]], [5.0], [9, 9])
    >>> tf.sparse.reset_shape(x).shape
    TensorShape([1, 2])
    """
    x = as_sparse(sp_input)
    before = shape_of(x)
    if new_shape is None:
        after = np.max(indices_array(x) + 1, axis=0, initial=0).tolist()
    else:
        after = _integers(new_shape, "reset_shape: new_shape")
        if len(after) != len(before) or any(map(operator.lt, after, before)):
            raise ValueError(
                "reset_shape: new_shape must have the rank of the SparseTensor and must not be "
                f"smaller along any axis. Received: {after} for shape {shown(list(before))}."
            )
    return make_sparse(x.indices, x.values, after)


def retain(sp_input: Any, to_retain: Any) -> SparseTensor:
    """Keeps only the values for which `to_retain` is true.

    >>> x = tf.SparseTensor([[0], [2]], [5.0, 7.0], [3])
    >>> tf.sparse.retain(x, [False, True]).values.numpy()
    array([7.], dtype=float32)
    """
    x = as_sparse(sp_input)
    keep, (count,) = as_tensor(to_retain), x.values._spec.shape
    if keep._spec.shape != (count,):
        raise ValueError(
            f"retain: expected one boolean for each of {count} values. Received: shape "
            f"{keep._spec.shape}."
        )
    kept = true_indices(keep)
    return make_sparse(take(x.indices, kept), gather(x.values, kept, axis=0), shape_of(x))


def mask(a: IndexedSlices, mask_indices: Any, name: str | None = None) -> IndexedSlices:
    """Removes the rows of IndexedSlices whose index is in `mask_indices`.

    >>> rows = tf.IndexedSlices(tf.constant([[1.0], [2.0]]), tf.constant([0, 2]))
    >>> tf.sparse.mask(rows, [0]).values.numpy()
    array([[2.]], dtype=float32)
    """
    expect(a, IndexedSlices, "mask", "tf.IndexedSlices")
    indices = as_tensor(a.indices)
    keep = _find_unmasked(indices, as_tensor(mask_indices))
    return IndexedSlices(
        gather(as_tensor(a.values), keep, axis=0), gather(indices, keep, axis=0), a.dense_shape
    )


@host_function(dynamic_shapes=True)
def _find_unmasked(indices: Tensor, masked: Tensor) -> Tensor:
    hidden = np.isin(np.asarray(indices), np.asarray(masked).reshape(-1))
    return Tensor(np.flatnonzero(~hidden).astype(np.int32))


def slice(sp_input: Any, start: Any, size: Any, name: str | None = None) -> SparseTensor:
    """Extracts the slice of `size` at `start`, clipped at the end of each axis.

    >>> x = tf.SparseTensor([[0, 1], [1, 2]], [5.0, 7.0], [2, 3])
    >>> tf.sparse.slice(x, [1, 1], [1, 2]).indices.numpy()
    array([[0, 1]])
    """
    x = as_sparse(sp_input)
    shape = shape_of(x)
    first, sizes = (_integers(v, "slice") for v in (start, size))
    if not len(first) == len(sizes) == len(shape):
        raise invalid(
            f"slice: expected start and size to have one integer for each of {len(shape)} axes. "
            f"Received: {first} and {sizes}."
        )
    if min(sizes, default=0) < 0:
        raise invalid(f"slice: expected sizes >= 0. Received: {sizes}.")
    return _slice(
        x, np.array(first, np.int64), np.array(sizes, np.int64), np.array(shape, np.int64)
    )


def _slice(x: SparseTensor, start: Any, size: Any, shape: np.ndarray) -> SparseTensor:
    indices, inside = _indices_in_slice(x.indices, start.tolist(), size.tolist())
    return make_sparse(indices, take(x.values, inside), np.clip(shape - start, 0, size))


@host_function(dynamic_shapes=True)
def _indices_in_slice(indices: Tensor, start: list[int], size: list[int]) -> tuple[Tensor, Tensor]:
    """Returns the indices inside a slice, relative to its start, and their positions."""
    index_array, first = np.asarray(indices), np.array(start, np.int64)
    inside = ((index_array >= first) & (index_array < first + np.array(size, np.int64))).all(1)
    return Tensor(index_array[inside] - first), Tensor(np.flatnonzero(inside))


def split(
    sp_input: Any = None, num_split: Any = None, axis: Any = None, name: str | None = None
) -> list[SparseTensor]:
    """Splits along `axis` into `num_split` parts; if they cannot be equal, the first are larger."""
    for value, argument in ((sp_input, "sp_input"), (num_split, "num_split"), (axis, "axis")):
        if value is None:
            raise ValueError(f"split: {argument} is required.")
    x, count = as_sparse(sp_input), integer(num_split, "split: num_split")
    shape = np.array(shape_of(x), np.int64)
    along = normalize_axis(integer(axis, "split: axis"), len(shape), "split")
    if not 1 <= count <= shape[along]:
        raise invalid(
            f"split: num_split should be between 1 and the size of the axis, {shape[along]}. "
            f"Received: {count}."
        )
    small, larger = divmod(int(shape[along]), count)
    parts, start = [], np.zeros_like(shape)
    for i in range(count):
        size = shape.copy()
        size[along] = small + (i < larger)
        parts.append(_slice(x, start, size, shape))
        start = start.copy()
        start[along] += size[along]
    return parts


def concat(
    axis: Any, sp_inputs: Any, expand_nonconcat_dims: bool = False, name: str | None = None
) -> SparseTensor:
    """Concatenates SparseTensors along `axis`. As in TensorFlow, no gradient flows.

    With `expand_nonconcat_dims`, the other axes may differ and get their maximum size.

    >>> x = tf.SparseTensor([[0, 1]], [5.0], [1, 2])
    >>> tf.sparse.concat(0, [x, x]).indices.numpy()
    array([[0, 1],
           [1, 1]])
    """
    if not isinstance(sp_inputs, (list, tuple)) or not sp_inputs:
        raise TypeError(f"concat: expected a list of SparseTensors. Received: {shown(sp_inputs)}.")
    xs = [as_sparse(x) for x in sp_inputs]
    if len(xs) == 1:
        return xs[0]
    check_same_dtype("concat", *(x.values for x in xs))
    shapes = [shape_of(x) for x in xs]
    if len({len(shape) for shape in shapes}) > 1:
        raise invalid(f"concat: the ranks of the shapes {shapes} differ. Expected equal ranks.")
    along = normalize_axis(integer(axis, "concat: axis"), len(shapes[0]), "concat")
    new_shape = np.max(shapes, axis=0)
    others = {shape[:along] + shape[along + 1 :] for shape in shapes}
    if len(others) > 1 and not expand_nonconcat_dims:
        raise invalid(
            f"concat: shapes {shapes} cannot be concatenated along axis {along}. Expected equal "
            "sizes along the other axes, or expand_nonconcat_dims=True."
        )
    starts = np.cumsum([0, *(shape[along] for shape in shapes)])
    new_shape[along] = starts[-1]
    steps = [np.eye(len(new_shape), dtype=np.int64)[along] * start for start in starts]
    moved = [x.indices + step for x, step in zip(xs, steps, strict=False)]
    values = concat_tensors(*(stop_gradient(x.values) for x in xs), axis=0)
    return _permute_and_sort(concat_tensors(*moved, axis=0), values, new_shape)


def fill_empty_rows(
    sp_input: Any, default_value: Any, name: str | None = None
) -> tuple[SparseTensor, Tensor]:
    """Adds `default_value` at the start of each empty row, and returns which rows were empty.

    >>> x = tf.SparseTensor([[0, 1]], [5.0], [2, 2])
    >>> filled, empty = tf.sparse.fill_empty_rows(x, -1.0)
    >>> filled.values.numpy(), empty.numpy()
    (array([ 5., -1.], dtype=float32), array([False,  True]))
    """
    x = as_sparse(sp_input)
    shape = shape_of(x)
    indices, order, empty = _add_empty_rows(x.indices, shape)
    times = indices._spec.shape[0] - x.values._spec.shape[0]
    values = append_default(x.values, as_tensor(default_value, x.values._spec.dtype), times)
    return make_sparse(indices, take(values, order), shape), empty


@host_function(dynamic_shapes=True)
def _add_empty_rows(indices: Tensor, shape: tuple[int, ...]) -> tuple[Tensor, Tensor, Tensor]:
    """Returns sorted indices with one for each empty row, their order, and the empty rows."""
    index_array = np.asarray(indices)
    empty, order = find_empty_rows(index_array[:, 0], shape[0], "fill_empty_rows")
    new = np.zeros((int(empty.sum()), len(shape)), np.int64)
    new[:, 0] = np.flatnonzero(empty)
    return Tensor(np.concatenate([index_array, new])[order]), Tensor(order), Tensor(empty)


@reports_out_of_memory("fill_empty_rows")
def find_empty_rows(rows: np.ndarray, count: int, op_name: str) -> tuple[np.ndarray, np.ndarray]:
    """Returns a mask of the empty rows, and the order of the values with the defaults appended."""
    wrong = (rows < 0) | (rows >= count)
    if wrong.any():
        i = int(np.argmax(wrong))
        raise invalid(f"{op_name}: row {rows[i]} at position {i} is not in [0, {count}).")
    empty = np.ones(count, bool)
    empty[rows] = False
    order = np.argsort(np.concatenate([rows, np.flatnonzero(empty)]), kind="stable")
    return empty, order


def append_default(values: Tensor, default: Tensor, times: int) -> Tensor:
    """Appends `default` to `values`, `times` times."""
    if default.ndim:
        raise invalid(
            f"fill_empty_rows: default_value should be a scalar. Received: shape "
            f"{tuple(default.shape)}."
        )
    return concat_tensors(values, broadcast_to(default, shape=(times,)), axis=0)


def _map_fn(_: Any, fn: Callable, elems: SparseTensor, *_args: Any, **_options: Any) -> Any:
    """Maps `fn` over the first axis. Sparse results become the slices of a SparseTensor."""
    count, *sizes = np.asarray(elems.dense_shape).tolist()
    zeros = [0] * len(sizes)
    rows = [reshape(slice(elems, [i, *zeros], [1, *sizes]), sizes) for i in range(count)]
    results = [fn(row) for row in rows]
    if all(isinstance(y, SparseTensor) for y in results):
        return concat(0, [expand_dims(y, 0) for y in results])
    return stack(*map(as_tensor, results), axis=0)


HANDLERS["map_fn"] = _map_fn
