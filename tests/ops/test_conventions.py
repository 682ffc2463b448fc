"""TensorFlow's conventions at non-differentiable points, ties, empty axes, NaN and integers.

Also tests NaN-safe zero cotangents.
"""

import math

import numpy as np
import pytest

import retrograde as tf

INF, NAN = math.inf, math.nan


def value_and_gradients(f, *values):
    """Returns `f(*values)` and its gradients as arrays; `None` stays `None`."""
    xs = [tf.constant(value, tf.float64) for value in values]
    with tf.GradientTape() as tape:
        tape.watch(xs)
        y = f(*xs)
    gradients = tape.gradient(y, xs)
    return y.numpy(), [g if g is None else tf.convert_to_tensor(g).numpy() for g in gradients]


def first_and_second(f, x):
    """Returns the first and second derivatives of an elementwise `f` at the elements of `x`."""
    x = tf.constant(x, tf.float64)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = f(x)
        first = inner.gradient(y, x)
    return first.numpy(), outer.gradient(first, x).numpy()


# Each function of one input is listed with inputs, values and derivatives.

SELU_DERIVATIVE = 1.0507009873554805
ONE_INPUT = {
    "abs": (tf.abs, [-2.0, -0.0, 0.0, 3.0, NAN], [2.0, 0.0, 0.0, 3.0, NAN], [-1, 0, 0, 1, NAN]),
    "sign": (tf.sign, [-2.0, 0.0, NAN], [-1.0, 0.0, NAN], [0, 0, 0]),
    "relu": (tf.nn.relu, [-1.0, 0.0, 2.0, NAN, INF], [0.0, 0.0, 2.0, NAN, INF], [0, 0, 1, 0, 1]),
    "relu6": (tf.nn.relu6, [0.0, 1.0, 6.0, 7.0, NAN], [0.0, 1.0, 6.0, 6.0, NAN], [0, 1, 0, 0, 0]),
    "leaky_relu": (
        lambda x: tf.nn.leaky_relu(x, 0.25),
        [-4.0, 0.0, 4.0, NAN],
        [-1.0, 0.0, 4.0, NAN],
        [0.25, 0.25, 1, 0.25],
    ),
    "elu": (tf.nn.elu, [0.0, -0.0, INF, -INF, NAN], [0.0, 0.0, INF, -1.0, NAN], [1, 1, 1, 0, 1]),
    "selu": (tf.nn.selu, [0.0, NAN], [0.0, NAN], [SELU_DERIVATIVE, SELU_DERIVATIVE]),
    "softplus": (
        tf.nn.softplus,
        [INF, -INF, 1000.0, -1000.0, NAN],
        [INF, 0.0, 1000.0, 0.0, NAN],
        [1, 0, 1, 0, NAN],
    ),
    "sigmoid": (tf.sigmoid, [-1000.0, 0.0, 1000.0, NAN], [0.0, 0.5, 1.0, NAN], [0, 0.25, 0, NAN]),
    "tanh": (tf.tanh, [-INF, 0.0, 1000.0], [-1.0, 0.0, 1.0], [0, 1, 0]),
    "sqrt": (tf.sqrt, [0.0, -0.0, 4.0, -1.0], [0.0, -0.0, 2.0, NAN], [INF, -INF, 0.25, NAN]),
    "rsqrt": (tf.math.rsqrt, [0.0, 4.0], [INF, 0.5], [-INF, -0.0625]),
    "reciprocal": (tf.math.reciprocal, [0.0, 4.0], [INF, 0.25], [-INF, -0.0625]),
    "log": (tf.math.log, [0.0, 2.0, -2.0], [-INF, math.log(2), NAN], [INF, 0.5, -0.5]),
    "log1p": (tf.math.log1p, [-1.0, 0.0, -2.0], [-INF, 0.0, NAN], [INF, 1, -1]),
    "exp": (tf.exp, [1e4, -1e4], [INF, 0.0], [INF, 0]),
    "expm1": (tf.math.expm1, [1e4, -1e4], [INF, -1.0], [INF, 0]),
    "asin": (tf.asin, [0.0, 1.0, 2.0], [0.0, math.pi / 2, NAN], [1, INF, NAN]),
    "acos": (tf.acos, [0.0, 1.0], [math.pi / 2, 0.0], [-1, -INF]),
    "acosh": (tf.acosh, [1.0, 0.5], [0.0, NAN], [INF, NAN]),
    "atanh": (tf.atanh, [0.0, 1.0], [0.0, INF], [1, INF]),
    "clip": (
        lambda x: tf.clip_by_value(x, 0.0, 1.0),
        [-1.0, 0.0, 0.5, 1.0, 2.0, NAN],
        [0.0, 0.0, 0.5, 1.0, 1.0, NAN],
        [0, 1, 1, 1, 0, 0],
    ),
}


