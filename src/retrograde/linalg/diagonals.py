"""Transposes, diagonals and bands."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from retrograde.core.apply import apply
from retrograde.core.tensor import Tensor
from retrograde.linalg._inputs import matrices_of
from retrograde.ops import arithmetic as ar
from retrograde.ops import matrices, reduction
from retrograde.ops._families import conj
from retrograde.ops.arguments import integer, integer_array
from retrograde.ops.conversion import as_tensor, same_dtype
from retrograde.ops.shaping import concat, reshape, stack, take_slice
from retrograde.values.arguments import as_text, shown
from retrograde.values.composites import dispatched
from retrograde.values.errors import invalid, to_list


def matrix_transpose(
    a: Any, name: str | None = "matrix_transpose", conjugate: bool = False
) -> Tensor:
    """Transposes the matrices in the last two axes; with `conjugate`, takes the adjoint.

    >>> tf.linalg.matrix_transpose([[1, 2, 3], [4, 5, 6]]).numpy().tolist()
    [[1, 4], [2, 5], [3, 6]]
    """
    x = as_tensor(a)
    if x.ndim < 2:
        raise ValueError(
            f"matrix_transpose: expected a tensor of rank >= 2. Received: shape {x._spec.shape}."
        )
    y = matrices.transpose_matrices(x)
    return conj(y) if conjugate else y


@dispatched
def adjoint(matrix: Any, name: str | None = None) -> Tensor:
    """Computes the conjugate transpose of the matrices in the last two axes."""
    return matrix_transpose(matrix, conjugate=True)


@dispatched
def trace(x: Any, name: str | None = None) -> Tensor:
    """Computes the sum of the main diagonal of the matrices in the last two axes.

    >>> tf.linalg.trace([[1.0, 2.0], [3.0, 4.0]]).numpy()
    np.float32(5.0)
    """
    d = diag_part(x)
    return apply(reduction.sum, (d,), {"axis": (d.ndim - 1,), "keepdims": False})


def _band(k: Any, op_name: str) -> tuple[int, int]:
    """Returns the lowest and the highest diagonal from `k`, an integer or a pair."""
    ks = np.ravel(integer_array(k, op_name)).tolist()
    if len(ks) not in (1, 2) or ks[0] > ks[-1]:
        raise invalid(
            f"{op_name}: `k` must be an integer or an ascending pair of integers. Received: "
            f"{as_text(k)}."
        )
    return ks[0], ks[-1]


def _padding(align: str, k: int, missing: int) -> tuple[int, int]:
    """Returns the padding before and after a diagonal that is shorter than the longest."""
    if align not in ("RIGHT_LEFT", "LEFT_RIGHT", "LEFT_LEFT", "RIGHT_RIGHT"):
        raise invalid(
            "`align` must name the sides for super- and subdiagonals, such as 'RIGHT_LEFT'. "
            f"Received: {shown(align)}."
        )
    side = align.split("_")[0 if k >= 0 else 1]  # diagonal 0 is never short
    return (missing, 0) if side == "RIGHT" else (0, missing)


@dispatched
def diag_part(
    input: Any,
    name: str | None = "diag_part",
    k: Any = 0,
    padding_value: Any = 0,
    align: str = "RIGHT_LEFT",
) -> Tensor:
    """Extracts diagonal `k` of the matrices in the last two axes; superdiagonals are positive.

    For a pair `k`, it returns all diagonals from the lower to the higher, the highest first.
    Shorter diagonals are padded with `padding_value`, on the side opposite to `align`.

    >>> tf.linalg.diag_part([[1, 2, 3], [4, 5, 6]], k=1).numpy()
    array([2, 6], dtype=int32)
    """
    x = matrices_of(input, "diag_part")
    low, high = _band(k, "diag_part")
    rows, columns = x._spec.shape[-2:]
    for bound in (low, high):
        if bound and not -rows < bound < columns:
            raise invalid(
                f"diag_part: diagonal {bound} is outside matrices with {rows} rows and "
                f"{columns} columns. Expected a number between {-rows} and {columns}."
            )
    if low == high:
        return matrices.diagonal(x, low)
    longest = max(matrices.length_of_diagonal(rows, columns, i) for i in range(low, high + 1))
    filler = _filler(padding_value, x._spec.dtype)
    parts = [
        _pad_diagonal(matrices.diagonal(x, i), i, longest, filler, align)
        for i in range(high, low - 1, -1)
    ]
    return stack(*parts, axis=x.ndim - 2)


def _pad_diagonal(d: Tensor, k: int, length: int, filler: Tensor, align: str) -> Tensor:
    *batch, n = d._spec.shape
    sizes = _padding(align, k, length - n)
    before, after = (
        Tensor(np.full((*batch, size), filler._array, d._spec.dtype)) for size in sizes
    )
    return concat(before, d, after, axis=d.ndim - 1)


def diag(
    diagonal: Any,
    name: str | None = "diag",
    k: Any = 0,
    num_rows: Any = -1,
    num_cols: Any = -1,
    padding_value: Any = 0,
    align: str = "RIGHT_LEFT",
) -> Tensor:
    """Creates matrices with `diagonal` on diagonal `k` and `padding_value` elsewhere.

    For a pair `k`, the second to last axis of `diagonal` has one row per diagonal, the highest
    first. Matrices have the smallest possible size, and are square, unless `num_rows` or `num_cols`
    is given.

    >>> tf.linalg.diag([1, 2], k=1).numpy()
    array([[0, 1, 0],
           [0, 0, 2],
           [0, 0, 0]], dtype=int32)
    """
    d = as_tensor(diagonal)
    low, high = _band(k, "diag")
    min_ndim = 1 if low == high else 2
    if d.ndim < min_ndim or (min_ndim == 2 and d._spec.shape[-2] != high - low + 1):
        raise invalid(
            f"diag: shape {d._spec.shape} does not match diagonals {low} to {high}. Expected at "
            f"least {min_ndim} axes; several diagonals need one row each in the second to last "
            "axis."
        )
    rows, columns = _extent(d._spec.shape[-1], low, high, num_rows, num_cols)
    y = None
    for i, row in _split_diagonals(d, low, high, rows, columns, align):
        part = matrices.diagonal_matrix(row, i, rows, columns)
        y = part if y is None else _select_band(part, y, i, i, rows, columns)
    if isinstance(padding_value, range):
        padding_value = to_list("diag", padding_value)
    if not np.any(np.asarray(padding_value)):
        return y
    filler = _filler(padding_value, d._spec.dtype)
    return _select_band(y, filler, low, high, rows, columns)


def _filler(padding_value: Any, dtype: np.dtype) -> Tensor:
    """Converts the padding value. For bool tensors, any number is accepted."""
    if dtype.kind == "b" and isinstance(padding_value, (int, float)):
        padding_value = bool(padding_value)
    return as_tensor(padding_value, dtype)


def _split_diagonals(
    d: Tensor, low: int, high: int, rows: int, columns: int, align: str
) -> Iterator[tuple[int, Tensor]]:
    """Yields the number and the elements of each diagonal in `d`."""
    if low == high:
        yield low, d
        return
    *batch, _, longest = d._spec.shape
    all_batch = tuple((0, n, 1) for n in batch)
    for k in range(low, high + 1):
        length = matrices.length_of_diagonal(rows, columns, k)
        before, after = _padding(align, k, longest - length)
        index = high - k
        row = take_slice(d, where=(*all_batch, (index, index + 1, 1), (before, longest - after, 1)))
        yield k, reshape(row, shape=(*batch, length))


def _extent(length: int, low: int, high: int, num_rows: Any, num_cols: Any) -> tuple[int, int]:
    """Returns the size of matrices whose longest diagonal in the band has `length` elements."""
    requested = [integer(n, "diag") for n in (num_rows, num_cols)]
    rows, columns = length - min(high, 0), length + max(low, 0)
    if requested == [-1, -1]:
        return max(rows, columns), max(rows, columns)
    result = tuple(n if n != -1 else m for n, m in zip(requested, (rows, columns), strict=True))
    if result[0] < rows or result[1] < columns or (result[0] != rows and result[1] != columns):
        raise invalid(
            f"diag: {result[0]} rows and {result[1]} columns do not match diagonals {low} to "
            f"{high} of length {length}. Expected at least {rows} rows and {columns} columns, with "
            "equality in one of them."
        )
    return result


def _select_band(x1: Tensor, x2: Tensor, low: int, high: int, rows: int, columns: int) -> Tensor:
    """Selects `x1` on the diagonals from `low` to `high` and `x2` elsewhere."""
    inside = Tensor(matrices.band_mask(rows, columns, low, high))
    return apply(ar.select, (inside, x1, x2))


def set_diag(
    input: Any,
    diagonal: Any,
    name: str | None = "set_diag",
    k: Any = 0,
    align: str = "RIGHT_LEFT",
) -> Tensor:
    """Replaces diagonal `k`, or a band of diagonals, of the matrices in the last two axes.

    >>> tf.linalg.set_diag([[1, 2], [3, 4]], [8, 9]).numpy()
    array([[8, 2],
           [3, 9]], dtype=int32)
    """
    x, d = same_dtype(input, diagonal)
    x = matrices_of(x, "set_diag")
    low, high = _band(k, "set_diag")
    *batch, rows, columns = x._spec.shape
    longest = max(matrices.length_of_diagonal(rows, columns, i) for i in range(low, high + 1))
    expected = (*batch, longest) if low == high else (*batch, high - low + 1, longest)
    if d._spec.shape != expected or d._spec.dtype != x._spec.dtype:
        raise invalid(
            f"set_diag: the diagonal has shape {d._spec.shape} and dtype {d.dtype.name}. Expected "
            f"{expected} and {x.dtype.name} for matrices of shape {x._spec.shape}."
        )
    for i, row in _split_diagonals(d, low, high, rows, columns, align):
        x = _select_band(matrices.diagonal_matrix(row, i, rows, columns), x, i, i, rows, columns)
    return x


def band_part(input: Any, num_lower: Any, num_upper: Any, name: str | None = None) -> Tensor:
    """Sets all elements outside a central band to 0.

    `num_lower` subdiagonals and `num_upper` superdiagonals are kept, or all if the number is
    negative.

    >>> tf.linalg.band_part([[1, 2], [3, 4]], -1, 0).numpy()
    array([[1, 0],
           [3, 4]], dtype=int32)
    """
    x = matrices_of(input, "band_part")
    rows, columns = x._spec.shape[-2:]
    lower = _band_width(num_lower, rows, "num_lower")
    upper = _band_width(num_upper, columns, "num_upper")
    return matrices.band(x, -lower, upper)


def _band_width(count: Any, size: int, argument: str) -> int:
    n = integer(count, "band_part", TypeError)
    if n > size:
        raise invalid(
            f"band_part: {argument} must be negative or at most {size}, the size of the matrix. "
            f"Received: {n}."
        )
    return size if n < 0 else n


def tensor_diag(diagonal: Any, name: str | None = None) -> Tensor:
    """Creates a tensor of twice the rank with `diagonal` where both halves of an index agree.

    >>> tf.linalg.tensor_diag([1, 2]).numpy()
    array([[1, 0],
           [0, 2]], dtype=int32)
    """
    d = as_tensor(diagonal)
    if not d.ndim:
        raise invalid("tensor_diag: input must have rank >= 1. Received: a scalar.")
    size = math.prod(d._spec.shape)
    matrix = matrices.diagonal_matrix(reshape(d, shape=(size,)), 0, size, size)
    return reshape(matrix, shape=d._spec.shape * 2)


def tensor_diag_part(input: Any, name: str | None = None) -> Tensor:
    """Extracts the elements where both halves of an index agree; the inverse of `tensor_diag`."""
    x = as_tensor(input)
    half = x.ndim // 2
    shape = x._spec.shape[:half]
    if x._spec.shape != shape * 2:
        raise invalid(
            f"tensor_diag_part: both halves of the shape must be equal. Received: {x._spec.shape}."
        )
    size = math.prod(shape)
    return reshape(matrices.diagonal(reshape(x, shape=(size, size)), 0), shape=shape)
