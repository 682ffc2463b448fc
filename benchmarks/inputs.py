"""Creates the inputs of the workloads: float32 NumPy arrays, the same in each process."""

import itertools
from dataclasses import dataclass

import numpy as np

LEARNING_RATE = 0.01
SMALL_MLP = (32, (16, 32, 32, 4))
MNIST_MLP = (128, (784, 512, 512, 10))
THREE_LAYERS = (64, (16, 32, 32, 8))
FIVE_LAYERS = (256, (2, 32, 32, 32, 32, 1))
FIVE_LAYERS_1D = (256, (1, 32, 32, 32, 32, 1))
PER_EXAMPLE = (256, (16, 32, 32, 4))
RNN = (100, 32, 16, 32)  # steps, batch, features, units
TRANSFORMER = (8, 64, 128)  # batch, tokens, width
HEADS = 4
CONV_SMALL, CONV_64 = (8, 16), (64, 64)


@dataclass(frozen=True)
class Classification:
    """A batch with its labels (int32), and the weights and biases of a network for it."""

    x: np.ndarray
    labels: np.ndarray
    weights: list[np.ndarray]
    biases: list[np.ndarray]


def _normal(generator, shape, scale=1.0):
    values = generator.standard_normal(shape, dtype=np.float32)
    values *= np.float32(scale)
    return values


def pair_of_vectors():
    generator = np.random.default_rng(1)
    return _normal(generator, 8), _normal(generator, 8)


def chain_vector():
    return np.linspace(0.5, 1.5, 8, dtype=np.float32)


def long_vector():
    return _normal(np.random.default_rng(2), 1_000_000)


def classification(batch, sizes):
    generator = np.random.default_rng(3)
    layers = list(itertools.pairwise(sizes))
    return Classification(
        x=_normal(generator, (batch, sizes[0])),
        labels=generator.integers(0, sizes[-1], batch, dtype=np.int32),
        weights=[_normal(generator, (m, n), (2 / m) ** 0.5) for m, n in layers],
        biases=[_normal(generator, n, 0.1) for _, n in layers],
    )


def images(channels):
    return _normal(np.random.default_rng(6), (32, 28, 28, channels))


def filters(channels, outputs):
    """Returns 3 by 3 filters, with the axes rows, columns, input channels, output channels."""
    return _normal(np.random.default_rng(7), (3, 3, channels, outputs), (9 * channels) ** -0.5)


def stacks():
    """Returns two batches of 32 matrices to multiply."""
    rng = np.random.default_rng(8)
    return _normal(rng, (32, 128, 64)), _normal(rng, (32, 64, 128))


def convolution_32():
    """Returns eight images of 32 by 32 with eight channels, and filters with 16 outputs."""
    return _normal(np.random.default_rng(9), (8, 32, 32, 8)), filters(8, 16)


def deep_input():
    return _normal(np.random.default_rng(4), (1024, 1024))


def deep_weights():
    """Yields the 50 weights one by one, so that there is no second copy of all of them."""
    generator = np.random.default_rng(5)
    for _ in range(50):
        yield _normal(generator, (1024, 1024), 1 / 32)


def matrix_and_vector(size):
    generator = np.random.default_rng(6)
    return _normal(generator, (size, size), size**-0.5), _normal(generator, size)


def direction():
    return _normal(np.random.default_rng(7), (256, 2))


def sequence():
    """Returns features for each step and example, and the weights of a recurrent layer."""
    steps, batch, features, units = RNN
    generator = np.random.default_rng(8)
    x = _normal(generator, (steps, batch, features))
    w = _normal(generator, (features, units), features**-0.5)
    u = _normal(generator, (units, units), 0.8 * units**-0.5)
    return x, [w, u, _normal(generator, units, 0.1)]


def tokens():
    """Returns input and target tokens."""
    generator = np.random.default_rng(9)
    return _normal(generator, TRANSFORMER), _normal(generator, TRANSFORMER)


def transformer_weights():
    """Returns the weights of a block: attention, two dense layers, and two layer norms."""
    generator = np.random.default_rng(10)
    width = TRANSFORMER[-1]
    attention = [_normal(generator, (width, width), width**-0.5) for _ in range(4)]
    layers = [
        _normal(generator, (width, 4 * width), (2 / width) ** 0.5),
        _normal(generator, 4 * width, 0.1),
        _normal(generator, (4 * width, width), (4 * width) ** -0.5),
        _normal(generator, width, 0.1),
    ]
    norms = [1 + _normal(generator, width, 0.1), _normal(generator, width, 0.1)]
    return attention + layers + norms + [n.copy() for n in norms]


def convolution_weights():
    """Returns the filters and biases of a small convolution."""
    return [filters(*CONV_SMALL), _normal(np.random.default_rng(11), CONV_SMALL[1], 0.1)]


def rows_and_labels():
    generator = np.random.default_rng(11)
    x = generator.random((60_000, 784), dtype=np.float32)
    return x, generator.integers(0, 10, len(x), dtype=np.int32)
