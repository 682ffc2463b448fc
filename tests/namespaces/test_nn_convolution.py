"""Convolutions: results recorded from TensorFlow, gradients, layouts and errors."""

import json
import pathlib

import numpy as np
import pytest

import retrograde as tf
from retrograde.errors import InvalidArgumentError, UnimplementedError
from tests.data.recorded_results import evaluate, is_close
from tests.namespaces.helpers import assert_gradients, assert_raises

DATA = pathlib.Path(__file__).parents[1] / "data"
EXPECTED = json.loads((DATA / "convolution_results.json").read_text())


def random_array(*shape):
    return np.random.default_rng(list(shape)).standard_normal(shape)


@pytest.mark.parametrize("expression", EXPECTED)
def test_result_matches_tensorflow(expression):
    actual = evaluate(expression, tf)

    assert is_close(actual, EXPECTED[expression]), actual


# fmt: off
DIFFERENTIABLE = {
    "conv1d_groups": (lambda x, w: tf.nn.conv1d(x, w, 2, "SAME"), (2, 6, 4), (3, 2, 6)),
    "conv1d_several_batch_axes":
        (lambda x, w: tf.nn.conv1d(x, w, 1, "VALID"), (2, 2, 5, 2), (2, 2, 3)),
    "conv1d_channels_first":
        (lambda x, w: tf.nn.conv1d(x, w, 1, "SAME", "NCW"), (2, 2, 5), (3, 2, 3)),
    "conv2d_dilated":
        (lambda x, w: tf.nn.conv2d(x, w, [2, 1], "SAME", dilations=[1, 3]),
         (2, 5, 7, 2), (3, 2, 2, 3)),
    "conv2d_channels_first":
        (lambda x, w: tf.nn.conv2d(x, w, 2, [[0, 0], [0, 0], [2, 1], [0, 1]], "NCHW"),
         (2, 3, 5, 4), (2, 3, 3, 2)),
    "conv2d_groups": (lambda x, w: tf.nn.conv2d(x, w, 1, "SAME"), (2, 4, 4, 6), (3, 3, 2, 3)),
    "conv2d_point": (lambda x, w: tf.nn.conv2d(x, w, 2, "VALID"), (2, 5, 4, 3), (1, 1, 3, 2)),
    "conv2d_wide_strides":
        (lambda x, w: tf.nn.conv2d(x, w, 3, "VALID"), (2, 8, 7, 2), (2, 2, 2, 2)),
    "conv3d_dilated":
        (lambda x, w: tf.nn.conv3d(x, w, 1, "SAME", dilations=[1, 1, 2, 2, 1]),
         (1, 3, 4, 4, 2), (2, 2, 3, 2, 1)),
    "conv3d_channels_first":
        (lambda x, w: tf.nn.conv3d(x, w, 2, "VALID", "NCDHW"), (1, 2, 4, 3, 5), (2, 2, 2, 2, 3)),
    "conv2d_transpose_groups":
        (lambda x, w: tf.nn.conv2d_transpose(x, w, [2, 4, 6, 4], 2), (2, 2, 3, 6), (3, 3, 2, 6)),
    "conv2d_transpose_channels_first":
        (lambda x, w: tf.nn.conv2d_transpose(x, w, [2, 2, 5, 4], [2, 1], "SAME", "NCHW"),
         (2, 3, 3, 4), (3, 2, 2, 3)),
    "conv2d_transpose_dilated":
        (lambda x, w: tf.nn.conv2d_transpose(x, w, [1, 7, 6, 2], 2, "SAME", dilations=2),
         (1, 4, 3, 3), (3, 2, 2, 3)),
    "conv3d_transpose":
        (lambda x, w: tf.nn.conv3d_transpose(x, w, [1, 3, 4, 5, 2], 2), (1, 2, 2, 3, 1),
         (2, 3, 2, 2, 1)),
    "depthwise_channels_first":
        (lambda x, w: tf.nn.depthwise_conv2d(x, w, [1, 1, 2, 2], "SAME", "NCHW"),
         (2, 3, 4, 5), (2, 3, 3, 2)),
    "depthwise_strided_and_dilated":
        (lambda x, w: tf.nn.depthwise_conv2d(x, w, [1, 2, 2, 1], "SAME", dilations=[2, 2]),
         (2, 6, 5, 3), (2, 2, 3, 1)),
    "conv": (lambda x, w: tf.conv(x, w, [1, 1, 1, 1], "SAME", groups=2), (1, 3, 3, 4),
             (2, 2, 2, 4)),
    "conv_channels_first":
        (lambda x, w: tf.conv(x, w, [1, 1, 2, 1], "VALID", data_format="CHANNELS_FIRST"),
         (1, 2, 5, 3), (2, 2, 2, 3)),
    "conv2d_backprop_input_v2":
        (lambda g, w: tf.conv2d_backprop_input_v2(np.zeros((1, 4, 5, 2)), w, g, [1, 2, 2, 1],
                                                  "SAME"), (1, 2, 3, 3), (3, 3, 2, 3)),
    "conv2d_backprop_filter_v2":
        (lambda x, g: tf.conv2d_backprop_filter_v2(
            x, np.zeros((2, 2, 1, 4)), g, [1, 1, 1, 1], "EXPLICIT",
            explicit_paddings=[0, 0, 1, 0, 0, 1, 0, 0]), (1, 3, 3, 2), (1, 3, 3, 4)),
}
# fmt: on


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradients_match_differences(name):
    f, *shapes = DIFFERENTIABLE[name]

    assert_gradients(f, *(random_array(*shape) for shape in shapes))


