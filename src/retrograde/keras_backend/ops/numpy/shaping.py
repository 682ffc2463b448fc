"""Other shapes and orders of axes; joining, cutting, repeating, padding, turning."""

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
    axes_of,
    axis_of,
    numpy_dtype,
    of_dtype,
    promoted,
    shape_of,
    summed_dtype,
    tensor,
    whole,
    wholes,
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
    x, shape = tensor(x), wholes(newshape)
    if -1 in shape:
        known = -math.prod(shape)
        if shape.count(-1) > 1 or not known or x._spec.size % known:
            return tf.reshape(x, shape)  # which says what is wrong
        shape = tuple([x._spec.size // known if n == -1 else n for n in shape])
    return apply(shaping.reshape, (x,), {"shape": shape})


def ravel(x):
    x = tensor(x)
    return shaping.reshape(x, shape=(size(x),))


def expand_dims(x, axis):
    x = tensor(x)
    axes = wholes(axis)
    count = x.ndim + len(axes)
    added = axes_of(axes, count, "expand_dims")
    if len(set(added)) < len(axes):
        raise ValueError(f"expand_dims: an axis is named twice in {axis}.")
    sizes = iter(x._spec.shape)
    shape = tuple(1 if i in added else next(sizes) for i in range(count))
    return shaping.reshape(x, shape=shape)


def squeeze(x, axis=None):
    x = tensor(x)
    shape = x._spec.shape
    if axis is None:
        gone = [i for i, n in enumerate(shape) if n == 1]
    else:
        gone = axes_of(axis, x.ndim, "squeeze")
        if any(shape[i] != 1 for i in gone):
            raise ValueError(
                f"squeeze: axes {axis} of shape {tuple(shape)} cannot be left out. Expected them "
                "to have size 1."
            )
    return shaping.reshape(x, shape=tuple(n for i, n in enumerate(shape) if i not in gone))


def transpose(x, axes=None):
    x = tensor(x)
    count = x.ndim
    if axes is None:
        return apply(shaping.transpose, (x,), {"perm": tuple(range(count))[::-1]})
    perm = tuple(axis_of(a, count, "transpose") for a in wholes(axes))
    if sorted(perm) != list(range(count)):
        raise ValueError(
            f"transpose: {tuple(axes)} does not name each of the {count} axes of shape "
            f"{shape_of(x)} once."
        )
    return shaping.transpose(x, perm=perm)


def swapaxes(x, axis1, axis2):
    return shared.swapaxes(tensor(x), axis1, axis2, ValueError)


def moveaxis(x, source, destination):
    return shared.moveaxis(tensor(x), wholes(source), wholes(destination), ValueError)


def axes_to_end(x, axis, what):
    """`x` with the axes that are reduced laid out as one, the last; and their number."""
    over = axes_of(axis, x.ndim, what)
    rest = tuple(i for i in range(x.ndim) if i not in over)
    y = shaping.transpose(x, perm=(*rest, *over))
    shape = y._spec.shape
    count = math.prod(shape[len(rest) :])
    return shaping.reshape(y, shape=(*shape[: len(rest)], count)), over


def broadcast_to(x, shape):
    return shaping.broadcast_to(tensor(x), shape=wholes(shape))


def meshgrid(*x, indexing="xy"):
    return tf.meshgrid(*map(tensor, x), indexing=indexing)


def view(x, dtype=None):
    """The same memory read as another dtype, of which more or fewer fit into the last axis."""
    x = tensor(x)
    if dtype is None:
        return identity(x)
    wanted, own = numpy_dtype(dtype), x._spec.dtype
    if own.kind == "b":  # which is one byte
        return view(to_dtype(x, _BYTE), dtype)
    if wanted.kind == "b":
        return to_dtype(view(x, _BYTE), wanted)
    ratio = wanted.itemsize / own.itemsize
    if ratio == 1:
        return tf.bitcast(x, wanted)
    if not x.ndim or x._spec.shape[-1] * own.itemsize % wanted.itemsize:
        raise ValueError(
            f"view: {x.dtype.name} of shape {shape_of(x)} cannot be read as "
            f"{dtypes.of(wanted).name}. Expected a last axis whose bytes divide evenly."
        )
    *front, last = x._spec.shape
    if ratio > 1:
        return tf.bitcast(reshape(x, (*front, int(last / ratio), int(ratio))), wanted)
    return reshape(tf.bitcast(x, wanted), (*front, int(last / ratio)))


# Joining


def concatenate(xs, axis=0):
    xs = promoted(*xs)
    return shaping.concat(*xs, axis=axis_of(axis, xs[0].ndim, "concatenate"))


def append(x1, x2, axis=None):
    if axis is None:
        return concatenate([ravel(x1), ravel(x2)])
    return concatenate([x1, x2], axis)


def stack(x, axis=0):
    xs = promoted(*x)
    return shaping.stack(*xs, axis=axis_of(axis, xs[0].ndim + 1, "stack"))


def hstack(xs):
    xs = [shared.at_least(1, tensor(x)) for x in xs]
    return concatenate(xs, 0 if xs[0].ndim == 1 else 1)


def vstack(xs):
    return concatenate([shared.at_least(2, tensor(x)) for x in xs], 0)


def dstack(xs):
    return concatenate([shared.at_least(3, tensor(x)) for x in xs], 2)


# Cutting


def split(x, indices_or_sections, axis=0):
    return _split(x, indices_or_sections, axis, True, "split")


def array_split(x, indices_or_sections, axis=0):
    return _split(x, indices_or_sections, axis, False, "array_split")


def _split(x, indices_or_sections, axis, equally, what):
    x = tensor(x)
    at = axis_of(axis, x.ndim, what)
    length = x._spec.shape[at]
    if type(indices_or_sections) is not int and np.ndim(indices_or_sections):
        ends = [0, *(_place(i, length) for i in wholes(indices_or_sections)), length]
        pieces = [(a, max(a, b)) for a, b in itertools.pairwise(ends)]
        if all(a == b for (_, a), (b, _) in itertools.pairwise(pieces)):
            return list(shaping.split(x, sizes=tuple(b - a for a, b in pieces), axis=at))
        before = tuple((0, n, 1) for n in x._spec.shape[:at])
        return [shaping.take_slice(x, where=(*before, (a, b, 1))) for a, b in pieces]
    count = whole(indices_or_sections)
    share, rest = divmod(length, count)
    if rest and equally:
        raise ValueError(
            f"{what}: axis {at} of shape {shape_of(x)} cannot be cut into {count} equal parts."
        )
    sizes = (share + 1,) * rest + (share,) * (count - rest)
    return list(shaping.split(x, sizes=sizes, axis=at))


def _place(index, length):
    """Where to cut: before the element `index`, which may be counted from the end."""
    return max(0, min(index + length if index < 0 else index, length))


def hsplit(x, indices_or_sections):
    return split(x, indices_or_sections, 0 if tensor(x).ndim == 1 else 1)


def vsplit(x, indices_or_sections):
    return split(x, indices_or_sections, 0)


def dsplit(x, indices_or_sections):
    return split(x, indices_or_sections, 2)


# Repeating, padding and turning


def tile(x, repeats):
    return shared.tile(tensor(x), wholes(repeats))


def repeat(x, repeats, axis=None):
    x = tensor(x)
    if axis is None:
        x, axis = ravel(x), 0
    at, times = axis_of(axis, x.ndim, "repeat"), wholes(repeats)
    if len(times) > 1:
        return tf.repeat(x, times, at)
    shape = shape_of(x)
    front, back = shape[: at + 1], shape[at + 1 :]
    y = shaping.reshape(x, shape=(*front, 1, *back))
    y = shaping.broadcast_to(y, shape=(*front, times[0], *back))
    return shaping.reshape(y, shape=(*shape[:at], shape[at] * times[0], *back))


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
            places = np.pad(np.arange(x._spec.shape[axis]), (before, after), mode=mode)
            y = gather(y, Tensor(places), axis=axis, whole=True)
    return y


def flip(x, axis=None):
    x = tensor(x)
    return shaping.reverse(x, axis=axes_of(axis, x.ndim, "flip"))


def fliplr(x):
    return flip(x, 1)


def flipud(x):
    return flip(x, 0)


def roll(x, shift, axis=None):
    x = tensor(x)
    if axis is None:
        return shaping.reshape(tf.roll(ravel(x), whole(shift), 0), shape=shape_of(x))
    shifts, axes = wholes(shift), wholes(axis)
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
    return shared.rot90(x, whole(k), (axis_of(a, x.ndim, "rot90") for a in axes))


# Diagonals and triangles


def diagonal(x, offset=0, axis1=0, axis2=1):
    x = moveaxis(x, (axis1, axis2), (-2, -1))
    rows, columns = x._spec.shape[-2:]
    k = max(-rows, min(whole(offset), columns))
    return matrices.diagonal(x, k)


def diag(x, k=0):
    x = tensor(x)
    if x.ndim == 2:
        return diagonal(x, k)
    if x.ndim != 1:
        raise ValueError(f"diag: expected a vector or a matrix. Received: shape {shape_of(x)}.")
    return matrices.on_diagonal(x, whole(k))


def diagflat(x, k=0):
    return diag(ravel(x), k)


def trace(x, offset=0, axis1=0, axis2=1):
    d = diagonal(x, offset, axis1, axis2)
    d = to_dtype(d, summed_dtype(d._spec.dtype))
    return reduction.sum(d, axis=(d.ndim - 1,), keepdims=False)


def tril(x, k=0):
    return shared.tril(tensor(x), whole(k))


def triu(x, k=0):
    return shared.triu(tensor(x), whole(k))


# A function of one element, run on all


def vectorize(pyfunc, *, excluded=None, signature=None):
    return vectorize_impl(pyfunc, _mapped, excluded=excluded, signature=signature)


def _mapped(function, in_axes):
    """`function`, mapped over the first axes of the arguments that `in_axes` marks with 0."""

    @functools.wraps(function)
    def mapped(*args):
        along = [x for x, axis in zip(args, in_axes, strict=True) if axis == 0]

        def one(elements):
            rest = iter(elements)
            return function(
                *(next(rest) if axis == 0 else x for x, axis in zip(args, in_axes, strict=True))
            )

        return vectorized_map(one, along)

    return mapped
