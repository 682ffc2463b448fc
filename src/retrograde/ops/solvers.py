"""Inverses, determinants, and linear systems with full and triangular matrices."""

from __future__ import annotations

import math

import numpy as np

from retrograde.core import floating_point_flags
from retrograde.core.apply import Primitive
from retrograde.ops import reduction
from retrograde.ops._arrays import widen
from retrograde.ops._families import align_batched, conj
from retrograde.ops.complex_numbers import imag, make_complex, real
from retrograde.ops.matrices import (
    LAPACK,
    adjoint,
    lower_triangle,
    matrix_primitive,
    product,
    transpose_matrices,
    upper_triangle,
)
from retrograde.ops.shaping import reshape, sum_to
from retrograde.values import dtypes
from retrograde.values.errors import invalid
from retrograde.values.scipy_import import import_scipy


def _singular(op_name):
    return invalid(
        f"{op_name}: a matrix is singular. Expected invertible matrices; for others, use "
        "tf.linalg.pinv or tf.linalg.lstsq."
    )


def _inv_kernel(xp, x):
    try:
        return xp.linalg.inv(widen(x)).astype(x.dtype, copy=False)
    except np.linalg.LinAlgError:
        raise _singular("inv") from None


def _inv_vjp(g, y, _x):
    return -product(product(y, g, adjoint_a=True), y, adjoint_b=True)


inv = matrix_primitive(
    "inv", _inv_kernel, vjps=(_inv_vjp,), accepts=LAPACK | {dtypes.float16.numpy_dtype}
)


def _per_matrix(g):
    """Reshapes `g`, one number for each matrix, so that it broadcasts against the matrices."""
    return reshape(g, shape=(*g.shape, 1, 1))


def _cofactors_kernel(xp, x):
    """Returns det(x) times the transposed inverse, which is defined for singular matrices, too."""
    if xp is np:
        try:
            return (np.linalg.det(x)[..., None, None] * np.linalg.inv(x).mT).astype(x.dtype)
        except np.linalg.LinAlgError:
            pass
    n = x.shape[-1]
    if not n:
        return x
    u, s, vh = xp.linalg.svd(x)
    others = xp.where(np.eye(n, dtype=bool), np.ones((), s.dtype), s[..., None, :]).prod(-1)
    sign = xp.linalg.det(u) * xp.linalg.det(vh)
    return sign[..., None, None] * (u.conj() * others[..., None, :].astype(x.dtype)) @ vh.conj()


def _cofactors_vjp(g, y, x):
    h, b = conj(g), transpose_matrices(inv(x))
    total = reduction.sum(h * y, axis=(g.ndim - 2, g.ndim - 1), keepdims=True)
    return conj(total * b - product(product(b, transpose_matrices(h)), y))


cofactors = matrix_primitive("cofactors", _cofactors_kernel, vjps=(_cofactors_vjp,))


def _nan_if_any(xp, x, y):
    """Returns `y`, with NaN for matrices that contain NaN. LAPACK may treat them as singular."""
    return xp.where(xp.isnan(x).any(axis=(-2, -1)), y.dtype.type(np.nan), y)


def _det_kernel(xp, x):
    if not x.shape[-1]:  # JAX does not support empty matrices
        return xp.ones(x.shape[:-2], x.dtype)
    return _nan_if_any(xp, x, xp.linalg.det(x))


det = matrix_primitive(
    "det",
    _det_kernel,
    vjps=(lambda g, _y, x: _per_matrix(g) * conj(cofactors(x)),),
)


def _slogdet_kernel(xp, x):
    sign, size = (_nan_if_any(xp, x, part) for part in xp.linalg.slogdet(x))
    return sign.astype(x.dtype, copy=False), size.astype(x.dtype, copy=False)


def _slogdet_vjp(g, y, x):
    """Combines both cotangents: log(det) has log|det| as real part, the phase as imaginary part."""
    g_sign, g_size = g
    if x.dtype.kind == "c":
        g_size = make_complex(real(g_size), imag(conj(y[0]) * g_sign))
    return _per_matrix(g_size) * adjoint(inv(x))


slogdet = matrix_primitive("slogdet", _slogdet_kernel, vjps=(_slogdet_vjp,), outputs=True)


# Linear systems. The cotangent of the right-hand side solves the adjoint system.


