"""Gather and scatter."""

from __future__ import annotations

import math

import numpy as np

from retrograde.core.apply import Primitive
from retrograde.core.indexed_slices import IndexedSlices
from retrograde.ops._arrays import numpy_dtype_of, sum_at, take, write_at
from retrograde.ops.arithmetic import equal
from retrograde.ops.casting import cast, zeros_like
from retrograde.ops.shaping import broadcast_batched, reshape, transpose
from retrograde.values import dtypes
from retrograde.values.arguments import shown
from retrograde.values.errors import invalid


def _check_range(indices, size):
    """Raises an error for indices outside [0, size), negative ones included, as TensorFlow does."""
    if indices.size and not (indices.min() >= 0 and indices.max() < size):
        flat = np.ravel(indices)
        position = int(np.flatnonzero((flat < 0) | (flat >= size))[0])
        index = [int(i) for i in np.unravel_index(position, np.shape(indices))]
        raise invalid(f"indices{index} = {flat[position]} is not in [0, {size}).")


def _gather_kernel(xp, x, indices, *, axis, **_):
    if xp is np:
        _check_range(indices, x.shape[axis])
        y = x.take(indices, axis)
        return y if x.dtype != object else np.asarray(y, object)  # y may be a single string
    return take(xp, x, indices, axis)


def _gather_vjp(g, _y, _x, indices, *, axis, dense_gradient=False):
    """Returns IndexedSlices for the first axis, or a dense tensor with `dense_gradient`."""
    size, rest = math.prod(indices.shape), _x.shape[:axis] + _x.shape[axis + 1 :]
    flat = reshape(indices, shape=(size,))
    if axis == 0 and not dense_gradient:
        return IndexedSlices(reshape(g, shape=(size, *rest)), flat, _x.shape)
    gathered = tuple(range(axis, axis + indices.ndim))
    perm = (*gathered, *(i for i in range(g.ndim) if i not in gathered))
    rows = reshape(transpose(g, perm=perm), shape=(size, *rest))
    dense = scatter_add(rows, flat, shape=(_x.shape[axis], *rest))
    inverse_perm = (*range(1, axis + 1), 0, *range(axis + 1, len(_x.shape)))
    return transpose(dense, perm=inverse_perm)


def _gather_batch(batched, x, indices, *, axis, dense_gradient=False):
    if batched == (True, False):
        return gather(x, indices, axis=axis + 1)
    if batched == (False, True):
        y = gather(x, indices, axis=axis, dense_gradient=dense_gradient)
        perm = (axis, *(i for i in range(y.ndim) if i != axis))
        return transpose(y, perm=perm)
    return _gather_rows(x, indices, axis)


def _gather_rows(x, indices, axis):
    """Gathers within each batch element, with indices into the concatenated batch."""
    batch, size = x.shape[0], x.shape[axis + 1]
    front = (0, axis + 1, *(i for i in range(1, x.ndim) if i != axis + 1))
    moved = transpose(x, perm=front)
    flat = reshape(moved, shape=(batch * size, *moved.shape[2:]))
    y = gather(flat, offset_indices(indices, size=size, axis=0), axis=0)
    gathered = tuple(range(1, indices.ndim))
    rest = tuple(range(indices.ndim, y.ndim))
    return transpose(y, perm=(0, *rest[:axis], *gathered, *rest[axis:]))


gather = Primitive(
    "gather",
    _gather_kernel,
    vjps=(_gather_vjp, None),
    batch=_gather_batch,
)


def _offset_kernel(xp, indices, *, size, axis):
    if xp is np:
        _check_range(indices, size)
    steps = (xp.arange(indices.shape[axis]) * size).astype(indices.dtype)
    return indices + steps.reshape((-1,) + (1,) * (indices.ndim - 1 - axis))


offset_indices = Primitive(  # indices into rows -> indices into the concatenated rows
    "offset_indices",
    _offset_kernel,
    vjps=None,
    batch=lambda _, indices, *, size, axis: offset_indices(indices, size=size, axis=axis + 1),
)


def _wrap_indices_kernel(xp, indices, *, size, axis=None):
    if axis is not None and xp is np:
        wrong = indices[(indices < -size) | (indices >= size)]
        if wrong.size:
            slice_index = f"slice index {wrong.flat[0]} of dimension {axis}"
            raise invalid(f"{slice_index} out of bounds: it has size {size}.")
    return xp.where(indices < 0, indices + indices.dtype.type(size), indices)


