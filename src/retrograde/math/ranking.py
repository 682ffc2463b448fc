"""Top-k selection and permutations."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from retrograde.core.apply import apply
from retrograde.core.tensor import Tensor
from retrograde.math._inputs import check_dtype
from retrograde.ops import sorting
from retrograde.ops.arguments import integer
from retrograde.ops.conversion import as_tensor, numpy_dtype
from retrograde.ops.indexing import gather
from retrograde.ops.shaping import transpose
from retrograde.toplevel.indexing import gather_batches
from retrograde.values import dtypes
from retrograde.values.errors import invalid
from retrograde.values.shapes import normalize_axis

_INT64 = np.dtype(np.int64)


class TopKV2(NamedTuple):
    """The result of `tf.math.top_k`."""

    values: Tensor
    indices: Tensor


class ApproxTopK(NamedTuple):
    """The result of `tf.math.approx_max_k`, `approx_min_k` and `approx_top_k`."""

    values: Tensor
    indices: Tensor


def top_k(
    input: Any,
    k: Any = 1,
    sorted: bool = True,
    index_type: Any = dtypes.int32,
    name: str | None = None,
) -> TopKV2:
    """Returns the `k` largest elements along the last axis and their indices, in descending order.

    Equal elements are ordered by index. The result is sorted even if `sorted` is false.

    >>> values, indices = tf.math.top_k([5.0, 7.0, 5.0, 7.0], k=3)
    >>> values.numpy(), indices.numpy()
    (array([7., 7., 5.], dtype=float32), array([1, 3, 0], dtype=int32))
    """
    x = as_tensor(input)
    count = integer(k, "top_k: k", TypeError)
    dtype = numpy_dtype(index_type)
    if dtype not in (np.int16, np.int32, np.int64):
        raise invalid(
            "top_k: expected an index_type of int16, int32 or int64. "
            f"Received: {dtypes.of(dtype).name}."
        )
    _check_count(x, count, "top_k")
    indices = apply(sorting.top_k_indices, (x,), {"k": count, "dtype": dtype})
    return TopKV2(_gather_last_axis(x, indices), indices)


def _check_count(x: Tensor, count: int, op_name: str) -> None:
    if not x.ndim:
        raise invalid(f"{op_name}: expected a tensor of rank >= 1. Received: shape ().")
    if not 0 <= count <= x._spec.shape[-1]:
        raise invalid(
            f"{op_name}: expected 0 <= k <= {x._spec.shape[-1]}, the size of the axis. Received: k "
            f"= {count}."
        )


def _gather_last_axis(x: Tensor, indices: Tensor) -> Tensor:
    """Gathers the elements of `x` at `indices` along the last axis, with a dense gradient."""
    last = x.ndim - 1
    if not last:
        return gather(x, indices, axis=0, dense_gradient=True)
    return gather_batches(x, indices, last, last)


def approx_top_k(
    input: Any,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    is_max_k: bool = True,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
    name: str | None = None,
) -> ApproxTopK:
    """Returns the `k` largest (or smallest) elements along an axis and their indices.

    The result is exact, regardless of `recall_target`.
    """
    x = as_tensor(input)
    check_dtype(x, ("float16", "bfloat16", "float32"), "input", "approx_top_k")
    axis = normalize_axis(integer(reduction_dimension, "approx_top_k"), x.ndim, "approx_top_k")
    swap = tuple({axis: x.ndim - 1, x.ndim - 1: axis}.get(i, i) for i in range(x.ndim))
    x = transpose(x, perm=swap)
    count = integer(k, "approx_top_k: k")
    _check_count(x, count, "approx_top_k")
    attrs = {"k": count, "dtype": np.dtype(np.int32)}
    indices = apply(sorting.top_k_indices, (x if is_max_k else -x,), attrs)
    return ApproxTopK(
        transpose(_gather_last_axis(x, indices), perm=swap), transpose(indices, perm=swap)
    )


def approx_max_k(
    operand: Any,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
    name: str | None = None,
) -> ApproxTopK:
    """Returns the `k` largest elements along an axis and their indices.

    The result is exact, regardless of `recall_target`.
    """
    return approx_top_k(operand, k, reduction_dimension, is_max_k=True)


def approx_min_k(
    operand: Any,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
    name: str | None = None,
) -> ApproxTopK:
    """Returns the `k` smallest elements along an axis and their indices.

    The result is exact, regardless of `recall_target`.

    >>> tf.math.approx_min_k([4.0, 1.0, 3.0], k=2).values.numpy()
    array([1., 3.], dtype=float32)
    """
    return approx_top_k(operand, k, reduction_dimension, is_max_k=False)


def in_top_k(targets: Any, predictions: Any, k: Any, name: str | None = None) -> Tensor:
    """Returns whether each target is among the `k` classes with the largest predictions.

    Classes that tie with the k-th largest are included. Rows with a non-finite prediction are
    false.

    >>> tf.math.in_top_k([0, 1], [[0.1, 0.9, 0.5], [0.2, 0.2, 0.1]], k=1).numpy()
    array([False,  True])
    """
    predictions, targets = as_tensor(predictions, np.dtype(np.float32)), as_tensor(targets)
    check_dtype(targets, ("int32", "int64"), "targets", "in_top_k")
    rows, classes = targets._spec.shape, predictions._spec.shape
    if len(rows) != 1 or len(classes) != 2 or rows != classes[:1]:
        raise invalid(
            "in_top_k: expected one target for each row of predictions. Received: targets of "
            f"shape {rows}, predictions of shape {classes}."
        )
    return apply(sorting.in_top_k, (predictions, targets), {"k": integer(k, "in_top_k: k")})


def invert_permutation(x: Any, name: str | None = None) -> Tensor:
    """Computes the inverse permutation of `x`: `y[x[i]] == i`.

    >>> tf.math.invert_permutation([2, 0, 1]).numpy()
    array([1, 2, 0], dtype=int32)
    """
    x = as_tensor(x)
    check_dtype(x, ("int32", "int64"), "x", "invert_permutation")
    if x.ndim != 1:
        raise invalid(
            f"invert_permutation: expected a tensor of rank 1. Received: shape {x._spec.shape}."
        )
    return apply(sorting.invert_permutation, (x,))
