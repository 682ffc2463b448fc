"""tf.linalg: products, diagonals, bands and norms. `name` is accepted and ignored."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from retrograde.arrays import eye
from retrograde.arrays._arguments import integer, integer_array
from retrograde.clipping import global_norm
from retrograde.core import dtypes
from retrograde.core.conversion import held_by
from retrograde.core.dispatch import apply
from retrograde.core.errors import FailedPreconditionError, UnimplementedError, invalid
from retrograde.core.shapes import normalise_axes
from retrograde.core.tensor import Tensor
from retrograde.math import l2_normalize
from retrograde.ops import arithmetic as ar
from retrograde.ops import contraction, reduction
from retrograde.ops._families import conj
from retrograde.ops.casting import to_dtype
from retrograde.ops.conversion import as_tensor, one_dtype, same_dtype
from retrograde.ops.elementary import sqrt
from retrograde.ops.indexing import gather
from retrograde.ops.operators import absolute_of
from retrograde.ops.shaping import concat, put_slice, reshape, stack, take_slice, transpose

__all__ = [
    "adjoint",
    "band_part",
    "cross",
    "diag",
    "diag_part",
    "eye",
    "global_norm",
    "l2_normalize",
    "matmul",
    "matrix_transpose",
    "matvec",
    "norm",
    "normalize",
    "set_diag",
    "tensor_diag",
    "tensor_diag_part",
    "tensordot",
    "trace",
]


# Products


def matmul(
    a: Any,
    b: Any,
    transpose_a: bool = False,
    transpose_b: bool = False,
    adjoint_a: bool = False,
    adjoint_b: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
    output_type: Any = None,
    grad_a: bool = False,
    grad_b: bool = False,
    name: str | None = None,
) -> Tensor:
    """The product of two matrices, or of many along the leading axes, which broadcast.

    A matrix may be transposed, or conjugated as well (`adjoint_a`), on the way in. `output_type` is
    the dtype to multiply in. `a_is_sparse` and its like are hints, which are not needed here.

    >>> tf.linalg.matmul([[1.0, 2.0]], [[3.0, 4.0]], transpose_b=True).numpy()
    array([[11.]], dtype=float32)
    """
    _one_of(transpose_a, adjoint_a, "a")
    _one_of(transpose_b, adjoint_b, "b")
    if type(a) is not Tensor or type(b) is not Tensor:
        a, b = same_dtype(a, b)
    if output_type is not None:
        dtype = dtypes.as_dtype(output_type).numpy_dtype
        a, b = to_dtype(a, dtype), to_dtype(b, dtype)
    a = conj(a) if adjoint_a else a
    b = conj(b) if adjoint_b else b
    flip_a, flip_b = bool(transpose_a or adjoint_a), bool(transpose_b or adjoint_b)
    if not (flip_a or flip_b):
        return apply(contraction.matmul, (a, b))
    return apply(contraction.matmul, (a, b), {"transpose_a": flip_a, "transpose_b": flip_b})


def _one_of(transpose: Any, adjoint: Any, which: str) -> None:
    if transpose and adjoint:
        raise ValueError(
            f"Only one of `transpose_{which}` and `adjoint_{which}` can be True. Received: both."
        )


def matvec(
    a: Any,
    b: Any,
    transpose_a: bool = False,
    adjoint_a: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
    name: str | None = None,
) -> Tensor:
    """The product of a matrix and a vector, or of many along the leading axes.

    >>> tf.linalg.matvec([[1.0, 2.0], [3.0, 4.0]], [1.0, 1.0]).numpy()
    array([3., 7.], dtype=float32)
    """
    a, b = same_dtype(a, b)
    if not b.ndim:
        raise invalid("matvec: b must have at least one axis. Received: a scalar.")
    column = reshape(b, shape=(*b._array.shape, 1))
    y = matmul(a, column, transpose_a=transpose_a, adjoint_a=adjoint_a)
    return reshape(y, shape=y._array.shape[:-1])


def tensordot(a: Any, b: Any, axes: Any, name: str | None = None) -> Tensor:
    """The sum over products of `a` and `b` along `axes`.

    `axes` is a number n, for the last n axes of `a` and the first n of `b`, or a pair of lists of
    axes, one for each.

    >>> tf.linalg.tensordot([[1.0, 2.0], [3.0, 4.0]], [10.0, 100.0], axes=1).numpy()
    array([210., 430.], dtype=float32)
    """
    a, b = same_dtype(a, b)
    of_a, of_b = _contracted(axes, a, b)
    if _sizes(a, of_a) != _sizes(b, of_b):
        raise invalid(
            f"tensordot: axes {list(of_a)} of shape {a._array.shape} and {list(of_b)} of "
            f"{b._array.shape} differ in size. Expected the same."
        )
    free_a = tuple(i for i in range(a.ndim) if i not in of_a)
    free_b = tuple(i for i in range(b.ndim) if i not in of_b)
    factors = _matrix(a, free_a, of_a), _matrix(b, free_b, of_b)
    product = apply(contraction.matmul, factors, {"transpose_a": False, "transpose_b": True})
    return reshape(product, shape=_sizes(a, free_a) + _sizes(b, free_b))


def _sizes(x: Tensor, axes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(x._array.shape[i] for i in axes)


def _matrix(x: Tensor, rows: tuple[int, ...], columns: tuple[int, ...]) -> Tensor:
    """`x` as a matrix: some of its axes as rows, the others as columns."""
    perm = rows + columns
    moved = x if perm == tuple(range(x.ndim)) else transpose(x, perm=perm)
    return reshape(moved, shape=(math.prod(_sizes(x, rows)), math.prod(_sizes(x, columns))))


def _contracted(axes: Any, a: Tensor, b: Tensor) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The axes of `a` and of `b` to sum over."""
    if isinstance(axes, (int, np.integer)):
        n = int(axes)
        if n < 0:
            raise ValueError(f"tensordot: `axes` must be at least 0. Received: {n}.")
        for x in (a, b):
            if n > x.ndim:
                raise ValueError(
                    f"tensordot: `axes` must not be larger than the number of axes of either "
                    f"tensor. Received: {n} for shape {x._array.shape}."
                )
        return tuple(range(a.ndim - n, a.ndim)), tuple(range(n))
    if held_by(axes) is not None:
        axes = integer_array(axes, "tensordot").tolist()
    if not isinstance(axes, (list, tuple, np.ndarray)) or len(axes) != 2:
        raise ValueError(
            f"tensordot: `axes` must be an integer or have length 2. Received: {axes}."
        )
    of_a, of_b = (_places(part, x) for part, x in zip(axes, (a, b), strict=True))
    if len(of_a) != len(of_b):
        raise ValueError(
            f"tensordot: different numbers of axes for `a` and `b`. Received: {len(of_a)} and "
            f"{len(of_b)}."
        )
    return of_a, of_b


