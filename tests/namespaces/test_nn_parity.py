"""CTC, sampled losses, sparse embeddings, isotonic regression: results recorded from TensorFlow."""

import json
import pathlib

import pytest

import retrograde as tf
from tests.data.answers import answer, same

DATA = pathlib.Path(__file__).parents[1] / "data"
ANSWERS = json.loads((DATA / "loss_answers.json").read_text())


@pytest.mark.parametrize("expression", ANSWERS)
def test_values_and_gradients_match_tensorflow(expression):
    actual = answer(expression, tf)

    assert same(actual, ANSWERS[expression]), f"{actual}, expected {ANSWERS[expression]}"
