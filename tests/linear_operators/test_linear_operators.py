"""Operators agree with the dense matrices that they represent, and have TensorFlow's hints."""

import functools

import numpy as np
import pytest

import retrograde as tf

rng = np.random.default_rng(0)
LA = tf.linalg


def numbers(*shape, dtype=np.float64):
    x = rng.normal(size=shape)
    return (x + 1j * rng.normal(size=shape) if np.dtype(dtype).kind == "c" else x).astype(dtype)


def positive_definite(*shape, dtype=np.float64):
    a = numbers(*shape, dtype=dtype)
    return a @ np.conj(np.swapaxes(a, -1, -2)) + 3 * np.eye(shape[-1])


def diagonally_dominant(*shape, dtype=np.float64):
    return numbers(*shape, dtype=dtype) + 4 * np.eye(shape[-1])


def full(*shape, dtype=np.float64):
    matrix = diagonally_dominant(*shape, dtype=dtype)
    return LA.LinearOperatorFullMatrix(matrix), matrix


def block_diagonal(blocks):
    rows, columns = (sum(b.shape[i] for b in blocks) for i in (-2, -1))
    batch = np.broadcast_shapes(*(b.shape[:-2] for b in blocks))
    matrix = np.zeros((*batch, rows, columns), blocks[0].dtype)
    i = j = 0
    for block in blocks:
        m, n = block.shape[-2:]
        matrix[..., i : i + m, j : j + n] = block
        i, j = i + m, j + n
    return matrix


def kronecker(a, b):
    y = a[..., :, None, :, None] * b[..., None, :, None, :]
    return y.reshape(*y.shape[:-4], y.shape[-4] * y.shape[-3], y.shape[-2] * y.shape[-1])


def circulant(kernel):
    """Returns the matrix of the circular convolution with an array of any rank."""
    size = kernel.size
    matrix = np.empty((size, size), kernel.dtype)
    for column in range(size):
        shift = np.unravel_index(column, kernel.shape)
        matrix[:, column] = np.roll(kernel, shift, range(kernel.ndim)).ravel()
    return matrix


CASES = {}


def case(make):
    CASES[make.__name__] = make
    return make


@case
def identity(dtype):
    return LA.LinearOperatorIdentity(3, dtype=dtype), np.eye(3, dtype=dtype)


@case
def identity_batch(dtype):
    operator = LA.LinearOperatorIdentity(3, batch_shape=[2], dtype=dtype)
    return operator, np.broadcast_to(np.eye(3, dtype=dtype), (2, 3, 3))


@case
def scaled_identity(dtype):
    scale = numbers(2, dtype=dtype) + 3
    operator = LA.LinearOperatorScaledIdentity(3, scale)
    return operator, scale[:, None, None] * np.eye(3)


@case
def diagonal(dtype):
    d = numbers(2, 3, dtype=dtype) + 4
    return LA.LinearOperatorDiag(d), d[..., None] * np.eye(3)


@case
def full_matrix(dtype):
    return full(2, 3, 3, dtype=dtype)


@case
def positive_definite_matrix(dtype):
    matrix = positive_definite(2, 3, 3, dtype=dtype)
    operator = LA.LinearOperatorFullMatrix(matrix, is_self_adjoint=True, is_positive_definite=True)
    return operator, matrix


@case
def lower_triangular(dtype):
    matrix = diagonally_dominant(2, 3, 3, dtype=dtype)
    return LA.LinearOperatorLowerTriangular(matrix), np.tril(matrix)


@case
def adjoint(dtype):
    operator, matrix = full(2, 3, 3, dtype=dtype)
    return LA.LinearOperatorAdjoint(operator), np.conj(np.swapaxes(matrix, -1, -2))


@case
def inversion(dtype):
    operator, matrix = full(2, 3, 3, dtype=dtype)
    return LA.LinearOperatorInversion(operator), np.linalg.inv(matrix)


@case
def composition(dtype):
    (a, x), (b, y) = full(2, 3, 3, dtype=dtype), full(3, 3, dtype=dtype)
    return LA.LinearOperatorComposition([a, b]), x @ y


@case
def kronecker_product(dtype):
    (a, x), (b, y), (c, z) = (full(n, n, dtype=dtype) for n in (2, 3, 2))
    return LA.LinearOperatorKronecker([a, b, c]), functools.reduce(kronecker, [x, y, z])


