"""Matrices that are given by a few diagonals."""

from __future__ import annotations

from typing import Any

import numpy as np

from retrograde.core.apply import apply
from retrograde.core.tensor import Tensor
from retrograde.linalg._inputs import matrices_of
from retrograde.ops import arithmetic as ar
from retrograde.ops import banded, matrices
from retrograde.ops._families import conj
from retrograde.ops.casting import ones_like, to_dtype, zeros_like
from retrograde.ops.complex_numbers import complex_abs, real
from retrograde.ops.conversion import as_tensor, same_dtype
from retrograde.ops.scan import cumprod
from retrograde.ops.shaping import broadcast_to, concat, put_slice, reshape, stack, take_slice
from retrograde.values.arguments import as_text, shown
from retrograde.values.errors import UnimplementedError, invalid
from retrograde.values.shapes import broadcast


def banded_triangular_solve(
    bands: Any, rhs: Any, lower: bool = True, adjoint: bool = False, name: str | None = None
) -> Tensor:
    """The solutions of equations with a triangular matrix that has but a few diagonals.

    Each row of `bands` is a diagonal, every element in the column that is the number of its row in
    the matrix. The main one comes first if the matrix is `lower` triangular, with those below it
    behind; else it comes last, after those above it. Leading axes broadcast.

    >>> tf.linalg.banded_triangular_solve([[2.0, 1.0], [0.0, 1.0]], [[4.0], [5.0]]).numpy()
    array([[2.],
           [3.]], dtype=float32)
    """
    op_name = "banded_triangular_solve"
    d, b = same_dtype(bands, rhs)
    d, b = matrices_of(d, op_name), matrices_of(b, op_name)
    of_d, of_b = d._spec.shape, b._spec.shape
    batch = broadcast(of_d[:-2], of_b[:-2])
    if not of_d[-2] or of_d[-1] != of_b[-2] or batch is None:
        raise invalid(
            f"{op_name}: bands of shape {of_d} and right-hand sides of shape {of_b} do not fit. "
            "Expected at least one band, as many columns in the bands as rows in the right-hand "
            "sides, and leading axes that broadcast."
        )
    d, b = (broadcast_to(x, shape=(*batch, *x._spec.shape[-2:])) for x in (d, b))
    return apply(banded.banded_solve, (d, b), {"lower": bool(lower), "adjoint": bool(adjoint)})


# Tridiagonal matrices


def tridiagonal_solve(
    diagonals: Any,
    rhs: Any,
    diagonals_format: str = "compact",
    transpose_rhs: bool = False,
    conjugate_rhs: bool = False,
    name: str | None = None,
    partial_pivoting: bool = True,
    perturb_singular: bool = False,
) -> Tensor:
    """The solutions of equations with tridiagonal matrices; nan where these are singular.

    `diagonals` has three rows, the diagonals above, on and below the main one, all of the same
    length ("compact"): the last element of the first row and the first of the last are not read. Or
    it is a list of the three ("sequence"), or the matrix itself ("matrix"). Right-hand sides are
    columns, or one vector for each matrix. Rows are always exchanged where the numbers need it.

    >>> d = [[1.0, 0.0], [2.0, 3.0], [0.0, 1.0]]
    >>> tf.linalg.tridiagonal_solve(d, [5.0, 10.0]).numpy()
    array([1., 3.], dtype=float32)
    """
    if perturb_singular:
        if not partial_pivoting:
            raise ValueError("partial_pivoting must be True if perturb_singular is.")
        raise UnimplementedError(
            None, None, "tridiagonal_solve: singular matrices cannot be perturbed here."
        )
    d = _compact(diagonals, diagonals_format, "tridiagonal_solve")
    b = as_tensor(rhs, d._spec.dtype)
    _check_batch(d, b)
    vector = b.ndim == d.ndim - 1
    if transpose_rhs and not vector:
        b = matrices.transposed(b)
    b = conj(b) if conjugate_rhs else b
    columns = reshape(b, shape=(*b._spec.shape, 1)) if vector else b
    if columns._spec.shape[-2] != d._spec.shape[-1]:
        raise ValueError(
            f"tridiagonal_solve: matrices with {d._spec.shape[-1]} rows and right-hand sides with "
            f"{columns._spec.shape[-2]} do not fit."
        )
    y = apply(banded.tridiagonal_solve, (d, columns))
    return reshape(y, shape=b._spec.shape) if vector else y


