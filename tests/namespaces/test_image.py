"""tf.image: values, dtypes, errors and gradients agree with TensorFlow."""

import json
import pathlib
import re

import numpy as np
import pytest

import retrograde as tf
from retrograde.image._resampling_weights import resize_weights
from tests.data.recorded_results import evaluate
from tests.namespaces.helpers import assert_gradients, gradient

DATA = pathlib.Path(__file__).parents[1] / "data"
FILES = sorted(DATA.glob("image_*_results.json"))
EXPECTED = {call: a for path in FILES for call, a in json.loads(path.read_text()).items()}


EPSILON = {"float16": 1e-3, "bfloat16": 8e-3, "float32": 3e-6, "float64": 3e-6}


@pytest.mark.parametrize("call", EXPECTED)
def test_result_agrees_with_tensorflow(call):
    # In SSIM, variances are small differences of large means, so rounding errors are larger.
    assert_same(evaluate(call, tf), EXPECTED[call], times=20 if "ssim" in call else 1)


def assert_same(actual, expected, times):
    """Asserts that integers and shapes are equal, and floats close in float32 precision."""
    if isinstance(expected, list):
        assert len(actual) == len(expected)
        for a, e in zip(actual, expected, strict=True):
            assert_same(a, e, times)
    elif isinstance(expected, dict) and expected.get("dtype") in EPSILON:
        bound = EPSILON[expected["dtype"]] * times
        a, e = (np.array(x.pop("value"), float) for x in (actual, {**expected}))
        scale = np.max(np.abs(e), initial=0, where=np.isfinite(e))
        np.testing.assert_allclose(a, e, rtol=bound, atol=bound * scale)
        assert actual == {key: expected[key] for key in ("dtype", "shape")}
    else:
        assert actual == expected


# Gradients that TensorFlow does not define


RNG = np.random.default_rng(5)
COLORS = RNG.permuted(np.tile([0.2, 0.5, 0.9], (2, 3, 1)), axis=-1) + RNG.uniform(0, 0.1, (2, 3, 3))


def weighted_sum(y):
    """Returns a weighted sum, so that errors cannot cancel out."""
    weights = np.random.default_rng(3).uniform(0.5, 1.5, y.shape)
    return tf.reduce_sum(tf.cast(y, tf.float64) * weights)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: tf.image.adjust_contrast(x, 1.7),
        lambda x: tf.image.adjust_hue(x, 0.3),
        lambda x: tf.image.adjust_saturation(x, 0.7),
        lambda x: tf.image.resize(x, [3, 2], "area"),
        lambda x: tf.image.resize(x, [3, 2], "lanczos3"),
    ],
)
def test_gradients_of_float32_computations_agree_with_finite_differences(f):
    (g,) = gradient(lambda x: weighted_sum(f(x)), COLORS)
    direction = RNG.uniform(0.5, 1.5, COLORS.shape)
    forward, backward = (
        float(weighted_sum(f(tf.constant(COLORS + h * direction)))) for h in (1e-3, -1e-3)
    )

    assert g.dtype == np.float64
    np.testing.assert_allclose(np.sum(g * direction), (forward - backward) / 2e-3, rtol=1e-3)


def test_gradients_of_hsv_conversions():
    assert_gradients(tf.image.rgb_to_hsv, COLORS)
    assert_gradients(tf.image.hsv_to_rgb, COLORS)


def test_second_order_gradients_of_hsv_conversions():
    assert_second_order(tf.image.rgb_to_hsv, COLORS)
    assert_second_order(tf.image.hsv_to_rgb, COLORS)


def assert_second_order(f, x):
    """Asserts that the second-order gradient agrees with finite differences of the gradient."""
    weights = np.random.default_rng(3).uniform(0.5, 1.5, f(tf.constant(x)).shape)

    def first(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x) * weights
        return tape.gradient(y, x)

    assert_gradients(first, x, rtol=1e-6)


def test_saturation_has_no_gradient_for_a_zero_channel():
    """As in TensorFlow."""
    (g,) = gradient(lambda x: tf.image.rgb_to_hsv(x)[1], [0.0, 0.4, 0.8])

    np.testing.assert_array_equal(g, [0.0, 0.0, 0.0])


@pytest.mark.parametrize(
    "shape", [(3, 150, 260, 3), (300, 200, 3), (1, 90, 70, 40), (2, 60, 70, 40)]
)
def test_blockwise_resize_of_large_images_equals_the_matrix_product(shape):
    """Large images are resized in blocks by several threads."""
    x = np.random.default_rng(2).random(shape).astype(np.float32)

    y = tf.image.resize(x, [140, 151], "bicubic")

    down, across = (
        resize_weights(old, new, "bicubic", False).matrix
        for old, new in zip(shape[-3:-1], (140, 151), strict=True)
    )
    expected = np.einsum("ih,jw,...hwc->...ijc", down, across, x, optimize=True)
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-5)


