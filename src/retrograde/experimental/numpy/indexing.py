"""Indexing with brackets as NumPy has it: arrays of indices among the integers and slices."""

from __future__ import annotations

from typing import Any

import numpy as np

import retrograde as tf
from retrograde.core.tensor import Tensor
from retrograde.experimental.numpy._inputs import tensor_of
from retrograde.experimental.numpy.shaping import moveaxis, ravel
from retrograde.numpy_functions.shaping import broadcast_all
from retrograde.ops import slicing
from retrograde.ops.casting import to_dtype
from retrograde.values.arguments import shown
from retrograde.values.conversion import tensor_or_variable

_INT64 = np.dtype(np.int64)


def get_item(x: Tensor, key: Any) -> Tensor:
    """`x[key]` with NumPy's keys.

    Arrays of indices broadcast against each other. What they pick stays in their place if they are
    neighbours, and comes first otherwise. Integers count among the slices, as in TensorFlow.
    """
    if _is_mask(key):
        return tf.boolean_mask(x, key)
    elements = [_element(k) for k in (key if isinstance(key, tuple) else _in_a_list(key))]
    basic = tuple(slice(None) if isinstance(k, Tensor) else k for k in elements)
    y = slicing.get_item(x, basic)
    if not any(isinstance(k, Tensor) for k in elements):
        return y
    return _picked(y, _places(elements, y.ndim))


def _is_mask(key: Any) -> bool:
    held = tensor_or_variable(key)
    array = key if isinstance(key, np.ndarray) else None if held is None else held._array
    return isinstance(key, bool) or (array is not None and array.dtype == bool)


def _in_a_list(key: Any) -> tuple:
    """A list counts as a tuple if it holds more than integers, and else as an array of indices."""
    if isinstance(key, list) and any(_is_nested(k) for k in key):
        return tuple(key)
    return (key,)


def _is_nested(k: Any) -> bool:
    return k is None or k is Ellipsis or isinstance(k, (list, tuple, slice)) or np.ndim(k) > 0


def _element(k: Any) -> Any:
    """One element of a key; arrays of indices as tensors, and booleans as their places."""
    if k is None or k is Ellipsis or isinstance(k, slice):
        return k
    if isinstance(k, (int, np.integer)) and not isinstance(k, bool):
        return int(k)
    index = tensor_of(k)
    kind = index._spec.dtype.kind
    if kind == "b":
        if index.ndim != 1:
            raise NotImplementedError(
                f"A mask among other indices must be a vector. Received: {index._spec.shape}."
            )
        return ravel(tf.where(index))
    if kind not in "iu" or index._spec.dtype == np.uint64:
        raise IndexError(
            "Only integers, slices (`:`), ellipsis (`...`), newaxis (`None`) and arrays of "
            f"integers or of bool are valid indices, got {shown(k)}."
        )
    return int(index) if not index.ndim else to_dtype(index, _INT64)


def _places(elements: list, ndim: int) -> dict[int, Tensor]:
    """The arrays of indices by their axes in what the other elements leave, of `ndim` axes."""
    left = [k for k in elements if not isinstance(k, int)]
    for at, k in enumerate(left):
        if k is Ellipsis:
            left[at : at + 1] = [slice(None)] * (ndim - len(left) + 1)
            break
    return {axis: k for axis, k in enumerate(left) if isinstance(k, Tensor)}


def _picked(x: Tensor, places: dict[int, Tensor]) -> Tensor:
    axes = sorted(places)
    indices = broadcast_all([places[axis] for axis in axes])
    sizes = [x._spec.shape[axis] for axis in axes]
    indices = [
        tf.where(index < 0, index + size, index) for index, size in zip(indices, sizes, strict=True)
    ]
    if len(axes) == 1:
        return tf.gather(x, indices[0], axis=axes[0])
    front = moveaxis(x, axes, range(len(axes)))
    y = tf.gather_nd(front, tf.stack(indices, -1))
    if axes != list(range(axes[0], axes[0] + len(axes))):
        return y
    count = indices[0].ndim
    return moveaxis(y, range(count), range(axes[0], axes[0] + count))
