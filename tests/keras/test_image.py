"""Compares `keras.ops.image` with NumPy, SciPy and JAX, and gradients with finite differences."""

import colorsys
import itertools

import jax
import numpy as np
import pytest
import scipy.ndimage

import retrograde as tf
from retrograde import keras
from retrograde.keras_backend.ops.image import compute_homography_matrix
from tests.namespaces.helpers import assert_gradients, assert_raises

image = keras.ops.image
rng = np.random.default_rng(2)
FORMATS = ("channels_last", "channels_first")


@pytest.fixture(autouse=True)
def _float64_in_jax():
    with jax.enable_x64(True):
        yield


def to_format(x, data_format):
    return np.moveaxis(x, -1, -3) if data_format == "channels_first" else x


def assert_close(actual, expected, rtol=1e-12, atol=1e-12):
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.dtype == expected.dtype
    np.testing.assert_allclose(actual, expected, rtol=rtol, atol=atol)


# Color

RGB = rng.uniform(0.1, 0.9, (2, 3, 4, 3))


@pytest.mark.parametrize("data_format", FORMATS)
@pytest.mark.parametrize("batch", [True, False])
def test_color_conversions(data_format, batch):
    channels_last = RGB if batch else RGB[0]
    x = to_format(channels_last, data_format)
    hsv = np.apply_along_axis(lambda c: colorsys.rgb_to_hsv(*c), -1, channels_last)
    gray = channels_last @ np.array([[0.2989], [0.5870], [0.1140]])

    assert_close(image.rgb_to_hsv(x, data_format), to_format(hsv, data_format), rtol=1e-7)
    assert_close(
        image.hsv_to_rgb(to_format(hsv, data_format), data_format), x, rtol=1e-7, atol=1e-7
    )
    assert_close(image.rgb_to_grayscale(x, data_format), to_format(gray, data_format))
    for function in (image.rgb_to_hsv, image.hsv_to_rgb, image.rgb_to_grayscale):
        assert_gradients(lambda x, function=function: function(x, data_format), x)


def test_grayscale_keeps_gray_images_and_integer_dtypes():
    gray = np.full((2, 2, 1), 7, "uint8")

    assert_close(image.rgb_to_grayscale(gray), gray)
    assert_close(image.rgb_to_grayscale(np.full((2, 2, 3), 100, "uint8")), gray * 0 + 99)


def test_hues_wrap_around():
    x = np.array([[[0.3, 0.5, 0.7]]])

    assert_close(image.hsv_to_rgb(x + np.array([1, 0, 0])), image.hsv_to_rgb(x), rtol=1e-9)


# Resizing


@pytest.mark.parametrize("antialias", [False, True])
@pytest.mark.parametrize("interpolation", ["nearest", "bilinear", "bicubic", "lanczos3"])
def test_resize_matches_tensorflow(interpolation, antialias):
    x = rng.uniform(size=(2, 7, 6, 3)).astype("float32")

    for size in ((4, 9), (7, 3), (14, 12)):
        expected = tf.image.resize(x, size, interpolation, antialias=antialias)
        y = image.resize(x, size, interpolation, antialias)
        assert_close(y, expected, rtol=1e-5, atol=1e-6)
        channels_first = image.resize(
            np.moveaxis(x[0], -1, 0), size, interpolation, antialias, data_format="channels_first"
        )
        assert_close(
            np.moveaxis(np.asarray(channels_first), 0, -1), expected[0], rtol=1e-5, atol=1e-6
        )
    x = x.astype("float64")
    assert_gradients(lambda x: image.resize(x, (4, 9), interpolation, antialias), x)


def test_resize_rounds_and_clips_integers():
    x = np.array([0, 1, 254, 255], "uint8").reshape(2, 2, 1)
    y = np.asarray(image.resize(x, (4, 4)))[..., 0]

    assert y.dtype == "uint8"
    assert y[:, 0].tolist() == [0, 64, 190, 254] and y[:, 3].tolist() == [1, 64, 192, 255]
    assert np.asarray(image.resize(x, (9, 9), "bicubic")).max() == 255


