"""tf.linalg: decompositions, determinants, matrix functions."""

import numpy as np
import pytest

import retrograde as tf
from retrograde.errors import InvalidArgumentError
from retrograde.testing import check_gradients
from tests.namespaces.helpers import assert_raises, gradient

DTYPES = ("float32", "float64", "complex64", "complex128")
SHAPES = ((3, 3), (2, 3, 3), (2, 1, 2, 2), (1, 1))
RECTANGLES = (*SHAPES, (4, 2), (2, 4), (2, 5, 2), (3, 0), (0, 3))


def random(shape, dtype="float64", seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * rng.normal(size=shape)
    return x.astype(dtype)


def definite(shape, dtype="float64", seed=0):
    x = random(shape, dtype, seed)
    return x @ np.conj(x.mT) + np.eye(shape[-1], dtype=dtype)


def close(actual, expected):
    dtype = np.asarray(expected).dtype
    tolerance = 1e-4 if dtype in ("float32", "complex64") else 1e-11
    np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance)
    assert actual.dtype == dtype


def real_dtype(dtype):
    return np.dtype(dtype).type(0).real.dtype


def assert_complex_gradient(f, x, rtol=1e-6):
    """Checks the gradient of a real `f` of complex matrices against differences."""
    (g,) = gradient(f, x)
    step, rng = 1e-6, np.random.default_rng(5)
    for phase in (1, 1j):
        d = rng.normal(size=x.shape) * phase
        forward, backward = (float(f(tf.constant(x + h * d))) for h in (step, -step))
        difference = (forward - backward) / (2 * step)
        np.testing.assert_allclose(
            np.sum(np.real(np.conj(g) * d)), difference, rtol=rtol, atol=1e-7
        )


# Properties of decompositions


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_cholesky_factor_is_lower_triangular_and_reconstructs_the_matrix(shape, dtype):
    x = definite(shape, dtype)

    y = tf.linalg.cholesky(x).numpy()

    close(y @ np.conj(y.mT), x)
    assert not np.triu(y, 1).any()


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", RECTANGLES)
def test_qr_factors_are_orthonormal_and_upper_triangular(shape, dtype, full):
    x = random(shape, dtype)
    rows, columns = shape[-2:]
    size = rows if full else min(rows, columns)

    y = tf.linalg.qr(x, full_matrices=full)
    q, r = y.q.numpy(), y.r.numpy()

    close(q @ r, x)
    close(np.conj(q.mT) @ q, np.broadcast_to(np.eye(size, dtype=dtype), (*shape[:-2], size, size)))
    np.testing.assert_array_equal(np.triu(r), r)


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", RECTANGLES)
def test_svd_reconstructs_the_matrix_with_orthonormal_vectors(shape, dtype, full):
    x = random(shape, dtype)
    k = min(shape[-2:])

    s, u, v = (part.numpy() for part in tf.linalg.svd(x, full_matrices=full))

    close((u[..., :k] * s[..., None, :]) @ np.conj(v[..., :k].mT), x)
    for part in (u, v):
        n = part.shape[-1]
        identity = np.broadcast_to(np.eye(n, dtype=dtype), (*shape[:-2], n, n))
        close(np.conj(part.mT) @ part, identity)
    assert s.dtype == real_dtype(dtype)
    assert (np.diff(s) <= 0).all()
    close(tf.linalg.svd(x, compute_uv=False).numpy(), s)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_eigh_reads_the_lower_triangle(shape, dtype):
    x = definite(shape, dtype)
    corrupted = np.tril(x) + np.triu(np.full(shape, np.nan, real_dtype(dtype)), 1)

    e, v = (part.numpy() for part in tf.linalg.eigh(corrupted))

    close((v * e[..., None, :]) @ np.conj(v.mT), x)
    assert e.dtype == dtype
    assert (np.diff(e.real) >= 0).all()
    close(tf.linalg.eigvalsh(corrupted).numpy(), e)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_eig_is_complex(shape, dtype):
    x = random(shape, dtype)

    e, v = (part.numpy() for part in tf.linalg.eig(x))

    wide = np.result_type(dtype, "complex64")
    close(x.astype(wide) @ v, (v * e[..., None, :]))
    close(np.linalg.norm(v, axis=-2), np.ones(shape[:-1], real_dtype(dtype)))
    close(np.sort(tf.eigvals(x).numpy()), np.sort(e))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_lu_reconstructs_the_matrix(shape, dtype):
    x = random(shape, dtype)

    lu, p = tf.linalg.lu(x)

    assert p.dtype == tf.int32
    lower = np.tril(lu.numpy(), -1) + np.eye(shape[-1], dtype=dtype)
    rows = np.take_along_axis(x, p.numpy()[..., None], -2)
    close(lower @ np.triu(lu.numpy()), rows)
    close(tf.linalg.lu_reconstruct(lu, p).numpy(), x)
    close(tf.linalg.lu_matrix_inverse(lu, p).numpy() @ x, np.eye(shape[-1], dtype=dtype) + 0 * x)


