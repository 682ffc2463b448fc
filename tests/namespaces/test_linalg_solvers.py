"""tf.linalg: linear equations, least squares, banded matrices, norms."""

import numpy as np
import pytest
import scipy.linalg

import retrograde as tf
from retrograde.errors import InvalidArgumentError, UnimplementedError
from tests.namespaces.helpers import assert_gradients, assert_raises, gradient

DTYPES = ("float32", "float64", "complex64", "complex128")


def random(*shape, dtype="float64", seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * rng.normal(size=shape)
    return x.astype(dtype)


def well_conditioned_matrix(*shape, dtype="float64", seed=0):
    return random(*shape, dtype=dtype, seed=seed) + 3 * np.eye(shape[-1], dtype=dtype)


def close(actual, expected):
    actual = actual.numpy()
    tolerance = 1e-4 if actual.dtype in ("float32", "complex64") else 1e-11
    np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance)


# Equations


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batch", [(), (2,), (2, 3), (0,)])
def test_solve_satisfies_the_equations(batch, dtype):
    a, b = well_conditioned_matrix(*batch, 3, 3, dtype=dtype), random(*batch, 3, 2, dtype=dtype)

    close(a @ tf.linalg.solve(a, b).numpy() + tf.zeros_like(b), b)
    close(np.conj(a.mT) @ tf.linalg.solve(a, b, adjoint=True).numpy() + tf.zeros_like(b), b)
    close(tf.linalg.inv(a), np.linalg.inv(a))
    close(tf.linalg.inv(a, adjoint=True), np.linalg.inv(np.conj(a.mT)))
    lu, p = tf.linalg.lu(a)
    close(tf.linalg.lu_solve(lu, p, b), np.linalg.solve(a, b))


@pytest.mark.parametrize("adjoint", [False, True])
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("shape_a", "shape_b"),
    [((), ()), ((2,), ()), ((), (2, 3)), ((3, 1), (2,)), ((7,), (7,)), ((0,), ())],
)
def test_triangular_solve_broadcasts_batches(shape_a, shape_b, dtype, lower, adjoint):
    a, b = well_conditioned_matrix(*shape_a, 3, 3, dtype=dtype), random(*shape_b, 3, 2, dtype=dtype)
    triangle = np.tril(a) if lower else np.triu(a)
    triangle = np.conj(triangle.mT) if adjoint else triangle

    y = tf.linalg.triangular_solve(a, b, lower=lower, adjoint=adjoint)

    expected = np.linalg.inv(triangle) @ b
    assert y.shape == expected.shape
    assert y.dtype == dtype
    close(y, expected)


@pytest.mark.parametrize("order", ["C", "F"])
def test_triangular_solve_accepts_any_memory_layout(order):
    a, b = (
        np.asarray(well_conditioned_matrix(4, 4), order=order),
        np.asarray(random(4, 3), order=order),
    )

    close(tf.linalg.triangular_solve(a, b), scipy.linalg.solve_triangular(a, b, lower=True))


def test_a_zero_on_the_diagonal_results_in_a_non_finite_solution():
    for count in (1, 3):
        a = np.broadcast_to([[0.0, 0.0], [1.0, 1.0]], (count, 2, 2))
        y = tf.linalg.triangular_solve(a, np.ones((count, 2, 1))).numpy()
        np.testing.assert_array_equal(y[..., 0], [[np.inf, -np.inf]] * count)


def test_cholesky_solve_broadcasts_batches():
    a = well_conditioned_matrix(2, 3, 3)
    positive = a @ a.mT
    b = random(4, 1, 3, 2)

    y = tf.linalg.cholesky_solve(tf.linalg.cholesky(positive), b)

    close(y, np.linalg.inv(positive) @ b)


def test_one_permutation_broadcasts_over_right_hand_sides():
    a, b = well_conditioned_matrix(3, 3)[::-1].copy(), random(2, 3, 1)
    lu, p = tf.linalg.lu(a)

    close(tf.linalg.lu_solve(lu, p, b), np.linalg.inv(a) @ b)
    batch_of_lu = tf.stack([lu, lu]), tf.stack([p, p])
    close(
        tf.linalg.lu_solve(*batch_of_lu, b[0]), np.broadcast_to(np.linalg.inv(a) @ b[0], (2, 3, 1))
    )


