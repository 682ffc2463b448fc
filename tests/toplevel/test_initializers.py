"""Initializers at the top level."""

import numpy as np
import pytest

import retrograde as tf
from tests.namespaces.helpers import assert_raises

INITIALIZERS = {
    "zeros": tf.zeros_initializer(),
    "ones": tf.ones_initializer(),
    "constant": tf.constant_initializer(2.5),
    "normal": tf.random_normal_initializer(1.0, 2.0, seed=3),
    "uniform": tf.random_uniform_initializer(1.0, 2.0, seed=3),
}


@pytest.mark.parametrize("initializer", INITIALIZERS.values(), ids=INITIALIZERS)
def test_an_initializer_is_rebuilt_from_its_configuration(initializer):
    rebuilt = type(initializer).from_config(initializer.get_config())

    assert rebuilt.get_config() == initializer.get_config()
    np.testing.assert_array_equal(rebuilt([2, 3]), initializer([2, 3]))


@pytest.mark.parametrize("initializer", INITIALIZERS.values(), ids=INITIALIZERS)
def test_an_initializer_creates_the_initial_value_of_a_variable(initializer):
    v = tf.Variable(lambda: initializer([4, 2], tf.float64))

    assert v.shape == (4, 2)
    assert v.dtype == tf.float64


@pytest.mark.parametrize(
    "initializer_class",
    [tf.random_normal_initializer, tf.random_uniform_initializer],
    ids=["normal", "uniform"],
)
def test_with_a_seed_every_call_returns_the_same_numbers(initializer_class):
    seeded, unseeded = initializer_class(seed=5), initializer_class()

    np.testing.assert_array_equal(seeded([9]), seeded([9]))
    np.testing.assert_array_equal(seeded([9]), initializer_class(seed=5)([9]))
    assert (seeded([9]).numpy() != initializer_class(seed=6)([9]).numpy()).any()
    assert (unseeded([9]).numpy() != unseeded([9]).numpy()).any()


def test_random_numbers_have_the_requested_parameters():
    normal = tf.random_normal_initializer(3.0, 0.5, seed=1)([4000], tf.float64).numpy()
    uniform = tf.random_uniform_initializer(3.0, 4.0, seed=1)([4000], tf.float64).numpy()
    integers = tf.random_uniform_initializer(-1, 3, seed=1)([4000], tf.int32).numpy()

    assert abs(normal.mean() - 3) < 0.04
    assert abs(normal.std() - 0.5) < 0.03
    assert uniform.min() >= 3
    assert uniform.max() < 4
    assert abs(uniform.mean() - 3.5) < 0.02
    assert set(integers.tolist()) == {-1, 0, 1, 2}


ERRORS = {
    "strings": (
        lambda: tf.zeros_initializer()([2], tf.string),
        ValueError,
        "initializer: expected a numeric or bool dtype. Received: string.",
    ),
    "normal integers": (
        lambda: tf.random_normal_initializer()([2], tf.int32),
        ValueError,
        "initializer: expected a floating point dtype. Received: int32.",
    ),
    "uniform bools": (
        lambda: tf.random_uniform_initializer()([2], tf.bool),
        ValueError,
        "initializer: expected a floating point or integer dtype. Received: bool.",
    ),
    "another keyword": (
        lambda: tf.ones_initializer()([2], foo=1),
        TypeError,
        "initializer: unexpected keyword argument 'foo'. Expected one of 'partition_shape', "
        "'partition_offset'.",
    ),
    "a part of a constant": (
        lambda: tf.constant_initializer(1)([2, 2], partition_shape=(1, 2)),
        ValueError,
        "constant_initializer: partitioned variables require support_partition=True. Received: "
        "partition_shape.",
    ),
    "a tensor": (
        lambda: tf.constant_initializer(tf.constant(1.0)),
        TypeError,
        "constant_initializer: expected a Python scalar, a list or tuple of values, or an array. "
        "Received: a Tensor.",
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    assert_raises(*ERRORS[name])
