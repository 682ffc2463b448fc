"""Banded matrices, given by their diagonals."""

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
    """Solves linear equations with banded triangular matrices.

    Each row of `bands` is a diagonal; the element of matrix row i is in column i. If the matrix is
    `lower` triangular, the main diagonal comes first, followed by those below it. Otherwise it
    comes last, after those above it. Leading axes broadcast.

    >>> tf.linalg.banded_triangular_solve([[2.0, 1.0], [0.0, 1.0]], [[4.0], [5.0]]).numpy()
    array([[2.],
           [3.]], dtype=float32)
    """
    op_name = "banded_triangular_solve"
    d, b = same_dtype(bands, rhs)
    d, b = matrices_of(d, op_name), matrices_of(b, op_name)
    shape_d, shape_b = d._spec.shape, b._spec.shape
    batch = broadcast(shape_d[:-2], shape_b[:-2])
    if not shape_d[-2] or shape_d[-1] != shape_b[-2] or batch is None:
        raise invalid(
            f"{op_name}: bands of shape {shape_d} and right-hand sides of shape {shape_b} are "
            "incompatible. Expected at least one band, bands as long as the right-hand sides have "
            "rows, and leading axes that broadcast."
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
    """Solves linear equations with tridiagonal matrices; NaN if they are singular.

    `diagonals` is one of:

    - three rows of the same length, the superdiagonal, the main diagonal and the subdiagonal
      ("compact"); the last element of the first row and the first of the last row are not read
    - a list of the three diagonals ("sequence")
    - the matrix itself ("matrix")

    Right-hand sides are columns, or one vector for each matrix. Partial pivoting is always used.

    >>> d = [[1.0, 0.0], [2.0, 3.0], [0.0, 1.0]]
    >>> tf.linalg.tridiagonal_solve(d, [5.0, 10.0]).numpy()
    array([1., 3.], dtype=float32)
    """
    if perturb_singular:
        if not partial_pivoting:
            raise ValueError("partial_pivoting must be True if perturb_singular is.")
        raise UnimplementedError(
            None, None, "tridiagonal_solve: `perturb_singular` is not supported."
        )
    d = _compact(diagonals, diagonals_format, "tridiagonal_solve")
    b = as_tensor(rhs, d._spec.dtype)
    _check_batch(d, b)
    is_vector = b.ndim == d.ndim - 1
    if transpose_rhs and not is_vector:
        b = matrices.transpose_matrices(b)
    b = conj(b) if conjugate_rhs else b
    columns = reshape(b, shape=(*b._spec.shape, 1)) if is_vector else b
    if columns._spec.shape[-2] != d._spec.shape[-1]:
        raise ValueError(
            f"tridiagonal_solve: matrices with {d._spec.shape[-1]} rows and right-hand sides with "
            f"{columns._spec.shape[-2]} rows are incompatible."
        )
    y = apply(banded.tridiagonal_solve, (d, columns))
    return reshape(y, shape=b._spec.shape) if is_vector else y


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
    """Multiplies tridiagonal matrices, given as in `tridiagonal_solve`, by `rhs`.

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
            f"tridiagonal_matmul: `rhs` has shape {shape}. Expected {(*batch, n)} and one more "
            "axis."
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
    """Returns the three diagonals as rows of equal length; the element of row i is in column i."""
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
        return _stack_diagonals(above, main, below, op_name)
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
    return _stack_diagonals(*(matrices.diagonal(x, k) for k in (1, 0, -1)), op_name)


def _stack_diagonals(above: Tensor, main: Tensor, below: Tensor, op_name: str) -> Tensor:
    if not main.ndim:
        raise ValueError(f"{op_name}: the main diagonal must be a vector. Received: a scalar.")
    *batch, n = main._spec.shape
    shapes = [x._spec.shape for x in (above, main, below)]
    full, short = (*batch, n), (*batch, max(n - 1, 0))
    if shapes[0] not in (full, short) or shapes[2] not in (full, short):
        raise ValueError(
            f"{op_name}: diagonals of shapes {', '.join(map(str, shapes))} are incompatible. The "
            "other diagonals must be as long as the main one, or shorter by one."
        )
    all_batch = tuple((0, size, 1) for size in batch)
    if shapes[0] != full:
        above = put_slice(above, shape=full, where=(*all_batch, (0, n - 1, 1)))
    if shapes[2] != full:
        below = put_slice(below, shape=full, where=(*all_batch, (1, n, 1)))
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
    """Computes the eigenvalues of Hermitian tridiagonal matrices, in ascending order.

    `alpha` is the main diagonal and `beta` the superdiagonal, shorter by one. With `select` "i",
    only the eigenvalues whose indices lie in `select_range` are returned, and with "v" those whose
    values do; both ends are inclusive. Eigenvectors follow, as columns, unless `eigvals_only`. The
    result has full precision, regardless of `tol`.

    >>> tf.linalg.eigh_tridiagonal([2.0, 2.0], [1.0]).numpy()
    array([1., 3.], dtype=float32)
    """
    a, b = _check_diagonals(alpha, beta)
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
    start, stop = _selected_range(e, select, select_range)
    last = (start, stop, 1)
    selected = take_slice(e, where=(*((0, n, 1) for n in e._spec.shape[:-1]), last))
    if v is None:
        return selected
    v = matrices.block(v, columns=(start, stop))
    if phases is not None:
        v = matrices.scale_rows(to_dtype(v, phases._spec.dtype), phases)
    return selected, v


def _check_diagonals(alpha: Any, beta: Any) -> tuple[Tensor, Tensor]:
    a, b = same_dtype(alpha, beta)
    if a._spec.dtype != b._spec.dtype:
        raise ValueError(
            f"eigh_tridiagonal: `alpha` has dtype {a.dtype.name} and `beta` {b.dtype.name}. "
            "Expected the same dtype."
        )
    (*batch, n), shape = a._spec.shape or (-1,), b._spec.shape
    if shape != (*batch, max(n - 1, 0)):
        raise invalid(
            f"eigh_tridiagonal: diagonals of shapes {a._spec.shape} and {shape} are incompatible. "
            "The second must be shorter by one."
        )
    return a, b


def _phases(beta: Tensor) -> Tensor:
    """Returns the row factors that turn the eigenvectors for `abs(beta)` into those for `beta`."""
    one = ones_like(beta)
    signs = apply(ar.select, (apply(ar.equal, (beta, zeros_like(beta))), one, ar.sign(beta)))
    first = Tensor(np.ones((*beta._spec.shape[:-1], 1), beta._spec.dtype))
    steps = concat(first, conj(signs), axis=beta.ndim - 1)
    return apply(cumprod, (steps,), {"axis": beta.ndim - 1})


def _selected_range(e: Tensor, select: str, select_range: Any) -> tuple[int, int]:
    """Returns the range of selected eigenvalues: the first index and the end."""
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
                f"eigh_tridiagonal: there are {n} eigenvalues. Received: indices {low} to {high}."
            )
        return int(low), int(high) + 1
    if e.ndim > 1:
        raise invalid("eigh_tridiagonal: select='v' supports only one matrix at a time.")
    values = np.asarray(e)
    return int(np.sum(values < low)), int(np.sum(values <= high))