def _places(axes: Any, x: Tensor) -> tuple[int, ...]:
    """Axes of `x` in the order in which they are given."""
    given = np.ravel(integer_array(axes, "tensordot")).tolist()
    if not given:
        return ()
    normalise_axes(given, x.ndim, "tensordot")
    return tuple(axis % x.ndim for axis in given)


def cross(a: Any, b: Any, name: str | None = None) -> Tensor:
    """The vector product of vectors of length 3, which lie along the last axis.

    >>> tf.linalg.cross([1.0, 0.0, 0.0], [0.0, 1.0, 0.0]).numpy()
    array([0., 0., 1.], dtype=float32)
    """
    a, b = one_dtype((a, b))
    if a._array.shape != b._array.shape or not a.ndim:
        raise invalid(
            "cross: both inputs must have the same shape, with at least one axis. Received: "
            f"{a._array.shape} and {b._array.shape}."
        )
    if a._array.shape[-1] != 3:
        raise FailedPreconditionError(
            None,
            None,
            f"cross: expected vectors of length 3. Received: shape {a._array.shape}.",
        )
    ahead, behind = (Tensor(np.array(order, np.int32)) for order in ([1, 2, 0], [2, 0, 1]))
    at = {"axis": a.ndim - 1}
    first = apply(gather, (a, ahead), at) * apply(gather, (b, behind), at)
    return first - apply(gather, (a, behind), at) * apply(gather, (b, ahead), at)


