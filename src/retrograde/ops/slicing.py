"""Indexing with brackets, by strided slices, reshapes and boolean masks."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from retrograde.core.recorders import changes, thread
from retrograde.core.tensor import Tensor
from retrograde.core.variable import Variable
from retrograde.ops.casting import to_dtype
from retrograde.ops.host_functions import host_function
from retrograde.ops.indexing import gather, wrap_indices
from retrograde.ops.shaping import as_slices, reshape, take_slice
from retrograde.shape_inference.abstract_array import is_abstract
from retrograde.values.arguments import shown
from retrograde.values.conversion import tensor_or_variable
from retrograde.values.errors import invalid
from retrograde.values.sizes import has_size, in_both_cases, in_case


def get_item(x: Tensor, key: Any) -> Tensor:
    """Returns `x[key]` for TensorFlow's keys: integers, slices, `...`, `None`, boolean masks."""
    mask = _boolean(key)
    if mask is not None:
        return boolean_mask(x, mask)
    if thread.recorders.tracer is not None:
        x, key = _gather_dynamic(x, key)
    where, shape = resolve(x._spec.shape, key)
    y = take_slice(x, where=where)
    return y if y._spec.shape == shape else reshape(y, shape=shape)


class VariableSlice(Tensor):
    """The result of indexing a Variable: a tensor with `assign`, which writes to the variable."""

    __slots__ = ("_key", "_variable")

    def assign(self, value: Any, name: str | None = None) -> Variable:  # noqa: ARG002
        """Writes `value` into this part of the variable. Returns the variable.

        >>> v = tf.Variable([1.0, 2.0, 3.0])
        >>> v[1:].assign([8.0, 9.0]).numpy()
        array([1., 8., 9.], dtype=float32)
        """
        return self._variable._assign_part(self._key, self._spec.shape, value)


def get_item_of_variable(variable: Variable, key: Any) -> Tensor:
    """Returns `variable[key]`. The result can be assigned to, unless `key` is a boolean mask."""
    x = variable._read()
    y = get_item(x, key)
    if _boolean(key) is not None:
        return y
    part = VariableSlice(y._array, y._id)
    part._variable = variable
    part._key = as_slices(resolve(x._spec.shape, key)[0])
    return part


def _gather_dynamic(x: Tensor, key: Any) -> tuple[Tensor, Any]:
    """Gathers by the elements of `key` that differ between calls to a traced function.

    Returns the result, and the key that remains to be applied.
    """
    elements = list(key) if isinstance(key, (tuple, list)) else [key]
    if not any(map(_is_dynamic, elements)):
        return x, key
    elements, axis = _expand_ellipsis(elements, x._spec.ndim), 0
    for i, k in enumerate(elements):
        if _is_dynamic(k):
            size = x._spec.shape[axis]
            indices = (
                _slice_indices(k.start, k.stop, k.step, size)
                if isinstance(k, slice)
                else _index_tensor(k, size, axis)
            )
            x = gather(x, indices, axis=axis, dense_gradient=True)
            elements[i] = slice(None) if isinstance(k, slice) else 0
        axis += k is not None
    return x, tuple(elements)


def _is_dynamic(k: Any) -> bool:
    """Returns whether an element of a key depends on a tensor that may change between calls."""
    parts = (k.start, k.stop, k.step) if isinstance(k, slice) else (k,)
    holders = [holder for holder in map(tensor_or_variable, parts) if holder is not None]
    return any([_is_integer(holder) and changes(holder._read()) for holder in holders])


def _is_integer(holder: Any) -> bool:
    return holder._spec.dtype.kind in "iu" and not holder._spec.ndim


def _index_tensor(k: Any, size: int, axis: int) -> Tensor:
    """Returns a scalar integer tensor as an index along an axis of `size`, of shape (1,)."""
    index = to_dtype(tensor_or_variable(k)._read(), np.dtype(np.int64))
    return wrap_indices(reshape(index, shape=(1,)), size=size, axis=axis)


@host_function(dynamic_shapes=True)
def _slice_indices(start: Any, stop: Any, step: Any, size: int) -> Tensor:
    """Returns the indices that a slice selects."""
    return Tensor(np.arange(*_triple(slice(start, stop, step), 0, size)))