@pytest.mark.parametrize(
    "f",
    [
        tf.linalg.solve,
        tf.linalg.triangular_solve,
        tf.linalg.tridiagonal_solve,
        tf.linalg.banded_triangular_solve,
    ],
)
def test_no_gradient_flows_to_unwatched_inputs(f):
    a, b = tf.constant(well_conditioned_matrix(3, 3)), tf.constant(random(3, 2))
    for watched, other in ((a, b), (b, a)):
        with tf.GradientTape() as tape:
            tape.watch(watched)
            y = f(a, b)
        grad_watched, grad_other = tape.gradient(y, [watched, other])
        assert grad_other is None
        assert grad_watched.shape == watched.shape


# Least squares


@pytest.mark.parametrize("fast", [True, False])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(4, 2), (2, 4), (3, 3), (2, 5, 2)])
def test_least_squares(shape, dtype, fast):
    a, b = random(*shape, dtype=dtype), random(*shape[:-1], 2, dtype=dtype, seed=1)

    y = tf.linalg.lstsq(a, b, fast=fast)

    assert y.dtype == dtype
    close(y, np.linalg.pinv(a) @ b)


def test_least_squares_of_any_rank():
    a = np.outer([1.0, 2.0, 3.0], [1.0, 1.0])

    y = tf.linalg.lstsq(a, random(3, 1), fast=False)

    close(y, np.linalg.pinv(a) @ random(3, 1))


def test_regularized_least_squares():
    a, b = random(4, 2), random(4, 1, seed=1)
    expected = np.linalg.solve(a.T @ a + 0.5 * np.eye(2), a.T @ b)

    close(tf.linalg.lstsq(a, b, l2_regularizer=0.5), expected)
    close(tf.linalg.lstsq(a, b, l2_regularizer=tf.constant(0.5, tf.float64)), expected)
    close(tf.linalg.lstsq(a.T, b[:2], 0.5), a @ np.linalg.solve(a.T @ a + 0.5 * np.eye(2), b[:2]))


@pytest.mark.parametrize("shape", [(4, 2), (2, 4)])
@pytest.mark.parametrize("fast", [True, False])
def test_gradients_of_least_squares(shape, fast):
    a, b = random(*shape), random(shape[0], 2, seed=1)

    assert_gradients(lambda a, b: tf.linalg.lstsq(a, b, fast=fast), a, b)
    assert_gradients(lambda r: tf.linalg.lstsq(a, b, r), 0.7)


def test_the_pseudo_inverse_of_repeated_singular_values_has_a_gradient():
    assert_gradients(tf.linalg.pinv, np.eye(3, 2))
    np.testing.assert_allclose(gradient(tf.linalg.pinv, np.eye(2))[0], -np.ones((2, 2)), atol=1e-15)


def test_small_singular_values_count_as_zero():
    x = np.stack([np.diag([1.0, 1e-3]), np.diag([1.0, 0.5])])

    close(tf.linalg.pinv(x, rcond=0.1), [np.diag([1.0, 0.0]), np.diag([1.0, 2.0])])
    close(tf.linalg.pinv(x, rcond=[1e-4, 0.9]), [np.diag([1.0, 1e3]), np.diag([1.0, 0.0])])
    close(tf.linalg.pinv(np.zeros((2, 3))), np.zeros((3, 2)))


@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (2, 4)])
def test_truncated_singular_values_contribute_to_the_gradient(shape):
    x = random(*shape)
    s = np.linalg.svd(x, compute_uv=False)
    rcond = (s[-1] + s[-2]) / 2 / s[0]

    assert_gradients(lambda x: tf.linalg.pinv(x, rcond), x)
    assert_gradients(lambda x: tf.linalg.pinv(x, 1e-6), x)


def test_pinv_of_a_non_finite_matrix_is_nan():
    y = tf.linalg.pinv(np.stack([np.eye(2), np.diag([1.0, np.nan])])).numpy()

    np.testing.assert_array_equal(y[0], np.eye(2))
    assert np.isnan(y[1]).all()


def test_matrix_rank():
    x = np.stack([np.eye(3), np.ones((3, 3)), np.zeros((3, 3))])

    assert tf.linalg.matrix_rank(x).numpy().tolist() == [3, 1, 0]
    assert tf.linalg.matrix_rank(x * 1j).numpy().tolist() == [3, 1, 0]
    assert tf.linalg.matrix_rank(np.diag([3.0, 1.0]), tol=2.0).numpy() == 1
    assert tf.linalg.matrix_rank(x).dtype == tf.int32


# Banded matrices


