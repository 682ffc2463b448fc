"""Banded matrices, given by their diagonals: linear systems and symmetric eigenvalues."""

from __future__ import annotations

from functools import partial

import numpy as np

from retrograde.core.rules import Spec
from retrograde.ops import reduction
from retrograde.ops._arrays import on_host
from retrograde.ops._families import conj
from retrograde.ops.decomposition import reciprocal_differences
from retrograde.ops.matrices import (
    block,
    diagonal,
    diagonal_matrix,
    matrix_primitive,
    product,
    scale_columns,
)
from retrograde.ops.shaping import put_slice, reshape, stack, take_slice
from retrograde.ops.solvers import triangular_solve
from retrograde.values.errors import invalid
from retrograde.values.scipy_import import import_scipy


def shift(x, by, axis):
    """Shifts `x` along an axis by `by` elements and fills with zeros."""
    shape = tuple(x.shape)
    size = max(shape[axis] - abs(by), 0)
    full = [(0, n, 1) for n in shape]
    start, stop = max(-by, 0), max(by, 0)
    source, target = list(full), list(full)
    source[axis], target[axis] = (start, start + size, 1), (stop, stop + size, 1)
    return put_slice(take_slice(x, where=tuple(source)), shape=shape, where=tuple(target))


def _inner_product(x1, x2):
    """Returns the inner product of the last axes."""
    return reduction.sum(x1 * conj(x2), axis=(x1.ndim - 1,), keepdims=False)


# Tridiagonal systems. The three rows of `d` are the diagonals above, on and below the main one.
# Column i holds the elements of row i of the matrix. So the last element of the first diagonal and
# the first of the last are outside the matrix.


def _tridiagonal_solve_kernel(xp, d, b):
    if not b.size:
        return b
    n = d.shape[-1]
    above = xp.where(np.arange(n) < n - 1, d[..., 0, :], np.zeros((), d.dtype))
    below = xp.where(np.arange(n) > 0, d[..., 2, :], np.zeros((), d.dtype))
    main = d[..., 1, :]
    if xp is not np:
        import jax

        return jax.lax.linalg.tridiagonal_solve(below, main, above, b)
    return _solve_as_one_system(_gtsv, above, main, below, b)


def _solve_as_one_system(solve, *arrays):
    """Solves a batch of systems as one block-diagonal system, with a single call to LAPACK.

    A non-finite value would spread to the other systems, as 0 * Inf is NaN. If there is one, the
    systems are solved one by one.
    """
    y = solve(*arrays)
    if np.isfinite(y).all():
        return y
    y = np.empty(y.shape, y.dtype)
    for i in np.ndindex(*y.shape[:-2]):
        y[i] = solve(*(x[i] for x in arrays))
    return y


def _gtsv(above, main, below, b):
    """Solves with LAPACK; a singular matrix gives NaN."""
    if main.size == 1:
        return b / main[..., None] if main.all() else np.full(b.shape, np.nan, b.dtype)
    gtsv = import_scipy("linalg.lapack", "tridiagonal_solve").get_lapack_funcs(
        "gtsv", dtype=b.dtype
    )
    sides = b.reshape(-1, b.shape[-1])
    *_, y, info = gtsv(below.ravel()[1:], main.ravel(), above.ravel()[:-1], sides)
    return np.full(b.shape, np.nan, b.dtype) if info else y.reshape(b.shape)


def _tridiagonal_adjoint(d):
    """Returns the diagonals of the adjoint matrix."""
    above, main, below = (_row(d, i) for i in range(3))
    last, rows = main.ndim - 1, d.ndim - 2
    return conj(stack(shift(below, -1, last), main, shift(above, 1, last), axis=rows))


def _row(d, i):
    row = block(d, rows=(i, i + 1))
    return reshape(row, shape=(*row.shape[:-2], row.shape[-1]))


def _tridiagonal_solve_vjp(needed, g, y, d, _b):
    g_rhs = tridiagonal_solve(_tridiagonal_adjoint(d), g)
    g_d = None
    if needed[0]:
        rows = g.ndim - 2
        neighbors = (shift(y, -1, rows), y, shift(y, 1, rows))
        g_d = -stack(*(_inner_product(g_rhs, x) for x in neighbors), axis=rows)
    return g_d, g_rhs if needed[1] else None


tridiagonal_solve = matrix_primitive(
    "tridiagonal_solve", _tridiagonal_solve_kernel, joint=_tridiagonal_solve_vjp
)


# Banded triangular systems. Each row of `bands` is a diagonal, and column i holds the elements of
# row i of the matrix. The main diagonal comes first if the matrix is lower triangular, else last.


def _inside(bands, lower):
    """Returns a mask of the elements of `bands` that are inside the matrix."""
    k, n = bands.shape[-2:]
    steps = np.arange(k)[:, None] if lower else np.arange(k - 1, -1, -1)[:, None]
    return steps <= np.arange(n) if lower else steps + np.arange(n) < n


