"""Inverses, determinants, solvers, decompositions and matrix functions.

If JAX takes long to compile the second derivative of a kernel, only finite differences are used.
"""

from __future__ import annotations

import itertools

import jax
import numpy as np
import scipy.linalg

from tests.ops.cases._table import between, case, complexes, off_zero


def adjoint(x: np.ndarray) -> np.ndarray:
    return np.conj(np.swapaxes(x, -1, -2))


def well_conditioned(*shape: int, draw=off_zero) -> np.ndarray:
    """Returns square matrices that are far from singular, with separate eigenvalues."""
    n = shape[-1]
    return draw(*shape) * 0.2 + np.diag(np.arange(1.0, n + 1))


def definite(*shape: int, draw=off_zero) -> np.ndarray:
    """Returns Hermitian matrices with separate positive eigenvalues."""
    x = well_conditioned(*shape, draw=draw)
    return (x + adjoint(x)) / 2


def spread_out(*shape: int, draw=off_zero) -> np.ndarray:
    """Returns matrices of any shape with separate singular values far from 0."""
    m, n = shape[-2:]
    return draw(*shape) * 0.2 + np.eye(m, n) * np.arange(1.0, n + 1)


def squares(name: str, reference, draw=well_conditioned, **options) -> None:
    """Adds cases with a batch of square matrices, and an empty matrix."""
    case(name, draw(2, 2, 2, draw=complexes), "batch", reference, **options)
    case(name, np.zeros((0, 0)), "empty", reference, **options)


def one_by_one(f):
    """Applies `f` to each matrix of a batch."""

    def apply_to_each(*xs, **attrs):
        batch = xs[0].shape[:-2]
        if not batch:
            return f(*xs, **attrs)
        rows = [f(*(x[i] for x in xs), **attrs) for i in np.ndindex(*batch)]
        return np.array(rows).reshape(*batch, *np.shape(rows[0])) if rows else xs[0]

    return apply_to_each


# Inverses and determinants


def _det(x):
    """Computes the determinant with the Leibniz formula."""
    n = x.shape[-1]
    total = np.zeros(x.shape[:-2], x.dtype)
    for perm in itertools.permutations(range(n)):
        sign = np.linalg.det(np.eye(n)[list(perm)]) if n else 1
        total = total + sign * np.prod([x[..., i, p] for i, p in enumerate(perm)], axis=0)
    return total


def _cofactors(x):
    n = x.shape[-1]
    y = np.empty(x.shape, x.dtype)
    for i, j in itertools.product(range(n), repeat=2):
        minor = np.delete(np.delete(x, i, -2), j, -1)
        y[..., i, j] = (-1) ** (i + j) * _det(minor)
    return y


def _inv(x):
    return np.swapaxes(_cofactors(x), -1, -2) / _det(x)[..., None, None]


squares("inv", _inv)
squares("det", _det)
squares("cofactors", _cofactors, jax_rule=False)
squares("slogdet", lambda x: (_det(x) / abs(_det(x)), np.log(abs(_det(x)))))


# Linear systems


def _solve(a, b, *, adjoint: bool = False):
    a = np.conj(np.swapaxes(a, -1, -2)) if adjoint else a
    return np.einsum("...ij,...jk->...ik", np.linalg.inv(a), b)


def _triangular(a, b, *, lower, adjoint):
    return _solve(np.tril(a) if lower else np.triu(a), b, adjoint=adjoint)


def solve(label: str, a, b, flag: bool = False) -> None:
    case("solve", [a, b], f"{label}{'_adjoint' * flag}", _solve, attrs={"adjoint": flag})


solve("matrix", well_conditioned(3, 3), off_zero(3, 2))
solve("batch", well_conditioned(2, 2, 2, draw=complexes), complexes(2, 2, 1))
solve("batch", well_conditioned(2, 2, 2, draw=complexes), complexes(2, 2, 1), True)
solve("empty", np.zeros((0, 0)), np.zeros((0, 2)))


def triangular_solve(label: str, a, b, lower: bool = True, flag: bool = False) -> None:
    name = f"{label}_{'lower' if lower else 'upper'}{'_adjoint' * flag}"
    case("triangular_solve", [a, b], name, _triangular,
         attrs={"lower": lower, "adjoint": flag})  # fmt: skip


