"""Spatial blocks, dilation and erosion, fractional pooling, local response normalization."""

import json
import pathlib

import numpy as np
import pytest

import retrograde as tf
from retrograde.errors import InvalidArgumentError
from tests.data.recorded_results import evaluate, is_close
from tests.namespaces.helpers import assert_gradients, assert_raises

DATA = pathlib.Path(__file__).parents[1] / "data"
EXPECTED = json.loads((DATA / "window_results.json").read_text())
ONES = [1, 1, 1, 1]


def random_array(*shape):
    return np.random.default_rng(list(shape)).standard_normal(shape)


@pytest.mark.parametrize("expression", EXPECTED)
def test_result_matches_tensorflow(expression):
    actual = evaluate(expression, tf)

    assert is_close(actual, EXPECTED[expression]), actual


# fmt: off
DIFFERENTIABLE = {
    "space_to_batch": (lambda x: tf.space_to_batch(x, [2, 3], [[1, 0], [0, 2]]), (2, 3, 4, 2)),
    "batch_to_space": (lambda x: tf.batch_to_space(x, [2, 3], [[1, 1], [0, 2]]), (6, 2, 3, 2)),
    "space_to_depth": (lambda x: tf.nn.space_to_depth(x, 2, "NCHW"), (2, 3, 4, 6)),
    "depth_to_space": (lambda x: tf.nn.depth_to_space(x, 2, "NCHW"), (2, 8, 3, 2)),
    "dilation2d":
        (lambda x, w: tf.nn.dilation2d(x, w, [1, 2, 1, 1], "SAME", "NHWC", [1, 1, 2, 1]),
         (2, 5, 6, 2), (3, 2, 2)),
    "erosion2d":
        (lambda x, w: tf.nn.erosion2d(x, w, ONES, "VALID", "NHWC", ONES), (2, 4, 5, 2), (2, 3, 2)),
    "fractional_max_pool":
        (lambda x: tf.nn.fractional_max_pool(x, 1.44, overlapping=True, seed=3)[0], (2, 7, 8, 2)),
    "fractional_avg_pool":
        (lambda x: tf.nn.fractional_avg_pool(x, 1.7, True, True, seed=3)[0], (2, 7, 8, 2)),
    "local_response_normalization":
        (lambda x: tf.nn.local_response_normalization(x, 2, 1.5, 0.3, 0.75), (2, 2, 2, 7)),
    "batch_norm_with_global_normalization":
        (lambda x, m, v: tf.nn.batch_norm_with_global_normalization(
            x, m, v**2, m, v, 0.1, True), (2, 2, 2, 3), (3,), (3,)),
}
# fmt: on


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradients_match_differences(name):
    f, *shapes = DIFFERENTIABLE[name]

    assert_gradients(lambda *xs: f(*xs) ** 2, *(random_array(*shape) for shape in shapes))


