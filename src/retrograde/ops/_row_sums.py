"""Adding up the rows of arrays: the gradients of embedding tables are made of such sums."""

from __future__ import annotations

import numpy as np

from retrograde.values.scipy_import import import_scipy

_MANY = 2048  # elements from which on the detour pays
_SUMMED = frozenset(map(np.dtype, (np.float32, np.float64, np.complex64, np.complex128)))


def are_many(values: np.ndarray, indices: np.ndarray) -> bool:
    """Whether `sum_rows` would take less time than NumPy's `add.at`, and can do it."""
    return values.size >= _MANY and values.size >= 2 * indices.size and values.dtype in _SUMMED


def sum_rows(values: np.ndarray, indices: np.ndarray, size: int) -> np.ndarray:
    """`size` rows of zeros with `values` added at `indices`, one after the other.

    It is a product with the sparse matrix that has a one in each column, where the row goes. That
    adds in the same order as `add.at`, in a tenth of the time or less.
    """
    sparse = import_scipy("sparse", "a sum of rows by their indices, as in the gradient of gather,")
    count = indices.size
    starts = np.arange(count + 1, dtype=np.result_type(indices, np.int32))
    parts = np.ones(count, values.dtype), indices.reshape(-1), starts
    y = sparse.csc_array(parts, shape=(size, count)) @ values.reshape(count, -1)
    return y.reshape(size, *values.shape[indices.ndim :])


def add_at(array: np.ndarray, indices: np.ndarray, values: np.ndarray) -> None:
    """Adds `values` to the rows of `array` at `indices`, in place; repeated ones add up."""
    fits = values.dtype == array.dtype and values.shape == indices.shape + array.shape[1:]
    if not fits or not are_many(values, indices):
        np.add.at(array, indices, values)
        return
    rows, places = _distinct(indices, len(array))
    array[rows] += sum_rows(values, places, rows.size)


def _distinct(indices: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """The indices that there are, once each, and where among them each of `indices` is."""
    if size > 32 * indices.size:
        rows, places = np.unique(indices, return_inverse=True)
        return rows, places.reshape(indices.shape)
    present = np.zeros(size, bool)
    present[indices] = True
    rows = np.flatnonzero(present)
    places = np.empty(size, np.int64)
    places[rows] = np.arange(rows.size)
    return rows, places[indices]


def subtract_at(array: np.ndarray, indices: np.ndarray, values: np.ndarray) -> None:
    """Subtracts `values` from the rows of `array` at `indices`, as `add_at` adds."""
    if values.dtype.kind in "fc":
        add_at(array, indices, -values)
    else:
        np.subtract.at(array, indices, values)