wrap_indices = Primitive(  # adds the size to negative indices, which count from the end
    "wrap_indices",  # if `axis` is given, out-of-bounds indices raise an error that names it
    _wrap_indices_kernel,
    vjps=None,
    batch=lambda _, indices, **attrs: wrap_indices(indices, **attrs),
    accepts=dtypes.INTEGER,
)


def _scatter_add_kernel(xp, values, indices, *, shape):
    if xp is np:
        _check_range(indices, shape[0])
    return sum_at(xp, values, indices, shape)


def _scatter_add_batch(batched, values, indices, *, shape):
    """Scatters all batch elements at once into one concatenated array."""
    if batched == (True, False):
        perm = (*range(1, 1 + indices.ndim), 0, *range(1 + indices.ndim, values.ndim))
        y = scatter_add(
            transpose(values, perm=perm), indices, shape=(shape[0], values.shape[0], *shape[1:])
        )
        return transpose(y, perm=(1, 0, *range(2, y.ndim)))
    values, indices = broadcast_batched(batched, (values, indices))
    batch = indices.shape[0]
    ends = offset_indices(indices, size=shape[0], axis=0)
    y = scatter_add(values, ends, shape=(batch * shape[0], *shape[1:]))
    return reshape(y, shape=(batch, *shape))


scatter_add = Primitive(  # zeros of `shape` with `values` added at `indices` of the first axis
    "scatter_add",
    _scatter_add_kernel,
    vjps=(lambda g, _y, _values, indices, **_: gather(g, indices, axis=0), None),
    batch=_scatter_add_batch,
)


def _one_hot_kernel(xp, indices, *, depth, dtype):
    classes = xp.arange(depth).astype(indices.dtype)
    return (indices[..., None] == classes).astype(dtype)


one_hot = Primitive(
    "one_hot",
    _one_hot_kernel,
    vjps=None,
    batch=lambda _, indices, **attrs: one_hot(indices, **attrs),
    accepts=dtypes.INTEGER,
)


# gather_nd and related primitives: the last axis of `indices` holds coordinates along as many axes
# of x. The first `batch_dims` axes of x and of `indices` are batch axes.


def _positions(xp, indices, shape, batch_dims):
    """Converts coordinates to positions along one flat axis.

    Returns the positions, and the shape of the array with its indexed axes flattened.
    """
    end = batch_dims + indices.shape[-1]
    sizes = shape[batch_dims:end]
    if xp is np:
        _check_coordinates(indices, sizes)
        indices = indices.astype(np.int64)
    positions = xp.zeros(indices.shape[:-1], indices.dtype)
    for i, size in enumerate(sizes):
        positions = positions * size + indices[..., i]
    if batch_dims:
        batch = shape[:batch_dims]
        rows = xp.arange(math.prod(batch)).astype(indices.dtype) * math.prod(sizes)
        positions = positions + rows.reshape(batch + (1,) * (positions.ndim - batch_dims))
    return positions, (math.prod(shape[:end]), *shape[end:])


def _check_coordinates(indices, sizes):
    columns = np.moveaxis(indices, -1, 0)  # one column at a time is faster: the last axis is short
    if not indices.size or all(
        c.min() >= 0 and c.max() < size for c, size in zip(columns, sizes, strict=True)
    ):
        return
    wrong = ((indices < 0) | (indices >= np.array(sizes, np.int64))).any(-1)
    if wrong.any():
        index = tuple(int(i) for i in np.argwhere(wrong)[0])
        raise invalid(
            f"indices{shown(list(index))} = {indices[index].tolist()} does not index into shape "
            f"{tuple(sizes)}. Expected 0 <= index < size along each axis."
        )


def _gather_nd_kernel(xp, x, indices, *, batch_dims):
    positions, flat = _positions(xp, indices, x.shape, batch_dims)
    rows = x.reshape(flat)
    return rows.take(positions, 0) if xp is np else take(xp, rows, positions, 0)


def _gather_nd_vjp(g, _y, _x, indices, *, batch_dims):
    """Returns IndexedSlices if the indices are rows of the first axis, else a dense gradient."""
    if batch_dims or indices.shape[-1] != 1:
        return scatter_nd(g, indices, shape=tuple(_x.shape), batch_dims=batch_dims)
    size = math.prod(indices.shape)
    rows = reshape(g, shape=(size, *_x.shape[1:]))
    return IndexedSlices(rows, reshape(indices, shape=(size,)), _x.shape)