@case
def kronecker_product_in_batches(dtype):
    (a, x), (b, y) = full(2, 2, 2, dtype=dtype), full(3, 3, dtype=dtype)
    return LA.LinearOperatorKronecker([a, b]), kronecker(x, y)


@case
def block_diag(dtype):
    (a, x), (b, y) = full(2, 2, 2, dtype=dtype), full(3, 3, dtype=dtype)
    return LA.LinearOperatorBlockDiag([a, b]), block_diagonal([x, y])


@case
def block_lower_triangular(dtype):
    (a, x), (b, y) = full(2, 2, dtype=dtype), full(3, 3, dtype=dtype)
    below = numbers(3, 2, dtype=dtype)
    operator = LA.LinearOperatorBlockLowerTriangular([[a], [LA.LinearOperatorFullMatrix(below), b]])
    matrix = block_diagonal([x, y])
    matrix[2:, :2] = below
    return operator, matrix


@case
def low_rank_update(dtype):
    base = numbers(3, dtype=dtype) + 4
    u, v = numbers(2, 3, 2, dtype=dtype), numbers(2, 3, 2, dtype=dtype)
    d = numbers(2, 2, dtype=dtype) + 2
    operator = LA.LinearOperatorLowRankUpdate(LA.LinearOperatorDiag(base), u, d, v)
    return operator, np.diag(base) + u * d[:, None] @ np.conj(np.swapaxes(v, -1, -2))


@case
def positive_low_rank_update(dtype):
    u = numbers(3, 1, dtype=dtype)
    base = LA.LinearOperatorIdentity(3, dtype=dtype)
    return LA.LinearOperatorLowRankUpdate(base, u), np.eye(3) + u @ np.conj(u.T)


@case
def permutation(dtype):
    return LA.LinearOperatorPermutation([2, 0, 1], dtype), np.eye(3, dtype=dtype)[[2, 0, 1]]


@case
def permutation_batch(dtype):
    perm = np.array([[2, 0, 1], [1, 0, 2]])
    return LA.LinearOperatorPermutation(perm, dtype), np.eye(3, dtype=dtype)[perm]


@case
def householder(dtype):
    v = numbers(2, 3, dtype=dtype)
    w = v / np.linalg.norm(v, axis=-1, keepdims=True)
    matrix = np.eye(3) - 2 * w[..., :, None] * np.conj(w[..., None, :])
    return LA.LinearOperatorHouseholder(v), matrix


@case
def tridiagonal(dtype):
    d = numbers(2, 3, 4, dtype=dtype)
    d[:, 1] += 6
    matrix = np.stack([np.diag(m) + np.diag(a[:-1], 1) + np.diag(b[1:], -1) for a, m, b in d])
    return LA.LinearOperatorTridiag(d), matrix


@case
def tridiagonal_sequence(dtype):
    above, main, below = numbers(3, dtype=dtype), numbers(4, dtype=dtype) + 6, numbers(3)
    below = below.astype(dtype)
    operator = LA.LinearOperatorTridiag([above, main, below], "sequence")
    return operator, np.diag(main) + np.diag(above, 1) + np.diag(below, -1)


@case
def toeplitz(dtype):
    col, row = numbers(2, 4, dtype=dtype), numbers(2, 4, dtype=dtype)
    col[:, 0] = row[:, 0] = 6
    matrix = np.empty((2, 4, 4), dtype)
    for i in range(4):
        for j in range(4):
            matrix[:, i, j] = col[:, i - j] if i >= j else row[:, j - i]
    return LA.LinearOperatorToeplitz(col, row), matrix


def circulant_case(operator_class, *shape):
    def make(dtype):
        kernel = numbers(*shape, dtype=dtype)
        kernel.ravel()[0] += 8
        operator = operator_class(np.fft.fftn(kernel).astype(np.complex128), dtype)
        return operator, circulant(kernel)

    return make


CASES["circulant"] = circulant_case(LA.LinearOperatorCirculant, 4)
CASES["circulant_2d"] = circulant_case(LA.LinearOperatorCirculant2D, 2, 3)
CASES["circulant_3d"] = circulant_case(LA.LinearOperatorCirculant3D, 2, 2, 3)

all_cases = pytest.mark.parametrize("make", CASES.values(), ids=list(CASES))
dtypes = pytest.mark.parametrize("dtype", [np.float64, np.complex128], ids=["real", "complex"])


def close(actual, expected):
    np.testing.assert_allclose(np.asarray(actual), expected, 1e-9, 1e-9)