def test_determinant_of_nan_is_nan():
    for index in np.ndindex(2, 2):
        x = np.array([[1.0, 2.0], [3.0, 4.0]])
        x[index] = np.nan
        assert np.isnan([tf.linalg.det(x), *tf.linalg.slogdet(x)]).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_det_slogdet_and_logdet_agree(shape, dtype):
    x = random(shape, dtype)

    sign, size = tf.linalg.slogdet(x)

    close(tf.linalg.det(x).numpy(), np.linalg.det(x).astype(dtype))
    close((sign * tf.exp(size)).numpy(), np.linalg.det(x).astype(dtype))
    assert sign.dtype == size.dtype == dtype
    positive = definite(shape, dtype)
    expected = np.log(np.linalg.det(positive).real).astype(real_dtype(dtype))
    close(tf.linalg.logdet(positive).numpy(), expected)


# Gradients with repeated values, arbitrary vectors or singular matrices


def test_the_determinant_of_a_singular_matrix_has_a_gradient():
    x = np.stack([[[1.0, 2.0], [2.0, 4.0]], [[3.0, 1.0], [0.0, 2.0]]])

    (g,) = gradient(tf.linalg.det, x)

    np.testing.assert_allclose(g, [[[4, -2], [-2, 1]], [[2, 0], [-1, 3]]], atol=1e-14)


def test_repeated_values_leave_gradients_finite():
    x = np.eye(3)
    for f in (tf.linalg.svd, tf.linalg.eigh, tf.linalg.eig):
        (g,) = gradient(lambda x, f=f: sum(tf.reduce_sum(tf.abs(y)) for y in f(x)), x)
        assert np.isfinite(g).all()
    np.testing.assert_allclose(gradient(tf.linalg.eigvalsh, x)[0], np.eye(3), atol=1e-15)


def projector(x):
    return tf.matmul(x, x, adjoint_b=True)


WEIGHTS = random((5, 5), "complex128", 9)


def weighted_sum(y):
    """Returns a real number that weights every element of a matrix differently."""
    n, m = y.shape
    return tf.reduce_sum(tf.math.real(y * WEIGHTS[:n, :m]))