@pytest.mark.parametrize("dtype", DTYPES)
def test_tridiagonal_systems_in_every_format(dtype):
    matrix = np.triu(np.tril(well_conditioned_matrix(2, 4, 4, dtype=dtype), 1), -1)
    b = random(2, 4, 3, dtype=dtype)
    above, main, below = (np.diagonal(matrix, k, -2, -1) for k in (1, 0, -1))
    pad = np.full((2, 1), np.nan, dtype)  # not read
    compact = np.stack([np.hstack([above, pad]), main, np.hstack([pad, below])], axis=-2)
    expected = np.linalg.solve(matrix, b)

    close(tf.linalg.tridiagonal_solve(compact, b), expected)
    close(tf.linalg.tridiagonal_solve(matrix, b, "matrix"), expected)
    close(tf.linalg.tridiagonal_solve((above, main, below), b, "sequence"), expected)
    close(tf.linalg.tridiagonal_solve(compact, b[..., 0]), expected[..., 0])
    close(tf.linalg.tridiagonal_solve(compact, b.mT, transpose_rhs=True), expected)
    conjugated = np.linalg.solve(matrix, np.conj(b))
    close(tf.linalg.tridiagonal_solve(compact, b, conjugate_rhs=True), conjugated)
    close(tf.linalg.tridiagonal_matmul(compact, b), matrix @ b)
    close(tf.linalg.tridiagonal_matmul(matrix, b, "matrix"), matrix @ b)


def test_pivoting_handles_zeros_on_the_main_diagonal():
    d = np.array([[1.0, 2.0, 0.0], [0.0, 0.0, 1.0], [0.0, 3.0, 4.0]])

    close(tf.linalg.tridiagonal_solve(d, [1.0, 2.0, 3.0]),
          np.linalg.solve([[0, 1, 0], [3, 0, 2], [0, 4, 1]], [1.0, 2.0, 3.0]))  # fmt: skip


def test_a_singular_system_does_not_affect_others():
    regular = np.array([[1.0, 1.0], [3.0, 4.0], [1.0, 1.0]])

    y = tf.linalg.tridiagonal_solve(np.stack([regular * 0, regular]), np.ones((2, 2))).numpy()

    assert np.isnan(y[0]).all()
    np.testing.assert_allclose(y[1], np.linalg.solve([[3, 1], [1, 4]], [1, 1]))
    assert np.isnan(tf.linalg.tridiagonal_solve(np.zeros((3, 1)), [1.0]).numpy()).all()


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("f", [tf.linalg.tridiagonal_solve, tf.linalg.banded_triangular_solve])
def test_non_finite_values_do_not_affect_other_systems(f, bad):
    d, b = np.abs(random(3, 3, 4)) + 1, random(3, 4, 1)
    regular = f(d, b).numpy()
    for diagonal_value, rhs_value in ((bad, 0), (0, bad)):
        corrupted, sides = d.copy(), b.copy()
        corrupted[1, 0, 2] += diagonal_value
        sides[1, 2] += rhs_value

        y = f(corrupted, sides).numpy()

        np.testing.assert_allclose(y[[0, 2]], regular[[0, 2]], rtol=1e-12)
        assert not np.allclose(y[1], regular[1])


def test_unread_elements_have_no_gradient():
    d = np.array([[1.0, 2.0, 9.0], [5.0, 6.0, 7.0], [9.0, 1.0, 2.0]])

    for f in (tf.linalg.tridiagonal_solve, tf.linalg.tridiagonal_matmul):
        assert_gradients(f, d, random(3, 2))
        grad_d, _ = gradient(f, d, random(3, 2))
        assert grad_d[0, 2] == grad_d[2, 0] == 0


@pytest.mark.parametrize("adjoint", [False, True])
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_banded_triangular_solve_broadcasts_batches(dtype, lower, adjoint):
    matrix = well_conditioned_matrix(2, 1, 4, 4, dtype=dtype)
    matrix = np.triu(np.tril(matrix), -2) if lower else np.tril(np.triu(matrix), 2)
    bands = np.full((2, 1, 3, 4), np.nan, dtype)
    for k in range(3):
        band = np.diagonal(matrix, -k if lower else k, -2, -1)
        if lower:
            bands[..., k, k:] = band
        else:
            bands[..., 2 - k, : 4 - k] = band
    b = random(3, 4, 2, dtype=dtype)
    effective = np.conj(matrix.mT) if adjoint else matrix

    y = tf.linalg.banded_triangular_solve(bands, b, lower=lower, adjoint=adjoint)

    close(y, np.linalg.inv(effective) @ b)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_eigenvalues_of_tridiagonal_matrices(dtype):
    alpha, beta = random(2, 4, dtype=dtype), random(2, 3, dtype=dtype)
    pairs = zip(alpha, beta, strict=True)
    matrices = np.stack([np.diag(a) + np.diag(b, 1) + np.diag(b, -1) for a, b in pairs])

    e, v = tf.linalg.eigh_tridiagonal(alpha, beta, eigvals_only=False)

    close(e, np.linalg.eigvalsh(matrices))
    close(tf.linalg.eigh_tridiagonal(alpha, beta), np.linalg.eigvalsh(matrices))
    close(v * e[:, None], matrices @ v.numpy())


