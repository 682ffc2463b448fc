"""Shape manipulation, joining, splitting, repeating, selecting and sorting."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

import retrograde as tf
from retrograde import math
from retrograde.core.tensor import Tensor
from retrograde.experimental.numpy._inputs import (
    array_of,
    promote,
    tensor_of,
    unsupported_argument,
)
from retrograde.numpy_functions import shaping as shared
from retrograde.ops.arguments import integer, integers
from retrograde.ops.casting import identity, to_dtype
from retrograde.toplevel.clipping import clip_by_value
from retrograde.values.arguments import as_text, shown
from retrograde.values.errors import to_list
from retrograde.values.shapes import TensorShape, normalize_axis

_INT32 = np.dtype(np.int32)
_INT64 = np.dtype(np.int64)


# Shapes and axes


def shape(a: Any) -> TensorShape:
    """Returns the shape of `a`."""
    return tensor_of(a).shape


def ndim(a: Any) -> int:
    """Returns the number of axes of `a`."""
    return tensor_of(a).ndim


def size(x: Any, axis: Any = None) -> int:
    """Returns the number of elements of `x`."""
    if axis is not None:
        raise NotImplementedError("size: the argument `axis` is not supported. Use shape instead.")
    return tensor_of(x)._spec.size


def isscalar(num: Any) -> bool:
    """Returns whether `num` is a scalar."""
    return ndim(num) == 0


def reshape(a: Any, newshape: Any, order: str = "C") -> Tensor:
    """Reshapes `a`; with order "F", the first axis changes fastest.

    >>> tf.experimental.numpy.reshape([1, 2, 3, 4], (2, 2), order="F").numpy()
    array([[1, 3],
           [2, 4]])
    """
    if order not in ("C", "F"):
        raise ValueError(f"reshape: `order` must be 'C' or 'F'. Received: {shown(order)}.")
    x, sizes = tensor_of(a), integers(newshape, "reshape")
    if order == "C":
        return tf.reshape(x, sizes)
    return tf.transpose(tf.reshape(tf.transpose(x), sizes[::-1]))


def ravel(a: Any) -> Tensor:
    """Flattens `a`."""
    return tf.reshape(tensor_of(a), [-1])


def flatten(a: Any, order: str = "C") -> Tensor:
    """Flattens `a`; with order "F", the first axis changes fastest."""
    if order not in ("C", "A", "K", "F"):
        raise ValueError(
            f"flatten: `order` must be 'C', 'A', 'K' or 'F'. Received: {shown(order)}."
        )
    return reshape(a, -1, "F" if order == "F" else "C")


def expand_dims(a: Any, axis: int) -> Tensor:
    """Inserts an axis of size 1."""
    return tf.expand_dims(tensor_of(a), axis)


def squeeze(a: Any, axis: Any = None) -> Tensor:
    """Removes all axes of size 1, or those in `axis`."""
    return tf.squeeze(tensor_of(a), axis)


def transpose(a: Any, axes: Any = None) -> Tensor:
    """Permutes the axes to the order `axes`, by default reversed."""
    return tf.transpose(tensor_of(a), axes)


def swapaxes(a: Any, axis1: int, axis2: int) -> Tensor:
    """Swaps two axes."""
    return shared.swapaxes(tensor_of(a), axis1, axis2)


def moveaxis(a: Any, source: Any, destination: Any) -> Tensor:
    """Moves the axes `source` to the positions `destination`; the others keep their order.

    >>> tf.experimental.numpy.moveaxis(tf.zeros([2, 3, 4]), 0, -1).shape
    TensorShape([3, 4, 2])
    """
    source, destination = (integers(axes, "moveaxis") for axes in (source, destination))
    return shared.moveaxis(tensor_of(a), source, destination)


def _at_least(count: int, arys: Sequence[Any]) -> Tensor | list[Tensor]:
    xs = [shared.at_least(count, array_of(a)) for a in arys]
    return xs[0] if len(xs) == 1 else xs


def atleast_1d(*arys: Any) -> Tensor | list[Tensor]:
    """Reshapes each argument to at least one axis."""
    return _at_least(1, arys)


def atleast_2d(*arys: Any) -> Tensor | list[Tensor]:
    """Reshapes each argument to at least two axes; a vector becomes a row."""
    return _at_least(2, arys)


def atleast_3d(*arys: Any) -> Tensor | list[Tensor]:
    """Reshapes each argument to at least three axes; new axes of a matrix come last."""
    return _at_least(3, arys)


def broadcast_to(array: Any, shape: Any) -> Tensor:
    """Broadcasts `array` to `shape`."""
    return tf.broadcast_to(tensor_of(array), integers(shape, "broadcast_to"))


def broadcast_arrays(*args: Any, **kwargs: Any) -> list[Tensor]:
    """Broadcasts the arguments against each other. Each keeps its dtype."""
    if kwargs.pop("subok", False):
        raise unsupported_argument("subok", "broadcast_arrays")
    if kwargs:
        raise unsupported_argument(next(iter(kwargs)), "broadcast_arrays")
    return shared.broadcast_all([array_of(arg) for arg in args])


# Joining and splitting


def concatenate(arys: Any, axis: int = 0) -> Tensor:
    """Concatenates arrays along `axis`, promoted to their common dtype."""
    arys = arys if isinstance(arys, (list, tuple)) else [arys]
    if not arys:
        raise ValueError(f"concatenate: expected at least one array. Received: {arys}.")
    return tf.concat(promote(*arys), axis)


def append(arr: Any, values: Any, axis: int | None = None) -> Tensor:
    """Appends `values` to `arr` along `axis`, or flattens and concatenates both."""
    if axis is None:
        return concatenate([ravel(arr), ravel(values)])
    return concatenate([arr, values], axis)


def stack(arrays: Any, axis: int = 0) -> Tensor:
    """Stacks arrays of the same shape along a new axis."""
    if isinstance(arrays, Tensor):
        return identity(arrays) if axis == 0 else swapaxes(arrays, 0, axis)
    return tf.stack(promote(*to_list("stack", arrays)), axis)


def _concatenate(tup: Any, at_least: Any, axis: int, op_name: str) -> Tensor:
    xs = [at_least(x) for x in to_list(op_name, tup)]
    if not xs:
        raise ValueError(f"{op_name}: expected at least one array. Received: {as_text(tup)}.")
    return concatenate(xs, 0 if xs[0].ndim == 1 else axis)


def hstack(tup: Any) -> Tensor:
    """Concatenates arrays along the second axis, or vectors along their only axis."""
    return _concatenate(tup, atleast_1d, 1, "hstack")


def vstack(tup: Any) -> Tensor:
    """Concatenates arrays along the first axis; vectors count as rows."""
    return _concatenate(tup, atleast_2d, 0, "vstack")


def dstack(tup: Any) -> Tensor:
    """Concatenates arrays along the third axis."""
    return _concatenate(tup, atleast_3d, 2, "dstack")


def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Tensor]:
    """Splits `ary` along `axis` into equal parts, or before the given indices.

    >>> [x.numpy().tolist() for x in tf.experimental.numpy.split([1, 2, 3, 4], [1, 3])]
    [[1], [2, 3], [4]]
    """
    x = tensor_of(ary)
    if isinstance(indices_or_sections, int):
        return tf.split(x, indices_or_sections, axis)
    if not -x.ndim <= integer(axis, "split: axis") < x.ndim:
        raise ValueError(f"split: axis {as_text(axis)} is out of range for shape {x._spec.shape}.")
    length = x._spec.shape[axis]
    cuts = [min(cut, length) for cut in integers(indices_or_sections, "split")]
    ends = [0, *cuts, length]
    sizes = [after - before for before, after in itertools.pairwise(ends)]
    if min(sizes) < 0:
        raise ValueError(
            f"split: expected indices in ascending order. Received: {as_text(indices_or_sections)}."
        )
    return tf.split(x, sizes, axis)


def _split_along(ary: Any, indices_or_sections: Any, axis: int, op_name: str) -> list[Tensor]:
    x = tensor_of(ary)
    axis = 0 if axis == 1 and x.ndim == 1 else axis
    length = x._spec.shape[normalize_axis(axis, x.ndim, op_name)]
    if isinstance(indices_or_sections, int) and (
        indices_or_sections < 1 or length % indices_or_sections
    ):
        raise ValueError(
            f"{op_name}: cannot split {length} elements into {as_text(indices_or_sections)} equal "
            "parts."
        )
    return split(x, indices_or_sections, axis)


def vsplit(ary: Any, indices_or_sections: Any) -> list[Tensor]:
    """Splits along the first axis."""
    return _split_along(ary, indices_or_sections, 0, "vsplit")


def hsplit(ary: Any, indices_or_sections: Any) -> list[Tensor]:
    """Splits along the second axis, or along the only one."""
    return _split_along(ary, indices_or_sections, 1, "hsplit")


def dsplit(ary: Any, indices_or_sections: Any) -> list[Tensor]:
    """Splits along the third axis."""
    return _split_along(ary, indices_or_sections, 2, "dsplit")


# Repeating and rearranging


def tile(a: Any, reps: Any) -> Tensor:
    """Tiles `a` along each axis; it gets at least as many axes as `reps` has elements."""
    return shared.tile(tensor_of(a), integers(reps, "tile"))


def repeat(a: Any, repeats: Any, axis: int | None = None) -> Tensor:
    """Repeats each element of `a`, or each slice along `axis`."""
    return tf.repeat(tensor_of(a), integers(repeats, "repeat"), axis)


def pad(array: Any, pad_width: Any, mode: str, **kwargs: Any) -> Tensor:
    """Pads `array` by `pad_width` elements for each axis and side.

    `mode` is "constant", "reflect" or "symmetric"; `constant_values` is the constant.
    """
    if mode not in ("constant", "reflect", "symmetric"):
        raise ValueError(
            f"pad: `mode` must be 'constant', 'reflect' or 'symmetric'. Received: {shown(mode)}."
        )
    value = kwargs.get("constant_values", 0)
    return tf.pad(tensor_of(array), tensor_of(pad_width, _INT32), mode.upper(), value)


def flip(m: Any, axis: int | None = None) -> Tensor:
    """Reverses `m` along one axis, or along all."""
    x = tensor_of(m)
    if axis is not None:
        axis = normalize_axis(axis, x.ndim, "flip")
    return tf.reverse(x, list(range(x.ndim)) if axis is None else [axis])


def flipud(m: Any) -> Tensor:
    """Reverses `m` along its first axis."""
    return flip(m, 0)


def fliplr(m: Any) -> Tensor:
    """Reverses `m` along its second axis."""
    return flip(m, 1)


def roll(a: Any, shift: Any, axis: Any = None) -> Tensor:
    """Shifts elements by `shift` positions; elements beyond the end reappear at the start."""
    x = tensor_of(a)
    if axis is not None:
        return tf.roll(x, shift, axis)
    return tf.reshape(tf.roll(ravel(x), shift, 0), x._spec.shape)


def rot90(m: Any, k: int = 1, axes: Any = (0, 1)) -> Tensor:
    """Rotates `m` by 90 degrees `k` times, from the first of two axes toward the second."""
    x = tensor_of(m)
    first_axis, second_axis = (normalize_axis(axis, x.ndim, "rot90") for axis in axes)
    return shared.rot90(x, integer(k, "rot90: k"), (first_axis, second_axis))


# Selecting and sorting


def take(
    a: Any, indices: Any, axis: int | None = None, out: Any = None, mode: str = "clip"
) -> Tensor:
    """Takes the slices of `a` at `indices` along `axis`, or the elements of the flattened `a`.

    Indices out of range are clipped, or wrapped around with mode "wrap".
    """
    if out is not None:
        raise unsupported_argument("out", "take")
    if mode not in ("clip", "wrap"):
        raise ValueError(f"take: `mode` must be 'clip' or 'wrap'. Received: {shown(mode)}.")
    x, positions = tensor_of(a), tensor_of(indices)
    if axis is None:
        x, axis = ravel(x), 0
    axis = normalize_axis(axis, x.ndim, "take")
    if positions._spec.dtype.itemsize < 4:
        positions = to_dtype(positions, _INT64)
    count = x._spec.shape[axis]
    positions = (
        clip_by_value(positions, 0, count - 1)
        if mode == "clip"
        else math.floormod(positions, count)
    )
    return tf.gather(x, positions, axis=axis)


def take_along_axis(arr: Any, indices: Any, axis: int | None) -> Tensor:
    """Takes the elements of `arr` at `indices` along `axis`; the other axes are matched.

    >>> x = tf.constant([[3.0, 1.0, 2.0]])
    >>> tf.experimental.numpy.take_along_axis(x, tf.argsort(x), 1).numpy()
    array([[1., 2., 3.]], dtype=float32)
    """
    x, positions = tensor_of(arr), tensor_of(indices)
    if axis is None:
        return take_along_axis(ravel(x), positions, 0)
    return shared.take_along_axis(x, positions, axis)


def compress(condition: Any, a: Any, axis: int | None = None) -> Tensor:
    """Selects slices along `axis`, or elements of the flattened `a`, where `condition` is true.

    A `condition` that is too short is padded with false.
    """
    keep, x = tensor_of(condition, np.dtype(bool)), tensor_of(a)
    if keep.ndim != 1:
        raise ValueError(
            f"compress: `condition` must be a vector. Received: shape {keep._spec.shape}."
        )
    if axis is None or not x.ndim:
        x, axis = ravel(x), 0 if axis is None else axis
    axis = normalize_axis(axis, x.ndim, "compress")
    missing = x._spec.shape[axis] - keep._spec.shape[0]
    if missing > 0:
        keep = tf.concat([keep, tf.zeros([missing], bool)], 0)
    return tf.boolean_mask(x, keep, axis)


def nonzero(a: Any) -> list[Tensor]:
    """Returns the indices of the nonzero elements, one tensor per axis."""
    x = to_dtype(atleast_1d(a), np.dtype(bool))
    return tf.unstack(tf.where(x), x.ndim, 1)


def where(condition: Any, x: Any = None, y: Any = None) -> Tensor | list[Tensor]:
    """Selects `x` where `condition` is true, else `y`; without them, returns the true indices.

    >>> tf.experimental.numpy.where([True, False], 1, 0.5).numpy()
    array([1. , 0.5])
    """
    keep = tensor_of(condition, np.dtype(bool))
    if x is None and y is None:
        return nonzero(keep)
    if x is None or y is None:
        raise ValueError("where: expected both `x` and `y`, or neither.")
    return tf.where(keep, *promote(x, y))


def select(condlist: Sequence[Any], choicelist: Sequence[Any], default: Any = 0) -> Tensor:
    """Selects, elementwise, the choice whose condition is the first to be true."""
    condlist, choicelist = to_list("select", condlist), to_list("select", choicelist)
    if len(condlist) != len(choicelist):
        raise ValueError(
            f"select: received {len(condlist)} conditions and {len(choicelist)} choices. Expected "
            "the same number."
        )
    if not len(condlist):
        raise ValueError("select: expected at least one condition.")
    result, *choices = promote(default, *choicelist)
    conditions = [tensor_of(condition, np.dtype(bool)) for condition in condlist]
    return shared.select(conditions, choices, result)


def sort(a: Any, axis: int | None = -1, kind: str = "quicksort", order: Any = None) -> Tensor:
    """Sorts along `axis` in ascending order, or sorts the flattened array."""
    if kind != "quicksort":
        raise ValueError(f"sort: `kind` must be 'quicksort'. Received: {shown(kind)}.")
    if order is not None:
        raise unsupported_argument("order", "sort")
    x = tensor_of(a)
    return tf.sort(ravel(x), 0) if axis is None else tf.sort(x, axis)


def argsort(a: Any, axis: int | None = -1, kind: str = "quicksort", order: Any = None) -> Tensor:
    """Returns the indices that sort `a` along `axis` in ascending order. The sort is stable."""
    if kind not in ("quicksort", "stable"):
        raise ValueError(
            f"argsort: `kind` must be 'quicksort' or 'stable'. Received: {shown(kind)}."
        )
    if order is not None:
        raise unsupported_argument("order", "argsort")
    x = tensor_of(a)
    if x._spec.dtype.kind == "c":
        raise TypeError(f"argsort: complex numbers have no order. Received: {x.dtype.name}.")
    x, axis = (ravel(x), 0) if axis is None or not x.ndim else (x, axis)
    return to_dtype(tf.argsort(x, axis, stable=True), _INT64)
