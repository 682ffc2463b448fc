"""Pooling: results recorded from TensorFlow, ties, gradients, layouts and errors."""

import json
import pathlib

import numpy as np
import pytest

import retrograde as tf
from retrograde.errors import InvalidArgumentError, UnimplementedError
from tests.data.recorded_results import evaluate, is_close
from tests.namespaces.helpers import assert_gradients, assert_raises, gradient

DATA = pathlib.Path(__file__).parents[1] / "data"
EXPECTED = json.loads((DATA / "pooling_results.json").read_text())


def random_array(*shape):
    return np.random.default_rng(list(shape)).standard_normal(shape)


@pytest.mark.parametrize("expression", EXPECTED)
def test_result_matches_tensorflow(expression):
    actual = evaluate(expression, tf)

    assert is_close(actual, EXPECTED[expression]), actual


# fmt: off
DIFFERENTIABLE = {
    "max_pool1d_channels_first": (lambda x: tf.nn.max_pool1d(x, 3, 2, "SAME", "NCW"), (2, 2, 7)),
    "max_pool2d_channels_first":
        (lambda x: tf.nn.max_pool2d(x, [3, 2], 1, [[0, 0], [0, 0], [1, 2], [0, 1]], "NCHW"),
         (2, 2, 5, 4)),
    "max_pool2d_over_channels":
        (lambda x: tf.nn.max_pool2d(x, [1, 3, 1, 1], [1, 3, 1, 1], "SAME", "NCHW"), (2, 6, 2, 3)),
    "max_pool3d": (lambda x: tf.nn.max_pool3d(x, [2, 3, 1], [1, 2, 2], "SAME"), (1, 3, 4, 5, 2)),
    "max_pool3d_channels_first":
        (lambda x: tf.nn.max_pool3d(x, 2, 1, "VALID", "NCDHW"), (1, 2, 3, 4, 3)),
    "max_pool_dilated":
        (lambda x: tf.nn.pool(x, [2, 3], "MAX", [2, 1], "SAME", dilations=[3, 2]), (2, 7, 6, 2)),
    "max_pool_with_argmax":
        (lambda x: tf.nn.max_pool_with_argmax(x, 3, 2, "SAME")[0], (2, 5, 6, 2)),
    "avg_pool1d_channels_first": (lambda x: tf.nn.avg_pool1d(x, 3, 2, "SAME", "NCW"), (2, 2, 7)),
    "avg_pool2d_channels_first":
        (lambda x: tf.nn.avg_pool2d(x, [3, 2], [2, 1], "SAME", "NCHW"), (2, 2, 5, 4)),
    "avg_pool3d": (lambda x: tf.nn.avg_pool3d(x, [2, 3, 1], [1, 2, 2], "SAME"), (1, 3, 4, 5, 2)),
    "avg_pool_dilated":
        (lambda x: tf.nn.pool(x, [2, 3], "AVG", [1, 2], "SAME", dilations=[2, 1]), (2, 6, 6, 2)),
}
# fmt: on


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradients_match_differences(name):
    f, shape = DIFFERENTIABLE[name]

    assert_gradients(lambda x: f(x) ** 2, random_array(*shape))


