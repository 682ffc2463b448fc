"""Compiled workloads for JAX, with `jit`.

Training steps donate their weights. A step reads its first result, so it waits for the computation.
"""

import numpy as np

from benchmarks import inputs
from benchmarks.registry import Registry

workload = Registry()


def to_numpy(value):
    return np.asarray(value)


def _step(jax, _mode, f, *arguments):
    compiled = jax.jit(f)
    arguments = [jax.numpy.asarray(a) for a in arguments]

    def step():
        results = compiled(*arguments)
        np.asarray(results[0])
        return results

    return step


def _make_training_step(jax, _mode, loss_fn, weights, *data):
    def update(weights, *data):
        loss, gradients = jax.value_and_grad(loss_fn)(weights, *data)
        pairs = zip(weights, gradients, strict=True)
        return loss, [w - inputs.LEARNING_RATE * g for w, g in pairs]

    compiled = jax.jit(update, donate_argnums=0)
    data = [jax.numpy.asarray(a) for a in data]
    state = [[jax.numpy.asarray(w) for w in weights]]

    def step():
        loss, state[0] = compiled(state[0], *data)
        np.asarray(loss)
        return [loss]

    return step


@workload
def call(jax, mode):
    return _step(jax, mode, lambda a, b: [a + b], *inputs.pair_of_vectors())


def _classifier(jax, mode, batch, sizes):
    jnp = jax.numpy
    data = inputs.classification(batch, sizes)
    depth = len(sizes) - 1

    def loss_fn(parameters, x, labels):
        *hidden, (last_w, last_b) = zip(parameters[:depth], parameters[depth:], strict=True)
        h = x
        for w, b in hidden:
            h = jax.nn.relu(h @ w + b)
        scores = jax.nn.log_softmax(h @ last_w + last_b)
        return -jnp.mean(jnp.take_along_axis(scores, labels[:, None], axis=1))

    return _make_training_step(jax, mode, loss_fn, data.weights + data.biases, data.x, data.labels)


@workload
def small_mlp_step(jax, mode):
    return _classifier(jax, mode, *inputs.SMALL_MLP)


@workload
def mnist_mlp_step(jax, mode):
    return _classifier(jax, mode, *inputs.MNIST_MLP)


@workload
def elementwise_step(jax, mode):
    jnp = jax.numpy

    def f(x):
        return jnp.sum(jnp.sin(x) * jnp.exp(x) + jnp.tanh(x))

    return _step(jax, mode, lambda x: [*jax.value_and_grad(f)(x)], inputs.long_vector())


@workload
def rnn_step(jax, mode):
    jnp = jax.numpy
    x, weights = inputs.sequence()

    def loss_fn(weights, x):
        w, u, b = weights
        h = jnp.zeros((x.shape[1], u.shape[0]))
        for t in range(x.shape[0]):
            h = jnp.tanh(x[t] @ w + h @ u + b)
        return jnp.mean(h * h)

    return _make_training_step(jax, mode, loss_fn, weights, x)


def _layer_norm(jax, x, scale, shift):
    centered = x - jax.numpy.mean(x, axis=-1, keepdims=True)
    variance = jax.numpy.mean(centered * centered, axis=-1, keepdims=True)
    return centered * jax.lax.rsqrt(variance + 1e-5) * scale + shift


def _heads(x):
    batch, tokens, width = x.shape
    return x.reshape(batch, tokens, inputs.HEADS, width // inputs.HEADS).transpose(0, 2, 1, 3)


def _attention(jax, x, wq, wk, wv, wo):
    q, k, v = (_heads(x @ w) for w in (wq, wk, wv))
    scores = q @ k.transpose(0, 1, 3, 2) * (q.shape[-1] ** -0.5)
    mixed = (jax.nn.softmax(scores) @ v).transpose(0, 2, 1, 3)
    return mixed.reshape(x.shape) @ wo


@workload
def transformer_step(jax, mode):
    def loss_fn(weights, x, target):
        *attention, w1, b1, w2, b2, scale1, shift1, scale2, shift2 = weights
        h = x + _attention(jax, _layer_norm(jax, x, scale1, shift1), *attention)
        inner = _layer_norm(jax, h, scale2, shift2) @ w1 + b1
        error = h + jax.nn.gelu(inner, approximate=False) @ w2 + b2 - target
        return jax.numpy.mean(error * error)

    return _make_training_step(jax, mode, loss_fn, inputs.transformer_weights(), *inputs.tokens())


@workload
def jacobian_step(jax, mode):
    def jacobian(matrix, vector):
        return [jax.jacrev(lambda v: jax.numpy.tanh(matrix @ v))(vector)]

    return _step(jax, mode, jacobian, *inputs.matrix_and_vector(64))


@workload
def conv_step(jax, mode):
    def loss_fn(weights, x):
        w, b = weights
        y = jax.lax.conv_general_dilated(
            x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )
        y = jax.nn.relu(y + b)
        return jax.numpy.mean(y * y)

    images = inputs.images(inputs.CONV_SMALL[0])
    return _make_training_step(jax, mode, loss_fn, inputs.convolution_weights(), images)
