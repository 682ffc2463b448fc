"""Tests the memory of replays: no more than eager code needs, and no growth over many calls."""

import gc
import tracemalloc

import numpy as np
import pytest

import retrograde as tf

N = 300_000


def elementwise(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(tf.sin(x) * tf.exp(x) + tf.tanh(x))
    return y, tape.gradient(y, x)


def matmul_layers(x):
    w = tf.reshape(x[:40_000], [200, 200])
    with tf.GradientTape() as tape:
        tape.watch(w)
        h = tf.reshape(x[-200_000:], [1000, 200])
        for _ in range(6):
            h = tf.tanh(h @ w)
        y = tf.reduce_mean(h * h)
    return y, tape.gradient(y, w)


def chain(x):
    for _ in range(20):
        x = tf.maximum(x * 0.5, x - 1.0)
    return x


def where_and_sort(x):
    y = tf.where(x > 0.0, tf.sqrt(x), -x)
    return tf.reduce_max(y), tf.sort(y)


PROGRAMS = [elementwise, matmul_layers, chain, where_and_sort]


def peak_bytes_and_result(f, *args):
    """Returns the peak memory of a call in bytes, and its result."""
    f(*args)
    f(*args)
    gc.collect()
    tracemalloc.start()
    try:
        result = f(*args)
        return tracemalloc.get_traced_memory()[1], result
    finally:
        tracemalloc.stop()


def random_vector():
    return tf.constant(np.random.default_rng(0).standard_normal(N).astype(np.float32))


@pytest.mark.parametrize("f", PROGRAMS)
def test_a_replay_needs_no_more_memory_than_eager_code(f):
    x = random_vector()
    eager_bytes, expected = peak_bytes_and_result(f, x)
    replay_bytes, actual = peak_bytes_and_result(tf.function(f), x)

    assert replay_bytes <= 1.05 * eager_bytes
    for a, e in zip(tf.nest.flatten(actual), tf.nest.flatten(expected), strict=True):
        np.testing.assert_allclose(a, e, rtol=1e-6)


def memory_after(f, x, count):
    for _ in range(count):
        f(x)
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


@pytest.mark.parametrize("options", [{}, {"jit_compile": True}], ids=["numpy", "xla"])
def test_memory_does_not_grow_over_1000_training_steps(options):
    v = tf.Variable(tf.zeros([1000]))

    @tf.function(**options)
    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(v - x))
        v.assign_sub(0.1 * tape.gradient(loss, v))
        return [loss]

    x = tf.ones([1000])
    tracemalloc.start()
    try:
        after_10 = memory_after(step, x, 10)
        after_1010 = memory_after(step, x, 1000)
    finally:
        tracemalloc.stop()

    assert after_1010 - after_10 < 4000  # less than one array


@pytest.mark.parametrize("f", [tf.maximum, tf.minimum, tf.add, tf.math.atan2])
def test_results_reuse_the_memory_of_arrays_that_are_no_longer_needed(f):
    step = tf.function(lambda x: f(tf.exp(x), tf.sin(x)))
    x = random_vector()[:5000]
    y = [step(x) for _ in range(3)][-1]

    assert "out=" in step.source()
    np.testing.assert_array_equal(y, f(tf.exp(x), tf.sin(x)))


@pytest.mark.parametrize("reorder", [tf.transpose, lambda x: tf.broadcast_to(x[0], x.shape)])
def test_results_do_not_reuse_arrays_with_another_memory_layout(reorder):
    """The order of a sum depends on the memory layout, so a replay would round differently."""
    rng = np.random.default_rng(0)
    x, weights = (tf.constant(rng.standard_normal([90, 90])) for _ in range(2))

    def f(x):
        y = tf.cast(tf.cast(reorder(x), tf.float32), tf.float64) * weights
        return tf.reduce_sum(y), tf.reduce_sum(y, 0)

    function = tf.function(f)
    for _ in range(3):
        for actual, expected in zip(function(x), f(x), strict=True):
            np.testing.assert_array_equal(actual, expected)
