"""Compiled workloads for PyTorch, with `torch.compile`.

The loss with its backward pass and the update of the weights are compiled.
"""

import numpy as np

from benchmarks import inputs
from benchmarks.registry import Registry

workload = Registry()


def to_numpy(value):
    return value.detach().numpy()


def _step(torch, _mode, f, *arguments):
    compiled = torch.compile(f)
    arguments = [torch.tensor(a) for a in arguments]

    def step():
        return compiled(*arguments)

    return step


def _make_training_step(torch, _mode, loss_fn, weights, *data):
    data = [torch.tensor(a) for a in data]
    weights = [torch.tensor(w, requires_grad=True) for w in weights]

    def descend(weights, gradients):
        for weight, gradient in zip(weights, gradients, strict=True):
            weight -= inputs.LEARNING_RATE * gradient

    compiled_loss, compiled_descent = torch.compile(loss_fn), torch.compile(descend)

    def step():
        loss = compiled_loss(weights, *data)
        gradients = torch.autograd.grad(loss, weights)
        with torch.no_grad():
            compiled_descent(weights, gradients)
        return [loss]

    return step


@workload
def call(torch, mode):
    return _step(torch, mode, lambda a, b: [a + b], *inputs.pair_of_vectors())


def _classifier(torch, mode, batch, sizes):
    data = inputs.classification(batch, sizes)
    depth = len(sizes) - 1

    def loss_fn(parameters, x, labels):
        *hidden, (last_w, last_b) = zip(parameters[:depth], parameters[depth:], strict=True)
        h = x
        for w, b in hidden:
            h = torch.relu(h @ w + b)
        return torch.nn.functional.cross_entropy(h @ last_w + last_b, labels)

    labels = data.labels.astype(np.int64)
    return _make_training_step(torch, mode, loss_fn, data.weights + data.biases, data.x, labels)


@workload
def small_mlp_step(torch, mode):
    return _classifier(torch, mode, *inputs.SMALL_MLP)


@workload
def mnist_mlp_step(torch, mode):
    return _classifier(torch, mode, *inputs.MNIST_MLP)


@workload
def elementwise_step(torch, _mode):
    x = torch.tensor(inputs.long_vector(), requires_grad=True)
    compiled = torch.compile(lambda x: torch.sum(torch.sin(x) * torch.exp(x) + torch.tanh(x)))

    def step():
        y = compiled(x)
        return [y, *torch.autograd.grad(y, x)]

    return step


@workload
def rnn_step(torch, mode):
    x, weights = inputs.sequence()

    def loss_fn(weights, x):
        w, u, b = weights
        h = torch.zeros((x.shape[1], u.shape[0]))
        for t in range(x.shape[0]):
            h = torch.tanh(x[t] @ w + h @ u + b)
        return torch.mean(h * h)

    return _make_training_step(torch, mode, loss_fn, weights, x)


def _layer_norm(torch, x, scale, shift):
    return torch.nn.functional.layer_norm(x, x.shape[-1:], scale, shift, eps=1e-5)


def _heads(x):
    batch, tokens, width = x.shape
    return x.reshape(batch, tokens, inputs.HEADS, width // inputs.HEADS).transpose(1, 2)


def _attention(torch, x, wq, wk, wv, wo):
    q, k, v = (_heads(x @ w) for w in (wq, wk, wv))
    mixed = torch.nn.functional.scaled_dot_product_attention(q, k, v)
    return mixed.transpose(1, 2).reshape(x.shape) @ wo


@workload
def transformer_step(torch, mode):
    def loss_fn(weights, x, target):
        *attention, w1, b1, w2, b2, scale1, shift1, scale2, shift2 = weights
        h = x + _attention(torch, _layer_norm(torch, x, scale1, shift1), *attention)
        inner = _layer_norm(torch, h, scale2, shift2) @ w1 + b1
        error = h + torch.nn.functional.gelu(inner) @ w2 + b2 - target
        return torch.mean(error * error)

    return _make_training_step(torch, mode, loss_fn, inputs.transformer_weights(), *inputs.tokens())


@workload
def jacobian_step(torch, mode):
    def jacobian(matrix, vector):
        return [torch.func.jacrev(lambda v: torch.tanh(matrix @ v))(vector)]

    return _step(torch, mode, jacobian, *inputs.matrix_and_vector(64))


@workload
def conv_step(torch, mode):
    """Uses channels-first images, as PyTorch does."""

    def loss_fn(weights, x):
        w, b = weights
        y = torch.relu(torch.nn.functional.conv2d(x, w, b, padding=1))
        return torch.mean(y * y)

    filters, bias = inputs.convolution_weights()
    filters = np.ascontiguousarray(np.transpose(filters, (3, 2, 0, 1)))
    images = np.ascontiguousarray(np.moveaxis(inputs.images(inputs.CONV_SMALL[0]), -1, 1))
    return _make_training_step(torch, mode, loss_fn, [filters, bias], images)