def conjugate_transpose(x):
    return np.conj(np.swapaxes(x, -1, -2))


@all_cases
@dtypes
def test_shape_and_entries(make, dtype):
    operator, matrix = make(dtype)
    assert operator.shape == matrix.shape
    assert operator.dtype == dtype
    assert operator.batch_shape == matrix.shape[:-2]
    assert operator.domain_dimension == matrix.shape[-1]
    close(operator.to_dense(), matrix)
    close(operator.diag_part(), np.diagonal(matrix, axis1=-2, axis2=-1))
    close(operator.trace(), np.trace(matrix, axis1=-2, axis2=-1))
    x = numbers(*matrix.shape[-2:], dtype=dtype)
    close(operator.add_to_tensor(x), matrix + x)


@all_cases
@dtypes
@pytest.mark.parametrize("adjoint", [False, True])
@pytest.mark.parametrize("adjoint_arg", [False, True])
def test_products_and_equations(make, dtype, adjoint, adjoint_arg):
    operator, matrix = make(dtype)
    n = matrix.shape[-1]
    a = conjugate_transpose(matrix) if adjoint else matrix
    for batch in ((), (2,), (3, 1)):
        x = numbers(*batch, n, 2, dtype=dtype)
        given = conjugate_transpose(x) if adjoint_arg else x
        close(operator.matmul(given, adjoint=adjoint, adjoint_arg=adjoint_arg), a @ x)
        solution = operator.solve(given, adjoint=adjoint, adjoint_arg=adjoint_arg)
        close(a @ np.asarray(solution), np.broadcast_to(x, (a @ x).shape))
    x = numbers(n, dtype=dtype)
    close(operator.matvec(x, adjoint=adjoint), a @ x)
    close(a @ np.asarray(operator.solvevec(x, adjoint=adjoint))[..., None],
          np.broadcast_to(x[:, None], (*matrix.shape[:-2], n, 1)))  # fmt: skip


@all_cases
@dtypes
def test_determinants(make, dtype):
    operator, matrix = make(dtype)
    close(operator.determinant(), np.linalg.det(matrix))
    close(operator.log_abs_determinant(), np.log(np.abs(np.linalg.det(matrix))))
    close(operator.cond(), np.linalg.cond(matrix))


@all_cases
@dtypes
def test_adjoint_and_inverse(make, dtype):
    operator, matrix = make(dtype)
    close(operator.adjoint().to_dense(), conjugate_transpose(matrix))
    close(operator.H.to_dense(), conjugate_transpose(matrix))
    close(operator.inverse().to_dense(), np.linalg.inv(matrix))
    close(operator.adjoint().inverse().to_dense(), np.linalg.inv(conjugate_transpose(matrix)))
    operator.assert_non_singular()


@all_cases
def test_products_of_operators(make):
    operator, matrix = make(np.float64)
    n = matrix.shape[-1]
    others = {
        "full": full(n, n),
        "diagonal": (LA.LinearOperatorDiag(np.arange(1.0, n + 1)), np.diag(np.arange(1.0, n + 1))),
        "identity": (LA.LinearOperatorIdentity(n, dtype=tf.float64), np.eye(n)),
        "zeros": (LA.LinearOperatorZeros(n, dtype=tf.float64), np.zeros((n, n))),
        "itself": (operator, matrix),
    }
    for other, other_matrix in others.values():
        close((operator @ other).to_dense(), matrix @ other_matrix)
        close((other @ operator).to_dense(), other_matrix @ matrix)
        close(operator.matmul(other, adjoint=True, adjoint_arg=True).to_dense(),
              conjugate_transpose(matrix) @ conjugate_transpose(other_matrix))  # fmt: skip
        close(operator.solve(other).to_dense(), np.linalg.solve(matrix, other_matrix + 0 * matrix))


@all_cases
def test_operators_pass_through_functions(make):
    operator, matrix = make(np.float64)
    x = numbers(matrix.shape[-1])
    traces = []

    @tf.function
    def apply(operator, x):
        traces.append(operator)
        return operator.matvec(x)

    for _ in range(3):
        close(apply(operator, x), matrix @ x)
    assert len(traces) == 1
    other, other_matrix = make(np.float64)
    close(apply(other, x), other_matrix @ x)


