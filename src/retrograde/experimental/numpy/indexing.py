"""NumPy indexing with brackets: integers, slices and arrays of indices."""

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
    """Returns `x[key]` with NumPy's keys.

    Arrays of indices broadcast against each other. Their axes stay in place if they are adjacent,
    and come first otherwise. Integers count as slices, as in TensorFlow.
    """
    if _is_mask(key):
        return tf.boolean_mask(x, key)
    elements = [_element(k) for k in (key if isinstance(key, tuple) else _as_tuple(key))]
    basic = tuple(slice(None) if isinstance(k, Tensor) else k for k in elements)
    y = slicing.get_item(x, basic)
    if not any(isinstance(k, Tensor) for k in elements):
        return y
    return _take(y, _index_arrays(elements, y.ndim))


def _is_mask(key: Any) -> bool:
    tensor = tensor_or_variable(key)
    array = key if isinstance(key, np.ndarray) else None if tensor is None else tensor._array
    return isinstance(key, bool) or (array is not None and array.dtype == bool)


def _as_tuple(key: Any) -> tuple:
    """Converts a key to a tuple; a list is an array of indices if it holds only integers."""
    if isinstance(key, list) and any(_is_nested(k) for k in key):
        return tuple(key)
    return (key,)


def _is_nested(k: Any) -> bool:
    return k is None or k is Ellipsis or isinstance(k, (list, tuple, slice)) or np.ndim(k) > 0


def _element(k: Any) -> Any:
    """Converts one element of a key; arrays of indices become tensors, masks become indices."""
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


def _index_arrays(elements: list, ndim: int) -> dict[int, Tensor]:
    """Returns the arrays of indices by axis, after the other elements were applied."""
    remaining = [k for k in elements if not isinstance(k, int)]
    for position, k in enumerate(remaining):
        if k is Ellipsis:
            remaining[position : position + 1] = [slice(None)] * (ndim - len(remaining) + 1)
            break
    return {axis: k for axis, k in enumerate(remaining) if isinstance(k, Tensor)}


def _take(x: Tensor, arrays: dict[int, Tensor]) -> Tensor:
    axes = sorted(arrays)
    indices = broadcast_all([arrays[axis] for axis in axes])
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
