"""tf.vectorized_map: results match a loop."""

import logging

import numpy as np
import pytest

import retrograde as tf
from retrograde.core.batching import CannotBatch
from retrograde.values import errors
from tests.namespaces.helpers import assert_raises
from tests.ops.cases import CASES
from tests.ops.harness import call, quiet

RNG = np.random.default_rng(5)
ROWS = RNG.uniform(0.2, 0.9, (4, 3))
SQUARES = RNG.uniform(0.2, 0.9, (4, 3, 3))


def by_loop(fn, elems):
    """Applies `fn` to each element in a loop and stacks the results."""
    leaves = tf.nest.flatten(elems)
    results = []
    for i in range(leaves[0].shape[0]):
        results.append(fn(tf.nest.pack_sequence_as(elems, [x[i] for x in leaves])))
    return tf.nest.map_structure(lambda *parts: tf.stack(parts), *results)


def gradient_within(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(tf.sin(x) * x[0])
    return tape.gradient(y, x)


def jacobian_within(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.sin(x) * x[0]
    return tape.jacobian(y, x)


def forward_within(x):
    with tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)) as forward:
        y = tf.exp(x) * x
    return forward.jvp(y)


@tf.custom_gradient
def seven(x):
    return x * x, lambda upstream: upstream * 7.0 * x


W = tf.Variable(RNG.uniform(-1, 1, (3, 3)))

