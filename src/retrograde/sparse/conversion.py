"""Conversion between dense and sparse tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from retrograde.core.tensor import Tensor
from retrograde.ops import indexing
from retrograde.ops.arguments import integer
from retrograde.ops.conversion import as_tensor, numpy_dtype
from retrograde.ops.host_functions import host_function
from retrograde.ops.shaping import broadcast_to
from retrograde.sparse._indices import as_sparse, check_indices, make_sparse, shape_of
from retrograde.sparse.tensor import SparseTensor
from retrograde.values import dtypes
from retrograde.values.errors import invalid, reports_out_of_memory


def from_dense(tensor: Any, name: str | None = None) -> SparseTensor:
    """Converts a dense tensor to a SparseTensor of its nonzero (or nonempty) elements.

    >>> tf.sparse.from_dense([[0, 5], [7, 0]]).indices.numpy()
    array([[0, 1],
           [1, 0]])
    """
    x = as_tensor(tensor)
    if not x.ndim:
        raise invalid("from_dense: expected a tensor with at least one axis. Received: shape ().")
    indices = _nonzero_indices(x)
    values = indexing.gather_nd(x, indices, batch_dims=0)
    return SparseTensor(indices, values, Tensor(np.array(x._spec.shape, np.int64)))


@host_function(dynamic_shapes=True)
def _nonzero_indices(x: Tensor) -> Tensor:
    array = np.asarray(x)
    return Tensor(np.argwhere(array.astype(bool) if array.dtype.kind == "O" else array))


@reports_out_of_memory("eye")
def eye(
    num_rows: Any, num_columns: Any = None, dtype: Any = dtypes.float32, name: str | None = None
) -> SparseTensor:
    """Creates a sparse matrix with ones on the diagonal.

    >>> tf.sparse.to_dense(tf.sparse.eye(2, 3)).numpy()
    array([[1., 0., 0.],
           [0., 1., 0.]], dtype=float32)
    """
    rows = integer(num_rows, "eye: num_rows")
    columns = rows if num_columns is None else integer(num_columns, "eye: num_columns")
    if min(rows, columns) < 0:
        raise invalid(f"eye: expected sizes >= 0. Received: {rows} rows and {columns} columns.")
    kind = numpy_dtype(dtype)
    if kind.kind == "O":
        raise TypeError("eye: the dtype must be numeric or bool. Received: string.")
    diagonal = np.arange(min(rows, columns))
    return make_sparse(
        np.stack([diagonal, diagonal], 1), Tensor(np.ones(len(diagonal), kind)), (rows, columns)
    )


def to_dense(
    sp_input: Any, default_value: Any = None, validate_indices: bool = True, name: str | None = None
) -> Tensor:
    """Converts a SparseTensor to a dense tensor.

    Elements without a value become `default_value`, by default zero, false or the empty string.
    With `validate_indices`, indices must be sorted and unique. Without it, the last value of a
    repeated index is used.

    >>> tf.sparse.to_dense(tf.SparseTensor([[1]], [5.0], [3]), default_value=-1.0).numpy()
    array([-1.,  5., -1.], dtype=float32)
    """
    x = as_sparse(sp_input)
    shape = shape_of(x)
    indices = check_indices(x, shape, "to_dense", in_order=validate_indices)
    kind = x.values._spec.dtype
    empty = b"" if kind.kind == "O" else kind.type(0)
    default = as_tensor(empty if default_value is None else default_value, kind)
    if default.ndim:
        raise invalid(
            f"to_dense: default_value should be a scalar. Received: shape {tuple(default.shape)}."
        )
    return indexing.put_nd(broadcast_to(default, shape=shape), x.values, indices, batch_dims=0)