# Transposes, diagonals, bands


def matrix_transpose(
    a: Any, name: str | None = "matrix_transpose", conjugate: bool = False
) -> Tensor:
    """The matrices in the last two axes, transposed, and with `conjugate` conjugated too.

    >>> tf.linalg.matrix_transpose([[1, 2, 3], [4, 5, 6]]).numpy().tolist()
    [[1, 4], [2, 5], [3, 6]]
    """
    x = as_tensor(a)
    if x.ndim < 2:
        raise ValueError(
            f"matrix_transpose: expected a matrix, or more axes. Received: shape {x._array.shape}."
        )
    y = transpose(x, perm=(*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))
    return conj(y) if conjugate else y


def adjoint(matrix: Any, name: str | None = None) -> Tensor:
    """The matrices in the last two axes, transposed and conjugated."""
    return matrix_transpose(matrix, conjugate=True)


def trace(x: Any, name: str | None = None) -> Tensor:
    """The sums of the main diagonals of the matrices in the last two axes.

    >>> tf.linalg.trace([[1.0, 2.0], [3.0, 4.0]]).numpy()
    np.float32(5.0)
    """
    diagonal = diag_part(x)
    return apply(reduction.sum, (diagonal,), {"axis": (diagonal.ndim - 1,), "keepdims": False})


def _matrices(value: Any, what: str) -> Tensor:
    x = as_tensor(value)
    if x.ndim < 2:
        raise invalid(f"{what}: input must be at least 2-dim. Received: shape {x._array.shape}.")
    return x


def _walk(rows: int, columns: int, k: int) -> tuple[int, int, int]:
    """Diagonal `k` of a matrix laid out row by row, as a strided slice of it."""
    length = _length(rows, columns, k)
    start = k if k >= 0 else -k * columns
    return start, start + (length - 1) * (columns + 1) + 1 if length else start, columns + 1


def _length(rows: int, columns: int, k: int) -> int:
    return max(0, min(rows + min(k, 0), columns - max(k, 0)))


def _diagonal(x: Tensor, k: int) -> Tensor:
    """Diagonal `k` of the matrices in `x`."""
    *batch, rows, columns = x._array.shape
    flat = reshape(x, shape=(*batch, rows * columns))
    whole = tuple((0, n, 1) for n in batch)
    return take_slice(flat, where=(*whole, _walk(rows, columns, k)))


def _on_diagonal(d: Tensor, k: int, rows: int, columns: int) -> Tensor:
    """Matrices of zeros, with `d` on diagonal `k`."""
    batch = d._array.shape[:-1]
    whole = tuple((0, n, 1) for n in batch)
    where = (*whole, _walk(rows, columns, k))
    flat = put_slice(d, shape=(*batch, rows * columns), where=where)
    return reshape(flat, shape=(*batch, rows, columns))


def _band(k: Any, what: str) -> tuple[int, int]:
    """The lowest and the highest diagonal that `k`, an integer or a pair of them, names."""
    ks = np.ravel(integer_array(k, what)).tolist()
    if len(ks) not in (1, 2) or ks[0] > ks[-1]:
        raise invalid(
            f"{what}: `k` must be an integer, or a pair of them, the lower first. Received: {k}."
        )
    return ks[0], ks[-1]


def _padding(align: str, k: int, missing: int) -> tuple[int, int]:
    """How many places are left free before and after a diagonal shorter than the longest."""
    if align not in ("RIGHT_LEFT", "LEFT_RIGHT", "LEFT_LEFT", "RIGHT_RIGHT"):
        raise invalid(
            "`align` must name the sides for diagonals above and below, as 'RIGHT_LEFT'. "
            f"Received: {align!r}."
        )
    side = align.split("_")[0 if k >= 0 else 1]  # diagonal 0 is never short
    return (missing, 0) if side == "RIGHT" else (0, missing)