def test_second_order():
    x, w = (tf.constant(random_array(*shape)) for shape in [(1, 4, 4, 2), (2, 2, 2, 2)])

    def derivative(w):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(tf.nn.conv2d(x, w, 2, "SAME") ** 3)
        return tape.gradient(y, x)

    assert_gradients(derivative, w.numpy())


@pytest.mark.parametrize(
    ("last", "first"), [((0, 1, 2, 3), (0, 3, 1, 2)), ((0, 1, 2, 3, 4), (0, 4, 1, 2, 3))]
)
def test_channels_first(last, first):
    ndim = len(last) - 2
    x, w = random_array(*range(2, 2 + len(last))), random_array(*(2,) * ndim, len(last) + 1, 2)
    channels_last = tf.nn.convolution(x, w, 2, "SAME")
    formats = {2: "NCHW", 3: "NCDHW"}

    channels_first = tf.nn.convolution(np.transpose(x, first), w, 2, "SAME", formats[ndim])

    np.testing.assert_allclose(channels_first, np.transpose(channels_last, first), rtol=1e-12)


def test_groups_are_convolved_separately():
    x, w = random_array(2, 5, 5, 6), random_array(3, 3, 2, 9)

    grouped = tf.nn.conv2d(x, w, 1, "SAME")

    parts = [
        tf.nn.conv2d(x[..., 2 * i : 2 * i + 2], w[..., 3 * i : 3 * i + 3], 1, "SAME")
        for i in range(3)
    ]
    np.testing.assert_allclose(grouped, tf.concat(parts, -1), rtol=1e-12)


def test_a_separable_convolution_is_a_depthwise_and_a_pointwise_one():
    x, w, p = random_array(2, 5, 5, 3), random_array(3, 3, 3, 2), random_array(1, 1, 6, 4)

    y = tf.nn.separable_conv2d(x, w, p, [1, 2, 2, 1], "SAME")

    depthwise = tf.nn.depthwise_conv2d(x, w, [1, 2, 2, 1], "SAME")
    np.testing.assert_allclose(y, depthwise @ p[0, 0], rtol=1e-12)


@pytest.mark.parametrize("kernel", [(3, 3), (5, 1), (1, 4), (2, 2)])
@pytest.mark.parametrize("stride", [1, 2])
def test_blockwise_convolution_matches_single_images(kernel, stride, monkeypatch):
    monkeypatch.setattr("retrograde.ops._numpy_convolution.MAX_LINES_BYTES", 4096)
    monkeypatch.setattr("retrograde.ops._numpy_convolution.MAX_TAPS_BYTES", 4096)
    x, w = (tf.constant(random_array(*shape)) for shape in [(7, 8, 9, 3), (*kernel, 3, 4)])

    def outputs_and_gradients(x):
        with tf.GradientTape() as tape:
            tape.watch([x, w])
            y = tf.nn.conv2d(x, w, stride, "SAME")
        return [y, *tape.gradient(y, [x, w])]

    y, grad_x, grad_w = outputs_and_gradients(x)
    singles = [outputs_and_gradients(x[i : i + 1]) for i in range(7)]

    np.testing.assert_allclose(y, tf.concat([s[0] for s in singles], 0), rtol=1e-12)
    np.testing.assert_allclose(grad_x, tf.concat([s[1] for s in singles], 0), rtol=1e-12)
    np.testing.assert_allclose(grad_w, sum(s[2] for s in singles), rtol=1e-11)


def test_infinite_inputs_affect_only_windows_that_contain_them():
    x = np.ones((1, 2, 4, 1), np.float32)
    x[0, 0, 0, 0] = np.inf
    with tf.GradientTape() as tape:
        w = tf.ones([1, 2, 1, 1])
        tape.watch(w)
        y = tf.nn.conv2d(x, w, 1, "VALID")

    np.testing.assert_array_equal(y.numpy().ravel(), [np.inf, 2, 2, 2, 2, 2])
    np.testing.assert_array_equal(tape.gradient(y, w).numpy().ravel(), [np.inf, 6])


