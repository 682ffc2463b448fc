"""Tests `tape.profile()`."""

import time

import numpy as np

import retrograde as tf


def slow(x):
    time.sleep(0.02)
    return x


def test_the_longest_time_comes_first():
    x = tf.Variable(np.ones((300, 300), np.float32))
    with tf.GradientTape(lines=True) as tape:
        y = x + 1.0
        z = (x @ y) @ (y @ x)
        loss = tf.reduce_sum(z)
    report = tape.profile(loss, x)

    assert [call.name for call in report.calls] == ["add", "matmul", "matmul", "matmul", "sum"]
    assert next(iter(report.by_primitive)) == "matmul"
    first = next(iter(report.by_line))
    assert first.endswith(": z = (x @ y) @ (y @ x)")
    assert report.by_line[first] == report.by_primitive["matmul"]
    assert all(call.forward > 0.0 and call.backward > 0.0 for call in report.calls)
    assert report.forward == sum(call.forward for call in report.calls)


def test_custom_gradients_are_timed():
    @tf.custom_gradient
    def f(x):
        return x * 1.0, slow

    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        y = tf.exp(f(x))
    report = tape.profile(y, x)
    call = report.calls[0]

    assert (call.name, call.forward) == ("f", None)
    assert call.backward > 0.019
    assert str(report).splitlines()[-1].startswith("  The forward time of 2 calls is unknown.")


def test_profile_does_not_change_the_gradient():
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        h = x * x
        y = tf.reduce_sum(h * h + h * x)
    tape.profile(y)

    np.testing.assert_array_equal(tape.gradient(y, x), 4 * x.numpy() ** 3 + 3 * x.numpy() ** 2)


def test_text():
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape(persistent=True) as tape:
        y = tf.reduce_sum(tf.exp(x))
    lines = str(tape.profile(y)).splitlines()

    assert lines[0].startswith("2 calls: 0.0")
    assert lines[1].split() == ["forward", "backward", "primitive"]
    assert sorted(line.split()[-1] for line in lines[2:4]) == ["exp", "sum"]
    assert len(lines) == 4
