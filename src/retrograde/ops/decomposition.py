"""Matrix decompositions.

The vectors of repeated eigenvalues or singular values are defined only up to a rotation within
their common subspace. Gradient terms that would divide by the difference of equal values are set to
zero, as in TensorFlow. So the gradient stays finite, and is correct for functions that depend only
on the subspace.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from retrograde.ops._arrays import numpy_dtype_of
from retrograde.ops._families import conj
from retrograde.ops.arithmetic import divide_no_nan, greater, maximum, minimum
from retrograde.ops.casting import cast, ones_like
from retrograde.ops.complex_numbers import real
from retrograde.ops.indexing import scatter_nd
from retrograde.ops.matrices import (
    adjoint,
    band,
    block,
    diagonal,
    diagonal_matrix,
    lower_triangle,
    matrix_primitive,
    product,
    scale_columns,
    scale_rows,
    upper_triangle,
)
from retrograde.ops.reduction import max as maximum_over
from retrograde.ops.shaping import concat, reshape
from retrograde.ops.solvers import solve, triangular_solve
from retrograde.values.errors import invalid
from retrograde.values.scipy_import import import_scipy


def _lapack(op_name, f, x):
    """Returns `f(x)` if `x` is finite. On non-finite input LAPACK returns garbage or hangs."""
    if np.isfinite(x).all():
        try:
            return f(x)
        except np.linalg.LinAlgError:
            pass
    raise invalid(f"{op_name}: the decomposition did not succeed. Expected finite values.")


def _pairs(x):
    """Returns x_j as a row and x_i as a column, to combine all pairs in row i and column j."""
    *batch, n = x.shape
    return reshape(x, shape=(*batch, 1, n)), reshape(x, shape=(*batch, n, 1))


def _reciprocal(x):
    """Returns 1 / x, and 0 where x is 0."""
    return divide_no_nan(ones_like(x), x)


def reciprocal_differences(x):
    """Returns 1 / (x_j - x_i) in row i and column j; 0 where they are equal."""
    x_j, x_i = _pairs(x)
    return _reciprocal(x_j - x_i)


def _pull_back_to_lower(x):
    """Pulls a cotangent back through the construction of a Hermitian matrix from its triangle."""
    h = x + adjoint(x)
    return lower_triangle(h) - band(h * 0.5, 0, 0)


def _divide_by_upper(x, r):
    """Returns x times the inverse of r^H, where r is upper triangular."""
    return adjoint(triangular_solve(r, adjoint(x), lower=False, adjoint=False))


# Cholesky: reads the lower triangle; the gradient treats the input as Hermitian


def _cholesky_kernel(xp, x):
    if xp is not np:
        return xp.linalg.cholesky(x, symmetrize_input=False)
    try:
        return np.linalg.cholesky(x)
    except np.linalg.LinAlgError:
        return _cholesky_one_by_one(x)


def _cholesky_one_by_one(x):
    """Returns NaN for each matrix that is not positive definite."""
    y = np.tril(np.full(x.shape, np.nan, x.dtype))
    for i in np.ndindex(*x.shape[:-2]):
        try:
            y[i] = np.linalg.cholesky(x[i])
        except np.linalg.LinAlgError:
            continue
    return y


def _cholesky_vjp(g, y, _x):
    inner = product(y, g, adjoint_a=True)
    inner = lower_triangle(inner) - band(inner * 0.5, 0, 0)
    half = triangular_solve(y, inner, lower=True, adjoint=True)
    gradient = adjoint(triangular_solve(y, adjoint(half), lower=True, adjoint=True))
    return (gradient + adjoint(gradient)) * 0.5


cholesky = matrix_primitive("cholesky", _cholesky_kernel, vjps=(_cholesky_vjp,))


# QR: the diagonal of r is real. A full q has more columns than x; these are not unique.


def _qr_kernel(xp, x, *, full):
    q, r = xp.linalg.qr(x, mode="complete" if full else "reduced")
    return q, r


def _qr_vjp(g, y, _x, **_):
    (g_q, g_r), (q, r) = g, y
    rows, columns = _x.shape[-2:]
    if rows >= columns:
        return _tall_qr_vjp(g_q, g_r, q, r)
    # The first columns of x determine q. The other columns of r are q^H times the columns of x.
    rest, g_rest = block(r, columns=(rows, columns)), block(g_r, columns=(rows, columns))
    g_q = g_q + product(product(q, rest), g_rest, adjoint_b=True)
    g_first = _tall_qr_vjp(g_q, block(g_r, columns=(0, rows)), q, block(r, columns=(0, rows)))
    return concat(g_first, product(q, g_rest), axis=g_q.ndim - 1)


def _tall_qr_vjp(g_q, g_r, q, r):
    size, columns = r.shape[-2:]
    correction = 0
    if size > columns:  # a full q
        others, g_others = block(q, columns=(columns, size)), block(g_q, columns=(columns, size))
        q, g_q = block(q, columns=(0, columns)), block(g_q, columns=(0, columns))
        r, g_r = block(r, rows=(0, columns)), block(g_r, rows=(0, columns))
        correction = product(others, product(g_others, q, adjoint_a=True))
    m = product(g_r, r, adjoint_b=True) - product(q, g_q, adjoint_a=True)
    upper = upper_triangle(m) - band(m * 0.5, 0, 0)
    return _divide_by_upper(g_q + product(q, upper + adjoint(upper)) - correction, r)


qr = matrix_primitive("qr", _qr_kernel, vjps=(_qr_vjp,), outputs=True)


# Singular values


def _svd_on_numpy(x, **options):
    """Computes singular values with NumPy; a matrix that is not finite gives NaN."""
    bad = ~np.isfinite(x).all(axis=(-2, -1))
    if bad.any():
        x = np.where(bad[..., None, None], 0, x)
    results = _lapack("svd", partial(np.linalg.svd, **options), x)
    for part in results if isinstance(results, tuple) else (results,):
        part[bad] = np.nan
    return results


def _svd_kernel(xp, x, *, full):
    u, s, vh = (_svd_on_numpy if xp is np else xp.linalg.svd)(x, full_matrices=full)
    return s, u, vh.mT.conj()


def _svd_vjp(g, y, _x, **_):
    (g_s, g_u, g_v), (s, u, v) = g, y
    k, m, n = s.shape[-1], u.shape[-1], v.shape[-1]
    others_u, g_others_u = block(u, columns=(k, m)), block(g_u, columns=(k, m))
    others_v, g_others_v = block(v, columns=(k, n)), block(g_v, columns=(k, n))
    u, g_u, v, g_v = (block(x, columns=(0, k)) for x in (u, g_u, v, g_v))
    s_j, s_i = _pairs(s)
    gaps = _reciprocal((s_j - s_i) * (s_j + s_i))
    g_s, gaps, inverse, s = (cast(x, dtype=_x.dtype) for x in (g_s, gaps, _reciprocal(s), s))
    u_gu, v_gv = product(u, g_u, adjoint_a=True), product(v, g_v, adjoint_a=True)
    rotation_u, rotation_v = gaps * u_gu, gaps * v_gv
    inner = (
        diagonal_matrix(g_s + _imaginary(diagonal(u_gu)) * inverse)
        + scale_columns(rotation_u + adjoint(rotation_u), s)
        + scale_rows(rotation_v + adjoint(rotation_v), s)
    )
    result = product(product(u, inner), v, adjoint_b=True)
    rows, columns = _x.shape[-2:]
    if rows > k:
        outside = g_u - product(u, u_gu)
        outside = outside - product(others_u, product(g_others_u, u, adjoint_a=True))
        result = result + product(scale_columns(outside, inverse), v, adjoint_b=True)
    if columns > k:
        outside = g_v - product(v, v_gv)
        outside = outside - product(others_v, product(g_others_v, v, adjoint_a=True))
        result = result + product(scale_columns(u, inverse), outside, adjoint_b=True)
    return result


def _imaginary(x):
    """Returns the imaginary part as an imaginary number; 0 for real numbers."""
    return (x - conj(x)) * 0.5


svd = matrix_primitive("svd", _svd_kernel, vjps=(_svd_vjp,), outputs=True)


def _singular_values_kernel(xp, x):
    return (_svd_on_numpy if xp is np else xp.linalg.svd)(x, compute_uv=False)


def _singular_values_vjp(g, _y, x):
    _, u, v = svd(x, full=False)
    return product(scale_columns(u, cast(g, dtype=numpy_dtype_of(x))), v, adjoint_b=True)


singular_values = matrix_primitive(
    "singular_values", _singular_values_kernel, vjps=(_singular_values_vjp,)
)


# The pseudo-inverse


def _pinv_kernel(xp, x, rcond, *, truncates):  # noqa: ARG001
    """Computes the pseudo-inverse; singular values up to `rcond` times the largest count as 0.

    `truncates` says that this may drop more than rounding errors. Then the gradient has another
    term.
    """
    u, s, vh = (_svd_on_numpy if xp is np else xp.linalg.svd)(x, full_matrices=False)
    largest = xp.max(s, axis=-1, keepdims=True, initial=0)
    keep = s > rcond[..., None].real * largest
    inverse = xp.where(keep, 1 / xp.where(keep, s, 1), 0).astype(x.dtype)
    return (vh.mT.conj() * inverse[..., None, :]) @ u.mT.conj()


def _pinv_vjp(g, y, x, rcond, *, truncates):
    """Uses the formula of Golub and Pereyra, which does not divide by differences."""
    h = adjoint(g)
    yh, hy = product(y, h), product(h, y)
    g_x = (
        product(h - product(x, yh), product(y, y, adjoint_b=True))
        + product(y, product(y, h - product(hy, x)), adjoint_a=True)
        - adjoint(product(yh, y))
    )
    if not truncates or 0 in x.shape:
        return g_x
    return g_x + _truncation_term(g, x, rcond)


def _truncation_term(g, x, rcond):
    """Computes the term that the formula of Golub and Pereyra omits.

    It accounts for rotations of the kept singular vectors towards the dropped ones.
    """
    s, u, v = svd(x, full=False)
    dtype = numpy_dtype_of(x)
    rcond = reshape(real(rcond) if dtype.kind == "c" else rcond, shape=(*rcond.shape, 1))
    limit = rcond * maximum_over(s, axis=(s.ndim - 1,), keepdims=True)
    kept_j, kept_i = _pairs(cast(greater(s, limit), dtype=numpy_dtype_of(s)))
    s_j, s_i = _pairs(s)
    small, large = minimum(s_i, s_j), maximum(s_i, s_j)
    ratio = divide_no_nan(small, large)
    gaps = _reciprocal((large - small) * (large + small))
    direct = cast((kept_i - kept_j) * (kept_i - kept_j) * ratio * gaps, dtype=dtype)
    crossed = direct * cast(ratio, dtype=dtype)
    inner = product(product(v, g, adjoint_a=True), u)
    return product(product(u, direct * inner + adjoint(crossed * inner)), v, adjoint_b=True)


pinv = matrix_primitive("pinv", _pinv_kernel, vjps=(_pinv_vjp, None))


# Eigenvalues of Hermitian matrices; reads the lower triangle


def _eigh_kernel(xp, x):
    if xp is np:
        e, v = _lapack("eigh", np.linalg.eigh, np.tril(x))
    else:
        e, v = xp.linalg.eigh(_hermitian(xp, x), symmetrize_input=False)
    return e.astype(x.dtype, copy=False), v


def _hermitian(xp, x):
    """Returns the Hermitian matrix with the lower triangle of x, so that JAX can differentiate."""
    low = xp.tril(x, -1)
    return low + low.mT.conj() + xp.tril(xp.triu(x)).real.astype(x.dtype)


def _eigh_vjp(g, y, _x):
    (g_e, g_v), (e, v) = g, y
    inner = diagonal_matrix(g_e) + reciprocal_differences(e) * product(v, g_v, adjoint_a=True)
    return _pull_back_to_lower(product(product(v, inner), v, adjoint_b=True))


eigh = matrix_primitive("eigh", _eigh_kernel, vjps=(_eigh_vjp,), outputs=True)


def _eigvalsh_kernel(xp, x):
    if xp is not np:
        return _eigh_kernel(xp, x)[0]
    return _lapack("eigvalsh", np.linalg.eigvalsh, np.tril(x)).astype(x.dtype, copy=False)


def _eigvalsh_vjp(g, _y, x):
    _, v = eigh(x)
    return _pull_back_to_lower(product(scale_columns(v, g), v, adjoint_b=True))


eigvalsh = matrix_primitive("eigvalsh", _eigvalsh_kernel, vjps=(_eigvalsh_vjp,))


# Eigenvalues of general matrices: complex, with eigenvectors of norm 1


def _eig_kernel(xp, x):
    e, v = _lapack("eig", np.linalg.eig, x) if xp is np else xp.linalg.eig(x)
    dtype = np.result_type(x.dtype, np.complex64)
    return e.astype(dtype), v.astype(dtype)


def _as_input(x, _x):
    """Returns `x`, or its real part if the input is real."""
    return x if _x.dtype.kind == "c" else real(x)


def _eig_vjp(g, y, _x):
    (g_e, g_v), (e, v) = g, y
    v_gv = product(v, g_v, adjoint_a=True)
    stretch = diagonal(v_gv)
    stretch = (stretch + conj(stretch)) * 0.5  # the norm of an eigenvector is constant
    rotation = v_gv - scale_columns(product(v, v, adjoint_a=True), stretch)
    inner = diagonal_matrix(g_e) + conj(reciprocal_differences(e)) * rotation
    return _as_input(solve(v, product(inner, v, adjoint_b=True), adjoint=True), _x)


eig = matrix_primitive("eig", _eig_kernel, vjps=(_eig_vjp,), outputs=True)


def _eigvals_kernel(xp, x):
    e = _lapack("eigvals", np.linalg.eigvals, x) if xp is np else xp.linalg.eigvals(x)
    return e.astype(np.result_type(x.dtype, np.complex64))


def _eigvals_vjp(g, _y, x):
    _, v = eig(x)
    return _as_input(solve(v, scale_rows(adjoint(v), g), adjoint=True), x)


eigvals = matrix_primitive("eigvals", _eigvals_kernel, vjps=(_eigvals_vjp,))


# LU: both triangles in one matrix, and the row permutation


def _lu_kernel(xp, x, *, dtype):
    if xp is not np:
        import jax

        y, _, order = jax.lax.linalg.lu(x)
        return y, order.astype(dtype)
    y, order = (_eliminate if x.size > x.shape[-1] ** 3 else _lu_by_scipy)(x)
    if not np.diagonal(y, axis1=-2, axis2=-1).all():
        raise invalid("lu: a matrix is singular. Expected invertible matrices.")
    return y, order.astype(dtype)


def _lu_by_scipy(x):
    if not x.size:
        return x.copy(), np.zeros(x.shape[:-1], int)
    rows, lower, upper = import_scipy("linalg", "lu").lu(x, p_indices=True, check_finite=False)
    return np.tril(lower, -1) + upper, np.argsort(rows, axis=-1)


def _eliminate(x):
    """Eliminates column by column, vectorized over the matrices. They are the last axis here."""
    n = x.shape[-1]
    y = np.moveaxis(x.reshape(-1, n, n), 0, -1).copy()
    each = np.arange(y.shape[-1])
    order = np.repeat(np.arange(n)[:, None], len(each), axis=1)
    for k in range(n):
        column = y[k:, k]
        sizes = abs(column.real) + abs(column.imag)  # as LAPACK compares
        pivot = k + sizes.argmax(0)
        chosen, others = y[pivot, :, each].T, y[k].copy()
        y[pivot, :, each], y[k] = others.T, chosen
        order[k], order[pivot, each] = order[pivot, each], order[k].copy()
        y[k + 1 :, k] /= y[k, k]
        y[k + 1 :, k + 1 :] -= y[k + 1 :, k, None] * y[k, k + 1 :]
    return np.moveaxis(y, -1, 0).reshape(x.shape), order.T.reshape(x.shape[:-1])


def _lu_vjp(g, y, _x, **_):
    (g_lu, _), (lu, order) = g, y
    lower, upper = unit_lower_triangle(lu), upper_triangle(lu)
    inner = lower_triangle(product(lower, lower_triangle(g_lu, -1), adjoint_a=True), -1)
    inner = inner + upper_triangle(product(upper_triangle(g_lu), upper, adjoint_b=True))
    half = triangular_solve(lower, inner, lower=True, adjoint=True)
    rows = _divide_by_upper(half, upper)
    indices = reshape(order, shape=(*order.shape, 1))
    return scatter_nd(rows, indices, shape=tuple(_x.shape), batch_dims=rows.ndim - 2)


def unit_lower_triangle(lu):
    """Returns the lower triangle of an LU decomposition, with ones on the diagonal."""
    diagonal_of_ones = diagonal_matrix(ones_like(diagonal(lu)))
    return lower_triangle(lu, -1) + diagonal_of_ones


lu = matrix_primitive("lu", _lu_kernel, vjps=(_lu_vjp,), outputs=True)


# LAPACK pivots: the row that each row is swapped with, in order; and the resulting permutation


def _pivots_kernel(xp, x):
    if xp is np:
        return _pivots_by_scipy(x)
    import jax

    _, pivots, order = jax.lax.linalg.lu(x)
    return pivots, order


def _pivots_by_scipy(x):
    *batch, rows, columns = x.shape
    pivots = np.zeros((*batch, min(rows, columns)), np.int32)
    order = np.tile(np.arange(rows, dtype=np.int32), (*batch, 1))
    (factorize,) = import_scipy("linalg", "lu").get_lapack_funcs(("getrf",), (x,))
    for matrix in np.ndindex(*batch):
        _, pivots[matrix], _ = factorize(x[matrix])
        for i, j in enumerate(pivots[matrix]):
            order[matrix][[i, j]] = order[matrix][[j, i]]
    return pivots, order


pivots = matrix_primitive("pivots", _pivots_kernel, vjps=None, outputs=True)