@pytest.mark.parametrize("name", ["dilation2d", "fractional_max_pool", "batch_to_space"])
def test_second_order(name):
    f, shape, *args = DIFFERENTIABLE[name]
    rest = [tf.constant(random_array(*s)) for s in args]

    def derivative(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(f(x, *rest) ** 3)
        return tape.gradient(y, x)

    assert_gradients(derivative, random_array(*shape))


def test_channels_first_matches_transposed_channels_last():
    x = random_array(2, 4, 6, 8)
    for f in (tf.nn.space_to_depth, tf.nn.depth_to_space):
        channels_first = f(np.transpose(x, (0, 3, 1, 2)), 2, "NCHW")

        np.testing.assert_array_equal(np.transpose(channels_first, (0, 2, 3, 1)), f(x, 2))


@pytest.mark.parametrize("rate", [1, 2])
def test_with_space_to_batch_passes_arguments_in_order(rate):
    received = []

    def op(x, *args):
        received.extend(args)
        return x

    x = np.ones((1, 4, 4, 1))
    np.testing.assert_array_equal(tf.nn.with_space_to_batch(x, [rate, rate], "VALID", op), x)
    assert received == [2, "VALID"]


def test_erosion_is_negated_dilation_of_the_negative():
    x, w = random_array(1, 5, 6, 2), random_array(2, 3, 2)

    eroded = tf.nn.erosion2d(x, w, ONES, "SAME", "NHWC", ONES)

    dilated = tf.nn.dilation2d(-x, w[::-1, ::-1], ONES, "SAME", "NHWC", ONES)
    np.testing.assert_array_equal(eroded, -dilated)


@pytest.mark.parametrize("overlapping", [False, True])
@pytest.mark.parametrize("pseudo_random", [False, True])
def test_fractional_pooling_matches_its_windows(pseudo_random, overlapping):
    x = random_array(2, 11, 9, 3)
    for f, reduce in [(tf.nn.fractional_max_pool, np.max), (tf.nn.fractional_avg_pool, np.mean)]:
        y, rows, columns = f(x, [1.0, 1.6, 2.3, 1.0], pseudo_random, overlapping, seed=5)

        assert y.shape == (2, 6, 3, 3)
        for bounds, n, ratio in ((rows.numpy(), 11, 11 / 6), (columns.numpy(), 9, 3.0)):
            assert (bounds[0], bounds[-1]) == (0, n)
            assert set(np.diff(bounds)) <= {int(ratio), int(np.ceil(ratio))}
        for i, j in np.ndindex(6, 3):
            window = x[:, rows[i] : rows[i + 1] + overlapping,
                     columns[j] : columns[j + 1] + overlapping]  # fmt: skip
            np.testing.assert_allclose(y[:, i, j], reduce(window, axis=(1, 2)), rtol=1e-12)


def test_fractional_average_pooling_of_integers_rounds_toward_zero():
    x = np.random.default_rng(2).integers(-50, 50, (1, 9, 8, 2))
    y, rows, columns = tf.nn.fractional_avg_pool(x, 1.7, True, True, seed=5)

    assert y.dtype == tf.int64
    for i, j in np.ndindex(*y.shape[1:3]):
        window = x[0, rows[i] : rows[i + 1] + 1, columns[j] : columns[j + 1] + 1]
        np.testing.assert_array_equal(y[0, i, j], np.trunc(window.mean((0, 1))))


def test_a_seed_reproduces_the_windows():
    x = random_array(1, 40, 40, 1)

    def rows(seed):
        return tuple(tf.nn.fractional_max_pool(x, 1.5, seed=seed).row_pooling_sequence.numpy())

    assert rows(7) == rows(7)
    assert rows(7) != rows(8)
    assert len({rows(0) for _ in range(4)}) > 1


def test_fractional_pooling_returns_named_tuples():
    for f in (tf.nn.fractional_max_pool, tf.nn.fractional_avg_pool):
        result = f(random_array(1, 4, 4, 1), 2.0, seed=1)

        assert result.output.shape == (1, 2, 2, 1)
        assert result.col_pooling_sequence.dtype == tf.int64


X = np.zeros((1, 3, 4, 2), np.float32)
W = np.zeros((2, 2, 2), np.float32)
# fmt: off
ERRORS = [
    (lambda: tf.space_to_batch(X, [2, 2], [[0, 0], [0, 0]]), InvalidArgumentError,
     "space_to_batch: 3 elements, including paddings, cannot be split into blocks of 2. "
     "Received: space [3, 4] and block_shape [2, 2]."),
    (lambda: tf.space_to_batch_nd(X, [2, 2], [[0, 0]]), InvalidArgumentError,
     "space_to_batch_nd: paddings has shape (1, 2). Expected (2, 2), a pair for each element of "
     "block_shape."),
    (lambda: tf.space_to_batch(X, [2] * 4, [[0, 0]] * 4), InvalidArgumentError,
     "space_to_batch: block_shape has 4 axes, but the tensor has shape (1, 3, 4, 2). Expected 5 "
     "axes or more."),
    (lambda: tf.space_to_batch(X, [0], [[0, 0]]), InvalidArgumentError,
     "space_to_batch: block_shape must be positive. Received: [0]."),
    (lambda: tf.batch_to_space(X, [1], [[-1, 0]]), InvalidArgumentError,
     "batch_to_space: crops must not be negative. Received: [[-1, 0]]."),
    (lambda: tf.batch_to_space(X, [2], [[0, 0]]), InvalidArgumentError,
     "batch_to_space: a batch of 1 is not a multiple of the 2 elements of a block of [2]."),
    (lambda: tf.batch_to_space(X, [1], [[2, 2]]), InvalidArgumentError,
     "batch_to_space: cannot crop 2 and 2 of 3 elements."),
    (lambda: tf.required_space_to_batch_paddings([5, 6], [2]), ValueError,
     "required_space_to_batch_paddings: input_shape, base_paddings and block_shape must have the "
     "same length, 1. Received: [5, 6] and [[0, 0]]."),
    (lambda: tf.nn.with_space_to_batch(X, 2, "VALID", None), ValueError,
     "with_space_to_batch: dilation_rate must be a list. Received: 2."),
    (lambda: tf.nn.with_space_to_batch(X, [0], "VALID", None), ValueError,
     "with_space_to_batch: dilation_rate must be positive. Received: [0]."),
    (lambda: tf.nn.with_space_to_batch(X, [2, 2], "VALID", None, spatial_dims=[2, 1]), ValueError,
     "with_space_to_batch: spatial_dims must be increasing and start at 1 or later. Received: "
     "[2, 1]."),
    (lambda: tf.nn.with_space_to_batch(X, [2, 2], "FULL", None), ValueError,
     "with_space_to_batch: padding is 'FULL'. Expected \"SAME\" or \"VALID\"."),
    (lambda: tf.nn.with_space_to_batch(X, [2, 2], "SAME", None), ValueError,
     'with_space_to_batch: filter_shape is needed for padding "SAME".'),
    (lambda: tf.nn.space_to_depth(X, 2), InvalidArgumentError,
     "space_to_depth: 3 by 4 pixels cannot be split into blocks of 2."),
    (lambda: tf.nn.depth_to_space(X, 2), InvalidArgumentError,
     "depth_to_space: 2 channels cannot be moved to blocks of 2 by 2 pixels. Expected a multiple "
     "of 4."),
    (lambda: tf.nn.depth_to_space(X[0], 2), InvalidArgumentError,
     "depth_to_space: expected 4 axes. Received: shape (3, 4, 2)."),
    (lambda: tf.nn.space_to_depth(X, 1), InvalidArgumentError,
     "space_to_depth: block_size must be at least 2. Received: 1."),
    (lambda: tf.nn.dilation2d(X, W, ONES, "SAME", "NCHW", ONES), ValueError,
     "dilation2d: data_format is 'NCHW'. Expected \"NHWC\"."),
    (lambda: tf.nn.dilation2d(X[0], W, ONES, "SAME", "NHWC", ONES), InvalidArgumentError,
     "dilation2d: the input must have 4 axes. Received: shape (3, 4, 2)."),
    (lambda: tf.nn.erosion2d(X, W[0], ONES, "SAME", "NHWC", ONES), InvalidArgumentError,
     "erosion2d: filters must have 3 axes and must not be empty. Received: shape (2, 2)."),
    (lambda: tf.nn.dilation2d(X, W[..., :1], ONES, "SAME", "NHWC", ONES), InvalidArgumentError,
     "dilation2d: the input has 2 channels, but the filters have 1. Expected the same number."),
    (lambda: tf.nn.fractional_max_pool(X, [1.5, 1.5]), ValueError,
     "fractional_max_pool: pooling_ratio must be a number or [1.0, rows, columns, 1.0]. Received: "
     "[1.5, 1.5]."),
    (lambda: tf.nn.fractional_max_pool(X, 0.5), ValueError,
     "fractional_max_pool: pooling_ratio should be >= 1.0. Received: 0.5."),
    (lambda: tf.nn.fractional_avg_pool(X, 4.5), InvalidArgumentError,
     "fractional_avg_pool: a ratio of 4.5 leaves no windows over 3 elements."),
    (lambda: tf.nn.fractional_avg_pool(X[0], 1.5), InvalidArgumentError,
     "fractional_avg_pool: the input must have 4 axes. Received: shape (3, 4, 2)."),
    (lambda: tf.nn.lrn(X[0]), InvalidArgumentError,
     "local_response_normalization: expected 4 axes. Received: shape (3, 4, 2)."),
    (lambda: tf.nn.lrn(X, -1), InvalidArgumentError,
     "local_response_normalization: depth_radius must not be negative. Received: -1."),
]
# fmt: on


@pytest.mark.parametrize(("call", "error", "message"), ERRORS)
def test_errors(call, error, message):
    assert_raises(call, error, message)
