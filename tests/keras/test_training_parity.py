"""The same model, data and weights: the same losses as Keras on JAX and on TensorFlow."""

import json

import numpy as np
import pytest

from retrograde import keras
from tests.keras.training import MODELS, OPTIMIZERS, RECORD, losses_of

RECORDED = json.loads(RECORD.read_text())


@pytest.mark.parametrize("backend", RECORDED)
def test_both_backends_are_recorded_in_full(backend):
    assert set(RECORDED) == {"jax", "tensorflow"}
    assert {name: set(row) for name, row in RECORDED[backend].items()} == {
        name: set(OPTIMIZERS) for name in MODELS
    }


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("name", MODELS)
def test_losses_over_twenty_steps(name, optimizer):
    losses = losses_of(keras, name, optimizer, run_eagerly=True)

    assert losses[-1] < losses[0]
    for backend in RECORDED:
        np.testing.assert_allclose(losses, RECORDED[backend][name][optimizer], rtol=2e-5)


@pytest.mark.parametrize("jit_compile", [False, True], ids=["replayed", "compiled"])
@pytest.mark.parametrize("name", MODELS)
def test_losses_of_functions_are_those_of_eager_steps(name, jit_compile):
    losses = losses_of(keras, name, "adam", jit_compile=jit_compile)

    for backend in RECORDED:
        np.testing.assert_allclose(losses, RECORDED[backend][name]["adam"], rtol=2e-5)
