"""Creates a tensor from the values of one feature in a batch of examples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from retrograde.core.tensor import Tensor
from retrograde.ragged.partition import RowPartition
from retrograde.ragged.tensor import RaggedTensor
from retrograde.records.decoding import concatenate
from retrograde.sparse.tensor import SparseTensor
from retrograde.values import dtypes
from retrograde.values.errors import invalid


def stack_rows(rows: Sequence[np.ndarray], dtype: str, shape: tuple[int, ...]) -> Tensor:
    """Stacks flat rows of equal size, each reshaped to `shape`."""
    return Tensor(concatenate(list(rows), dtype).reshape(len(rows), *shape))


def pad_rows(
    rows: Sequence[np.ndarray], dtype: str, shape: tuple[int, ...], padding: Any
) -> Tensor:
    """Stacks flat rows, each padded to the same number of arrays of `shape`."""
    size = int(np.prod(shape))
    counts = [len(row) // size if size else 0 for row in rows]
    if padding is None:
        padding = b"" if dtype == "string" else 0
    numpy_dtype = dtypes.as_dtype(dtype).numpy_dtype
    dense = np.full((len(rows), max(counts, default=0) * size), padding, numpy_dtype)
    for index, row in enumerate(rows):
        dense[index, : len(row)] = row
    return Tensor(dense.reshape(len(rows), -1 if rows and size else 0, *shape))


def sparse_rows(rows: Sequence[np.ndarray], dtype: str) -> SparseTensor:
    """Returns rows of different lengths as a sparse matrix."""
    lengths = np.array([len(row) for row in rows], np.int64)
    shape = [len(rows), lengths.max(initial=0)]
    return SparseTensor(
        _positions(lengths), Tensor(concatenate(list(rows), dtype)), np.array(shape, np.int64)
    )


def _positions(lengths: np.ndarray) -> np.ndarray:
    """Returns the row and column of each value."""
    starts = np.cumsum(lengths) - lengths
    rows = np.repeat(np.arange(len(lengths)), lengths)
    return np.stack([rows, np.arange(lengths.sum()) - starts[rows]], axis=1)


def sparse_steps(rows: Sequence[Sequence[np.ndarray]], dtype: str) -> SparseTensor:
    """Returns lists of steps of different lengths as a sparse tensor of rank 3."""
    steps = np.array([len(row) for row in rows], np.int64)
    flat = [values for row in rows for values in row]
    lengths = np.array([len(values) for values in flat], np.int64)
    inner = _positions(lengths)
    indices = np.concatenate([_positions(steps)[inner[:, 0]], inner[:, 1:]], axis=1)
    shape = np.array([len(rows), steps.max(initial=0), lengths.max(initial=0)], np.int64)
    return SparseTensor(indices, Tensor(concatenate(flat, dtype)), shape)


def sparse_feature(
    indices: Sequence[Sequence[np.ndarray]],
    rows: Sequence[np.ndarray],
    dtype: str,
    sizes: tuple[int, ...],
    already_sorted: bool,
) -> SparseTensor:
    """Returns a sparse tensor of the rows at `indices`, which has one list for each axis."""
    for axis in indices:
        if [len(index) for index in axis] != [len(row) for row in rows]:
            raise ValueError(
                f"The indices and values of a SparseFeature have different lengths: "
                f"{[len(index) for index in axis]} and {[len(row) for row in rows]}."
            )
    row_ids = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
    columns = [row_ids, *(concatenate(list(axis), "int64") for axis in indices)]
    coordinates, values = np.stack(columns, axis=1), concatenate(list(rows), dtype)
    if not already_sorted:
        order = np.lexsort(coordinates.T[::-1])
        coordinates, values = coordinates[order], values[order]
    return SparseTensor(coordinates, Tensor(values), np.array([len(rows), *sizes], np.int64))


Partition = tuple[str, Any]


def ragged_column(
    rows: Sequence[np.ndarray],
    dtype: str,
    partitions: Sequence[tuple[Partition, Sequence[np.ndarray]]],
    splits_dtype: str,
    outer_lengths: Sequence[Sequence[int]] = (),
) -> RaggedTensor:
    """Returns the values of examples as a ragged tensor.

    `partitions` divide the values of each example, from the outermost to the innermost.
    `outer_lengths` are the row lengths of axes other than the axis of examples.
    """
    splits = np.dtype(splits_dtype)
    counts = [len(row) for row in rows]
    values: Any = Tensor(concatenate(list(rows), dtype))
    dense = True  # uniform partitions of dense values are dense axes
    for (kind, argument), columns in reversed(list(partitions)):
        lengths = [
            _row_lengths(kind, argument, column, count)
            for column, count in zip(columns, counts, strict=True)
        ]
        counts = [len(part) for part in lengths]
        if kind == "UniformRowLength" and dense:
            array = np.asarray(values)
            values = Tensor(array.reshape(sum(counts), argument, *array.shape[1:]))
            continue
        dense = False
        merged = np.concatenate([np.empty(0, np.int64), *lengths])
        if kind == "UniformRowLength":
            count = int(merged.sum())
            partition = RowPartition.uniform(argument, count, len(merged), splits)
        else:
            partition = RowPartition.from_lengths(merged, splits)
        values = RaggedTensor(values, partition, internal=True)
    for lengths in (counts, *outer_lengths):
        values = RaggedTensor(values, RowPartition.from_lengths(lengths, splits), internal=True)
    return values


def _row_lengths(kind: str, argument: Any, column: np.ndarray, count: int) -> np.ndarray:
    """Returns the row lengths of one example with `count` values."""
    if kind == "UniformRowLength":
        rows = count // argument if argument else 0
        lengths = np.full(rows, argument, np.int64)
    else:
        lengths = _LENGTHS[kind](column, count)
    if (lengths < 0).any() or lengths.sum() != count:
        raise invalid(
            f"RaggedFeature: the partition {kind} of {argument!r} has rows of lengths "
            f"{np.array2string(lengths, threshold=10)}, which do not match {count} values."
        )
    return lengths


def _lengths_from_rowids(rowids: np.ndarray, count: int) -> np.ndarray:
    ordered = (rowids >= 0).all() and (np.diff(rowids) >= 0).all()
    if not ordered or len(rowids) != count or rowids.max(initial=0) > 1 << 31:
        raise invalid(
            f"RaggedFeature: row ids must be nonnegative and sorted, one for each of {count} "
            "values."
        )
    return np.bincount(rowids).astype(np.int64) if count else np.empty(0, np.int64)


def _lengths_from_splits(splits: np.ndarray, count: int) -> np.ndarray:
    if len(splits) and splits[0]:
        raise invalid(f"RaggedFeature: row splits must start with 0. Received: {splits[0]}.")
    return np.diff(splits)


_LENGTHS: dict[str, Callable[[np.ndarray, int], np.ndarray]] = {
    "RowSplits": _lengths_from_splits,
    "RowLengths": lambda column, _: column,
    "RowStarts": lambda column, count: np.diff(np.append(column, count)),
    "RowLimits": lambda column, _: np.diff(column, prepend=0),
    "ValueRowIds": _lengths_from_rowids,
}
