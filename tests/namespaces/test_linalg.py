"""tf.linalg: values, dtypes, errors and gradients."""

import numpy as np
import pytest

import retrograde as tf
from retrograde.errors import FailedPreconditionError, InvalidArgumentError
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
def test_products_of_transposed_matrices(flags, reference):
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
def test_products_of_batches_of_matrices(a, b):
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=a), rng.normal(size=b)

    np.testing.assert_allclose(tf.linalg.matmul(a, b).numpy(), a @ b, rtol=1e-14)


@pytest.mark.parametrize("dtype", NUMERIC)
def test_products_keep_the_dtype(dtype):
    y = tf.linalg.matmul(of_dtype([[1, 2]], dtype), of_dtype([[3], [4]], dtype))

    assert (y.dtype, y.numpy().tolist()) == (dtype, [[11]])


def test_products_of_int8_in_wider_integers():
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


def test_gradient_of_the_cross_product_is_dense():
    v = tf.Variable([1.0, 2.0, 3.0])
    with tf.GradientTape() as tape:
        y = tf.linalg.cross(v, [1.0, 0.0, 0.0])

    assert tape.gradient(y, v).numpy().tolist() == [0.0, -1.0, 1.0]


@pytest.mark.parametrize("flags", [{}, {"transpose_a": True}, {"adjoint_a": True}])
def test_gradients_of_products(flags):
    other = np.transpose(B) if not flags else B

    assert_gradients(lambda a, b: tf.linalg.matmul(a, b, **flags), A, other)
    vector = [0.3, 1.2] if flags else [0.3, 1.2, -0.4]
    assert_gradients(lambda a, b: tf.linalg.matvec(a, b, **flags), A, vector)


@pytest.mark.parametrize("flags", [{"transpose_b": True}, {"adjoint_b": True}])
def test_gradients_of_products_with_respect_to_the_second_factor(flags):
    assert_gradients(lambda a, b: tf.linalg.matmul(a, b, **flags), A, B)


def test_gradients_of_complex_products():
    """The gradient of sum(g * (a @ b)) with respect to a is g @ b^H."""
    g = COMPLEX * 2j

    grad_a, grad_b = gradient(tf.linalg.matmul, COMPLEX, COMPLEX + 1, weights=tf.constant(g))

    np.testing.assert_allclose(grad_a, g @ (COMPLEX + 1).conj().T, rtol=1e-14)
    np.testing.assert_allclose(grad_b, COMPLEX.conj().T @ g, rtol=1e-14)


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


MATRIX = [[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12]]
BANDS = [
    ("RIGHT_LEFT", [[0, 3, 8], [2, 7, 12], [1, 6, 11], [5, 10, 0]]),
    ("LEFT_RIGHT", [[3, 8, 0], [2, 7, 12], [1, 6, 11], [0, 5, 10]]),
    ("LEFT_LEFT", [[3, 8, 0], [2, 7, 12], [1, 6, 11], [5, 10, 0]]),
    ("RIGHT_RIGHT", [[0, 3, 8], [2, 7, 12], [1, 6, 11], [0, 5, 10]]),
]


@pytest.mark.parametrize(("align", "rows"), BANDS)
def test_several_diagonals(align, rows):
    assert tf.linalg.diag_part(MATRIX, k=(-1, 2), align=align).numpy().tolist() == rows
    padded = tf.linalg.diag_part(MATRIX, k=(-1, 2), padding_value=99, align=align).numpy()
    assert np.where(padded == 99, 0, padded).tolist() == rows
    assert (padded == 99).sum() == 2


