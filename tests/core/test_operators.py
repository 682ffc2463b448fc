"""Tests Python's operators on tensors and variables: values, dtypes, errors and gradients."""

import operator

import numpy as np
import pytest

import retrograde as tf
from retrograde.values import errors

ARITHMETIC = [
    operator.add,
    operator.sub,
    operator.mul,
    operator.truediv,
    operator.floordiv,
    operator.mod,
    operator.pow,
]
COMPARISONS = [operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne]
BITWISE = [operator.and_, operator.or_, operator.xor]

A = np.array([[3.5, 2.0], [0.5, 7.0]], np.float32)
B = np.array([[1.5, 2.0], [4.0, 0.25]], np.float32)

name = operator.attrgetter("__name__")


def assert_same(actual, expected):
    """Asserts that `actual` is a tensor with the dtype, shape and values of an array."""
    assert isinstance(actual, tf.Tensor)
    assert actual.dtype == expected.dtype
    np.testing.assert_array_equal(actual.numpy(), expected)


OPERANDS = {
    "tensors": (lambda: tf.constant(A), lambda: tf.constant(B)),
    "array on the right": (lambda: tf.constant(A), lambda: B),
    "array on the left": (lambda: A, lambda: tf.constant(B)),
    "variables": (lambda: tf.Variable(A), lambda: tf.Variable(B)),
    "variable and tensor": (lambda: tf.Variable(A), lambda: tf.constant(B)),
    "tensor and variable": (lambda: tf.constant(A), lambda: tf.Variable(B)),
    "array and variable": (lambda: A, lambda: tf.Variable(B)),
    "list on the right": (lambda: tf.constant(A), B.tolist),
    "list on the left": (A.tolist, lambda: tf.constant(B)),
    "float64 array on the left": (lambda: A.astype(np.float64), lambda: tf.constant(B)),
    "float64 array on the right": (lambda: tf.constant(A), lambda: B.astype(np.float64)),
}


@pytest.mark.parametrize("f", ARITHMETIC + COMPARISONS, ids=name)
@pytest.mark.parametrize("operands", OPERANDS.values(), ids=OPERANDS)
def test_operators_match_numpy(f, operands):
    left, right = operands

    assert_same(f(left(), right()), f(A, B))


@pytest.mark.parametrize("f", ARITHMETIC + COMPARISONS, ids=name)
@pytest.mark.parametrize(
    "number", [2, 2.0, True, np.float32(2), np.float64(2), np.int64(2)], ids=repr
)
def test_numbers_are_cast_to_the_dtype_of_the_tensor(f, number):
    for create in (tf.constant, tf.Variable):
        assert_same(f(create(A), number), f(A, np.float32(number)))
        assert_same(f(number, create(A)), f(np.float32(number), A))


@pytest.mark.parametrize("dtype", [tf.float16, tf.bfloat16, tf.float64, tf.complex64, tf.int8])
def test_results_have_the_dtype_of_the_tensor(dtype):
    x = tf.constant([1, 2], dtype)

    assert (x * 2).dtype is dtype
    assert (2 - x).dtype is dtype
    assert (x + np.array([1, 2])).dtype is dtype


@pytest.mark.parametrize("f", BITWISE, ids=name)
def test_bitwise_operators_accept_integers_and_booleans(f):
    integers, booleans = np.array([6, 3], np.int32), np.array([True, False])

    assert_same(f(tf.constant(integers), 5), f(integers, np.int32(5)))
    assert_same(f(5, tf.constant(integers)), f(np.int32(5), integers))
    assert_same(f(tf.constant(booleans), True), f(booleans, True))
    assert_same(f(True, tf.Variable(booleans)), f(booleans, True))


def test_unary_operators():
    x = np.array([-1.5, 2.0], np.float32)

    assert_same(-tf.constant(x), -x)
    assert_same(abs(tf.constant(x)), abs(x))
    assert_same(abs(tf.Variable(x)), abs(x))
    assert_same(~tf.constant([True, False]), np.array([False, True]))
    assert_same(~tf.constant([1]), np.array([-2], np.int32))
    assert_same(abs(tf.constant([3 + 4j])), np.array([5.0]))


def test_matmul():
    assert_same(tf.constant(A) @ tf.constant(B), A @ B)
    assert_same(A @ tf.constant(B), A @ B)
    assert_same(A.tolist() @ tf.Variable(B), A @ B)


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        (tf.int8, tf.float32),
        (tf.uint8, tf.float32),
        (tf.int16, tf.float32),
        (tf.uint16, tf.float32),
        (tf.int32, tf.float64),
        (tf.uint32, tf.float64),
        (tf.int64, tf.float64),
    ],
)
def test_true_division_of_integers_returns_floats(dtype, expected):
    for quotient in (tf.constant(3, dtype) / 2, tf.constant(3, dtype) / tf.constant(2, dtype)):
        assert quotient.dtype is expected
        assert float(quotient) == 1.5
    assert (1 / tf.constant(2, dtype)).dtype is expected