X, W = np.zeros((1, 3, 4, 2), np.float32), np.zeros((2, 2, 2, 3), np.float32)
G = np.zeros((1, 2, 3, 3), np.float32)
# fmt: off
ERRORS = [
    (lambda: tf.nn.conv2d(X, W, [1, 2, 2], "SAME"), ValueError,
     "conv2d: strides should be of length 1, 2 or 4. Received: strides=[1, 2, 2] of length 3."),
    (lambda: tf.nn.conv2d(X, W, [2, 1, 1, 1], "SAME"), UnimplementedError,
     "conv2d: strides is [2, 1, 1, 1]. Expected 1 for the batch and for the channels."),
    (lambda: tf.nn.conv2d(X, W, 0, "SAME"), InvalidArgumentError,
     "conv2d: strides should be larger than 0. Received: 0."),
    (lambda: tf.nn.conv2d(X, W, 1, "same"), InvalidArgumentError,
     "conv2d: padding is 'same'. Expected \"SAME\" or \"VALID\"."),
    (lambda: tf.nn.conv2d(X, W, 1, None), TypeError,
     'conv2d: expected "SAME" or "VALID", or a list of pairs, for padding. Received: None.'),
    (lambda: tf.nn.conv1d(X[0], W[0], 1, [[0, 0], [1, 1], [0, 0]]), TypeError,
     'conv1d: expected "SAME" or "VALID" for padding. Received: [[0, 0], [1, 1], [0, 0]].'),
    (lambda: tf.nn.conv2d(X, W, 1, [[1, 1], [0, 0]]), ValueError,
     "conv2d: a list of paddings must have 4 pairs. Received: [[1, 1], [0, 0]]."),
    (lambda: tf.nn.conv2d(X, W, 1, [0, 1, 1, 0]), ValueError,
     "conv2d: each element of a list of paddings must be a pair. Received: [0, 1, 1, 0]."),
    (lambda: tf.nn.conv2d(X, W, 1, [[0, 0], [-1, 0], [0, 0], [0, 0]]), InvalidArgumentError,
     "conv2d: paddings must not be negative. Received: [[0, 0], [-1, 0], [0, 0], [0, 0]]."),
    (lambda: tf.nn.conv2d(X, W, 1, [[0, 0], [1, 0], [0, 0], [0, 1]]), InvalidArgumentError,
     "conv2d: the batch and the channels cannot be padded. Received: "
     "[[0, 0], [1, 0], [0, 0], [0, 1]]."),
    (lambda: tf.nn.conv2d(X, W, 1, "SAME", "NHCW"), InvalidArgumentError,
     "conv2d: data_format is 'NHCW'. Expected \"NHWC\" or \"NCHW\"."),
    (lambda: tf.nn.conv1d(X[0], W[0], 1, "SAME", "NXC"), ValueError,
     "conv1d: data_format is 'NXC'. Expected \"NWC\" or \"NCW\"."),
    (lambda: tf.nn.conv2d(X[0], W, 1, "SAME"), InvalidArgumentError,
     "conv2d: the input must have 4 axes or more. Received: shape (3, 4, 2)."),
    (lambda: tf.nn.conv2d(X, W[0], 1, "SAME"), InvalidArgumentError,
     "conv2d: filters must have 4 axes. Received: shape (2, 2, 3)."),
    (lambda: tf.nn.conv2d(X, W[:0], 1, "SAME"), InvalidArgumentError,
     "conv2d: filters must not be empty. Received: shape (0, 2, 2, 3)."),
    (lambda: tf.nn.conv2d(X[..., :1], W, 1, "SAME"), InvalidArgumentError,
     "conv2d: the input has 1 channels, the filters have 2. The number of input channels must be "
     "a multiple of the filters' channels."),
    (lambda: tf.nn.conv2d(X, W[:, :, :1], 1, "SAME"), InvalidArgumentError,
     "conv2d: 3 output channels cannot be divided into 2 groups. Expected a multiple of 2."),
    (lambda: tf.nn.conv2d(X[:, :0], W, 1, "VALID"), InvalidArgumentError,
     "conv2d: a window of 2 elements is larger than the padded input, which has 0. Use a "
     "smaller window, a smaller dilation or more padding."),
    (lambda: tf.nn.convolution(X, W[0, 0]), ValueError,
     "convolution: filters must have 3, 4 or 5 axes. Received: shape (2, 3)."),
    (lambda: tf.nn.conv2d_transpose(G, W, [1, 9, 3, 2], 1), InvalidArgumentError,
     "conv2d_transpose: with channels last, an output of [1, 9, 3, 2] requires an input of shape "
     "(1, 9, 3, 3). Received: (1, 2, 3, 3)."),
    (lambda: tf.nn.conv2d_transpose(G, W, [2, 3, 2], 1), InvalidArgumentError,
     "conv2d_transpose: output_shape must have 4 elements. Received: [2, 3, 2]."),
    (lambda: tf.nn.conv2d_transpose(G, W, [1, -2, 3, 2], 1), InvalidArgumentError,
     "conv2d_transpose: dimensions must be >= 0. Received: [1, -2, 3, 2]."),
    (lambda: tf.nn.conv2d_transpose(G[0], W, [1, 2, 3, 2], 1), InvalidArgumentError,
     "conv2d_transpose: the input must have 4 axes. Received: shape (2, 3, 3)."),
    (lambda: tf.nn.conv_transpose(G, W, 5, 1), ValueError,
     "conv_transpose: expected a list or a tensor for output_shape. Received: 5."),
    (lambda: tf.nn.conv_transpose(G, W, [5], 1), ValueError,
     "conv_transpose: output_shape must be of length 3, 4 or 5. Received: [5]."),
    (lambda: tf.nn.depthwise_conv2d(X, W[:, :, :1], [1, 1, 1, 1], "SAME"), InvalidArgumentError,
     "depthwise_conv2d: the input has 2 channels, but the filter has 1. Expected the same number."),
    (lambda: tf.nn.depthwise_conv2d(X[0], W, [1, 1, 1, 1], "SAME"), InvalidArgumentError,
     "depthwise_conv2d: expected 4 axes. Received: shape (3, 4, 2)."),
    (lambda: tf.nn.depthwise_conv2d_backprop_input([3, 4, 2], W, G, [1, 1, 1, 1], "SAME"),
     InvalidArgumentError,
     "depthwise_conv2d_backprop_input: input_sizes must have 4 elements. Received: [3, 4, 2]."),
    (lambda: tf.nn.depthwise_conv2d_backprop_input([1, 2, 3, 2], W, G, [1, 1, 1, 1], "SAME"),
     InvalidArgumentError,
     "depthwise_conv2d_backprop_input: with channels last, out_backprop has shape (1, 2, 3, 3). "
     "Expected (1, 2, 3, 6), the shape of the convolution's output."),
    (lambda: tf.nn.depthwise_conv2d_backprop_input(
        [1, 2, 3, 1], W, np.zeros((1, 2, 3, 6), np.float32), [1, 1, 1, 1], "SAME"),
     InvalidArgumentError,
     "depthwise_conv2d_backprop_input: the input has 1 channels, but the filter has 2. Expected "
     "the same number."),
    (lambda: tf.nn.depthwise_conv2d_backprop_filter(X, [2, 2], G, [1, 1, 1, 1], "SAME"),
     InvalidArgumentError,
     "depthwise_conv2d_backprop_filter: filter_sizes must have 4 elements. Received: [2, 2]."),
    (lambda: tf.nn.separable_conv2d(X, W, np.zeros((2, 1, 6, 1)), [1, 1, 1, 1], "SAME"), ValueError,
     "separable_conv2d: pointwise_filter must have shape (1, 1, channels, outputs). Received: "
     "shape (2, 1, 6, 1)."),
    (lambda: tf.conv2d_backprop_filter_v2(X, W, np.zeros((1, 3, 4, 2), np.float32), [1, 1, 1, 1],
                                          "SAME"), InvalidArgumentError,
     "conv2d_backprop_filter_v2: the gradient has shape (2, 2, 2, 2), but the filter has shape "
     "(2, 2, 2, 3). Expected equal shapes."),
    (lambda: tf.conv(X, W, [1, 1, 1, 1], "SAME", data_format="NHWC"), InvalidArgumentError,
     "conv: data_format is 'NHWC'. Expected \"CHANNELS_LAST\" or \"CHANNELS_FIRST\"."),
    (lambda: tf.conv(X[0], W[0], [1, 1, 1], "SAME"), InvalidArgumentError,
     "conv: expected 2 or 3 axes between batch and channels. Received: shape (3, 4, 2) with "
     "batch_dims=1."),
    (lambda: tf.conv(X, W, [1, 1, 1, 1], "SAME", groups=2), InvalidArgumentError,
     "conv: the filter has 2 channels in 2 groups, but the input has 2. Expected the same number."),
]
# fmt: on


@pytest.mark.parametrize(("call", "error", "message"), ERRORS)
def test_errors(call, error, message):
    assert_raises(call, error, message)
