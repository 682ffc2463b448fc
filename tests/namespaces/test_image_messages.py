"""Every error of tf.image, word for word."""

import numpy as np
import pytest

import retrograde as tf
from tests.namespaces.helpers import assert_raises

IMAGE = np.ones([2, 3, 1], np.float32)
RGB = np.ones([2, 3, 3], np.float32)
BOXES = np.array([[0.0, 0.0, 1.0, 1.0], [0.0, 0.0, 0.5, 0.5]], np.float32)
SCORES = np.array([0.5, 0.9], np.float32)

MESSAGES = [
    (
        lambda: tf.image.resize(np.ones([2, 3]), [1, 1]),
        ValueError,
        "resize: `images` has shape (2, 3). Expected three axes, or four for a batch of images.",
    ),
    (
        lambda: tf.image.resize(IMAGE, [1.5, 1]),
        ValueError,
        "resize: `size` must be two int32 numbers. Received: [1.5, 1].",
    ),
    (
        lambda: tf.image.resize(IMAGE, [1]),
        ValueError,
        "resize: `size` must be two numbers, new_height and new_width. Received: [1].",
    ),
    (
        lambda: tf.image.resize(IMAGE, [1, 0]),
        tf.errors.InvalidArgumentError,
        "resize: output dimensions must be positive. Received: 1 and 0.",
    ),
    (
        lambda: tf.image.resize(IMAGE, [1, 1], "cubic"),
        ValueError,
        "resize: method 'cubic' is not known. Expected one of bilinear, nearest, bicubic, "
        "area, lanczos3, lanczos5, gaussian, mitchellcubic.",
    ),
    (
        lambda: tf.image.resize(IMAGE > 0, [1, 1]),
        tf.errors.InvalidArgumentError,
        "resize: `images` has dtype bool. Expected one of int8, uint8, int16, uint16, int32, "
        "int64, float16, bfloat16, float32, float64.",
    ),
    (
        lambda: tf.image.resize(IMAGE[:0], [1, 1]),
        tf.errors.InvalidArgumentError,
        "resize: images have shape (0, 3, 1). Expected a height, width and number of "
        "channels above 0.",
    ),
    (
        lambda: tf.image.resize_with_pad(IMAGE, 0, 1),
        ValueError,
        "resize_with_pad: target_height must be > 0. Received: 0.",
    ),
    (
        lambda: tf.image.flip_left_right(np.ones([2, 3])),
        ValueError,
        "flip_left_right: `image` has shape (2, 3). Expected at least three axes: height, "
        "width, channels.",
    ),
    (
        lambda: tf.image.flip_left_right(np.ones([2, 0, 3])),
        ValueError,
        "flip_left_right: `image` has shape (2, 0, 3). Expected a height, width and number "
        "of channels above 0.",
    ),
    (
        lambda: tf.image.flip_left_right(np.ones([1, 1, 2, 3, 1])),
        ValueError,
        "flip_left_right: `image` has shape (1, 1, 2, 3, 1). Expected three axes, or four "
        "for a batch of images.",
    ),
    (
        lambda: tf.image.rot90(IMAGE, [1, 2]),
        ValueError,
        "rot90: `k` must be one integer. Received: [1, 2].",
    ),
    (
        lambda: tf.image.central_crop(IMAGE, 1.5),
        ValueError,
        "central_fraction must be within (0, 1]. Received: 1.5.",
    ),
    (
        lambda: tf.image.crop_to_bounding_box(IMAGE, -1, 0, 1, 1),
        ValueError,
        "crop_to_bounding_box: offset_height must be >= 0. Received: -1.",
    ),
    (
        lambda: tf.image.crop_to_bounding_box(IMAGE, 0, 0, 0, 1),
        ValueError,
        "crop_to_bounding_box: target_height must be > 0. Received: 0.",
    ),
    (
        lambda: tf.image.crop_to_bounding_box(IMAGE, 0, 2, 1, 2),
        ValueError,
        "crop_to_bounding_box: width must be >= target + offset. Received: width 3, target "
        "2, offset 2.",
    ),
    (
        lambda: tf.image.crop_to_bounding_box(IMAGE, 1, 0, tf.constant(2), 2),
        tf.errors.InvalidArgumentError,
        "crop_to_bounding_box: height must be >= target + offset. Received: height 2, target "
        "2, offset 1.",
    ),
    (
        lambda: tf.image.pad_to_bounding_box(IMAGE, 0, 1, 2, 3),
        ValueError,
        "pad_to_bounding_box: width must be <= target - offset. Received: width 3, target 3, "
        "offset 1.",
    ),
    (
        lambda: tf.image.pad_to_bounding_box(IMAGE, 0, 0, 1, 3),
        ValueError,
        "pad_to_bounding_box: height must be <= target - offset. Received: height 2, target "
        "1, offset 0.",
    ),
    (
        lambda: tf.image.convert_image_dtype(IMAGE, tf.bool),
        AttributeError,
        "dtype must be either floating point or integer. Received: bool.",
    ),
    (
        lambda: tf.image.convert_image_dtype(IMAGE > 0, tf.float32),
        AttributeError,
        "image dtype must be either floating point or integer. Received: bool.",
    ),
    (
        lambda: tf.image.grayscale_to_rgb([1.0]),
        ValueError,
        "grayscale_to_rgb: `images` has shape (1,). Expected at least two axes.",
    ),
    (
        lambda: tf.image.grayscale_to_rgb([[1.0, 2.0]]),
        ValueError,
        "grayscale_to_rgb: `images` has shape (1, 2). Expected a last axis of size 1.",
    ),
    (
        lambda: tf.image.rgb_to_hsv(1.0),
        tf.errors.InvalidArgumentError,
        "rgb_to_hsv: `images` is a scalar. Expected at least one axis, the channels.",
    ),
    (
        lambda: tf.image.rgb_to_hsv(IMAGE),
        tf.errors.FailedPreconditionError,
        "rgb_to_hsv: `images` has shape (2, 3, 1). Expected 3 channels.",
    ),
    (
        lambda: tf.image.hsv_to_rgb(tf.constant([1, 2, 3])),
        tf.errors.InvalidArgumentError,
        "hsv_to_rgb: `images` has dtype int32. Expected one of float16, bfloat16, float32, "
        "float64.",
    ),
    (
        lambda: tf.image.adjust_gamma(RGB, -1),
        ValueError,
        "adjust_gamma: gamma should be a non-negative real number. Received: -1.",
    ),
    (
        lambda: tf.image.adjust_hue(RGB, 1.5),
        ValueError,
        "adjust_hue: delta must be in the interval [-1, 1]. Received: 1.5.",
    ),
    (
        lambda: tf.image.adjust_hue(IMAGE, 0.5),
        tf.errors.InvalidArgumentError,
        "adjust_hue: images have shape (2, 3, 1). Expected 3 channels.",
    ),
    (
        lambda: tf.image.adjust_saturation(RGB[0], 0.5),
        tf.errors.InvalidArgumentError,
        "adjust_saturation: images have shape (3, 3). Expected at least three axes: height, "
        "width, channels.",
    ),
    (
        lambda: tf.image.adjust_contrast(RGB, [0.5]),
        tf.errors.InvalidArgumentError,
        "adjust_contrast: contrast_factor must be a scalar of dtype float32. Received: shape "
        "(1,), float32.",
    ),
]


@pytest.mark.parametrize(("call", "error", "message"), MESSAGES)
def test_error_says_what_was_received_and_what_expected(call, error, message):
    assert_raises(call, error, message)
