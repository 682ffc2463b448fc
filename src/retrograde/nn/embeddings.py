"""Embedding lookups for dense and sparse ids."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from retrograde.core.apply import apply
from retrograde.core.recorders import thread
from retrograde.core.tensor import Tensor
from retrograde.math._inputs import check_dtype
from retrograde.ops import arithmetic as ar
from retrograde.ops._arrays import compute_dtype
from retrograde.ops.casting import to_dtype
from retrograde.ops.conversion import as_tensor, one_dtype
from retrograde.ops.elementary import sqrt
from retrograde.ops.host_functions import host_function
from retrograde.ops.indexing import gather, scatter_add
from retrograde.ops.shaping import concat, reshape
from retrograde.ragged.tensor import RaggedTensor
from retrograde.sparse.shaping import fill_empty_rows, retain
from retrograde.sparse.shaping import reshape as sparse_reshape
from retrograde.sparse.tensor import SparseTensor
from retrograde.toplevel.clipping import clip_by_norm
from retrograde.toplevel.indexing import unique
from retrograde.values.arguments import as_text, shown
from retrograde.values.composites import dispatched
from retrograde.values.errors import invalid

_COMBINERS = ("mean", "sqrtn", "sum")


@dispatched
def embedding_lookup(
    params: Any, ids: Any, max_norm: float | None = None, name: str | None = None
) -> Tensor:
    """Gathers the rows of `params`, one table or a list of its parts, at `ids`.

    The gradient of the table is an IndexedSlices. With `max_norm`, rows with a larger norm are
    scaled down to it.

    >>> tf.nn.embedding_lookup([[[1.0, 2.0], [3.0, 4.0]]], [1, 0]).numpy()
    array([[3., 4.],
           [1., 2.]], dtype=float32)
    """
    table, indices = _table(params), as_tensor(ids)
    check_dtype(indices, ("int16", "int32", "int64"), "ids", "embedding_lookup")
    rows = apply(gather, (table, indices), {"axis": 0})
    if max_norm is None:
        return rows
    return clip_by_norm(rows, max_norm, axes=tuple(range(indices.ndim, rows.ndim)))


def _table(params: Any) -> Tensor:
    if params is None:
        raise ValueError("embedding_lookup: `params` is required. Received: None.")
    if not isinstance(params, (list, tuple)):
        return as_tensor(params)
    if not params:
        raise ValueError("embedding_lookup: expected at least one table. Received: an empty list.")
    parts = one_dtype(params)
    return parts[0] if len(parts) == 1 else concat(*parts, axis=0)


def embedding_lookup_sparse(
    params: Any,
    sp_ids: Any,
    sp_weights: Any,
    combiner: str | None = None,
    max_norm: float | None = None,
    name: str | None = None,
    allow_fast_lookup: bool = False,
) -> Tensor:
    """Looks up the ids in each row of `sp_ids` and combines their embeddings.

    `sp_ids` is a SparseTensor or a RaggedTensor of rank 2. `sp_weights` has the same structure, or
    is `None` for weights of 1. The `combiner` "sum" adds the weighted rows. "mean", the default,
    divides by the sum of the weights, and "sqrtn" by the square root of the sum of their squares. A
    row without ids gives zeros; trailing rows without ids are omitted. The gradient of the table is
    an IndexedSlices.

    >>> ids = tf.sparse.from_dense([[1, 2], [2, 0]])
    >>> table = tf.constant([[0.0], [1.0], [5.0]])
    >>> tf.nn.embedding_lookup_sparse(table, ids, None).numpy()
    array([[3.],
           [5.]], dtype=float32)
    """
    op_name = "embedding_lookup_sparse"
    rows, ids = _rows_and_values(sp_ids, "sp_ids", op_name)
    weights = None
    if sp_weights is not None:
        weights = _rows_and_values(sp_weights, "sp_weights", op_name)[1]
        if type(sp_weights) is not type(sp_ids) or weights._spec.shape != ids._spec.shape:
            raise ValueError(
                f"{op_name}: sp_ids and sp_weights must have the same type and structure. "
                f"Received: {ids._spec.shape} ids and {weights._spec.shape} weights."
            )
    return _combine(params, rows, ids, weights, _combiner(combiner, op_name), max_norm)


def _rows_and_values(value: Any, argument: str, op_name: str) -> tuple[Tensor, Tensor]:
    """Returns the row of each value, and the values."""
    if isinstance(value, RaggedTensor):
        return value.value_rowids(), value.values
    if isinstance(value, SparseTensor):
        return value.indices[:, 0], value.values
    raise TypeError(
        f"{op_name}: {argument} must be a SparseTensor or a RaggedTensor. Received: a "
        f"{type(value).__name__}."
    )


def _combiner(combiner: str | None, op_name: str) -> str:
    combiner = "mean" if combiner is None else combiner
    if combiner not in _COMBINERS:
        raise ValueError(
            f"{op_name}: combiner must be one of {', '.join(map(repr, _COMBINERS))}. Received: "
            f"{shown(combiner)}."
        )
    return combiner


def _combine(
    params: Any,
    rows: Tensor,
    ids: Tensor,
    weights: Tensor | None,
    combiner: str,
    max_norm: float | None,
) -> Tensor:
    """Combines the table rows selected by `ids`; `rows`, which are sorted, are the output rows."""
    count = _check_sorted(rows)._spec.size
    if thread.recorders.tracer is None:  # the gradient then has one slice for each id
        distinct, positions = unique(ids)
        embedded = embedding_lookup(params, distinct, max_norm=max_norm)
        embedded = apply(gather, (embedded, positions), {"axis": 0})
    else:  # the number of distinct ids would be a guard of the trace
        embedded = embedding_lookup(params, ids, max_norm=max_norm)
    dtype, sizes = embedded._spec.dtype, embedded._spec.shape[1:]
    wide_dtype, number = compute_dtype(dtype), rows._spec.size
    embedded = to_dtype(embedded, wide_dtype)
    ones = (1,) * len(sizes)
    if weights is None:
        weights = Tensor(np.ones(number, wide_dtype))
    weights = reshape(to_dtype(weights, wide_dtype), shape=(number, *ones))
    total = scatter_add(embedded * weights, rows, shape=(count, *sizes))
    if combiner != "sum":
        parts = weights if combiner == "mean" else weights * weights
        divisor = scatter_add(parts, rows, shape=(count, *ones))
        divisor = divisor if combiner == "mean" else apply(sqrt, (divisor,))
        total = apply(ar.divide_no_nan, (total, divisor))
    return to_dtype(total, dtype)


@host_function(dynamic_shapes=True)
def _check_sorted(rows: Tensor) -> Tensor:
    """Raises an error unless `rows` are sorted, and returns a tensor as long as the output."""
    values = np.asarray(rows)
    if np.any(np.diff(values) < 0):
        raise invalid(f"embedding_lookup_sparse: rows must be sorted. Received: {values.tolist()}.")
    return Tensor(np.zeros(values[-1] + 1 if values.size else 0, bool))


def safe_embedding_lookup_sparse(
    embedding_weights: Any,
    sparse_ids: Any,
    sparse_weights: Any = None,
    combiner: str | None = "mean",
    default_id: int | None = None,
    max_norm: float | None = None,
    name: str | None = None,
    allow_fast_lookup: bool = False,
) -> Tensor:
    """Looks up sparse ids of any rank, which may include invalid ids.

    Negative ids are dropped. Unless the `combiner` is "sum", ids without a positive weight are
    dropped, too. A row without ids has the embedding of `default_id`, or zeros if it is `None`. The
    ids are combined along their last axis.

    >>> ids = tf.SparseTensor([[0, 0], [1, 0]], [2, -1], [2, 1])
    >>> table = tf.constant([[0.0], [1.0], [5.0]])
    >>> tf.nn.safe_embedding_lookup_sparse(table, ids).numpy()
    array([[5.],
           [0.]], dtype=float32)
    """
    op_name = "safe_embedding_lookup_sparse"
    if embedding_weights is None or (
        isinstance(embedding_weights, (list, tuple)) and not embedding_weights
    ):
        raise ValueError(
            f"{op_name}: `embedding_weights` is required. Received: {as_text(embedding_weights)}."
        )
    if not isinstance(sparse_ids, SparseTensor):
        raise TypeError(
            f"{op_name}: sparse_ids must be a SparseTensor. Received: a "
            f"{type(sparse_ids).__name__}."
        )
    *front, last = sparse_ids.shape.as_list()
    table = (math.prod(front), last)
    ids, weights = sparse_reshape(sparse_ids, table), None
    keep = _greater(ids.values, -1)
    if sparse_weights is not None:
        weights = sparse_reshape(sparse_weights, table)
        if _combiner(combiner, op_name) != "sum":
            keep = apply(ar.logical_and, (keep, _greater(weights.values, 0)))
        weights = fill_empty_rows(retain(weights, keep), 1)[0]
    ids, empty = fill_empty_rows(retain(ids, keep), 0 if default_id is None else default_id)
    y = embedding_lookup_sparse(embedding_weights, ids, weights, combiner, max_norm)
    rest = y._spec.shape[1:]
    if default_id is None:
        filled = reshape(apply(ar.logical_not, (empty,)), shape=(len(y._array), *(1,) * len(rest)))
        y = apply(ar.mask, (y, filled))
    return reshape(y, shape=(*front, *rest))


def _greater(x: Tensor, threshold: int) -> Tensor:
    return apply(ar.greater, (x, as_tensor(threshold, x._spec.dtype)))
