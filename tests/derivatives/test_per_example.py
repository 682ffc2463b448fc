"""Per-example gradients."""

import numpy as np
import pytest

import retrograde as tf
from retrograde.derivatives import per_example
from tests.namespaces.helpers import assert_raises

RNG = np.random.default_rng(2)


def uniform(*shape):
    return RNG.uniform(-1, 1, shape)


WEIGHTS = [tf.Variable(uniform(*shape)) for shape in ((6, 8), (8, 8), (8, 3))]
BIASES = [tf.Variable(uniform(n)) for n in (8, 8, 3)]
TABLE = tf.Variable(uniform(10, 6))
PARAMETERS = [*WEIGHTS, *BIASES, TABLE]
SCALE = tf.Variable(uniform(8))


def hidden(x):
    return tf.tanh(x @ WEIGHTS[0] + BIASES[0])


def logits(x):
    return tf.nn.relu(hidden(x) @ WEIGHTS[1] + BIASES[1]) @ WEIGHTS[2] + BIASES[2]


def cross_entropy(x):
    return tf.nn.sparse_softmax_cross_entropy_with_logits(np.arange(len(x)) % 3, logits(x))


def normalize(h, axis):
    mean, variance = tf.nn.moments(h, axis, keepdims=True)
    return (h - mean) / tf.sqrt(variance + 0.1) * SCALE


@tf.custom_gradient
def custom_square(x):
    return x * x, lambda upstream: upstream * 4.0 * x


LOSSES = {  # and whether a single backward pass can separate the rows
    "network": (cross_entropy, True),
    "penalty": (lambda x: cross_entropy(x) + tf.nn.l2_loss(WEIGHTS[0]), True),
    "weights_used_twice": (
        lambda x: tf.reduce_sum(hidden(x) @ tf.transpose(WEIGHTS[0] * 2.0), 1),
        True,
    ),
    "embedding": (lambda x: tf.reduce_sum(tf.gather(TABLE, np.arange(len(x)) % 4) * x, 1), True),
    "layer_norm": (lambda x: tf.reduce_sum(normalize(hidden(x), 1) ** 3, 1), True),
    "column_of_losses": (lambda x: tf.reduce_sum(hidden(x), 1, keepdims=True), True),
    "inside_custom_gradient": (
        lambda x: tf.reduce_sum(custom_square(hidden(x)), 1),
        False,
    ),
    "batch_norm": (lambda x: tf.reduce_sum(normalize(hidden(x), 0) ** 3, 1), False),
    "custom_gradient_of_weights": (
        lambda x: tf.reduce_sum(x @ custom_square(WEIGHTS[0]), 1),
        False,
    ),
}


@pytest.fixture
def fallbacks(monkeypatch):
    """Returns a list that grows when gradients are computed by a batched backward pass."""
    calls = []
    original = per_example.pull_back_batched
    monkeypatch.setattr(
        per_example, "pull_back_batched", lambda *a: calls.append(1) or original(*a)
    )
    return calls


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("size", [5, 6, 8])  # some equal to an axis of the weights
def test_each_row_is_the_gradient_of_one_loss(name, size, fallbacks):
    loss, is_separable = LOSSES[name]
    x = tf.constant(RNG.uniform(-1, 1, (size, 6)))
    with tf.GradientTape(persistent=True) as tape:
        y = loss(x)
    sources = [*PARAMETERS, SCALE]
    actual = tape.gradient(y, sources, per_example=True)
    expected = tape.jacobian(y, sources, unconnected_gradients="zero")

    for a, e, source in zip(actual, expected, sources, strict=True):
        np.testing.assert_allclose(a, np.reshape(e, (size, *source.shape)), rtol=1e-9, atol=1e-12)
    if size == 5:
        assert not fallbacks or not is_separable


def test_the_norm_is_over_all_sources():
    x = tf.constant(uniform(5, 6))
    with tf.GradientTape(persistent=True) as tape:
        y = cross_entropy(x)
    rows = tape.gradient(y, PARAMETERS, per_example=True)
    squares = [np.sum(np.reshape(g, (5, -1)) ** 2, 1) for g in rows]

    norm = tape.gradient(y, PARAMETERS, per_example="norm")

    np.testing.assert_allclose(norm, np.sqrt(sum(squares)), rtol=1e-12)


def test_unconnected_sources_give_zeros():
    v = tf.Variable([1.0, 2.0])
    x = tf.constant([3.0, 4.0, 5.0])
    with tf.GradientTape() as tape:
        y = x * x

    assert tape.gradient(y, v, per_example=True).numpy().tolist() == [[0, 0]] * 3


def test_per_example_gradients_can_be_differentiated(fallbacks):
    x = tf.constant(uniform(5, 6))
    gradients = []
    for is_per_example in (True, False):
        with tf.GradientTape() as outer:
            with tf.GradientTape() as tape:
                y = cross_entropy(x)
            if is_per_example:
                norms = tape.gradient(y, WEIGHTS, per_example="norm")
            else:
                rows = tape.jacobian(y, WEIGHTS)
                squares = [tf.reduce_sum(tf.reshape(r, [5, -1]) ** 2, 1) for r in rows]
                norms = tf.sqrt(tf.add_n(squares))
        gradients.append(outer.gradient(norms, WEIGHTS))

    assert not fallbacks
    for a, e in zip(*gradients, strict=True):
        np.testing.assert_allclose(a, e, rtol=1e-9, atol=1e-12)


def test_float32_needs_no_fallback(fallbacks):
    w = tf.Variable(uniform(6, 8).astype("float32"))
    x = tf.constant(uniform(64, 6).astype("float32"))
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(tf.sin(x @ w) * 100.0, 1)

    assert tape.gradient(y, w, per_example=True).shape == (64, 6, 8)
    assert not fallbacks


def test_error_messages():
    v = tf.Variable([[1.0, 2.0]])
    with tf.GradientTape(persistent=True) as tape:
        y, scalar, vector = v[0] * 2.0, tf.reduce_sum(v), v * 2.0

    for target, shape in ((scalar, "()"), (vector, "(1, 2)")):
        assert_raises(
            lambda target=target: tape.gradient(target, v, per_example=True),
            ValueError,
            "gradient: with `per_example`, the target must have one loss for each example. "
            f"Received: shape {shape}, dtype float32.",
        )
    assert_raises(
        lambda: tape.gradient(y, v, per_example="sum"),
        ValueError,
        "gradient: `per_example` must be True or 'norm', without `output_gradients`. "
        "Received: 'sum' and None.",
    )
