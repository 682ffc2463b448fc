"""Seeded permutations of indices and rows."""

import numpy as np
import pytest
import scipy.stats

import retrograde as tf
from tests.namespaces.helpers import assert_raises

SEED = [3, 5]
Invalid = tf.errors.InvalidArgumentError


@pytest.mark.parametrize("last", [0, 1, 2, 7, 8, 99, 255, 256])
def test_indices_are_permuted(last):
    x = tf.random_index_shuffle(tf.range(last + 1), [1, 2, 3], last)

    assert x.dtype == tf.int32
    assert sorted(x.numpy().tolist()) == list(range(last + 1))


def test_every_position_is_equally_likely():
    seeds = np.stack([np.arange(6000), np.ones(6000), np.full(6000, 2)], -1).astype(np.int64)
    x = tf.random_index_shuffle(tf.fill([6000], 3), seeds, 5).numpy()

    assert scipy.stats.chisquare(np.bincount(x)).pvalue > 0.01


def test_seed_and_rounds_determine_the_permutation():
    def order(*args, **kwargs):
        return tuple(tf.random_index_shuffle(tf.range(50), *args, 49, **kwargs).numpy().tolist())

    assert order([1, 2, 3]) == order([1, 2, 3])
    orders = [order([1, 2, 3]), order([1, 2, 4]), order([2, 2, 3]), order([1, 2, 3], rounds=6)]
    assert len(set(orders)) == 4
    assert (
        tf.random_index_shuffle(3, [1, 2, 3], 9).numpy()
        == tf.random_index_shuffle([3, 4], [1, 2, 3], [9, 12]).numpy()[0]
    )


@pytest.mark.parametrize("dtype", ["int32", "uint32", "int64", "uint64"])
def test_large_indices_stay_in_range(dtype):
    last = np.iinfo(dtype).max
    x = tf.random_index_shuffle(
        tf.constant(last, dtype), tf.constant([1, 2, 3], tf.int64), tf.constant(last, dtype)
    )

    assert x.dtype == dtype
    assert 0 <= int(x) <= last


def test_index_shuffle_accepts_a_seed_of_two_integers():
    x = tf.random.experimental.index_shuffle(tf.range(5), [1, 2], 4)

    np.testing.assert_array_equal(x, tf.random_index_shuffle(tf.range(5), [1, 2, 0], 4))
    assert_raises(
        lambda: tf.random.experimental.index_shuffle(0, [1, 2, 3], 4),
        Invalid,
        "index_shuffle: expected a seed of shape (2,) or (n, 2). Received: (3,).",
    )


SHUFFLES = {
    "an index beyond the last": (
        (5, [1, 2, 3], 3),
        "random_index_shuffle: expected 0 <= index <= max_index. Received: index 5 and "
        "max_index 3.",
    ),
    "a negative index": (
        (-1, [1, 2, 3], 3),
        "random_index_shuffle: expected 0 <= index <= max_index. Received: index -1 and "
        "max_index 3.",
    ),
    "a seed of two": (
        (0, [1, 2], 3),
        "random_index_shuffle: expected a seed of shape (3,) or (1, 3). Received: shape (2,).",
    ),
    "a float": (
        (1.0, [1, 2, 3], 3),
        "random_index_shuffle: `index` and `max_index` have dtypes float32 and float32. Expected "
        "one of int32, uint32, int64, uint64 for both.",
    ),
    "a matrix": (
        ([[1]], [1, 2, 3], 3),
        "random_index_shuffle: expected `index` and `max_index` to be scalars or vectors of the "
        "same length. Received: shapes (1, 1) and ().",
    ),
}


@pytest.mark.parametrize("name", SHUFFLES)
def test_errors(name):
    arguments, message = SHUFFLES[name]
    assert_raises(lambda: tf.random_index_shuffle(*arguments), Invalid, message)


def test_stateless_shuffle_permutes_rows_and_is_differentiable():
    x = tf.reshape(tf.range(20.0), [10, 2])
    weights = tf.reshape(tf.range(20.0), [10, 2]) ** 2.0
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.random.experimental.stateless_shuffle(x, SEED)
        z = y * weights
    g = tf.convert_to_tensor(tape.gradient(z, x)).numpy()
    order = (y.numpy()[:, 0] / 2).astype(int)

    assert order.tolist() != list(range(10))
    np.testing.assert_array_equal(y.numpy(), x.numpy()[order])
    np.testing.assert_array_equal(g[order], weights)
    np.testing.assert_array_equal(y, tf.random.experimental.stateless_shuffle(x, SEED))
    assert tf.random.experimental.stateless_shuffle(3.0, SEED).numpy() == 3
    assert tf.random.experimental.stateless_shuffle([], SEED).shape == (0,)
