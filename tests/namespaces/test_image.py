"""tf.image: values, dtypes, errors and gradients are TensorFlow's."""

import json
import pathlib

import numpy as np
import pytest

import retrograde as tf
from tests.data.answers import answer
from tests.namespaces.helpers import assert_gradients, gradient

DATA = pathlib.Path(__file__).parents[1] / "data"
FILES = sorted(DATA.glob("image_*_answers.json"))
ANSWERS = {call: a for path in FILES for call, a in json.loads(path.read_text()).items()}


def assert_same(actual, expected):
    """Integers and shapes are equal; floats to the precision of their sums in float32."""
    if isinstance(expected, dict) and "value" in expected:
        assert actual.keys() == expected.keys(), actual
        assert (actual["dtype"], actual["shape"]) == (expected["dtype"], expected["shape"])
        a, e = (
            np.array(x["value"], float if "f" in x["dtype"] else None) for x in (actual, expected)
        )
        if not e.size or e.dtype != float:
            assert a.tolist() == e.tolist()
            return
        bound = EPSILON[expected["dtype"]]
        scale = np.max(np.abs(e), initial=0, where=np.isfinite(e))
        np.testing.assert_allclose(a, e, rtol=bound, atol=bound * scale)
    elif isinstance(expected, list):
        assert len(actual) == len(expected)
        for a, e in zip(actual, expected, strict=True):
            assert_same(a, e)
    else:
        assert actual == expected


EPSILON = {"float16": 1e-3, "bfloat16": 8e-3, "float32": 3e-6, "float64": 3e-6}


@pytest.mark.parametrize("call", ANSWERS)
def test_answer_is_that_of_tensorflow(call):
    assert_same(answer(call, tf), ANSWERS[call])


# Derivatives that TensorFlow does not have


RNG = np.random.default_rng(5)
COLOURS = RNG.permuted(np.tile([0.2, 0.5, 0.9], (2, 3, 1)), axis=-1) + RNG.uniform(
    0, 0.1, (2, 3, 3)
)


def weighed(y):
    """`y` with weights, so that a mistake cannot cancel out."""
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
def test_what_is_computed_in_float32_has_the_gradient_of_its_values(f):
    (g,) = gradient(lambda x: weighed(f(x)), COLOURS)
    direction = RNG.uniform(0.5, 1.5, COLOURS.shape)
    ahead, behind = (float(weighed(f(tf.constant(COLOURS + h * direction)))) for h in (1e-3, -1e-3))

    assert g.dtype == np.float64
    np.testing.assert_allclose(np.sum(g * direction), (ahead - behind) / 2e-3, rtol=1e-3)


def test_hsv_can_be_differentiated_both_ways():
    assert_gradients(tf.image.rgb_to_hsv, COLOURS)
    assert_gradients(tf.image.hsv_to_rgb, COLOURS)


def test_second_derivatives_flow_through_colours():
    assert_second_order(tf.image.rgb_to_hsv, COLOURS)
    assert_second_order(tf.image.hsv_to_rgb, COLOURS)


def assert_second_order(f, x):
    """The gradient of the gradient agrees with differences of the gradient."""
    weights = np.random.default_rng(3).uniform(0.5, 1.5, f(tf.constant(x)).shape)

    def first(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x) * weights
        return tape.gradient(y, x)

    assert_gradients(first, x, rtol=1e-6)


def test_saturation_ignores_a_channel_that_is_zero_already():
    """TensorFlow's choice at the edge of the range."""
    (g,) = gradient(lambda x: tf.image.rgb_to_hsv(x)[1], [0.0, 0.4, 0.8])

    np.testing.assert_array_equal(g, [0.0, 0.0, 0.0])


def test_a_pixel_that_is_nan_spoils_only_its_neighbours():
    image = np.ones([8, 8, 1], np.float32)
    image[0, 0] = np.nan

    y = tf.image.resize(image, [4, 4], "lanczos3").numpy()

    assert np.isnan(y[0, 0])
    assert not np.isnan(y[3, 3])
    assert not np.isnan(gradient(lambda x: tf.image.resize(x, [4, 4]), image)[0]).any()
