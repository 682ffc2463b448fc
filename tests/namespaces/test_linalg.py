"""tf.linalg: values, dtypes, errors and gradients."""

import numpy as np
import pytest

import retrograde as tf
from retrograde.errors import FailedPreconditionError, InvalidArgumentError, UnimplementedError
from tests.namespaces.helpers import (
    INEXACT,
    NUMERIC,
    assert_gradients,
    assert_raises,
    float64,
    gradient,
    of_dtype,
)

A = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
B = [[0.5, -1.0, 2.0], [3.0, 0.0, -4.0]]
SQUARE = [[0.2, 1.0], [3.0, -0.5]]
COMPLEX = np.array([[1 + 1j, 2], [3, 4 - 2j]])


# Products


@pytest.mark.parametrize(
    ("flags", "reference"),
    [
        ({"transpose_a": True}, lambda a, b: a.T @ b),
        ({"transpose_b": True}, lambda a, b: a @ b.T),
        ({"adjoint_a": True}, lambda a, b: a.T.conj() @ b),
        ({"adjoint_b": True}, lambda a, b: a @ b.T.conj()),
        ({"adjoint_a": True, "transpose_b": True}, lambda a, b: a.T.conj() @ b.T),
        ({"a_is_sparse": True, "b_is_sparse": True}, lambda a, b: a @ b),
    ],
)
def test_products_of_turned_matrices(flags, reference):
    b = COMPLEX * 1j + 2

    np.testing.assert_allclose(
        tf.linalg.matmul(COMPLEX, b, **flags).numpy(), reference(COMPLEX, b), rtol=1e-15
    )


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((2, 3), (3, 4)), ((2, 3, 4), (4, 5)), ((3, 4), (2, 4, 5)), ((2, 1, 3, 4), (5, 4, 2)),
        ((2, 0), (0, 3)), ((0, 2), (2, 3)),
    ],
)  # fmt: skip
def test_products_of_many_matrices(a, b):
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=a), rng.normal(size=b)

    np.testing.assert_allclose(tf.linalg.matmul(a, b).numpy(), a @ b, rtol=1e-14)


@pytest.mark.parametrize("dtype", NUMERIC)
def test_products_keep_the_dtype(dtype):
    y = tf.linalg.matmul(of_dtype([[1, 2]], dtype), of_dtype([[3], [4]], dtype))

    assert (y.dtype, y.numpy().tolist()) == (dtype, [[11]])


def test_products_of_bytes_in_wider_integers():
    y = tf.linalg.matmul(
        of_dtype([[100, 100]], "uint8"), of_dtype([[3], [4]], "int8"), output_type=tf.int32
    )

    assert (y.dtype, y.numpy().tolist()) == (tf.int32, [[700]])


def test_factors_may_be_variables_lists_and_arrays():
    for b in ([[1.0], [2.0]], np.array([[1], [2]]), tf.Variable([[1.0], [2.0]])):
        assert tf.linalg.matmul(tf.Variable([[3.0, 4.0]]), b).numpy().tolist() == [[11]]


def test_a_matrix_times_a_vector():
    np.testing.assert_array_equal(tf.linalg.matvec(A, [1.0, 10.0, 100.0]).numpy(), [321, 654])
    y = tf.linalg.matvec(A, [1.0, 10.0], transpose_a=True)
    np.testing.assert_array_equal(y.numpy(), [41, 52, 63])
    y = tf.linalg.matvec(COMPLEX, [1.0, 2.0 + 1j], adjoint_a=True)
    np.testing.assert_array_equal(y.numpy(), COMPLEX.conj().T @ [1, 2 + 1j])
    assert tf.linalg.matvec(tf.ones([2, 3, 4]), tf.ones([2, 4])).shape == (2, 3)


@pytest.mark.parametrize(
    ("a", "b", "axes"),
    [
        ((2, 3), (3, 4), 1), ((2, 3), (2, 3), 2), ((2, 3), (4,), 0), ((), (3,), 0),
        ((2, 3, 4), (4, 3, 5), [[1, 2], [1, 0]]), ((2, 3, 4), (4, 3, 5), [[-2, -1], [1, 0]]),
        ((2, 3), (5, 2), (0, 1)), ((2, 3), (4, 5), [[], []]), ((2, 0), (0, 3), 1),
        ((2, 0, 3), (3, 0), [[2, 1], [0, 1]]), ((0, 3), (3, 2), 1), ((0, 0), (0, 2), 1),
    ],
)  # fmt: skip
def test_tensordot_agrees_with_numpy(a, b, axes):
    rng = np.random.default_rng(2)
    a, b = rng.normal(size=a), rng.normal(size=b)

    y = tf.linalg.tensordot(a, b, axes)

    np.testing.assert_allclose(y.numpy(), np.tensordot(a, b, axes), rtol=1e-13)


def test_axes_of_tensordot_may_be_a_tensor():
    y = tf.linalg.tensordot(SQUARE, SQUARE, tf.constant([[0], [1]]))

    np.testing.assert_allclose(y.numpy(), np.tensordot(SQUARE, SQUARE, ([0], [1])), rtol=1e-6)