@pytest.mark.parametrize(("f", "x", "value", "derivative"), ONE_INPUT.values(), ids=ONE_INPUT)
def test_edge_cases_of_functions_of_one_input(f, x, value, derivative):
    y, (gradient,) = value_and_gradients(f, x)

    np.testing.assert_allclose(y, value, rtol=1e-15)
    np.testing.assert_allclose(gradient, derivative, rtol=1e-15)


@pytest.mark.parametrize("f", [tf.floor, tf.math.ceil, tf.round, tf.math.rint, tf.stop_gradient])
def test_rounding_is_unconnected_and_sign_is_not(f):
    assert value_and_gradients(f, [1.5])[1] == [None]
    assert value_and_gradients(tf.sign, [1.5])[1] == [np.zeros(1)]


def test_rounding_is_half_to_even():
    y, _ = value_and_gradients(tf.round, [0.5, 1.5, 2.5, -0.5])

    np.testing.assert_array_equal(y, [0.0, 2.0, 2.0, -0.0])


# Functions of two inputs

TWO_INPUTS = {
    # At a tie the first input receives the gradient; with NaN, the second does.
    "maximum": (
        tf.maximum,
        [1.0, NAN, 1.0],
        [1.0, 1.0, NAN],
        [1.0, NAN, NAN],
        [1, 0, 0],
        [0, 1, 1],
    ),
    "minimum": (
        tf.minimum,
        [1.0, NAN, 1.0],
        [1.0, 1.0, NAN],
        [1.0, NAN, NAN],
        [1, 0, 0],
        [0, 1, 1],
    ),
    "divide": (tf.divide, [1.0, 0.0], [0.0, 0.0], [INF, NAN], [INF, INF], [-INF, NAN]),
    "divide_no_nan": (
        tf.math.divide_no_nan,
        [1.0, 3.0],
        [0.0, 2.0],
        [0.0, 1.5],
        [0, 0.5],
        [0, -0.75],
    ),
    "mod": (
        lambda x, y: x % y,
        [7.0, -7.0, 7.0, 1.0, -1.0],
        [2.0, 2.0, -2.0, 0.0, INF],
        [1.0, 1.0, -1.0, NAN, INF],
        [1, 1, 1, 1, 1],
        [-3, 4, 4, -INF, 0],
    ),
    "power": (
        tf.pow,
        [0.0, 0.0, -2.0, -2.0, 2.0, 0.0],
        [0.0, 2.0, 2.0, 3.0, 0.0, -1.0],
        [1.0, 0.0, 4.0, -8.0, 1.0, INF],
        [NAN, 0, -4, 12, 0, -INF],
        [0, 0, 0, 0, math.log(2), NAN],
    ),
    "atan2": (tf.atan2, [0.0, 1.0], [0.0, 0.0], [0.0, math.pi / 2], [NAN, 0], [NAN, -1]),
    "xlogy": (
        tf.math.xlogy,
        [0.0, 2.0],
        [0.0, 3.0],
        [0.0, 2 * math.log(3)],
        [0, math.log(3)],
        [0, 2 / 3],
    ),
}


@pytest.mark.parametrize(
    ("f", "x1", "x2", "value", "g1", "g2"), TWO_INPUTS.values(), ids=TWO_INPUTS
)
def test_edge_cases_of_functions_of_two_inputs(f, x1, x2, value, g1, g2):
    y, gradients = value_and_gradients(f, x1, x2)

    np.testing.assert_allclose(y, value, rtol=1e-15)
    np.testing.assert_allclose(gradients, [g1, g2], rtol=1e-15)


