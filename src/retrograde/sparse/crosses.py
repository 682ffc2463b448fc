"""Feature crosses: combinations of one value from each of several tensors."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from retrograde.core.tensor import Tensor
from retrograde.ops._hashes import combine_fingerprints, fingerprint64
from retrograde.ops.arguments import integer
from retrograde.ops.conversion import as_tensor
from retrograde.sparse._indices import indices_array, make_sparse, shape_of
from retrograde.sparse.tensor import SparseTensor
from retrograde.values.arguments import shown
from retrograde.values.conversion import tensor_or_variable
from retrograde.values.errors import invalid


def cross(inputs: Any, name: str | None = None, separator: Any = None) -> SparseTensor:
    """Computes the Cartesian product of each row's values and joins them with `separator`.

    Sparse inputs come first, as in TensorFlow. Integers are converted to strings.

    >>> letters, digits = tf.constant([["a", "b"]]), tf.constant([["1"]])
    >>> tf.sparse.cross([letters, digits]).values.numpy()
    array([b'a_X_1', b'b_X_1'], dtype=object)
    """
    return _cross(inputs, string_joiner(separator), np.dtype(object), "cross")


def cross_hashed(
    inputs: Any, num_buckets: Any = 0, hash_key: Any = None, name: str | None = None
) -> SparseTensor:
    """Computes the Cartesian product of each row's values and hashes it to `num_buckets`.

    The hashes are the same as TensorFlow's.

    >>> letters, digits = tf.constant([["a", "b"]]), tf.constant([["1"]])
    >>> tf.sparse.cross_hashed([letters, digits], num_buckets=10).values.dtype
    tf.int64
    """
    combine = hash_combiner(num_buckets, hash_key)
    return _cross(inputs, combine, np.dtype(np.int64), "cross_hashed")


_DEFAULT_KEY = 0xDECAFCAFFE
_LARGEST = 2**63 - 1


def string_joiner(separator: Any) -> Callable[[tuple], bytes]:
    """Returns a function that joins a tuple of strings and integers."""
    sep = b"_X_"
    if separator is not None:
        array = np.asarray(as_tensor(separator))
        if array.ndim:
            raise invalid(f"cross: separator must be a scalar. Received: shape {array.shape}.")
        sep = array.item()
    return lambda parts: sep.join(
        part if isinstance(part, bytes) else str(part).encode() for part in parts
    )


def hash_combiner(num_buckets: Any, hash_key: Any) -> Callable[[tuple], int]:
    """Returns a function that hashes a tuple of strings and integers to a bucket."""
    key = _DEFAULT_KEY if hash_key is None else integer(hash_key, "cross_hashed: hash_key")
    buckets = integer(num_buckets, "cross_hashed: num_buckets")
    if buckets < 0:
        raise invalid(f"cross_hashed: expected num_buckets >= 0. Received: {buckets}.")

    def combine(parts: tuple) -> int:
        numbers = [fingerprint64(p) if isinstance(p, bytes) else p % 2**64 for p in parts]
        return functools.reduce(combine_fingerprints, numbers, key) % (buckets or _LARGEST)

    return combine


def _cross(inputs: Any, combine: Callable, dtype: np.dtype, op_name: str) -> SparseTensor:
    if not isinstance(inputs, (list, tuple)):
        raise TypeError(f"{op_name}: expected a list of tensors. Received: {shown(inputs)}.")
    for x in inputs:
        if not isinstance(x, SparseTensor) and tensor_or_variable(x) is None:
            raise TypeError(f"{op_name}: expected Tensors and SparseTensors. Received: {shown(x)}.")
    ordered = sorted(inputs, key=lambda x: not isinstance(x, SparseTensor))
    rows = cross_rows([values_by_row(x, op_name) for x in ordered], combine, op_name)
    counts = [len(row) for row in rows]
    indices = np.array([(i, j) for i, n in enumerate(counts) for j in range(n)], np.int64)
    values = np.array([value for row in rows for value in row], dtype)
    return make_sparse(indices.reshape(-1, 2), Tensor(values), (len(rows), max(counts, default=0)))


def cross_rows(tables: list, combine: Callable, op_name: str) -> list[list]:
    """Applies `combine` to each tuple of one value per table, row by row."""
    if len({len(table) for table in tables}) > 1:
        raise invalid(
            f"{op_name}: the inputs have {[len(t) for t in tables]} rows. Expected equal numbers."
        )
    return [[combine(p) for p in itertools.product(*row)] for row in zip(*tables, strict=True)]


def values_by_row(x: Any, op_name: str) -> list[list]:
    """Returns the values of each row, as bytes or integers."""
    is_sparse = isinstance(x, SparseTensor)
    values = np.asarray(x.values if is_sparse else as_tensor(x))
    shape = shape_of(x) if is_sparse else values.shape
    if len(shape) != 2:
        raise invalid(f"{op_name}: expected matrices. Received: shape {tuple(shape)}.")
    values = values if values.dtype.kind == "O" else values.astype(np.int64)
    if not is_sparse:
        return values.tolist()
    rows: list[list] = [[] for _ in range(shape[0])]
    for i, value in zip(indices_array(x)[:, 0].tolist(), values.tolist(), strict=True):
        rows[i].append(value)
    return rows
