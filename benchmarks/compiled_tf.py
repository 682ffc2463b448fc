"""Compiled workloads for TensorFlow and retrograde.

`mode` is "eager" (not compiled), "function" or "xla" (`jit_compile=True`).
"""

import numpy as np

from benchmarks import inputs
from benchmarks.registry import Registry

workload = Registry()


def to_numpy(value):
    return value.numpy()


def _step(tf, mode, f, *arguments):
    """Returns a step that calls `f`. With XLA, the step waits for the first result."""
    if mode == "eager":
        return lambda: f(*arguments)
    if mode == "function":
        compiled = tf.function(f)
        return lambda: compiled(*arguments)
    compiled = tf.function(f, jit_compile=True)

    def step():
        results = compiled(*arguments)
        np.asarray(results[0])
        return results

    return step


def _descend(variables, gradients):
    for variable, gradient in zip(variables, gradients, strict=True):
        variable.assign_sub(inputs.LEARNING_RATE * gradient)


@workload
def call(tf, mode):
    return _step(tf, mode, lambda a, b: [a + b], *map(tf.constant, inputs.pair_of_vectors()))


def _classifier(tf, mode, batch, sizes):
    data = inputs.classification(batch, sizes)
    weights = [tf.Variable(value) for value in data.weights]
    biases = [tf.Variable(value) for value in data.biases]
    *hidden, (last_w, last_b) = zip(weights, biases, strict=True)

    def train(x, labels):
        with tf.GradientTape() as tape:
            h = x
            for w, b in hidden:
                h = tf.nn.relu(h @ w + b)
            logits = h @ last_w + last_b
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
            loss = tf.reduce_mean(losses)
        _descend(weights + biases, tape.gradient(loss, weights + biases))
        return [loss]

    return _step(tf, mode, train, tf.constant(data.x), tf.constant(data.labels))


@workload
def small_mlp_step(tf, mode):
    return _classifier(tf, mode, *inputs.SMALL_MLP)


@workload
def mnist_mlp_step(tf, mode):
    return _classifier(tf, mode, *inputs.MNIST_MLP)


@workload
def elementwise_step(tf, mode):
    def gradient(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(tf.sin(x) * tf.exp(x) + tf.tanh(x))
        return [y, tape.gradient(y, x)]

    return _step(tf, mode, gradient, tf.constant(inputs.long_vector()))


@workload
def rnn_step(tf, mode):
    x, weights = inputs.sequence()
    w, u, b = variables = [tf.Variable(value) for value in weights]

    def train(x):
        with tf.GradientTape() as tape:
            h = tf.zeros([x.shape[1], u.shape[0]])
            for t in range(x.shape[0]):
                h = tf.tanh(x[t] @ w + h @ u + b)
            loss = tf.reduce_mean(h * h)
        _descend(variables, tape.gradient(loss, variables))
        return [loss]

    return _step(tf, mode, train, tf.constant(x))


def _layer_norm(tf, x, scale, shift):
    centered = x - tf.reduce_mean(x, axis=-1, keepdims=True)
    variance = tf.reduce_mean(centered * centered, axis=-1, keepdims=True)
    return centered * tf.math.rsqrt(variance + 1e-5) * scale + shift


def _heads(tf, x):
    """Reshapes (batch, tokens, width) to (batch, heads, tokens, width of a head)."""
    batch, tokens, width = x.shape
    parts = tf.reshape(x, [batch, tokens, inputs.HEADS, width // inputs.HEADS])
    return tf.transpose(parts, [0, 2, 1, 3])


def _attention(tf, x, wq, wk, wv, wo):
    q, k, v = (_heads(tf, x @ w) for w in (wq, wk, wv))
    scores = tf.matmul(q, k, transpose_b=True) * (q.shape[-1] ** -0.5)
    mixed = tf.transpose(tf.nn.softmax(scores) @ v, [0, 2, 1, 3])
    return tf.reshape(mixed, x.shape) @ wo


@workload
def transformer_step(tf, mode):
    variables = [tf.Variable(value) for value in inputs.transformer_weights()]
    *attention, w1, b1, w2, b2, scale1, shift1, scale2, shift2 = variables

    def train(x, target):
        with tf.GradientTape() as tape:
            h = x + _attention(tf, _layer_norm(tf, x, scale1, shift1), *attention)
            inner = tf.nn.gelu(_layer_norm(tf, h, scale2, shift2) @ w1 + b1)
            error = h + inner @ w2 + b2 - target
            loss = tf.reduce_mean(error * error)
        _descend(variables, tape.gradient(loss, variables))
        return [loss]

    return _step(tf, mode, train, *map(tf.constant, inputs.tokens()))


@workload
def jacobian_step(tf, mode):
    def jacobian(matrix, vector):
        with tf.GradientTape() as tape:
            tape.watch(vector)
            y = tf.tanh(tf.linalg.matvec(matrix, vector))
        return [tape.jacobian(y, vector)]

    return _step(tf, mode, jacobian, *map(tf.constant, inputs.matrix_and_vector(64)))


@workload
def conv_step(tf, mode):
    w, b = variables = [tf.Variable(value) for value in inputs.convolution_weights()]

    def train(x):
        with tf.GradientTape() as tape:
            y = tf.nn.relu(tf.nn.conv2d(x, w, strides=1, padding="SAME") + b)
            loss = tf.reduce_mean(y * y)
        _descend(variables, tape.gradient(loss, variables))
        return [loss]

    return _step(tf, mode, train, tf.constant(inputs.images(inputs.CONV_SMALL[0])))