@pytest.mark.parametrize(("align", "rows"), BANDS)
def test_diag_inverts_diag_part_for_several_diagonals(align, rows):
    band = [[1, 2, 3, 0], [5, 6, 7, 8], [0, 10, 11, 12]]
    size = {"num_rows": 3, "num_cols": 4}

    assert tf.linalg.diag(rows, k=(-1, 2), align=align, **size).numpy().tolist() == band
    y = tf.linalg.diag(rows, k=(-1, 2), align=align, padding_value=7, **size)
    assert (y.numpy()[0, 3], y.numpy()[2, 0]) == (7, 7)
    y = tf.linalg.set_diag(np.full([3, 4], 9, np.int32), rows, k=(-1, 2), align=align)
    assert y.numpy().tolist() == [[1, 2, 3, 9], [5, 6, 7, 8], [9, 10, 11, 12]]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [[1, 0], [0, 2]]),
        ({"k": 1}, [[0, 1, 0], [0, 0, 2], [0, 0, 0]]),
        ({"k": -1}, [[0, 0, 0], [1, 0, 0], [0, 2, 0]]),
        ({"num_rows": 3}, [[1, 0], [0, 2], [0, 0]]),
        ({"num_cols": 3}, [[1, 0, 0], [0, 2, 0]]),
        ({"k": 1, "num_rows": 2}, [[0, 1, 0], [0, 0, 2]]),
        ({"k": -1, "num_rows": 3, "num_cols": 2}, [[0, 0], [1, 0], [0, 2]]),
        ({"padding_value": 9}, [[1, 9], [9, 2]]),
    ],
)
def test_diag_with_one_diagonal(options, expected):
    assert tf.linalg.diag([1, 2], **options).numpy().tolist() == expected
    batch = tf.linalg.diag(tf.Variable([[1, 2], [1, 2]]), **options)
    assert batch.numpy().tolist() == [expected, expected]


@pytest.mark.parametrize(
    ("k", "size", "expected"),
    [
        ((0, 1), {}, [[3, 2], [0, 4]]),
        ((1, 2), {}, [[0, 3, 2], [0, 0, 4], [0, 0, 0]]),
        ((-2, -1), {}, [[0, 0, 0], [1, 0, 0], [3, 2, 0]]),
        ((-2, -1), {"num_rows": 4}, [[0, 0], [1, 0], [3, 2], [0, 4]]),
        ((1, 2), {"num_cols": 5}, [[0, 3, 1, 0, 0], [0, 0, 4, 2, 0]]),
    ],
)
def test_the_size_follows_from_the_diagonals(k, size, expected):
    assert tf.linalg.diag([[1, 2], [3, 4]], k=k, **size).numpy().tolist() == expected


@pytest.mark.parametrize(("k", "diagonal"), [(0, [8, 9]), (1, [8, 9]), (-1, [8])])
def test_a_diagonal_is_replaced(k, diagonal):
    x = np.arange(6).reshape(2, 3)
    expected = x.copy()
    for i, value in enumerate(diagonal):
        expected[i - min(k, 0), i + max(k, 0)] = value

    assert tf.linalg.set_diag(x, diagonal, k=k).numpy().tolist() == expected.tolist()


@pytest.mark.parametrize("shape", [(3, 3), (2, 3), (3, 2), (2, 3, 4)])
@pytest.mark.parametrize(("lower", "upper"), [(0, 0), (1, 0), (0, -1), (-1, 0), (-1, -1), (1, 1)])
def test_bands(lower, upper, shape):
    x = np.arange(1.0, 1 + np.prod(shape)).reshape(shape)
    low = -lower if lower >= 0 else -shape[-2]
    expected = np.triu(x, low) if upper < 0 else np.tril(np.triu(x, low), upper)

    y = tf.linalg.band_part(x, tf.constant(lower), upper)

    assert y.numpy().tolist() == expected.tolist()


def test_diagonals_of_tensors():
    x = np.arange(6).reshape(2, 3)

    y = tf.linalg.tensor_diag(x)

    assert y.shape == (2, 3, 2, 3)
    assert y.numpy()[1, 2, 1, 2] == 5
    assert y.numpy().sum() == 15
    assert tf.linalg.tensor_diag_part(y).numpy().tolist() == x.tolist()