@all_cases
def test_gradients_flow_to_the_tensors(make):
    operator, matrix = make(np.float64)
    components = operator._components()
    floating = [c for c in components if not c.dtype.is_integer]
    x = tf.constant(numbers(matrix.shape[-1], 1))
    with tf.GradientTape() as tape:
        tape.watch([x, *floating])
        # The tensors that the operator was created from.
        loss = tf.reduce_sum(operator._with_components(iter(components)).solve(x) ** 2)
    gradients = tape.gradient(loss, [x, *floating])
    assert all(g is not None for g in gradients)
    assert all(np.isfinite(np.abs(tf.convert_to_tensor(g).numpy())).all() for g in gradients)


HERMITIAN = {
    "full": lambda a: LA.LinearOperatorFullMatrix(
        a, is_self_adjoint=True, is_positive_definite=True
    ),
    "block": lambda a: LA.LinearOperatorBlockDiag([HERMITIAN["full"](a)]),
    "kronecker": lambda a: LA.LinearOperatorKronecker([HERMITIAN["full"](a)]),
}


@dtypes
@pytest.mark.parametrize("name", HERMITIAN)
def test_cholesky_and_eigenvalues(name, dtype):
    matrix = positive_definite(3, 3, dtype=dtype)
    operator = HERMITIAN[name](matrix)
    close(operator.cholesky().to_dense(), np.linalg.cholesky(matrix))
    close(np.sort(np.real(operator.eigvals().numpy())), np.linalg.eigvalsh(matrix))
    operator.assert_positive_definite()
    operator.assert_self_adjoint()


def test_cholesky_of_diagonal_operators():
    operator = LA.LinearOperatorDiag([4.0, 9.0], is_positive_definite=True)
    assert isinstance(operator.cholesky(), LA.LinearOperatorDiag)
    np.testing.assert_array_equal(operator.cholesky().diag, [2.0, 3.0])


def test_rectangular_operators():
    matrix = numbers(2, 3)
    operator = LA.LinearOperatorFullMatrix(matrix)
    assert not operator.is_square
    x, y = numbers(3, 1), numbers(2, 1)
    close(operator.matmul(x), matrix @ x)
    close(operator.matmul(y, adjoint=True), matrix.T @ y)
    for f in (operator.determinant, operator.inverse, lambda: operator.solve(y)):
        with pytest.raises(NotImplementedError, match="square"):
            f()
    blocks = LA.LinearOperatorBlockDiag([operator, operator], is_square=None)
    close(blocks.to_dense(), block_diagonal([matrix, matrix]))
    kron = LA.LinearOperatorKronecker([operator, LA.LinearOperatorDiag(numbers(2))])
    x = numbers(6, 2)
    close(kron.matmul(x), kron.to_dense().numpy() @ x)


def test_blocks_can_be_lists():
    (a, x), (b, y) = full(2, 2), full(3, 3)
    for operator in (
        LA.LinearOperatorBlockDiag([a, b]),
        LA.LinearOperatorBlockLowerTriangular(
            [[a], [LA.LinearOperatorZeros(3, 2, dtype=tf.float64, is_square=False,
                                          is_self_adjoint=False), b]]
        ),
    ):  # fmt: skip
        u, v = numbers(2, 1), numbers(3, 1)
        first, second = operator.matmul([u, v])
        close(first, x @ u)
        close(second, y @ v)
        first, second = operator.solvevec([u[:, 0], v[:, 0]])
        close(first, np.linalg.solve(x, u[:, 0]))
        close(second, np.linalg.solve(y, v[:, 0]))


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (lambda d, _t: d @ d, LA.LinearOperatorDiag),
        (lambda d, t: d @ t, LA.LinearOperatorLowerTriangular),
        (lambda d, t: t @ d, LA.LinearOperatorLowerTriangular),
        (lambda d, _t: d.inverse(), LA.LinearOperatorDiag),
        (lambda _d, t: t @ t, LA.LinearOperatorComposition),
        (lambda _d, t: t.adjoint().adjoint(), LA.LinearOperatorLowerTriangular),
        (lambda _d, t: t.inverse().inverse(), LA.LinearOperatorLowerTriangular),
        (lambda _d, t: t @ LA.LinearOperatorIdentity(2), LA.LinearOperatorLowerTriangular),
    ],
)
def test_structure_is_kept(make, kind):
    d = LA.LinearOperatorDiag([1.0, 2.0])
    t = LA.LinearOperatorLowerTriangular([[1.0, 0.0], [2.0, 3.0]])
    assert type(make(d, t)) is kind


