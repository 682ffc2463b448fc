"""`tf.ragged_fill_empty_rows` and its gradient."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from retrograde.core.tensor import Tensor
from retrograde.ops.arguments import integer, integer_array
from retrograde.ops.conversion import as_tensor
from retrograde.ops.indexing import gather
from retrograde.ops.reduction import sum as sum_of
from retrograde.sparse._indices import take
from retrograde.sparse.shaping import append_default, find_empty_rows
from retrograde.values.errors import invalid, reports_out_of_memory


class RaggedFillEmptyRows(NamedTuple):
    """The result of `tf.ragged_fill_empty_rows`."""

    output_value_rowids: Tensor
    output_values: Tensor
    empty_row_indicator: Tensor
    reverse_index_map: Tensor


class RaggedFillEmptyRowsGrad(NamedTuple):
    """The result of `tf.ragged_fill_empty_rows_grad`."""

    d_values: Tensor
    d_default_value: Tensor


@reports_out_of_memory("ragged_fill_empty_rows")
def ragged_fill_empty_rows(
    value_rowids: Any, values: Any, nrows: Any, default_value: Any, name: str | None = None
) -> RaggedFillEmptyRows:
    """Sorts values by row and inserts `default_value` into each empty row of `nrows` rows.

    Returns the row ids, the values, a mask of the empty rows, and the new position of each value.

    >>> filled = tf.ragged_fill_empty_rows([0, 2], [5.0, 7.0], 3, -1.0)
    >>> filled.output_values.numpy(), filled.empty_row_indicator.numpy()
    (array([ 5., -1.,  7.], dtype=float32), array([False,  True, False]))
    """
    rows = integer_array(value_rowids, "ragged_fill_empty_rows: value_rowids")
    x = as_tensor(values)
    if rows.ndim != 1 or tuple(x.shape) != rows.shape:
        raise invalid(
            "ragged_fill_empty_rows: value_rowids and values must be vectors of the same length. "
            f"Received: shapes {rows.shape} and {tuple(x.shape)}."
        )
    count = integer(nrows, "ragged_fill_empty_rows: nrows")
    empty, order = find_empty_rows(rows, count, "ragged_fill_empty_rows")
    empty_rows = np.flatnonzero(empty)
    extended = append_default(x, as_tensor(default_value, x._spec.dtype), len(empty_rows))
    new_positions = np.argsort(order, kind="stable")[: len(rows)]
    return RaggedFillEmptyRows(
        Tensor(np.concatenate([rows, empty_rows])[order]),
        take(extended, order),
        Tensor(empty),
        Tensor(new_positions.astype(np.int64)),
    )


def ragged_fill_empty_rows_grad(
    reverse_index_map: Any, grad_values: Any, name: str | None = None
) -> RaggedFillEmptyRowsGrad:
    """Computes gradients with respect to the values and default of `ragged_fill_empty_rows`."""
    index_map, g = integer_array(reverse_index_map, "reverse_index_map"), as_tensor(grad_values)
    if not g.ndim:
        raise invalid(
            "ragged_fill_empty_rows_grad: grad_values must have at least 1 axis. Received: "
            "a scalar."
        )
    size = g.shape[0]
    if index_map.size and not 0 <= index_map.min() <= index_map.max() < size:
        raise invalid(f"ragged_fill_empty_rows_grad: expected indices in [0, {size}).")
    filled = Tensor(np.setdiff1d(np.arange(size), index_map))
    default = sum_of(gather(g, filled, axis=0), axis=(0,), keepdims=False)
    return RaggedFillEmptyRowsGrad(gather(g, Tensor(index_map), axis=0), default)