def test_gradients_of_rearrangements():
    for name in ("matrix_transpose", "adjoint", "trace", "diag_part", "diag", "tensor_diag"):
        assert_gradients(getattr(tf.linalg, name), A)
    assert_gradients(tf.linalg.tensor_diag_part, SQUARE)
    assert_gradients(lambda x: tf.linalg.diag_part(x, k=(-1, 1), padding_value=3.0), A)
    assert_gradients(lambda x: tf.linalg.diag(x, k=(0, 1), padding_value=3.0), A)
    assert_gradients(lambda x, d: tf.linalg.set_diag(x, d), A, [1.0, 2.0])
    assert_gradients(lambda x: tf.linalg.band_part(x, 0, 1), A)


# Norms

ORDERS = [("euclidean", 2), (1, 1), (2, 2), (np.inf, np.inf), (3, 3), (0.5, 0.5)]


@pytest.mark.parametrize("keepdims", [None, True])
@pytest.mark.parametrize("axis", [0, -1])
@pytest.mark.parametrize(("ord", "reference"), ORDERS)
def test_norms_of_vectors(ord, reference, axis, keepdims):
    y = tf.linalg.norm(float64(B), ord, axis, keepdims)

    expected = np.linalg.norm(B, reference, axis, keepdims=bool(keepdims))
    np.testing.assert_allclose(y.numpy(), expected, rtol=1e-14)
    y = tf.linalg.norm(float64(B), ord)
    np.testing.assert_allclose(y.numpy(), np.linalg.norm(np.ravel(B), reference), rtol=1e-14)


@pytest.mark.parametrize("keepdims", [None, True])
@pytest.mark.parametrize("axis", [(0, 1), [-2, -1], (1, 0), (0, 2)])
@pytest.mark.parametrize(
    ("ord", "reference"), [("euclidean", "fro"), ("fro", "fro"), (1, 1), (np.inf, np.inf)]
)
def test_norms_of_matrices(ord, reference, axis, keepdims):
    x = np.random.default_rng(4).normal(size=(2, 3, 4))

    y = tf.linalg.norm(x, ord, axis, keepdims)

    expected = np.linalg.norm(x, reference, tuple(axis), keepdims=bool(keepdims))
    np.testing.assert_allclose(y.numpy(), expected, rtol=1e-14)


def test_norms_of_complex_numbers():
    x = tf.constant([3 + 4j, 12])

    assert tf.linalg.norm(x).numpy() == 13
    assert tf.linalg.norm(x).dtype == tf.complex128
    assert tf.linalg.norm(x, 1).numpy() == 17
    assert tf.linalg.norm(x, 1).dtype == tf.float64


@pytest.mark.parametrize("dtype", INEXACT)
def test_normalize_keeps_the_dtype(dtype):
    unit, length = tf.linalg.normalize(of_dtype([3, 4], dtype))

    assert unit.dtype == length.dtype == dtype
    assert length.numpy().tolist() == [5]
    np.testing.assert_allclose(tf.cast(unit, "complex128").numpy(), [0.6, 0.8], rtol=1e-2)


def test_rows_are_normalized():
    unit, length = tf.linalg.normalize(float64(A), ord=1, axis=1)

    assert length.numpy().tolist() == [[6], [15]]
    np.testing.assert_allclose(unit.numpy().sum(1), [1, 1], rtol=1e-15)


@pytest.mark.parametrize("axis", [None, 0, 1])
@pytest.mark.parametrize("ord", ["euclidean", 1, 2, np.inf, 3, 1.5])
def test_gradients_of_norms_of_vectors(ord, axis):
    assert_gradients(lambda x: tf.linalg.norm(x, ord, axis), [[0.2, -1.0], [3.0, 0.5]])


@pytest.mark.parametrize("ord", ["euclidean", "fro", 1, np.inf])
def test_gradients_of_norms_of_matrices(ord):
    assert_gradients(lambda x: tf.linalg.norm(x, ord, (0, 1)), [[0.2, -1.0], [3.0, 0.5]])