def test_variables_are_found_and_read_on_use():
    v = tf.Variable([1.0, 2.0])
    operator = LA.LinearOperatorDiag(v)
    product = operator @ LA.LinearOperatorFullMatrix([[1.0, 0.0], [0.0, 1.0]])
    assert len(product.trainable_variables) == 1
    v.assign([3.0, 4.0])
    np.testing.assert_array_equal(product.matvec([1.0, 1.0]), [3.0, 4.0])
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(product.matvec([1.0, 2.0]))
    np.testing.assert_array_equal(tape.gradient(y, v), [1.0, 2.0])


def test_functions_of_linalg_accept_operators():
    operator, matrix = full(3, 3)
    close(LA.det(operator), np.linalg.det(matrix))
    close(LA.trace(operator), np.trace(matrix))
    close(LA.diag_part(operator), np.diagonal(matrix))
    close(LA.inv(operator).to_dense(), np.linalg.inv(matrix))
    close(LA.adjoint(operator).to_dense(), matrix.T)
    x = numbers(3, 1)
    close(LA.solve(operator, x), np.linalg.solve(matrix, x))
    close(LA.matmul(operator, x), matrix @ x)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: LA.LinearOperatorDiag(1.0), ValueError, "rank >= 1"),
        (lambda: LA.LinearOperatorFullMatrix([1.0]), ValueError, "at least 2 dimensions"),
        (lambda: LA.LinearOperatorDiag([1.0], is_self_adjoint=False), ValueError, "self-adjoint"),
        (lambda: LA.LinearOperatorIdentity(2, is_square=False), ValueError, "always square"),
        (lambda: LA.LinearOperatorComposition([]), ValueError, "non-empty"),
        (lambda: LA.LinearOperatorComposition([1]), TypeError, "LinearOperator"),
        (lambda: LA.LinearOperatorIdentity(-1), ValueError, "non-negative"),
        (lambda: LA.LinearOperatorPermutation([0.5]), TypeError, "integer"),
        (lambda: LA.LinearOperatorCirculant([1]), TypeError, "floating"),
        (lambda: LA.LinearOperatorToeplitz([1.0], [1.0, 2.0]), ValueError, "square"),
        (lambda: LA.LinearOperatorDiag([1.0, 2.0]).matmul([[1.0]]), ValueError, "compatible"),
        (lambda: LA.LinearOperatorDiag([1.0]) @ LA.LinearOperatorIdentity(2), ValueError, "incomp"),
        (lambda: LA.LinearOperatorDiag([1.0]).cholesky(), NotImplementedError, "Cholesky"),
        (lambda: LA.LinearOperatorFullMatrix([[1.0]]).eigvals(), NotImplementedError, "adjoint"),
        (lambda: LA.LinearOperatorZeros(2).inverse(), NotImplementedError, "singular"),
        (lambda: LA.LinearOperatorZeros(2).solve([[1.0], [1.0]]), NotImplementedError, "singular"),
        (
            lambda: LA.LinearOperatorBlockLowerTriangular([[LA.LinearOperatorIdentity(2)] * 2]),
            ValueError,
            "one more",
        ),
        (
            lambda: LA.LinearOperatorDiag([0.0]).assert_non_singular(),
            tf.errors.InvalidArgumentError,
            "Singular",
        ),
        (
            lambda: LA.LinearOperatorFullMatrix([[1.0, 2.0], [2.0, 4.0]]).assert_non_singular(),
            tf.errors.InvalidArgumentError,
            "Singular",
        ),
        (
            lambda: LA.LinearOperatorFullMatrix([[1.0, 2.0], [0.0, 4.0]]).assert_self_adjoint(),
            tf.errors.InvalidArgumentError,
            "adjoint",
        ),
    ],
)
def test_errors(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_a_subclass_needs_shape_and_matmul_only():
    class Doubled(LA.LinearOperator):
        def __init__(self, size):
            super().__init__(tf.float64, parameters={"size": size})
            self._size = size

        def _shape(self):
            return tf.TensorShape([self._size, self._size])

        def _matmul(self, x, adjoint=False, adjoint_arg=False):  # noqa: ARG002
            return 2 * (LA.adjoint(x) if adjoint_arg else x)

    operator = Doubled(3)
    close(operator.to_dense(), 2 * np.eye(3))
    close(operator.determinant(), 8.0)
    close(operator.solvevec(np.ones(3)), 0.5 * np.ones(3))
    close((operator @ operator).trace(), 12.0)
