"""Array manipulation: reshaping, transposing, joining, splitting, tiling, padding, flipping."""

from __future__ import annotations

import functools
import itertools
import math

import numpy as np
from keras.src.backend.common.backend_utils import vectorize_impl

import retrograde as tf
from retrograde.core.apply import apply
from retrograde.core.tensor import Tensor
from retrograde.keras_backend.ops._inputs import (
    canonicalize_axes,
    canonicalize_axis,
    numpy_dtype,
    of_dtype,
    promote,
    shape_of,
    sum_dtype,
    tensor,
    to_int,
    to_ints,
)
from retrograde.numpy_functions import shaping as shared
from retrograde.ops import matrices, reduction, shaping
from retrograde.ops.casting import identity, to_dtype
from retrograde.ops.indexing import gather
from retrograde.toplevel.vectorized_map import vectorized_map
from retrograde.values import dtypes

_BYTE = np.dtype(np.uint8)


def ndim(x):
    return tensor(x).ndim


def size(x):
    return math.prod(tensor(x)._spec.shape)


# Shapes


def reshape(x, newshape):
    x, shape = tensor(x), to_ints(newshape)
    if -1 in shape:
        known = -math.prod(shape)
        if shape.count(-1) > 1 or not known or x._spec.size % known:
            return tf.reshape(x, shape)  # raises the error
        shape = tuple([x._spec.size // known if n == -1 else n for n in shape])
    return apply(shaping.reshape, (x,), {"shape": shape})


def ravel(x):
    x = tensor(x)
    return shaping.reshape(x, shape=(size(x),))


def expand_dims(x, axis):
    x = tensor(x)
    axes = to_ints(axis)
    count = x.ndim + len(axes)
    added = canonicalize_axes(axes, count, "expand_dims")
    if len(set(added)) < len(axes):
        raise ValueError(f"expand_dims: axes must be unique. Received: {axis}.")
    sizes = iter(x._spec.shape)
    shape = tuple(1 if i in added else next(sizes) for i in range(count))
    return shaping.reshape(x, shape=shape)


def squeeze(x, axis=None):
    x = tensor(x)
    shape = x._spec.shape
    if axis is None:
        removed = [i for i, n in enumerate(shape) if n == 1]
    else:
        removed = canonicalize_axes(axis, x.ndim, "squeeze")
        if any(shape[i] != 1 for i in removed):
            raise ValueError(
                f"squeeze: axes {axis} of shape {tuple(shape)} cannot be removed: their sizes are "
                "not 1."
            )
    return shaping.reshape(x, shape=tuple(n for i, n in enumerate(shape) if i not in removed))


def transpose(x, axes=None):
    x = tensor(x)
    count = x.ndim
    if axes is None:
        return apply(shaping.transpose, (x,), {"perm": tuple(range(count))[::-1]})
    perm = tuple(canonicalize_axis(a, count, "transpose") for a in to_ints(axes))
    if sorted(perm) != list(range(count)):
        raise ValueError(
            f"transpose: axes must be a permutation of the {count} axes of shape {shape_of(x)}. "
            f"Received: {tuple(axes)}."
        )
    return shaping.transpose(x, perm=perm)


def swapaxes(x, axis1, axis2):
    return shared.swapaxes(tensor(x), axis1, axis2, ValueError)


def moveaxis(x, source, destination):
    return shared.moveaxis(tensor(x), to_ints(source), to_ints(destination), ValueError)


def axes_to_end(x, axis, op_name):
    """Merges the axes into one last axis. Returns the tensor and the canonical axes."""
    axes = canonicalize_axes(axis, x.ndim, op_name)
    rest = tuple(i for i in range(x.ndim) if i not in axes)
    y = shaping.transpose(x, perm=(*rest, *axes))
    shape = y._spec.shape
    count = math.prod(shape[len(rest) :])
    return shaping.reshape(y, shape=(*shape[: len(rest)], count)), axes


def broadcast_to(x, shape):
    return shaping.broadcast_to(tensor(x), shape=to_ints(shape))


def meshgrid(*x, indexing="xy"):
    return tf.meshgrid(*map(tensor, x), indexing=indexing)


def view(x, dtype=None):
    """Reinterprets the memory of `x` as another dtype; the last axis changes its size."""
    x = tensor(x)
    if dtype is None:
        return identity(x)
    target, source = numpy_dtype(dtype), x._spec.dtype
    if source.kind == "b":  # stored as one byte
        return view(to_dtype(x, _BYTE), dtype)
    if target.kind == "b":
        return to_dtype(view(x, _BYTE), target)
    ratio = target.itemsize / source.itemsize
    if ratio == 1:
        return tf.bitcast(x, target)
    if not x.ndim or x._spec.shape[-1] * source.itemsize % target.itemsize:
        raise ValueError(
            f"view: {x.dtype.name} of shape {shape_of(x)} cannot be viewed as "
            f"{dtypes.of(target).name}: the size of the last axis in bytes is not a multiple of "
            "the item size."
        )
    *front, last = x._spec.shape
    if ratio > 1:
        return tf.bitcast(reshape(x, (*front, int(last / ratio), int(ratio))), target)
    return reshape(tf.bitcast(x, target), (*front, int(last / ratio)))


# Joining


def concatenate(xs, axis=0):
    xs = promote(*xs)
    return shaping.concat(*xs, axis=canonicalize_axis(axis, xs[0].ndim, "concatenate"))


def append(x1, x2, axis=None):
    if axis is None:
        return concatenate([ravel(x1), ravel(x2)])
    return concatenate([x1, x2], axis)


def stack(x, axis=0):
    xs = promote(*x)
    return shaping.stack(*xs, axis=canonicalize_axis(axis, xs[0].ndim + 1, "stack"))


def hstack(xs):
    xs = [shared.at_least(1, tensor(x)) for x in xs]
    return concatenate(xs, 0 if xs[0].ndim == 1 else 1)


def vstack(xs):
    return concatenate([shared.at_least(2, tensor(x)) for x in xs], 0)


def dstack(xs):
    return concatenate([shared.at_least(3, tensor(x)) for x in xs], 2)


# Splitting


def split(x, indices_or_sections, axis=0):
    return _split(x, indices_or_sections, axis, True, "split")


def array_split(x, indices_or_sections, axis=0):
    return _split(x, indices_or_sections, axis, False, "array_split")


def _split(x, indices_or_sections, axis, require_equal, op_name):
    x = tensor(x)
    axis = canonicalize_axis(axis, x.ndim, op_name)
    length = x._spec.shape[axis]
    if type(indices_or_sections) is not int and np.ndim(indices_or_sections):
        ends = [0, *(_clamp_index(i, length) for i in to_ints(indices_or_sections)), length]
        pieces = [(a, max(a, b)) for a, b in itertools.pairwise(ends)]
        if all(a == b for (_, a), (b, _) in itertools.pairwise(pieces)):
            return list(shaping.split(x, sizes=tuple(b - a for a, b in pieces), axis=axis))
        before = tuple((0, n, 1) for n in x._spec.shape[:axis])
        return [shaping.take_slice(x, where=(*before, (a, b, 1))) for a, b in pieces]
    count = to_int(indices_or_sections)
    share, rest = divmod(length, count)
    if rest and require_equal:
        raise ValueError(
            f"{op_name}: axis {axis} of shape {shape_of(x)} cannot be split into {count} equal "
            "parts."
        )
    sizes = (share + 1,) * rest + (share,) * (count - rest)
    return list(shaping.split(x, sizes=sizes, axis=axis))


def _clamp_index(index, length):
    """Converts a split index, which may be negative, to a position in [0, length]."""
    return max(0, min(index + length if index < 0 else index, length))


def hsplit(x, indices_or_sections):
    return split(x, indices_or_sections, 0 if tensor(x).ndim == 1 else 1)


def vsplit(x, indices_or_sections):
    return split(x, indices_or_sections, 0)


def dsplit(x, indices_or_sections):
    return split(x, indices_or_sections, 2)


# Tiling, padding, flipping and rotating


def tile(x, repeats):
    return shared.tile(tensor(x), to_ints(repeats))


def repeat(x, repeats, axis=None):
    x = tensor(x)
    if axis is None:
        x, axis = ravel(x), 0
    axis, times = canonicalize_axis(axis, x.ndim, "repeat"), to_ints(repeats)
    if len(times) > 1:
        return tf.repeat(x, times, axis)
    shape = shape_of(x)
    front, back = shape[: axis + 1], shape[axis + 1 :]
    y = shaping.reshape(x, shape=(*front, 1, *back))
    y = shaping.broadcast_to(y, shape=(*front, times[0], *back))
    return shaping.reshape(y, shape=(*shape[:axis], shape[axis] * times[0], *back))


def pad(x, pad_width, mode="constant", constant_values=None):
    x = tensor(x)
    if constant_values is not None and mode != "constant":
        raise ValueError(
            "Argument `constant_values` can only be provided when `mode == 'constant'`. "
            f"Received: mode={mode}"
        )
    pairs = np.broadcast_to(np.asarray(pad_width), (x.ndim, 2)).tolist()
    if mode == "constant":
        value = 0 if constant_values is None else constant_values
        if type(value) is not int or value or x._spec.dtype.kind == "b":
            value = of_dtype(value, x._spec.dtype)
        return tf.pad(x, pairs, "CONSTANT", value)
    y = identity(x)
    for axis, (before, after) in enumerate(pairs):
        if before or after:
            indices = np.pad(np.arange(x._spec.shape[axis]), (before, after), mode=mode)
            y = gather(y, Tensor(indices), axis=axis, dense_gradient=True)
    return y


def flip(x, axis=None):
    x = tensor(x)
    return shaping.reverse(x, axis=canonicalize_axes(axis, x.ndim, "flip"))


def fliplr(x):
    return flip(x, 1)


def flipud(x):
    return flip(x, 0)


def roll(x, shift, axis=None):
    x = tensor(x)
    if axis is None:
        return shaping.reshape(tf.roll(ravel(x), to_int(shift), 0), shape=shape_of(x))
    shifts, axes = to_ints(shift), to_ints(axis)
    count = max(len(shifts), len(axes))
    shifts, axes = (part * count if len(part) == 1 else part for part in (shifts, axes))
    return tf.roll(x, shifts, axes)


def rot90(array, k=1, axes=(0, 1)):
    x = tensor(array)
    if x.ndim < 2:
        raise ValueError(
            f"Input array must have at least 2 dimensions. Received: array.ndim={x.ndim}"
        )
    if len(axes) != 2 or axes[0] == axes[1]:
        raise ValueError(f"Invalid axes: {axes}. Axes must be a tuple of two different dimensions.")
    return shared.rot90(x, to_int(k), (canonicalize_axis(a, x.ndim, "rot90") for a in axes))


# Diagonals and triangles


def diagonal(x, offset=0, axis1=0, axis2=1):
    x = moveaxis(x, (axis1, axis2), (-2, -1))
    rows, columns = x._spec.shape[-2:]
    k = max(-rows, min(to_int(offset), columns))
    return matrices.diagonal(x, k)


def diag(x, k=0):
    x = tensor(x)
    if x.ndim == 2:
        return diagonal(x, k)
    if x.ndim != 1:
        raise ValueError(f"diag: expected a vector or a matrix. Received: shape {shape_of(x)}.")
    return matrices.diagonal_matrix(x, to_int(k))


def diagflat(x, k=0):
    return diag(ravel(x), k)


def trace(x, offset=0, axis1=0, axis2=1):
    d = diagonal(x, offset, axis1, axis2)
    d = to_dtype(d, sum_dtype(d._spec.dtype))
    return reduction.sum(d, axis=(d.ndim - 1,), keepdims=False)


def tril(x, k=0):
    return shared.tril(tensor(x), to_int(k))


def triu(x, k=0):
    return shared.triu(tensor(x), to_int(k))


# Vectorization


def vectorize(pyfunc, *, excluded=None, signature=None):
    return vectorize_impl(pyfunc, _vmap, excluded=excluded, signature=signature)


def _vmap(function, in_axes):
    """Maps `function` over the first axis of the arguments whose `in_axes` entry is 0."""

    @functools.wraps(function)
    def vmapped(*args):
        mapped_args = [x for x, axis in zip(args, in_axes, strict=True) if axis == 0]

        def apply_one(elements):
            rest = iter(elements)
            return function(
                *(next(rest) if axis == 0 else x for x, axis in zip(args, in_axes, strict=True))
            )

        return vectorized_map(apply_one, mapped_args)

    return vmapped
