"""Sparse-dense matrix products, and selected elements of dense products.

A sparse matrix is given by its values and by `indices`, a row and a column for each value. The two
primitives are each other's derivative.
"""

from __future__ import annotations

import numpy as np

from retrograde.core.apply import Primitive
from retrograde.ops._arrays import sparse_matrix, widen
from retrograde.ops._families import conj
from retrograde.ops.indexing import offset_indices
from retrograde.ops.shaping import broadcast_batched, reshape, reverse, stack, take_slice, transpose
from retrograde.values.errors import invalid

_BLOCK = 1 << 18  # elements of each factor to gather at a time


def _check_indices(indices, shape):
    for axis, name in enumerate(("row", "column")):
        wrong = (indices[:, axis] < 0) | (indices[:, axis] >= shape[axis])
        if wrong.any():
            i = int(np.argmax(wrong))
            raise invalid(
                f"The {name} in indices[{i}] = {indices[i].tolist()} is out of bounds for "
                f"a matrix of shape {tuple(shape)}."
            )


def _sparse_matmul_kernel(xp, values, b, indices, *, shape):
    rows, columns = indices[:, 0], indices[:, 1]
    v, wide_b = widen(values), widen(b)
    if xp is np:
        _check_indices(indices, shape)
        y = sparse_matrix(v, rows, columns, shape) @ wide_b
    else:
        y = xp.zeros((shape[0], b.shape[1]), v.dtype).at[rows].add(v[:, None] * wide_b[columns])
    return y.astype(values.dtype, copy=False)


def _sampled_matmul_kernel(xp, a, b, indices):
    rows, columns = indices[:, 0], indices[:, 1]
    if xp is not np:
        return (widen(a)[rows] * widen(b)[columns]).sum(1).astype(a.dtype)
    _check_indices(indices, (a.shape[0], b.shape[0]))
    y = np.empty(len(indices), a.dtype)
    step = max(1, _BLOCK // max(1, a.shape[1]))
    for start in range(0, len(indices), step):
        part = slice(start, start + step)
        factors = widen(a[rows[part]]), widen(b[columns[part]])
        y[part] = np.einsum("ij,ij->i", *factors)
    return y


def _swap(indices):
    return reverse(indices, axis=(1,))


# A batch of matrices becomes one block-diagonal matrix.


def _column(indices, i):
    batch, count, _ = indices.shape
    where = ((0, batch, 1), (0, count, 1), (i, i + 1, 1))
    return reshape(take_slice(indices, where=where), shape=(batch, count))


def _block_diagonal_indices(indices, shape):
    moved = [offset_indices(_column(indices, i), size=shape[i], axis=0) for i in range(2)]
    return reshape(stack(*moved, axis=2), shape=(indices.shape[0] * indices.shape[1], 2))


def _merge_batch(x):
    return reshape(x, shape=(x.shape[0] * x.shape[1], *x.shape[2:]))


def _sparse_matmul_batch(batched, values, b, indices, *, shape):
    rows, inner = shape
    if batched == (False, True, False):
        batch, _, width = b.shape
        side_by_side = reshape(transpose(b, perm=(1, 0, 2)), shape=(inner, batch * width))
        y = reshape(
            sparse_matmul(values, side_by_side, indices, shape=shape), shape=(rows, batch, width)
        )
        return transpose(y, perm=(1, 0, 2))
    values, b, indices = broadcast_batched(batched, (values, b, indices))
    batch, _, width = b.shape
    blocks = _block_diagonal_indices(indices, shape)
    y = sparse_matmul(
        _merge_batch(values), _merge_batch(b), blocks, shape=(batch * rows, batch * inner)
    )
    return reshape(y, shape=(batch, rows, width))


def _sampled_matmul_batch(batched, a, b, indices):
    a, b, indices = broadcast_batched(batched, (a, b, indices))
    blocks = _block_diagonal_indices(indices, (a.shape[1], b.shape[1]))
    return reshape(
        sampled_matmul(_merge_batch(a), _merge_batch(b), blocks), shape=indices.shape[:2]
    )


sparse_matmul = Primitive(  # y = A b, where A of `shape` holds `values` at `indices`
    "sparse_matmul",
    _sparse_matmul_kernel,
    vjps=(
        lambda g, _y, _values, b, indices, **_: sampled_matmul(g, conj(b), indices),
        lambda g, _y, values, _b, indices, *, shape: sparse_matmul(
            conj(values), g, _swap(indices), shape=shape[::-1]
        ),
        None,
    ),
    batch=_sparse_matmul_batch,
)

sampled_matmul = Primitive(  # the elements of a b^T at `indices`
    "sampled_matmul",
    _sampled_matmul_kernel,
    vjps=(
        lambda g, _y, _a, b, indices: sparse_matmul(
            g, conj(b), indices, shape=(_a.shape[0], b.shape[0])
        ),
        lambda g, _y, a, _b, indices: sparse_matmul(
            g, conj(a), _swap(indices), shape=(_b.shape[0], a.shape[0])
        ),
        None,
    ),
    batch=_sampled_matmul_batch,
)
