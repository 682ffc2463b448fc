"""Indexing with brackets: what a key means, made of strided slices, reshapes and masks."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from retrograde.core.recorders import changes, thread
from retrograde.core.tensor import Tensor
from retrograde.core.variable import Variable
from retrograde.ops.casting import to_dtype
from retrograde.ops.host_functions import host_function
from retrograde.ops.indexing import from_front, gather
from retrograde.ops.shaping import key_of, reshape, take_slice
from retrograde.values.arguments import shown
from retrograde.values.conversion import tensor_or_variable
from retrograde.values.errors import invalid


def get_item(x: Tensor, key: Any) -> Tensor:
    """`x[key]` with TensorFlow's keys: integers, slices, `...`, `None`, and boolean masks."""
    mask = _boolean(key)
    if mask is not None:
        return boolean_mask(x, mask)
    if thread.recorders.tracer is not None:
        x, key = _moved(x, key)
    where, shape = resolve(x._spec.shape, key)
    y = take_slice(x, where=where)
    return y if y._spec.shape == shape else reshape(y, shape=shape)


class VariableSlice(Tensor):
    """What indexing a Variable gives: a tensor whose place in the variable can be assigned to."""

    __slots__ = ("_key", "_variable")

    def assign(self, value: Any, name: str | None = None) -> Variable:  # noqa: ARG002
        """Writes `value` into this part of the variable. Returns the variable.

        >>> v = tf.Variable([1.0, 2.0, 3.0])
        >>> v[1:].assign([8.0, 9.0]).numpy()
        array([1., 8., 9.], dtype=float32)
        """
        return self._variable._assign_part(self._key, self._spec.shape, value)


def get_item_of_variable(variable: Variable, key: Any) -> Tensor:
    """`variable[key]`; but for boolean masks, the result can be assigned to."""
    x = variable._read()
    y = get_item(x, key)
    if _boolean(key) is not None:
        return y
    part = VariableSlice(y._array, y._id)
    part._variable = variable
    part._key = key_of(resolve(x._spec.shape, key)[0])
    return part


def _moved(x: Tensor, key: Any) -> tuple[Tensor, Any]:
    """`x` cut where other calls of a function cut it elsewhere, and what is left to do of `key`."""
    elements = list(key) if isinstance(key, (tuple, list)) else [key]
    if not any(map(_moves, elements)):
        return x, key
    elements, axis = _spelled_out(elements, x._spec.ndim), 0
    for i, k in enumerate(elements):
        if _moves(k):
            size = x._spec.shape[axis]
            places = (
                _span(k.start, k.stop, k.step, size) if isinstance(k, slice) else _at(k, size, axis)
            )
            x = gather(x, places, axis=axis, whole=True)
            elements[i] = slice(None) if isinstance(k, slice) else 0
        axis += k is not None
    return x, tuple(elements)


def _moves(k: Any) -> bool:
    """Whether an element of a key is, or has in it, a number that other calls see otherwise."""
    parts = (k.start, k.stop, k.step) if isinstance(k, slice) else (k,)
    holders = [held for held in map(tensor_or_variable, parts) if held is not None]
    return any([_is_integer(held) and changes(held._read()) for held in holders])


def _is_integer(held: Any) -> bool:
    return held._spec.dtype.kind in "iu" and not held._spec.ndim


def _at(k: Any, size: int, axis: int) -> Tensor:
    """The place that an integer tensor without axes names, along an axis of `size`."""
    index = to_dtype(tensor_or_variable(k)._read(), np.dtype(np.int64))
    return from_front(reshape(index, shape=(1,)), size=size, axis=axis)


@host_function(dynamic_shapes=True)
def _span(start: Any, stop: Any, step: Any, size: int) -> Tensor:
    """The places that a slice covers."""
    return Tensor(np.arange(*_triple(slice(start, stop, step), 0, size)))


def _boolean(key: Any) -> Tensor | None:
    held = tensor_or_variable(key)
    if held is None:
        is_mask = isinstance(key, np.ndarray) and key.dtype == bool
        return Tensor(key) if is_mask else None
    return held._read() if held._spec.dtype == bool else None


def boolean_mask(x: Tensor, mask: Tensor, axis: int = 0) -> Tensor:
    """The elements of `x` where `mask` is true, over as many axes as it has, from `axis` on."""
    shape, covered = x._spec.shape, mask._spec.shape
    end = axis + len(covered)
    if not covered:
        raise ValueError("A mask must have axes. Received: a scalar.")
    if shape[axis:end] != covered:
        raise ValueError(
            f"boolean_mask: the mask has shape {covered}, but the tensor has {shape[axis:end]} "
            "there. Expected the same."
        )
    flat = reshape(x, shape=(*shape[:axis], mask._spec.size, *shape[end:]))
    return gather(flat, true_places(mask), axis=axis)


@host_function(dynamic_shapes=True)
def true_places(mask: Tensor) -> Tensor:
    """Where `mask`, laid flat, is true."""
    return Tensor(np.flatnonzero(np.asarray(mask)))


def resolve(shape: tuple[int, ...], key: Any) -> tuple[tuple, tuple[int, ...]]:
    """The strided slice that `key` cuts out of `shape`, and the shape to give it then."""
    elements = list(key) if isinstance(key, (tuple, list)) else [key]
    elements = _spelled_out(elements, len(shape))
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


def _spelled_out(elements: list, ndim: int) -> list:
    """A key with slices in place of its ellipsis, one element for each axis."""
    dots = [i for i, k in enumerate(elements) if k is Ellipsis]
    if len(dots) > 1:
        raise invalid("Multiple ellipses are not allowed in an index.")
    missing = ndim - sum(k is not None and k is not Ellipsis for k in elements)
    if missing < 0:
        raise invalid(f"Index out of range using input dim {ndim}; input has only {ndim} dims.")
    at = dots[0] if dots else len(elements)
    return [*elements[:at], *[slice(None)] * missing, *elements[at + 1 :]]


def _triple(k: Any, axis: int, size: int) -> tuple[int, int, int]:
    if isinstance(k, slice):
        start, stop, step = (None if v is None else _integer(v) for v in (k.start, k.stop, k.step))
        if step == 0:
            raise invalid(f"strides[{axis}] must be non-zero.")
        triple = slice(start, stop, step).indices(size)
        # Backwards from before the front there is nothing; a triple cannot say where that is.
        return (0, 0, 1) if triple[0] < 0 else triple
    i = _integer(k)
    if not -size <= i < size:
        raise invalid(f"slice index {i} of dimension {axis} out of bounds: it has size {size}.")
    i %= size
    return i, i + 1, 1


def _integer(k: Any) -> int:
    held = tensor_or_variable(k)
    if held is None and not isinstance(k, bool):
        try:
            return operator.index(k)
        except TypeError:
            pass
    elif held is not None and _is_integer(held):
        return held._read().__index__()
    raise TypeError(
        "Only integers, slices (`:`), ellipsis (`...`), tf.newaxis (`None`) and scalar "
        f"tf.int32/tf.int64 tensors are valid indices, got {shown(k)}."
    )
