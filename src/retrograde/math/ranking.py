"""Top-k selection and permutations."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from retrograde.core.apply import apply
from retrograde.core.tensor import Tensor
from retrograde.math._inputs import accept
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
    """What `tf.math.top_k` returns."""

    values: Tensor
    indices: Tensor


class ApproxTopK(NamedTuple):
    """What `tf.math.approx_max_k` and its relatives return."""

    values: Tensor
    indices: Tensor


def top_k(
    input: Any,
    k: Any = 1,
    sorted: bool = True,
    index_type: Any = dtypes.int32,
    name: str | None = None,
) -> TopKV2:
    """The `k` largest elements along the last axis, and where they are; the largest first.

    Of equal ones, those with the lower index come first. They are in order even if `sorted` is
    false.

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
    places = apply(sorting.top_places, (x,), {"k": count, "dtype": dtype})
    return TopKV2(_picked(x, places), places)


def _check_count(x: Tensor, count: int, what: str) -> None:
    if not x.ndim:
        raise invalid(f"{what}: expected at least one axis. Received: shape ().")
    if not 0 <= count <= x._spec.shape[-1]:
        raise invalid(
            f"{what}: expected 0 <= k <= {x._spec.shape[-1]}, the size of the axis. "
            f"Received: k = {count}."
        )


def _picked(x: Tensor, places: Tensor) -> Tensor:
    """The elements of x at `places` along the last axis; its gradient is whole."""
    last = x.ndim - 1
    if not last:
        return gather(x, places, axis=0, whole=True)
    return gather_batches(x, places, last, last)


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
    """The `k` largest, or smallest, along an axis, and where they are: exactly, at any target."""
    x = as_tensor(input)
    accept(x, ("float16", "bfloat16", "float32"), "input", "approx_top_k")
    axis = normalize_axis(integer(reduction_dimension, "approx_top_k"), x.ndim, "approx_top_k")
    swap = tuple({axis: x.ndim - 1, x.ndim - 1: axis}.get(i, i) for i in range(x.ndim))
    x = transpose(x, perm=swap)
    count = integer(k, "approx_top_k: k")
    _check_count(x, count, "approx_top_k")
    attrs = {"k": count, "dtype": np.dtype(np.int32)}
    places = apply(sorting.top_places, (x if is_max_k else -x,), attrs)
    return ApproxTopK(transpose(_picked(x, places), perm=swap), transpose(places, perm=swap))


def approx_max_k(
    operand: Any,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
    name: str | None = None,
) -> ApproxTopK:
    """The `k` largest elements along an axis, and where they are: exactly, at any target."""
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
    """The `k` smallest elements along an axis, and where they are: exactly, at any target.

    >>> tf.math.approx_min_k([4.0, 1.0, 3.0], k=2).values.numpy()
    array([1., 3.], dtype=float32)
    """
    return approx_top_k(operand, k, reduction_dimension, is_max_k=False)


def in_top_k(targets: Any, predictions: Any, k: Any, name: str | None = None) -> Tensor:
    """Whether each target is among the `k` classes with the largest predictions; ties are in.

    Rows with a prediction that is not finite say no.

    >>> tf.math.in_top_k([0, 1], [[0.1, 0.9, 0.5], [0.2, 0.2, 0.1]], k=1).numpy()
    array([False,  True])
    """
    predictions, targets = as_tensor(predictions, np.dtype(np.float32)), as_tensor(targets)
    accept(targets, ("int32", "int64"), "targets", "in_top_k")
    rows, classes = targets._spec.shape, predictions._spec.shape
    if len(rows) != 1 or len(classes) != 2 or rows != classes[:1]:
        raise invalid(
            "in_top_k: expected one target for each row of predictions. Received: targets of "
            f"shape {rows}, predictions of shape {classes}."
        )
    return apply(sorting.in_top_k, (predictions, targets), {"k": integer(k, "in_top_k: k")})


def invert_permutation(x: Any, name: str | None = None) -> Tensor:
    """The permutation that undoes `x`: `y[x[i]] == i`.

    >>> tf.math.invert_permutation([2, 0, 1]).numpy()
    array([1, 2, 0], dtype=int32)
    """
    x = as_tensor(x)
    accept(x, ("int32", "int64"), "x", "invert_permutation")
    if x.ndim != 1:
        raise invalid(f"invert_permutation: expected one axis. Received: shape {x._spec.shape}.")
    return apply(sorting.invert_permutation, (x,))