def test_resize_crops_or_pads_to_the_aspect_ratio():
    x = rng.uniform(size=(4, 8, 1))

    assert_close(image.resize(x, (4, 4), crop_to_aspect_ratio=True), x[:, 2:6])
    padded = np.asarray(image.resize(x, (8, 8), pad_to_aspect_ratio=True, fill_value=0.5))
    assert_close(padded[2:6], x)
    assert (padded[:2] == 0.5).all() and (padded[6:] == 0.5).all()


@pytest.mark.parametrize("antialias", [False, True])
@pytest.mark.parametrize("method", ["linear", "cubic", "lanczos3", "lanczos5"])
def test_scale_and_translate(method, antialias):
    x = rng.uniform(size=(6, 7, 2))
    scale, translation = np.array([0.63, 1.71]), np.array([0.4, -1.3])

    def call(x, scale, translation):
        return image.scale_and_translate(
            x, (5, 9, 2), scale, translation, (0, 1), method, antialias
        )

    expected = jax.image.scale_and_translate(
        x, (5, 9, 2), (0, 1), scale, translation, method, antialias
    )
    assert_close(call(x, scale, translation), expected, rtol=1e-6, atol=1e-7)
    assert_gradients(call, x, scale, translation)


# Interpolation

MODES = {  # Keras's name -> NumPy's
    "constant": "constant",
    "nearest": "edge",
    "wrap": "wrap",
    "mirror": "reflect",
    "reflect": "symmetric",
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("order", [0, 1])
def test_map_coordinates(order, mode):
    """Compares with SciPy on a padded array in which no coordinate is out of bounds."""
    x, coordinates = rng.uniform(size=(4, 5)), rng.uniform(-6, 10, (2, 3, 7))
    options = {"constant_values": 0.3} if mode == "constant" else {}
    padded = np.pad(x, 8, mode=MODES[mode], **options)
    expected = scipy.ndimage.map_coordinates(padded, coordinates + 8, order=order)

    def call(x, *coordinates):
        return image.map_coordinates(x, *coordinates, order, mode, 0.3)

    assert_close(call(x, coordinates), expected)
    if order:
        assert_gradients(call, x, coordinates)
    else:
        assert_gradients(lambda x: call(x, coordinates), x)


def test_map_coordinates_rounds_integers():
    x = np.array([0, 3, 10], "uint8")

    assert np.asarray(image.map_coordinates(x, [[0.5, 1.25]], 1)).tolist() == [2, 5]


TRANSFORM = np.array(
    [
        [0.913, 0.227, -0.319, -0.117, 1.131, 0.437, 0.021, -0.013],
        [1.213, 0.071, 1.137, 0.313, 0.829, -2.217, 0, 0],
    ]
)


def project(x, transform):
    """Projects an image with SciPy."""
    rows, columns = np.mgrid[: x.shape[0], : x.shape[1]]
    a0, a1, a2, b0, b1, b2, c0, c1 = transform
    k = c0 * columns + c1 * rows + 1
    coordinates = (b0 * columns + b1 * rows + b2) / k, (a0 * columns + a1 * rows + a2) / k
    padded = np.pad(x, ((30, 30), (30, 30), (0, 0)), constant_values=0.2)
    coordinates = [coordinate + 30 for coordinate in coordinates]
    channels = np.moveaxis(padded, -1, 0)
    return np.stack([scipy.ndimage.map_coordinates(c, coordinates, order=1) for c in channels], -1)


@pytest.mark.parametrize("data_format", FORMATS)
def test_affine_transform(data_format):
    channels_last = rng.uniform(size=(2, 5, 6, 3))
    x = to_format(channels_last, data_format)

    def call(x, transform):
        return image.affine_transform(x, transform, fill_value=0.2, data_format=data_format)

    expected = np.stack([project(*pair) for pair in zip(channels_last, TRANSFORM, strict=True)])
    assert_close(call(x, TRANSFORM), to_format(expected, data_format), rtol=1e-10)
    assert_close(call(x[0], TRANSFORM[0]), to_format(expected[0], data_format), rtol=1e-10)
    assert_gradients(call, x, TRANSFORM)


START = np.array([[[0.0, 0.0], [5.0, 0.0], [0.0, 4.0], [5.0, 4.0]]])
END = START + rng.uniform(-0.7, 0.7, START.shape)


def test_homography_maps_end_points_to_start_points():
    a0, a1, a2, b0, b1, b2, c0, c1 = np.asarray(compute_homography_matrix(START, END))[0]
    x, y = END[0].T
    k = c0 * x + c1 * y + 1
    mapped = np.stack([(a0 * x + a1 * y + a2) / k, (b0 * x + b1 * y + b2) / k], 1)

    np.testing.assert_allclose(mapped, START[0], atol=1e-12)
    assert_gradients(compute_homography_matrix, START, END, rtol=1e-5)


def test_perspective_transform():
    x = rng.uniform(size=(2, 5, 6, 3))
    transform = np.asarray(compute_homography_matrix(START, END))[0]
    expected = np.stack([project(img, transform) for img in x])

    def call(x, start, end):
        return image.perspective_transform(x, start, end, fill_value=0.2)

    assert_close(call(x, START[0], END[0]), expected, rtol=1e-9)
    assert_gradients(call, x, START, END, rtol=1e-5)


@pytest.mark.parametrize("data_format", FORMATS)
def test_elastic_transform(data_format):
    x = to_format(rng.uniform(size=(2, 9, 8, 3)), data_format)

    def call(x, alpha=3.0, seed=1):
        return image.elastic_transform(x, alpha, 1.5, seed=seed, data_format=data_format)

    assert_close(call(x), call(x))
    assert (np.asarray(call(x)) != np.asarray(call(x, seed=2))).any()
    assert_close(call(x, alpha=0.0), x)
    assert_gradients(call, x)


# Filters


@pytest.mark.parametrize("data_format", FORMATS)
@pytest.mark.parametrize("size", [(3, 3), (5, 2)])
def test_gaussian_blur(size, data_format):
    channels_last = rng.uniform(size=(2, 6, 7, 3))
    x, sigma = to_format(channels_last, data_format), np.array([0.8, 1.3])

    def weights(n, sigma):
        w = np.exp(-0.5 * ((np.arange(n) - (n - 1) / 2) / sigma) ** 2)
        return w / w.sum()

    horizontal, vertical = map(weights, size, sigma)
    paddings = [(0, 0), *(((n - 1) // 2, n // 2) for n in size[::-1]), (0, 0)]
    padded = np.pad(channels_last, paddings)
    expected = sum(
        vertical[i] * horizontal[j] * padded[:, i : i + 6, j : j + 7]
        for i, j in itertools.product(range(size[1]), range(size[0]))
    )

    def call(x, sigma):
        return image.gaussian_blur(x, size, sigma, data_format)

    assert_close(call(x, sigma), to_format(expected, data_format))
    assert_gradients(call, x, sigma)


def test_sobel_edges_match_tensorflow():
    x = rng.uniform(size=(2, 6, 7, 3))

    assert_close(image.sobel_edges(x), tf.image.sobel_edges(x))
    channels_first = image.sobel_edges(np.moveaxis(x, -1, 1), "channels_first")
    assert_close(np.moveaxis(np.asarray(channels_first), 1, -2), tf.image.sobel_edges(x))
    assert_gradients(image.sobel_edges, x)


def test_invalid_image_rank_raises():
    message = (
        "Invalid images rank: expected rank 3 (single image) or rank 4 (batch of images). "
        "Received input with shape: images.shape=(2, 2)"
    )
    flat = np.ones((2, 2))
    for call in (
        lambda: image.rgb_to_grayscale(flat),
        lambda: image.rgb_to_hsv(flat),
        lambda: image.affine_transform(flat, TRANSFORM),
        lambda: image.perspective_transform(flat, START, END),
        lambda: image.elastic_transform(flat),
        lambda: image.gaussian_blur(flat),
    ):
        assert_raises(call, ValueError, message)
