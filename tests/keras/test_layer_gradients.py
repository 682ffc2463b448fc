"""Gradients of all layers by inputs and weights: those of differences, and of Keras on JAX."""

import functools
import inspect
import json

import numpy as np
import pytest

import retrograde as tf
from retrograde import keras
from tests.keras.layer_table import ANSWERS, Subject, layers

TABLE = layers(keras)
IN_DOUBLE = [label for label, layer in TABLE.items() if not layer.single]
TWICE = [label for label, layer in TABLE.items() if layer.second]
RECORDED = json.loads(ANSWERS.read_text())
STEP = 1e-6


@functools.cache
def subject_of(label, dtype="float64"):
    return Subject(keras, label, dtype)


def prepared(subject, arrays):
    """The inputs as tensors; the weights are in place then, and the state is as it was."""
    count = len(subject.inputs)
    for v, value in subject.state:
        v.assign(value)
    for v, w in zip(subject.layer.trainable_variables, arrays[count:], strict=True):
        v.assign(w)
    return [tf.constant(x) for x in arrays[:count]]


def loss_and_gradients(subject, *xs):
    with tf.GradientTape() as tape:
        tape.watch(xs)
        loss = subject.weigh(subject(*xs))
    return loss, tape.gradient(loss, [*xs, *subject.layer.trainable_variables])


def penalty_and_gradients(subject, *xs):
    """What a gradient penalty adds: the squared length of the gradient by the inputs."""
    with tf.GradientTape() as outer:
        outer.watch(xs)
        with tf.GradientTape() as inner:
            inner.watch(xs)
            loss = subject.weigh(subject(*xs))
        penalty = tf.add_n([tf.reduce_sum(g * g) for g in inner.gradient(loss, xs)])
    sources = [*xs, *subject.layer.trainable_variables]
    return penalty, outer.gradient(penalty, sources, unconnected_gradients="zero")


def slopes(subject, gradients):
    """How steep the loss is along the directions, by the gradients."""
    pairs = zip(gradients, subject.directions(), strict=True)
    return [float(np.sum(tf.convert_to_tensor(g).numpy() * d)) for g, d in pairs]


def differences(subject, f):
    """How steep the result of `f` is along the directions, by differences."""
    arrays = [*subject.inputs, *subject.weights]

    def at(i, x):
        value, _ = f(subject, *prepared(subject, [*arrays[:i], x, *arrays[i + 1 :]]))
        return float(value)

    for i, d in enumerate(subject.directions()):
        ahead, behind = (at(i, arrays[i] + h * d) for h in (STEP, -STEP))
        yield (ahead - behind) / (2 * STEP)


def assert_gradients(label, f, rtol):
    subject = subject_of(label)
    value, gradients = f(subject, *prepared(subject, [*subject.inputs, *subject.weights]))
    assert value.dtype == tf.float64
    assert all(g is not None and g.dtype == tf.float64 for g in gradients)
    expected = list(differences(subject, f))
    np.testing.assert_allclose(slopes(subject, gradients), expected, rtol=rtol, atol=3e-7)


@pytest.mark.parametrize("label", IN_DOUBLE)
def test_gradients_agree_with_differences(label):
    assert_gradients(label, loss_and_gradients, 2e-6)


@pytest.mark.parametrize("label", TWICE)
def test_gradients_of_a_gradient_penalty_agree_with_differences(label):
    assert_gradients(label, penalty_and_gradients, 2e-5)


def assert_recorded_is_the_same(label, jit_compile, rtol):
    """The second call of a recorded step gives what the step itself gives."""
    single = TABLE[label].single
    subject, rtol = subject_of(label, "float32" if single else "float64"), 1e-5 if single else rtol
    arrays = [*subject.inputs, *subject.weights]
    loss, gradients = loss_and_gradients(subject, *prepared(subject, arrays))
    step = tf.function(functools.partial(loss_and_gradients, subject), jit_compile=jit_compile)
    for _ in range(2):
        again, recorded = step(*prepared(subject, arrays))
    np.testing.assert_allclose(float(again), float(loss), rtol=rtol)
    expected = slopes(subject, gradients)
    np.testing.assert_allclose(slopes(subject, recorded), expected, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("label", TABLE)
def test_replayed_gradients_are_the_same(label):
    assert_recorded_is_the_same(label, False, 1e-11)


# One of each class: its variants have the same kernels, and XLA takes its time for each.
CLASSES = [label for label in TABLE if "-" not in label or label.startswith("RNN-")]


@pytest.mark.parametrize("label", CLASSES)
def test_compiled_gradients_are_the_same(label):
    # Random layers scale what they draw in single precision, which XLA rounds in its own way.
    assert_recorded_is_the_same(label, True, 3e-8 if TABLE[label].random else 1e-9)


@pytest.mark.parametrize("label", RECORDED)
def test_gradients_are_those_of_keras_on_jax(label):
    subject = subject_of(label, "float32")
    loss, gradients = loss_and_gradients(
        subject, *prepared(subject, [*subject.inputs, *subject.weights])
    )
    actual = [float(loss), *slopes(subject, gradients)]
    np.testing.assert_allclose(actual, RECORDED[label], rtol=1e-4, atol=2e-5)


ELSEWHERE = {
    "no base class computes": "Layer Wrapper InputLayer",
    "integers or strings come in or out": """CategoryEncoding Discretization HashedCrossing Hashing
        IntegerLookup MaxNumBoundingBoxes StringLookup TextVectorization""",
    "what comes out is steps": """ContrastLimitedAdaptiveHistogramEqualization
        RandomPosterization""",
    "Keras draws from Python's own random numbers": "AugMix",
    "Keras computes in float32": "RandomHeight RandomWidth",
    "they hold what other libraries made": "FlaxLayer JaxLayer TFSMLayer TorchModuleWrapper",
}


def test_every_class_of_layers_is_in_the_table():
    classes = {c for c in vars(keras.layers).values() if inspect.isclass(c)}
    classes = {c.__name__ for c in classes if issubclass(c, keras.layers.Layer)}
    tried = {part for label in TABLE for part in label.split("-")}

    assert classes - tried == set(" ".join(ELSEWHERE.values()).split())
