"""Compares values, dtypes and gradients with Keras on JAX, recorded in `keras_results.json`."""

import json

import pytest

import retrograde as tf
from retrograde import keras
from tests.data.keras_results import PATH, evaluate, is_close

EXPECTED = json.loads(PATH.read_text())


def value_and_gradients(f, xs):
    with tf.GradientTape() as tape:
        tape.watch(xs)
        y = f(*xs)
    return [y, *map(tf.convert_to_tensor, tape.gradient(y, xs))]


@pytest.mark.parametrize("expression", EXPECTED)
def test_result_matches_keras_on_jax(expression):
    actual = evaluate(expression, keras, value_and_gradients)

    assert is_close(actual, EXPECTED[expression]), f"{actual}, expected {EXPECTED[expression]}"
