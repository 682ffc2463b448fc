"""Workloads for autograd."""

import itertools

import numpy

from benchmarks import derivatives_autograd, inputs
from benchmarks.registry import Registry

workload = Registry(derivatives_autograd.workload)


def to_numpy(value):
    return numpy.asarray(value)


def _gradient_step(autograd, f, x):
    value_and_gradient = autograd.value_and_grad(f)

    def step():
        return [*value_and_gradient(x)]

    return step


@workload
def square(autograd):
    return _gradient_step(autograd, lambda x: x * x, numpy.float32(3.0))


@workload
def add8(autograd):
    np = autograd.numpy
    a, b = (np.array(value) for value in inputs.pair_of_vectors())

    def step():
        return [a + b]

    return step


@workload
def chain(autograd):
    np = autograd.numpy

    def f(h):
        for _ in range(100):
            h = np.sin(h)
        return np.sum(h)

    return _gradient_step(autograd, f, inputs.chain_vector())


def _make_training_step(autograd, batch, sizes):
    np = autograd.numpy
    data = inputs.classification(batch, sizes)
    # One-hot targets, as in autograd's own examples.
    targets = numpy.eye(sizes[-1], dtype=numpy.float32)[data.labels]
    parameters = data.weights + data.biases

    def loss_fn(parameters):
        depth = len(sizes) - 1
        *hidden, (last_w, last_b) = zip(parameters[:depth], parameters[depth:], strict=True)
        h = data.x
        for w, b in hidden:
            h = np.maximum(np.dot(h, w) + b, 0.0)
        logits = np.dot(h, last_w) + last_b
        shifted = logits - np.max(logits, axis=1, keepdims=True)
        scores = shifted - np.log(np.sum(np.exp(shifted), axis=1, keepdims=True))
        return -np.sum(scores * targets) / batch

    value_and_gradient = autograd.value_and_grad(loss_fn)

    def step():
        loss, gradients = value_and_gradient(parameters)
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter -= inputs.LEARNING_RATE * gradient
        return [loss, *gradients]

    return step


@workload
def small_mlp(autograd):
    return _make_training_step(autograd, *inputs.SMALL_MLP)


@workload
def mnist_mlp(autograd):
    return _make_training_step(autograd, *inputs.MNIST_MLP)


@workload
def elementwise_1m(autograd):
    np = autograd.numpy
    return _gradient_step(
        autograd,
        lambda x: np.sum(np.sin(x) * np.exp(x) + np.tanh(x)),
        inputs.long_vector(),
    )


def _convolution(autograd, channels, outputs):
    """Computes a convolution as nine matrix products of shifted images. autograd has none."""
    np = autograd.numpy

    def f(arrays):
        x, w = arrays
        x = np.pad(x, [(0, 0), (1, 1), (1, 1), (0, 0)], "constant")
        shifts = itertools.product(range(3), range(3))
        y = sum(np.matmul(x[:, i : i + 28, j : j + 28], w[i, j]) for i, j in shifts)
        return np.sum(y * y)

    value_and_gradient = autograd.value_and_grad(f)
    arrays = inputs.images(channels), inputs.filters(channels, outputs)

    def step():
        y, gradients = value_and_gradient(arrays)
        return [y, *gradients]

    return step


@workload
def conv_small(autograd):
    return _convolution(autograd, *inputs.CONV_SMALL)


@workload
def conv_64(autograd):
    return _convolution(autograd, *inputs.CONV_64)


@workload
def max_pool(autograd):
    np = autograd.numpy

    def f(x):
        y = np.max(np.reshape(x, (32, 14, 2, 14, 2, 64)), axis=(2, 4))
        return np.sum(y * y)

    return _gradient_step(autograd, f, inputs.images(64))


@workload
def memory_50_layers(autograd):
    np = autograd.numpy
    x = inputs.deep_input()
    weights = list(inputs.deep_weights())

    def f(weights):
        h = x
        for w in weights:
            h = np.tanh(np.dot(h, w))
        return np.sum(h)

    value_and_gradient = autograd.value_and_grad(f)

    def step():
        y, gradients = value_and_gradient(weights)
        return [y, *gradients]

    return step
