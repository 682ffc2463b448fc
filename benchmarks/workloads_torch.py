"""Workloads for PyTorch, with `torch.autograd.grad`."""

import numpy as np

from benchmarks import derivatives_torch, inputs, pipelines_torch
from benchmarks.registry import Registry

workload = Registry(derivatives_torch.workload | pipelines_torch.workload)


def to_numpy(value):
    return value.detach().numpy()


def _leaf(torch, value):
    return torch.tensor(value, requires_grad=True)


@workload
def square(torch):
    x = _leaf(torch, 3.0)

    def step():
        y = x * x
        return [y, *torch.autograd.grad(y, x)]

    return step


@workload
def add8(torch):
    a, b = (torch.tensor(value) for value in inputs.pair_of_vectors())

    def step():
        return [a + b]

    return step


@workload
def chain(torch):
    x = _leaf(torch, inputs.chain_vector())

    def step():
        h = x
        for _ in range(100):
            h = torch.sin(h)
        y = torch.sum(h)
        return [y, *torch.autograd.grad(y, x)]

    return step


def _make_training_step(torch, batch, sizes):
    data = inputs.classification(batch, sizes)
    x, labels = torch.tensor(data.x), torch.tensor(data.labels, dtype=torch.int64)
    weights = [_leaf(torch, value) for value in data.weights]
    biases = [_leaf(torch, value) for value in data.biases]
    *hidden, (last_w, last_b) = zip(weights, biases, strict=True)
    leaves = weights + biases

    def step():
        h = x
        for w, b in hidden:
            h = torch.relu(h @ w + b)
        logits = h @ last_w + last_b
        loss = torch.nn.functional.cross_entropy(logits, labels)
        gradients = torch.autograd.grad(loss, leaves)
        with torch.no_grad():
            for leaf, gradient in zip(leaves, gradients, strict=True):
                leaf -= inputs.LEARNING_RATE * gradient
        return [loss, *gradients]

    return step


@workload
def small_mlp(torch):
    return _make_training_step(torch, *inputs.SMALL_MLP)


@workload
def mnist_mlp(torch):
    return _make_training_step(torch, *inputs.MNIST_MLP)


@workload
def elementwise_1m(torch):
    x = _leaf(torch, inputs.long_vector())

    def step():
        y = torch.sum(torch.sin(x) * torch.exp(x) + torch.tanh(x))
        return [y, *torch.autograd.grad(y, x)]

    return step


def _images(torch, channels):
    """Returns channels-first images, as PyTorch expects."""
    return _leaf(torch, np.ascontiguousarray(np.moveaxis(inputs.images(channels), -1, 1)))


def _convolution(torch, channels, outputs):
    x = _images(torch, channels)
    filters = np.transpose(inputs.filters(channels, outputs), (3, 2, 0, 1))
    w = _leaf(torch, np.ascontiguousarray(filters))

    def step():
        y = torch.nn.functional.conv2d(x, w, padding=1)
        loss = torch.sum(y * y)
        return [loss, *torch.autograd.grad(loss, [x, w])]

    return step


@workload
def stacked_products(torch):
    a, b = map(torch.tensor, inputs.stacks())
    return lambda: [a @ b]


@workload
def conv_forward(torch):
    images, filters = inputs.convolution_32()
    x = torch.tensor(np.ascontiguousarray(np.moveaxis(images, -1, 1)))
    w = torch.tensor(np.ascontiguousarray(np.transpose(filters, (3, 2, 0, 1))))
    return lambda: [torch.nn.functional.conv2d(x, w, padding=1)]


@workload
def conv_small(torch):
    return _convolution(torch, *inputs.CONV_SMALL)


@workload
def conv_64(torch):
    return _convolution(torch, *inputs.CONV_64)


@workload
def max_pool(torch):
    x = _images(torch, 64)

    def step():
        y = torch.nn.functional.max_pool2d(x, 2)
        loss = torch.sum(y * y)
        return [loss, *torch.autograd.grad(loss, x)]

    return step


@workload
def memory_50_layers(torch):
    x = torch.tensor(inputs.deep_input())
    weights = [_leaf(torch, value) for value in inputs.deep_weights()]

    def step():
        h = x
        for w in weights:
            h = torch.tanh(h @ w)
        y = torch.sum(h)
        return [y, *torch.autograd.grad(y, weights)]

    return step
