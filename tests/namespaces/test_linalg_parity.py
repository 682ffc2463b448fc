"""tf.linalg: values, gradients and errors recorded from TensorFlow."""

import json
import pathlib

import pytest

import retrograde as tf
from tests.data.answers import answer, same

ANSWERS = json.loads(
    (pathlib.Path(__file__).parents[1] / "data" / "linalg_answers.json").read_text()
)


@pytest.mark.parametrize("call", ANSWERS)
def test_result_matches_tensorflow(call):
    actual = answer(call, tf)

    assert same(actual, ANSWERS[call]), f"got {actual}, expected {ANSWERS[call]}"