def _batch_axis_last(x):
    return transpose(x, perm=(*range(1, x.ndim), 0))


def _batch_axis_first(y):
    return transpose(y, perm=(y.ndim - 1, *range(y.ndim - 1)))


def _gather_nd_batch(batched, x, indices, *, batch_dims):
    if batched == (True, False):
        return _batch_axis_first(gather_nd(_batch_axis_last(x), indices, batch_dims=batch_dims))
    return gather_nd(*broadcast_batched(batched, (x, indices)), batch_dims=batch_dims + 1)


gather_nd = Primitive(
    "gather_nd",
    _gather_nd_kernel,
    vjps=(_gather_nd_vjp, None),
    batch=_gather_nd_batch,
)


def _scatter_nd_kernel(xp, values, indices, *, shape, batch_dims):
    positions, flat = _positions(xp, indices, shape, batch_dims)
    return sum_at(xp, values, positions, flat).reshape(shape)


def _scatter_nd_batch(batched, values, indices, *, shape, batch_dims):
    size = (values if batched[0] else indices).shape[0]
    if batched == (True, False):
        values = _batch_axis_last(values)
        y = scatter_nd(values, indices, shape=(*shape, size), batch_dims=batch_dims)
        return _batch_axis_first(y)
    values, indices = broadcast_batched(batched, (values, indices))
    return scatter_nd(values, indices, shape=(size, *shape), batch_dims=batch_dims + 1)


scatter_nd = Primitive(  # zeros of `shape` with `values` added at `indices`
    "scatter_nd",
    _scatter_nd_kernel,
    vjps=(
        lambda g, _y, _values, indices, *, shape, batch_dims: gather_nd(  # noqa: ARG005
            g, indices, batch_dims=batch_dims
        ),
        None,
    ),
    batch=_scatter_nd_batch,
)


def _scatter_primitive(name, mode, **rules):
    """Creates a primitive `(x, values, indices, *, batch_dims)` that writes `values` into x.

    `mode` is "set", "max" or "min".
    """

    def kernel(xp, x, values, indices, *, batch_dims):
        positions, flat = _positions(xp, indices, x.shape, batch_dims)
        return write_at(xp, x.reshape(flat), positions, values, mode).reshape(x.shape)

    def batch(batched, *xs, batch_dims):
        return primitive(*broadcast_batched(batched, xs), batch_dims=batch_dims + 1)

    primitive = Primitive(name, kernel, batch=batch, **rules)
    return primitive


def _put_nd_vjp(g, _y, _x, _values, indices, *, batch_dims):
    rows = gather_nd(g, indices, batch_dims=batch_dims)
    return put_nd(g, zeros_like(rows), indices, batch_dims=batch_dims)


put_nd = _scatter_primitive(
    "put_nd",
    "set",
    vjps=(
        _put_nd_vjp,
        lambda g, _y, _x, _values, indices, **attrs: gather_nd(g, indices, **attrs),
        None,
    ),
)


def _extreme_nd_vjp(needed, g, y, x, values, indices, *, batch_dims):
    """Shares the gradient evenly among the elements that tie."""
    dtype = numpy_dtype_of(g)
    hits = cast(equal(x, y), dtype=dtype)
    rows = cast(equal(values, gather_nd(y, indices, batch_dims=batch_dims)), dtype=dtype)
    ties = hits + scatter_nd(rows, indices, shape=tuple(x.shape), batch_dims=batch_dims)
    share = g / ties
    g_values = rows * gather_nd(share, indices, batch_dims=batch_dims) if needed[1] else None
    return hits * share if needed[0] else None, g_values, None


max_nd = _scatter_primitive("max_nd", "max", joint=_extreme_nd_vjp)
min_nd = _scatter_primitive("min_nd", "min", joint=_extreme_nd_vjp)


def _argsort_kernel(xp, x, *, axis, descending):
    """Sorts stably in both directions: equal elements keep their order."""
    if not descending:
        return xp.argsort(x, axis=axis, stable=True).astype(np.int32)
    last = x.shape[axis] - 1
    return xp.flip(last - xp.argsort(xp.flip(x, axis), axis=axis, stable=True), axis).astype(
        np.int32
    )


argsort = Primitive(
    "argsort",
    _argsort_kernel,
    vjps=None,
    batch=lambda _, x, *, axis, descending: argsort(x, axis=axis + 1, descending=descending),
    accepts=dtypes.REAL,
)