def test_maximum_with_zero_depends_on_the_order_of_its_arguments():
    assert value_and_gradients(lambda x: tf.maximum(x, 0.0), 0.0)[1] == [1.0]
    assert value_and_gradients(lambda x: tf.maximum(0.0, x), 0.0)[1] == [0.0]


def test_an_input_used_twice_receives_both_gradients():
    assert value_and_gradients(lambda x: tf.maximum(x, x), 2.0)[1] == [1.0]
    assert value_and_gradients(lambda x: x - x, 2.0)[1] == [0.0]


@pytest.mark.parametrize("divide", [lambda x, y: x // y, tf.truncatediv])
def test_integer_valued_division_is_unconnected(divide):
    assert value_and_gradients(divide, [7.0, -7.0], [2.0, 2.0])[1] == [None, None]


# Reductions

ROWS = [[3.0, 1.0, 3.0], [2.0, NAN, 0.0]]


@pytest.mark.parametrize(
    ("reduce", "x", "value", "gradient"),
    [
        (tf.reduce_max, [3.0, 1.0, 3.0], 3.0, [0.5, 0, 0.5]),
        (tf.reduce_min, [1.0, 1.0, 1.0, 2.0], 1.0, [1 / 3, 1 / 3, 1 / 3, 0]),
        (lambda x: tf.reduce_max(x, axis=1), ROWS, [3.0, NAN], [[0.5, 0, 0.5], [NAN] * 3]),
        (lambda x: tf.reduce_max(x, axis=[]), [1.0, 2.0], [1.0, 2.0], [1, 1]),
        (tf.reduce_prod, [2.0, 0.0, 3.0], 0.0, [0, 6, 0]),
        (tf.reduce_prod, [0.0, 0.0, 3.0], 0.0, [0, 0, 0]),
        (
            lambda x: tf.reduce_prod(x, axis=0),
            [[2.0, 0.0], [0.0, 5.0]],
            [0.0, 0.0],
            [[0, 5], [2, 0]],
        ),
        (tf.reduce_logsumexp, [0.0, -INF], 0.0, [1, 0]),
        (tf.reduce_logsumexp, [-INF, -INF], -INF, [NAN, NAN]),
        (tf.reduce_logsumexp, [INF, 0.0], INF, [NAN, 0]),
        (tf.reduce_logsumexp, [1000.0, 1000.0], 1000 + math.log(2), [0.5, 0.5]),
        (lambda x: tf.nn.softmax(x)[0], [0.0, -INF], 1.0, [0, 0]),
        (lambda x: tf.nn.softmax(x), [-INF, -INF], [NAN, NAN], [NAN, NAN]),
        (lambda x: tf.nn.log_softmax(x)[0], [0.0, -INF], 0.0, [0, 0]),
    ],
)
def test_ties_zeros_and_infinities_in_reductions(reduce, x, value, gradient):
    y, (g,) = value_and_gradients(reduce, x)

    np.testing.assert_allclose(y, value, rtol=1e-15)
    np.testing.assert_allclose(g, gradient, rtol=1e-15, atol=1e-15)


@pytest.mark.parametrize(
    ("reduce", "empty_result"),
    [
        (tf.reduce_sum, 0.0),
        (tf.reduce_prod, 1.0),
        (tf.reduce_max, -INF),
        (tf.reduce_min, INF),
        (tf.reduce_mean, NAN),
        (tf.reduce_logsumexp, -INF),
    ],
)
def test_empty_reductions(reduce, empty_result):
    y, (g,) = value_and_gradients(lambda x: reduce(x, axis=1), np.zeros((2, 0)))

    np.testing.assert_array_equal(y, [empty_result] * 2)
    assert g.shape == (2, 0)


def test_empty_integer_extremes_are_the_limits_of_the_dtype():
    empty = tf.zeros([0], tf.int32)

    assert tf.reduce_max(empty).numpy() == -(2**31)
    assert tf.reduce_min(empty).numpy() == 2**31 - 1
    assert tf.reduce_max(tf.zeros([0], tf.uint8)).numpy() == 0


def test_argmax_returns_the_first_of_equal_elements_and_ignores_nan():
    assert tf.argmax([1, 3, 3]).numpy() == 1
    assert tf.argmin([2, 1, 1]).numpy() == 1
    assert tf.argmax([NAN, 1.0, 2.0]).numpy() == 2
    assert tf.argmin([1.0, NAN, 0.0]).numpy() == 2
    assert tf.argmax([NAN, NAN]).numpy() == 0
    np.testing.assert_array_equal(tf.argmax([[NAN, 1.0], [2.0, NAN]], axis=1), [1, 0])


def test_argmax_of_an_empty_axis_raises():
    with pytest.raises(tf.errors.InvalidArgumentError, match="reduction axis 0 is empty"):
        tf.argmax(tf.zeros([0, 3]))


# Integers


def test_mean_of_integers_rounds_towards_zero():
    assert tf.reduce_mean(tf.constant([3, 4])).numpy() == 3
    assert tf.reduce_mean(tf.constant([-3, -4])).numpy() == -3


@pytest.mark.parametrize(
    "divide", [lambda x, y: x // y, lambda x, y: x % y, tf.truncatediv, tf.truncatemod]
)
def test_integer_division_by_zero_raises(divide):
    with pytest.raises(tf.errors.InvalidArgumentError, match="Integer division by zero"):
        divide(tf.constant([7, 8]), tf.constant([2, 0]))
    assert divide(tf.zeros([0, 2], tf.int32), tf.constant([2, 0])).shape == [0, 2]


def test_floor_division_rounds_down_and_truncation_towards_zero():
    x, y = tf.constant([-7, 7, -7, 7]), tf.constant([2, -2, -2, 2])

    np.testing.assert_array_equal(x // y, [-4, -4, 3, 3])
    np.testing.assert_array_equal(x % y, [1, -1, -1, 1])
    np.testing.assert_array_equal(tf.truncatediv(x, y), [-3, -3, 3, 3])
    np.testing.assert_array_equal(tf.truncatemod(x, y), [-1, 1, -1, 1])


def test_negative_powers_of_integers_raise():
    with pytest.raises(tf.errors.InvalidArgumentError, match="negative integer powers"):
        tf.constant([2]) ** tf.constant([-1])


def test_casting_floats_to_integers_truncates_and_wraps():
    x = tf.constant([300.75, -1.5, NAN])

    np.testing.assert_array_equal(tf.cast(x, tf.int32), [300, -1, -(2**31)])
    np.testing.assert_array_equal(tf.cast(x, tf.uint8), [44, 255, 0])
    np.testing.assert_array_equal(tf.cast(x, tf.int8), [44, -1, 0])
    np.testing.assert_array_equal(tf.cast(x, tf.bool), [True, True, True])


def test_integers_have_no_gradient():
    x = tf.constant([1.5, 2.5])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.cast(tf.cast(x, tf.int32), tf.float32) * 2.0

    assert tape.gradient(y, x) is None


@pytest.mark.parametrize("indices", [[2], [-1]])
def test_gather_with_indices_out_of_range_raises(indices):
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"is not in \[0, 2\)"):
        tf.gather([1.0, 2.0], indices)


def test_one_hot_of_an_index_out_of_range_is_zero():
    np.testing.assert_array_equal(tf.one_hot([-1, 1, 2], 2), [[0, 0], [0, 1], [0, 0]])


def test_one_hot_requires_scalar_values():
    message = r"^one_hot: on_value and off_value must be scalars. Received: \(\) and \(1, 2\).$"
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        tf.one_hot([0, 1], 2, on_value=1.0, off_value=[[0.0, 1.0]])


# Complex numbers: the gradient of a real L with respect to z = x + iy is dL/dx + i dL/dy


@pytest.mark.parametrize(
    ("f", "z", "gradient"),
    [
        (tf.abs, [0j, 3 + 4j], [0, 0.6 + 0.8j]),
        (tf.math.real, [1 + 2j], [1]),
        (tf.math.imag, [1 + 2j], [1j]),
        (tf.sign, [0j, 3 + 4j], [0, 0.128 - 0.096j]),
        (tf.square, [1 + 2j, 3 - 1j], [2 - 4j, 6 + 2j]),
        (lambda z: tf.abs(z) ** 2, [1 + 2j], [2 + 4j]),
        (tf.reduce_prod, [1 + 2j, 3 - 1j, 0.5j], [0.5 - 1.5j, -1 - 0.5j, 5 - 5j]),
        (lambda z: tf.math.squared_difference(z, 1 + 0j), [1 + 2j], [4j]),
    ],
)
def test_complex_gradients(f, z, gradient):
    z = tf.constant(z, tf.complex128)
    with tf.GradientTape() as tape:
        tape.watch(z)
        y = f(z)

    np.testing.assert_allclose(tape.gradient(y, z), gradient, rtol=1e-14, atol=1e-15)


# NaN-safe zero cotangents: the branch that `where` does not select cannot produce NaN

BRANCHES = {
    "sqrt": (tf.sqrt, 0.0, lambda x: 0.5 * x**-0.5, lambda x: -0.25 * x**-1.5),
    "sqrt_of_negative": (tf.sqrt, -1.0, lambda x: 0.5 * x**-0.5, lambda x: -0.25 * x**-1.5),
    "rsqrt": (tf.math.rsqrt, 0.0, lambda x: -0.5 * x**-1.5, lambda x: 0.75 * x**-2.5),
    "log": (tf.math.log, 0.0, lambda x: 1 / x, lambda x: -1 / x**2),
    "log_of_negative": (tf.math.log, -1.0, lambda x: 1 / x, lambda x: -1 / x**2),
    "log1p": (lambda x: tf.math.log1p(x - 1), 0.0, lambda x: 1 / x, lambda x: -1 / x**2),
    "reciprocal": (tf.math.reciprocal, 0.0, lambda x: -1 / x**2, lambda x: 2 / x**3),
    "division": (lambda x: 3 / x, 0.0, lambda x: -3 / x**2, lambda x: 6 / x**3),
    "quotient": (lambda x: (x + 1) / x, 0.0, lambda x: -1 / x**2, lambda x: 2 / x**3),
    "power": (lambda x: x**0.5, 0.0, lambda x: 0.5 * x**-0.5, lambda x: -0.25 * x**-1.5),
    "negative_power": (lambda x: x**-1.0, 0.0, lambda x: -1 / x**2, lambda x: 2 / x**3),
    "power_of_itself": (
        lambda x: x**x,
        0.0,
        lambda x: x**x * (math.log(x) + 1),
        lambda x: x**x * ((math.log(x) + 1) ** 2 + 1 / x),
    ),
    "asin": (
        lambda x: tf.asin(1 - x),
        0.0,
        lambda x: -((1 - (1 - x) ** 2) ** -0.5),
        lambda x: (1 - x) * (1 - (1 - x) ** 2) ** -1.5,
    ),
    "acos": (
        lambda x: tf.acos(1 - x),
        0.0,
        lambda x: (1 - (1 - x) ** 2) ** -0.5,
        lambda x: -(1 - x) * (1 - (1 - x) ** 2) ** -1.5,
    ),
    "atanh": (
        lambda x: tf.atanh(1 - x),
        0.0,
        lambda x: -1 / (1 - (1 - x) ** 2),
        lambda x: 2 * (1 - x) / (1 - (1 - x) ** 2) ** 2,
    ),
    "acosh": (
        lambda x: tf.acosh(1 + x),
        0.0,
        lambda x: ((1 + x) ** 2 - 1) ** -0.5,
        lambda x: -(1 + x) * ((1 + x) ** 2 - 1) ** -1.5,
    ),
    "norm": (lambda x: tf.sqrt(x * x), 0.0, lambda _: 1.0, lambda _: 0.0),
    "exp": (
        lambda x: tf.exp(1 / x),
        0.0,
        lambda x: -math.exp(1 / x) / x**2,
        lambda x: math.exp(1 / x) * (1 / x**4 + 2 / x**3),
    ),
    "sin": (
        lambda x: tf.sin(1 / x),
        0.0,
        lambda x: -math.cos(1 / x) / x**2,
        lambda x: 2 * math.cos(1 / x) / x**3 - math.sin(1 / x) / x**4,
    ),
}


@pytest.mark.parametrize(
    ("f", "bad", "derivative", "second_derivative"), BRANCHES.values(), ids=BRANCHES
)
def test_the_other_branch_of_where_does_not_produce_nan(f, bad, derivative, second_derivative):
    good = 0.6
    first, second = first_and_second(lambda x: tf.where(x > 0, f(x), tf.zeros_like(x)), [bad, good])

    np.testing.assert_allclose(first, [0.0, derivative(good)], rtol=1e-12)
    np.testing.assert_allclose(second, [0.0, second_derivative(good)], rtol=1e-12, atol=1e-12)


def test_a_masked_overflow_does_not_produce_nan():
    first, second = first_and_second(
        lambda x: tf.where(x > 20, x, tf.math.log(tf.exp(x) + 1)), [0.0, 1000.0]
    )

    np.testing.assert_allclose(first, [0.5, 1.0])
    np.testing.assert_allclose(second, [0.25, 0.0], atol=1e-15)


def test_nonzero_cotangents_give_infinite_gradients():
    assert value_and_gradients(tf.sqrt, 0.0)[1] == [INF]
    assert value_and_gradients(lambda x: tf.sqrt(x) * 2, 0.0)[1] == [INF]
    assert value_and_gradients(lambda x: -tf.math.log(x), 0.0)[1] == [-INF]


@pytest.mark.parametrize("size", [3, 3000])
def test_zero_cotangents_in_small_and_large_arrays(size):
    x = np.zeros(size)
    x[1] = 4.0
    _, (g,) = value_and_gradients(lambda x: tf.where(x > 0, tf.sqrt(x), 0 * x), x)

    np.testing.assert_array_equal(g, np.where(x > 0, 0.25, 0.0))


MASKED = {
    "x log x": lambda x: tf.where(x > 0, x * tf.math.log(x), 0.0),
    "square of a quotient": lambda x: tf.where(x > 0, tf.square(1 / x), 0.0),
    "tanh of a quotient": lambda x: tf.where(x > 0, tf.tanh(1 / x), 0.0),
    "sine of a quotient": lambda x: tf.where(x > 0, tf.sin(1 / x), 0.0),
}


@pytest.mark.parametrize("f", MASKED.values(), ids=MASKED)
def test_the_other_branch_of_where_does_not_produce_nan_in_products(f):
    x = tf.Variable([0.0, 2.0], dtype=tf.float64)
    with tf.GradientTape() as tape:
        y = f(x)
    g = tape.gradient(y, x).numpy()
    step = 1e-6
    above, below = (float(f(tf.constant([2.0 + h], tf.float64))[0]) for h in (step, -step))
    np.testing.assert_allclose(g, [0.0, (above - below) / (2 * step)], rtol=1e-8)


@pytest.mark.parametrize("f", MASKED.values(), ids=MASKED)
def test_the_other_branch_of_where_does_not_produce_nan_in_second_derivatives(f):
    x = tf.Variable([0.0, 2.0], dtype=tf.float64)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = f(x)
        g = inner.gradient(y, x)
    second = outer.gradient(g, x).numpy()
    above, below = (gradient_at(f, 2.0 + h) for h in (1e-5, -1e-5))
    np.testing.assert_allclose(second, [0.0, (above - below) / 2e-5], rtol=1e-7)


def gradient_at(f, value):
    _, (g,) = value_and_gradients(f, [value])
    return g[0]


@pytest.mark.parametrize("f", [tf.tanh, tf.sigmoid, tf.square, tf.exp, tf.sin, tf.abs, tf.nn.elu])
def test_a_masked_nan_gives_a_finite_gradient(f):
    x = tf.Variable([np.nan, 0.5], dtype=tf.float64)
    with tf.GradientTape() as tape:
        y = tf.where(tf.math.is_nan(x), 0.0, f(x))
    assert np.isfinite(tape.gradient(y, x).numpy()).all()
