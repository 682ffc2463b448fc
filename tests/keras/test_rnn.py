"""The RNN loop: masks, directions, nested structures and gradients."""

import itertools

import numpy as np
import pytest

import retrograde as tf
from retrograde import keras
from retrograde.keras_backend.rnn import rnn
from tests.namespaces.helpers import assert_gradients, assert_raises

rng = np.random.default_rng(5)
X = rng.normal(size=(2, 4, 3))  # batch, time, features
MASK = np.array([[True, False, True, True], [False, True, True, False]])
H, W, U = rng.normal(size=(2, 2)), rng.normal(size=(3, 2)), rng.normal(size=(2, 2))


def step(w, u):
    def step(x, states):
        h = tf.tanh(x @ w + states[0] @ u)
        return h * 2, [h]

    return step


def numpy_rnn(x, h, mask=None, backwards=False, zero=False):
    """Returns the last output, all outputs in order of computation, and the last state."""
    outputs, before = [], np.zeros_like(h)
    for t in range(x.shape[1])[:: -1 if backwards else 1]:
        new = np.tanh(x[:, t] @ W + h @ U)
        present = np.ones((len(x), 1), bool) if mask is None else mask[:, t, None]
        output = np.where(present, 2 * new, 0 if zero else before)
        h = np.where(present, new, h)
        outputs.append(output)
        before = output
    return before, np.stack(outputs, 1), h


CASES = list(itertools.product((None, MASK), *[(False, True)] * 4))


@pytest.mark.parametrize(("mask", "backwards", "zero", "unroll", "time_major"), CASES)
def test_rnn(mask, backwards, zero, unroll, time_major):
    def call(x, h):
        inputs, present = (x, mask)
        if time_major:
            inputs = tf.transpose(x, (1, 0, 2))
            present = None if mask is None else mask.T
        last, outputs, states = rnn(
            step(W, U), inputs, [h], go_backwards=backwards, mask=present, unroll=unroll,
            time_major=time_major, zero_output_for_mask=zero,
        )  # fmt: skip
        return last, tf.transpose(outputs, (1, 0, 2)) if time_major else outputs, states[0]

    results = call(X, H)
    for actual, expected in zip(results, numpy_rnn(X, H, mask, backwards, zero), strict=True):
        np.testing.assert_allclose(actual, expected)
    for part in range(3):
        assert_gradients(lambda x, h, part=part: call(x, h)[part], X, H)


def test_gradients_flow_to_the_weights():
    def call(w, u):
        return rnn(step(w, u), X, [H], mask=MASK)[1]

    assert_gradients(call, W, U)


def test_return_all_outputs_false():
    last, outputs, _ = rnn(step(W, U), X, [H], mask=MASK, return_all_outputs=False)

    assert outputs.shape == (2, 1, 2)
    np.testing.assert_allclose(outputs[:, 0], last)
    np.testing.assert_allclose(last, numpy_rnn(X, H, MASK)[0])


def test_nested_inputs_and_states():
    def accumulate(x, states):
        total, (count,) = states
        return {"sum": total + x["a"]}["sum"], [total + x["a"] * x["b"], [count + 1.0]]

    inputs = {"a": X, "b": X[..., :1]}
    start = [np.zeros((2, 3)), [np.zeros((2, 1))]]
    _, _, (total, (count,)) = rnn(accumulate, inputs, start, mask=MASK)

    np.testing.assert_allclose(count, MASK.sum(1, keepdims=True))
    np.testing.assert_allclose(total, (X * X[..., :1] * MASK[..., None]).sum(1))


def test_constants_are_appended_to_states():
    def add_constant(_, states):
        total, constant = states
        return total, [total + constant]

    _, _, (total,) = rnn(add_constant, X, [np.zeros((2, 1))], constants=[np.full((2, 1), 3.0)])

    np.testing.assert_allclose(total, 12)


def test_masks_with_a_feature_axis():
    wide = np.repeat(MASK[..., None], 2, -1)

    for mask in (MASK[..., None], wide, MASK.astype("int32")):
        np.testing.assert_allclose(rnn(step(W, U), X, [H], mask=mask)[1], numpy_rnn(X, H, MASK)[1])


@pytest.mark.parametrize("unroll", [False, True])
def test_zero_time_steps_raise(unroll):
    assert_raises(
        lambda: rnn(step(W, U), X[:, :0], [H], unroll=unroll),
        ValueError,
        "An RNN requires at least one time step. Received: inputs without time steps.",
    )


LAYERS = {
    "LSTM": lambda **options: keras.layers.LSTM(3, **options),
    "GRU": lambda **options: keras.layers.GRU(3, **options),
    "GRU_reset_before": lambda **options: keras.layers.GRU(3, reset_after=False, **options),
    "SimpleRNN": lambda **options: keras.layers.SimpleRNN(3, **options),
}


@pytest.mark.parametrize("unroll", [False, True])
@pytest.mark.parametrize("name", LAYERS)
def test_gradients_of_recurrent_layers(name, unroll):
    layer = LAYERS[name](dtype="float64", return_sequences=True, unroll=unroll)
    layer.build(X.shape)
    weights = [rng.normal(size=w.shape) / 2 for w in layer.weights]

    def call(x, *weights):
        pairs = zip(layer.trainable_variables, weights, strict=True)
        with keras.StatelessScope(state_mapping=list(pairs)):
            return layer(x, mask=tf.constant(MASK))

    assert_gradients(call, X, *weights)