def diag_part(
    input: Any,
    name: str | None = "diag_part",
    k: Any = 0,
    padding_value: Any = 0,
    align: str = "RIGHT_LEFT",
) -> Tensor:
    """Diagonal `k` of the matrices in the last two axes; those above the main one are positive.

    For a pair `k`, all diagonals from the lower to the higher, the highest first. Those that are
    shorter than the longest are filled up with `padding_value`, on the side that `align` leaves.

    >>> tf.linalg.diag_part([[1, 2, 3], [4, 5, 6]], k=1).numpy()
    array([2, 6], dtype=int32)
    """
    x = _matrices(input, "diag_part")
    low, high = _band(k, "diag_part")
    rows, columns = x._array.shape[-2:]
    for bound in (low, high):
        if bound and not -rows < bound < columns:
            raise invalid(
                f"diag_part: diagonal {bound} lies outside matrices of {rows} rows and {columns} "
                f"columns. Expected it to be between {-rows} and {columns}."
            )
    if low == high:
        return _diagonal(x, low)
    longest = max(_length(rows, columns, i) for i in range(low, high + 1))
    filler = as_tensor(padding_value, x._array.dtype)
    parts = [_padded(_diagonal(x, i), i, longest, filler, align) for i in range(high, low - 1, -1)]
    return stack(*parts, axis=x.ndim - 2)


