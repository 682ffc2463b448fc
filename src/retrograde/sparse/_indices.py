"""Helpers for the indices of sparse tensors: sorting, uniqueness, bounds."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from retrograde.core.apply import tensor_of
from retrograde.core.tensor import Tensor
from retrograde.ops.host_functions import host_function
from retrograde.ops.indexing import gather, scatter_add
from retrograde.sparse.tensor import SparseTensor
from retrograde.values.arguments import shown
from retrograde.values.errors import invalid

# The values of indices determine the shapes of results. Functions that compute with them are host
# functions, so that the replay of a trace runs them again.


def as_sparse(value: Any) -> SparseTensor:
    """Converts `value` to a SparseTensor; it may have the attributes of a SparseTensorValue."""
    if isinstance(value, SparseTensor):
        return value
    if all(hasattr(value, name) for name in ("indices", "values", "dense_shape")):
        return SparseTensor.from_value(value)
    raise TypeError(f"Input must be a SparseTensor. Received: {shown(value)}.")


def indices_array(x: SparseTensor) -> np.ndarray:
    """Returns the indices as an array."""
    return np.asarray(x.indices)


def shape_of(x: SparseTensor) -> tuple[int, ...]:
    """Returns the dense shape as integers."""
    return tuple(np.asarray(x.dense_shape).tolist())


def make_sparse(indices: Any, values: Tensor, shape: Any) -> SparseTensor:
    """Creates a SparseTensor; `indices` may be an array or a tensor."""
    return SparseTensor(tensor_of(indices), values, Tensor(np.array(shape, np.int64).reshape(-1)))


def sort_order(indices: np.ndarray) -> np.ndarray:
    """Returns the permutation that sorts the rows of `indices`; the sort is stable."""
    keys = _row_keys(indices)
    return np.lexsort(indices.T[::-1]) if keys is None else np.argsort(keys, kind="stable")


def _row_keys(indices: np.ndarray) -> np.ndarray | None:
    """Returns one integer per row, in the same order, or `None` if an int64 cannot hold it."""
    sizes = (indices.max(0, initial=0) + 1).tolist()
    if math.prod(sizes) >= 2**63 or indices.min(initial=0) < 0:
        return None
    keys = np.zeros(len(indices), np.int64)
    for column, size in zip(indices.T, sizes, strict=True):
        keys = keys * size + column
    return keys


def unique_rows(indices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the unique rows of `indices`, sorted, and the position of each row among them."""
    order = sort_order(indices)
    ordered = indices[order]
    is_new = np.ones(len(ordered), bool)
    is_new[1:] = _any_in_row(ordered[1:] != ordered[:-1])
    positions = np.empty(len(ordered), np.int64)
    positions[order] = np.cumsum(is_new) - 1
    return ordered[is_new], positions


def _any_in_row(mask: np.ndarray) -> np.ndarray:
    """Computes `mask.any(1)`; NumPy's `any` is slow along a short axis."""
    reduced = np.zeros(len(mask), bool)
    for column in mask.T:
        reduced |= column
    return reduced


@host_function
def check_indices(x: SparseTensor, shape: tuple, op_name: str, in_order: bool = False) -> Tensor:
    """Checks that indices are in bounds and, if `in_order`, sorted. Returns them as a tensor."""
    indices = indices_array(x)
    check_in_bounds(indices, shape, op_name)
    if in_order:
        check_sorted(indices, op_name)
    return Tensor(indices)


def check_in_bounds(indices: np.ndarray, shape: tuple[int, ...], op_name: str) -> None:
    """Raises if an index is out of bounds for `shape`."""
    wrong = _any_in_row((indices < 0) | (indices >= np.array(shape, np.int64)))
    if wrong.any():
        first = int(np.argmax(wrong))
        raise invalid(
            f"{op_name}: indices[{first}] = {indices[first].tolist()} is out of bounds: need "
            f"0 <= index < {shown(list(shape))}."
        )


def check_sorted(indices: np.ndarray, op_name: str) -> None:
    """Raises if indices are not sorted or are repeated."""
    keys = _row_keys(indices)
    if keys is not None and (keys[1:] > keys[:-1]).all():
        return
    step = np.diff(indices, axis=0)
    first_change = np.take_along_axis(step, (step != 0).argmax(1)[:, None], 1)[:, 0]
    wrong = first_change <= 0
    if wrong.any():
        i = int(np.argmax(wrong))
        row = f"{op_name}: indices[{i + 1}] = {indices[i + 1].tolist()}"
        if first_change[i]:
            raise invalid(
                f"{row} is out of order. Many sparse operations need sorted indices: use "
                "tf.sparse.reorder to create a sorted copy."
            )
        raise invalid(f"{row} is repeated.")


def take(values: Tensor, positions: Any) -> Tensor:
    """Gathers elements of `values`, with a dense gradient."""
    return gather(values, tensor_of(positions), axis=0, dense_gradient=True)


def scatter_sum(values: Tensor, segments: Any, count: int) -> Tensor:
    """Computes `count` sums; `segments` has the index of the sum to which each value is added."""
    return scatter_add(values, tensor_of(segments), shape=(count,))


def check_same_dtype(op_name: str, *tensors: Tensor) -> None:
    """Raises if tensors have different dtypes."""
    names = [x.dtype.name for x in tensors]
    if len(set(names)) > 1:
        raise invalid(f"{op_name}: the dtypes {' and '.join(names)} differ. Use tf.cast on one.")
