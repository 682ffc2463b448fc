"""Tests the memory use of functions during a call and over many calls."""

import gc
import tracemalloc
import weakref

import numpy as np
import pytest

import retrograde as tf

SIZE = 1 << 16
DEPTH = 12
WEIGHTS = [tf.Variable(np.full(SIZE, 0.1, np.float32)) for _ in range(DEPTH)]


def step(x):
    with tf.GradientTape() as tape:
        y = x
        for w in WEIGHTS:
            y = tf.tanh(y * w + 0.5)
        loss = tf.reduce_mean(y)
    for w, g in zip(WEIGHTS, tape.gradient(loss, WEIGHTS), strict=True):
        w.assign_sub(0.1 * g)
    return loss


def peak_bytes(f, x):
    """Returns the peak memory of a call in bytes, in addition to the memory in use before it."""
    for _ in range(3):
        f(x)
    gc.collect()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        f(x)
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


def test_a_replay_needs_no_more_memory_than_eager_code():
    x = tf.constant(np.ones(SIZE, np.float32))
    f = tf.function(step)

    assert peak_bytes(f, x) <= peak_bytes(step, x)


@pytest.mark.parametrize("compiled", [False, True], ids=["numpy", "xla"])
def test_memory_does_not_grow_over_1000_calls(compiled):
    v = tf.Variable(tf.zeros([100]))

    @tf.function(jit_compile=compiled)
    def f(x):
        v.assign_add(x * tf.random.normal([100]))
        return tf.reduce_sum(v)

    def memory_after(calls):
        for _ in range(calls):
            f(tf.ones([100]))
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    f(tf.ones([100]))
    tracemalloc.start()
    try:
        after_10 = memory_after(10)
        after_1010 = memory_after(1000)
    finally:
        tracemalloc.stop()
    assert after_1010 - after_10 < 20_000


def test_a_trace_does_not_keep_the_arguments_of_its_first_call():
    x = tf.constant(np.ones(SIZE, np.float32))
    array = weakref.ref(x._array)
    f = tf.function(lambda x: tf.reduce_sum(tf.sin(x) * 2.0))
    f(x)
    f(x)
    del x
    gc.collect()

    assert array() is None


def test_a_decorated_method_does_not_keep_its_object_alive():
    class Model(tf.Module):
        def __init__(self):
            super().__init__()
            self.w = tf.Variable(tf.ones([3]))

        @tf.function
        def __call__(self, x):
            return self.w * x

    model = Model()
    model(tf.ones([3]))
    model(tf.ones([3]))
    reference = weakref.ref(model)
    del model
    gc.collect()

    assert reference() is None