def test_second_order_gradient_of_max_pool():
    def derivative(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(tf.nn.max_pool2d(x, 2, 1, "SAME") ** 3)
        return tape.gradient(y, x)

    assert_gradients(derivative, random_array(1, 4, 5, 2))


def test_in_a_tie_the_first_maximum_gets_the_gradient():
    x = np.float32([[1, 3, 0], [3, 3, 2], [3, 1, 3]]).reshape(1, 3, 3, 1)

    (g,) = gradient(lambda x: tf.nn.max_pool2d(x, 3, 1, "VALID"), x)

    np.testing.assert_array_equal(g.ravel(), [0, 1, 0, 0, 0, 0, 0, 0, 0])


def test_in_a_tie_the_first_maximum_of_a_volume_gets_the_gradient():
    (g,) = gradient(lambda x: tf.nn.max_pool3d(x, 2, 1, "VALID"), np.ones((1, 2, 2, 2, 1)))

    np.testing.assert_array_equal(g.ravel(), [1, 0, 0, 0, 0, 0, 0, 0])


def test_infinite_gradients_reach_only_the_maximum():
    x = np.float32([[[1], [2], [4], [3]]])

    (g,) = gradient(
        lambda x: tf.nn.max_pool1d(x, 2, 2, "VALID"), x, weights=tf.constant([[[np.inf], [1.0]]])
    )

    np.testing.assert_array_equal(g.ravel(), [0, np.inf, 1, 0])


def test_negative_infinity_is_larger_than_padding():
    x = np.full((1, 2, 1), -np.inf, np.float32)

    (g,) = gradient(lambda x: tf.nn.max_pool1d(x, 3, 1, "SAME"), x)

    np.testing.assert_array_equal(tf.nn.max_pool1d(x, 3, 1, "SAME").numpy(), x)
    np.testing.assert_array_equal(g.ravel(), [2, 0])


@pytest.mark.parametrize("f", [tf.nn.max_pool2d, tf.nn.avg_pool2d])
def test_threaded_pooling_matches_single_images(f):
    x = tf.constant(random_array(150, 14, 16, 8))

    def outputs_and_gradients(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x, 2, 2, "SAME")
        return y, tape.gradient(y, x)

    y, g = outputs_and_gradients(x)
    parts = [outputs_and_gradients(x[i : i + 1]) for i in (0, 77, 149)]

    for i, (y_part, g_part) in zip((0, 77, 149), parts, strict=True):
        np.testing.assert_array_equal(y[i : i + 1], y_part)
        np.testing.assert_array_equal(g[i : i + 1], g_part)


X = np.zeros((1, 3, 4, 2), np.float32)
# fmt: off
ERRORS = [
    (lambda: tf.nn.max_pool2d(X, [2, 2, 2], 1, "SAME"), ValueError,
     "max_pool2d: ksize should be of length 1, 2 or 4. Received: ksize=[2, 2, 2] of length 3."),
    (lambda: tf.nn.avg_pool2d(X, [1, 2, 2, 2], 1, "SAME"), UnimplementedError,
     "avg_pool2d: ksize is [1, 2, 2, 2]. Expected 1 for the batch and for the channels."),
    (lambda: tf.nn.max_pool2d(X[0], 2, 1, "SAME"), InvalidArgumentError,
     "max_pool2d: the input must have 4 axes. Received: shape (3, 4, 2)."),
    (lambda: tf.nn.avg_pool(X[0, 0], 2, 1, "SAME"), ValueError,
     "avg_pool: the input must have 3, 4 or 5 axes. Received: shape (4, 2)."),
    (lambda: tf.nn.max_pool2d(X, 2, 1, [[0, 0], [2, 0], [0, 0], [0, 0]]), InvalidArgumentError,
     "max_pool2d: padding must be smaller than the window. Received: [(2, 0), (0, 0)] for [2, 2]."),
    (lambda: tf.nn.avg_pool2d(tf.zeros([1, 2, 2, 1], tf.int32), 2, 1, "SAME"), InvalidArgumentError,
     "average_pool: dtype int32 is not supported. Expected one of float16, bfloat16, float32, "
     "float64."),
    (lambda: tf.nn.pool(X, [2, 2], "SUM"), ValueError,
     "pool: pooling_type is 'SUM'. Expected \"MAX\" or \"AVG\"."),
    (lambda: tf.nn.pool(X, [2], "MAX"), ValueError,
     "pool: the window has 1 axes and the input has shape (1, 3, 4, 2). Expected 1, 2 or 3 "
     "window axes, and two more axes in the input."),
    (lambda: tf.nn.max_pool_with_argmax(X, 2, 2, "SAME", "NCHW"), ValueError,
     "max_pool_with_argmax: data_format is 'NCHW'. Expected \"NHWC\"."),
    (lambda: tf.nn.max_pool_with_argmax(X, 2, 2, "SAME", output_dtype=tf.int16),
     InvalidArgumentError,
     "max_pool_with_argmax: output_dtype is int16. Expected int32 or int64."),
]
# fmt: on


@pytest.mark.parametrize(("call", "error", "message"), ERRORS)
def test_errors(call, error, message):
    assert_raises(call, error, message)
