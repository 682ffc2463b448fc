"""Matrices in the last two axes: what rules and public functions do to them all the time."""

from __future__ import annotations

import numpy as np

from retrograde.core.apply import Primitive
from retrograde.ops._families import conj
from retrograde.ops.arithmetic import mask
from retrograde.ops.contraction import matmul
from retrograde.ops.shaping import everywhere, put_slice, reshape, take_slice, transpose

LAPACK = frozenset(map(np.dtype, "fdFD"))  # single and double precision, real and complex


def of_matrices(name, kernel, *, accepts=LAPACK, **rules):
    """A primitive of matrices, whose kernel takes any number of leading axes, the same for all."""

    def batch(batched, *xs, **attrs):
        return primitive(*everywhere(batched, xs), **attrs)

    primitive = Primitive(name, kernel, batch=batch, accepts=accepts, **rules)
    return primitive


def transposed(x):
    """The matrices, transposed."""
    return transpose(x, perm=(*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


def adjoint(x):
    """The matrices, transposed and conjugated."""
    return conj(transposed(x))


def product(a, b, adjoint_a=False, adjoint_b=False):
    """The product of two matrices, either of which may be transposed and conjugated first."""
    a = conj(a) if adjoint_a else a
    b = conj(b) if adjoint_b else b
    return matmul(a, b, transpose_a=adjoint_a, transpose_b=adjoint_b)


def columns_times(x, d):
    """`x` with its columns multiplied by the elements of `d`."""
    *batch, n = d.shape
    return x * reshape(d, shape=(*batch, 1, n))


def rows_times(x, d):
    """`x` with its rows multiplied by the elements of `d`."""
    return x * reshape(d, shape=(*d.shape, 1))


def block(x, rows=None, columns=None):
    """The matrices, cut down to some of their rows and columns, each from one to before another."""
    *batch, height, width = x.shape
    whole = tuple((0, n, 1) for n in batch)
    rows, columns = rows or (0, height), columns or (0, width)
    return take_slice(x, where=(*whole, (*rows, 1), (*columns, 1)))


# Diagonals and bands. Those above the main diagonal have positive numbers.


def length_of_diagonal(rows, columns, k):
    """How many elements diagonal `k` has."""
    return max(0, min(rows + min(k, 0), columns - max(k, 0)))


def _walk(rows, columns, k):
    """Diagonal `k` of a matrix laid out row by row, as a strided slice of it."""
    length = length_of_diagonal(rows, columns, k)
    start = k if k >= 0 else -k * columns
    return start, start + (length - 1) * (columns + 1) + 1 if length else start, columns + 1


def diagonal(x, k=0):
    """Diagonal `k` of the matrices."""
    *batch, rows, columns = x.shape
    flat = reshape(x, shape=(*batch, rows * columns))
    whole = tuple((0, n, 1) for n in batch)
    return take_slice(flat, where=(*whole, _walk(rows, columns, k)))


def on_diagonal(d, k=0, rows=None, columns=None):
    """Matrices of zeros, with `d` on diagonal `k`; square and as small as can be if not told."""
    *batch, length = d.shape
    rows = length + abs(k) if rows is None else rows
    columns = length + abs(k) if columns is None else columns
    whole = tuple((0, n, 1) for n in batch)
    where = (*whole, _walk(rows, columns, k))
    flat = put_slice(d, shape=(*batch, rows * columns), where=where)
    return reshape(flat, shape=(*batch, rows, columns))


def within(rows, columns, low, high):
    """Where a matrix has the diagonals from `low` to `high`."""
    k = np.arange(columns) - np.arange(rows)[:, None]
    return (k >= low) & (k <= high)


def band(x, low, high):
    """The matrices with all diagonals but those from `low` to `high` set to 0."""
    return mask(x, within(*x.shape[-2:], low, high))


def lower_triangle(x, k=0):
    """The matrices with all above diagonal `k` set to 0."""
    return band(x, -x.shape[-2], k)


def upper_triangle(x, k=0):
    """The matrices with all below diagonal `k` set to 0."""
    return band(x, k, x.shape[-1])