def _banded_solve_kernel(xp, bands, b, *, lower, adjoint):
    bands = xp.where(_inside(bands, lower), bands, np.zeros((), bands.dtype))
    if not b.size:
        return b
    if xp is np:
        return _solve_as_one_system(partial(_tbtrs, lower=lower, adjoint=adjoint), bands, b)
    matrix = _dense_matrix(bands, lower)
    return triangular_solve.kernel(xp, matrix, b, lower=lower, adjoint=adjoint)


def _dense_matrix(bands, lower):
    k, n = bands.shape[-2:]
    rows, columns = np.arange(n)[:, None], np.arange(n)
    band = rows - columns if lower else rows - columns + k - 1
    inside = (band >= 0) & (band < k)
    return bands[..., np.clip(band, 0, k - 1), np.broadcast_to(rows, (n, n))] * inside


def _tbtrs(bands, b, *, lower, adjoint):
    """Solves with LAPACK, which stores bands by columns: reversed, `bands` is the transpose."""
    k = bands.shape[-2]
    flat = np.moveaxis(bands, -2, 0).reshape(k, -1)[::-1]
    sides = b.reshape(-1, b.shape[-1])
    conjugates = adjoint and b.dtype.kind == "c"
    tbtrs = import_scipy("linalg.lapack", "a banded solve").get_lapack_funcs("tbtrs", dtype=b.dtype)
    uplo, trans = "U" if lower else "L", "N" if adjoint else "T"
    y, info = tbtrs(flat, sides.conj() if conjugates else sides, uplo=uplo, trans=trans)
    if info:
        raise invalid(
            "banded_triangular_solve: a matrix is singular. Expected a main diagonal without zeros."
        )
    return (y.conj() if conjugates else y).reshape(b.shape)


def _banded_solve_vjp(needed, g, y, bands, _b, *, lower, adjoint):
    g_rhs = banded_solve(bands, g, lower=lower, adjoint=not adjoint)
    g_bands = None
    if needed[0]:
        left, right = (y, g_rhs) if adjoint else (g_rhs, y)
        k, rows = bands.shape[-2], g.ndim - 2
        steps = range(k) if lower else range(-k + 1, 1)
        g_bands = -stack(
            *(_inner_product(left, shift(right, step, rows)) for step in steps), axis=rows
        )
    return g_bands, g_rhs if needed[1] else None


banded_solve = matrix_primitive("banded_solve", _banded_solve_kernel, joint=_banded_solve_vjp)


# Eigenvalues of symmetric tridiagonal matrices, given by their main diagonal and off-diagonal


_REAL = frozenset(map(np.dtype, "fd"))


def _lapack_eigenvalues(alpha, beta):
    linalg, n = import_scipy("linalg", "eigh_tridiagonal"), alpha.shape[-1]
    y = np.empty(alpha.shape, alpha.dtype)
    for i in np.ndindex(*alpha.shape[:-1]) if n else ():
        y[i] = linalg.eigvalsh_tridiagonal(alpha[i], beta[i])
    return y


def _lapack_eigenvectors(alpha, beta):
    linalg, n = import_scipy("linalg", "eigh_tridiagonal"), alpha.shape[-1]
    e, v = np.empty(alpha.shape, alpha.dtype), np.empty((*alpha.shape, n), alpha.dtype)
    for i in np.ndindex(*alpha.shape[:-1]) if n else ():
        e[i], v[i] = linalg.eigh_tridiagonal(alpha[i], beta[i])
    return e, v


def _eigh_tridiagonal_kernel(xp, alpha, beta):
    specs = Spec(alpha.shape, alpha.dtype), Spec((*alpha.shape, alpha.shape[-1]), alpha.dtype)
    return on_host(xp, _lapack_eigenvectors, specs, alpha, beta)


def _eigh_tridiagonal_vjp(needed, g, y, _alpha, _beta):
    (g_e, g_v), (e, v) = g, y
    inner = diagonal_matrix(g_e) + reciprocal_differences(e) * product(v, g_v, adjoint_a=True)
    gradient = product(product(v, inner), v, adjoint_b=True)
    g_beta = diagonal(gradient, 1) + diagonal(gradient, -1) if needed[1] else None
    return diagonal(gradient) if needed[0] else None, g_beta


eigh_tridiagonal = matrix_primitive(
    "eigh_tridiagonal",
    _eigh_tridiagonal_kernel,
    joint=_eigh_tridiagonal_vjp,
    accepts=_REAL,
    outputs=True,
)


def _eigvalsh_tridiagonal_vjp(needed, g, _y, alpha, beta):
    _, v = eigh_tridiagonal(alpha, beta)
    scaled, g_beta = scale_columns(v, g), None
    if needed[1]:
        size = beta.shape[-1]
        above, below = block(scaled, rows=(0, size)), block(v, rows=(1, size + 1))
        g_beta = _inner_product(above, below) * 2
    return _inner_product(scaled, v) if needed[0] else None, g_beta


eigvalsh_tridiagonal = matrix_primitive(
    "eigvalsh_tridiagonal",
    lambda xp, alpha, beta: on_host(
        xp, _lapack_eigenvalues, Spec(alpha.shape, alpha.dtype), alpha, beta
    ),
    joint=_eigvalsh_tridiagonal_vjp,
    accepts=_REAL,
)
