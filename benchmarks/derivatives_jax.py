"""Higher-order derivative workloads for JAX without `jit`."""

from benchmarks import inputs
from benchmarks.registry import Registry

workload = Registry()


def _network(jnp, layers, h):
    *hidden, (last_w, last_b) = layers
    for w, b in hidden:
        h = jnp.tanh(h @ w + b)
    return h @ last_w + last_b


def _layers(jnp, data):
    pairs = zip(data.weights, data.biases, strict=True)
    return [(jnp.asarray(w), jnp.asarray(b)) for w, b in pairs]


def _step(jax, f, *arguments):
    return lambda: jax.block_until_ready(jax.tree.leaves(f(*arguments)))


@workload
def jacobian_64(jax):
    jnp = jax.numpy
    matrix, vector = map(jnp.asarray, inputs.matrix_and_vector(64))
    return _step(jax, jax.jacrev(lambda v: jnp.tanh(matrix @ v)), vector)


@workload
def hessian_32(jax):
    jnp = jax.numpy
    matrix, vector = map(jnp.asarray, inputs.matrix_and_vector(32))
    return _step(jax, jax.hessian(lambda v: jnp.sum(jnp.tanh(matrix @ v) ** 2)), vector)


@workload
def batch_jacobian(jax):
    data = inputs.classification(*inputs.THREE_LAYERS)
    layers = _layers(jax.numpy, data)
    f = jax.vmap(jax.jacrev(lambda x: _network(jax.numpy, layers, x)))
    return _step(jax, f, jax.numpy.asarray(data.x))


@workload
def hessian_vector(jax):
    jnp = jax.numpy
    data = inputs.classification(*inputs.FIVE_LAYERS)
    layers, x, vector = _layers(jnp, data), jnp.asarray(data.x), jnp.asarray(inputs.direction())
    gradient = jax.grad(lambda x: jnp.sum(_network(jnp, layers, x)))
    return _step(jax, lambda: jax.jvp(gradient, (x,), (vector,))[1])


@workload
def laplacian(jax):
    jnp = jax.numpy
    data = inputs.classification(*inputs.FIVE_LAYERS)
    layers = _layers(jnp, data)
    hessian = jax.hessian(lambda x: _network(jnp, layers, x)[0])
    return _step(jax, jax.vmap(lambda x: jnp.trace(hessian(x))), jnp.asarray(data.x))


@workload
def fourth_derivative(jax):
    jnp = jax.numpy
    data = inputs.classification(*inputs.FIVE_LAYERS_1D)
    layers = _layers(jnp, data)

    def f(x):
        return _network(jnp, layers, x)

    for _ in range(4):
        f = jax.grad(lambda x, f=f: jnp.sum(f(x)))
    return _step(jax, f, jnp.asarray(data.x))


@workload
def per_example(jax):
    jnp = jax.numpy
    batch, sizes = inputs.PER_EXAMPLE
    data = inputs.classification(batch, sizes)
    layers = _layers(jnp, data)
    parameters = ([w for w, _ in layers], [b for _, b in layers])

    def loss(parameters, x, label):
        logits = _network(jnp, list(zip(*parameters, strict=True)), x)
        return -jax.nn.log_softmax(logits)[label]

    gradients = jax.vmap(jax.grad(loss), (None, 0, 0))
    return _step(jax, gradients, parameters, jnp.asarray(data.x), jnp.asarray(data.labels))
