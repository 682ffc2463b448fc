"""Compares `keras.ops.linalg` with NumPy and SciPy, and gradients with finite differences."""

import numpy as np
import pytest
import scipy.linalg

import retrograde as tf
from retrograde.keras_backend.ops import linalg as backend
from tests.namespaces.helpers import assert_gradients, assert_raises

RNG = np.random.default_rng(5)
X = RNG.uniform(-1, 1, (2, 3, 3)) + np.diag([2.0, 4.0, 7.0])  # well-conditioned
POSITIVE = X @ X.mT + np.eye(3)
TALL, WIDE = RNG.uniform(-1, 1, (2, 4, 3)), RNG.uniform(-1, 1, (3, 4))
LOWER = np.tril(X)
B = RNG.uniform(-1, 1, (2, 3, 2))


def symmetric(f):
    """Returns `f` of the symmetric part, so that the gradient covers both triangles."""
    return lambda x: f((x + tf.linalg.matrix_transpose(x)) * 0.5)


CASES = {
    "cholesky": (symmetric(backend.cholesky), np.linalg.cholesky, [POSITIVE]),
    "cholesky_upper": (
        symmetric(lambda x: backend.cholesky(x, upper=True)),
        lambda x: np.linalg.cholesky(x, upper=True),
        [POSITIVE],
    ),
    "cholesky_inverse": (
        backend.cholesky_inverse,
        lambda x: np.linalg.inv(np.tril(x) @ np.tril(x).mT),
        [LOWER],
    ),
    "cholesky_inverse_upper": (
        lambda x: backend.cholesky_inverse(x, upper=True),
        lambda x: np.linalg.inv(np.triu(x).mT @ np.triu(x)),
        [LOWER.mT],
    ),
    "det": (backend.det, np.linalg.det, [X]),
    "inv": (backend.inv, np.linalg.inv, [X]),
    "pinv_tall": (backend.pinv, np.linalg.pinv, [TALL]),
    "pinv_wide": (backend.pinv, np.linalg.pinv, [WIDE]),
    "solve": (backend.solve, np.linalg.solve, [X, B]),
    "solve_vector": (backend.solve, lambda a, b: np.linalg.solve(a, b[..., None])[..., 0],
                     [X, B[..., 0]]),
    "solve_lower": (
        lambda a, b: backend.solve_triangular(a, b, lower=True),
        lambda a, b: np.linalg.solve(np.tril(a), b),
        [X, B],
    ),
    "solve_upper_vector": (
        backend.solve_triangular,
        lambda a, b: scipy.linalg.solve_triangular(a, b),
        [X[0], B[0, :, 0]],
    ),
    "lstsq": (
        backend.lstsq,
        lambda a, b: np.linalg.lstsq(a, b)[0],
        [TALL[0], RNG.uniform(-1, 1, (4, 2))],
    ),
    "lstsq_vector": (backend.lstsq, lambda a, b: np.linalg.lstsq(a, b)[0], [WIDE, B[0, :, 0]]),
    "eigenvalues_of_symmetric": (
        symmetric(lambda x: backend.eigh(x)[0]), lambda x: np.linalg.eigh(x)[0], [POSITIVE]
    ),
    "eigenvalues": (
        lambda x: tf.math.real(backend.eig(x)[0]),
        lambda x: np.real(np.linalg.eig(x)[0]),
        [X],
    ),
    "singular_values": (
        lambda x: backend.svd(x, compute_uv=False), lambda x: np.linalg.svd(x)[1], [TALL]
    ),
    "qr": (lambda x: abs(backend.qr(x)[1]), lambda x: abs(np.linalg.qr(x)[1]), [TALL]),
    "qr_complete": (
        lambda x: abs(backend.qr(x, mode="complete")[1]),
        lambda x: abs(np.linalg.qr(x, mode="complete")[1]),
        [TALL],
    ),
    **{
        f"lu_factor_{label}": (
            lambda x: backend.lu_factor(x)[0], lambda x: scipy.linalg.lu_factor(x)[0], [x]
        )
        for label, x in (("square", X[0]), ("tall", TALL[0]), ("wide", WIDE))
    },
    **{
        f"norm_{ord}_{axis}": (
            lambda x, ord=ord, axis=axis: backend.norm(x, ord, axis),
            lambda x, ord=ord, axis=axis: np.linalg.norm(x, ord, axis),
            [TALL],
        )
        for ord, axis in [
            (None, None), (None, 1), (2, -1), (1, 0), (3, 1), (np.inf, 1), (-np.inf, 2), (-2, 1),
            (None, (0, 1)), ("fro", (-1, 0)), ("nuc", (1, 2)), (2, (2, 1)), (-2, (1, 2)),
            (1, (1, 2)), (-1, (1, 2)), (np.inf, (0, 2)), (-np.inf, (2, 0)),
        ]
    },
}  # fmt: skip


