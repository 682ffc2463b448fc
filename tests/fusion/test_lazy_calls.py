"""Calls that waited run together: the numbers are those of the single calls."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import retrograde as tf
from retrograde.core import apply
from retrograde.fusion import lazy_calls
from tests.fusion.lazy_evaluation import assert_same, at_once, few_are_many, numbers, waits
from tests.fusion.test_output_arguments import ELEMENTWISE, inputs_of

WAITING = [
    case
    for case in ELEMENTWISE
    if case.primitive.defer is not None and all(x.dtype.kind == "f" for x in case.inputs)
]


@pytest.fixture
def soon():
    with few_are_many():
        yield


def test_a_chain_on_a_million_numbers_waits():
    x = tf.constant(numbers(1_000_000))

    def chain():
        return tf.sin(x) * tf.exp(x) + 1.0

    assert waits(chain())
    assert_same(chain(), at_once(chain))
    assert_same(chain(), at_once(chain))  # now by a program, as it was met before


def test_small_arrays_and_plain_arithmetic_on_medium_ones_do_not_wait():
    x = tf.constant(numbers(lazy_calls.LEAST))

    assert not waits(tf.sin(tf.constant(numbers(1000))))
    assert not waits(x + x)
    assert waits(tf.sin(x) + x)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("case", WAITING, ids=lambda case: case.id)
@pytest.mark.usefixtures("soon")
def test_each_primitive_gives_the_same_when_it_waited(case, dtype):
    inputs = [tf.constant(x) for x in inputs_of(case, dtype)]

    def chain():
        y = apply.apply(case.primitive, tuple([x * 1.0 for x in inputs]), case.attrs)
        return [y, y * 2.0] if y.dtype == dtype else [y]

    expected = at_once(chain)
    for _ in range(3):
        y, *others = chain()
        assert waits(y) == bool(others)
        assert_same([y, *others], expected)


@pytest.mark.parametrize("total", [tf.reduce_sum, tf.reduce_mean])
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.usefixtures("soon")
def test_totals_wait_and_are_those_of_numpy(total, keepdims, dtype):
    x = tf.constant(numbers(37, 1003, dtype=dtype))

    def f():
        return total(tf.sin(x) * 3.0, keepdims=keepdims)

    assert waits(f())
    for _ in range(3):
        assert_same(f(), at_once(f))


@pytest.mark.usefixtures("soon")
def test_a_total_of_a_total_is_computed():
    x = tf.constant(numbers(1_000_000))

    def total():
        return tf.reduce_sum(tf.reduce_mean(tf.exp(x) * x, axis=-1, keepdims=True))

    for _ in range(3):  # the second time by a program
        assert_same(total(), at_once(total))


def test_sums_over_some_axes_do_not_wait():
    x = tf.constant(numbers(5, 7))

    y = tf.reduce_sum(tf.sin(x), axis=0)

    assert not waits(y)
    assert_same(y, at_once(lambda: tf.reduce_sum(tf.sin(x), axis=0)))


@pytest.mark.usefixtures("soon")
def test_what_waits_can_be_divided_by_a_total_of_it():
    x = tf.constant(numbers(2000))

    def f():
        s = tf.sin(x)
        return s / tf.reduce_sum(s)

    for _ in range(3):
        assert_same(f(), at_once(f))


@pytest.mark.parametrize(
    "other",
    [
        tf.constant(2.0),
        tf.constant(numbers(1, 4)),
        tf.constant(numbers(3, 1)),
        tf.constant(numbers(4)),
        tf.transpose(tf.constant(numbers(4, 3))),
        tf.broadcast_to(tf.constant(1.0), [3, 4]),
        tf.broadcast_to(tf.constant(3.0), [3, 4]),
        tf.broadcast_to(tf.constant(numbers(4)), [3, 4]),
    ],
    ids=["number", "row", "column", "vector", "turned", "ones", "uniform", "repeated"],
)
@pytest.mark.usefixtures("soon")
def test_operands_of_other_forms(other):
    x = tf.constant(numbers(3, 4))

    def f():
        s = tf.sin(x)
        return [s * other, other * s, other - tf.exp(s)]

    for _ in range(3):
        assert_same(f(), at_once(f))


@pytest.mark.usefixtures("soon")
def test_constants_may_be_others_each_time():
    x = tf.constant(numbers(50))

    for factor in (2.0, 3.0, -1.0, 0.0, 1.0):
        y = tf.sin(x) * factor + tf.constant(factor)
        np.testing.assert_array_equal(y, np.sin(x.numpy()) * np.float32(factor) + factor)


@pytest.mark.usefixtures("soon")
def test_attributes_that_are_equal_but_not_the_same_are_told_apart():
    x = tf.constant(-numbers(50))

    for alpha in (0.0, 0.0, -0.0, -0.0):
        y = tf.nn.leaky_relu(tf.sin(x), alpha) * 1.0
        assert np.signbit(y.numpy()).all() == (alpha == 0 and not np.signbit(alpha))


@pytest.mark.parametrize(
    "f",
    [
        lambda x: 2 * x + 1.0,
        lambda x: 1.0 / x - x / 3,
        lambda x: x**2 - x**3.0,
        lambda x: -abs(x),
        lambda x: x * np.float32(2) + np.ones((3, 4), np.float32),
        lambda x: x * tf.Variable(tf.ones([3, 4])) - tf.Variable(2.0),
        lambda x: tf.add(tf.multiply(x, 2.0), 1),
        lambda x: tf.maximum(tf.minimum(x, 0.5), 0.1),
        lambda x: tf.clip_by_value(x, 0.1, 0.5),
        lambda x: tf.nn.relu(x) + tf.nn.silu(x),
        lambda x: tf.sigmoid(x) * tf.math.softplus(x),
        lambda x: tf.pow(x, 1.5),
        lambda x: tf.math.squared_difference(x, 0.5),
        lambda x: tf.reduce_mean(tf.square(x - 1.0)),
        lambda x: tf.reduce_sum(x),
    ],
)
@pytest.mark.usefixtures("soon")
def test_public_functions_do_not_look(f):
    x = tf.constant(numbers(3, 4))

    y = f(tf.sin(x))

    assert waits(y)
    np.testing.assert_allclose(y, at_once(lambda: f(tf.sin(x))), rtol=1e-6)


# Programs at random

UNARY = [tf.sin, tf.tanh, tf.square, tf.negative, tf.exp, lambda x: tf.sqrt(tf.abs(x) + 0.5)]
BINARY = [tf.add, tf.subtract, tf.multiply, tf.maximum, lambda x, y: x / (tf.square(y) + 1.0)]


@st.composite
def programs(draw):
    """Lists of calls; each reads values by their places, of which `x`, `w` and `a` are first."""
    calls = []
    for i in range(draw(st.integers(1, 12))):
        places = st.integers(0, i + 2)
        if draw(st.booleans()):
            calls.append((draw(st.sampled_from(UNARY)), (draw(places),)))
        else:
            calls.append((draw(st.sampled_from(BINARY)), (draw(places), draw(places))))
    return calls, draw(st.sampled_from([tf.reduce_sum, tf.reduce_mean, tf.identity]))


@settings(max_examples=150, deadline=None)
@given(programs(), st.integers(0, 100))
def test_programs_give_the_same_whether_they_wait_or_not(program, seed):
    calls, total = program
    x = tf.Variable(numbers(3, 670, seed=seed))
    w = tf.constant(numbers(3, 670, seed=seed + 1))
    a = tf.Variable(0.75)

    def step():
        with tf.GradientTape() as tape:
            values = [x, w, a]
            for f, places in calls:
                values.append(tf.clip_by_value(f(*[values[i] for i in places]), -3.0, 3.0))
            y = total(values[-1])
        return [y, *tape.gradient(y, [x, a], unconnected_gradients="zero")]

    expected = at_once(step)
    with few_are_many():
        for _ in range(2):
            assert_same(step(), expected)
