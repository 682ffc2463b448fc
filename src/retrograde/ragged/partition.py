"""RowPartition: the partition of a sequence of values into rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from retrograde.core.tensor import Tensor
from retrograde.ops.arguments import integer
from retrograde.ops.casting import to_dtype
from retrograde.ops.conversion import as_tensor
from retrograde.values import dtypes
from retrograde.values.arguments import shown
from retrograde.values.conversion import tensor_or_variable
from retrograde.values.errors import allocate, invalid, reports_out_of_memory

_INT64 = np.dtype(np.int64)
_ALLOWED = frozenset({np.dtype(np.int32), _INT64})


def as_int_vector(value: Any, op_name: str) -> Tensor:
    """Converts `value` to a vector of int32 or int64; Python integers become int64."""
    fixed = tensor_or_variable(value) is not None or getattr(value, "dtype", None) in _ALLOWED
    tensor = as_tensor(value, hint=None if fixed else _INT64)
    if not tensor._spec.size and tensor._spec.dtype not in _ALLOWED:
        tensor = Tensor(np.zeros(tensor._spec.shape, np.int64))
    if tensor._spec.dtype not in _ALLOWED or tensor.ndim != 1:
        raise ValueError(
            f"{op_name}: expected int32 or int64 along one axis. Received: dtype "
            f"{tensor.dtype.name}, shape {tuple(tensor.shape)}."
        )
    return tensor


class RowPartition:
    """Partition into rows: row `i` is `values[row_splits[i] : row_splits[i + 1]]`.

    The splits determine shapes, so reading them converts a tensor to NumPy, which recorders
    observe.
    """

    __slots__ = ("_splits", "_uniform")

    def __init__(self, row_splits: Tensor, uniform_row_length: int | None = None) -> None:
        self._splits = row_splits
        self._uniform = uniform_row_length

    @property
    def row_splits(self) -> Tensor:
        """The start of each row, and the end of the last one."""
        return self._splits

    @property
    def uniform_row_length(self) -> int | None:
        """The length of all rows if it is uniform by construction, otherwise `None`."""
        return self._uniform

    @property
    def dtype(self) -> np.dtype:
        """int32 or int64."""
        return self._splits._spec.dtype

    @property
    def nrows(self) -> int:
        """The number of rows."""
        return self._splits._spec.size - 1

    @property
    def splits(self) -> np.ndarray:
        """The row splits as an array."""
        return np.asarray(self._splits)

    @property
    def starts(self) -> np.ndarray:
        """The start of each row."""
        return self.splits[:-1]

    @property
    def limits(self) -> np.ndarray:
        """The end of each row."""
        return self.splits[1:]

    @property
    def lengths(self) -> np.ndarray:
        """The length of each row."""
        return np.diff(self.splits)

    @property
    def rowids(self) -> np.ndarray:
        """The row of each value."""
        return np.repeat(np.arange(self.nrows, dtype=self.dtype), self.lengths)

    @property
    def positions(self) -> np.ndarray:
        """The position of each value in its row."""
        return np.arange(self.splits[-1]) - np.repeat(self.starts, self.lengths)

    def with_dtype(self, dtype: np.dtype) -> RowPartition:
        """Returns the partition with row splits of int32 or int64."""
        return RowPartition(to_dtype(self._splits, dtype), self._uniform)

    def equals(self, other: RowPartition) -> bool:
        """Returns whether both partitions have equal row splits."""
        return self._splits is other._splits or np.array_equal(self.splits, other.splits)

    @classmethod
    def from_lengths(cls, lengths: Any, dtype: np.dtype = _INT64) -> RowPartition:
        """Creates a partition into rows of these lengths."""
        splits = np.zeros(len(lengths) + 1, dtype)
        np.cumsum(lengths, out=splits[1:])
        return cls(Tensor(splits))

    @classmethod
    def uniform(
        cls, length: int, nvals: int, nrows: int | None, dtype: np.dtype = _INT64
    ) -> RowPartition:
        """Creates a partition into rows of equal length; a length of 0 requires `nrows`."""
        if length < 0 or (length == 0 and nrows is None and nvals):
            raise ValueError(
                f"from_uniform_row_length: {nvals} values cannot be partitioned into rows of "
                f"length {length}."
            )
        rows = (nvals // length if length else 0) if nrows is None else nrows
        if rows * length != nvals:
            raise ValueError(
                f"from_uniform_row_length: {rows} rows of length {length} do not hold "
                f"{nvals} values."
            )
        starts = allocate("from_uniform_row_length", np.arange, rows + 1)
        return cls(Tensor((starts * length).astype(dtype)), length)


# Partitions from the arguments of users, checked against the number of values if `validate`.


def from_row_splits(row_splits: Any, nvals: int, validate: bool) -> RowPartition:
    tensor = as_int_vector(row_splits, "row_splits")
    if not tensor._spec.size:
        raise ValueError("row_splits must not be empty: for no rows, pass [0].")
    splits = np.asarray(tensor)
    if validate and (splits[0] or (np.diff(splits) < 0).any() or splits[-1] != nvals):
        raise invalid(
            f"row_splits must start with 0, be sorted, and end with the number of values, "
            f"{nvals}. Received: {_brief(splits)}."
        )
    return RowPartition(tensor)


def from_row_lengths(row_lengths: Any, nvals: int, validate: bool) -> RowPartition:
    lengths = np.asarray(as_int_vector(row_lengths, "row_lengths"))
    if validate and ((lengths < 0).any() or lengths.sum() != nvals):
        raise invalid(
            "row_lengths must be nonnegative and sum to the number of values, "
            f"{nvals}. Received: {_brief(lengths)}."
        )
    return RowPartition.from_lengths(lengths, lengths.dtype)


def from_row_limits(row_limits: Any, nvals: int, validate: bool) -> RowPartition:
    limits = np.asarray(as_int_vector(row_limits, "row_limits"))
    splits = np.concatenate([np.zeros(1, limits.dtype), limits])
    return from_row_splits(Tensor(splits), nvals, validate)


def from_row_starts(row_starts: Any, nvals: int, validate: bool) -> RowPartition:
    starts = np.asarray(as_int_vector(row_starts, "row_starts"))
    splits = np.concatenate([starts, np.array([nvals], starts.dtype)])
    return from_row_splits(Tensor(splits), nvals, validate)


@reports_out_of_memory("from_value_rowids")
def from_value_rowids(value_rowids: Any, nrows: Any, nvals: int, validate: bool) -> RowPartition:
    rowids = np.asarray(as_int_vector(value_rowids, "value_rowids"))
    needed = int(rowids[-1]) + 1 if len(rowids) else 0
    count = needed if nrows is None else integer(nrows, "nrows")
    if count < needed:
        raise ValueError(
            f"from_value_rowids: expected nrows >= value_rowids[-1] + 1. Received: nrows={count}, "
            f"value_rowids[-1]={needed - 1}."
        )
    if validate and (len(rowids) != nvals or (rowids < 0).any() or (np.diff(rowids) < 0).any()):
        raise invalid(
            f"value_rowids must be nonnegative and sorted, one for each of {nvals} "
            f"values. Received: {_brief(rowids)}."
        )
    return RowPartition.from_lengths(np.bincount(rowids, minlength=count), rowids.dtype)


def _brief(array: np.ndarray) -> str:
    return np.array2string(array, threshold=10, separator=", ")


def split_dtype(dtype: Any) -> np.dtype:
    """Returns the dtype of row splits as a NumPy dtype: int32 or int64."""
    numpy_dtype = dtypes.as_dtype(dtype).numpy_dtype
    if numpy_dtype not in _ALLOWED:
        raise ValueError(f"row_splits_dtype must be int32 or int64. Received: {shown(dtype)}.")
    return numpy_dtype
