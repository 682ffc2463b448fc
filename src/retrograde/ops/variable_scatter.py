"""Variable methods that work at indices. They are imported on first use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from retrograde.core.indexed_slices import IndexedSlices
from retrograde.core.recorders import isolate, thread
from retrograde.core.tensor import Tensor
from retrograde.core.variable import Variable
from retrograde.ops import _row_sums as rows
from retrograde.ops import indexing
from retrograde.ops.conversion import as_tensor
from retrograde.ops.host_callbacks import HostCallback, call_host
from retrograde.values import dtypes
from retrograde.values.arguments import as_text, shown
from retrograde.values.conversion import as_array, tensor_or_variable
from retrograde.values.errors import invalid
from retrograde.values.shapes import broadcast


def sparse_read(self: Variable, indices: Any, name: str | None = None) -> Tensor:
    """Returns the rows at `indices`, like `tf.gather`."""
    return indexing.gather(self._read(), _index_tensor(indices), axis=0)


def gather_nd(self: Variable, indices: Any, name: str | None = None) -> Tensor:
    """Returns the slices at `indices`, like `tf.gather_nd`."""
    return indexing.gather_nd(self._read(), _index_tensor(indices), batch_dims=0)


def scatter_add(
    self: Variable, sparse_delta: Any, use_locking: bool = False, name: Any = None
) -> Variable:
    """Adds IndexedSlices to rows; repeated rows accumulate."""
    return _scatter(self, rows.add_at, sparse_delta)


def scatter_sub(
    self: Variable, sparse_delta: Any, use_locking: bool = False, name: Any = None
) -> Variable:
    """Subtracts IndexedSlices from rows; repeated rows accumulate."""
    return _scatter(self, rows.subtract_at, sparse_delta)


def scatter_mul(
    self: Variable, sparse_delta: Any, use_locking: bool = False, name: Any = None
) -> Variable:
    """Multiplies rows by IndexedSlices."""
    return _scatter(self, np.multiply.at, sparse_delta)


def scatter_div(
    self: Variable, sparse_delta: Any, use_locking: bool = False, name: Any = None
) -> Variable:
    """Divides rows by IndexedSlices."""
    return _scatter(self, _divide_at, sparse_delta)


def scatter_min(
    self: Variable, sparse_delta: Any, use_locking: bool = False, name: Any = None
) -> Variable:
    """Replaces rows by their minimum with IndexedSlices."""
    return _scatter(self, _lower_at, sparse_delta)


def scatter_max(
    self: Variable, sparse_delta: Any, use_locking: bool = False, name: Any = None
) -> Variable:
    """Replaces rows by their maximum with IndexedSlices."""
    return _scatter(self, _raise_at, sparse_delta)


def scatter_update(
    self, sparse_delta: Any, use_locking: bool = False, name: Any = None
) -> Variable:
    """Replaces rows by IndexedSlices."""
    return _scatter(self, _put, sparse_delta)


def batch_scatter_update(
    self, sparse_delta: Any, use_locking: bool = False, name: Any = None
) -> Variable:
    """Replaces rows within each batch: `v[b, indices[b, i]] = values[b, i]`."""
    if thread.recorders.tracer is not None and isinstance(sparse_delta, IndexedSlices):
        return _recorded(
            self,
            lambda v, x, i: batch_scatter_update(v, IndexedSlices(x, i)),
            "scatter",
            sparse_delta.values,
            sparse_delta.indices,
        )
    indices, values = _slices(self, sparse_delta)
    batch = np.ix_(*map(range, indices.shape[:-1]))
    key = (*(axis[..., None] for axis in batch), indices) if batch else indices
    _check_range(self, indices, self._spec.shape[indices.ndim - 1])
    return _write_at(self, _put, key, values)


def scatter_nd_add(self: Variable, indices: Any, updates: Any, name: Any = None) -> Variable:
    """Adds `updates` at `indices`, like `tf.tensor_scatter_nd_add`."""
    return _scatter_nd(self, np.add.at, indices, updates)


def scatter_nd_sub(self: Variable, indices: Any, updates: Any, name: Any = None) -> Variable:
    """Subtracts `updates` at `indices`."""
    return _scatter_nd(self, np.subtract.at, indices, updates)


def scatter_nd_update(self: Variable, indices: Any, updates: Any, name: Any = None) -> Variable:
    """Replaces the elements at `indices` by `updates`."""
    return _scatter_nd(self, _put, indices, updates)


def scatter_nd_max(self: Variable, indices: Any, updates: Any, name: Any = None) -> Variable:
    """Replaces the elements at `indices` by their maximum with `updates`."""
    return _scatter_nd(self, _raise_at, indices, updates)


def scatter_nd_min(self: Variable, indices: Any, updates: Any, name: Any = None) -> Variable:
    """Replaces the elements at `indices` by their minimum with `updates`."""
    return _scatter_nd(self, _lower_at, indices, updates)


def _assign_part(
    self: Variable, key: tuple[slice, ...], shape: tuple[int, ...], value: Any
) -> Variable:
    """Assigns `value`, broadcast to `shape`, to the slice `key`."""
    if thread.recorders.tracer is not None:
        return _recorded(self, lambda v, x: v._assign_part(key, shape, x), "assign", value)
    array = self._operand(value, "assign")._array
    if broadcast(array.shape, shape) != shape:
        raise invalid(
            f"assign: cannot broadcast a value of shape {array.shape} into a slice of shape "
            f"{as_text(shape)} of variable '{self.name}'."
        )

    def write(old: Any, out: np.ndarray | None) -> np.ndarray:
        new = np.array(old) if out is None else out
        index: Any = (*key, ...)
        part = new[index]  # a view, also without axes
        part[...] = np.broadcast_to(array, shape).reshape(part.shape)
        return new

    self._write(write)
    return self


def _recorded(self: Variable, update: Callable, name: str, *operands: Any) -> Variable:
    """Performs `update(variable, *operands)` as a host callback, so that a replay repeats it.

    The update runs on a temporary variable with the same value. That makes it a pure function
    of arrays.
    """

    def new_value(old: Any, *arrays: Any) -> Any:
        with isolate():
            temporary = Variable(Tensor(np.array(old)), name=self._name)
            update(temporary, *map(Tensor, arrays))
            return temporary._array

    host = HostCallback(name, new_value, pure=True)
    given = [as_tensor(x) for x in operands]
    return self.assign(call_host(host, (self._read(), *given)))


def _slices(self: Variable, sparse_delta: Any) -> tuple[np.ndarray, np.ndarray]:
    if not isinstance(sparse_delta, IndexedSlices):
        raise TypeError(
            "Argument `sparse_delta` must be a `tf.IndexedSlices`. Received: "
            f"{shown(sparse_delta)}."
        )
    indices = _indices(sparse_delta.indices)
    if not self._spec.ndim:
        raise invalid(f"scatter: variable '{self.name}' is a scalar, so it has no rows.")
    listed = sparse_delta._listed
    values = sparse_delta.values if listed is None else listed
    return indices, self._operand(values, "scatter")._array


def _scatter(self: Variable, write_at: Callable, sparse_delta: Any) -> Variable:
    if thread.recorders.tracer is not None and isinstance(sparse_delta, IndexedSlices):
        return _recorded(
            self,
            lambda v, x, i: _scatter(v, write_at, IndexedSlices(x, i)),
            "scatter",
            sparse_delta.values,
            sparse_delta.indices,
        )
    indices, values = _slices(self, sparse_delta)
    _check_range(self, indices, self._spec.shape[0])
    return _write_at(self, write_at, indices, values)


def _scatter_nd(self: Variable, write_at: Callable, indices: Any, updates: Any) -> Variable:
    if thread.recorders.tracer is not None:
        return _recorded(
            self, lambda v, i, x: _scatter_nd(v, write_at, i, x), "scatter", indices, updates
        )
    indices = _indices(indices)
    if not indices.ndim or indices.shape[-1] > self._spec.ndim:
        raise invalid(
            f"scatter: indices of shape {indices.shape} are not valid for variable "
            f"'{self.name}' of shape {self._spec.shape}. Expected a last axis of at most "
            f"{self._spec.ndim}."
        )
    for axis in range(indices.shape[-1]):
        _check_range(self, indices[..., axis], self._spec.shape[axis])
    key = tuple(np.moveaxis(indices, -1, 0))
    return _write_at(self, write_at, key, self._operand(updates, "scatter")._array)


def _check_range(self: Variable, indices: np.ndarray, size: int) -> None:
    wrong = np.flatnonzero((indices < 0) | (indices >= size))
    if wrong.size:
        raise invalid(
            f"indices[{wrong[0]}] = {indices.ravel()[wrong[0]]} is not in [0, {size}), the "
            f"rows of variable '{self.name}' of shape {self._spec.shape}."
        )


def _write_at(self: Variable, write_at: Callable, key: Any, values: Any) -> Variable:
    expected = np.broadcast_shapes(self._array[key].shape)
    if values.shape != expected and values.shape != ():
        raise invalid(
            f"scatter: updates of shape {values.shape} do not fit. Expected {expected} for "
            f"variable '{self.name}' of shape {self._spec.shape}."
        )

    def write(old: Any, out: np.ndarray | None) -> np.ndarray:
        array = np.array(old) if out is None else out
        thread.recorders.quietly(write_at, array, key, values)
        return array

    self._write(write)
    return self


def _put(array: np.ndarray, key: Any, values: Any) -> None:
    array[key] = values


def _lower_at(array: np.ndarray, key: Any, values: Any) -> None:
    check_ordered(array, "scatter_min")
    np.minimum.at(array, key, values)


def _raise_at(array: np.ndarray, key: Any, values: Any) -> None:
    check_ordered(array, "scatter_max")
    np.maximum.at(array, key, values)


def check_ordered(array: Any, op_name: str) -> None:
    """Raises an error for dtypes without an order."""
    if array.dtype not in dtypes.REAL:
        name = dtypes.of(array.dtype).name
        raise invalid(f"{op_name}: expected a real dtype. Received: {name}.")


def _divide_at(array: np.ndarray, key: Any, values: Any) -> None:
    """Divides in place. Integers are rounded towards zero, as in TensorFlow."""
    if not np.all(values):
        raise invalid("scatter_div: the updates contain 0. Expected nonzero updates.")
    if array.dtype.kind not in "iu":
        np.divide.at(array, key, values)
        return
    signs, magnitudes = np.sign(array), np.abs(array)
    np.multiply.at(signs, key, np.sign(values))
    np.floor_divide.at(magnitudes, key, np.abs(values))
    np.multiply(signs, magnitudes, array)


def _indices(indices: Any) -> np.ndarray:
    array = np.asarray(as_array(indices))
    if array.dtype.kind not in "iu":
        name = dtypes.of(array.dtype).name
        raise invalid(f"Indices must be integers. Received: dtype {name}. Use tf.cast.")
    return array


def _index_tensor(indices: Any) -> Tensor:
    holder = tensor_or_variable(indices)
    array = _indices(indices)
    return Tensor(array) if holder is None else holder._read()
