"""Indexing of ragged tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from retrograde.ragged.partition import RowPartition
from retrograde.ragged.rows import concatenated_ranges, expand_dims, rank_of, take_rows
from retrograde.ragged.tensor import RaggedTensor
from retrograde.values.arguments import shown
from retrograde.values.conversion import tensor_or_variable
from retrograde.values.errors import invalid


def _get_item(self: RaggedTensor, key: Any) -> Any:
    keys = list(key) if isinstance(key, (tuple, list)) else [key]
    return _index_rows(self, _expand_ellipsis([_check_key(k) for k in keys], rank_of(self)))


def _check_key(key: Any) -> Any:
    """Validates one part of an index and converts tensors to integers."""
    if key is None or key is Ellipsis:
        return key
    if isinstance(key, slice):
        return slice(*(k if k is None else _check_key(k) for k in (key.start, key.stop, key.step)))
    tensor = tensor_or_variable(key)
    is_int = isinstance(key, (int, np.integer)) and not isinstance(key, bool)
    if is_int or (tensor is not None and tensor.dtype.is_integer and not tensor.ndim):
        return int(key)
    raise TypeError(
        "A RaggedTensor is indexed with integers, slices, ... and tf.newaxis. Received: "
        f"{shown(key)}."
    )


def _expand_ellipsis(keys: list, rank: int) -> list:
    """Replaces the ellipsis by slices."""
    count = sum(k is not None and k is not Ellipsis for k in keys)
    if count > rank or keys.count(Ellipsis) > 1:
        error = IndexError if Ellipsis in keys else invalid
        raise error(f"Too many indices for a RaggedTensor of {rank} axes: {count}.")
    if Ellipsis not in keys:
        return keys
    i = keys.index(Ellipsis)
    return [*keys[:i], *[slice(None)] * (rank - count), *keys[i + 1 :]]


def _index_rows(x: Any, keys: list) -> Any:
    """Computes `x[keys]`."""
    if not isinstance(x, RaggedTensor):
        return x[tuple(keys)] if keys else x
    if not keys:
        return x
    key, *rest = keys
    if key is None:
        return expand_dims(_index_rows(x, rest), 0)
    if isinstance(key, slice):
        rows = np.arange(x._partition.nrows)[key]
        return _index_within_rows(
            x if key == slice(None) else take_rows(x, rows, uniform=True), rest
        )
    nrows = x._partition.nrows
    if not -nrows <= key < nrows:
        # A `for` loop stops at an IndexError.
        raise (invalid if key < 0 else IndexError)(
            f"Row {key} is out of bounds: the RaggedTensor has {nrows} rows."
        )
    start, stop = x._partition.splits[key % nrows : key % nrows + 2].tolist()
    if isinstance(x.values, RaggedTensor):
        return _index_rows(take_rows(x.values, np.arange(start, stop), uniform=True), rest)
    return _index_rows(x.values[start:stop], rest)


def _index_within_rows(x: Any, keys: list) -> Any:
    """Computes `x[:, keys]`: the keys apply within rows."""
    if not keys:
        return x
    if not isinstance(x, RaggedTensor):
        return x[(slice(None), *keys)]
    key, *rest = keys
    if key is None:
        return expand_dims(_index_within_rows(x, rest), 1)
    if isinstance(key, slice):
        x = x if key == slice(None) else _slice_rows(x, key)
        return x.with_values(_index_within_rows(x.values, rest))
    length = x._partition.uniform_row_length
    if length is None:
        raise ValueError("Cannot index into an inner ragged dimension. Use a slice there.")
    if not -length <= key < length:
        raise invalid(f"Index {key} is out of bounds for rows of length {length}.")
    return _index_within_rows(
        take_rows(x.values, x._partition.starts + key % length, uniform=True), rest
    )


def _slice_rows(x: RaggedTensor, key: slice) -> RaggedTensor:
    """Slices each row."""
    part = x._partition
    lengths, length_ids = np.unique(part.lengths, return_inverse=True)
    pieces = [range(n)[key] for n in lengths.tolist()]
    first = np.array([p.start for p in pieces], np.int64)[length_ids]
    count = np.array([len(p) for p in pieces], np.int64)[length_ids]
    step = 1 if key.step is None else key.step
    values = take_rows(
        x.values, concatenated_ranges(part.starts + first, count, step), uniform=True
    )
    uniform = part.uniform_row_length
    if uniform is not None:
        kept = len(range(uniform)[key])
        new = RowPartition.uniform(kept, int(count.sum()), part.nrows, part.dtype)
    else:
        new = RowPartition.from_lengths(count, part.dtype)
    return RaggedTensor(values, new, internal=True)


RaggedTensor.__getitem__ = _get_item
