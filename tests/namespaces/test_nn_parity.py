"""CTC, sampled losses, sparse embeddings, isotonic regression: results recorded from TensorFlow."""

import json
import pathlib

import pytest

import retrograde as tf
from tests.data.recorded_results import evaluate, is_close

DATA = pathlib.Path(__file__).parents[1] / "data"
EXPECTED = json.loads((DATA / "loss_results.json").read_text())


@pytest.mark.parametrize("expression", EXPECTED)
def test_values_and_gradients_match_tensorflow(expression):
    actual = evaluate(expression, tf)

    assert is_close(actual, EXPECTED[expression]), f"{actual}, expected {EXPECTED[expression]}"
