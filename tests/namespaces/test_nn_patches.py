"""Patches of images and volumes: values, gradients, dtypes, errors."""

import numpy as np
import pytest

import retrograde as tf
from retrograde.errors import InvalidArgumentError, OutOfRangeError, UnimplementedError
from retrograde.nn.patches import extract_patches
from tests.namespaces.helpers import NUMERIC, assert_gradients, assert_raises, of_dtype

IMAGE = np.arange(1.0, 13.0).reshape(1, 3, 4, 1)


def test_patches_are_flattened():
    patches = extract_patches(IMAGE, [1, 2, 2, 1], [1, 1, 2, 1], [1, 1, 1, 1], "VALID")

    expected = [[[1, 2, 5, 6], [3, 4, 7, 8]], [[5, 6, 9, 10], [7, 8, 11, 12]]]
    np.testing.assert_array_equal(patches.numpy(), [expected])


def test_channels_vary_fastest_in_a_patch():
    image = np.arange(8.0).reshape(1, 2, 2, 2)

    patches = extract_patches(image, [1, 2, 2, 1], [1, 1, 1, 1], [1, 1, 1, 1], "VALID")

    np.testing.assert_array_equal(patches.numpy().ravel(), image.ravel())


def test_same_padding_puts_the_odd_zero_at_the_end():
    patches = extract_patches(IMAGE, [1, 2, 2, 1], [1, 2, 3, 1], [1, 1, 1, 1], "SAME")

    expected = [[[1, 2, 5, 6], [4, 0, 8, 0]], [[9, 10, 0, 0], [12, 0, 0, 0]]]
    np.testing.assert_array_equal(patches.numpy(), [expected])


def test_rates_dilate_a_patch():
    patches = extract_patches(IMAGE, [1, 2, 2, 1], [1, 1, 1, 1], [1, 2, 3, 1], "VALID")

    np.testing.assert_array_equal(patches.numpy(), [[[[1, 4, 9, 12]]]])


def test_patches_of_volumes():
    volume = np.arange(16.0, dtype=np.float32).reshape(1, 2, 2, 4, 1)

    patches = tf.extract_volume_patches(volume, [1, 2, 1, 2, 1], [1, 1, 1, 2, 1], "VALID")

    expected = [[[0, 1, 8, 9], [2, 3, 10, 11]], [[4, 5, 12, 13], [6, 7, 14, 15]]]
    np.testing.assert_array_equal(patches.numpy(), [[expected]])


def test_gradients():
    rng = np.random.default_rng(1)
    image, volume = rng.standard_normal((2, 4, 5, 2)), rng.standard_normal((1, 3, 3, 4, 2))

    assert_gradients(
        lambda x: extract_patches(x, [1, 3, 2, 1], [1, 2, 1, 1], [1, 1, 2, 1], "SAME") ** 2, image
    )
    assert_gradients(
        lambda x: tf.extract_volume_patches(x, [1, 2, 2, 2, 1], [1, 1, 2, 1, 1], "SAME") ** 2,
        volume,
    )


@pytest.mark.parametrize("dtype", NUMERIC)
def test_patches_keep_the_dtype(dtype):
    patches = extract_patches(
        of_dtype(IMAGE, dtype), [1, 2, 2, 1], [1, 1, 1, 1], [1, 1, 1, 1], "SAME"
    )

    assert patches.dtype.name == dtype


def test_an_empty_batch_has_no_patches():
    patches = extract_patches(IMAGE[:0], [1, 2, 2, 1], [1, 1, 1, 1], [1, 1, 1, 1], "VALID")

    assert patches.shape == (0, 2, 3, 4)


# fmt: off
ERRORS = [
    ((IMAGE, 2, [1, 1, 1, 1], [1, 1, 1, 1], "SAME"), TypeError,
     "extract_patches: expected a list of integers for `sizes`. Received: 2."),
    ((IMAGE, [2, 2, 1], [1, 1, 1, 1], [1, 1, 1, 1], "SAME"), InvalidArgumentError,
     "extract_patches: `sizes` has 3 elements. Expected 4."),
    ((IMAGE, [1, 2, 2, 1], [1, 1, 1, 2], [1, 1, 1, 1], "SAME"), UnimplementedError,
     "extract_patches: `strides` is [1, 1, 1, 2]. Expected 1 for the batch and for the channels."),
    ((IMAGE, [1, 2, 2, 1], [1, 1, 1, 1], [1, 0, 1, 1], "SAME"), OutOfRangeError,
     "extract_patches: `rates` is [1, 0, 1, 1]. Expected positive numbers."),
    ((IMAGE, [1, 2, 2, 1], [1, 1, 1, 1], [1, 1, 1, 1], "same"), InvalidArgumentError,
     "extract_patches: padding is 'same'. Expected \"SAME\" or \"VALID\"."),
    ((IMAGE[0], [1, 2, 2, 1], [1, 1, 1, 1], [1, 1, 1, 1], "SAME"), InvalidArgumentError,
     "extract_patches: expected a tensor with 4 axes. Received: shape (3, 4, 1)."),
    ((IMAGE > 0, [1, 2, 2, 1], [1, 1, 1, 1], [1, 1, 1, 1], "SAME"), InvalidArgumentError,
     "extract_patches: dtype bool is not supported. Expected a numeric dtype."),
    ((IMAGE, [1, 2, 2, 1], [1, 1, 1, 1], [1, 4, 1, 1], "VALID"), InvalidArgumentError,
     "extract_patches: a window of 5 elements is larger than the padded input, which has 3. "
     "Use a smaller window, a smaller dilation or more padding."),
]
# fmt: on


@pytest.mark.parametrize(("arguments", "error", "message"), ERRORS)
def test_errors(arguments, error, message):
    assert_raises(lambda: extract_patches(*arguments), error, message)