@pytest.mark.parametrize(
    "f",
    [
        lambda x: weighted_sum(projector(tf.linalg.svd(x, full_matrices=True)[1][:, 2:])),
        lambda x: weighted_sum(projector(tf.linalg.svd(x, full_matrices=True)[2][:, 2:])),
        lambda x: weighted_sum(projector(tf.linalg.qr(x, full_matrices=True).q[:, 2:])),
        lambda x: weighted_sum(projector(tf.linalg.svd(x)[1][:, :1])),
        lambda x: weighted_sum(projector(tf.linalg.svd(x)[2][:, :1])),
        lambda x: weighted_sum(tf.linalg.qr(x).r),
        lambda x: weighted_sum(tf.linalg.qr(x).q),
        lambda x: weighted_sum(tf.linalg.pinv(x)),
        lambda x: weighted_sum(tf.linalg.lstsq(x, tf.ones([x.shape[0], 1], x.dtype), 0.5)),
        lambda x: weighted_sum(tf.linalg.lstsq(x, tf.ones([x.shape[0], 1], x.dtype), fast=False)),
        lambda x: tf.reduce_sum(tf.linalg.svd(x, compute_uv=False) * [1.0, 2.0]),
    ],
)
@pytest.mark.parametrize("shape", [(4, 2), (2, 4)])
def test_gradients_of_complex_rectangles(f, shape):
    assert_complex_gradient(f, random(shape, "complex128", 3))


@pytest.mark.parametrize(
    "f",
    [
        lambda x: weighted_sum(tf.linalg.inv(x)),
        lambda x: tf.math.real(tf.linalg.det(x) * (1 - 2j)),
        lambda x: tf.math.imag(tf.linalg.slogdet(x)[0]),
        lambda x: tf.math.real(tf.linalg.slogdet(x)[1]),
        lambda x: weighted_sum(tf.linalg.lu(x).lu),
        lambda x: weighted_sum(tf.linalg.expm(x)),
        lambda x: weighted_sum(tf.linalg.sqrtm(x)),
        lambda x: weighted_sum(tf.linalg.logm(x)),
        lambda x: weighted_sum(tf.linalg.cholesky(tf.matmul(x, x, adjoint_b=True))),
        lambda x: tf.linalg.logdet(tf.matmul(x, x, adjoint_b=True)),
        lambda x: weighted_sum(projector(tf.linalg.eigh(x)[1][:, :1])),
        lambda x: tf.reduce_sum(tf.abs(tf.linalg.eig(x)[1]) ** 4),
        lambda x: weighted_sum(tf.linalg.triangular_solve(x, x, lower=False, adjoint=True)),
        lambda x: weighted_sum(tf.linalg.tridiagonal_solve(x, x)),
        lambda x: weighted_sum(tf.einsum("ij,jk,lk->il", x, x, tf.math.conj(x))),
        lambda x: tf.reduce_sum(tf.math.real(tf.linalg.eigvals(x) ** 3)),
    ],
)
def test_gradients_of_complex_squares(f):
    assert_complex_gradient(f, random((3, 3), "complex128", 4) + 4 * np.eye(3))


def test_expm_from_eigenvectors():
    """Computes `expm` by way of `eig`, with gradients of values and vectors together."""

    def by_eig(x):
        e, v = tf.linalg.eig(x)
        return weighted_sum(tf.matmul(v * tf.exp(e), tf.linalg.inv(v)))

    x = random((3, 3), "complex128", 4)

    (actual,), (expected,) = (
        gradient(by_eig, x),
        gradient(lambda x: weighted_sum(tf.linalg.expm(x)), x),
    )

    np.testing.assert_allclose(actual, expected, rtol=1e-10)


