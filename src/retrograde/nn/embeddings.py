"""Embedding lookups, also of sparse ids with a combiner."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from retrograde.core.apply import apply
from retrograde.core.tensor import Tensor
from retrograde.math._inputs import check_dtype
from retrograde.ops import arithmetic as ar
from retrograde.ops._arrays import wide
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
from retrograde.values.arguments import as_text, shown
from retrograde.values.composites import dispatched
from retrograde.values.errors import invalid

_COMBINERS = ("mean", "sqrtn", "sum")


@dispatched
def embedding_lookup(
    params: Any, ids: Any, max_norm: float | None = None, name: str | None = None
) -> Tensor:
    """Rows of `params`, a table or a list of parts of one, picked by `ids`.

    The gradient of the table comes as IndexedSlices. With `max_norm`, rows that are longer are
    scaled down to that norm.

    >>> tf.nn.embedding_lookup([[[1.0, 2.0], [3.0, 4.0]]], [1, 0]).numpy()
    array([[3., 4.],
           [1., 2.]], dtype=float32)
    """
    table, places = _table(params), as_tensor(ids)
    check_dtype(places, ("int16", "int32", "int64"), "ids", "embedding_lookup")
    rows = apply(gather, (table, places), {"axis": 0})
    if max_norm is None:
        return rows
    return clip_by_norm(rows, max_norm, axes=tuple(range(places.ndim, rows.ndim)))


def _table(params: Any) -> Tensor:
    if params is None:
        raise ValueError("embedding_lookup: params must be given. Received: None.")
    if not isinstance(params, (list, tuple)):
        return as_tensor(params)
    if not params:
        raise ValueError("embedding_lookup: need at least one table. Received: an empty list.")
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
    """For each row of `sp_ids`, the rows of `params` that it names, put together.

    `sp_ids` is a SparseTensor or a RaggedTensor with two axes, `sp_weights` another with the same
    places, or `None` for ones. The `combiner` "sum" adds the weighed rows up; "mean", the default,
    divides by the sum of the weights; "sqrtn" by the root of the sum of their squares. Rows without
    ids are zero, and left out at the end. The gradient of the table comes as IndexedSlices.

    >>> ids = tf.sparse.from_dense([[1, 2], [2, 0]])
    >>> table = tf.constant([[0.0], [1.0], [5.0]])
    >>> tf.nn.embedding_lookup_sparse(table, ids, None).numpy()
    array([[3.],
           [5.]], dtype=float32)
    """
    op_name = "embedding_lookup_sparse"
    rows, ids = _places(sp_ids, "sp_ids", op_name)
    weights = None
    if sp_weights is not None:
        weights = _places(sp_weights, "sp_weights", op_name)[1]
        if type(sp_weights) is not type(sp_ids) or weights._spec.shape != ids._spec.shape:
            raise ValueError(
                f"{op_name}: sp_ids and sp_weights must be of one kind and have values in the same "
                f"places. Received: {ids._spec.shape} ids and {weights._spec.shape} weights."
            )
    return _combined(params, rows, ids, weights, _combiner(combiner, op_name), max_norm)


def _places(value: Any, argument: str, op_name: str) -> tuple[Tensor, Tensor]:
    """The row of each value, and the values."""
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


def _combined(
    params: Any,
    rows: Tensor,
    ids: Tensor,
    weights: Tensor | None,
    combiner: str,
    max_norm: float | None,
) -> Tensor:
    """The rows of a table that `ids` name, put together by `rows`, which are sorted."""
    count = _in_order(rows)._spec.size
    found = embedding_lookup(params, ids, max_norm=max_norm)
    dtype, sizes = found._spec.dtype, found._spec.shape[1:]
    computed, number = wide(dtype), rows._spec.size
    found = to_dtype(found, computed)
    ones = (1,) * len(sizes)
    if weights is None:
        weights = Tensor(np.ones(number, computed))
    weights = reshape(to_dtype(weights, computed), shape=(number, *ones))
    total = scatter_add(found * weights, rows, shape=(count, *sizes))
    if combiner != "sum":
        parts = weights if combiner == "mean" else weights * weights
        divisor = scatter_add(parts, rows, shape=(count, *ones))
        divisor = divisor if combiner == "mean" else apply(sqrt, (divisor,))
        total = apply(ar.divide_no_nan, (total, divisor))
    return to_dtype(total, dtype)


@host_function(dynamic_shapes=True)
def _in_order(rows: Tensor) -> Tensor:
    """Something as long as there are rows, if they are sorted."""
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
    """As `embedding_lookup_sparse`, for ids of any number of axes, some of them not valid.

    Negative ids are left out, and unless the `combiner` is "sum" those whose weight is not above 0.
    A row without ids has the embedding of `default_id`, or is zero if that is `None`. The ids are
    put together along their last axis.

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
            f"{op_name}: embedding_weights are missing. Received: {as_text(embedding_weights)}."
        )
    if not isinstance(sparse_ids, SparseTensor):
        raise TypeError(
            f"{op_name}: sparse_ids must be a SparseTensor. Received: a "
            f"{type(sparse_ids).__name__}."
        )
    *front, last = sparse_ids.shape.as_list()
    table = (math.prod(front), last)
    ids, weights = sparse_reshape(sparse_ids, table), None
    keep = _above(ids.values, -1)
    if sparse_weights is not None:
        weights = sparse_reshape(sparse_weights, table)
        if _combiner(combiner, op_name) != "sum":
            keep = apply(ar.logical_and, (keep, _above(weights.values, 0)))
        weights = fill_empty_rows(retain(weights, keep), 1)[0]
    ids, empty = fill_empty_rows(retain(ids, keep), 0 if default_id is None else default_id)
    y = embedding_lookup_sparse(embedding_weights, ids, weights, combiner, max_norm)
    rest = y._spec.shape[1:]
    if default_id is None:
        filled = reshape(apply(ar.logical_not, (empty,)), shape=(len(y._array), *(1,) * len(rest)))
        y = apply(ar.mask, (y, filled))
    return reshape(y, shape=(*front, *rest))


def _above(x: Tensor, least: int) -> Tensor:
    return apply(ar.greater, (x, as_tensor(least, x._spec.dtype)))
