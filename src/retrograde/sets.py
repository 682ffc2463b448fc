"""tf.sets: operations on sets, which are the rows of tensors along their last axis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from retrograde._api.lazy import from_all
from retrograde.core.tensor import Tensor
from retrograde.ops.conversion import as_tensor
from retrograde.ops.host_functions import host_function
from retrograde.sparse.tensor import SparseTensor
from retrograde.strings._elementwise import array_of
from retrograde.values.arguments import shown
from retrograde.values.errors import invalid

__all__ = ["difference", "intersection", "size", "union"]

__getattr__, __dir__ = from_all(__name__)

_DTYPES = ("int8", "int16", "int32", "int64", "uint8", "uint16", "string")


@host_function
def size(a: Any, validate_indices: bool = True) -> Tensor:
    """Returns the number of different values in each row of a sparse tensor.

    >>> tf.sets.size(tf.sparse.from_dense([[1, 2, 2], [3, 3, 3]])).numpy()
    array([2, 1], dtype=int32)
    """
    if not isinstance(a, SparseTensor):
        raise TypeError(f"Expected `SparseTensor`, got {shown(a)}.")
    shape, sets = _rows(a)
    counts = np.zeros(shape, np.int32)
    for row, values in sets.items():
        counts[row] = len(values)
    return Tensor(counts)


def union(a: Any, b: Any, validate_indices: bool = True) -> SparseTensor:
    """Returns the values that are in a row of `a` or of `b`, sorted.

    `a` and `b` are dense or sparse tensors of integers or strings.

    >>> tf.sparse.to_dense(tf.sets.union([[1, 2]], [[2, 3]])).numpy()
    array([[1, 2, 3]], dtype=int32)
    """
    return _combine(a, b, set.union)


def intersection(a: Any, b: Any, validate_indices: bool = True) -> SparseTensor:
    """Returns the values that are in a row of `a` and of `b`, sorted.

    >>> tf.sparse.to_dense(tf.sets.intersection([[1, 2]], [[2, 3]])).numpy()
    array([[2]], dtype=int32)
    """
    return _combine(a, b, set.intersection)


def difference(a: Any, b: Any, aminusb: bool = True, validate_indices: bool = True) -> SparseTensor:
    """Returns the values that are in a row of `a` but not of `b`, sorted; or the reverse.

    >>> tf.sparse.to_dense(tf.sets.difference([[1, 2]], [[2, 3]])).numpy()
    array([[1]], dtype=int32)
    """
    return _combine(a, b, set.difference) if aminusb else _combine(b, a, set.difference)


def _combine(a: Any, b: Any, operation: Callable) -> SparseTensor:
    x1, x2 = (x if isinstance(x, SparseTensor) else as_tensor(x) for x in (a, b))
    for x in (x1, x2):
        if x.dtype.name not in _DTYPES:
            raise TypeError(
                f"tf.sets: sets of dtype {x.dtype.name} are not supported. Expected integers or "
                "strings."
            )
    if x1.dtype != x2.dtype:
        raise TypeError(f"Types of inputs differ: {x1.dtype!r} vs {x2.dtype!r}.")
    return _combine_rows(x1, x2, operation.__name__)


@host_function(dynamic_shapes=True)
def _combine_rows(x1: Any, x2: Any, operation: str) -> SparseTensor:
    (shape, first), (other, second) = _rows(x1), _rows(x2)
    if shape != other:
        raise invalid(
            f"tf.sets: the shapes of the inputs must agree except for the last axis. Received: "
            f"{shape} and {other} without it."
        )
    function = getattr(set, operation)
    rows = sorted({*first, *second})
    results = {row: sorted(function(first.get(row, set()), second.get(row, set()))) for row in rows}
    values = [value for row in rows for value in results[row]]
    indices = [(*row, column) for row in rows for column in range(len(results[row]))]
    longest = max(map(len, results.values()), default=0)
    return SparseTensor(
        np.array(indices, np.int64).reshape(len(values), len(shape) + 1),
        Tensor(array_of(values, x1.dtype.numpy_dtype)),
        np.array([*shape, longest], np.int64),
    )


def _rows(x: Any) -> tuple[tuple[int, ...], dict[tuple[int, ...], set]]:
    """Returns the shape without the last axis, and the nonempty sets by row index."""
    sets: dict[tuple[int, ...], set] = {}
    if isinstance(x, SparseTensor):
        shape = tuple(np.asarray(x.dense_shape).tolist())
        indices = np.asarray(x.indices)
        if np.any((indices < 0) | (indices >= np.asarray(shape))):
            raise invalid(f"tf.sets: an index is out of range for the dense shape {shape}.")
        pairs = zip(indices.tolist(), np.asarray(x.values).tolist(), strict=True)
        for index, value in pairs:
            sets.setdefault(tuple(index[:-1]), set()).add(value)
    else:
        array = np.asarray(x)
        shape = array.shape
        for row in np.ndindex(shape[:-1]):
            if shape and shape[-1]:
                sets[row] = set(array[row].tolist())
    if len(shape) < 2:
        raise invalid(f"tf.sets: expected inputs with at least 2 axes. Received: {len(shape)}.")
    return shape[:-1], sets
