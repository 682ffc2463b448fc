"""Tests re-rolling of loops in traces, so that XLA compiles one iteration instead of all."""

import numpy as np
import pytest

import retrograde as tf
from retrograde.program.loop_rerolling import Loop, reroll

RNG = np.random.default_rng(0)
W, U = (tf.Variable(RNG.normal(size=(n, 4)) * 0.4) for n in (3, 4))
B = tf.Variable(RNG.normal(size=4) * 0.1)
STEPS = 24
X = tf.constant(RNG.normal(size=(STEPS, 2, 3)))


def cell(h, x):
    return tf.tanh(x @ W + h @ U + B)


def scan(x):
    return tf.scan(cell, x, initializer=tf.zeros([2, 4], tf.float64))


def fold(x):
    return tf.foldl(cell, x, initializer=tf.zeros([2, 4], tf.float64))


def map_rows(x):
    return tf.map_fn(lambda row: tf.tanh(row @ W) * 2.0, x)


def range_loop(x):
    h, outputs = tf.zeros([2, 4], tf.float64), []
    for k in range(STEPS):
        h = cell(h, x[k])
        outputs.append(h)
    return tf.stack(outputs, axis=1)


def while_loop(x):
    def body(i, h):
        return i + 1, cell(h, x[0]) * 0.9

    start = (tf.constant(0), tf.zeros([2, 4], tf.float64))
    return tf.while_loop(lambda i, _: i < STEPS, body, start)[1]


def two_states(x):
    h = c = tf.zeros([2, 4], tf.float64)
    for row in tf.unstack(x):
        gate = tf.sigmoid(row @ W + h @ U)
        c = gate * c + (1.0 - gate) * cell(h, row)
        h = tf.tanh(c)
    return h + c


def reverse_scan(x):
    return tf.scan(cell, x, initializer=tf.zeros([2, 4], tf.float64), reverse=True)


def over_columns(x):
    h = tf.zeros([2, 4], tf.float64)
    y = tf.transpose(x, [1, 0, 2])
    for k in range(STEPS):
        h = cell(h, y[:, k])
    return h


def lag_of_two(x):
    previous, h = tf.zeros([2, 4], tf.float64), tf.ones([2, 4], tf.float64)
    for row in tf.unstack(x):
        previous, h = h, cell(previous, row) + 0.1 * h
    return h


def two_layers(x):
    """Runs two layers; the second iterates over the outputs of the first in reverse."""
    h, outputs = tf.zeros([2, 4], tf.float64), []
    y = tf.sin(x)
    for k in range(STEPS):
        h = cell(h, y[k])
        outputs.append(h)
    z = tf.stack(outputs)
    for k in reversed(range(STEPS)):
        h = tf.tanh(z[k] @ U + h)
    return h


def neighboring_rows(x):
    """Rows are used by two iterations, and some of them outside the loop."""
    h = tf.zeros([2, 4], tf.float64)
    for k in range(1, STEPS):
        h = cell(h, x[k] + 0.5 * x[k - 1]) + tf.reduce_sum(x[k, 0])
    return h * tf.reduce_sum(x) + tf.reduce_sum(x[3])


def slices_of_a_row(x):
    h, y = tf.zeros([2, 4], tf.float64), tf.transpose(x, [1, 0, 2])
    for k in range(2, STEPS, 2):
        h = cell(h, y[1, k : k + 1] + y[0, k : k + 1])
    return h


PROGRAMS = {
    f.__name__: f
    for f in (
        scan,
        fold,
        map_rows,
        range_loop,
        while_loop,
        two_states,
        reverse_scan,
        over_columns,
        lag_of_two,
        two_layers,
        neighboring_rows,
        slices_of_a_row,
    )
}


