"""Helpers for matrices in the last two axes, used by rules and public functions."""

from __future__ import annotations

import numpy as np

from retrograde.core.apply import Primitive
from retrograde.ops._families import conj
from retrograde.ops.arithmetic import mask
from retrograde.ops.contraction import matmul
from retrograde.ops.shaping import broadcast_batched, put_slice, reshape, take_slice, transpose

LAPACK = frozenset(map(np.dtype, "fdFD"))  # single and double precision, real and complex


def matrix_primitive(name, kernel, *, accepts=LAPACK, **rules):
    """Creates a primitive of matrices, whose inputs have the same leading axes."""

    def batch(batched, *xs, **attrs):
        return primitive(*broadcast_batched(batched, xs), **attrs)

    primitive = Primitive(name, kernel, batch=batch, accepts=accepts, **rules)
    return primitive


def transpose_matrices(x):
    """Transposes the matrices."""
    return transpose(x, perm=(*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


def adjoint(x):
    """Returns the conjugate transposes of the matrices."""
    return conj(transpose_matrices(x))


def product(a, b, adjoint_a=False, adjoint_b=False):
    """Returns a matrix product. The flags replace the factors with their adjoints."""
    a = conj(a) if adjoint_a else a
    b = conj(b) if adjoint_b else b
    return matmul(a, b, transpose_a=adjoint_a, transpose_b=adjoint_b)


def scale_columns(x, d):
    """Multiplies the columns of `x` by the elements of `d`."""
    *batch, n = d.shape
    return x * reshape(d, shape=(*batch, 1, n))


def scale_rows(x, d):
    """Multiplies the rows of `x` by the elements of `d`."""
    return x * reshape(d, shape=(*d.shape, 1))


def block(x, rows=None, columns=None):
    """Returns submatrices; `rows` and `columns` are pairs of start and stop, or `None` for all."""
    *batch, height, width = x.shape
    full = tuple((0, n, 1) for n in batch)
    rows, columns = rows or (0, height), columns or (0, width)
    return take_slice(x, where=(*full, (*rows, 1), (*columns, 1)))


# Diagonals and bands. Diagonals above the main one have positive numbers.


def length_of_diagonal(rows, columns, k):
    """Returns the number of elements of diagonal `k`."""
    return max(0, min(rows + min(k, 0), columns - max(k, 0)))


def _diagonal_slice(rows, columns, k):
    """Returns diagonal `k` as a strided slice of the flattened matrix."""
    length = length_of_diagonal(rows, columns, k)
    start = k if k >= 0 else -k * columns
    return start, start + (length - 1) * (columns + 1) + 1 if length else start, columns + 1


def diagonal(x, k=0):
    """Returns diagonal `k` of the matrices."""
    *batch, rows, columns = x.shape
    flat = reshape(x, shape=(*batch, rows * columns))
    full = tuple((0, n, 1) for n in batch)
    return take_slice(flat, where=(*full, _diagonal_slice(rows, columns, k)))


def diagonal_matrix(d, k=0, rows=None, columns=None):
    """Returns matrices with `d` on diagonal `k`, else 0; by default the smallest square ones."""
    *batch, length = d.shape
    rows = length + abs(k) if rows is None else rows
    columns = length + abs(k) if columns is None else columns
    full = tuple((0, n, 1) for n in batch)
    where = (*full, _diagonal_slice(rows, columns, k))
    flat = put_slice(d, shape=(*batch, rows * columns), where=where)
    return reshape(flat, shape=(*batch, rows, columns))


def band_mask(rows, columns, low, high):
    """Returns a mask of the diagonals from `low` to `high`."""
    k = np.arange(columns) - np.arange(rows)[:, None]
    return (k >= low) & (k <= high)


def band(x, low, high):
    """Sets all diagonals outside the range from `low` to `high` to 0."""
    return mask(x, band_mask(*x.shape[-2:], low, high))


def lower_triangle(x, k=0):
    """Sets all elements above diagonal `k` to 0."""
    return band(x, -x.shape[-2], k)


def upper_triangle(x, k=0):
    """Sets all elements below diagonal `k` to 0."""
    return band(x, k, x.shape[-1])