@pytest.mark.parametrize(
    "f",
    [
        tf.linalg.inv,
        tf.linalg.det,
        lambda x: tf.linalg.slogdet(x)[1],
        tf.linalg.expm,
        tf.linalg.pinv,
        lambda x: tf.linalg.qr(x[:, :2]).q,
        lambda x: tf.linalg.qr(x[:2]).r,
        lambda x: tf.linalg.svd(x)[1] ** 2,
        lambda x: tf.linalg.svd(x, compute_uv=False),
        lambda x: tf.math.real(tf.linalg.eigvals(x)),
        lambda x: tf.abs(tf.linalg.eig(x)[1]),
        tf.linalg.eigvalsh,
        lambda x: tf.linalg.eigh(x)[1] ** 2,
        lambda x: tf.linalg.lu(x).lu,
        lambda x: tf.linalg.sqrtm(tf.matmul(x, x)),
        lambda x: tf.math.real(tf.linalg.logm(tf.cast(x, tf.complex128))),
        lambda x: tf.linalg.logdet(tf.matmul(x, x, transpose_b=True)),
        lambda x: tf.norm(x, ord=2, axis=(0, 1)),
        lambda x: tf.linalg.lstsq(x[:, :2], x[:, 2:], l2_regularizer=x[0, 0]),
        lambda x: tf.linalg.eigh_tridiagonal(x[0], x[1, 1:]),
        lambda x: tf.linalg.eigh_tridiagonal(x[0], x[1, 1:], eigvals_only=False)[1] ** 2,
        lambda x: tf.linalg.banded_triangular_solve(x[:2], x),
        lambda x: tf.linalg.tridiagonal_solve(tf.roll(x, 1, 0), x),
        lambda x: tf.linalg.tridiagonal_matmul(x, x),
        lambda x: tf.linalg.lu_solve(x, [1, 2, 0], x),
        lambda x: tf.linalg.lu_matrix_inverse(x, [1, 2, 0]),
        lambda x: tf.linalg.cholesky_solve(tf.linalg.band_part(x, -1, 0), x),
        lambda x: tf.einsum("ij,jk,ki->k", x, x, x),
    ],
)
def test_second_derivatives(f):
    x = np.array([[3.0, 0.4, -0.3], [0.2, 2.0, 0.5], [-0.6, 0.1, 1.2]])

    check_gradients(f, [tf.constant(x)], order=2)


def test_cholesky_gradient_is_hermitian():
    x, d = definite((3, 3), seed=1), random((3, 3), seed=2)
    d = d + d.T

    (g,) = gradient(lambda x: weighted_sum(tf.cast(tf.linalg.cholesky(x), tf.complex128)), x)

    forward, backward = (
        float(weighted_sum(tf.linalg.cholesky(tf.constant(x + h * d, tf.complex128))))
        for h in (1e-6, -1e-6)
    )
    np.testing.assert_allclose(np.sum(g * d), (forward - backward) / 2e-6, rtol=1e-7)
    np.testing.assert_array_equal(g, g.T)


def test_jacobians_go_through_batch_rules():
    x = tf.constant(definite((2, 2), seed=3))
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        parts = (tf.linalg.inv(x), tf.linalg.svd(x)[0], tf.linalg.eigh(x)[0], tf.linalg.expm(x))

    for y in parts:
        vectorized = tape.jacobian(y, x).numpy()
        row_by_row = tape.jacobian(y, x, experimental_use_pfor=False).numpy()
        np.testing.assert_allclose(vectorized, row_by_row, rtol=1e-12, atol=1e-14)


# Matrices without a result


def test_matrices_that_are_not_positive_definite_give_nan():
    x = np.stack([definite((2, 2)), [[1.0, 2.0], [2.0, 1.0]]])

    y = tf.linalg.cholesky(x).numpy()

    np.testing.assert_allclose(y[0], np.linalg.cholesky(x[0]))
    np.testing.assert_array_equal(np.isnan(y[1]), [[True, False], [True, True]])


def test_matrices_without_a_logarithm_or_a_real_square_root_give_nan():
    singular = tf.constant([[[1.0, 2.0], [2.0, 4.0]], [[2.0, 0.0], [0.0, 2.0]]], tf.complex128)
    y = tf.linalg.logm(singular).numpy()
    assert np.isnan(y[0]).all()
    np.testing.assert_allclose(y[1], np.log(2) * np.eye(2), atol=1e-15)
    assert np.isnan(tf.linalg.sqrtm([[-1.0, 0.0], [0.0, 4.0]]).numpy()).all()
    assert np.isnan(tf.linalg.sqrtm([[np.nan, 0.0], [0.0, 4.0]]).numpy()).all()


