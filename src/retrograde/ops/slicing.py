"""Indexing with brackets: what a key means, made of strided slices, reshapes and masks."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from retrograde.core.conversion import held_by
from retrograde.core.errors import invalid
from retrograde.core.tensor import Tensor
from retrograde.core.variable import Variable
from retrograde.ops.indexing import gather
from retrograde.ops.shaping import key_of, reshape, take_slice


def get_item(x: Tensor, key: Any) -> Tensor:
    """`x[key]` with TensorFlow's keys: integers, slices, `...`, `None`, and boolean masks."""
    mask = _boolean(key)
    if mask is not None:
        return boolean_mask(x, mask)
    where, shape = resolve(x._array.shape, key)
    y = take_slice(x, where=where)
    return y if y._array.shape == shape else reshape(y, shape=shape)


class VariableSlice(Tensor):
    """What indexing a Variable gives: a tensor whose place in the variable can be assigned to."""

    __slots__ = ("_key", "_variable")

    def assign(self, value: Any, name: str | None = None) -> Variable:  # noqa: ARG002
        """Writes `value` into this part of the variable. Returns the variable.

        >>> v = tf.Variable([1.0, 2.0, 3.0])
        >>> v[1:].assign([8.0, 9.0]).numpy()
        array([1., 8., 9.], dtype=float32)
        """
        return self._variable._assign_part(self._key, self._array.shape, value)


def get_item_of_variable(variable: Variable, key: Any) -> Tensor:
    """`variable[key]`; but for boolean masks, the result can be assigned to."""
    x = variable._read()
    y = get_item(x, key)
    if _boolean(key) is not None:
        return y
    part = VariableSlice(y._array, y._id)
    part._variable = variable
    part._key = key_of(resolve(x._array.shape, key)[0])
    return part


def _boolean(key: Any) -> np.ndarray | None:
    held = held_by(key)
    array = key if isinstance(key, np.ndarray) else None if held is None else held._array
    return np.asarray(array) if array is not None and array.dtype == bool else None


def boolean_mask(x: Tensor, mask: np.ndarray, axis: int = 0) -> Tensor:
    """The elements of `x` where `mask` is true, over `mask.ndim` axes from `axis` on."""
    shape = x._array.shape
    masked = shape[axis : axis + mask.ndim]
    if mask.ndim == 0:
        raise ValueError("A mask must have axes. Received: a scalar.")
    if masked != mask.shape:
        raise ValueError(
            f"boolean_mask: the mask has shape {mask.shape}, but the tensor has {masked} there. "
            "Expected the same."
        )
    flat = reshape(x, shape=(*shape[:axis], mask.size, *shape[axis + mask.ndim :]))
    return gather(flat, Tensor(np.flatnonzero(mask)), axis=axis)


def resolve(shape: tuple[int, ...], key: Any) -> tuple[tuple, tuple[int, ...]]:
    """The strided slice that `key` cuts out of `shape`, and the shape to give it then."""
    elements = list(key) if isinstance(key, (tuple, list)) else [key]
    dots = [i for i, k in enumerate(elements) if k is Ellipsis]
    if len(dots) > 1:
        raise invalid("Multiple ellipses are not allowed in an index.")
    missing = len(shape) - sum(k is not None and k is not Ellipsis for k in elements)
    if missing < 0:
        raise invalid(
            f"Index out of range using input dim {len(shape)}; input has only {len(shape)} dims."
        )
    at = dots[0] if dots else len(elements)
    elements[at : at + 1] = [slice(None)] * missing
    where, result = [], []
    for k in elements:
        if k is None:
            result.append(1)
            continue
        axis = len(where)
        triple = _triple(k, axis, shape[axis])
        where.append(triple)
        if isinstance(k, slice):
            result.append(len(range(*triple)))
    return tuple(where), tuple(result)


def _triple(k: Any, axis: int, size: int) -> tuple[int, int, int]:
    if isinstance(k, slice):
        start, stop, step = (None if v is None else _integer(v) for v in (k.start, k.stop, k.step))
        if step == 0:
            raise invalid(f"strides[{axis}] must be non-zero.")
        return slice(start, stop, step).indices(size)
    i = _integer(k)
    if not -size <= i < size:
        raise invalid(f"slice index {i} of dimension {axis} out of bounds: it has size {size}.")
    i %= size
    return i, i + 1, 1


def _integer(k: Any) -> int:
    held = held_by(k)
    if held is None and not isinstance(k, bool):
        try:
            return operator.index(k)
        except TypeError:
            pass
    elif held is not None and held._array.dtype.kind in "iu" and not held._array.ndim:
        return held._read().__index__()
    raise TypeError(
        "Only integers, slices (`:`), ellipsis (`...`), tf.newaxis (`None`) and scalar "
        f"tf.int32/tf.int64 tensors are valid indices, got {k!r}."
    )