for flags in itertools.product((False, True), repeat=2):
    triangular_solve("matrix", well_conditioned(3, 3, draw=complexes), complexes(3, 2), *flags)
    triangular_solve("many", well_conditioned(3, 2, 2, draw=complexes), complexes(3, 2, 1), *flags)
triangular_solve("batch", well_conditioned(2, 3, 3), off_zero(2, 3, 2), True, True)
triangular_solve("shared_matrix", well_conditioned(2, 2), off_zero(2, 3, 2, 1))
triangular_solve("shared_sides", well_conditioned(2, 2, 2), off_zero(2, 3), False)
triangular_solve("broadcast", well_conditioned(3, 1, 2, 2), off_zero(2, 2, 1))
triangular_solve("empty", np.zeros((0, 0)), np.zeros((0, 2)))


def _pinv(x, rcond, **_):
    if not x.size:
        return np.swapaxes(x, -1, -2)
    gram = np.einsum("...ij,...ik->...jk", np.conj(x), x)
    if x.shape[-2] < x.shape[-1]:
        return adjoint(_pinv(adjoint(x), rcond))
    return np.linalg.inv(gram) @ adjoint(x)


def _rank_one_pinv(x, _, **__):
    """Computes the pseudo-inverse with the only large singular value."""
    u, s, vh = scipy.linalg.svd(x)
    return np.outer(np.conj(vh[0]), np.conj(u[:, 0])) / s[0]


for label, x in [
    ("square", well_conditioned(2, 2)), ("wide", spread_out(2, 3)), ("empty", np.zeros((0, 2))),
    ("batch", spread_out(2, 3, 2, draw=complexes)),
]:  # fmt: skip
    case("pinv", [x, np.full(x.shape[:-2], 1e-10, x.dtype)], label, _pinv,
         attrs={"truncates": False}, jax_rule=label == "batch")  # fmt: skip
rank_one = np.outer([1.0, 2.0, -1.0], [0.5, 2.0])
case("pinv", [rank_one, np.array(0.3)], "rank_one", _rank_one_pinv, differences=False,
     attrs={"truncates": True}, jax_rule=False)  # fmt: skip
for label, x in [
    ("tall", rank_one + 0.1 * off_zero(3, 2)), ("wide", rank_one.T + 0.1j * complexes(2, 3)),
]:  # fmt: skip
    case("pinv", [x, np.array(0.5, x.dtype)], f"truncated_{label}", _rank_one_pinv,
         attrs={"truncates": True}, jax_rule=False)  # fmt: skip


# Decompositions. Vectors have the signs of LAPACK, which SciPy calls as well.


def _qr(x, *, full):
    m, n = x.shape[-2:]
    size = m if full else min(m, n)
    batch = x.shape[:-2]
    q, r = np.zeros((*batch, m, size), x.dtype), np.zeros((*batch, size, n), x.dtype)
    for i in np.ndindex(*batch) if x.size else ():
        q[i], r[i] = scipy.linalg.qr(x[i], mode="full" if full else "economic")
    return q, r


def _svd(x, *, full):
    m, n = x.shape[-2:]
    k, batch = min(m, n), x.shape[:-2]
    s = np.zeros((*batch, k))
    u = np.zeros((*batch, m, m if full else k), x.dtype)
    v = np.zeros((*batch, n, n if full else k), x.dtype)
    for i in np.ndindex(*batch) if x.size else ():
        u[i], s[i], vh = scipy.linalg.svd(x[i], full_matrices=full)
        v[i] = adjoint(vh)
    return s, u, v


def _eigh(x):
    e, v = np.zeros(x.shape[:-1], x.dtype), np.zeros(x.shape, x.dtype)
    for i in np.ndindex(*x.shape[:-2]) if x.size else ():
        e[i], v[i] = scipy.linalg.eigh(x[i], lower=True, driver="evd")
    return e, v


def _eig(x):
    e, v = np.zeros(x.shape[:-1], complex), np.zeros(x.shape, complex)
    for i in np.ndindex(*x.shape[:-2]) if x.size else ():
        e[i], v[i] = scipy.linalg.eig(x[i])
    return e, v


def _lu(x, *, dtype):
    y, order = np.zeros_like(x), np.zeros(x.shape[:-1], dtype)
    for matrix in np.ndindex(*x.shape[:-2]) if x.size else ():
        y[matrix], pivots = scipy.linalg.lu_factor(x[matrix])
        rows = np.arange(x.shape[-1])
        for i, pivot in enumerate(pivots):
            rows[[i, pivot]] = rows[[pivot, i]]
        order[matrix] = rows
    return y, order


