"""Counts, indicators and crosses of what a sparse tensor holds."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from retrograde.core.tensor import Tensor
from retrograde.ops._hashes import combined, fingerprint64
from retrograde.ops.arguments import integer
from retrograde.ops.casting import to_dtype
from retrograde.ops.conversion import as_tensor, numpy_dtype
from retrograde.ops.shaping import reshape
from retrograde.sparse._places import (
    distinct,
    picked,
    places,
    shape_of,
    sparse,
    summed,
    with_places,
)
from retrograde.sparse.making import to_dense
from retrograde.sparse.tensor import HANDLERS, SparseTensor
from retrograde.values import dtypes
from retrograde.values.arguments import as_text, shown
from retrograde.values.composites import dispatched
from retrograde.values.conversion import held_by
from retrograde.values.errors import allocating, invalid


@dispatched
def bincount(
    values: Any,
    weights: Any = None,
    axis: Any = 0,
    minlength: Any = None,
    maxlength: Any = None,
    binary_output: bool = False,
    name: str | None = None,
) -> SparseTensor:
    """How often each integer occurs: in all of `values`, or with `axis=-1` in each row.

    With `weights`, these are added up instead; with `binary_output`, 1 says that it occurs.
    Integers from `maxlength` on are left out.

    >>> counts = tf.sparse.bincount([1, 3, 3])
    >>> tf.sparse.to_dense(counts).numpy()
    array([0, 1, 0, 2], dtype=int32)
    """
    if axis not in (None, 0, -1):
        raise ValueError(
            f"bincount: only the axes 0 and -1 are supported. Received: axis={as_text(axis)}."
        )
    if weights is not None and binary_output:
        raise ValueError("bincount: binary_output and weights exclude each other. Give only one.")
    rows, numbers, added, count = _entries(values, weights)
    if numbers.dtype not in (np.int32, np.int64):
        raise invalid(f"bincount: expected int32 or int64. Received: dtype {numbers.dtype}.")
    if (numbers < 0).any():
        raise invalid("bincount: expected integers that are not negative.")
    by_row = axis == -1 and count is not None
    width = int(numbers.max(initial=-1)) + 1
    width = max(width, 0 if minlength is None else integer(minlength, "bincount: minlength"))
    if maxlength is not None:
        width = integer(maxlength, "bincount: maxlength")
    keep = numbers < width
    found = np.stack([rows, numbers], 1) if by_row else numbers[:, None]
    indices, which = distinct(found[keep].astype(np.int64))
    if added is None:
        sums = Tensor(np.bincount(which, minlength=len(indices)).astype(numbers.dtype))
        sums = Tensor(np.ones_like(sums._array)) if binary_output else sums
    else:
        sums = summed(picked(added, np.flatnonzero(keep)), which, len(indices))
    return with_places(indices, sums, (count, width) if by_row else (width,))


def _dense_counts(
    function: Callable, arr: SparseTensor, weights: Any = None, minlength: Any = None,
    maxlength: Any = None, dtype: Any = dtypes.int32, name: Any = None, axis: Any = None,
    binary_output: bool = False,
) -> Tensor:  # fmt: skip
    """`tf.math.bincount` of a SparseTensor."""
    values = arr.values
    if axis != -1 or arr.shape.rank < 2:
        flat = None if weights is None else sparse(weights).values
        return function(values, flat, minlength, maxlength, dtype, binary_output=binary_output)
    width = function(values, None, minlength, maxlength).shape[0]
    counts = bincount(arr, weights, -1, width, width, binary_output)
    y = to_dense(counts)
    return y if weights is not None else to_dtype(y, numpy_dtype(dtype))


HANDLERS["bincount"] = _dense_counts


def _entries(values: Any, weights: Any) -> tuple[np.ndarray, np.ndarray, Tensor | None, int | None]:
    """The row and the value of each element, its weight, and how many rows there are."""
    if isinstance(values, SparseTensor):
        if weights is not None:
            weights = sparse(weights)
            if not np.array_equal(places(weights), places(values)):
                raise invalid("bincount: values and weights have different indices.")
            weights = weights.values
        rank = len(shape_of(values))
        count = shape_of(values)[0] if rank > 1 else None
        return places(values)[:, 0], np.asarray(values.values), weights, count
    x = as_tensor(values)
    array = np.asarray(x)
    if weights is not None:
        weights = as_tensor(weights)
        if tuple(weights.shape) != array.shape:
            raise invalid(
                f"bincount: values and weights have the shapes {array.shape} and "
                f"{tuple(weights.shape)}. Expected equal ones."
            )
        weights = reshape(weights, shape=(array.size,))
    count = array.shape[0] if array.ndim > 1 else None
    rows = np.repeat(np.arange(count or 1), array.size // (count or 1)) if array.size else []
    return np.asarray(rows, np.int64), array.reshape(-1), weights, count


@allocating("to_indicator")
def to_indicator(sp_input: Any, vocab_size: Any, name: str | None = None) -> Tensor:
    """Truth values along a new last axis: whether each integer below `vocab_size` is a value.

    The last axis of the sparse tensor is gone: its values are sets.

    >>> x = tf.SparseTensor([[0, 0], [0, 1]], [0, 2], [2, 2])
    >>> tf.sparse.to_indicator(x, 3).numpy()
    array([[ True, False,  True],
           [False, False, False]])
    """
    x = sparse(sp_input)
    size = integer(vocab_size, "to_indicator: vocab_size")
    members = np.asarray(x.values).astype(np.int64)
    wrong = (members < 0) | (members >= size)
    if wrong.any():
        value = members[int(np.argmax(wrong))]
        raise invalid(f"to_indicator: the value {value} is not in [0, {size}).")
    shape, at = shape_of(x), places(x)
    if min(shape) < 0 or ((at < 0) | (at >= np.array(shape))).any():
        raise invalid(f"to_indicator: an index is out of bounds for shape {tuple(shape)}.")
    y = np.zeros((*shape[:-1], size), bool)
    y[(*at[:, :-1].T, members)] = True
    return Tensor(y)


def cross(inputs: Any, name: str | None = None, separator: Any = None) -> SparseTensor:
    """All ways to take one string from each of several tensors, row by row, joined by `separator`.

    Sparse inputs come first, as in TensorFlow. Integers are written out.

    >>> letters, digits = tf.constant([["a", "b"]]), tf.constant([["1"]])
    >>> tf.sparse.cross([letters, digits]).values.numpy()
    array([b'a_X_1', b'b_X_1'], dtype=object)
    """
    return _crossed(inputs, joiner(separator), np.dtype(object), "cross")


def cross_hashed(
    inputs: Any, num_buckets: Any = 0, hash_key: Any = None, name: str | None = None
) -> SparseTensor:
    """A number below `num_buckets` for each way to take one value from each of several tensors.

    The numbers are TensorFlow's.

    >>> letters, digits = tf.constant([["a", "b"]]), tf.constant([["1"]])
    >>> tf.sparse.cross_hashed([letters, digits], num_buckets=10).values.dtype
    tf.int64
    """
    hashed = hasher(num_buckets, hash_key)
    return _crossed(inputs, hashed, np.dtype(np.int64), "cross_hashed")


_DEFAULT_KEY = 0xDECAFCAFFE
_LARGEST = 2**63 - 1


def joiner(separator: Any) -> Callable[[tuple], bytes]:
    """What joins a cross of strings and integers."""
    between = b"_X_" if separator is None else np.asarray(as_tensor(separator)).item()
    return lambda parts: between.join(
        part if isinstance(part, bytes) else str(part).encode() for part in parts
    )


def hasher(num_buckets: Any, hash_key: Any) -> Callable[[tuple], int]:
    """What makes one number of a cross of strings and integers."""
    key = _DEFAULT_KEY if hash_key is None else integer(hash_key, "cross_hashed: hash_key")
    buckets = integer(num_buckets, "cross_hashed: num_buckets")
    if buckets < 0:
        raise invalid(f"cross_hashed: expected num_buckets >= 0. Received: {buckets}.")

    def hashed(parts: tuple) -> int:
        numbers = [fingerprint64(p) if isinstance(p, bytes) else p % 2**64 for p in parts]
        return functools.reduce(combined, numbers, key) % (buckets or _LARGEST)

    return hashed


def _crossed(inputs: Any, combine: Callable, dtype: np.dtype, what: str) -> SparseTensor:
    if not isinstance(inputs, (list, tuple)):
        raise TypeError(f"{what}: expected a list of tensors. Received: {shown(inputs)}.")
    for x in inputs:
        if not isinstance(x, SparseTensor) and held_by(x) is None:
            raise TypeError(f"{what}: expected Tensors and SparseTensors. Received: {shown(x)}.")
    ordered = sorted(inputs, key=lambda x: not isinstance(x, SparseTensor))
    rows = crossed([rows_of(x, what) for x in ordered], combine, what)
    counts = [len(row) for row in rows]
    indices = np.array([(i, j) for i, n in enumerate(counts) for j in range(n)], np.int64)
    values = np.array([value for row in rows for value in row], dtype)
    return with_places(indices.reshape(-1, 2), Tensor(values), (len(rows), max(counts, default=0)))


def crossed(tables: list, combine: Callable, what: str) -> list[list]:
    """Row by row, what `combine` makes of each way to take one value from each table."""
    if len({len(table) for table in tables}) > 1:
        raise invalid(f"{what}: the inputs have {[len(t) for t in tables]} rows. Expected as many.")
    return [[combine(p) for p in itertools.product(*row)] for row in zip(*tables, strict=True)]


def rows_of(x: Any, what: str) -> list[list]:
    """The values of each row, as bytes or integers."""
    parts = isinstance(x, SparseTensor)
    values = np.asarray(x.values if parts else as_tensor(x))
    shape = shape_of(x) if parts else values.shape
    if len(shape) != 2:
        raise invalid(f"{what}: expected matrices. Received: shape {tuple(shape)}.")
    values = values if values.dtype.kind == "O" else values.astype(np.int64)
    if not parts:
        return values.tolist()
    rows: list[list] = [[] for _ in range(shape[0])]
    for i, value in zip(places(x)[:, 0].tolist(), values.tolist(), strict=True):
        rows[i].append(value)
    return rows
