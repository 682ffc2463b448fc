"""top_k, counting, histograms, tf.bitwise, parallel_stack and guarantee_const."""

import json
import pathlib

import numpy as np
import pytest

import retrograde as tf
from retrograde.errors import InvalidArgumentError
from retrograde.testing import check_gradients
from tests.data.recorded_results import evaluate, is_close
from tests.namespaces.helpers import assert_gradients, assert_raises, float64, gradient

DATA = pathlib.Path(__file__).parents[1] / "data"
EXPECTED = json.loads((DATA / "counting_results.json").read_text())


@pytest.mark.parametrize("expression", EXPECTED)
def test_values_and_gradients_match_tensorflow(expression):
    actual = evaluate(expression, tf)

    assert is_close(actual, EXPECTED[expression]), f"{actual}, expected {EXPECTED[expression]}"


# Top-k

ROWS = [[1.5, -2.0, 3.5, 0.3], [0.7, 4.0, 0.2, 2.2]]


@pytest.mark.parametrize("x", [ROWS[0], ROWS, [ROWS, ROWS[::-1]]], ids=["row", "rows", "matrices"])
def test_gradients_of_top_k(x):
    check_gradients(lambda x: tf.math.top_k(x, 3).values ** 2, [float64(x)], order=2)


def test_gradient_of_top_k_is_dense_and_goes_to_the_first_in_a_tie():
    g = gradient(lambda x: tf.math.top_k(x, 2).values * [1.0, 10.0], [5.0, 7.0, 5.0, 5.0])[0]

    assert g.tolist() == [10.0, 1.0, 0.0, 0.0]