def _padded(d: Tensor, k: int, length: int, filler: Tensor, align: str) -> Tensor:
    *batch, n = d._array.shape
    sizes = _padding(align, k, length - n)
    before, after = (
        Tensor(np.full((*batch, size), filler._array, d._array.dtype)) for size in sizes
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
    """Matrices with `diagonal` on diagonal `k`, and `padding_value` elsewhere.

    For a pair `k`, the second to last axis of `diagonal` holds one row for each diagonal, the
    highest first. Matrices are as small as can be, where `num_rows` and `num_cols` do not say
    otherwise, and square if neither is given.

    >>> tf.linalg.diag([1, 2], k=1).numpy()
    array([[0, 1, 0],
           [0, 0, 2],
           [0, 0, 0]], dtype=int32)
    """
    d = as_tensor(diagonal)
    low, high = _band(k, "diag")
    needed = 1 if low == high else 2
    if d.ndim < needed or (needed == 2 and d._array.shape[-2] != high - low + 1):
        raise invalid(
            f"diag: shape {d._array.shape} does not hold diagonals {low} to {high}. Expected at "
            f"least {needed} axes, the second to last with one place for each of several."
        )
    rows, columns = _extent(d._array.shape[-1], low, high, num_rows, num_cols)
    y = None
    for i in range(low, high + 1):
        row = d if low == high else _row(d, high - i, i, _length(rows, columns, i), align)
        part = _on_diagonal(row, i, rows, columns)
        y = part if y is None else _either(part, y, i, i, rows, columns)
    if not np.any(np.asarray(padding_value)):
        return y
    filler = as_tensor(padding_value, d._array.dtype)
    return _either(y, filler, low, high, rows, columns)


def _row(d: Tensor, place: int, k: int, length: int, align: str) -> Tensor:
    """Diagonal `k`, cut out of the row at `place`, which may be longer."""
    *batch, _, longest = d._array.shape
    before, after = _padding(align, k, longest - length)
    whole = tuple((0, n, 1) for n in batch)
    row = take_slice(d, where=(*whole, (place, place + 1, 1), (before, longest - after, 1)))
    return reshape(row, shape=(*batch, length))


def _extent(length: int, low: int, high: int, num_rows: Any, num_cols: Any) -> tuple[int, int]:
    """The size of matrices whose longest diagonal between `low` and `high` has `length`."""
    given = [integer(n, "diag") for n in (num_rows, num_cols)]
    rows, columns = length - min(high, 0), length + max(low, 0)
    if given == [-1, -1]:
        return max(rows, columns), max(rows, columns)
    result = tuple(n if n != -1 else least for n, least in zip(given, (rows, columns), strict=True))
    if result[0] < rows or result[1] < columns or (result[0] != rows and result[1] != columns):
        raise invalid(
            f"diag: {result[0]} rows and {result[1]} columns do not fit diagonals {low} to {high} "
            f"of length {length}. Expected {rows} rows or {columns} columns, and no fewer."
        )
    return result


def _either(x1: Tensor, x2: Tensor, low: int, high: int, rows: int, columns: int) -> Tensor:
    """`x1` on the diagonals from `low` to `high`, `x2` elsewhere."""
    inside = Tensor(_within(rows, columns, low, high))
    return apply(ar.select, (inside, x1, x2))


def _within(rows: int, columns: int, low: int, high: int) -> np.ndarray:
    """Where a matrix has the diagonals from `low` to `high`."""
    k = np.arange(columns) - np.arange(rows)[:, None]
    return (k >= low) & (k <= high)


def set_diag(
    input: Any,
    diagonal: Any,
    name: str | None = "set_diag",
    k: Any = 0,
    align: str = "RIGHT_LEFT",
) -> Tensor:
    """The matrices in the last two axes with diagonal `k` replaced, or several of them.

    >>> tf.linalg.set_diag([[1, 2], [3, 4]], [8, 9]).numpy()
    array([[8, 2],
           [3, 9]], dtype=int32)
    """
    x, d = same_dtype(input, diagonal)
    x = _matrices(x, "set_diag")
    low, high = _band(k, "set_diag")
    *batch, rows, columns = x._array.shape
    longest = max(_length(rows, columns, i) for i in range(low, high + 1))
    expected = (*batch, longest) if low == high else (*batch, high - low + 1, longest)
    if d._array.shape != expected or d._array.dtype != x._array.dtype:
        raise invalid(
            f"set_diag: the diagonal has shape {d._array.shape} and dtype {d.dtype.name}. Expected "
            f"{expected} and {x.dtype.name} for matrices of shape {x._array.shape}."
        )
    for i in range(low, high + 1):
        row = d if low == high else _row(d, high - i, i, _length(rows, columns, i), align)
        x = _either(_on_diagonal(row, i, rows, columns), x, i, i, rows, columns)
    return x


def band_part(input: Any, num_lower: Any, num_upper: Any, name: str | None = None) -> Tensor:
    """Matrices with all but a band about the main diagonal set to 0.

    `num_lower` diagonals below and `num_upper` above are kept; all of them, if negative.

    >>> tf.linalg.band_part([[1, 2], [3, 4]], -1, 0).numpy()
    array([[1, 0],
           [3, 4]], dtype=int32)
    """
    x = _matrices(input, "band_part")
    rows, columns = x._array.shape[-2:]
    lower = _reach(num_lower, rows, "num_lower")
    upper = _reach(num_upper, columns, "num_upper")
    return apply(ar.mask, (x, Tensor(_within(rows, columns, -lower, upper))))


def _reach(count: Any, size: int, argument: str) -> int:
    n = integer_array(count, "band_part", TypeError).item()
    if n > size:
        raise invalid(
            f"band_part: {argument} must be negative or at most {size}, the size of the matrix. "
            f"Received: {n}."
        )
    return size if n < 0 else n


def tensor_diag(diagonal: Any, name: str | None = None) -> Tensor:
    """A tensor with twice the axes, which is `diagonal` where both halves of an index agree.

    >>> tf.linalg.tensor_diag([1, 2]).numpy()
    array([[1, 0],
           [0, 2]], dtype=int32)
    """
    d = as_tensor(diagonal)
    if not d.ndim:
        raise invalid("tensor_diag: input must have at least one axis. Received: a scalar.")
    size = math.prod(d._array.shape)
    matrix = _on_diagonal(reshape(d, shape=(size,)), 0, size, size)
    return reshape(matrix, shape=d._array.shape * 2)


def tensor_diag_part(input: Any, name: str | None = None) -> Tensor:
    """The elements where both halves of an index agree: what `tensor_diag` spreads out."""
    x = as_tensor(input)
    half = x.ndim // 2
    shape = x._array.shape[:half]
    if x._array.shape != shape * 2:
        raise invalid(
            f"tensor_diag_part: both halves of the shape must be equal. Received: {x._array.shape}."
        )
    size = math.prod(shape)
    return reshape(_diagonal(reshape(x, shape=(size, size)), 0), shape=shape)


# Norms


def norm(
    tensor: Any,
    ord: Any = "euclidean",
    axis: Any = None,
    keepdims: bool | None = None,
    name: str | None = None,
) -> Tensor:
    """The norm of vectors along `axis`, or of matrices in a pair of axes.

    Without `axis`, that of all elements as one vector. `ord` is "euclidean", 1, 2, infinity or any
    positive number for vectors; "euclidean" or "fro", 1 or infinity for matrices. The gradient of
    the euclidean norm is nan at 0.

    >>> tf.linalg.norm([3.0, 4.0]).numpy()
    np.float32(5.0)
    >>> tf.linalg.norm([[1.0, -2.0], [3.0, 4.0]], ord=1, axis=(0, 1)).numpy()
    np.float32(6.0)
    """
    x = as_tensor(tensor)
    matrix = _is_matrix_norm(axis)
    _check_order(ord, matrix)
    over = normalise_axes(axis, x.ndim, "norm")
    if ord in ("euclidean", "fro") or (ord == 2 and not matrix):
        total = _reduce(reduction.sum, x * conj(x), over, keepdims)
        return sqrt(total)
    if matrix:
        return _operator_norm(absolute_of(x), ord, axis, keepdims)
    return _vector_norm(absolute_of(x), ord, over, keepdims)


def _vector_norm(sizes: Tensor, ord: float, over: tuple[int, ...], keepdims: Any) -> Tensor:
    if ord == 1:
        return _reduce(reduction.sum, sizes, over, keepdims)
    if ord == math.inf:
        return _reduce(reduction.max, sizes, over, keepdims)
    return _reduce(reduction.sum, sizes**ord, over, keepdims) ** (1.0 / ord)


def _operator_norm(sizes: Tensor, ord: float, axis: Any, keepdims: Any) -> Tensor:
    """The largest sum of sizes along columns, or for infinity along rows."""
    if ord == 2:
        raise UnimplementedError(None, None, "norm: the 2-norm of matrices is not there yet.")
    rows, columns = (normalise_axes(a, sizes.ndim, "norm")[0] for a in axis)
    summed, searched = (rows, columns) if ord == 1 else (columns, rows)
    sums = _reduce(reduction.sum, sizes, (summed,), True)
    y = _reduce(reduction.max, sums, (searched,), True)
    if keepdims:
        return y
    gone = {rows, columns}
    return reshape(y, shape=tuple(n for i, n in enumerate(y._array.shape) if i not in gone))


def _reduce(primitive: Any, x: Tensor, over: tuple[int, ...], keepdims: Any) -> Tensor:
    return apply(primitive, (x,), {"axis": over, "keepdims": bool(keepdims)})


def _is_matrix_norm(axis: Any) -> bool:
    if isinstance(axis, (list, tuple)):
        if len(axis) == 2 and axis[0] != axis[1]:
            return True
    elif axis is None or (isinstance(axis, (int, np.integer)) and not isinstance(axis, bool)):
        return False
    raise ValueError(
        f"norm: 'axis' must be None, an integer, or a tuple of 2 unique integers, got {axis}"
    )


def _check_order(ord: Any, matrix: bool) -> None:
    if matrix:
        if ord not in ("euclidean", "fro", 1, 2, math.inf):
            raise ValueError(
                "norm: 'ord' must be a supported matrix norm in ['euclidean', 'fro', 1, 2, inf], "
                f"got {ord}"
            )
    elif ord != "euclidean" and (isinstance(ord, str) or not ord > 0):
        raise ValueError(f"norm: 'ord' must be a supported vector norm, got {ord}")


def normalize(
    tensor: Any, ord: Any = "euclidean", axis: Any = None, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """`tensor` divided by its norm, and that norm.

    >>> unit, length = tf.linalg.normalize([3.0, 4.0])
    >>> unit.numpy(), length.numpy()
    (array([0.6, 0.8], dtype=float32), array([5.], dtype=float32))
    """
    x = as_tensor(tensor)
    length = norm(x, ord, axis, keepdims=True)
    return x / to_dtype(length, x._array.dtype), length
