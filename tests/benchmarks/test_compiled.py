"""The compiled workloads: each way of running them gives the same numbers."""

import numpy as np
import pytest

import retrograde as tf
from benchmarks import compiled_tf, inputs
from benchmarks.workloads import COMPILED


def first_results(name, way):
    """The results of three steps: a recording, and two replays of it."""
    step = compiled_tf.workload[name](tf, way)
    return [y.numpy() for _ in range(3) for y in step()]


@pytest.mark.parametrize("way", ["function", "xla"])
@pytest.mark.parametrize("name", COMPILED)
def test_compiled_steps_give_the_numbers_of_eager_ones(name, way, monkeypatch):
    monkeypatch.setattr(inputs, "RNN", (10, *inputs.RNN[1:]))  # XLA compiles steps one by one

    results = zip(first_results(name, way), first_results(name, "eager"), strict=True)
    for actual, expected in results:
        np.testing.assert_allclose(actual, expected, rtol=2e-5, atol=2e-5 * np.abs(expected).max())