def test_gradients_of_normalize():
    assert_gradients(lambda x: tf.linalg.normalize(x)[0], [0.2, 1.0, 3.0])
    assert_gradients(lambda x, y: tf.linalg.global_norm([x, y]), [0.2, 1.0], [3.0])


def test_gradient_of_the_norm_of_zeros_is_nan():
    (g,) = gradient(tf.linalg.norm, [0.0, 0.0])

    assert np.isnan(g).all()


# Errors


def test_incompatible_factors():
    with pytest.raises(InvalidArgumentError, match="the inner dimensions differ, 3 and 2"):
        tf.linalg.matmul(A, A)
    with pytest.raises(InvalidArgumentError, match="Expected at least 2 axes each"):
        tf.linalg.matmul([1.0], [1.0])
    with pytest.raises(InvalidArgumentError, match="the batch axes of"):
        tf.linalg.matmul(tf.ones([2, 1, 1]), tf.ones([3, 1, 1]))
    with pytest.raises(
        InvalidArgumentError, match="expected to be a float32 tensor but is a int32"
    ):
        tf.linalg.matmul(tf.constant(A), tf.constant([[1]]))
    with pytest.raises(InvalidArgumentError, match="dtype bool is not supported"):
        tf.linalg.matmul([[True]], [[True]])


@pytest.mark.parametrize("matrix", ["a", "b"])
def test_transpose_and_adjoint_are_exclusive(matrix):
    assert_raises(
        lambda: tf.linalg.matmul(A, A, **{f"transpose_{matrix}": True, f"adjoint_{matrix}": True}),
        ValueError,
        f"Only one of `transpose_{matrix}` and `adjoint_{matrix}` can be True. Received: both.",
    )


def test_matvec_requires_a_vector():
    assert_raises(
        lambda: tf.linalg.matvec(A, 1.0),
        InvalidArgumentError,
        "matvec: b must have rank >= 1. Received: a scalar.",
    )


@pytest.mark.parametrize(
    ("axes", "error", "message"),
    [
        (-1, ValueError, "`axes` must be at least 0. Received: -1."),
        (
            3,
            ValueError,
            "`axes` must not be larger than the number of axes of either tensor. Received: 3 for "
            "shape (2, 3).",
        ),
        ([[0]], ValueError, "`axes` must be an integer or have length 2. Received: [[0]]."),
        (
            [[0], [0, 1]],
            ValueError,
            "different numbers of axes for `a` and `b`. Received: 1 and 2.",
        ),
        (
            [[5], [0]],
            InvalidArgumentError,
            "axis 5 is out of range for a tensor of rank 2. Expected -2 <= axis < 2.",
        ),
        (
            [[0, 1], [1, 0]],
            InvalidArgumentError,
            "axes [0, 1] of shape (2, 3) and [1, 0] of (2, 3) differ in size. Expected equal "
            "sizes.",
        ),
    ],
)
def test_incompatible_axes_of_tensordot(axes, error, message):
    assert_raises(lambda: tf.linalg.tensordot(A, B, axes), error, f"tensordot: {message}")


def test_errors_of_the_cross_product():
    assert_raises(
        lambda: tf.linalg.cross([1.0, 0.0], [0.0, 1.0]),
        FailedPreconditionError,
        "cross: expected vectors of length 3. Received: shape (2,).",
    )
    assert_raises(
        lambda: tf.linalg.cross([1.0, 0.0, 0.0], A),
        InvalidArgumentError,
        "cross: both inputs must have the same shape and rank >= 1. Received: (3,) and (2, 3).",
    )