def test_exponentials_of_large_and_of_not_finite_matrices():
    x = np.array([[-1e6, 1.0], [0.0, -2e6]])
    np.testing.assert_allclose(tf.linalg.expm(x).numpy(), np.zeros((2, 2)), atol=1e-300)
    x = np.stack([np.diag([100.0, 2.0]), [[0.0, 50.0], [-50.0, 0.0]], np.full((2, 2), np.nan)])
    y = tf.linalg.expm(x).numpy()
    np.testing.assert_allclose(y[0], np.diag(np.exp([100.0, 2.0])), rtol=1e-12)
    rotation = [[np.cos(50), np.sin(50)], [-np.sin(50), np.cos(50)]]
    np.testing.assert_allclose(y[1], rotation, rtol=1e-11)
    assert np.isnan(y[2]).all()


def test_gradient_of_expm_is_accurate_for_cotangents_of_any_magnitude():
    x, g = random((3, 3)), random((3, 3), seed=1)

    small, large = (
        gradient(tf.linalg.expm, x, weights=tf.constant(g * size))[0] for size in (1.0, 2.0**40)
    )

    np.testing.assert_allclose(large / 2.0**40, small, rtol=1e-14)


FAILED = "{}: the decomposition did not succeed. Expected finite values."
SINGULAR = (
    "{}: a matrix is singular. Expected invertible matrices; for others, use tf.linalg.pinv or "
    "tf.linalg.lstsq."
)
NAN = [[np.nan, 1.0], [1.0, 1.0]]
ONES = [[1.0, 1.0], [1.0, 1.0]]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: tf.linalg.inv(ONES), SINGULAR.format("inv")),
        (lambda: tf.linalg.solve(ONES, [[1.0], [2.0]]), SINGULAR.format("solve")),
        (
            lambda: tf.linalg.lu(ONES),
            "lu: a matrix is singular. Expected invertible matrices.",
        ),
        (
            lambda: gradient(lambda x: tf.linalg.slogdet(x)[1], ONES),
            SINGULAR.format("inv"),
        ),
        (lambda: tf.linalg.eigh(NAN), FAILED.format("eigh")),
        (lambda: tf.linalg.eigvalsh(NAN), FAILED.format("eigvalsh")),
        (lambda: tf.linalg.eig(NAN), FAILED.format("eig")),
        (lambda: tf.linalg.eigvals(NAN), FAILED.format("eigvals")),
        (
            lambda: tf.linalg.det([1.0]),
            "det: input must be at least 2-dim. Received: shape (1,).",
        ),
        (
            lambda: tf.linalg.det([[1.0, 2.0]]),
            "det: the matrices must be square. Received: shape (1, 2).",
        ),
        (
            lambda: tf.linalg.cholesky([[1]]),
            "cholesky: dtype int32 is not supported. "
            "Expected one of float32, float64, complex64, complex128.",
        ),
        (
            lambda: tf.linalg.logm([[1.0]]),
            "logm: dtype float32 is not supported. Expected one of complex64, complex128.",
        ),
        (
            lambda: tf.linalg.lu([[1.0]], output_idx_type=tf.uint8),
            "lu: `output_idx_type` must be int32 or int64. Received: uint8.",
        ),
    ],
)
def test_errors(call, message):
    assert_raises(call, InvalidArgumentError, message)


def test_matrix_rank_and_pinv_require_floats():
    for f, name in ((tf.linalg.pinv, "pinv"), (tf.linalg.matrix_rank, "matrix_rank")):
        assert_raises(
            lambda f=f: f([[1]]),
            TypeError,
            f"{name}: `a` must have a floating or complex dtype. Received: int32.",
        )
        assert_raises(
            lambda f=f: f([1.0]),
            ValueError,
            f"{name}: `a` must have at least 2 axes. Received: 1.",
        )
