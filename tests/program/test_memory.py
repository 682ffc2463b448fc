"""What functions hold: no more than eager code while they run, nothing more as they go on."""

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


def peak_of(f, x):
    """The most bytes that a call holds at a time, beyond those held before."""
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


def test_a_replay_takes_no_more_than_eager_code():
    x = tf.constant(np.ones(SIZE, np.float32))
    f = tf.function(step)

    assert peak_of(f, x) <= peak_of(step, x)


@pytest.mark.parametrize("compiled", [False, True], ids=["numpy", "xla"])
def test_a_thousand_calls_hold_no_more_than_ten(compiled):
    v = tf.Variable(tf.zeros([100]))

    @tf.function(jit_compile=compiled)
    def f(x):
        v.assign_add(x * tf.random.normal([100]))
        return tf.reduce_sum(v)

    def held_after(calls):
        for _ in range(calls):
            f(tf.ones([100]))
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    f(tf.ones([100]))
    tracemalloc.start()
    try:
        few = held_after(10)
        many = held_after(1000)
    finally:
        tracemalloc.stop()
    assert many - few < 20_000


def test_a_recording_lets_go_of_the_call_it_was_made_from():
    x = tf.constant(np.ones(SIZE, np.float32))
    array = weakref.ref(x._array)
    f = tf.function(lambda x: tf.reduce_sum(tf.sin(x) * 2.0))
    f(x)
    f(x)
    del x
    gc.collect()

    assert array() is None


def test_an_object_is_not_kept_by_the_function_of_its_method():
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
