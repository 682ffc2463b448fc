"""Replays need no more memory than the function itself, and keep none of it."""

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


def layers(x):
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


def choices(x):
    y = tf.where(x > 0.0, tf.sqrt(x), -x)
    return tf.reduce_max(y), tf.sort(y)


PROGRAMS = [elementwise, layers, chain, choices]


def peak(f, *arguments):
    """The most bytes that were held at once by a call, beyond those before it."""
    f(*arguments)
    f(*arguments)
    gc.collect()
    tracemalloc.start()
    try:
        result = f(*arguments)
        return tracemalloc.get_traced_memory()[1], result
    finally:
        tracemalloc.stop()


def numbers():
    return tf.constant(np.random.default_rng(0).standard_normal(N).astype(np.float32))


@pytest.mark.parametrize("f", PROGRAMS)
def test_a_replay_needs_no_more_memory_than_the_function(f):
    x = numbers()
    eager, expected = peak(f, x)
    replayed, actual = peak(tf.function(f), x)

    assert replayed <= 1.05 * eager
    for a, e in zip(tf.nest.flatten(actual), tf.nest.flatten(expected), strict=True):
        np.testing.assert_allclose(a, e, rtol=1e-6)


def held(f, x, count):
    for _ in range(count):
        f(x)
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


@pytest.mark.parametrize("options", [{}, {"jit_compile": True}], ids=["numpy", "xla"])
def test_a_thousand_calls_hold_no_more_memory_than_ten(options):
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
        few = held(step, x, 10)
        many = held(step, x, 1000)
    finally:
        tracemalloc.stop()

    assert many - few < 4000  # less than one array


@pytest.mark.parametrize("f", [tf.maximum, tf.minimum, tf.add, tf.math.atan2])
def test_results_are_written_over_arrays_that_are_needed_no_more(f):
    step = tf.function(lambda x: f(tf.exp(x), tf.sin(x)))
    x = numbers()[:5000]
    y = [step(x) for _ in range(3)][-1]

    assert "out=" in step.source()
    np.testing.assert_array_equal(y, f(tf.exp(x), tf.sin(x)))


@pytest.mark.parametrize("reorder", [tf.transpose, lambda x: tf.broadcast_to(x[0], x.shape)])
def test_a_result_is_not_written_over_an_array_with_another_order_of_axes(reorder):
    """Sums add up in the order of the axes in memory, so a replay would round differently."""
    rng = np.random.default_rng(0)
    x, weights = (tf.constant(rng.standard_normal([90, 90])) for _ in range(2))

    def f(x):
        y = tf.cast(tf.cast(reorder(x), tf.float32), tf.float64) * weights
        return tf.reduce_sum(y), tf.reduce_sum(y, 0)

    function = tf.function(f)
    for _ in range(3):
        for found, expected in zip(function(x), f(x), strict=True):
            np.testing.assert_array_equal(found, expected)
