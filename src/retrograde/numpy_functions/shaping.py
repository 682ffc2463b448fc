"""Axis permutation, tiling, rotation, triangles, and selection of elements."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

import retrograde as tf
from retrograde.core.tensor import Tensor
from retrograde.ops import arithmetic as ar
from retrograde.ops import indexing, matrices, shaping
from retrograde.ops.arguments import indices_from
from retrograde.ops.casting import identity
from retrograde.values.errors import invalid
from retrograde.values.shapes import broadcast, normalize_axis

# `wrong` creates the error for an axis out of range, with TensorFlow's or Keras's class.


def swapaxes(x: Tensor, axis1: Any, axis2: Any, wrong: Callable = invalid) -> Tensor:
    """Returns `x` with two axes interchanged."""
    one, other = (normalize_axis(axis, x.ndim, "swapaxes", wrong) for axis in (axis1, axis2))
    perm = list(range(x.ndim))
    perm[one], perm[other] = other, one
    return shaping.transpose(x, perm=tuple(perm))


def moveaxis(
    x: Tensor, source: Sequence[int], destination: Sequence[int], wrong: Callable = invalid
) -> Tensor:
    """Returns `x` with the axes `source` at `destination`; the others keep their order."""
    before, after = (
        [normalize_axis(axis, x.ndim, "moveaxis", wrong) for axis in axes]
        for axes in (source, destination)
    )
    if len(before) != len(after):
        raise ValueError(
            f"moveaxis: {len(before)} sources, {tuple(source)}, and {len(after)} "
            f"destinations, {tuple(destination)}. Expected the same number."
        )
    for axes in (before, after):
        if len(set(axes)) != len(axes):
            raise invalid(f"moveaxis: an axis is repeated in {tuple(axes)}.")
    perm = [axis for axis in range(x.ndim) if axis not in before]
    for position, axis in sorted(zip(after, before, strict=True)):
        perm.insert(position, axis)
    return shaping.transpose(x, perm=tuple(perm))


def axis_to_end(x: Tensor, axis: int) -> Tensor:
    """Moves one axis to the end."""
    others = [i for i in range(x.ndim) if i != axis]
    return x if axis == x.ndim - 1 else shaping.transpose(x, perm=(*others, axis))


def broadcast_all(xs: Sequence[Tensor]) -> list[Tensor]:
    """Broadcasts tensors against each other."""
    shapes = [x._spec.shape for x in xs]
    shape = broadcast(*shapes)
    if shape is None:
        raise ValueError(f"Shapes {', '.join(map(str, shapes))} cannot be broadcast to one.")
    return [x if x._spec.shape == shape else shaping.broadcast_to(x, shape=shape) for x in xs]


def at_least(count: int, x: Tensor) -> Tensor:
    """Adds axes of size 1 until there are `count`: first in front, up to two, then at the end."""
    shape = x._spec.shape
    if len(shape) >= count:
        return x
    shape = (1,) * (min(count, 2) - len(shape)) + shape
    return shaping.reshape(x, shape=shape + (1,) * (count - len(shape)))


def tile(x: Tensor, times: tuple[int, ...]) -> Tensor:
    """Tiles `x` along each axis. `x` gets at least as many axes as `times` has elements."""
    count = max(x.ndim, len(times))
    x = shaping.reshape(x, shape=(1,) * (count - x.ndim) + x._spec.shape)
    return tf.tile(x, (1,) * (count - len(times)) + times)


def rot90(x: Tensor, turns: int, axes: Iterable[int]) -> Tensor:
    """Rotates `x` by 90 degrees `turns` times, from the first of two axes towards the second."""
    turns %= 4
    if turns == 0:
        return identity(x)
    one, other = axes
    if turns == 2:
        return shaping.reverse(x, axis=tuple(sorted((one, other))))
    if turns == 1:
        return swapaxes(shaping.reverse(x, axis=(other,)), one, other)
    return shaping.reverse(swapaxes(x, one, other), axis=(other,))


def tril(x: Tensor, k: int) -> Tensor:
    """Returns matrices with zeros above diagonal `k`."""
    return _keep_band(x, "tril", lambda rows, _: (-rows, k))


def triu(x: Tensor, k: int) -> Tensor:
    """Returns matrices with zeros below diagonal `k`."""
    return _keep_band(x, "triu", lambda _, columns: (k, columns))


def _keep_band(x: Tensor, op_name: str, band: Callable[[int, int], tuple[int, int]]) -> Tensor:
    shape = x._spec.shape
    if len(shape) < 2:
        raise ValueError(f"{op_name}: expected a matrix, or more axes. Received: shape {shape}.")
    rows, columns = shape[-2:]
    inside = Tensor(matrices.band_mask(rows, columns, *band(rows, columns)))
    return ar.select(inside, x, tf.zeros((), x.dtype))


def vander(x: Tensor, count: int | None, increasing: bool) -> Tensor:
    """Returns a row of powers for each element, by default as many as there are elements."""
    if x.ndim != 1:
        raise ValueError(f"vander: expected a vector. Received: shape {x._spec.shape}.")
    exponents = np.arange(x._spec.shape[0] if count is None else count)
    exponents = exponents[:: 1 if increasing else -1].astype(x._spec.dtype)
    return ar.power(shaping.reshape(x, shape=(x._spec.size, 1)), Tensor(exponents))


def take_along_axis(x: Tensor, indices: Tensor, axis: Any, wrong: Callable = invalid) -> Tensor:
    """Returns the elements at `indices` along `axis`; the other axes broadcast."""
    position, last = normalize_axis(axis, x.ndim, "take_along_axis", wrong), x.ndim - 1
    if indices.ndim != x.ndim:
        raise ValueError(
            f"take_along_axis: the array has shape {x._spec.shape}, the indices have shape "
            f"{indices._spec.shape}. Expected the same number of axes."
        )
    indices = indices_from(indices, "take_along_axis")
    wrapped = indexing.wrap_indices(indices, size=x._spec.shape[position])
    y = take_along_last(axis_to_end(x, position), axis_to_end(wrapped, position))
    return moveaxis(y, (last,), (position,))


def take_along_last(x: Tensor, indices: Tensor) -> Tensor:
    """Returns the elements at `indices` along the last axis; the other axes broadcast."""
    front = broadcast(x._spec.shape[:-1], indices._spec.shape[:-1])
    if front is None:
        raise ValueError(
            f"take_along_axis: shapes {x._spec.shape} and {indices._spec.shape} cannot be "
            "broadcast, except along the axis."
        )
    x, indices = (
        v if v._spec.shape[:-1] == front else shaping.broadcast_to(v, shape=(*front, v.shape[-1]))
        for v in (x, indices)
    )
    if not front:
        return indexing.gather(x, indices, axis=0, dense_gradient=True)
    last = shaping.reshape(indices, shape=(*indices._spec.shape, 1))
    return indexing.gather_nd(x, last, batch_dims=len(front))


def select(conditions: Sequence[Tensor], choices: Sequence[Tensor], default: Tensor) -> Tensor:
    """Returns, for each element, the choice whose condition is the first to be true."""
    y = default
    for condition, choice in zip(reversed(conditions), reversed(choices), strict=True):
        y = ar.select(condition, choice, y)
    return y
