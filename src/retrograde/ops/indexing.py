"""Picking elements by index, and putting them back."""

from __future__ import annotations

import math

import numpy as np

from retrograde.core import dtypes
from retrograde.core.dispatch import Primitive
from retrograde.core.errors import invalid
from retrograde.core.indexed_slices import IndexedSlices
from retrograde.ops._arrays import add_at
from retrograde.ops.shaping import everywhere, reshape, transpose


def _check_range(indices, size):
    """TensorFlow refuses indices outside [0, size); so NumPy's negative ones too."""
    if indices.size and not (0 <= indices.min() and indices.max() < size):
        flat = np.ravel(indices)
        position = int(np.flatnonzero((flat < 0) | (flat >= size))[0])
        place = [int(i) for i in np.unravel_index(position, np.shape(indices))]
        raise invalid(f"indices{place} = {flat[position]} is not in [0, {size}).")


def _gather_kernel(xp, x, indices, *, axis):
    if xp is np:
        _check_range(indices, x.shape[axis])
        return x.take(indices, axis)
    return xp.take(x, indices, axis, mode="clip")


def _gather_vjp(g, _y, _x, indices, *, axis):
    """Rows of g, as IndexedSlices; along other axes than the first, made whole."""
    size, rest = math.prod(indices.shape), _x.shape[:axis] + _x.shape[axis + 1 :]
    flat = reshape(indices, shape=(size,))
    if axis == 0:
        return IndexedSlices(reshape(g, shape=(size, *rest)), flat, _x.shape)
    ahead = tuple(range(axis, axis + indices.ndim))
    perm = (*ahead, *(i for i in range(g.ndim) if i not in ahead))
    rows = reshape(transpose(g, perm=perm), shape=(size, *rest))
    dense = scatter_add(rows, flat, shape=(_x.shape[axis], *rest))
    back = (*range(1, axis + 1), 0, *range(axis + 1, len(_x.shape)))
    return transpose(dense, perm=back)


def _gather_batch(batched, x, indices, *, axis):
    if batched == (True, False):
        return gather(x, indices, axis=axis + 1)
    if batched == (False, True):
        y = gather(x, indices, axis=axis)
        perm = (axis, *(i for i in range(y.ndim) if i != axis))
        return transpose(y, perm=perm)
    return _gather_rows(x, indices, axis)


def _gather_rows(x, indices, axis):
    """Gathers within each batch, by indices into the batches laid end to end."""
    batch, size = x.shape[0], x.shape[axis + 1]
    front = (0, axis + 1, *(i for i in range(1, x.ndim) if i != axis + 1))
    moved = transpose(x, perm=front)
    flat = reshape(moved, shape=(batch * size, *moved.shape[2:]))
    y = gather(flat, offset(indices, size=size, axis=0), axis=0)
    taken = tuple(range(1, indices.ndim))
    rest = tuple(range(indices.ndim, y.ndim))
    return transpose(y, perm=(0, *rest[:axis], *taken, *rest[axis:]))


gather = Primitive(
    "gather",
    _gather_kernel,
    vjps=(_gather_vjp, None),
    batch=_gather_batch,
)


def _offset_kernel(xp, indices, *, size, axis):
    steps = (xp.arange(indices.shape[axis]) * size).astype(indices.dtype)
    return indices + steps.reshape((-1,) + (1,) * (indices.ndim - 1 - axis))


offset = Primitive(  # indices into each of several rows, moved on to where that row begins
    "offset",
    _offset_kernel,
    vjps=None,
    batch=lambda _, indices, *, size, axis: offset(indices, size=size, axis=axis + 1),
)


def _scatter_add_kernel(xp, values, indices, *, shape):
    if xp is np:
        _check_range(indices, shape[0])
    return add_at(xp, xp.zeros(shape, values.dtype), indices, values)


def _scatter_add_batch(batched, values, indices, *, shape):
    """All batches scattered at once into batches laid end to end."""
    if batched == (True, False):
        perm = (*range(1, 1 + indices.ndim), 0, *range(1 + indices.ndim, values.ndim))
        y = scatter_add(
            transpose(values, perm=perm), indices, shape=(shape[0], values.shape[0], *shape[1:])
        )
        return transpose(y, perm=(1, 0, *range(2, y.ndim)))
    values, indices = everywhere(batched, (values, indices))
    batch = indices.shape[0]
    ends = offset(indices, size=shape[0], axis=0)
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
