"""Serialization of sparse tensors: the indices, values and shape as serialized tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from retrograde.core.tensor import Tensor
from retrograde.io.encodings import parse_tensor, serialize_tensor
from retrograde.ops.host_functions import host_function
from retrograde.sparse.tensor import SparseTensor
from retrograde.strings._elementwise import as_string_tensor
from retrograde.values import dtypes
from retrograde.values.arguments import shown
from retrograde.values.errors import invalid


@host_function
def serialize_sparse(
    sp_input: Any, out_type: Any = dtypes.string, name: str | None = None
) -> Tensor:
    """Serializes a sparse tensor to a vector of 3 strings: indices, values and dense shape.

    >>> x = tf.SparseTensor([[0, 1]], [5.0], [2, 2])
    >>> tf.io.serialize_sparse(x).shape
    TensorShape([3])
    """
    x = _check_input(sp_input, out_type, "serialize_sparse")
    return Tensor(_serialize(*(np.asarray(p) for p in (x.indices, x.values, x.dense_shape))))


@host_function
def serialize_many_sparse(
    sp_input: Any, out_type: Any = dtypes.string, name: str | None = None
) -> Tensor:
    """Serializes each row of a sparse tensor of at least 2 axes, to a matrix with 3 columns.

    >>> x = tf.SparseTensor([[0, 1], [2, 0]], [5.0, 6.0], [3, 2])
    >>> serialized = tf.io.serialize_many_sparse(x)
    >>> y = tf.io.deserialize_many_sparse(serialized, tf.float32)
    >>> tf.sparse.to_dense(y).numpy().tolist()
    [[0.0, 5.0], [0.0, 0.0], [6.0, 0.0]]
    """
    x = _check_input(sp_input, out_type, "serialize_many_sparse")
    indices, values, shape = (np.asarray(part) for part in (x.indices, x.values, x.dense_shape))
    if len(shape) < 2:
        raise invalid(
            f"serialize_many_sparse: expected a sparse tensor of at least 2 axes. Received: "
            f"{len(shape)}."
        )
    rows = np.empty((shape[0], 3), object)
    for number in range(len(rows)):
        mask = indices[:, 0] == number
        rows[number] = _serialize(indices[mask][:, 1:], values[mask], shape[1:])
    return Tensor(rows)


def _check_input(value: Any, out_type: Any, op_name: str) -> SparseTensor:
    if not isinstance(value, SparseTensor):
        raise TypeError(f"Input must be a SparseTensor. Received: {shown(value)}.")
    if dtypes.as_dtype(out_type) != dtypes.string:
        raise invalid(f"{op_name}: out_type must be tf.string. Received: {shown(out_type)}.")
    return value


def _serialize(*parts: np.ndarray) -> np.ndarray:
    strings = np.empty(3, object)
    strings[:] = [serialize_tensor(Tensor(part)).numpy() for part in parts]
    return strings


@host_function(dynamic_shapes=True)
def deserialize_many_sparse(
    serialized_sparse: Any, dtype: Any, rank: Any = None, name: str | None = None
) -> SparseTensor:
    """Stacks sparse tensors that `serialize_many_sparse` or `serialize_sparse` returned.

    The result has one axis more than they have. `rank` is its number of axes, if it is known.
    """
    strings = np.asarray(as_string_tensor(serialized_sparse)._array)
    if strings.ndim != 2 or strings.shape[1] != 3:
        raise invalid(
            "deserialize_many_sparse: serialized_sparse should have 3 columns, got shape "
            f"{list(strings.shape)}"
        )
    rows = [_deserialize(row, dtypes.as_dtype(dtype)) for row in strings]
    ranks = {len(shape) for _, _, shape in rows}
    if len(ranks) > 1:
        raise invalid(f"deserialize_many_sparse: the tensors have {sorted(ranks)} axes.")
    axes = next(iter(ranks), 0)
    if rank is not None and rank != axes + 1:
        raise ValueError(
            f"deserialize_many_sparse: rank is {rank}, but the result has {axes + 1} axes."
        )
    indices = [np.insert(index, 0, number, axis=1) for number, (index, _, _) in enumerate(rows)]
    shape = [len(rows), *np.max([s for *_, s in rows], axis=0, initial=0).tolist()] if rows else [0]
    empty = np.empty((0, axes + 1), np.int64)
    values = [np.empty(0, dtypes.as_dtype(dtype).numpy_dtype), *(v for _, v, _ in rows)]
    return SparseTensor(
        np.concatenate([empty, *indices]), Tensor(np.concatenate(values)), np.array(shape, np.int64)
    )


def _deserialize(row: np.ndarray, dtype: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    kinds = (dtypes.int64, dtype, dtypes.int64)
    indices, values, shape = (
        np.asarray(parse_tensor(Tensor(np.array(part, object)), kind))
        for part, kind in zip(row.tolist(), kinds, strict=True)
    )
    consistent = indices.ndim == 2 and values.ndim == shape.ndim == 1
    if not consistent or indices.shape != (len(values), len(shape)) or (shape < 0).any():
        raise invalid("deserialize_many_sparse: indices, values and shape do not match.")
    return indices, values, shape
