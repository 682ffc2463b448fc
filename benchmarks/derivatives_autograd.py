"""Higher-order derivative workloads for autograd, which computes Jacobians row by row."""

import numpy

from benchmarks import inputs
from benchmarks.registry import Registry

workload = Registry()


def _network(np, layers, h):
    *hidden, (last_w, last_b) = layers
    for w, b in hidden:
        h = np.tanh(np.dot(h, w) + b)
    return np.dot(h, last_w) + last_b


def _layers(data):
    return list(zip(data.weights, data.biases, strict=True))


@workload
def jacobian_64(autograd):
    np = autograd.numpy
    matrix, vector = inputs.matrix_and_vector(64)
    jacobian = autograd.jacobian(lambda v: np.tanh(np.dot(matrix, v)))
    return lambda: [jacobian(vector)]


@workload
def hessian_32(autograd):
    np = autograd.numpy
    matrix, vector = inputs.matrix_and_vector(32)
    hessian = autograd.hessian(lambda v: np.sum(np.tanh(np.dot(matrix, v)) ** 2))
    return lambda: [hessian(vector)]


def _output_gradient(autograd, layers, column):
    """Returns a function that computes the gradient of output `column` at each input row."""
    np = autograd.numpy
    return autograd.grad(lambda x: np.sum(_network(np, layers, x)[:, column]))


@workload
def batch_jacobian(autograd):
    data = inputs.classification(*inputs.THREE_LAYERS)
    layers = _layers(data)
    gradients = [_output_gradient(autograd, layers, k) for k in range(layers[-1][1].size)]
    return lambda: [numpy.stack([gradient(data.x) for gradient in gradients], axis=1)]


@workload
def hessian_vector(autograd):
    data = inputs.classification(*inputs.FIVE_LAYERS)
    product = autograd.hessian_vector_product(_sum_of_outputs(autograd, _layers(data)))
    vector = inputs.direction()
    return lambda: [product(data.x, vector)]


def _sum_of_outputs(autograd, layers):
    np = autograd.numpy
    return lambda x: np.sum(_network(np, layers, x))


@workload
def laplacian(autograd):
    np = autograd.numpy
    data = inputs.classification(*inputs.FIVE_LAYERS)
    gradient = autograd.grad(_sum_of_outputs(autograd, _layers(data)))
    second = [autograd.grad(lambda x, i=i: np.sum(gradient(x)[:, i])) for i in range(2)]
    return lambda: [sum(f(data.x)[:, i] for i, f in enumerate(second))]


@workload
def fourth_derivative(autograd):
    np = autograd.numpy
    data = inputs.classification(*inputs.FIVE_LAYERS_1D)
    layers = _layers(data)

    def f(x):
        return _network(np, layers, x)

    for _ in range(4):
        f = autograd.elementwise_grad(f)
    return lambda: [f(data.x)]


@workload
def per_example(autograd):
    np = autograd.numpy
    batch, sizes = inputs.PER_EXAMPLE
    data = inputs.classification(batch, sizes)
    targets = numpy.eye(sizes[-1], dtype=numpy.float32)[data.labels]
    parameters = (data.weights, data.biases)

    def loss(parameters, x, target):
        logits = _network(np, list(zip(*parameters, strict=True)), x)
        shifted = logits - np.max(logits)
        return -np.sum((shifted - np.log(np.sum(np.exp(shifted)))) * target)

    gradient = autograd.grad(loss)

    def step():
        rows = [gradient(parameters, x, t) for x, t in zip(data.x, targets, strict=True)]
        flat = [[*weights, *biases] for weights, biases in rows]
        return [numpy.stack(column) for column in zip(*flat, strict=True)]

    return step
