"""Higher-order derivative workloads for TensorFlow and retrograde.

Both run the same code, except where retrograde has a tape method instead of nested tapes.
"""

from benchmarks import inputs
from benchmarks.registry import Registry

workload = Registry()


def _network(tf, layers, h):
    *hidden, (last_w, last_b) = layers
    for w, b in hidden:
        h = tf.tanh(h @ w + b)
    return h @ last_w + last_b


def _layers(tf, data):
    return [
        (tf.constant(w), tf.constant(b)) for w, b in zip(data.weights, data.biases, strict=True)
    ]


def _has(tf, method):
    return hasattr(tf.GradientTape, method)


@workload
def jacobian_64(tf):
    matrix, vector = map(tf.constant, inputs.matrix_and_vector(64))

    def step():
        with tf.GradientTape() as tape:
            tape.watch(vector)
            y = tf.tanh(tf.linalg.matvec(matrix, vector))
        return [tape.jacobian(y, vector)]

    return step


@workload
def hessian_32(tf):
    matrix, vector = map(tf.constant, inputs.matrix_and_vector(32))

    def step():
        with tf.GradientTape() as outer:
            outer.watch(vector)
            with tf.GradientTape() as tape:
                tape.watch(vector)
                y = tf.reduce_sum(tf.tanh(tf.linalg.matvec(matrix, vector)) ** 2)
            gradient = tape.gradient(y, vector)
        return [outer.jacobian(gradient, vector)]

    return step


@workload
def batch_jacobian(tf):
    data = inputs.classification(*inputs.THREE_LAYERS)
    x, layers = tf.constant(data.x), _layers(tf, data)

    def step():
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = _network(tf, layers, x)
        return [tape.batch_jacobian(y, x)]

    return step


@workload
def hessian_vector(tf):
    data = inputs.classification(*inputs.FIVE_LAYERS)
    x, layers, vector = tf.constant(data.x), _layers(tf, data), tf.constant(inputs.direction())

    def by_nested_tapes():
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = tf.reduce_sum(_network(tf, layers, x))
            gradient = tape.gradient(y, x)
        return [outer.gradient(gradient, x, vector)]

    def by_method():
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(_network(tf, layers, x))
        return [tape.hvp(y, x, vector)]

    return by_method if _has(tf, "hvp") else by_nested_tapes


@workload
def laplacian(tf):
    data = inputs.classification(*inputs.FIVE_LAYERS)
    x, layers = tf.constant(data.x), _layers(tf, data)

    def by_nested_tapes():
        with tf.GradientTape(persistent=True) as outer:
            outer.watch(x)
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = _network(tf, layers, x)
            gradient = tape.gradient(y, x)
            columns = [gradient[:, i] for i in range(2)]
        return [sum(outer.gradient(c, x)[:, i] for i, c in enumerate(columns))]

    def by_method():
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = _network(tf, layers, x)
        return [tape.laplacian(y, x)]

    return by_method if _has(tf, "laplacian") else by_nested_tapes


@workload
def fourth_derivative(tf):
    data = inputs.classification(*inputs.FIVE_LAYERS_1D)
    x, layers = tf.constant(data.x), _layers(tf, data)

    def nested_derivative(order):
        if not order:
            return _network(tf, layers, x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = nested_derivative(order - 1)
        return tape.gradient(y, x)

    def by_method():
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = _network(tf, layers, x)
        return [tape.derivatives(y, {"xxxx": x})["xxxx"]]

    return by_method if _has(tf, "derivatives") else lambda: [nested_derivative(4)]


@workload
def per_example(tf):
    batch, sizes = inputs.PER_EXAMPLE
    data = inputs.classification(batch, sizes)
    x, labels = tf.constant(data.x), tf.constant(data.labels)
    weights = [tf.Variable(value) for value in data.weights]
    biases = [tf.Variable(value) for value in data.biases]
    ours = _has(tf, "hessian")

    def step():
        with tf.GradientTape() as tape:
            logits = _network(tf, list(zip(weights, biases, strict=True)), x)
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
        if ours:
            return tape.gradient(losses, weights + biases, per_example=True)
        return tape.jacobian(losses, weights + biases)

    return step