def test_floor_division_and_remainder_round_down_as_in_python():
    x, y = [-7, 7], [2, -2]

    assert (tf.constant(x) // tf.constant(y)).numpy().tolist() == [-4, -4]
    assert (tf.constant(x) % tf.constant(y)).numpy().tolist() == [1, -1]
    assert (tf.constant([-7.5]) // 2.0).numpy().tolist() == [-4.0]
    assert (tf.constant([-7.5]) % 2.0).numpy().tolist() == [0.5]


def test_power():
    assert int(tf.constant(2) ** 3) == 8
    assert int(2 ** tf.constant(3)) == 8
    assert float(tf.constant(2.0) ** -1) == 0.5
    assert float(tf.constant(4.0) ** 0.5) == 2.0
    with pytest.raises(errors.InvalidArgumentError):
        tf.constant(2) ** -1


def test_integers_wrap_around():
    assert int(tf.constant(2**31 - 1) + 1) == -(2**31)
    assert int(tf.constant(200, tf.uint8) + tf.constant(100, tf.uint8)) == 44
    assert int(tf.constant(1, tf.uint8) + 300) == 45


def test_floats_overflow_to_infinity_without_a_warning():
    assert float(tf.constant(3e38) * 10.0) == np.inf
    assert float(tf.constant(1.0, tf.float16) + 1e10) == np.inf
    assert float(tf.constant(1.0) / 0.0) == np.inf
    assert np.isnan(float(tf.constant(0.0) / 0.0))


# Errors


@pytest.mark.parametrize("f", ARITHMETIC + COMPARISONS, ids=name)
@pytest.mark.parametrize(
    ("x", "y"),
    [
        (tf.constant([1]), tf.constant([1.0])),
        (tf.constant([1.0]), tf.constant([1.0], tf.float64)),
        (tf.constant([1]), tf.constant([1], tf.int64)),
        (tf.constant([1.0]), tf.Variable([1])),
        (tf.Variable([1j]), tf.constant([1.0])),
    ],
    ids=["int32, float32", "float32, float64", "int32, int64", "float32, int32", "complex, float"],
)
def test_tensors_of_different_dtypes_raise(f, x, y):
    with pytest.raises(TypeError if f is operator.truediv else errors.InvalidArgumentError):
        f(x, y)


@pytest.mark.parametrize("f", ARITHMETIC + COMPARISONS, ids=name)
def test_an_integer_tensor_and_a_python_float_raise(f):
    with pytest.raises((errors.InvalidArgumentError, TypeError)):
        f(tf.constant([1, 2]), 1.5)
    with pytest.raises((errors.InvalidArgumentError, TypeError)):
        f(1.5, tf.constant([1, 2]))


@pytest.mark.parametrize(
    ("x", "y", "dtypes"),
    [
        (tf.constant([1], tf.int16), tf.constant([1], tf.int64), "int16 and int64"),
        (tf.constant([1.0]), tf.constant([1.0], tf.float64), "float32 and float64"),
        (2.5, tf.constant([1]), "float32 and int32"),
    ],
)
def test_division_of_different_dtypes_raises(x, y, dtypes):
    message = rf"^divide: `x` and `y` must have the same dtype. Received: {dtypes}. Use tf.cast"
    with pytest.raises(TypeError, match=message):
        x / y


@pytest.mark.parametrize("f", [f for f in ARITHMETIC if f is not operator.mul], ids=name)
def test_arithmetic_on_booleans_raises(f):
    with pytest.raises((errors.InvalidArgumentError, TypeError)):
        f(tf.constant([True]), 1)
    with pytest.raises((errors.InvalidArgumentError, TypeError)):
        f(tf.constant([True]), True)


@pytest.mark.parametrize("x", [tf.constant([True, False]), tf.Variable([True, False])])
def test_the_product_of_booleans_is_logical_and(x):
    for y in (x * x, x * [True, True], np.array([True, True]) * x, True * x):
        assert y.dtype == tf.bool
        assert y.numpy().tolist() == [True, False]
    with pytest.raises(errors.InvalidArgumentError, match="dtype bool is not supported"):
        tf.multiply(x, x)


@pytest.mark.parametrize("other", [None, object(), {}])
def test_operands_that_cannot_be_converted_raise(other):
    with pytest.raises((TypeError, ValueError)):
        tf.constant([1.0]) + other
    with pytest.raises((TypeError, ValueError)):
        other + tf.constant([1.0])


def test_incompatible_shapes_raise():
    with pytest.raises(errors.InvalidArgumentError, match="incompatible shapes"):
        tf.constant([1.0, 2.0]) + tf.constant([1.0, 2.0, 3.0])
    with pytest.raises(errors.InvalidArgumentError, match="incompatible shapes"):
        _ = tf.constant([1.0, 2.0]) < tf.constant([1.0, 2.0, 3.0])


@pytest.mark.parametrize("f", [operator.floordiv, operator.mod], ids=name)
def test_integer_division_by_zero_raises(f):
    with pytest.raises(errors.InvalidArgumentError, match="division by zero"):
        f(tf.constant([1, 2]), tf.constant([1, 0]))


def test_ordering_complex_numbers_raises():
    with pytest.raises(errors.InvalidArgumentError):
        _ = tf.constant(1j) < tf.constant(2j)


@pytest.mark.parametrize("f", [operator.lshift, operator.rshift, divmod], ids=name)
def test_operators_that_tensorflow_lacks_raise(f):
    with pytest.raises(TypeError, match="unsupported operand"):
        f(tf.constant([4]), tf.constant([1]))


# Equality


def test_equality_is_elementwise():
    x = tf.constant([1.0, 2.0])

    assert (x == [1.0, 3.0]).numpy().tolist() == [True, False]
    assert (x != [1.0, 3.0]).numpy().tolist() == [False, True]
    assert (x == 1).numpy().tolist() == [True, False]


def test_equality_with_none_is_false():
    for x in (tf.constant([1.0]), tf.Variable([1.0])):
        assert (x == None) is False  # noqa: E711
        assert (x != None) is True  # noqa: E711


def test_equality_of_incompatible_shapes_is_a_single_boolean():
    x, y = tf.constant([1.0, 2.0]), tf.constant([1.0, 2.0, 3.0])

    assert_same(x == y, np.bool_(False))
    assert_same(x != y, np.bool_(True))
    with pytest.raises(errors.InvalidArgumentError, match="but is a float32 tensor"):
        tf.constant([1, 2, 3]) == x  # noqa: B015


def test_equality_of_strings_and_booleans():
    assert (tf.constant(["a", "b"]) == ["a", "c"]).numpy().tolist() == [True, False]
    assert (tf.constant([True, False]) == [True, True]).numpy().tolist() == [True, False]


def test_membership_compares_values():
    assert tf.constant(1.0) in [tf.constant(2.0), tf.constant(1.0)]
    assert 2 in tf.constant([1, 2])
    assert 3 not in tf.constant([1, 2])


def test_builtins_that_use_operators():
    values = [tf.constant(2.0), tf.constant(1.0), tf.constant(3.0)]

    assert float(sum(values)) == 6.0
    assert float(max(values)) == 3.0
    assert [float(v) for v in sorted(values)] == [1.0, 2.0, 3.0]
    assert float(sum(tf.constant([1.0, 2.0]))) == 3.0


# Gradients, compared with derivatives computed by hand


@pytest.mark.parametrize(
    ("f", "expected"),
    [
        (lambda x: x + 1.0, 1.0),
        (lambda x: 1.0 - x, -1.0),
        (lambda x: 3.0 * x, 3.0),
        (lambda x: x / 4.0, 0.25),
        (lambda x: 1.0 / x, -0.25),
        (lambda x: x**3, 12.0),
        (lambda x: 2.0**x, 4.0 * np.log(2.0)),
        (lambda x: x % 1.5, 1.0),
        (lambda x: -x, -1.0),
        (lambda x: abs(-x), 1.0),
        (lambda x: np.float32(3.0) * x, 3.0),
        (lambda x: x * np.array(3.0), 3.0),
    ],
)
def test_gradients_of_operators(f, expected):
    for x in (tf.Variable(2.0), tf.constant(2.0)):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)

        np.testing.assert_allclose(tape.gradient(y, x).numpy(), expected, rtol=1e-6)


@pytest.mark.parametrize("f", [operator.floordiv, operator.lt, operator.eq], ids=name)
def test_step_functions_have_no_gradient(f):
    x = tf.Variable(2.0)

    with tf.GradientTape() as tape:
        y = tf.cast(f(x, 1.5), tf.float32)

    assert tape.gradient(y, x) is None


def test_negating_unsigned_integers_raises():
    with pytest.raises(tf.errors.InvalidArgumentError, match="negative: dtype uint8"):
        -tf.constant([1], tf.uint8)