def _pull_to_matrix(g_rhs, y, adjoint):
    """Returns a matrix's cotangent from the solution and the cotangent of the right-hand side."""
    if adjoint:
        return -product(y, g_rhs, adjoint_b=True)
    return -product(g_rhs, y, adjoint_b=True)


def _solve_kernel(xp, a, b, *, adjoint):
    try:
        return xp.linalg.solve(a.mT.conj() if adjoint else a, b)
    except np.linalg.LinAlgError:
        raise _singular("solve") from None


def _solve_vjp(needed, g, y, a, _b, *, adjoint):
    g_rhs = solve(a, g, adjoint=not adjoint)
    g_matrix = _pull_to_matrix(g_rhs, y, adjoint) if needed[0] else None
    return g_matrix, g_rhs if needed[1] else None


solve = matrix_primitive("solve", _solve_kernel, joint=_solve_vjp)


def _triangular_solve_kernel(xp, a, b, *, lower, adjoint):
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    if xp is np:
        return _triangular_solve_on_numpy(a, b, batch, lower, adjoint)
    import jax

    a, b = (xp.broadcast_to(x, (*batch, *x.shape[-2:])) for x in (a, b))
    if not b.size:
        return b
    options = {"transpose_a": adjoint, "conjugate_a": adjoint}
    return jax.lax.linalg.triangular_solve(a, b, left_side=True, lower=lower, **options)


def _triangular_solve_on_numpy(a, b, batch, lower, adjoint):
    """Calls BLAS once for a single matrix; for a batch, uses the loop with fewer iterations."""
    (n, k), count = b.shape[-2:], math.prod(batch)
    if not n * k * count:
        return np.zeros((*batch, n, k), b.dtype)
    if a.ndim == 2:  # one matrix: all right-hand sides become columns
        sides = np.moveaxis(b, -2, 0).reshape(n, -1)
        y = _trsm(a, sides, lower, adjoint)
        return np.moveaxis(y.reshape(n, *batch, k), 0, -2)
    a, b = (np.broadcast_to(x, (*batch, *x.shape[-2:])) for x in (a, b))
    if count > n:
        return _substitute(a, b, lower, adjoint)
    y = np.empty(b.shape, b.dtype)
    for i in np.ndindex(*batch):
        y[i] = _trsm(a[i], b[i], lower, adjoint)
    return y


def _trsm(a, b, lower, adjoint):
    """Solves with BLAS. Row-major matrices are passed transposed, as BLAS is column-major."""
    if not a.diagonal().all():
        floating_point_flags.set_flag()  # BLAS does not report division by zero
    trsm = import_scipy("linalg.blas", "triangular_solve").get_blas_funcs("trsm", dtype=b.dtype)
    if a.flags.f_contiguous or (adjoint and a.dtype.kind == "c"):
        return trsm(1, a, b, lower=lower, trans_a=2 if adjoint else 0)
    return trsm(1, a.T, b, lower=not lower, trans_a=0 if adjoint else 1)


def _substitute(a, b, lower, adjoint):
    """Substitutes row by row, vectorized over the matrices."""
    if adjoint:
        a, lower = a.mT.conj(), not lower
    n = a.shape[-1]
    y = np.empty(b.shape, b.dtype)
    for i in range(n) if lower else reversed(range(n)):
        known = slice(0, i) if lower else slice(i + 1, n)
        rest = b[..., i : i + 1, :] - a[..., i : i + 1, known] @ y[..., known, :]
        y[..., i : i + 1, :] = rest / a[..., i : i + 1, i : i + 1]
    return y


def _triangular_solve_vjp(needed, g, y, a, _b, *, lower, adjoint):
    g_rhs = triangular_solve(a, g, lower=lower, adjoint=not adjoint)
    g_matrix = None
    if needed[0]:
        triangle = lower_triangle if lower else upper_triangle
        g_matrix = _sum_to_shape_of(triangle(_pull_to_matrix(g_rhs, y, adjoint)), a)
    return g_matrix, _sum_to_shape_of(g_rhs, _b) if needed[1] else None


def _sum_to_shape_of(x, like):
    shape = tuple(like.shape)
    return x if tuple(x.shape) == shape else sum_to(x, shape=shape)


triangular_solve = Primitive(
    "triangular_solve",
    _triangular_solve_kernel,
    joint=_triangular_solve_vjp,
    batch=lambda batched, *xs, **attrs: triangular_solve(*align_batched(batched, xs), **attrs),
    accepts=LAPACK,
)