def test_eigenvalues_of_complex_tridiagonal_matrices():
    alpha, beta = random(4) + 0j, random(3, dtype="complex128")
    beta[1] = 0
    matrix = np.diag(alpha) + np.diag(beta, 1) + np.diag(np.conj(beta), -1)

    e, v = tf.linalg.eigh_tridiagonal(alpha, beta, eigvals_only=False)

    assert (e.dtype, v.dtype) == (tf.float64, tf.complex128)
    close(tf.constant(matrix) @ v, v.numpy() * e.numpy())
    with tf.GradientTape() as tape:
        x = tf.constant(beta + 0.5)
        tape.watch(x)
        vectors = tf.linalg.eigh_tridiagonal(alpha, x, eigvals_only=False)[1]
        phase_sum = tf.reduce_sum(
            tf.math.imag(vectors[1:] * tf.math.conj(vectors[:-1])) * [1.0, 2, 3, 4]
        )
    g = tape.gradient(phase_sum, x).numpy()

    def f(x):
        vectors = tf.linalg.eigh_tridiagonal(alpha, x, eigvals_only=False)[1].numpy()
        return np.sum(np.imag(vectors[1:] * np.conj(vectors[:-1])) * [1, 2, 3, 4])

    for d in (random(3, seed=8), 1j * random(3, seed=9)):
        slope = (f(x.numpy() + 1e-6 * d) - f(x.numpy() - 1e-6 * d)) / 2e-6
        np.testing.assert_allclose(np.sum(np.real(np.conj(g) * d)), slope, rtol=1e-6)


def test_some_eigenvalues_of_tridiagonal_matrices():
    alpha, beta = np.array([1.0, 2.0, 3.0]), np.zeros(2)
    f = tf.linalg.eigh_tridiagonal

    assert f(alpha, beta, select="i", select_range=(1, 1)).numpy().tolist() == [2.0]
    assert f(alpha, beta, select="v", select_range=(1.0, 2.5)).numpy().tolist() == [1.0, 2.0]
    assert f(alpha, beta, select="v", select_range=(7.0, 9.0)).shape == (0,)
    e, v = f(alpha, beta, eigvals_only=False, select="i", select_range=(0, 1))
    assert (e.shape, v.shape) == ((2,), (3, 2))


# Norms


@pytest.mark.parametrize("axis", [(0, 1), (1, 2), (-1, 0)])
@pytest.mark.parametrize("keepdims", [False, True])
def test_the_spectral_norm_is_the_largest_singular_value(axis, keepdims):
    x = random(2, 3, 4)

    y = tf.norm(x, ord=2, axis=axis, keepdims=keepdims)

    close(y, np.linalg.norm(x, ord=2, axis=axis, keepdims=keepdims))
    assert_gradients(lambda x: tf.norm(x, ord=2, axis=axis, keepdims=keepdims), x)


# Conjugate gradients


class Operator:
    is_self_adjoint = is_positive_definite = True

    def __init__(self, matrix):
        self.matrix = tf.convert_to_tensor(matrix)

    def matvec(self, x):
        return tf.linalg.matvec(self.matrix, x)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_conjugate_gradients_find_the_solution(dtype):
    a = well_conditioned_matrix(4, 4, dtype=dtype)
    a = a @ np.conj(a.T)
    b = random(3, 4, dtype=dtype)
    expected = np.linalg.solve(a, b[..., None])[..., 0]
    solve = tf.linalg.experimental.conjugate_gradient

    for options in (
        {},
        {"preconditioner": Operator(np.diag(1 / np.diag(a)))},
        {"x": tf.constant(expected + 1)},
    ):
        state = solve(Operator(a), b, tol=1e-12, max_iter=50, **options)
        close(state.x, expected)
        assert state.i.dtype == tf.int32
        assert 0 < state.i.numpy() <= 50


