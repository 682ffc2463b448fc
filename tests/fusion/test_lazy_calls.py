"""Fused evaluation of deferred calls gives the results of the single calls."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import retrograde as tf
from retrograde.core import apply
from retrograde.fusion import lazy_calls
from tests.fusion.lazy_evaluation import (
    assert_same,
    eagerly,
    is_deferred,
    lazy_small_arrays,
    numbers,
)
from tests.fusion.test_output_arguments import ELEMENTWISE, inputs_of

LAZY = [
    case
    for case in ELEMENTWISE
    if case.primitive.defer is not None and all(x.dtype.kind == "f" for x in case.inputs)
]


@pytest.fixture
def lazy_evaluation():
    with lazy_small_arrays():
        yield


def test_a_chain_on_a_million_elements_is_deferred():
    x = tf.constant(numbers(1_000_000))

    def chain():
        return tf.sin(x) * tf.exp(x) + 1.0

    assert is_deferred(chain())
    assert_same(chain(), eagerly(chain))
    assert_same(chain(), eagerly(chain))  # fused, since the calls were seen before


def test_small_arrays_and_cheap_calls_on_medium_ones_are_not_deferred():
    x = tf.constant(numbers(lazy_calls.MIN_DEFERRED_SIZE))

    assert not is_deferred(tf.sin(tf.constant(numbers(1000))))
    assert not is_deferred(x + x)
    assert is_deferred(tf.sin(x) + x)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("case", LAZY, ids=lambda case: case.id)
@pytest.mark.usefixtures("lazy_evaluation")
def test_each_primitive_gives_the_same_result_when_deferred(case, dtype):
    inputs = [tf.constant(x) for x in inputs_of(case, dtype)]

    def chain():
        y = apply.apply(case.primitive, tuple([x * 1.0 for x in inputs]), case.attrs)
        return [y, y * 2.0] if y.dtype == dtype else [y]

    expected = eagerly(chain)
    for _ in range(3):
        y, *others = chain()
        assert is_deferred(y) == bool(others)
        assert_same([y, *others], expected)


@pytest.mark.parametrize("reduce", [tf.reduce_sum, tf.reduce_mean])
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.usefixtures("lazy_evaluation")
def test_full_reductions_are_deferred_and_agree_with_numpy(reduce, keepdims, dtype):
    x = tf.constant(numbers(37, 1003, dtype=dtype))

    def f():
        return reduce(tf.sin(x) * 3.0, keepdims=keepdims)

    assert is_deferred(f())
    for _ in range(3):
        assert_same(f(), eagerly(f))


@pytest.mark.usefixtures("lazy_evaluation")
def test_a_reduction_of_a_reduction():
    x = tf.constant(numbers(1_000_000))

    def mean_and_sum():
        return tf.reduce_sum(tf.reduce_mean(tf.exp(x) * x, axis=-1, keepdims=True))

    for _ in range(3):  # fused from the second time on
        assert_same(mean_and_sum(), eagerly(mean_and_sum))


def test_sums_over_some_axes_are_not_deferred():
    x = tf.constant(numbers(5, 7))

    y = tf.reduce_sum(tf.sin(x), axis=0)

    assert not is_deferred(y)
    assert_same(y, eagerly(lambda: tf.reduce_sum(tf.sin(x), axis=0)))


@pytest.mark.usefixtures("lazy_evaluation")
def test_a_deferred_value_can_be_divided_by_its_sum():
    x = tf.constant(numbers(2000))

    def f():
        s = tf.sin(x)
        return s / tf.reduce_sum(s)

    for _ in range(3):
        assert_same(f(), eagerly(f))


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
    ids=["scalar", "row", "column", "vector", "transposed", "ones", "uniform", "repeated"],
)
@pytest.mark.usefixtures("lazy_evaluation")
def test_broadcast_and_strided_operands(other):
    x = tf.constant(numbers(3, 4))

    def f():
        s = tf.sin(x)
        return [s * other, other * s, other - tf.exp(s)]

    for _ in range(3):
        assert_same(f(), eagerly(f))


@pytest.mark.usefixtures("lazy_evaluation")
def test_constants_can_change_between_evaluations():
    x = tf.constant(numbers(50))

    for factor in (2.0, 3.0, -1.0, 0.0, 1.0):
        y = tf.sin(x) * factor + tf.constant(factor)
        np.testing.assert_array_equal(y, np.sin(x.numpy()) * np.float32(factor) + factor)


@pytest.mark.usefixtures("lazy_evaluation")
def test_attributes_0_and_minus_0_are_distinguished():
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
@pytest.mark.usefixtures("lazy_evaluation")
def test_public_functions_do_not_read_deferred_values(f):
    x = tf.constant(numbers(3, 4))

    y = f(tf.sin(x))

    assert is_deferred(y)
    np.testing.assert_allclose(y, eagerly(lambda: f(tf.sin(x))), rtol=1e-6)


# Random programs

UNARY = [tf.sin, tf.tanh, tf.square, tf.negative, tf.exp, lambda x: tf.sqrt(tf.abs(x) + 0.5)]
BINARY = [tf.add, tf.subtract, tf.multiply, tf.maximum, lambda x, y: x / (tf.square(y) + 1.0)]


@st.composite
def programs(draw):
    """Draws lists of calls. Each reads values by index; the first ones are `x`, `w` and `a`."""
    calls = []
    for i in range(draw(st.integers(1, 12))):
        indices = st.integers(0, i + 2)
        if draw(st.booleans()):
            calls.append((draw(st.sampled_from(UNARY)), (draw(indices),)))
        else:
            calls.append((draw(st.sampled_from(BINARY)), (draw(indices), draw(indices))))
    return calls, draw(st.sampled_from([tf.reduce_sum, tf.reduce_mean, tf.identity]))


@settings(max_examples=150, deadline=None)
@given(programs(), st.integers(0, 100))
def test_random_programs_give_the_same_results_deferred_and_eager(program, seed):
    calls, reduce = program
    x = tf.Variable(numbers(3, 670, seed=seed))
    w = tf.constant(numbers(3, 670, seed=seed + 1))
    a = tf.Variable(0.75)

    def step():
        with tf.GradientTape() as tape:
            values = [x, w, a]
            for f, indices in calls:
                values.append(tf.clip_by_value(f(*[values[i] for i in indices]), -3.0, 3.0))
            y = reduce(values[-1])
        return [y, *tape.gradient(y, [x, a], unconnected_gradients="zero")]

    expected = eagerly(step)
    with lazy_small_arrays():
        for _ in range(2):
            assert_same(step(), expected)