def test_a_nan_pixel_affects_only_nearby_output_pixels():
    image = np.ones([8, 8, 1], np.float32)
    image[0, 0] = np.nan

    y = tf.image.resize(image, [4, 4], "lanczos3").numpy()

    assert np.isnan(y[0, 0])
    assert not np.isnan(y[3, 3])
    assert not np.isnan(gradient(lambda x: tf.image.resize(x, [4, 4]), image)[0]).any()


TRANSFORMABLE = {
    "resize": lambda x: tf.image.resize(x, [4, 7]),
    "nearest": lambda x: tf.image.resize(x, [4, 7], "nearest"),
    "hsv": tf.image.rgb_to_hsv,
    "hue": lambda x: tf.image.adjust_hue(x, 0.2),
    "contrast": lambda x: tf.image.adjust_contrast(x, 2.0),
    "standardized": tf.image.per_image_standardization,
    "rotated": tf.image.rot90,
    "crops": lambda x: tf.image.crop_and_resize(x[None], [[0.1, 0.1, 0.9, 0.8]], [0], [3, 3]),
    "edges": lambda x: tf.image.sobel_edges(x[None]),
    "ssim": lambda x: tf.image.ssim(x, x * 0.9, 1.0, filter_size=3),
}


@pytest.mark.parametrize("name", TRANSFORMABLE)
def test_functions_support_vectorized_map_jacobians_and_forward_mode(name):
    f = TRANSFORMABLE[name]
    images = tf.constant(np.random.default_rng(1).random((3, 6, 5, 3)), tf.float32)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(images)
        y = f(images[0])
    with tf.autodiff.ForwardAccumulator(images, 0.5 * tf.ones_like(images)) as accumulator:
        z = f(images[0])

    jacobian = tape.jacobian(y, images).numpy().reshape(-1, 270)
    mapped = tf.vectorized_map(f, images)

    np.testing.assert_allclose(mapped[0], y, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(mapped[2], f(images[2]), rtol=1e-5, atol=1e-5)
    jvp = np.ravel(accumulator.jvp(z))
    np.testing.assert_allclose(jvp, jacobian.sum(1) / 2, rtol=1e-4, atol=1e-4)
    vjp = np.ravel(tape.gradient(y, images))
    np.testing.assert_allclose(vjp, jacobian.sum(0), rtol=1e-4, atol=1e-4)


# Quality, crops and boxes


def test_gradients_of_quality_metrics_and_edges():
    rng = np.random.default_rng(1)
    a = rng.random((2, 6, 5, 2))
    assert_gradients(tf.image.sobel_edges, a)
    assert_gradients(tf.image.total_variation, a)
    assert_gradients(lambda x: tf.stack(tf.image.image_gradients(x)), a)


def test_ssim_agrees_with_its_definition():
    """Compares with an explicit loop over windows in float64."""
    rng = np.random.default_rng(2)
    a, b = rng.random((2, 9, 8, 2))[..., :1]
    gaussian = np.exp(-((np.arange(3) - 1) ** 2) / (2 * 0.7**2))
    window = np.outer(gaussian, gaussian)[..., None] / gaussian.sum() ** 2
    index = []
    for i, j in np.ndindex(7, 6):
        x, y = (v[i : i + 3, j : j + 3] for v in (a, b))
        (mx, my), mxy = ((window * v).sum() for v in (x, y)), (window * x * y).sum()
        vx, vy = (window * x * x).sum() - mx**2, (window * y * y).sum() - my**2
        luminance = (2 * mx * my + 0.01**2) / (mx**2 + my**2 + 0.01**2)
        index.append(luminance * (2 * (mxy - mx * my) + 0.03**2) / (vx + vy + 0.03**2))

    y = tf.image.ssim(a, b, 1.0, filter_size=3, filter_sigma=0.7, return_index_map=True)

    np.testing.assert_allclose(y.numpy().ravel(), index, rtol=1e-4, atol=1e-5)


def test_ssim_multiscale_is_1_for_equal_images_and_low_for_different_ones():
    image = np.random.default_rng(3).random((64, 64, 3)).astype(np.float32)

    assert float(tf.image.ssim_multiscale(image, image, 1.0, filter_size=4)) == 1.0
    assert 0 < float(tf.image.ssim_multiscale(image, image[::-1], 1.0, filter_size=4)) < 0.5


def test_second_order_gradients_of_crops_with_respect_to_images_and_boxes():
    """TensorFlow does not define the second-order gradient with respect to the boxes."""
    rng = np.random.default_rng(4)
    image = tf.constant(rng.random((2, 5, 4, 1)), tf.float32)
    boxes = tf.constant([[0.1, 0.2, 0.83, 0.9], [0.7, 0.15, 0.22, 0.6]])
    weights = tf.constant(rng.random((2, 3, 2, 1)), tf.float32)

    def box_gradient(image, boxes):
        with tf.GradientTape() as tape:
            tape.watch(boxes)
            y = tf.image.crop_and_resize(image, boxes, [0, 1], [3, 2]) * weights
        return tf.reduce_sum(tape.gradient(y, boxes) * [[0.3, -0.7, 0.5, 0.9]])

    g_image, g_boxes = gradient(box_gradient, image, boxes)
    for x, g, step in ((image, g_image, 0.5), (boxes, g_boxes, 1e-3)):
        direction = tf.constant(rng.random(x.shape), tf.float32)
        moved = [(x + h * direction, boxes) if x is image else (image, x + h * direction)
                 for h in (step, -step)]  # fmt: skip
        forward, backward = (float(box_gradient(*pair)) for pair in moved)
        product = np.sum(g * direction.numpy())
        np.testing.assert_allclose(product, (forward - backward) / (2 * step), rtol=2e-3)


@pytest.mark.parametrize("noise", ["uniform", "gaussian"])
def test_glimpse_outside_the_image_is_noise_in_the_value_range_of_the_image(noise):
    image = np.random.default_rng(5).uniform(2, 3, (2, 4, 4, 2)).astype(np.float32)

    y = tf.image.extract_glimpse(image, [12, 12], [[0.0, 0.0]] * 2, noise=noise).numpy()

    np.testing.assert_array_equal(y[:, 4:8, 4:8], image)
    outside = np.delete(
        y.reshape(2, 144, 2), [12 * i + j for i in range(4, 8) for j in range(4, 8)], 1
    )
    assert outside.min() >= image.min()
    assert outside.max() <= image.max()
    assert len(np.unique(outside)) > 200


def test_gradient_of_a_glimpse_is_1_inside_its_window():
    image = np.ones([1, 3, 3, 1], np.float32)

    (g,) = gradient(
        lambda x: tf.image.extract_glimpse(x, [2, 2], [[0.0, 0.0]], normalized=False), image
    )

    np.testing.assert_array_equal(g[0, :, :, 0], [[0, 0, 0], [0, 1, 1], [0, 1, 1]])


def test_boxes_with_equal_scores_keep_their_order():
    boxes = np.array([[0, 3 * i, 1, 3 * i + 1] for i in range(9)], np.float32)

    kept = tf.image.non_max_suppression(boxes, np.ones(9, np.float32), 5)

    assert kept.numpy().tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("sample", ["sample_distorted_bounding_box", "stateless_sample"])
def test_sampled_bounding_box_satisfies_its_constraints(sample):
    box = np.array([0.1, 0.1, 0.5, 0.5]) * [100, 60, 100, 60]
    seen = set()
    for seed in range(1, 40):
        options = {
            "min_object_covered": 0.6, "aspect_ratio_range": [0.5, 2.0], "area_range": [0.1, 0.8],
        }  # fmt: skip
        if sample.startswith("stateless"):
            call = tf.image.stateless_sample_distorted_bounding_box
            options["seed"] = [seed, 0]
        else:
            call = tf.image.sample_distorted_bounding_box
        begin, size, bboxes = call([100, 60, 3], [[[0.1, 0.1, 0.5, 0.5]]], **options)
        (y, x, _), (height, width, rest) = begin.numpy(), size.numpy()
        seen.add((y, x, height, width))

        assert rest == -1
        assert 0.1 <= height * width / 6000 <= 0.8
        assert 0.5 <= width / height <= 2
        shared = np.minimum([y + height, x + width], box[2:]) - np.maximum([y, x], box[:2])
        assert np.prod(shared.clip(0)) >= 0.6 * np.prod(box[2:] - box[:2])
        np.testing.assert_allclose(
            bboxes.numpy().ravel() * [100, 60, 100, 60], [y, x, y + height, x + width], rtol=1e-6
        )
    assert len(seen) > 30


# Random augmentation

PICTURE = np.arange(24, dtype=np.float32).reshape(4, 2, 3) / 24
RANDOM = {
    "brightness": (0.3,),
    "contrast": (0.2, 0.9),
    "hue": (0.4,),
    "saturation": (0.2, 0.9),
    "crop": ([2, 1, 3],),
    "flip_left_right": (),
    "flip_up_down": (),
    "jpeg_quality": (20, 90),
}


@pytest.mark.parametrize("name", RANDOM)
def test_random_functions_are_determined_by_the_seed(name):
    change = getattr(tf.image, f"random_{name}")
    stateless = getattr(tf.image, f"stateless_random_{name}")
    draws = []
    for _ in range(2):
        tf.random.set_seed(3)
        draws.append([change(PICTURE, *RANDOM[name]).numpy() for _ in range(20)])
    images = [stateless(PICTURE, *RANDOM[name], seed=[1, 2]).numpy() for _ in range(2)]
    others = [stateless(PICTURE, *RANDOM[name], seed=[1, i]).numpy() for i in range(20)]

    np.testing.assert_array_equal(*draws)
    np.testing.assert_array_equal(*images)
    for results in (draws[0], others):
        assert len({result.tobytes() for result in results}) > 1


def test_random_brightness_stays_in_its_range():
    gray = np.full([1, 1, 3], 0.5, np.float32)
    shift = [float(tf.image.random_brightness(gray, 0.2)[0, 0, 0]) - 0.5 for _ in range(300)]

    assert -0.2 <= min(shift) < -0.15
    assert 0.15 < max(shift) <= 0.2


def test_random_flip_decides_for_each_image_of_a_batch():
    batch = np.tile(np.arange(2, dtype=np.uint8)[:, None], (64, 3, 1, 1))

    y = tf.image.random_flip_left_right(batch).numpy()
    z = tf.image.random_flip_up_down(batch.transpose(0, 2, 1, 3)).numpy()

    assert y.dtype == np.uint8
    for first in (y[:, 0, 0, 0], z[:, 0, 0, 0]):
        assert 10 < first.sum() < 54


def test_random_crop_reaches_every_position():
    image = np.arange(20).reshape(4, 5)

    starts = {int(tf.image.random_crop(image, [3, 3])[0, 0]) for _ in range(200)}

    assert starts == {0, 1, 2, 5, 6, 7}


def test_gradients_flow_through_random_crops_and_flips():
    (g,) = gradient(lambda x: tf.image.stateless_random_crop(x, [2, 2, 3], seed=[3, 4]), PICTURE)
    (h,) = gradient(
        lambda x: tf.image.stateless_random_flip_up_down(x, seed=[3, 4]) * PICTURE, PICTURE
    )

    assert g.sum() == 12
    assert np.array_equal(h, PICTURE) or np.array_equal(h, PICTURE[::-1])


# Files


def test_png_round_trip_of_a_large_image():
    image = np.random.default_rng(6).integers(0, 256, (70, 90, 4), np.uint8)

    for level in (-1, 0, 9):
        contents = tf.image.encode_png(image, compression=level)
        np.testing.assert_array_equal(tf.image.decode_png(contents), image)


def test_encode_png_of_a_batch_returns_one_string_per_image():
    images = np.random.default_rng(7).integers(0, 256, (2, 3, 4, 5, 3), np.uint8)

    files = tf.image.encode_png(images)

    assert files.shape == [2, 3]
    np.testing.assert_array_equal(tf.image.decode_png(files[1, 2]), images[1, 2])


def test_jpeg_round_trip_of_a_large_image_has_a_small_error():
    rows, columns = np.mgrid[:83, :131]
    waves = [np.sin(rows / 9 + columns / 7), np.cos(columns / 11), np.sin(rows / 5)]
    image = (128 + 100 * np.stack(waves, axis=-1)).astype(np.uint8)

    for options in ({}, {"chroma_downsampling": False}, {"quality": 100}):
        contents = tf.io.encode_jpeg(image, **options)
        error = np.abs(tf.io.decode_jpeg(contents).numpy().astype(int) - image)
        assert error.mean() < 2.5
        assert tf.io.extract_jpeg_shape(contents).numpy().tolist() == [83, 131, 3]
        assert bool(tf.io.is_jpeg(contents))


def test_jpeg_round_trip_of_noise_at_quality_100():
    """With quantization steps of 1, Huffman codes of every length occur."""
    image = np.random.default_rng(8).integers(0, 256, (40, 56, 1), np.uint8)
    image[:16] = np.where(image[:16] > 127, 255, 0)

    y = tf.io.decode_jpeg(tf.io.encode_jpeg(image, quality=100), dct_method="INTEGER_ACCURATE")

    assert np.abs(y.numpy().astype(int) - image).max() <= 2


@pytest.mark.parametrize("kind", ["png", "gif", "bmp", "jpeg"])
def test_corrupted_files_are_decoded_or_raise_invalid_argument_error(kind):
    """Decoding raises no other error and always ends."""
    start = {"png": "89504e47", "gif": "47494638", "bmp": "424d", "jpeg": "ffd8ff"}[kind]
    files = re.findall(rf"fromhex\('({start}[0-9a-f]{{100,}})'\)", " ".join(EXPECTED))
    rng = np.random.default_rng(9)
    errors = 0
    for i in range(150):
        data = bytearray.fromhex(files[i % len(files)])
        data[rng.integers(4, len(data))] = rng.integers(256)
        if i % 3 == 0:
            del data[rng.integers(len(data)) :]
        try:
            tf.io.decode_image(bytes(data))
        except tf.errors.InvalidArgumentError:
            errors += 1

    assert errors > 20
