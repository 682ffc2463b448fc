"""tf.linalg: values, gradients and errors recorded from TensorFlow."""

import json
import pathlib

import pytest

import retrograde as tf
from tests.data.recorded_results import evaluate, is_close

EXPECTED = json.loads(
    (pathlib.Path(__file__).parents[1] / "data" / "linalg_results.json").read_text()
)


@pytest.mark.parametrize("call", EXPECTED)
def test_result_matches_tensorflow(call):
    actual = evaluate(call, tf)

    assert is_close(actual, EXPECTED[call]), f"got {actual}, expected {EXPECTED[call]}"
