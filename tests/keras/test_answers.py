"""Values, dtypes and gradients are those of Keras on JAX, recorded in `keras_answers.json`."""

import json

import pytest

import retrograde as tf
from retrograde import keras
from tests.data.keras_answers import PATH, answer, same

ANSWERS = json.loads(PATH.read_text())


def by_tape(f, xs):
    with tf.GradientTape() as tape:
        tape.watch(xs)
        y = f(*xs)
    return [y, *map(tf.convert_to_tensor, tape.gradient(y, xs))]


@pytest.mark.parametrize("expression", ANSWERS)
def test_the_answer_is_that_of_keras_on_jax(expression):
    actual = answer(expression, keras, by_tape)

    assert same(actual, ANSWERS[expression]), f"{actual}, expected {ANSWERS[expression]}"