squares("cholesky", one_by_one(lambda x: scipy.linalg.cholesky(x, lower=True) if x.size else x),
        draw=definite, hermitian=True)  # fmt: skip

for label, x in [
    ("batch", complexes(2, 3, 2)), ("wide", complexes(2, 3)), ("empty", np.zeros((2, 0))),
]:  # fmt: skip
    differentiable = label != "wide" or jax.__version_info__ >= (0, 10)
    case("qr", x, label, _qr, attrs={"full": False}, jax_rule=differentiable)
# JAX has no rule for these. The additional column is unique up to its sign.
case("qr", off_zero(3, 2), "full", _qr, attrs={"full": True}, jax_rule=False)
case("qr", off_zero(2, 3), "full_wide", _qr, attrs={"full": True}, jax_rule=False)

for label, x in [
    ("wide", spread_out(2, 4)), ("empty", np.zeros((2, 0))),
]:  # fmt: skip
    case("svd", x, label, _svd, attrs={"full": False})
    case("singular_values", x, label, lambda x: _svd(x, full=False)[0])
# Finite differences do not apply to complex vectors, whose phases LAPACK chooses.
case("svd", spread_out(2, 3, 2, draw=complexes), "batch", _svd, attrs={"full": False},
     differences=False)  # fmt: skip
case(
    "singular_values", spread_out(3, 2, draw=complexes), "complex", lambda x: _svd(x, full=False)[0]
)
case("svd", spread_out(3, 2), "full_tall", _svd, attrs={"full": True}, jax_rule=False)
case("svd", spread_out(2, 3), "full_wide", _svd, attrs={"full": True}, jax_rule=False)

for label, x in [
    ("lower_read", well_conditioned(3, 3)), ("empty", np.zeros((0, 0))),
    ("complex", definite(2, 2, 2, draw=complexes)),
]:  # fmt: skip
    is_complex = label == "complex"
    case("eigh", x, label, _eigh, differences=not is_complex)
    case("eigvalsh", x, label, lambda x: _eigh(x)[0])

# JAX has no rule for the vectors.
for label, x in [
    ("matrix", np.array([[1.0, 0.3, -0.2], [0.1, 2.0, 0.4], [0.2, -0.1, 3.5]])),
    ("rotation", np.array([[0.2, -1.0], [1.5, 0.3]])),
    ("empty", np.zeros((0, 0))), ("complex", well_conditioned(2, 2, 2, draw=complexes)),
]:  # fmt: skip
    real = label in ("matrix", "empty")
    case("eig", x, label, _eig, differences=real, jax_rule=False)
    case("eigvals", x, label, lambda x: _eig(x)[0], jax_rule=False)

int32 = {"dtype": np.dtype(np.int32)}
squares("lu", _lu, attrs=int32, jax_rule=False,
        draw=lambda *shape, draw=off_zero: well_conditioned(*shape, draw=draw)[..., ::-1],
)  # fmt: skip
case(
    "lu", well_conditioned(2, 2), "int64", _lu, attrs={"dtype": np.dtype(np.int64)}, jax_rule=False
)


def _pivots(x):
    """Eliminates with partial pivoting."""
    *batch, m, n = x.shape
    swaps, orders = np.zeros((*batch, min(m, n)), "int32"), np.zeros((*batch, m), "int32")
    for i in np.ndindex(*batch):
        a, order = x[i].copy(), np.arange(m)
        for k in range(min(m, n)):
            swaps[i][k] = pivot = k + np.argmax(abs(a[k:, k].real) + abs(a[k:, k].imag))
            a[[k, pivot]], order[[k, pivot]] = a[[pivot, k]], order[[pivot, k]]
            a[k + 1 :] -= np.outer(a[k + 1 :, k] / a[k, k], a[k])
        orders[i] = order
    return swaps, orders


for shape in ((2, 3, 3), (4, 2), (2, 3)):
    case("pivots", off_zero(*shape), f"shape{shape}", _pivots)
case("pivots", complexes(3, 3), "complex", _pivots)


# Matrix functions. For those that JAX lacks, SciPy runs in a host callback without a JAX rule.


def _by_eigenvalues(f):
    def function(x):
        if not x.size:
            return x
        e, v = np.linalg.eig(x.astype(complex))
        y = (v * f(e)[..., None, :]) @ np.linalg.inv(v)
        return y if x.dtype.kind == "c" else y.real

    return function


