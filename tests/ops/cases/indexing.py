"""Gather and scatter."""

from __future__ import annotations

import numpy as np

from tests.ops.cases._table import COMPLEXES, FLOATS, INTEGERS, between, case, complexes, integers


def _gather(x, indices, *, axis, **_):
    return np.take(x, indices, axis)


for label, shape, indices, axis in [
    ("rows", (3, 2), [2, 0, 2, 2], 0),
    ("scalar_index", (3, 2), 1, 0),
    ("matrix_of_indices", (4,), [[3, 1], [1, 1]], 0),
    ("columns", (2, 3), [2, 2], 1),
    ("middle", (2, 3, 2), [[1, 0], [2, 2]], 1),
    ("scalar_column", (2, 3), 2, 1),
    ("none", (3, 2), [], 0),
    ("none_of_columns", (3, 2), [], 1),
]:
    indices = np.array(indices, "int32" if axis else "int64")
    case("gather", [between(-1, 1, *shape), indices], label, _gather, attrs={"axis": axis})
case(
    "gather",
    [between(-1, 1, 3, 2), np.array([2, 0, 2])],
    "with_a_dense_gradient",
    _gather,
    attrs={"axis": 0, "dense_gradient": True},
)
case("gather", [complexes(3), np.array([1, 1])], "complex", _gather, attrs={"axis": 0})


def _scatter_add(values, indices, *, shape):
    y = np.zeros(shape, values.dtype)
    for i in np.ndindex(indices.shape):
        y[indices[i]] += values[i]
    return y


for label, indices, rest, size in [
    ("rows", [2, 0, 2], (2,), 4),
    ("scalars", [0, 0, 1], (), 2),
    ("matrix_of_indices", [[1, 2], [1, 0]], (2,), 3),
    ("scalar_index", 1, (2,), 3),
    ("none", [], (2,), 3),
]:
    indices = np.array(indices, "int32")
    values = between(-1, 1, *indices.shape, *rest)
    case("scatter_add", [values, indices], label, _scatter_add, attrs={"shape": (size, *rest)},
         dtypes=FLOATS + COMPLEXES + INTEGERS)  # fmt: skip

case("offset_indices", integers(0, 4, 3, 2), "rows",
     lambda i, *, size, axis: i + np.array([[0], [4], [8]]) + 0 * size * axis,
     attrs={"size": 4, "axis": 0})  # fmt: skip
case("offset_indices", integers(0, 4, 2, 3, dtype="int64"), "columns",
     lambda i, *, size, axis: i + np.array([0, 5, 10]) + 0 * size * axis,
     attrs={"size": 5, "axis": 1})  # fmt: skip

case("wrap_indices", integers(-3, 3, 2, 3), "both_signs", lambda i, *, size: i % size,
     attrs={"size": 3})  # fmt: skip
case("wrap_indices", integers(-3, 3, 4), "within_bounds", lambda i, *, size, axis: i % size,  # noqa: ARG005
     attrs={"size": 3, "axis": 0})  # fmt: skip
case(
    "wrap_indices",
    np.array(-1, "int64"),
    "scalar",
    lambda i, *, size: i % size,
    attrs={"size": 5},
)


def _keys(indices, batch_dims):
    """Yields each position in `indices` with the key at that position."""
    for i in np.ndindex(indices.shape[:-1]):
        yield i, (*i[:batch_dims], *indices[i])


def _gather_nd(x, indices, *, batch_dims):
    depth = batch_dims + indices.shape[-1]
    y = np.zeros((*indices.shape[:-1], *x.shape[depth:]), x.dtype)
    for i, key in _keys(indices, batch_dims):
        y[i] = x[key]
    return y


def _scatter_nd(values, indices, *, shape, batch_dims):
    y = np.zeros(shape, values.dtype)
    for i, key in _keys(indices, batch_dims):
        y[key] += values[i]
    return y


def _write_nd(choose):
    def reference(x, values, indices, *, batch_dims):
        y = x.copy()
        for i, key in _keys(indices, batch_dims):
            y[key] = choose(y[key], values[i])
        return y

    return reference


COORDINATES = [
    ("elements", (3, 3), [[0, 1], [2, 0], [1, 1]], 0),
    ("rows", (3, 2), [[2], [0]], 0),
    ("matrix_of_elements", (4,), [[[3], [1]], [[0], [2]]], 0),
    ("whole", (2,), [[]], 0),
    ("batches", (2, 3), [[1], [2]], 1),
    ("rows_in_batches", (2, 3, 2), [[[0], [2]], [[1], [0]]], 1),
    ("two_batch_axes", (2, 1, 3), [[[2]], [[0]]], 2),
    ("none", (3, 2), np.zeros((0, 2)), 0),
]
REPEATED = ("repeated", (3, 3), [[0, 1], [2, 0], [0, 1]], 0)
for label, shape, indices, batch_dims in [*COORDINATES, REPEATED]:
    indices = np.array(indices, "int32" if batch_dims else "int64")
    x = between(-1, 1, *shape)
    attrs = {"batch_dims": batch_dims}
    rows = _gather_nd(x, indices, **attrs)
    case("gather_nd", [x, indices], label, _gather_nd, attrs=attrs)
    case("scatter_nd", [rows, indices], label, _scatter_nd, attrs={"shape": shape, **attrs},
         dtypes=FLOATS + COMPLEXES + INTEGERS)  # fmt: skip
    if label != "repeated":
        values = between(-1, 1, *rows.shape)
        case("put_nd", [x, values, indices], label, _write_nd(lambda _, v: v), attrs=attrs)
    if label != "whole":
        values = between(-1, 1, *rows.shape)
        for name, choose in (("max_nd", np.maximum), ("min_nd", np.minimum)):
            case(name, [x, values, indices], label, _write_nd(choose), attrs=attrs,
                 dtypes=FLOATS + INTEGERS, jax_rule=label != "repeated")  # fmt: skip
case("gather_nd", [complexes(3), np.array([[1], [1]])], "complex", _gather_nd,
     attrs={"batch_dims": 0})  # fmt: skip


def _argsort(x, *, axis, descending):
    return np.argsort(-x if descending else x, axis, kind="stable").astype("int32")


for label, x, axis, descending in [
    ("vector", between(-1, 1, 5), 0, False),
    ("columns", between(-1, 1, 3, 2), 0, True),
    ("rows_with_ties", integers(0, 2, 2, 6), 1, False),
    ("descending_with_ties", integers(0, 2, 2, 6), 1, True),
    ("empty", between(-1, 1, 2, 0), 1, True),
]:
    case("argsort", x, label, _argsort, attrs={"axis": axis, "descending": descending})


def _one_hot(indices, *, depth, dtype):
    y = np.zeros((*indices.shape, depth), dtype)
    for i in np.ndindex(indices.shape):
        if 0 <= indices[i] < depth:
            y[(*i, indices[i])] = 1
    return y


for label, indices in {
    "vector": np.array([2, 0, 1, 1]),
    "outside": np.array([[-1, 3], [0, 4]], "int32"),
    "scalar": np.array(2),
    "uint8": np.array([0, 200], "uint8"),
    "empty": np.zeros((0, 2), "int32"),
}.items():
    attrs = {"depth": 3, "dtype": np.dtype("float32")}
    case("one_hot", indices, label, _one_hot, attrs=attrs)