@pytest.mark.parametrize("label", CASES)
def test_value_and_gradient(label):
    actual_fn, numpy_fn, inputs = CASES[label]
    y, expected = actual_fn(*map(tf.constant, inputs)), numpy_fn(*inputs)

    assert y.shape == expected.shape
    assert y.dtype == expected.dtype
    np.testing.assert_allclose(y.numpy(), expected, rtol=1e-9, atol=1e-10)
    assert_gradients(actual_fn, *inputs, rtol=1e-6)


def test_decompositions_reconstruct_the_matrix():
    for x in (*X, *TALL, WIDE):
        q, r = backend.qr(x)
        np.testing.assert_allclose((q @ r).numpy(), x, atol=1e-12)
        for full in (True, False):
            u, s, v = (t.numpy() for t in backend.svd(x, full_matrices=full))
            n = len(s)
            assert u.shape[1] == (x.shape[0] if full else n)
            np.testing.assert_allclose(u[:, :n] * s @ v[:n], x, atol=1e-12)
    e, v = (t.numpy() for t in backend.eig(X))
    np.testing.assert_allclose(v * e[:, None] @ np.linalg.inv(v), X, atol=1e-12)
    e, v = (t.numpy() for t in backend.eigh(POSITIVE))
    np.testing.assert_allclose(v * e[:, None] @ v.mT, POSITIVE, atol=1e-12)


@pytest.mark.parametrize("x", [X, TALL, WIDE], ids=["square", "tall", "wide"])
def test_pivots_are_row_swaps(x):
    lu, pivots = (t.numpy() for t in backend.lu_factor(x))
    *batch, m, n = x.shape
    assert pivots.dtype == np.int32 and pivots.shape == (*batch, min(m, n))
    for index in np.ndindex(*batch):
        lower = np.tril(lu[index][:, :m], -1)[:, : min(m, n)] + np.eye(m, min(m, n))
        rows = x[index].copy()
        for i, j in enumerate(pivots[index]):
            rows[[i, j]] = rows[[j, i]]
        np.testing.assert_allclose(lower @ np.triu(lu[index][: min(m, n)]), rows, atol=1e-12)


def test_matrix_rank_with_tolerance():
    x = np.diag([3.0, 1e-3, 0.0])

    assert backend.matrix_rank(x).numpy() == 2
    assert backend.matrix_rank(x, tol=0.1).numpy() == 1
    assert backend.matrix_rank(x).dtype == "int32"


def test_norm_of_order_0_counts_nonzeros():
    assert backend.norm(np.array([0.0, 2.0, -3.0]), 0).numpy() == 2
    assert backend.norm(np.array([[3, 4]])).numpy() == 5


def test_jvp():
    x, t = np.array([1.0, 2.0]), np.array([0.5, -1.0])
    y, tangent = backend.jvp(lambda x: x * x, (x,), (t,))
    assert y.numpy().tolist() == [1, 4] and tangent.numpy().tolist() == [1, -4]

    y, tangent, aux = backend.jvp(lambda a, b: (a * b, "aux"), (x, x), (t, t), has_aux=True)
    assert tangent.numpy().tolist() == [1, -4] and aux == "aux"


def test_half_precision_is_computed_in_float32():
    x = tf.cast(POSITIVE, "bfloat16")
    y = backend.cholesky(x)

    assert y.dtype == "bfloat16"
    exact = np.linalg.cholesky(x.numpy().astype(np.float32)).astype(y.numpy().dtype)
    np.testing.assert_array_equal(y.numpy(), exact)


def test_errors():
    assert_raises(
        lambda: backend.cholesky(np.diag([1.0, -1.0])),
        ValueError,
        "Cholesky decomposition failed. The input might not be a valid positive definite matrix.",
    )
    assert_raises(
        lambda: backend.qr(X, mode="full"),
        ValueError,
        "`mode` argument value not supported. Expected one of {'reduced', 'complete'}. "
        "Received: mode=full",
    )
    assert_raises(
        lambda: backend.matrix_rank(np.ones(3)),
        ValueError,
        "Expected input to have rank >= 2. Received input with shape (3,).",
    )
    assert_raises(
        lambda: backend.norm(X, 1),
        ValueError,
        "norm: ord=1 is defined only for vectors and matrices. Received: axis=None for shape "
        "(2, 3, 3).",
    )
    assert_raises(
        lambda: backend.norm(X, "fro", axis=0),
        ValueError,
        "norm: ord='fro' is not defined for vectors.",
    )
    assert_raises(
        lambda: backend.norm(X, 3, axis=(0, 1)),
        ValueError,
        "norm: ord=3 is not defined for matrices.",
    )
    assert_raises(
        lambda: backend.norm(X, 2, axis=5),
        ValueError,
        "norm: axis 5 is out of range for a tensor of rank 3. Expected -3 <= axis < 3.",
    )
