"""A strategy with one replica costs almost nothing: Python's instructions are counted."""

import sys

import numpy as np
import pytest

import retrograde as tf

STRATEGIES = {
    "mirrored": tf.distribute.MirroredStrategy,
    "workers": tf.distribute.MultiWorkerMirroredStrategy,
}


def make_step():
    """Returns a training step of a small network."""
    random = np.random.default_rng(0)
    shapes = [(16, 32), (32,), (32, 32), (32,), (32, 4), (4,)]
    weights = [tf.Variable(random.normal(size=shape).astype("float32") * 0.1) for shape in shapes]

    def step(x, y):
        with tf.GradientTape() as tape:
            h = tf.tanh(x @ weights[0] + weights[1])
            h = tf.tanh(h @ weights[2] + weights[3])
            loss = tf.reduce_mean((h @ weights[4] + weights[5] - y) ** 2)
        for w, g in zip(weights, tape.gradient(loss, weights), strict=True):
            w.assign_sub(0.01 * g)
        return loss

    return step


def under(strategy):
    """Returns a training step in the only replica of `strategy`."""
    with strategy.scope():
        step = make_step()

    def distributed(x, y):
        losses = strategy.run(step, args=(x, y))
        return strategy.reduce(tf.distribute.ReduceOp.SUM, losses, axis=None)

    return distributed


def count_instructions(step):
    """Returns how many bytecode instructions Python runs in a step."""
    x, y = tf.ones([32, 16]), tf.ones([32, 4])
    for _ in range(5):
        step(x, y)
    count = 0

    def trace(frame, event, _):
        nonlocal count
        frame.f_trace_opcodes = True
        count += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        step(x, y)
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize("name", STRATEGIES)
def test_a_replayed_step_runs_the_same_instructions(name):
    plain, distributed = make_step(), under(STRATEGIES[name]())

    assert count_instructions(tf.function(distributed)) == count_instructions(tf.function(plain))


@pytest.mark.parametrize("name", STRATEGIES)
def test_an_eager_step_runs_at_most_two_percent_more_instructions(name):
    plain, distributed = make_step(), under(STRATEGIES[name]())

    assert count_instructions(distributed) <= 1.02 * count_instructions(plain)
