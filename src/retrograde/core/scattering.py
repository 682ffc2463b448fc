"""Gathering from and scattering to places of a variable that are given by indices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np

from retrograde.core import required, rows
from retrograde.core.indexed_slices import IndexedSlices
from retrograde.core.recorders import thread
from retrograde.core.tensor import Tensor
from retrograde.core.variable_cell import VariableCell
from retrograde.values import dtypes
from retrograde.values.arguments import shown
from retrograde.values.conversion import as_array, held_by
from retrograde.values.errors import invalid


class Scattering(VariableCell):
    """The methods of a `Variable` that read and write at indices."""

    __slots__ = ()

    def sparse_read(self, indices: Any, name: str | None = None) -> Tensor:
        """The rows at `indices`, as `tf.gather` gives them."""
        return required.gather(self._read(), _index_tensor(indices), axis=0)

    def gather_nd(self, indices: Any, name: str | None = None) -> Tensor:
        """The slices at `indices`, as `tf.gather_nd` gives them."""
        return required.gather_nd(self._read(), _index_tensor(indices), batch_dims=0)

    def scatter_add(self, sparse_delta: Any, use_locking: bool = False, name: Any = None) -> Self:
        """Adds rows given as IndexedSlices; repeated rows add up."""
        return self._scatter(rows.add_at, sparse_delta)

    def scatter_sub(self, sparse_delta: Any, use_locking: bool = False, name: Any = None) -> Self:
        """Subtracts rows given as IndexedSlices; repeated rows add up."""
        return self._scatter(rows.subtract_at, sparse_delta)

    def scatter_mul(self, sparse_delta: Any, use_locking: bool = False, name: Any = None) -> Self:
        """Multiplies by rows given as IndexedSlices."""
        return self._scatter(np.multiply.at, sparse_delta)

    def scatter_div(self, sparse_delta: Any, use_locking: bool = False, name: Any = None) -> Self:
        """Divides by rows given as IndexedSlices."""
        return self._scatter(_divide_at, sparse_delta)

    def scatter_min(self, sparse_delta: Any, use_locking: bool = False, name: Any = None) -> Self:
        """Lowers rows to those given as IndexedSlices."""
        return self._scatter(_lower_at, sparse_delta)

    def scatter_max(self, sparse_delta: Any, use_locking: bool = False, name: Any = None) -> Self:
        """Raises rows to those given as IndexedSlices."""
        return self._scatter(_raise_at, sparse_delta)

    def scatter_update(
        self, sparse_delta: Any, use_locking: bool = False, name: Any = None
    ) -> Self:
        """Replaces rows by those given as IndexedSlices."""
        return self._scatter(_put, sparse_delta)

    def batch_scatter_update(
        self, sparse_delta: Any, use_locking: bool = False, name: Any = None
    ) -> Self:
        """Replaces rows within each batch: `v[b, indices[b, i]] = values[b, i]`."""
        if thread.recorders.recording is not None and isinstance(sparse_delta, IndexedSlices):
            return self._recorded(
                lambda v, x, i: v.batch_scatter_update(IndexedSlices(x, i)),
                "scatter",
                sparse_delta.values,
                sparse_delta.indices,
            )
        indices, values = self._slices(sparse_delta)
        batch = np.ix_(*map(range, indices.shape[:-1]))
        key = (*(axis[..., None] for axis in batch), indices) if batch else indices
        self._check_range(indices, self._array.shape[indices.ndim - 1])
        return self._write_at(_put, key, values)

    def scatter_nd_add(self, indices: Any, updates: Any, name: Any = None) -> Self:
        """Adds `updates` at the positions `indices`, as `tf.tensor_scatter_nd_add`."""
        return self._scatter_nd(np.add.at, indices, updates)

    def scatter_nd_sub(self, indices: Any, updates: Any, name: Any = None) -> Self:
        """Subtracts `updates` at the positions `indices`."""
        return self._scatter_nd(np.subtract.at, indices, updates)

    def scatter_nd_update(self, indices: Any, updates: Any, name: Any = None) -> Self:
        """Replaces what is at the positions `indices` by `updates`."""
        return self._scatter_nd(_put, indices, updates)

    def scatter_nd_max(self, indices: Any, updates: Any, name: Any = None) -> Self:
        """Raises what is at the positions `indices` to `updates`."""
        return self._scatter_nd(_raise_at, indices, updates)

    def scatter_nd_min(self, indices: Any, updates: Any, name: Any = None) -> Self:
        """Lowers what is at the positions `indices` to `updates`."""
        return self._scatter_nd(_lower_at, indices, updates)

    def _slices(self, sparse_delta: Any) -> tuple[np.ndarray, np.ndarray]:
        if not isinstance(sparse_delta, IndexedSlices):
            raise TypeError(
                "Argument `sparse_delta` must be a `tf.IndexedSlices`. Received: "
                f"{shown(sparse_delta)}."
            )
        indices = _indices(sparse_delta.indices)
        if not self._array.ndim:
            raise invalid(f"scatter: variable '{self.name}' has no axes, so it has no rows.")
        listed = sparse_delta._listed
        values = sparse_delta.values if listed is None else listed
        return indices, self._operand(values, "scatter")

    def _scatter(self, write_at: Callable, sparse_delta: Any) -> Self:
        if thread.recorders.recording is not None and isinstance(sparse_delta, IndexedSlices):
            return self._recorded(
                lambda v, x, i: v._scatter(write_at, IndexedSlices(x, i)),
                "scatter",
                sparse_delta.values,
                sparse_delta.indices,
            )
        indices, values = self._slices(sparse_delta)
        self._check_range(indices, self._array.shape[0])
        return self._write_at(write_at, indices, values)

    def _scatter_nd(self, write_at: Callable, indices: Any, updates: Any) -> Self:
        if thread.recorders.recording is not None:
            return self._recorded(
                lambda v, i, x: v._scatter_nd(write_at, i, x), "scatter", indices, updates
            )
        indices = _indices(indices)
        if not indices.ndim or indices.shape[-1] > self._array.ndim:
            raise invalid(
                f"scatter: indices of shape {indices.shape} do not point into variable "
                f"'{self.name}' of shape {self._array.shape}. Expected a last axis of at most "
                f"{self._array.ndim}."
            )
        for axis in range(indices.shape[-1]):
            self._check_range(indices[..., axis], self._array.shape[axis])
        key = tuple(np.moveaxis(indices, -1, 0))
        return self._write_at(write_at, key, self._operand(updates, "scatter"))

    def _check_range(self, indices: np.ndarray, size: int) -> None:
        wrong = np.flatnonzero((indices < 0) | (indices >= size))
        if wrong.size:
            raise invalid(
                f"indices[{wrong[0]}] = {indices.ravel()[wrong[0]]} is not in [0, {size}), the "
                f"rows of variable '{self.name}' of shape {self._array.shape}."
            )

    def _write_at(self, write_at: Callable, key: Any, values: Any) -> Self:
        expected = np.broadcast_shapes(self._array[key].shape)
        if values.shape != expected and values.shape != ():
            raise invalid(
                f"scatter: updates of shape {values.shape} do not fit. Expected {expected} for "
                f"variable '{self.name}' of shape {self._array.shape}."
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
    refuse_unordered(array, "scatter_min")
    np.minimum.at(array, key, values)


def _raise_at(array: np.ndarray, key: Any, values: Any) -> None:
    refuse_unordered(array, "scatter_max")
    np.maximum.at(array, key, values)


def refuse_unordered(array: Any, what: str) -> None:
    """Refuses numbers of which none is the smaller or the larger one."""
    if array.dtype not in dtypes.REAL:
        name = dtypes.of(array.dtype).name
        raise invalid(f"{what}: expected real numbers. Received: dtype {name}.")


def _divide_at(array: np.ndarray, key: Any, values: Any) -> None:
    """Divides in place; integers towards zero, as TensorFlow does here."""
    if not np.all(values):
        raise invalid("scatter_div: the updates contain 0. Expected other numbers.")
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
    held = held_by(indices)
    array = _indices(indices)
    return Tensor(array) if held is None else held._read()
