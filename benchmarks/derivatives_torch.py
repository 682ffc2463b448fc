"""Higher-order derivative workloads for PyTorch.

They use `torch.func` or, if faster, nested gradients.
"""

from benchmarks import inputs
from benchmarks.registry import Registry

workload = Registry()


def _network(torch, layers, h):
    *hidden, (last_w, last_b) = layers
    for w, b in hidden:
        h = torch.tanh(h @ w + b)
    return h @ last_w + last_b


def _layers(torch, data):
    pairs = zip(data.weights, data.biases, strict=True)
    return [(torch.tensor(w), torch.tensor(b)) for w, b in pairs]


@workload
def jacobian_64(torch):
    matrix, vector = map(torch.tensor, inputs.matrix_and_vector(64))
    jacobian = torch.func.jacfwd(lambda v: torch.tanh(matrix @ v))

    return lambda: [jacobian(vector)]


@workload
def hessian_32(torch):
    matrix, vector = map(torch.tensor, inputs.matrix_and_vector(32))
    f = lambda v: torch.sum(torch.tanh(matrix @ v) ** 2)  # noqa: E731
    hessian = torch.func.jacrev(torch.func.jacrev(f))  # faster here than torch.func.hessian

    return lambda: [hessian(vector)]


@workload
def batch_jacobian(torch):
    data = inputs.classification(*inputs.THREE_LAYERS)
    x, layers = torch.tensor(data.x), _layers(torch, data)
    jacobian = torch.func.vmap(torch.func.jacrev(lambda x: _network(torch, layers, x)))

    return lambda: [jacobian(x)]


def _twice_differentiable(torch, data):
    """Returns a function that computes the input and a differentiable gradient of the network."""
    layers = _layers(torch, data)
    points = torch.tensor(data.x)

    def first():
        x = points.clone().requires_grad_()
        y = torch.sum(_network(torch, layers, x))
        (gradient,) = torch.autograd.grad(y, x, create_graph=True)
        return x, gradient

    return first


@workload
def hessian_vector(torch):
    first = _twice_differentiable(torch, inputs.classification(*inputs.FIVE_LAYERS))
    vector = torch.tensor(inputs.direction())

    def step():
        x, gradient = first()
        return list(torch.autograd.grad(gradient, x, vector))

    return step


@workload
def laplacian(torch):
    first = _twice_differentiable(torch, inputs.classification(*inputs.FIVE_LAYERS))

    def step():
        x, gradient = first()
        total = 0
        for i in range(2):
            (row,) = torch.autograd.grad(gradient[:, i].sum(), x, retain_graph=True)
            total = total + row[:, i]
        return [total]

    return step


@workload
def fourth_derivative(torch):
    data = inputs.classification(*inputs.FIVE_LAYERS_1D)
    points, layers = torch.tensor(data.x), _layers(torch, data)

    def step():
        x = points.clone().requires_grad_()
        y = _network(torch, layers, x)
        for order in range(4):
            (y,) = torch.autograd.grad(y.sum(), x, create_graph=order < 3)
        return [y]

    return step


@workload
def per_example(torch):
    batch, sizes = inputs.PER_EXAMPLE
    data = inputs.classification(batch, sizes)
    x, labels = torch.tensor(data.x), torch.tensor(data.labels, dtype=torch.int64)
    layers = _layers(torch, data)
    parameters = ([w for w, _ in layers], [b for _, b in layers])

    def loss(parameters, x, label):
        logits = _network(torch, list(zip(*parameters, strict=True)), x[None])
        return torch.nn.functional.cross_entropy(logits, label[None])

    gradients = torch.func.vmap(torch.func.grad(loss), (None, 0, 0))

    def step():
        weights, biases = gradients(parameters, x, labels)
        return [*weights, *biases]

    return step