def test_conjugate_gradients_stop_at_max_iter_or_tolerance():
    a = np.diag([1.0, 2.0, 3.0])
    solve = tf.linalg.experimental.conjugate_gradient

    assert solve(Operator(a), np.ones(3), max_iter=2).i.numpy() == 2
    assert solve(Operator(a), np.zeros(3)).i.numpy() == 0
    close(solve(Operator(a), np.ones((2, 3)) * [[1.0], [0.0]], tol=1e-12).x,
          [[1, 1 / 2, 1 / 3], [0, 0, 0]])  # fmt: skip


def test_conjugate_gradients_are_differentiable():
    a = well_conditioned_matrix(3, 3)
    a = a @ a.T

    def solve(a, b):
        return tf.linalg.experimental.conjugate_gradient(Operator(a), b, tol=1e-12).x

    grad_a, grad_b = gradient(solve, a, np.ones(3))

    expected = np.linalg.solve(a, np.ones(3))
    np.testing.assert_allclose(grad_b, expected, rtol=1e-8)
    np.testing.assert_allclose(grad_a + grad_a.T, -2 * np.outer(expected, expected), rtol=1e-8)


# Errors

EXPECTED_SHAPES = "Expected the same number of rows, and leading axes that broadcast."


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: tf.linalg.solve(tf.eye(2), tf.ones([3, 1])),
            "solve: matrices of shape (2, 2) and right-hand sides of shape (3, 1) are "
            "incompatible. " + EXPECTED_SHAPES,
        ),
        (
            lambda: tf.linalg.solve(tf.eye(2, batch_shape=[1]), tf.ones([3, 2, 1])),
            "solve: leading axes differ in shapes (1, 2, 2) and (3, 2, 1). Expected equal leading "
            "axes.",
        ),
        (
            lambda: tf.linalg.triangular_solve(tf.eye(2), tf.ones([2])),
            "triangular_solve: input must be at least 2-dim. Received: shape (2,).",
        ),
        (
            lambda: tf.linalg.cholesky_solve(tf.ones([2, 3]), tf.ones([2, 1])),
            "cholesky_solve: the matrices must be square. Received: shape (2, 3).",
        ),
        (
            lambda: tf.linalg.lstsq(tf.ones([2, 3, 2]), tf.ones([3, 3, 1])),
            "lstsq: matrices of shape (2, 3, 2) and right-hand sides of shape (3, 3, 1) are "
            "incompatible. " + EXPECTED_SHAPES,
        ),
        (
            lambda: tf.linalg.lu_solve(tf.eye(2), [0.0, 1.0], tf.ones([2, 1])),
            "lu_solve: `perm` must be integers, one for each row. Received: shape (2,) of dtype "
            "float32.",
        ),
        (
            lambda: tf.linalg.banded_triangular_solve(tf.ones([2, 3]), tf.ones([4, 1])),
            "banded_triangular_solve: bands of shape (2, 3) and right-hand sides of shape (4, 1) "
            "are incompatible. Expected at least one band, bands as long as the right-hand sides "
            "have rows, and leading axes that broadcast.",
        ),
        (
            lambda: tf.linalg.banded_triangular_solve([[1.0, 0.0]], [[1.0], [1.0]]),
            "banded_triangular_solve: a matrix is singular. Expected a main diagonal without "
            "zeros.",
        ),
        (
            lambda: tf.linalg.tridiagonal_matmul(tf.ones([3, 3]), tf.ones([3])),
            "tridiagonal_matmul: `rhs` has shape (3,). Expected (3,) and one more axis.",
        ),
        (
            lambda: tf.linalg.eigh_tridiagonal(tf.ones([3]), tf.ones([3])),
            "eigh_tridiagonal: diagonals of shapes (3,) and (3,) are incompatible. The second "
            "must be shorter by one.",
        ),
        (
            lambda: tf.linalg.eigh_tridiagonal([1.0, 2.0], [1.0], select="i", select_range=(1, 0)),
            "eigh_tridiagonal: `select_range` is empty. Received: 1 to 0.",
        ),
        (
            lambda: tf.linalg.eigh_tridiagonal([1.0, 2.0], [1.0], select="i", select_range=(1, 2)),
            "eigh_tridiagonal: there are 2 eigenvalues. Received: indices 1 to 2.",
        ),
        (
            lambda: tf.linalg.eigh_tridiagonal(
                [[1.0, 2.0]], [[1.0]], select="v", select_range=(0.0, 1.0)
            ),
            "eigh_tridiagonal: select='v' supports only one matrix at a time.",
        ),
    ],
)
def test_errors(call, message):
    assert_raises(call, InvalidArgumentError, message)


