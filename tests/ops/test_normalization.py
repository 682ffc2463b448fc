"""Softmax and cross entropies, with and without the shift of large logits."""

import numpy as np
import pytest
import scipy.special

import retrograde as tf
from retrograde.ops.normalization import _needs_no_shift

FLOATS = [(np.float32, 2e-6), (np.float64, 1e-14)]

# Norms of the logits. From 40 on, the maximum is subtracted.
SIZES = [1e-3, 1.0, 39.0, 39.99, 40.01, 100.0, 1e4]


def logits_of_size(size, dtype):
    x = np.random.default_rng(3).standard_normal((6, 5))
    return (x * size / np.sqrt(np.vdot(x, x))).astype(dtype)


def test_small_logits_need_no_shift():
    unshifted = [bool(_needs_no_shift(np, logits_of_size(size, np.float64))) for size in SIZES]

    assert unshifted == [True, True, True, True, False, False, False]


@pytest.mark.parametrize(("dtype", "tolerance"), FLOATS)
@pytest.mark.parametrize("size", SIZES)
def test_softmax_with_and_without_shift(size, dtype, tolerance):
    x, tiny = logits_of_size(size, dtype), np.finfo(dtype).tiny

    for axis in (0, 1):
        expected = scipy.special.softmax(x.astype(np.longdouble), axis=axis)
        actual = tf.nn.softmax(x, axis=axis)
        np.testing.assert_allclose(actual, expected, rtol=20 * tolerance, atol=tiny)


@pytest.mark.parametrize(("dtype", "tolerance"), FLOATS)
@pytest.mark.parametrize("size", SIZES)
def test_sparse_cross_entropy_with_and_without_shift(size, dtype, tolerance):
    x, labels = logits_of_size(size, dtype), np.array([0, 1, 2, 3, 4, 0])
    logs = scipy.special.log_softmax(x.astype(np.longdouble), axis=1)
    p = np.exp(logs) - np.eye(5)[labels]
    logits = tf.constant(x)

    with tf.GradientTape() as tape:
        tape.watch(logits)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)

    expected = -logs[np.arange(6), labels]
    np.testing.assert_allclose(losses, expected, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(tape.gradient(losses, logits), p, rtol=0, atol=tolerance)


def test_small_losses_are_precise():
    logits = tf.constant([[15.0, 0.0], [30.0, 0.0]])

    losses = tf.nn.sparse_softmax_cross_entropy_with_logits([0, 0], logits)

    np.testing.assert_allclose(losses[0], np.log1p(np.exp(-15.0)), rtol=0.3)  # 1 + 3e-7 in float32
    assert losses[1] == 0.0


def test_excluded_classes_have_no_probability():
    logits = tf.constant([[0.0, -np.inf, 1.0]])

    p = tf.nn.softmax(logits).numpy()

    np.testing.assert_allclose(p, [[0.26894143, 0.0, 0.7310586]], rtol=1e-6)
    assert np.isnan(tf.nn.softmax(tf.constant([[0.0, np.nan]])).numpy()).all()
