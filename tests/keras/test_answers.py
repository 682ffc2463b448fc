"""Compares values, dtypes and gradients with Keras on JAX, recorded in `keras_answers.json`."""

import json

import pytest

import retrograde as tf
from retrograde import keras
from tests.data.keras_answers import PATH, answer, same

ANSWERS = json.loads(PATH.read_text())


def value_and_gradients(f, xs):
    with tf.GradientTape() as tape:
        tape.watch(xs)
        y = f(*xs)
    return [y, *map(tf.convert_to_tensor, tape.gradient(y, xs))]


@pytest.mark.parametrize("expression", ANSWERS)
def test_result_matches_keras_on_jax(expression):
    actual = answer(expression, keras, value_and_gradients)

    assert same(actual, ANSWERS[expression]), f"{actual}, expected {ANSWERS[expression]}"
