"""Arithmetic with sparse tensors: sums, products, reductions. Gradients flow to the values."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from retrograde.core.apply import Primitive, apply
from retrograde.core.tensor import Tensor
from retrograde.ops import arithmetic as ar
from retrograde.ops import indexing, reduction
from retrograde.ops._families import conj
from retrograde.ops.arguments import integer_array
from retrograde.ops.casting import stop_gradient
from retrograde.ops.conversion import as_tensor, numpy_dtype
from retrograde.ops.elementary import exp
from retrograde.ops.host_functions import host_function
from retrograde.ops.operators import operand, true_divide
from retrograde.ops.shaping import broadcast_to, reshape, transpose
from retrograde.ops.sparse_products import sampled_matmul, sparse_matmul
from retrograde.sparse._indices import (
    as_sparse,
    check_in_bounds,
    check_indices,
    check_same_dtype,
    indices_array,
    make_sparse,
    scatter_sum,
    shape_of,
    take,
    unique_rows,
)
from retrograde.sparse.tensor import HANDLERS, SparseTensor
from retrograde.values import dtypes
from retrograde.values.composites import NotOneTensor, map_instances
from retrograde.values.conversion import tensor_or_variable
from retrograde.values.errors import invalid
from retrograde.values.shapes import broadcast, normalize_axis


def add(a: Any, b: Any, threshold: Any = 0) -> SparseTensor | Tensor:
    """Adds two sparse tensors, or a sparse and a dense tensor of the same shape.

    The sum is sparse only if both inputs are. Elements of a sparse sum with a magnitude below
    `threshold` are dropped.

    >>> x = tf.SparseTensor([[0], [2]], [5.0, 7.0], [3])
    >>> tf.sparse.add(x, x).values.numpy(), tf.sparse.add(x, [1.0, 1.0, 1.0]).numpy()
    (array([10., 14.], dtype=float32), array([6., 1., 8.], dtype=float32))
    """
    a_sparse, b_sparse = (isinstance(x, SparseTensor) for x in (a, b))
    if not a_sparse and not b_sparse:
        raise TypeError(
            "At least one input should be a SparseTensor; use tf.add for dense tensors."
        )
    if not (a_sparse and b_sparse):
        return _add_dense(a, b) if a_sparse else _add_dense(b, a)
    indices, (x, y), shape = _union(a, b, "add")
    total = x + y
    limit = as_tensor(threshold)
    if np.asarray(limit) > 0:
        keep = _find_large(total, limit)
        indices, total = take(indices, keep), take(total, keep)
    return make_sparse(indices, total, shape)


@host_function(dynamic_shapes=True)
def _find_large(values: Tensor, limit: Tensor) -> Tensor:
    """Returns the positions of the values with a magnitude of at least `limit`."""
    return Tensor(np.flatnonzero(np.abs(np.asarray(values)) >= np.asarray(limit)))


def _add_dense(x: SparseTensor, dense: Any) -> Tensor:
    dense = as_tensor(
        dense, None if tensor_or_variable(dense) is not None else x.values._spec.dtype
    )
    check_same_dtype("add", x.values, dense)
    shape = shape_of(x)
    if tuple(dense.shape) != shape:
        raise invalid(
            f"add: a SparseTensor of shape {shape} and a tensor of shape {tuple(dense.shape)} "
            "cannot be added. Expected equal shapes."
        )
    indices = check_indices(x, shape, "add")
    return dense + indexing.scatter_nd(x.values, indices, shape=shape, batch_dims=0)


def _union(a: Any, b: Any, op_name: str) -> tuple[Tensor, list[Tensor], tuple[int, ...]]:
    """Returns the union of the indices, sorted, the values of both tensors there, and the shape."""
    a, b = as_sparse(a), as_sparse(b)
    check_same_dtype(op_name, a.values, b.values)
    shape = shape_of(a)
    if shape != shape_of(b):
        raise invalid(
            f"{op_name}: the shapes {shape} and {shape_of(b)} differ. Expected equal shapes."
        )
    indices, *groups = _unique_indices(a.indices, b.indices)
    (count, _), parts = indices._spec.shape, zip((a, b), groups, strict=True)
    return indices, [scatter_sum(x.values, part, count) for x, part in parts], shape


@host_function(dynamic_shapes=True)
def _unique_indices(*indices: Tensor) -> tuple[Tensor, ...]:
    """Returns the unique indices, sorted, and the position of each input index among them."""
    parts = [np.asarray(x) for x in indices]
    unique, positions = unique_rows(np.concatenate(parts))
    ends = np.cumsum([len(part) for part in parts])[:-1]
    return Tensor(unique), *map(Tensor, np.split(positions, ends))


def maximum(sp_a: Any, sp_b: Any, name: str | None = None) -> SparseTensor:
    """Computes the elementwise maximum at the indices of both tensors; missing values are 0.

    >>> x, y = tf.SparseTensor([[0]], [5.0], [3]), tf.SparseTensor([[2]], [-7.0], [3])
    >>> tf.sparse.maximum(x, y).values.numpy()
    array([5., 0.], dtype=float32)
    """
    return _elementwise(ar.maximum, sp_a, sp_b, "maximum")


def minimum(sp_a: Any, sp_b: Any, name: str | None = None) -> SparseTensor:
    """Computes the elementwise minimum at the indices of both tensors; missing values are 0."""
    return _elementwise(ar.minimum, sp_a, sp_b, "minimum")


def _elementwise(primitive: Primitive, a: Any, b: Any, op_name: str) -> SparseTensor:
    indices, (x, y), shape = _union(a, b, op_name)
    return make_sparse(indices, apply(primitive, (x, y)), shape)


def map_values(op: Callable, *args: Any, **kwargs: Any) -> SparseTensor:
    """Applies `op` to the values of sparse tensors with equal indices and shapes.

    >>> x = tf.SparseTensor([[0], [2]], [5.0, 7.0], [3])
    >>> tf.sparse.map_values(tf.add, x, 1.0).values.numpy()
    array([6., 8.], dtype=float32)
    """
    sparse_args = [x for x in (*args, *kwargs.values()) if isinstance(x, SparseTensor)]
    if not sparse_args:
        raise ValueError("map_values: expected a SparseTensor among the arguments of op.")
    first = sparse_args[0]
    for other in sparse_args[1:]:
        same = shape_of(first) == shape_of(other)
        if not (same and np.array_equal(indices_array(first), indices_array(other))):
            raise invalid(
                "map_values: the SparseTensors have different indices or shapes. Expected equal "
                "ones."
            )

    args, kwargs = map_instances(SparseTensor, lambda x: x.values, args, kwargs)
    return first.with_values(op(*args, **kwargs))


# Products


def sparse_dense_matmul(
    sp_a: Any, b: Any, adjoint_a: bool = False, adjoint_b: bool = False, name: str | None = None
) -> Tensor:
    """Multiplies a sparse and a dense matrix, in either order.

    >>> x = tf.SparseTensor([[0, 1], [1, 0]], [2.0, 3.0], [2, 2])
    >>> tf.sparse.sparse_dense_matmul(x, [[1.0], [10.0]]).numpy()
    array([[20.],
           [ 3.]], dtype=float32)
    """
    if isinstance(b, SparseTensor):
        if isinstance(sp_a, SparseTensor):
            raise TypeError(
                "sparse_dense_matmul: both matrices are sparse. Expected one of them dense: use "
                "tf.sparse.to_dense."
            )
        y = sparse_dense_matmul(b, sp_a, not adjoint_b, not adjoint_a)  # (a b)^H = b^H a^H
        return _adjoint(y)
    x = as_sparse(sp_a)
    dense = as_tensor(b, None if tensor_or_variable(b) is not None else x.values._spec.dtype)
    check_same_dtype("sparse_dense_matmul", x.values, dense)
    shape = shape_of(x)
    if len(shape) != 2 or dense.ndim != 2:
        raise invalid(
            f"sparse_dense_matmul: expected two matrices. Received: shapes {shape} and "
            f"{tuple(dense.shape)}."
        )
    indices, values = x.indices, x.values
    if adjoint_a:
        indices, values, shape = indices[:, ::-1], conj(values), shape[::-1]
    dense = _adjoint(dense) if adjoint_b else dense
    if shape[1] != dense.shape[0]:
        raise invalid(
            f"sparse_dense_matmul: the inner dimensions differ, {shape[1]} and {dense.shape[0]}, "
            f"in the product of shapes {shape} and {tuple(dense.shape)}."
        )
    return sparse_matmul(values, dense, indices, shape=shape)


def _adjoint(x: Tensor) -> Tensor:
    return conj(transpose(x, perm=(1, 0)))


def sampled_addmm(
    indices: Any,
    values: Any,
    dense_shape: Any,
    mat1: Any,
    mat2: Any,
    beta: Any = 1.0,
    alpha: Any = 1.0,
    output_type: Any = dtypes.float32,
) -> tuple[Tensor, Tensor, Tensor]:
    """Computes `beta * A + alpha * mat1 @ mat2` at the indices of the sparse matrix A.

    A and the result are represented by indices, values and dense shape. Axes before the last two
    are batch axes.

    >>> _, values, _ = tf.sparse.sampled_addmm([[0, 1]], [5.0], [2, 2], tf.eye(2), tf.ones([2, 2]))
    >>> values.numpy()
    array([6.], dtype=float32)
    """
    kind = numpy_dtype(output_type)
    index_tensor, shape = as_tensor(indices), as_tensor(dense_shape)
    a, b, c = (as_tensor(x, kind) for x in (values, mat1, mat2))
    if index_tensor._spec.dtype.kind != "i" or min(b.ndim, c.ndim) < 2:
        raise ValueError(
            "sampled_addmm: expected integer indices, and matrices. Received: indices of "
            f"dtype {index_tensor.dtype.name}, shapes {b._spec.shape} and {c._spec.shape}."
        )
    size = (b.shape[-2], c.shape[-1])
    if tuple(np.asarray(shape).tolist()[-2:]) != size or b.shape[-1] != c.shape[-2]:
        raise ValueError(
            f"sampled_addmm: a product of shapes {tuple(b.shape)} and {tuple(c.shape)} does not "
            f"have the dense_shape {np.asarray(shape).tolist()}."
        )
    batch = b.ndim - 2
    columns = transpose(c, perm=(*range(batch), batch + 1, batch))
    if not batch:
        products = sampled_matmul(b, columns, index_tensor)
    else:
        rows, others = (
            indexing.gather_nd(x, index_tensor[..., i : i + 1], batch_dims=batch)
            for i, x in enumerate((b, columns))
        )
        products = reduction.sum(rows * others, axis=(batch + 1,), keepdims=False)
    return index_tensor, operand(beta, a) * a + operand(alpha, a) * products, shape


# Elementwise products with a dense tensor that broadcasts to the sparse one


def _values_and_dense(x: SparseTensor, dense: Any, op_name: str) -> tuple[Tensor, Tensor]:
    """Returns the values of a sparse tensor, and the elements of a dense one at its indices."""
    shape = shape_of(x)
    dense = as_tensor(dense, x.values._spec.dtype)
    if broadcast(shape, tuple(dense.shape)) != shape:
        raise invalid(
            f"{op_name}: a tensor of shape {tuple(dense.shape)} does not broadcast to the shape "
            f"{shape} of the SparseTensor."
        )
    if not dense.ndim:
        return x.values, broadcast_to(dense, shape=tuple(x.values.shape))
    not_broadcast = np.array([n != 1 for n in dense.shape], np.int64)
    indices = x.indices[:, len(shape) - dense.ndim :] * not_broadcast
    return x.values, indexing.gather_nd(dense, indices, batch_dims=0)


def _multiply(self: SparseTensor, other: Any) -> SparseTensor:
    values, factors = _values_and_dense(self, other, "multiply")
    return self.with_values(values * factors)


def _divide(self: SparseTensor, other: Any) -> SparseTensor:
    values, divisors = _values_and_dense(self, other, "divide")
    divisors = _check_nonzero(divisors)
    return self.with_values(true_divide(values, divisors))


@host_function
def _check_nonzero(divisors: Tensor) -> Tensor:
    if not np.asarray(divisors).all():
        raise invalid("divide: a SparseTensor cannot be divided by zero. Divide its values.")
    return divisors


def _refuse(self: SparseTensor, other: Any) -> Any:
    """Raises an error with advice for a tensor; Python reports other operand types itself."""
    if tensor_or_variable(other) is None:
        return NotImplemented
    raise NotOneTensor(self)


SparseTensor.__mul__ = SparseTensor.__rmul__ = _multiply
SparseTensor.__truediv__ = _divide
for _name in ("add", "sub", "truediv", "floordiv", "mod", "pow", "matmul"):
    setattr(SparseTensor, f"__r{_name}__", _refuse)


# Reductions


def reduce_sum(
    sp_input: Any,
    axis: Any = None,
    keepdims: bool | None = None,
    output_is_sparse: bool = False,
    name: str | None = None,
) -> Tensor | SparseTensor:
    """Sums over `axis`: one axis, several, or `None` for all. The result is dense or sparse.

    >>> x = tf.SparseTensor([[0, 1], [1, 1]], [5.0, 7.0], [2, 3])
    >>> tf.sparse.reduce_sum(x, axis=0).numpy()
    array([ 0., 12.,  0.], dtype=float32)
    """
    return _reduce(as_sparse(sp_input), axis, keepdims, output_is_sparse, scatter_sum, "reduce_sum")


def reduce_max(
    sp_input: Any,
    axis: Any = None,
    keepdims: bool | None = None,
    output_is_sparse: bool = False,
    name: str | None = None,
) -> Tensor | SparseTensor:
    """Computes the maximum over `axis` of the explicit values; 0 where there are none.

    >>> x = tf.SparseTensor([[0, 1], [1, 1]], [-5.0, -7.0], [2, 3])
    >>> tf.sparse.reduce_max(x, axis=0).numpy()
    array([ 0., -5.,  0.], dtype=float32)
    """
    return _reduce(
        as_sparse(sp_input), axis, keepdims, output_is_sparse, _segment_max, "reduce_max"
    )


def _segment_max(values: Tensor, groups: Tensor, count: int) -> Tensor:
    """Computes `count` maxima; `groups` has the index of the maximum each value belongs to."""
    start = _initial_maximum(groups, count, values._spec.dtype)
    indices = reshape(groups, shape=(*groups._spec.shape, 1))
    return indexing.max_nd(start, values, indices, batch_dims=0)


@host_function
def _initial_maximum(groups: Tensor, count: int, dtype: np.dtype) -> Tensor:
    """Returns the lowest value of the dtype for groups with values, and 0 for empty ones."""
    start = np.zeros(count, dtype)
    start[np.asarray(groups)] = np.iinfo(dtype).min if dtype.kind in "iu" else -np.inf
    return Tensor(start)


def _reduce(
    x: SparseTensor, axis: Any, keepdims: Any, as_sparse: bool, reduce: Callable, op_name: str
) -> Tensor | SparseTensor:
    shape = shape_of(x)
    axes = range(len(shape)) if axis is None else _axes(axis, len(shape), op_name)
    kept = [i for i in range(len(shape)) if i not in axes]
    sizes = tuple(shape[i] for i in kept)
    if not as_sparse:
        y = reduce(x.values, _flat_indices(x.indices, kept, sizes, op_name), math.prod(sizes))
        return reshape(y, shape=_reduce_shape(axes, shape) if keepdims else sizes)
    indices, groups = _group_indices(
        x.indices, kept, sizes, op_name, len(shape) if keepdims else None
    )
    values = reduce(x.values, groups, indices._spec.shape[0])
    return make_sparse(indices, values, _reduce_shape(axes, shape) if keepdims else sizes)


@host_function
def _flat_indices(indices: Tensor, kept: list[int], sizes: tuple[int, ...], op_name: str) -> Tensor:
    """Returns the flat index along the axes `kept`, in an array of shape `sizes`."""
    kept_indices = np.asarray(indices)[:, kept]
    check_in_bounds(kept_indices, sizes, op_name)
    return Tensor(
        np.ravel_multi_index(kept_indices.T, sizes)
        if kept
        else np.zeros(len(kept_indices), np.int64)
    )


@host_function(dynamic_shapes=True)
def _group_indices(
    indices: Tensor, kept: list[int], sizes: tuple[int, ...], op_name: str, rank: int | None
) -> tuple[Tensor, Tensor]:
    """Returns the unique indices along the axes `kept`, and the position of each index.

    With `rank`, the unique indices have that many columns, with zeros along the other axes.
    """
    kept_indices = np.asarray(indices)[:, kept]
    check_in_bounds(kept_indices, sizes, op_name)
    kept_indices, groups = unique_rows(kept_indices)
    if rank is None:
        return Tensor(kept_indices), Tensor(groups)
    padded = np.zeros((len(kept_indices), rank), np.int64)
    padded[:, kept] = kept_indices
    return Tensor(padded), Tensor(groups)


def _axes(axis: Any, rank: int, op_name: str) -> set[int]:
    return {normalize_axis(a, rank, op_name) for a in integer_array(axis, op_name).reshape(-1)}


def _reduce_shape(axes: Any, shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(1 if i in axes else n for i, n in enumerate(shape))


def softmax(sp_input: Any, name: str | None = None) -> SparseTensor:
    """Computes the softmax of the explicit values along the last axis.

    >>> x = tf.SparseTensor([[0, 0], [0, 2]], [1.0, 1.0], [2, 3])
    >>> tf.sparse.softmax(x).values.numpy()
    array([0.5, 0.5], dtype=float32)
    """
    x = as_sparse(sp_input)
    if x.shape.rank < 2:
        raise invalid(f"softmax: expected at least 2 axes. Received: shape {shape_of(x)}.")
    if x.values._spec.dtype not in dtypes.FLOATING:
        raise invalid(f"softmax: expected floats. Received: dtype {x.dtype.name}. Use tf.cast.")
    rows, groups = _unique_indices(x.indices[:, :-1])
    count, _ = rows._spec.shape
    largest = stop_gradient(_segment_max(x.values, groups, count))
    e = exp(x.values - take(largest, groups))
    return x.with_values(e / take(scatter_sum(e, groups, count), groups))


HANDLERS["divide"] = HANDLERS["truediv"] = lambda _, x, y, name=None: x / y