@pytest.mark.parametrize("n", [100, 1000])
def test_top_k_of_large_inputs_matches_a_full_sort(n):
    x = np.random.default_rng(n).integers(0, n // 3, (3, n)).astype(np.float32)
    x[1, 7] = np.inf
    order = np.argsort(-x, axis=-1, kind="stable")[:, : n // 10]

    values, indices = tf.math.top_k(x, n // 10)

    np.testing.assert_array_equal(indices, order)
    np.testing.assert_array_equal(values, np.take_along_axis(x, order, -1))


def test_nan_is_the_largest_element():
    x = np.arange(300, dtype=np.float32)
    x[[5, 9]] = np.nan

    assert tf.math.top_k(x, 4).indices.numpy().tolist() == [5, 9, 299, 298]
    assert tf.math.top_k(x, 1).indices.numpy().tolist() == [5]


def test_top_k_is_sorted_even_with_sorted_false():
    assert tf.math.top_k([1, 9, 3], 2, sorted=False).values.numpy().tolist() == [9, 3]


def test_approximate_top_k_is_exact_along_any_axis():
    x = np.array(ROWS, np.float32)

    largest = tf.math.approx_max_k(x, 1, reduction_dimension=0)
    smallest = tf.math.approx_min_k(x, 2)

    assert largest.values.numpy().tolist() == x.max(0, keepdims=True).tolist()
    assert largest.indices.numpy().tolist() == [[0, 1, 0, 1]]
    np.testing.assert_array_equal(smallest.values, np.sort(x)[:, :2])
    assert smallest.indices.numpy().tolist() == [[1, 3], [2, 0]]
    assert type(largest).__name__ == "ApproxTopK"
    g = gradient(lambda x: tf.math.approx_min_k(x, 1).values, x)[0]
    assert g.tolist() == [[0, 1, 0, 0], [0, 0, 1, 0]]


def test_nn_has_the_same_functions_as_math():
    for name in ("top_k", "approx_max_k", "approx_min_k", "in_top_k"):
        assert getattr(tf.nn, name) is getattr(tf.math, name)


# Counting


def test_a_gradient_flows_to_the_weights_of_bincount():
    assert_gradients(lambda w: tf.math.bincount([1, 1, 3], weights=w), [1.0, 2.0, 3.0])
    assert_gradients(
        lambda w: tf.math.bincount([[1, 1, 3], [0, 4, 0]], weights=w, axis=-1, maxlength=3),
        [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]],
    )


def test_a_gradient_flows_to_the_weights_of_a_confusion_matrix():
    assert_gradients(
        lambda w: tf.math.confusion_matrix([0, 2, 0], [0, 1, 0], weights=w, dtype=tf.float64),
        [1.0, 2.0, 3.0],
    )


def test_the_length_of_a_bincount_can_be_fixed():
    y = tf.math.bincount([1, 1, 7], minlength=3, maxlength=3)

    assert y.numpy().tolist() == [0, 2, 0]


def test_histogram_bins_of_integers():
    y = tf.histogram_fixed_width_bins([[1, 2], [3, 4]], [0, 5], nbins=5)

    assert y.numpy().tolist() == [[1, 2], [3, 4]]


def test_sobol_points_fill_intervals_evenly():
    x = tf.math.sobol_sample(7, 15, dtype=tf.float64).numpy()

    assert sorted((x * 16).ravel().tolist()) == sorted(list(range(1, 16)) * 7)


# Identity-like functions


def test_parallel_stack_is_differentiable():
    assert_gradients(lambda a, b: tf.parallel_stack([a, b]) ** 2, [1.0, 2.0], [3.0, 4.0])
    assert tf.parallel_stack([1, 2]).numpy().tolist() == [1, 2]


def test_guarantee_const_has_no_gradient():
    assert gradient(tf.guarantee_const, [1.0, 2.0]) == [None]
    assert tf.guarantee_const([1.0, 2.0]).numpy().tolist() == [1.0, 2.0]


def test_bitwise_functions_have_no_gradient_and_convert_python_numbers():
    x = tf.constant([6, 5], tf.uint8)

    assert tf.bitwise.bitwise_xor(x, 3).dtype == tf.uint8
    assert tf.bitwise.left_shift(x, 1).numpy().tolist() == [12, 10]


ERRORS = [
    (
        lambda: tf.math.top_k([1.0, 2.0], 3),
        "top_k: expected 0 <= k <= 2, the size of the axis. Received: k = 3.",
    ),
    (
        lambda: tf.math.top_k(1.0),
        "top_k: expected a tensor of rank >= 1. Received: shape ().",
    ),
    (
        lambda: tf.math.top_k([1.0], 1, index_type=tf.float32),
        "top_k: expected an index_type of int16, int32 or int64. Received: float32.",
    ),
    (
        lambda: tf.math.approx_max_k([1, 2], 1),
        "approx_top_k: `input` has dtype int32. Expected one of float16, bfloat16, float32.",
    ),
    (
        lambda: tf.math.in_top_k([0, 1], [[0.1, 0.2]], 1),
        "in_top_k: expected one target for each row of predictions. Received: targets of shape "
        "(2,), predictions of shape (1, 2).",
    ),
    (
        lambda: tf.math.invert_permutation([1, 2]),
        "invert_permutation: 2 is not in [0, 2). Expected each of the numbers from 0 to 1 once.",
    ),
    (
        lambda: tf.math.invert_permutation([1, 1]),
        "invert_permutation: 1 occurs more than once. Expected each of the numbers from 0 to 1 "
        "once.",
    ),
    (
        lambda: tf.math.invert_permutation([2, 0, 2]),
        "invert_permutation: 2 occurs more than once. Expected each of the numbers from 0 to 2 "
        "once.",
    ),
    (
        lambda: tf.math.invert_permutation([[0]]),
        "invert_permutation: expected a tensor of rank 1. Received: shape (1, 1).",
    ),
    (
        lambda: tf.math.bincount([-1, 1]),
        "bincount: expected numbers >= 0. Received: -1.",
    ),
    (
        lambda: tf.math.bincount([[[1]]], axis=-1),
        "bincount: expected `arr` of rank at most 2 with axis=-1. Received: shape (1, 1, 1).",
    ),
    (
        lambda: tf.math.bincount([1, 2], weights=[1.0]),
        "bincount: expected weights of shape (2,), the shape of arr. Received: shape (1,).",
    ),
    (
        lambda: tf.math.confusion_matrix([1, 0], [1, -1]),
        "confusion_matrix: expected predictions >= 0. Received: -1.",
    ),
    (
        lambda: tf.math.confusion_matrix([1, 0], [1, 1], num_classes=1),
        "confusion_matrix: expected labels < 1. Received: 1.",
    ),
    (
        lambda: tf.math.confusion_matrix([[1, 0]], [[1, 1]]),
        "confusion_matrix: expected labels and predictions of rank 1 and of the same length. "
        "Received: shapes (1, 2) and (1, 2).",
    ),
    (
        lambda: tf.math.confusion_matrix([], []),
        "confusion_matrix: `labels` is empty. Pass num_classes.",
    ),
    (
        lambda: tf.histogram_fixed_width([1.0], [5.0, 5.0]),
        "histogram_fixed_width: expected value_range[0] < value_range[1]. Received: [5.0, 5.0].",
    ),
    (
        lambda: tf.histogram_fixed_width([1.0], [0.0, 5.0], nbins=0),
        "histogram_fixed_width: expected nbins > 0. Received: 0.",
    ),
    (
        lambda: tf.histogram_fixed_width_bins([1.0], [0.0, 5.0, 6.0]),
        "histogram_fixed_width_bins: expected value_range to hold two numbers. Received: shape "
        "(3,).",
    ),
    (
        lambda: tf.histogram_fixed_width([1.0], [0.0, 5.0], dtype=tf.float32),
        "histogram_fixed_width: expected a dtype of int32 or int64. Received: float32.",
    ),
    (
        lambda: tf.histogram_fixed_width([np.nan], [0.0, 5.0]),
        "histogram_fixed_width: expected values without nan.",
    ),
    (
        lambda: tf.math.sobol_sample(0, 3),
        "sobol_sample: expected 1 <= dim <= 21201. Received: 0.",
    ),
    (
        lambda: tf.math.sobol_sample(2, 3, skip=-1),
        "sobol_sample: expected 0 <= skip. Received: -1.",
    ),
    (
        lambda: tf.math.sobol_sample(2, 3, dtype=tf.float16),
        "sobol_sample: expected a dtype of float32 or float64. Received: float16.",
    ),
    (
        lambda: tf.bitwise.invert([1.0]),
        "invert: dtype float32 is not supported. Expected one of int8, int16, int32, int64, "
        "uint8, uint16, uint32, uint64.",
    ),
]


@pytest.mark.parametrize(
    ("call", "message"), ERRORS, ids=lambda v: v[:30] if type(v) is str else ""
)
def test_errors(call, message):
    assert_raises(call, InvalidArgumentError, message)


def test_value_errors():
    assert_raises(
        lambda: tf.math.bincount([1], axis=1),
        ValueError,
        "bincount: expected an axis of 0, -1 or None. Received: 1.",
    )
    assert_raises(
        lambda: tf.math.bincount([1], weights=[1.0], binary_output=True),
        ValueError,
        "bincount: expected either `binary_output` or `weights`, not both.",
    )
    assert_raises(
        lambda: tf.math.confusion_matrix([1, 0], [1, 1], weights=[1.0]),
        ValueError,
        "confusion_matrix: expected weights of shape (2,), the shape of labels. Received: shape "
        "(1,).",
    )
