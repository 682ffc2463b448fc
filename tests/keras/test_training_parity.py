"""Compares training losses with Keras on JAX and on TensorFlow."""

import json

import numpy as np
import pytest

from retrograde import keras
from tests.keras.training import MODELS, OPTIMIZERS, RECORD_PATH, train_losses

RECORDED = json.loads(RECORD_PATH.read_text())


@pytest.mark.parametrize("backend", RECORDED)
def test_reference_losses_are_complete(backend):
    assert set(RECORDED) == {"jax", "tensorflow"}
    assert {name: set(row) for name, row in RECORDED[backend].items()} == {
        name: set(OPTIMIZERS) for name in MODELS
    }


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("name", MODELS)
def test_eager_losses_match_other_backends(name, optimizer):
    losses = train_losses(keras, name, optimizer, run_eagerly=True)

    assert losses[-1] < losses[0]
    for backend in RECORDED:
        np.testing.assert_allclose(losses, RECORDED[backend][name][optimizer], rtol=2e-5)


@pytest.mark.parametrize("jit_compile", [False, True], ids=["replayed", "compiled"])
@pytest.mark.parametrize("name", MODELS)
def test_traced_losses_match_other_backends(name, jit_compile):
    losses = train_losses(keras, name, "adam", jit_compile=jit_compile)

    for backend in RECORDED:
        np.testing.assert_allclose(losses, RECORDED[backend][name]["adam"], rtol=2e-5)
