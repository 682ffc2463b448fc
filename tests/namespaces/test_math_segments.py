"""tf.math.segment_* and tf.math.unsorted_segment_*."""

import json
import pathlib

import numpy as np
import pytest

import retrograde as tf
from retrograde.errors import InvalidArgumentError
from retrograde.testing import check_gradients
from tests.data.recorded_results import evaluate, is_close
from tests.namespaces.helpers import INEXACT, assert_gradients, assert_raises, float64, gradient

DATA = pathlib.Path(__file__).parents[1] / "data"
EXPECTED = json.loads((DATA / "segment_results.json").read_text())
KINDS = ("sum", "mean", "max", "min", "prod")
UNSORTED = (*KINDS, "sqrt_n")


@pytest.mark.parametrize("expression", EXPECTED)
def test_values_and_gradients_match_tensorflow(expression):
    actual = evaluate(expression, tf)

    assert is_close(actual, EXPECTED[expression]), f"{actual}, expected {EXPECTED[expression]}"


DATA_ROWS = [[1.5, -2.0], [0.3, 4.0], [2.5, 0.7], [-1.1, 0.2]]


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_of_sorted_segments(kind):
    f = getattr(tf.math, f"segment_{kind}")
    check_gradients(lambda x: f(x, [0, 0, 2, 2]), [float64(DATA_ROWS)], order=2)


IDS = {"rows": [1, 0, 1, -1], "elements": [[2, 0], [1, -1], [2, 2], [0, 0]]}


@pytest.mark.parametrize("kind", UNSORTED)
@pytest.mark.parametrize("ids", IDS.values(), ids=IDS)
def test_gradients_of_unsorted_segments(kind, ids):
    f = getattr(tf.math, f"unsorted_segment_{kind}")
    check_gradients(lambda x: f(x, ids, np.max(ids) + 1), [float64(DATA_ROWS)], order=2)


def test_higher_derivatives_of_a_product_with_zeros():
    x = [0.0, 0.0, 3.0, 0.0, 2.0]
    check_gradients(lambda x: tf.math.segment_prod(x, [0, 0, 0, 1, 1]), [float64(x)], order=3)


def test_ties_share_the_gradient_evenly_in_each_column():
    x = [[3.0, 1.0], [3.0, 2.0], [1.0, 2.0]]
    g = gradient(lambda x: tf.math.segment_max(x, [0, 0, 0]), x)[0]

    assert g.tolist() == [[0.5, 0.0], [0.5, 0.5], [0.0, 0.5]]


@pytest.mark.parametrize("kind", UNSORTED)
def test_unsorted_functions_match_sorted_ones_on_sorted_ids(kind):
    x, ids = np.random.default_rng(1).normal(size=(3000, 3)), np.sort(np.arange(3000) % 70)
    order = np.random.default_rng(2).permutation(3000)
    f = getattr(tf.math, f"unsorted_segment_{kind}")
    sorted_result, shuffled_result = f(x, ids, 70), f(x[order], ids[order], 70)

    np.testing.assert_allclose(sorted_result, shuffled_result, rtol=1e-11, atol=1e-13)
    if kind != "sqrt_n":
        np.testing.assert_array_equal(sorted_result, getattr(tf.math, f"segment_{kind}")(x, ids))
    assert_gradients(lambda x: f(x, np.arange(40) % 7, 7), x[:40])


def test_nan_propagates():
    for f in (tf.math.segment_max, tf.math.segment_min):
        assert np.isnan(f([np.nan, 1.0], [0, 0])).all()


def test_a_segment_of_minus_infinity_is_not_empty():
    y = tf.math.unsorted_segment_max([-np.inf, 1.0], [0, 1], 3)

    assert y.numpy().tolist() == [-np.inf, 1.0, np.finfo(np.float32).min]


def test_means_in_half_precision_do_not_overflow():
    x = tf.fill([100], tf.constant(60000.0, tf.float16))

    assert tf.math.segment_mean(x, [0] * 100).numpy().tolist() == [60000.0]
    assert tf.math.unsorted_segment_mean(x, [1] * 100, 2).numpy().tolist() == [0.0, 60000.0]


def test_errors():
    x = tf.constant([1.0, 2.0])
    for call, message in [
        (
            lambda: tf.math.segment_sum(x, [1, 0]),
            "segment_sum: expected sorted segment_ids. Received: segment_ids[1] = 0 after 1. Use "
            "unsorted_segment_sum for unsorted ids.",
        ),
        (
            lambda: tf.math.segment_max(x, [-1, 0]),
            "segment_max: expected segment_ids >= 0. Received: segment_ids[0] = -1.",
        ),
        (
            lambda: tf.math.segment_prod(x, [0]),
            "segment_prod: expected one id for each row of data. Received: segment_ids of shape "
            "(1,) for data of shape (2,).",
        ),
        (
            lambda: tf.math.segment_min(x, [0.0, 1.0]),
            "segment_min: expected segment_ids of dtype int32 or int64. Received: float32.",
        ),
        (
            lambda: tf.math.segment_mean([True], [0]),
            "segment_mean: dtype bool is not supported. Expected one of float16, bfloat16, "
            "float32, float64, complex64, complex128, int8, int16, int32, int64, uint8, uint16, "
            "uint32, uint64.",
        ),
        (
            lambda: tf.math.unsorted_segment_sum(x, [0, 2], 2),
            "segment_ids[1] = 2 is not in [0, 2). Only negative ids are ignored.",
        ),
        (
            lambda: tf.math.unsorted_segment_sum(x, [0, 1], -1),
            "unsorted_segment_sum: expected num_segments >= 0. Received: -1.",
        ),
        (
            lambda: tf.math.unsorted_segment_max(x, [0], 1),
            "unsorted_segment_max: expected the shape of data to start with the shape of "
            "segment_ids. Received: data of shape (2,), segment_ids of shape (1,).",
        ),
    ]:
        assert_raises(call, InvalidArgumentError, message)


# Gradients of embedding tables


@pytest.mark.parametrize("dtype", [*INEXACT, "int32"])
def test_adding_many_rows_matches_adding_few(dtype):
    rng = np.random.default_rng(5)
    indices = rng.integers(0, 50, 400).astype(np.int32)
    values = tf.cast(rng.integers(-8, 8, (400, 9)), dtype)
    slices = tf.IndexedSlices(values, indices, tf.constant([50, 9]))
    expected = np.zeros((50, 9))
    for row, index in zip(np.asarray(tf.cast(values, "float64")), indices, strict=True):
        expected[index] += row

    y = tf.convert_to_tensor(slices)

    assert y.dtype == dtype
    np.testing.assert_array_equal(np.asarray(tf.cast(y, "float64")), expected)


def test_rows_are_added_in_order():
    values = np.repeat(np.array([[1e8], [1.0], [-1e8]], np.float32), 1000, axis=1)
    y = tf.math.unsorted_segment_sum(values, [1, 1, 1], 3)

    assert set(y.numpy()[1].tolist()) == {0.0}