def with_gradients(program):
    """Returns a function that computes a loss and its gradients."""

    def step(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_mean(program(x) ** 2)
        return y, *tape.gradient(y, [x, W, U, B], unconnected_gradients="zero")

    return step


@pytest.mark.parametrize("name", PROGRAMS)
def test_rerolled_loops_match_eager_code(name):
    step = with_gradients(PROGRAMS[name])
    f = tf.function(step, jit_compile=True)
    for scale in (1.0, 0.5):
        x = X * tf.constant(scale, tf.float64)
        f(x)
        for a, b in zip(step(x), f(x), strict=True):
            np.testing.assert_allclose(b, a, rtol=1e-10, atol=1e-14)


def calls_before_and_after(step, x):
    """Returns the calls of the first trace before and after re-rolling."""
    f = tf.function(step, jit_compile=True)
    f(x)
    f(x)
    program = f._history[0].trace.executable.compiled()
    return program._calls, reroll(program._calls, program._specs, set(program.outputs))


LOOPS = {"scan": 2, "fold": 2, "two_states": 2, "range_loop": 2, "over_columns": 2}


@pytest.mark.parametrize("name", [*LOOPS, "two_layers"])
def test_rerolling_reduces_the_number_of_calls(name):
    calls, rerolled = calls_before_and_after(with_gradients(PROGRAMS[name]), X)
    loops = [entry for entry in rerolled if type(entry) is Loop]
    rerolled = [entry for entry in rerolled if not is_slice(entry)]  # many slices are taken at once

    assert len(calls) > 8 * STEPS
    assert len(rerolled) < 80
    assert {loop.iterations for loop in loops} <= set(range(STEPS - 3, STEPS + 1))
    assert len(loops) == LOOPS.get(name, 4)


def is_slice(entry):
    return type(entry) is not Loop and entry.primitive.name == "take_slice"


def test_loop_of_1000_iterations():
    x = tf.constant(RNG.normal(size=(1000, 2, 3)))

    def step(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            h, rows = tf.zeros([2, 4], tf.float64), tf.sin(x)
            for k in range(1000):
                h = cell(h, rows[k])
            y = tf.reduce_mean(h**2)
        return y, *tape.gradient(y, [x, W, U, B])

    calls, rerolled = calls_before_and_after(step, x)
    f = tf.function(step, jit_compile=True)
    f(x)

    assert len(calls) > 8000
    assert len([entry for entry in rerolled if not is_slice(entry)]) < 60
    for a, b in zip(step(x), f(x), strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-9, atol=1e-14)


def test_second_derivatives_of_a_loop():
    f = tf.function(lambda x: tf.reduce_sum(fold(x) ** 2), jit_compile=True)

    def second(g):
        with tf.GradientTape() as outer:
            with tf.GradientTape() as inner:
                y = g(X)
            d = inner.gradient(y, U)
            s = tf.reduce_sum(d**2)
        return outer.gradient(s, [U, B])

    expected = second(lambda x: tf.reduce_sum(fold(x) ** 2))
    for a, b in zip(expected, second(f), strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-9)


def test_the_backward_pass_of_a_long_loop_keeps_few_values():
    """It recomputes the values of each iteration from the arguments."""

    def body(x):
        h = tf.zeros([2, 4], tf.float64)
        for k in range(100):
            h = cell(h, x[k]) + 0.1 * tf.random.normal([2, 4], dtype=tf.float64)
        return tf.reduce_sum(h**2)

    def gradients(f):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        return tape.gradient(y, [x, W, U])

    x = tf.constant(RNG.normal(size=(100, 2, 3)))
    f = tf.function(body, jit_compile=True)
    gradients(f)
    tf.random.set_seed(1)
    expected = gradients(body)
    tf.random.set_seed(1)

    for a, b in zip(expected, gradients(f), strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-9)
    (derivative,) = f._history[0].trace._differentiable._derivatives.values()
    random_draws = 100  # random numbers are kept, because they cannot be recomputed
    assert len(derivative._forward.program.results) < 10 + 2 * random_draws
    assert not derivative._residuals


def test_short_programs_are_not_rerolled():
    calls, rerolled = calls_before_and_after(lambda x: tf.sin(x) * 2.0, X)

    assert rerolled == calls