_expm = one_by_one(lambda x: scipy.linalg.expm(x) if x.size else x)
squares("expm", _expm, draw=lambda *shape, draw=off_zero: draw(*shape) * 0.2, jax_rule=False)
case("expm", -np.stack([well_conditioned(2, 2) * 4, well_conditioned(2, 2)]), "scaled", _expm,
     jax_rule=False, dtypes=(np.dtype(np.float64),))  # fmt: skip
squares("sqrtm", _by_eigenvalues(np.sqrt), jax_rule=False)
for label, shape in [("batch", (2, 2, 2)), ("empty", (0, 2, 2))]:
    x = well_conditioned(*shape, draw=complexes)
    case("logm", x, label, _by_eigenvalues(np.log), jax_rule=False)


# Banded matrices


def _tridiagonal(d):
    n = d.shape[-1]
    y = np.zeros((*d.shape[:-2], n, n), d.dtype)
    for i in range(n):
        y[..., i, i] = d[..., 1, i]
        if i + 1 < n:
            y[..., i, i + 1], y[..., i + 1, i] = d[..., 0, i], d[..., 2, i + 1]
    return y


def _dominant(*shape: int, draw=off_zero) -> np.ndarray:
    d = draw(*shape) * 0.3
    d[..., 1, :] += np.arange(2, shape[-1] + 2)
    return d


for label, d, b in [
    ("matrix", _dominant(3, 4), off_zero(4, 2)), ("scalar", _dominant(3, 1), off_zero(1, 2)),
    ("empty", np.zeros((3, 0)), np.zeros((0, 2))),
    ("batch", _dominant(2, 3, 3, draw=complexes), complexes(2, 3, 1)),
]:  # fmt: skip
    case("tridiagonal_solve", [d, b], label, lambda d, b: _solve(_tridiagonal(d), b))


def _solve_banded(bands, b, *, lower, adjoint):
    k, n = bands.shape[-2:]
    matrix = np.zeros((*bands.shape[:-2], n, n), bands.dtype)
    for i, step in itertools.product(range(n), range(k)):
        j = i - step if lower else i + step
        if 0 <= j < n:
            matrix[..., i, j] = bands[..., step if lower else k - 1 - step, i]
    return _solve(matrix, b, adjoint=adjoint)


def banded_solve(label: str, bands, b, lower: bool = True, flag: bool = False) -> None:
    bands[..., 0 if lower else -1, :] += 1.5
    name = f"{label}_{'lower' if lower else 'upper'}{'_adjoint' * flag}"
    case("banded_solve", [bands, b], name, _solve_banded, attrs={"lower": lower, "adjoint": flag})


for flags in itertools.product((False, True), repeat=2):
    banded_solve("matrix", complexes(2, 3), complexes(3, 2), *flags)
banded_solve("real", between(0.1, 0.5, 3, 4), off_zero(4, 1))
banded_solve("batch", between(0.1, 0.5, 2, 2, 3), off_zero(2, 3, 1), False)
banded_solve("too_many", between(0.1, 0.5, 3, 2), off_zero(2, 1))


def _eigh_tridiagonal(alpha, beta):
    n = alpha.shape[-1]
    e, v = np.zeros(alpha.shape), np.zeros((*alpha.shape, n))
    for i in np.ndindex(*alpha.shape[:-1]) if n else ():
        matrix = np.diag(alpha[i]) + np.diag(beta[i], 1) + np.diag(beta[i], -1)
        e[i], vectors = np.linalg.eigh(matrix)
        signs = np.sign(scipy.linalg.eigh_tridiagonal(alpha[i], beta[i])[1] * vectors)
        v[i] = vectors * signs[0]
    return e, v


for label, alpha, beta in [
    ("vector", np.array([1.0, 2.0, 3.5]), off_zero(2) * 0.5),
    ("batch", np.array([[1.0, 2.0], [0.5, -1.0]]), off_zero(2, 1) * 0.5),
    ("scalar", off_zero(1), np.zeros(0)),
]:  # fmt: skip
    case("eigh_tridiagonal", [alpha, beta], label, _eigh_tridiagonal, jax_rule=False)
    case("eigvalsh_tridiagonal", [alpha, beta], label,
         lambda alpha, beta: _eigh_tridiagonal(alpha, beta)[0], jax_rule=False)  # fmt: skip
