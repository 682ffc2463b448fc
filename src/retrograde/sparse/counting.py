"""`bincount` and `to_indicator`: counts and indicators of the values of tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from retrograde.core.tensor import Tensor
from retrograde.ops.arguments import integer
from retrograde.ops.casting import to_dtype
from retrograde.ops.conversion import as_tensor, numpy_dtype
from retrograde.ops.shaping import reshape
from retrograde.sparse._indices import (
    as_sparse,
    indices_array,
    make_sparse,
    scatter_sum,
    shape_of,
    take,
    unique_rows,
)
from retrograde.sparse.conversion import to_dense
from retrograde.sparse.tensor import HANDLERS, SparseTensor
from retrograde.values import dtypes
from retrograde.values.arguments import as_text
from retrograde.values.composites import dispatched
from retrograde.values.errors import invalid, reports_out_of_memory


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
    """Counts the occurrences of each integer in `values`, or with `axis=-1` in each row.

    With `weights`, the result is the sum of the weights of each integer. With `binary_output`, it
    is 1 for each integer that occurs. Integers >= `maxlength` are ignored.

    >>> counts = tf.sparse.bincount([1, 3, 3])
    >>> tf.sparse.to_dense(counts).numpy()
    array([0, 1, 0, 2], dtype=int32)
    """
    if axis not in (None, 0, -1):
        raise ValueError(
            f"bincount: only the axes 0 and -1 are supported. Received: axis={as_text(axis)}."
        )
    if weights is not None and binary_output:
        raise ValueError("bincount: binary_output and weights cannot be combined. Pass only one.")
    rows, numbers, weight_values, count = _entries(values, weights)
    if numbers.dtype not in (np.int32, np.int64):
        raise invalid(f"bincount: expected int32 or int64. Received: dtype {numbers.dtype}.")
    if (numbers < 0).any():
        raise invalid("bincount: expected nonnegative integers.")
    by_row = axis == -1 and count is not None
    width = int(numbers.max(initial=-1)) + 1
    width = max(width, 0 if minlength is None else integer(minlength, "bincount: minlength"))
    if maxlength is not None:
        width = integer(maxlength, "bincount: maxlength")
    keep = numbers < width
    pairs = np.stack([rows, numbers], 1) if by_row else numbers[:, None]
    indices, groups = unique_rows(pairs[keep].astype(np.int64))
    if weight_values is None:
        sums = Tensor(np.bincount(groups, minlength=len(indices)).astype(numbers.dtype))
        sums = Tensor(np.ones_like(sums._array)) if binary_output else sums
    else:
        sums = scatter_sum(take(weight_values, np.flatnonzero(keep)), groups, len(indices))
    return make_sparse(indices, sums, (count, width) if by_row else (width,))


def _dense_counts(
    function: Callable, arr: SparseTensor, weights: Any = None, minlength: Any = None,
    maxlength: Any = None, dtype: Any = dtypes.int32, name: Any = None, axis: Any = None,
    binary_output: bool = False,
) -> Tensor:  # fmt: skip
    """Computes `tf.math.bincount` of a SparseTensor."""
    values = arr.values
    if axis != -1 or arr.shape.rank < 2:
        flat = None if weights is None else as_sparse(weights).values
        return function(values, flat, minlength, maxlength, dtype, binary_output=binary_output)
    width = function(values, None, minlength, maxlength).shape[0]
    counts = bincount(arr, weights, -1, width, width, binary_output)
    y = to_dense(counts)
    return y if weights is not None else to_dtype(y, numpy_dtype(dtype))


HANDLERS["bincount"] = _dense_counts


def _entries(values: Any, weights: Any) -> tuple[np.ndarray, np.ndarray, Tensor | None, int | None]:
    """Returns the row, value and weight of each element, and the number of rows."""
    if isinstance(values, SparseTensor):
        if weights is not None:
            weights = as_sparse(weights)
            if not np.array_equal(indices_array(weights), indices_array(values)):
                raise invalid("bincount: values and weights have different indices.")
            weights = weights.values
        rank = len(shape_of(values))
        count = shape_of(values)[0] if rank > 1 else None
        return indices_array(values)[:, 0], np.asarray(values.values), weights, count
    x = as_tensor(values)
    array = np.asarray(x)
    if weights is not None:
        weights = as_tensor(weights)
        if tuple(weights.shape) != array.shape:
            raise invalid(
                f"bincount: values and weights have the shapes {array.shape} and "
                f"{tuple(weights.shape)}. Expected equal shapes."
            )
        weights = reshape(weights, shape=(array.size,))
    count = array.shape[0] if array.ndim > 1 else None
    rows = np.repeat(np.arange(count or 1), array.size // (count or 1)) if array.size else []
    return np.asarray(rows, np.int64), array.reshape(-1), weights, count


@reports_out_of_memory("to_indicator")
def to_indicator(sp_input: Any, vocab_size: Any, name: str | None = None) -> Tensor:
    """Replaces the last axis by `vocab_size` booleans: whether each integer occurs along it.

    >>> x = tf.SparseTensor([[0, 0], [0, 1]], [0, 2], [2, 2])
    >>> tf.sparse.to_indicator(x, 3).numpy()
    array([[ True, False,  True],
           [False, False, False]])
    """
    x = as_sparse(sp_input)
    size = integer(vocab_size, "to_indicator: vocab_size")
    members = np.asarray(x.values).astype(np.int64)
    wrong = (members < 0) | (members >= size)
    if wrong.any():
        value = members[int(np.argmax(wrong))]
        raise invalid(f"to_indicator: the value {value} is not in [0, {size}).")
    shape, indices = shape_of(x), indices_array(x)
    if min(shape) < 0 or ((indices < 0) | (indices >= np.array(shape))).any():
        raise invalid(f"to_indicator: an index is out of bounds for shape {tuple(shape)}.")
    y = np.zeros((*shape[:-1], size), bool)
    y[(*indices[:, :-1].T, members)] = True
    return Tensor(y)