def test_cross():
    a, b = np.array(A), np.array(B)

    np.testing.assert_allclose(tf.linalg.cross(a, b).numpy(), np.cross(a, b), rtol=1e-15)
    assert tf.linalg.cross([1, 2, 3], [3, 2, 1]).numpy().tolist() == [-4, 8, -4]


@pytest.mark.parametrize("flags", [{}, {"transpose_a": True}, {"adjoint_a": True}])
def test_gradients_of_products(flags):
    other = np.transpose(B) if not flags else B

    assert_gradients(lambda a, b: tf.linalg.matmul(a, b, **flags), A, other)
    vector = [0.3, 1.2] if flags else [0.3, 1.2, -0.4]
    assert_gradients(lambda a, b: tf.linalg.matvec(a, b, **flags), A, vector)


@pytest.mark.parametrize("flags", [{"transpose_b": True}, {"adjoint_b": True}])
def test_gradients_of_products_by_the_second_factor(flags):
    assert_gradients(lambda a, b: tf.linalg.matmul(a, b, **flags), A, B)


def test_gradients_of_complex_products():
    """The gradient of a by sum(g * (a @ b)) is g @ b^H."""
    g = COMPLEX * 2j

    by_a, by_b = gradient(tf.linalg.matmul, COMPLEX, COMPLEX + 1, weights=tf.constant(g))

    np.testing.assert_allclose(by_a, g @ (COMPLEX + 1).conj().T, rtol=1e-14)
    np.testing.assert_allclose(by_b, COMPLEX.conj().T @ g, rtol=1e-14)


def test_gradients_of_the_other_products():
    assert_gradients(lambda a, b: tf.linalg.matmul(a, b), np.ones([2, 1, 2, 3]), np.ones([4, 3, 2]))
    assert_gradients(lambda a, b: tf.linalg.tensordot(a, b, [[0, 1], [0, 1]]), A, B)
    assert_gradients(lambda a, b: tf.linalg.tensordot(a, b, [[0], [0]]), A, B)
    assert_gradients(tf.linalg.cross, A, B)


# Transposes, diagonals, bands


def test_transposes():
    x = np.arange(24.0).reshape(2, 3, 4)

    assert tf.linalg.matrix_transpose(x).numpy().tolist() == x.swapaxes(1, 2).tolist()
    assert tf.linalg.adjoint(COMPLEX).numpy().tolist() == COMPLEX.conj().T.tolist()
    assert tf.linalg.matrix_transpose(COMPLEX).numpy().tolist() == COMPLEX.T.tolist()
    assert tf.linalg.matrix_transpose([["a", "b"]]).shape == (2, 1)


@pytest.mark.parametrize("dtype", NUMERIC)
def test_traces(dtype):
    y = tf.linalg.trace(of_dtype([[1, 2, 3], [4, 5, 6]], dtype))

    assert (y.dtype, y.numpy()) == (dtype, 6)
    assert tf.linalg.trace(tf.ones([2, 3, 4])).numpy().tolist() == [3, 3]
    assert tf.linalg.trace(tf.ones([0, 3])).numpy() == 0


@pytest.mark.parametrize("k", [-1, 0, 1, 2])
def test_one_diagonal(k):
    x = np.arange(12).reshape(2, 2, 3)

    y = tf.linalg.diag_part(x, k=k)

    assert y.numpy().tolist() == np.diagonal(x, k, 1, 2).tolist()


DIAGONALS = [
    ("RIGHT_LEFT", [[9, 3, 7], [2, 6, 1], [1, 5, 0], [4, 9, 9]]),
    ("LEFT_RIGHT", [[3, 7, 9], [2, 6, 1], [1, 5, 0], [9, 9, 4]]),
    ("LEFT_LEFT", [[3, 7, 9], [2, 6, 1], [1, 5, 0], [4, 9, 9]]),
    ("RIGHT_RIGHT", [[9, 3, 7], [2, 6, 1], [1, 5, 0], [9, 9, 4]]),
]


@pytest.mark.parametrize(("align", "expected"), DIAGONALS)
def test_several_diagonals(align, expected):
    x = [[1, 2, 3, 0], [4, 5, 6, 7], [0, 0, 0, 1]]

    y = tf.linalg.diag_part(x, k=(-1, 2), padding_value=9, align=align)

    rows = [[9 if v is None else v for v in row] for row in _rows(x, align)]
    assert y.numpy().tolist() == rows
    assert len(expected) == len(rows)


def _rows(x, align):
    """The diagonals from 2 down to -1, with `None` where they are short."""
    above, below = align.split("_")
    rows = []
    for k in (2, 1, 0, -1):
        d = np.diagonal(x, k).tolist()
        free = [None] * (3 - len(d))
        rows.append(free + d if (above if k >= 0 else below) == "RIGHT" else d + free)
    return rows
