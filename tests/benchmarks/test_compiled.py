"""Tests that the compiled workloads compute the same results in each mode."""

import numpy as np
import pytest

import retrograde as tf
from benchmarks import compiled_tf, inputs
from benchmarks.workloads import COMPILED


def first_results(name, mode):
    """Returns the results of three steps: a trace and two replays."""
    step = compiled_tf.workload[name](tf, mode)
    return [y.numpy() for _ in range(3) for y in step()]


@pytest.mark.parametrize("mode", ["function", "xla"])
@pytest.mark.parametrize("name", COMPILED)
def test_compiled_steps_equal_eager_steps(name, mode, monkeypatch):
    monkeypatch.setattr(inputs, "RNN", (10, *inputs.RNN[1:]))  # a shorter loop compiles faster

    results = zip(first_results(name, mode), first_results(name, "eager"), strict=True)
    for actual, expected in results:
        np.testing.assert_allclose(actual, expected, rtol=2e-5, atol=2e-5 * np.abs(expected).max())
