"""Compares the gradients of all layers with finite differences and with Keras on JAX."""

import functools
import inspect
import json

import numpy as np
import pytest

import retrograde as tf
from retrograde import keras
from tests.keras.layer_table import EXPECTED_PATH, LayerCase, layers

TABLE = layers(keras)
FLOAT64_LAYERS = [label for label, layer in TABLE.items() if not layer.float32_only]
SECOND_ORDER_LAYERS = [label for label, layer in TABLE.items() if layer.second_order]
EXPECTED = json.loads(EXPECTED_PATH.read_text())
STEP = 1e-6


@functools.cache
def make_case(label, dtype="float64"):
    return LayerCase(keras, label, dtype)


def set_weights(case, arrays):
    """Assigns the weights, resets the state and returns the inputs as tensors."""
    count = len(case.inputs)
    for v, value in case.state:
        v.assign(value)
    for v, w in zip(case.layer.trainable_variables, arrays[count:], strict=True):
        v.assign(w)
    return [tf.constant(x) for x in arrays[:count]]


def loss_and_gradients(case, *xs):
    with tf.GradientTape() as tape:
        tape.watch(xs)
        loss = case.weighted_sum(case(*xs))
    return loss, tape.gradient(loss, [*xs, *case.layer.trainable_variables])


def penalty_and_gradients(case, *xs):
    """Returns the squared norm of the gradient with respect to the inputs, and its gradients."""
    with tf.GradientTape() as outer:
        outer.watch(xs)
        with tf.GradientTape() as inner:
            inner.watch(xs)
            loss = case.weighted_sum(case(*xs))
        penalty = tf.add_n([tf.reduce_sum(g * g) for g in inner.gradient(loss, xs)])
    sources = [*xs, *case.layer.trainable_variables]
    return penalty, outer.gradient(penalty, sources, unconnected_gradients="zero")


def directional_derivatives(case, gradients):
    """Returns the directional derivatives computed from the gradients."""
    pairs = zip(gradients, case.directions(), strict=True)
    return [float(np.sum(tf.convert_to_tensor(g).numpy() * d)) for g, d in pairs]


def numerical_derivatives(case, f):
    """Yields the directional derivatives of `f`, computed with finite differences."""
    arrays = [*case.inputs, *case.weights]

    def at(i, x):
        value, _ = f(case, *set_weights(case, [*arrays[:i], x, *arrays[i + 1 :]]))
        return float(value)

    for i, d in enumerate(case.directions()):
        plus, minus = (at(i, arrays[i] + h * d) for h in (STEP, -STEP))
        yield (plus - minus) / (2 * STEP)


def assert_gradients(label, f, rtol):
    case = make_case(label)
    value, gradients = f(case, *set_weights(case, [*case.inputs, *case.weights]))
    assert value.dtype == tf.float64
    assert all(g is not None and g.dtype == tf.float64 for g in gradients)
    expected = list(numerical_derivatives(case, f))
    np.testing.assert_allclose(
        directional_derivatives(case, gradients), expected, rtol=rtol, atol=3e-7
    )


@pytest.mark.parametrize("label", FLOAT64_LAYERS)
def test_gradients_match_numerical_derivatives(label):
    assert_gradients(label, loss_and_gradients, 2e-6)


@pytest.mark.parametrize("label", SECOND_ORDER_LAYERS)
def test_gradient_penalty_matches_numerical_derivatives(label):
    assert_gradients(label, penalty_and_gradients, 2e-5)


def assert_traced_gradients_match(label, jit_compile, rtol):
    """Compares the second call to a traced step with the eager step."""
    float32_only = TABLE[label].float32_only
    case, rtol = (
        make_case(label, "float32" if float32_only else "float64"),
        1e-5 if float32_only else rtol,
    )
    arrays = [*case.inputs, *case.weights]
    loss, gradients = loss_and_gradients(case, *set_weights(case, arrays))
    step = tf.function(functools.partial(loss_and_gradients, case), jit_compile=jit_compile)
    for _ in range(2):
        traced_loss, traced_gradients = step(*set_weights(case, arrays))
    np.testing.assert_allclose(float(traced_loss), float(loss), rtol=rtol)
    expected = directional_derivatives(case, gradients)
    np.testing.assert_allclose(
        directional_derivatives(case, traced_gradients), expected, rtol=rtol, atol=rtol
    )


@pytest.mark.parametrize("label", TABLE)
def test_replayed_gradients_match_eager(label):
    assert_traced_gradients_match(label, False, 1e-11)


# One variant of each class: they share kernels, and compiling each takes long.
CLASSES = [label for label in TABLE if "-" not in label or label.startswith("RNN-")]


@pytest.mark.parametrize("label", CLASSES)
def test_compiled_gradients_match_eager(label):
    # Random layers scale their samples in float32, and XLA rounds differently.
    assert_traced_gradients_match(label, True, 3e-8 if TABLE[label].random else 1e-9)


@pytest.mark.parametrize("label", EXPECTED)
def test_gradients_match_keras_on_jax(label):
    case = make_case(label, "float32")
    loss, gradients = loss_and_gradients(case, *set_weights(case, [*case.inputs, *case.weights]))
    actual = [float(loss), *directional_derivatives(case, gradients)]
    np.testing.assert_allclose(actual, EXPECTED[label], rtol=1e-4, atol=2e-5)


NOT_IN_TABLE = {
    "base classes": "Layer Wrapper InputLayer",
    "inputs or outputs are integers or strings": """CategoryEncoding Discretization
        HashedCrossing Hashing IntegerLookup MaxNumBoundingBoxes StringLookup
        TextVectorization""",
    "outputs are piecewise constant": """ContrastLimitedAdaptiveHistogramEqualization
        RandomPosterization""",
    "Keras uses Python's random numbers": "AugMix",
    "Keras computes in float32": "RandomHeight RandomWidth",
    "wrappers of other libraries": "FlaxLayer JaxLayer TFSMLayer TorchModuleWrapper",
}


def test_every_layer_class_is_in_the_table():
    classes = {c for c in vars(keras.layers).values() if inspect.isclass(c)}
    classes = {c.__name__ for c in classes if issubclass(c, keras.layers.Layer)}
    tested = {part for label in TABLE for part in label.split("-")}

    assert classes - tested == set(" ".join(NOT_IN_TABLE.values()).split())