def _check_batch(d: Tensor, b: Tensor) -> None:
    if b.ndim not in (d.ndim, d.ndim - 1):
        raise ValueError(
            f"tridiagonal_solve: `rhs` has {b.ndim} axes. Expected {d.ndim - 1} or {d.ndim}, for "
            f"diagonals of shape {d._spec.shape}."
        )
    batch = d._spec.shape[:-2]
    if b._spec.shape[: d.ndim - 2] != batch:
        raise ValueError(
            f"tridiagonal_solve: `rhs` has shape {b._spec.shape}. Expected leading axes {batch}."
        )


def tridiagonal_matmul(
    diagonals: Any, rhs: Any, diagonals_format: str = "compact", name: str | None = None
) -> Tensor:
    """The product of tridiagonal matrices, given as in `tridiagonal_solve`, and others.

    >>> d = [[1.0, 0.0], [2.0, 3.0], [0.0, 1.0]]
    >>> tf.linalg.tridiagonal_matmul(d, [[1.0], [3.0]]).numpy()
    array([[ 5.],
           [10.]], dtype=float32)
    """
    d = _compact(diagonals, diagonals_format, "tridiagonal_matmul")
    x = as_tensor(rhs, d._spec.dtype)
    (*batch, _, n), shape = d._spec.shape, x._spec.shape
    if x.ndim != d.ndim or shape[:-1] != (*batch, n):
        raise invalid(
            f"tridiagonal_matmul: `rhs` has shape {shape}. Expected {(*batch, n)} and one axis "
            "more."
        )
    above, main, below = (
        reshape(matrices.block(d, rows=(i, i + 1)), shape=(*batch, n, 1)) for i in range(3)
    )
    head, tail = (0, max(n - 1, 0)), (min(1, n), n)
    y = main * x
    for band, rows, others in ((above, head, tail), (below, tail, head)):
        part = matrices.block(band, rows=rows) * matrices.block(x, rows=others)
        where = (*((0, size, 1) for size in batch), (*rows, 1), (0, shape[-1], 1))
        y = y + put_slice(part, shape=shape, where=where)
    return y


def _compact(diagonals: Any, form: str, op_name: str) -> Tensor:
    """The three diagonals as rows of equal length, each element in the column of its row."""
    if form == "compact":
        d = as_tensor(diagonals)
        if d.ndim < 2 or d._spec.shape[-2] != 3:
            raise ValueError(
                f"{op_name}: expected 3 rows of diagonals. Received: shape {d._spec.shape}."
            )
        return d
    if form == "sequence":
        if not isinstance(diagonals, (list, tuple)) or len(diagonals) != 3:
            raise ValueError(
                f"{op_name}: expected a list of 3 diagonals. Received: {shown(diagonals)}."
            )
        above, main, below = same_dtype(*diagonals)
        return _stacked(above, main, below, op_name)
    if form != "matrix":
        raise ValueError(
            f"{op_name}: `diagonals_format` must be 'compact', 'sequence' or 'matrix'. Received: "
            f"{shown(form)}."
        )
    x = as_tensor(diagonals)
    if x.ndim < 2 or x._spec.shape[-1] != x._spec.shape[-2]:
        raise ValueError(
            f"{op_name}: the matrices must be square. Received: shape {x._spec.shape}."
        )
    return _stacked(*(matrices.diagonal(x, k) for k in (1, 0, -1)), op_name)


def _stacked(above: Tensor, main: Tensor, below: Tensor, op_name: str) -> Tensor:
    if not main.ndim:
        raise ValueError(f"{op_name}: the main diagonal must have an axis. Received: a scalar.")
    *batch, n = main._spec.shape
    shapes = [x._spec.shape for x in (above, main, below)]
    full, short = (*batch, n), (*batch, max(n - 1, 0))
    if shapes[0] not in (full, short) or shapes[2] not in (full, short):
        raise ValueError(
            f"{op_name}: diagonals of shapes {', '.join(map(str, shapes))} do not fit. Expected "
            "those beside the main one to be as long or shorter by one."
        )
    whole = tuple((0, size, 1) for size in batch)
    if shapes[0] != full:
        above = put_slice(above, shape=full, where=(*whole, (0, n - 1, 1)))
    if shapes[2] != full:
        below = put_slice(below, shape=full, where=(*whole, (1, n, 1)))
    return stack(above, main, below, axis=len(batch))


