"""Sums of rows by index, as in the gradient of an embedding table."""

from __future__ import annotations

import numpy as np

from retrograde.values.scipy_import import import_scipy

_MANY = 2048  # from this many elements, the sparse product is faster
_SUMMED = frozenset(map(np.dtype, (np.float32, np.float64, np.complex64, np.complex128)))


def is_faster(values: np.ndarray, indices: np.ndarray) -> bool:
    """Returns whether `sum_rows` supports these arrays and is faster than NumPy's `add.at`."""
    return values.size >= _MANY and values.size >= 2 * indices.size and values.dtype in _SUMMED


def sum_rows(values: np.ndarray, indices: np.ndarray, size: int) -> np.ndarray:
    """Returns `size` rows of zeros with `values` added at `indices`.

    It multiplies by a sparse matrix that has a one in each column, at the index of the row. This
    adds in the same order as `add.at`, in a tenth of the time or less.
    """
    sparse = import_scipy("sparse", "a sum of rows by their indices, as in the gradient of gather,")
    count = indices.size
    starts = np.arange(count + 1, dtype=np.result_type(indices, np.int32))
    parts = np.ones(count, values.dtype), indices.reshape(-1), starts
    y = sparse.csc_array(parts, shape=(size, count)) @ values.reshape(count, -1)
    return y.reshape(size, *values.shape[indices.ndim :])


def add_at(array: np.ndarray, indices: np.ndarray, values: np.ndarray) -> None:
    """Adds `values` to the rows of `array` at `indices` in place; repeated indices accumulate."""
    fits = values.dtype == array.dtype and values.shape == indices.shape + array.shape[1:]
    if not fits or not is_faster(values, indices):
        np.add.at(array, indices, values)
        return
    rows, positions = _distinct(indices, len(array))
    array[rows] += sum_rows(values, positions, rows.size)


def _distinct(indices: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns the distinct indices, and the position of each of `indices` among them."""
    if size > 32 * indices.size:
        rows, positions = np.unique(indices, return_inverse=True)
        return rows, positions.reshape(indices.shape)
    present = np.zeros(size, bool)
    present[indices] = True
    rows = np.flatnonzero(present)
    positions = np.empty(size, np.int64)
    positions[rows] = np.arange(rows.size)
    return rows, positions[indices]


def subtract_at(array: np.ndarray, indices: np.ndarray, values: np.ndarray) -> None:
    """Subtracts `values` from the rows of `array` at `indices` in place."""
    if values.dtype.kind in "fc":
        add_at(array, indices, -values)
    else:
        np.subtract.at(array, indices, values)