def test_functions_that_require_matrices():
    assert_raises(
        lambda: tf.linalg.matrix_transpose([1.0]),
        ValueError,
        "matrix_transpose: expected a tensor of rank >= 2. Received: shape (1,).",
    )
    for name, extra_args in (("diag_part", ()), ("band_part", (0, 0)), ("set_diag", ([1.0],))):
        assert_raises(
            lambda name=name, extra_args=extra_args: getattr(tf.linalg, name)([1.0], *extra_args),
            InvalidArgumentError,
            f"{name}: input must be at least 2-dim. Received: shape (1,).",
        )
    with pytest.raises(InvalidArgumentError, match="diag_part: input must be at least 2-dim"):
        tf.linalg.trace([1.0])


def test_diagonals_out_of_range():
    assert_raises(
        lambda: tf.linalg.diag_part(A, k=3),
        InvalidArgumentError,
        "diag_part: diagonal 3 is outside matrices with 2 rows and 3 columns. Expected a "
        "number between -2 and 3.",
    )
    assert_raises(
        lambda: tf.linalg.diag_part(A, k=(1, 0)),
        InvalidArgumentError,
        "diag_part: `k` must be an integer or an ascending pair of integers. Received: (1, 0).",
    )
    assert_raises(
        lambda: tf.linalg.diag_part(A, k=(0, 1), align="LEFT"),
        InvalidArgumentError,
        "`align` must name the sides for super- and subdiagonals, such as 'RIGHT_LEFT'. Received: "
        "'LEFT'.",
    )


def test_incompatible_diagonals():
    assert_raises(
        lambda: tf.linalg.diag([1.0, 2.0], num_rows=1),
        InvalidArgumentError,
        "diag: 1 rows and 2 columns do not match diagonals 0 to 0 of length 2. Expected at least "
        "2 rows and 2 columns, with equality in one of them.",
    )
    assert_raises(
        lambda: tf.linalg.diag(1.0),
        InvalidArgumentError,
        "diag: shape () does not match diagonals 0 to 0. Expected at least 1 axes; several "
        "diagonals need one row each in the second to last axis.",
    )
    with pytest.raises(InvalidArgumentError, match=r"\(2, 3\) does not match diagonals -1 to 1"):
        tf.linalg.diag(A, k=(-1, 1))
    assert_raises(
        lambda: tf.linalg.set_diag(A, [1.0]),
        InvalidArgumentError,
        "set_diag: the diagonal has shape (1,) and dtype float32. Expected (2,) and float32 for "
        "matrices of shape (2, 3).",
    )
    assert_raises(
        lambda: tf.linalg.tensor_diag_part(A),
        InvalidArgumentError,
        "tensor_diag_part: both halves of the shape must be equal. Received: (2, 3).",
    )
    with pytest.raises(InvalidArgumentError, match="input must have rank >= 1"):
        tf.linalg.tensor_diag(1.0)


def test_bands_wider_than_the_matrix():
    assert_raises(
        lambda: tf.linalg.band_part(A, 3, 0),
        InvalidArgumentError,
        "band_part: num_lower must be negative or at most 2, the size of the matrix. Received: 3.",
    )
    with pytest.raises(TypeError, match="expected integers"):
        tf.linalg.band_part(A, 1.0, 0)


@pytest.mark.parametrize("ord", [-1, 0, "fro", "nuc", -np.inf])
def test_unsupported_orders_of_vector_norms(ord):
    message = f"norm: 'ord' must be a supported vector norm, got {ord}"
    assert_raises(lambda: tf.linalg.norm(A, ord), ValueError, message)


def test_unsupported_orders_of_matrix_norms():
    assert_raises(
        lambda: tf.linalg.norm(A, 3, (0, 1)),
        ValueError,
        "norm: 'ord' must be a supported matrix norm in ['euclidean', 'fro', 1, 2, inf], got 3",
    )


@pytest.mark.parametrize("axis", [[0], [0, 1, 2], (0, 0), 1.5])
def test_axes_of_norms(axis):
    assert_raises(
        lambda: tf.linalg.norm(A, axis=axis),
        ValueError,
        f"norm: 'axis' must be None, an integer, or a tuple of 2 unique integers, got {axis}",
    )