def _boolean(key: Any) -> Tensor | None:
    holder = tensor_or_variable(key)
    if holder is None:
        is_mask = isinstance(key, np.ndarray) and key.dtype == bool
        return Tensor(key) if is_mask else None
    return holder._read() if holder._spec.dtype == bool else None


def boolean_mask(x: Tensor, mask: Tensor, axis: int = 0) -> Tensor:
    """Returns the elements of `x` where `mask`, which covers axes from `axis` on, is true."""
    shape, covered = x._spec.shape, mask._spec.shape
    end = axis + len(covered)
    if not covered:
        raise ValueError("A mask cannot be a scalar. Expected a boolean tensor of rank >= 1.")
    if shape[axis:end] != covered:
        raise ValueError(
            f"boolean_mask: the mask has shape {covered}, but the masked axes of the tensor have "
            f"shape {shape[axis:end]}. Expected the same shape."
        )
    flat = reshape(x, shape=(*shape[:axis], mask._spec.size, *shape[end:]))
    return gather(flat, true_indices(mask), axis=axis)


@host_function(dynamic_shapes=True)
def true_indices(mask: Tensor) -> Tensor:
    """Returns the indices of the true elements of `mask`, flattened."""
    return Tensor(np.flatnonzero(np.asarray(mask)))


def resolve(shape: tuple[int, ...], key: Any) -> tuple[tuple, tuple[int, ...]]:
    """Returns the strided slice of `key` for an array of `shape`, and the shape of the result."""
    elements = list(key) if isinstance(key, (tuple, list)) else [key]
    elements = _expand_ellipsis(elements, len(shape))
    where, result = [], []
    for k in elements:
        if k is None:
            result.append(1)
            continue
        axis = len(where)
        triple = _triple(k, axis, shape[axis])
        where.append(triple)
        if isinstance(k, slice):
            result.append(_length(triple))
    return tuple(where), tuple(result)


def _expand_ellipsis(elements: list, ndim: int) -> list:
    """Replaces the ellipsis of a key by slices, so that there is an element for each axis."""
    dots = [i for i, k in enumerate(elements) if k is Ellipsis]
    if len(dots) > 1:
        raise invalid("Multiple ellipses are not allowed in an index.")
    missing = ndim - sum(k is not None and k is not Ellipsis for k in elements)
    if missing < 0:
        raise invalid(f"Index out of range using input dim {ndim}; input has only {ndim} dims.")
    position = dots[0] if dots else len(elements)
    return [*elements[:position], *[slice(None)] * missing, *elements[position + 1 :]]


def _triple(k: Any, axis: int, size: int) -> tuple[int, int, int]:
    if isinstance(k, slice):
        start, stop, step = (None if v is None else _integer(v) for v in (k.start, k.stop, k.step))
        if step == 0:
            raise invalid(f"strides[{axis}] must be non-zero.")
        triple = _indices(start, stop, step, size)
        # A backward slice from before the first element is empty; no triple represents its start.
        return (0, 0, 1) if triple[0] < 0 else triple
    i = _integer(k)
    if not -size <= i < size:
        raise invalid(f"slice index {i} of dimension {axis} out of bounds: it has size {size}.")
    i %= size
    return i, i + 1, 1


def _length(triple: tuple[int, int, int]) -> int:
    """Returns the number of elements of a slice."""
    if not has_size(triple):
        return len(range(*triple))
    return in_both_cases(*[len(range(*in_case(triple, case))) for case in (0, 1)])


def _indices(*arguments: Any) -> tuple[int, int, int]:
    """Returns the start, stop and step of a slice for a size, which may be unknown."""
    if not has_size(arguments):
        start, stop, step, size = arguments
        return slice(start, stop, step).indices(size)
    first, other = (_indices(*in_case(arguments, case)) for case in (0, 1))
    return tuple([in_both_cases(*pair) for pair in zip(first, other, strict=True)])


def _integer(k: Any) -> int:
    if is_abstract(k):
        return k if isinstance(k, int) else k._spec.item()
    holder = tensor_or_variable(k)
    if holder is None and not isinstance(k, bool):
        try:
            return operator.index(k)
        except TypeError:
            pass
    elif holder is not None and _is_integer(holder):
        return holder._read().__index__()
    raise TypeError(
        "Only integers, slices (`:`), ellipsis (`...`), tf.newaxis (`None`) and scalar "
        f"tf.int32/tf.int64 tensors are valid indices, got {shown(k)}."
    )
