"""Workloads for TensorFlow and retrograde."""

from benchmarks import derivatives_tf, inputs, pipelines_tf
from benchmarks.registry import Registry

workload = Registry(derivatives_tf.workload | pipelines_tf.workload)


def to_numpy(value):
    return value.numpy()


@workload
def square(tf):
    x = tf.Variable(3.0)

    def step():
        with tf.GradientTape() as tape:
            y = x * x
        return [y, tape.gradient(y, x)]

    return step


@workload
def add8(tf):
    a, b = (tf.constant(value) for value in inputs.pair_of_vectors())

    def step():
        return [a + b]

    return step


@workload
def chain(tf):
    x = tf.Variable(inputs.chain_vector())

    def step():
        with tf.GradientTape() as tape:
            h = x
            for _ in range(100):
                h = tf.sin(h)
            y = tf.reduce_sum(h)
        return [y, tape.gradient(y, x)]

    return step


def _make_training_step(tf, batch, sizes):
    data = inputs.classification(batch, sizes)
    x, labels = tf.constant(data.x), tf.constant(data.labels)
    weights = [tf.Variable(value) for value in data.weights]
    biases = [tf.Variable(value) for value in data.biases]
    *hidden, (last_w, last_b) = zip(weights, biases, strict=True)
    variables = weights + biases

    def step():
        with tf.GradientTape() as tape:
            h = x
            for w, b in hidden:
                h = tf.nn.relu(h @ w + b)
            logits = h @ last_w + last_b
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
            loss = tf.reduce_mean(losses)
        gradients = tape.gradient(loss, variables)
        for variable, gradient in zip(variables, gradients, strict=True):
            variable.assign_sub(inputs.LEARNING_RATE * gradient)
        return [loss, *gradients]

    return step


@workload
def small_mlp(tf):
    return _make_training_step(tf, *inputs.SMALL_MLP)


@workload
def mnist_mlp(tf):
    return _make_training_step(tf, *inputs.MNIST_MLP)


@workload
def elementwise_1m(tf):
    x = tf.Variable(inputs.long_vector())

    def step():
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(tf.sin(x) * tf.exp(x) + tf.tanh(x))
        return [y, tape.gradient(y, x)]

    return step


def _convolution(tf, channels, results):
    x, w = tf.Variable(inputs.images(channels)), tf.Variable(inputs.filters(channels, results))

    def step():
        with tf.GradientTape() as tape:
            y = tf.nn.conv2d(x, w, strides=1, padding="SAME")
            loss = tf.reduce_sum(y * y)
        return [loss, *tape.gradient(loss, [x, w])]

    return step


@workload
def stacked_products(tf):
    a, b = map(tf.constant, inputs.stacks())
    return lambda: [a @ b]


@workload
def conv_forward(tf):
    x, w = map(tf.constant, inputs.convolution_32())
    return lambda: [tf.nn.conv2d(x, w, strides=1, padding="SAME")]


@workload
def conv_small(tf):
    return _convolution(tf, *inputs.CONV_SMALL)


@workload
def conv_64(tf):
    return _convolution(tf, *inputs.CONV_64)


@workload
def max_pool(tf):
    x = tf.Variable(inputs.images(64))

    def step():
        with tf.GradientTape() as tape:
            y = tf.nn.max_pool2d(x, ksize=2, strides=2, padding="VALID")
            loss = tf.reduce_sum(y * y)
        return [loss, tape.gradient(loss, x)]

    return step


@workload
def memory_50_layers(tf):
    x = tf.constant(inputs.deep_input())
    weights = [tf.Variable(value) for value in inputs.deep_weights()]

    def step():
        with tf.GradientTape() as tape:
            h = x
            for w in weights:
                h = tf.tanh(h @ w)
            y = tf.reduce_sum(h)
        return [y, *tape.gradient(y, weights)]

    return step