FUNCTIONS = {
    "elementwise": (lambda x: tf.sin(x) + x[0], ROWS),
    "matmul": (lambda x: x @ W @ x, SQUARES),
    "matvec": (lambda x: tf.linalg.matvec(W, x), ROWS),
    "reduction": (lambda x: tf.reduce_max(x, 0) - tf.reduce_mean(x), SQUARES),
    "scalar_result": (tf.reduce_sum, ROWS),
    "slices": (lambda x: tf.concat([x[1:], x[:1] * 2.0], 0), ROWS),
    "gather": (lambda x: tf.gather(W, tf.argmax(x)) * x, ROWS),
    "sort": (lambda x: tf.sort(x) * tf.cast(tf.argsort(x), x.dtype), ROWS),
    "where": (lambda x: tf.where(x > 0.5, x, W[0]), ROWS),
    "softmax": (lambda x: tf.nn.softmax(x @ W), SQUARES),
    "constant": (lambda _: W * 2.0, ROWS),
    "gradient": (gradient_within, ROWS),
    "jacobian": (jacobian_within, ROWS),
    "forward": (forward_within, ROWS),
    "custom_gradient": (lambda x: seven(x) * W[0], ROWS),
    "recomputed": (lambda x: tf.recompute_grad(lambda x: tf.sin(x @ W))(x), SQUARES),
    "nested": (lambda x: tf.vectorized_map(lambda y: tf.reduce_sum(x * y), ROWS), ROWS),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_and_gradients_match_a_loop(name):
    fn, elems = FUNCTIONS[name]
    x = tf.constant(elems)
    results = []
    for run in (lambda: tf.vectorized_map(fn, x, fallback_to_while_loop=False),
                lambda: by_loop(fn, x)):  # fmt: skip
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = run()
        weights = tf.constant(np.cos(np.arange(y.numpy().size)).reshape(y.shape))
        gradients = tape.gradient(y, [x, W], weights, unconnected_gradients="zero")
        results.append([y.numpy(), *(tf.convert_to_tensor(g).numpy() for g in gradients)])

    for actual, expected in zip(*results, strict=True):
        assert actual.dtype == expected.dtype
        np.testing.assert_allclose(actual, expected, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_are_the_same_without_a_recorder(name):
    fn, elems = FUNCTIONS[name]

    actual = tf.vectorized_map(fn, tf.constant(elems), fallback_to_while_loop=False)

    np.testing.assert_allclose(actual, by_loop(fn, tf.constant(elems)), rtol=1e-12, atol=1e-14)


ONE_PER_PRIMITIVE = {case.primitive.name: case for case in reversed(CASES)}


@pytest.mark.parametrize("name", ONE_PER_PRIMITIVE)
@quiet
def test_every_primitive_runs_on_a_batch(name):
    case = ONE_PER_PRIMITIVE[name]
    batch = [tf.Tensor(np.stack([x, x])) for x in case.inputs]

    actual = tf.vectorized_map(lambda xs: call(case, xs), batch, fallback_to_while_loop=False)

    for a, e in zip(actual, call(case, [tf.Tensor(x) for x in case.inputs]), strict=True):
        assert a.dtype == e.dtype
        for example in a._array:
            np.testing.assert_allclose(example, e._array, rtol=1e-12, atol=1e-14)


def test_inputs_and_outputs_may_be_structures():
    elems = {"a": tf.constant(ROWS), "b": [tf.constant(SQUARES)]}

    def fn(e):
        return e["a"] * 2.0, {"product": tf.linalg.matvec(e["b"][0], e["a"]), "one": 1.0}

    result = tf.vectorized_map(fn, elems)

    np.testing.assert_array_equal(result[0], ROWS * 2)
    np.testing.assert_allclose(result[1]["product"], np.einsum("nij,nj->ni", SQUARES, ROWS))
    assert result[1]["one"].numpy().tolist() == [1.0] * 4


def test_a_first_axis_of_one_broadcasts():
    result = tf.vectorized_map(lambda e: e[0] + e[1], (tf.constant([1.0, 2.0]), tf.ones([1])))

    assert result.numpy().tolist() == [2.0, 3.0]


def test_an_empty_batch_gives_an_empty_result():
    assert tf.vectorized_map(lambda x: x * 2.0, tf.ones([0, 2])).shape == (0, 2)


RANDOM = {
    "normal": lambda: tf.random.normal([2], 3.0),
    "uniform": lambda: tf.random.uniform([2]),
    "truncated_normal": lambda: tf.random.truncated_normal([2]),
    "scalar": lambda: tf.random.uniform([], 2.0, 3.0),
    "generator": lambda: tf.random.get_global_generator().normal([2]),
    "dropout": lambda: tf.nn.dropout(tf.ones([30]), 0.5),
}


@pytest.mark.parametrize("name", RANDOM)
def test_random_numbers_differ_from_example_to_example(name):
    def fn(x):
        return RANDOM[name]() + x

    result = tf.vectorized_map(fn, tf.zeros([5]), fallback_to_while_loop=False).numpy()

    assert len(np.unique(result.reshape(5, -1), axis=0)) == 5


def test_random_numbers_differ_in_nested_maps():
    def inner(x):
        return tf.vectorized_map(lambda _: tf.random.normal([]), tf.zeros([3])) + x

    result = tf.vectorized_map(inner, tf.zeros([4]), fallback_to_while_loop=False)

    assert len(np.unique(result)) == 12


def test_stateless_random_numbers_are_the_same_for_all_examples():
    result = tf.vectorized_map(lambda x: tf.random.stateless_normal([2], [1, 2]) + x, tf.zeros([3]))

    assert len(np.unique(result, axis=0)) == 1


def test_a_seed_reproduces_random_numbers():
    def run():
        tf.random.set_seed(3)
        return tf.vectorized_map(lambda x: tf.random.normal([2]) + x, tf.zeros([3])).numpy()

    np.testing.assert_array_equal(run(), run())


def test_other_random_numbers_are_drawn_in_a_loop(caplog):
    with caplog.at_level(logging.WARNING, "retrograde"):
        result = tf.vectorized_map(lambda x: tf.random.gamma([], 2.0) + x, tf.zeros([4]))

    assert len(np.unique(result)) == 4
    assert caplog.messages == [
        "vectorized_map falls back to a loop, which is slower: These random numbers are drawn one "
        "example at a time."
    ]


def test_none_stays_none():
    assert tf.vectorized_map(lambda _: None, tf.ones([2])) is None


def sign_by_python(x):
    return x if x[0] > 0.5 else -x


def test_python_control_flow_falls_back_to_a_loop_with_a_warning(caplog):
    with caplog.at_level(logging.WARNING, "retrograde"):
        result = tf.vectorized_map(sign_by_python, tf.constant(ROWS))

    np.testing.assert_array_equal(result, np.where(ROWS[:, :1] > 0.5, ROWS, -ROWS))
    assert caplog.messages == [
        "vectorized_map falls back to a loop, which is slower: A value of shape () differs "
        "between the examples of a batch, so it cannot be converted to Python or NumPy. Use tf "
        "operations, or tf.map_fn."
    ]


def test_the_warning_can_be_disabled(caplog):
    with caplog.at_level(logging.WARNING, "retrograde"):
        tf.vectorized_map(sign_by_python, tf.constant(ROWS), warn=False)

    assert caplog.messages == []


ESCAPES = {
    "bool": lambda x: x if x[0] > 0 else -x,
    "float": lambda x: float(x[0]) * x,
    "int": lambda x: x[int(x[0])],
    "numpy": lambda x: x.numpy() * 2,
    "array": lambda x: np.asarray(x) * 2,
    "numpy_function": lambda x: np.sum(x),
    "format": lambda x: f"{x[0]:.2f}",
    "complex": lambda x: complex(x[0]),
}


@pytest.mark.parametrize("convert", ESCAPES)
def test_values_of_one_example_cannot_be_converted_to_python(convert):
    with pytest.raises(CannotBatch):
        tf.vectorized_map(ESCAPES[convert], tf.constant(ROWS), fallback_to_while_loop=False)


def test_batched_values_cannot_be_assigned_to_a_variable():
    v = tf.Variable(0.0, dtype=tf.float64)

    def total(x):
        v.assign_add(x[0])
        return v + 0.0

    result = tf.vectorized_map(total, tf.constant(ROWS), warn=False)

    np.testing.assert_allclose(result, np.cumsum(ROWS[:, 0]))


def test_errors_in_the_function_report_the_shape_of_one_example():
    with pytest.raises(errors.InvalidArgumentError, match=r"incompatible shapes \(3,\) and \(2,\)"):
        tf.vectorized_map(lambda x: x + tf.ones([2], x.dtype), tf.constant(ROWS))


def test_errors():
    assert_raises(
        lambda: tf.vectorized_map(lambda x: x, tf.constant(3.0)),
        ValueError,
        "vectorized_map: every element of `elems` must have rank >= 1. Received: shapes [()].",
    )
    assert_raises(
        lambda: tf.vectorized_map(lambda x: x, [tf.ones([2]), tf.ones([3])]),
        errors.InvalidArgumentError,
        "vectorized_map: the first axes of `elems` differ in size. Received: shapes [(2,), (3,)]. "
        "Expected equal sizes, or 1.",
    )
