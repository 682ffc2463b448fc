"""Workloads for JAX without `jit`.

JAX computes asynchronously, so each step waits for its results.
"""

import numpy as np

from benchmarks import derivatives_jax, inputs
from benchmarks.registry import Registry

workload = Registry(derivatives_jax.workload)


def to_numpy(value):
    return np.asarray(value)


def _gradient_step(jax, f, x):
    value_and_gradient = jax.value_and_grad(f)

    def step():
        return jax.block_until_ready([*value_and_gradient(x)])

    return step


@workload
def square(jax):
    return _gradient_step(jax, lambda x: x * x, jax.numpy.asarray(3.0))


@workload
def add8(jax):
    a, b = (jax.numpy.asarray(value) for value in inputs.pair_of_vectors())

    def step():
        return jax.block_until_ready([a + b])

    return step


@workload
def chain(jax):
    jnp = jax.numpy

    def f(h):
        for _ in range(100):
            h = jnp.sin(h)
        return jnp.sum(h)

    return _gradient_step(jax, f, jnp.asarray(inputs.chain_vector()))


def _make_training_step(jax, batch, sizes):
    jnp = jax.numpy
    data = inputs.classification(batch, sizes)
    x, labels = jnp.asarray(data.x), jnp.asarray(data.labels)[:, None]
    parameters = [jnp.asarray(value) for value in data.weights + data.biases]

    def loss_fn(parameters):
        depth = len(sizes) - 1
        *hidden, (last_w, last_b) = zip(parameters[:depth], parameters[depth:], strict=True)
        h = x
        for w, b in hidden:
            h = jax.nn.relu(h @ w + b)
        scores = jax.nn.log_softmax(h @ last_w + last_b)
        return -jnp.mean(jnp.take_along_axis(scores, labels, axis=1))

    value_and_gradient = jax.value_and_grad(loss_fn)

    def step():
        loss, gradients = value_and_gradient(parameters)
        for i, gradient in enumerate(gradients):
            parameters[i] = parameters[i] - inputs.LEARNING_RATE * gradient
        jax.block_until_ready(parameters)
        return [loss, *gradients]

    return step


@workload
def small_mlp(jax):
    return _make_training_step(jax, *inputs.SMALL_MLP)


@workload
def mnist_mlp(jax):
    return _make_training_step(jax, *inputs.MNIST_MLP)


@workload
def elementwise_1m(jax):
    jnp = jax.numpy
    return _gradient_step(
        jax,
        lambda x: jnp.sum(jnp.sin(x) * jnp.exp(x) + jnp.tanh(x)),
        jnp.asarray(inputs.long_vector()),
    )


def _convolution(jax, channels, results):
    jnp = jax.numpy
    arrays = inputs.images(channels), inputs.filters(channels, results)

    def f(arrays):
        y = jax.lax.conv_general_dilated(
            *arrays, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )
        return jnp.sum(y * y)

    value_and_gradient = jax.value_and_grad(f)
    arrays = tuple(map(jnp.asarray, arrays))

    def step():
        y, gradients = value_and_gradient(arrays)
        return jax.block_until_ready([y, *gradients])

    return step


@workload
def conv_small(jax):
    return _convolution(jax, *inputs.CONV_SMALL)


@workload
def conv_64(jax):
    return _convolution(jax, *inputs.CONV_64)


@workload
def max_pool(jax):
    jnp = jax.numpy
    lowest, window = -jnp.inf, (1, 2, 2, 1)

    def f(x):
        y = jax.lax.reduce_window(x, lowest, jax.lax.max, window, window, "VALID")
        return jnp.sum(y * y)

    return _gradient_step(jax, f, jnp.asarray(inputs.images(64)))


@workload
def memory_50_layers(jax):
    jnp = jax.numpy
    x = jnp.asarray(inputs.deep_input())
    weights = [jnp.asarray(value) for value in inputs.deep_weights()]

    def f(weights):
        h = x
        for w in weights:
            h = jnp.tanh(h @ w)
        return jnp.sum(h)

    value_and_gradient = jax.value_and_grad(f)

    def step():
        y, gradients = value_and_gradient(weights)
        return jax.block_until_ready([y, *gradients])

    return step