D = np.ones((3, 3))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: tf.linalg.lu_solve(tf.eye(2), [0, 1], tf.ones([2])),
            ValueError,
            "lu_solve: `rhs` must have at least 2 axes. Received: 1.",
        ),
        (
            lambda: tf.linalg.lu_solve(tf.eye(2), [0, 1], tf.ones([3, 1])),
            ValueError,
            "lu_solve: `rhs` has 3 rows. Expected 2.",
        ),
        (
            lambda: tf.linalg.lu_reconstruct(tf.ones([2, 3]), [0, 1]),
            ValueError,
            "lu_reconstruct: `lower_upper` must be square. Received: shape (2, 3).",
        ),
        (
            lambda: tf.linalg.tridiagonal_solve(D[:2], D[0]),
            ValueError,
            "tridiagonal_solve: expected 3 rows of diagonals. Received: shape (2, 3).",
        ),
        (
            lambda: tf.linalg.tridiagonal_solve([[1.0]], [1.0], "sequence"),
            ValueError,
            "tridiagonal_solve: expected a list of 3 diagonals. Received: [[1.0]].",
        ),
        (
            lambda: tf.linalg.tridiagonal_solve(([1.0], [1.0, 2.0, 3.0], [1.0]), D[0], "sequence"),
            ValueError,
            "tridiagonal_solve: diagonals of shapes (1,), (3,), (1,) are incompatible. The other "
            "diagonals must be as long as the main one, or shorter by one.",
        ),
        (
            lambda: tf.linalg.tridiagonal_solve(D[:2], D[0], "matrix"),
            ValueError,
            "tridiagonal_solve: the matrices must be square. Received: shape (2, 3).",
        ),
        (
            lambda: tf.linalg.tridiagonal_solve(D, D[0], "rows"),
            ValueError,
            "tridiagonal_solve: `diagonals_format` must be 'compact', 'sequence' or 'matrix'. "
            "Received: 'rows'.",
        ),
        (
            lambda: tf.linalg.tridiagonal_solve(D, np.ones(4)),
            ValueError,
            "tridiagonal_solve: matrices with 3 rows and right-hand sides with 4 rows are "
            "incompatible.",
        ),
        (
            lambda: tf.linalg.tridiagonal_solve(D, np.ones((2, 3, 1))),
            ValueError,
            "tridiagonal_solve: `rhs` has 3 axes. Expected 1 or 2, for diagonals of shape (3, 3).",
        ),
        (
            lambda: tf.linalg.tridiagonal_solve(D[None], np.ones((2, 3, 1))),
            ValueError,
            "tridiagonal_solve: `rhs` has shape (2, 3, 1). Expected leading axes (1,).",
        ),
        (
            lambda: tf.linalg.tridiagonal_solve(
                D, D[0], partial_pivoting=False, perturb_singular=True
            ),
            ValueError,
            "partial_pivoting must be True if perturb_singular is.",
        ),
        (
            lambda: tf.linalg.tridiagonal_solve(D, D[0], perturb_singular=True),
            UnimplementedError,
            "tridiagonal_solve: `perturb_singular` is not supported.",
        ),
        (
            lambda: tf.linalg.eigh_tridiagonal(tf.ones([2]), tf.ones([1], tf.float64)),
            ValueError,
            "eigh_tridiagonal: `alpha` has dtype float32 and `beta` float64. Expected the same "
            "dtype.",
        ),
        (
            lambda: tf.linalg.eigh_tridiagonal([1.0, 2.0], [1.0], select="x"),
            ValueError,
            "eigh_tridiagonal: `select` must be 'a', 'i' or 'v'. Received: 'x'.",
        ),
        (
            lambda: tf.linalg.eigh_tridiagonal([1.0, 2.0], [1.0], select="v"),
            TypeError,
            "eigh_tridiagonal: `select_range` must be a pair. Received: None.",
        ),
    ],
)
def test_errors_of_other_classes(call, error, message):
    assert_raises(call, error, message)


def test_an_indefinite_operator_raises():
    operator = Operator(np.eye(2))
    operator.is_positive_definite = None

    assert_raises(
        lambda: tf.linalg.experimental.conjugate_gradient(operator, [1.0, 2.0]),
        ValueError,
        "Expected a self-adjoint, positive definite operator.",
    )