# Eigenvalues


def eigh_tridiagonal(
    alpha: Any,
    beta: Any,
    eigvals_only: bool = True,
    select: str = "a",
    select_range: Any = None,
    tol: Any = None,
    name: str | None = None,
) -> Any:
    """Eigenvalues of Hermitian tridiagonal matrices, the smallest first.

    `alpha` is the main diagonal and `beta` the one above it, shorter by one. With `select` "i",
    only those are returned whose numbers, counted from 0, lie in `select_range`, and with "v" those
    that lie there themselves; both ends belong to it. Eigenvectors follow, as columns, unless
    `eigvals_only`. All are found to full precision, whatever `tol` says.

    >>> tf.linalg.eigh_tridiagonal([2.0, 2.0], [1.0]).numpy()
    array([1., 3.], dtype=float32)
    """
    a, b = _both_diagonals(alpha, beta)
    if eigvals_only and a._spec.dtype == np.float16:
        wide = (to_dtype(x, np.dtype(np.float32)) for x in (a, b))
        values = eigh_tridiagonal(*wide, True, select, select_range)
        return to_dtype(values, a._spec.dtype)
    phases = None
    if b._spec.dtype.kind == "c":
        phases = _phases(b)
        a, b = real(a), complex_abs(b)
    if eigvals_only:
        e, v = apply(banded.eigvalsh_tridiagonal, (a, b)), None
    else:
        e, v = apply(banded.eigh_tridiagonal, (a, b))
    start, stop = _selected(e, select, select_range)
    last = (start, stop, 1)
    chosen = take_slice(e, where=(*((0, n, 1) for n in e._spec.shape[:-1]), last))
    if v is None:
        return chosen
    v = matrices.block(v, columns=(start, stop))
    if phases is not None:
        v = matrices.rows_times(to_dtype(v, phases._spec.dtype), phases)
    return chosen, v


def _both_diagonals(alpha: Any, beta: Any) -> tuple[Tensor, Tensor]:
    a, b = same_dtype(alpha, beta)
    if a._spec.dtype != b._spec.dtype:
        raise ValueError(
            f"eigh_tridiagonal: `alpha` has dtype {a.dtype.name} and `beta` {b.dtype.name}. "
            "Expected the same."
        )
    (*batch, n), shape = a._spec.shape or (-1,), b._spec.shape
    if shape != (*batch, max(n - 1, 0)):
        raise invalid(
            f"eigh_tridiagonal: diagonals of shapes {a._spec.shape} and {shape} do not fit. "
            "Expected the second to be shorter by one."
        )
    return a, b


def _phases(beta: Tensor) -> Tensor:
    """What to multiply the rows of eigenvectors with, if they were found with real `beta`."""
    one = ones_like(beta)
    signs = apply(ar.select, (apply(ar.equal, (beta, zeros_like(beta))), one, ar.sign(beta)))
    first = Tensor(np.ones((*beta._spec.shape[:-1], 1), beta._spec.dtype))
    steps = concat(first, conj(signs), axis=beta.ndim - 1)
    return apply(cumprod, (steps,), {"axis": beta.ndim - 1})


def _selected(e: Tensor, select: str, select_range: Any) -> tuple[int, int]:
    """From which eigenvalue to before which."""
    n = e._spec.shape[-1]
    if select == "a":
        return 0, n
    if select not in ("i", "v"):
        raise ValueError(
            f"eigh_tridiagonal: `select` must be 'a', 'i' or 'v'. Received: {shown(select)}."
        )
    if select_range is None or len(select_range) != 2:
        raise TypeError(
            f"eigh_tridiagonal: `select_range` must be a pair. Received: {as_text(select_range)}."
        )
    low, high = (np.asarray(as_tensor(end)).item() for end in select_range)
    if low > high or (select == "v" and low == high):
        raise invalid(f"eigh_tridiagonal: `select_range` is empty. Received: {low} to {high}.")
    if select == "i":
        if low < 0 or high >= n:
            raise invalid(
                f"eigh_tridiagonal: there are {n} eigenvalues. Received: numbers {low} to {high}."
            )
        return int(low), int(high) + 1
    if e.ndim > 1:
        raise invalid("eigh_tridiagonal: values can be selected for one matrix at a time.")
    values = np.asarray(e)
    return int(np.sum(values < low)), int(np.sum(values <= high))
