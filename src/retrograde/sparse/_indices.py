"""Where the values of sparse tensors are: work on their indices, which are plain integers."""

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

# Indices decide about the shapes of results. What is made of them is made in functions that are
# `hosted`, and so made again by a `function` that is replayed.


def as_sparse(value: Any) -> SparseTensor:
    """`value`, if it is a SparseTensor or holds the parts of one."""
    if isinstance(value, SparseTensor):
        return value
    if all(hasattr(value, name) for name in ("indices", "values", "dense_shape")):
        return SparseTensor.from_value(value)
    raise TypeError(f"Input must be a SparseTensor. Received: {shown(value)}.")


def indices_array(x: SparseTensor) -> np.ndarray:
    """The indices as an array."""
    return np.asarray(x.indices)


def shape_of(x: SparseTensor) -> tuple[int, ...]:
    """The shape of the whole as integers."""
    return tuple(np.asarray(x.dense_shape).tolist())


def make_sparse(indices: Any, values: Tensor, shape: Any) -> SparseTensor:
    """A SparseTensor of values and of indices, an array or a tensor."""
    return SparseTensor(tensor_of(indices), values, Tensor(np.array(shape, np.int64).reshape(-1)))


def sort_order(indices: np.ndarray) -> np.ndarray:
    """What sorts the rows of `indices`; equal ones keep their order."""
    keys = _row_keys(indices)
    return np.lexsort(indices.T[::-1]) if keys is None else np.argsort(keys, kind="stable")


def _row_keys(indices: np.ndarray) -> np.ndarray | None:
    """One number for each row, in the same order; `None` if such numbers would be too large."""
    sizes = (indices.max(0, initial=0) + 1).tolist()
    if math.prod(sizes) >= 2**63 or indices.min(initial=0) < 0:
        return None
    keys = np.zeros(len(indices), np.int64)
    for column, size in zip(indices.T, sizes, strict=True):
        keys = keys * size + column
    return keys


def unique_rows(indices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The different rows of `indices`, sorted; and for each row which of these it is."""
    order = sort_order(indices)
    ranked = indices[order]
    is_new = np.ones(len(ranked), bool)
    is_new[1:] = _any_in_row(ranked[1:] != ranked[:-1])
    which = np.empty(len(ranked), np.int64)
    which[order] = np.cumsum(is_new) - 1
    return ranked[is_new], which


def _any_in_row(truth: np.ndarray) -> np.ndarray:
    """Whether something is true in each row: NumPy's `any` is slow along a short axis."""
    found = np.zeros(len(truth), bool)
    for column in truth.T:
        found |= column
    return found


@host_function
def checked_indices(x: SparseTensor, shape: tuple, op_name: str, in_order: bool = False) -> Tensor:
    """The indices as a tensor, if all are inside `shape`, and sorted if they have to be."""
    indices = indices_array(x)
    check_in_bounds(indices, shape, op_name)
    if in_order:
        check_sorted(indices, op_name)
    return Tensor(indices)


def check_in_bounds(indices: np.ndarray, shape: tuple[int, ...], op_name: str) -> None:
    """Refuses indices that are not inside `shape`."""
    wrong = _any_in_row((indices < 0) | (indices >= np.array(shape, np.int64)))
    if wrong.any():
        first = int(np.argmax(wrong))
        raise invalid(
            f"{op_name}: indices[{first}] = {indices[first].tolist()} is out of bounds: need "
            f"0 <= index < {shown(list(shape))}."
        )


def check_sorted(indices: np.ndarray, op_name: str) -> None:
    """Refuses indices that are not sorted, or repeated."""
    keys = _row_keys(indices)
    if keys is not None and (keys[1:] > keys[:-1]).all():
        return
    step = np.diff(indices, axis=0)
    first_change = np.take_along_axis(step, (step != 0).argmax(1)[:, None], 1)[:, 0]
    wrong = first_change <= 0
    if wrong.any():
        place = int(np.argmax(wrong))
        row = f"{op_name}: indices[{place + 1}] = {indices[place + 1].tolist()}"
        if first_change[place]:
            raise invalid(
                f"{row} is out of order. Many sparse operations need sorted indices: use "
                "tf.sparse.reorder to make a sorted copy."
            )
        raise invalid(f"{row} is repeated.")


def take(values: Tensor, which: Any) -> Tensor:
    """Elements of `values` by their numbers, with a gradient that is whole."""
    return gather(values, tensor_of(which), axis=0, whole=True)


def scatter_sum(values: Tensor, which: Any, count: int) -> Tensor:
    """`count` sums, `which` saying to which of them each value goes."""
    return scatter_add(values, tensor_of(which), shape=(count,))


def check_same_dtype(op_name: str, *tensors: Tensor) -> None:
    """Refuses tensors of different dtypes."""
    names = [x.dtype.name for x in tensors]
    if len(set(names)) > 1:
        raise invalid(f"{op_name}: the dtypes {' and '.join(names)} differ. Use tf.cast on one.")
