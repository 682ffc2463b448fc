"""Loops found again in recordings, so that XLA compiles one turn and not a thousand."""

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


def by_scan(x):
    return tf.scan(cell, x, initializer=tf.zeros([2, 4], tf.float64))


def by_fold(x):
    return tf.foldl(cell, x, initializer=tf.zeros([2, 4], tf.float64))


def by_map(x):
    return tf.map_fn(lambda row: tf.tanh(row @ W) * 2.0, x)


def by_range(x):
    h, found = tf.zeros([2, 4], tf.float64), []
    for k in range(STEPS):
        h = cell(h, x[k])
        found.append(h)
    return tf.stack(found, axis=1)


def by_while(x):
    def body(i, h):
        return i + 1, cell(h, x[0]) * 0.9

    start = (tf.constant(0), tf.zeros([2, 4], tf.float64))
    return tf.while_loop(lambda i, _: i < STEPS, body, start)[1]


def by_two_states(x):
    h = c = tf.zeros([2, 4], tf.float64)
    for row in tf.unstack(x):
        gate = tf.sigmoid(row @ W + h @ U)
        c = gate * c + (1.0 - gate) * cell(h, row)
        h = tf.tanh(c)
    return h + c


def from_behind(x):
    return tf.scan(cell, x, initializer=tf.zeros([2, 4], tf.float64), reverse=True)


def over_columns(x):
    h = tf.zeros([2, 4], tf.float64)
    y = tf.transpose(x, [1, 0, 2])
    for k in range(STEPS):
        h = cell(h, y[:, k])
    return h


def with_a_lag_of_two(x):
    before, h = tf.zeros([2, 4], tf.float64), tf.ones([2, 4], tf.float64)
    for row in tf.unstack(x):
        before, h = h, cell(before, row) + 0.1 * h
    return h


def two_layers(x):
    """Of which the second goes over rows that the first has computed, from behind."""
    h, found = tf.zeros([2, 4], tf.float64), []
    y = tf.sin(x)
    for k in range(STEPS):
        h = cell(h, y[k])
        found.append(h)
    z = tf.stack(found)
    for k in reversed(range(STEPS)):
        h = tf.tanh(z[k] @ U + h)
    return h


def with_neighbours(x):
    """Rows are used more than once, some of them in other places too."""
    h = tf.zeros([2, 4], tf.float64)
    for k in range(1, STEPS):
        h = cell(h, x[k] + 0.5 * x[k - 1]) + tf.reduce_sum(x[k, 0])
    return h * tf.reduce_sum(x) + tf.reduce_sum(x[3])


def within_a_row(x):
    h, y = tf.zeros([2, 4], tf.float64), tf.transpose(x, [1, 0, 2])
    for k in range(2, STEPS, 2):
        h = cell(h, y[1, k : k + 1] + y[0, k : k + 1])
    return h


PROGRAMS = {
    f.__name__: f
    for f in (
        by_scan,
        by_fold,
        by_map,
        by_range,
        by_while,
        by_two_states,
        from_behind,
        over_columns,
        with_a_lag_of_two,
        two_layers,
        with_neighbours,
        within_a_row,
    )
}


def trained(program):
    """The value of a program and its gradients, by the input too."""

    def step(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_mean(program(x) ** 2)
        return y, *tape.gradient(y, [x, W, U, B], unconnected_gradients="zero")

    return step


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_same_numbers_as_without(name):
    step = trained(PROGRAMS[name])
    f = tf.function(step, jit_compile=True)
    for scale in (1.0, 0.5):
        x = X * tf.constant(scale, tf.float64)
        f(x)
        for a, b in zip(step(x), f(x), strict=True):
            np.testing.assert_allclose(b, a, rtol=1e-10, atol=1e-14)


def calls_of(step, x):
    """What XLA is given: the calls of the first recording, as they are and reroll up."""
    f = tf.function(step, jit_compile=True)
    f(x)
    f(x)
    program = f._history[0].trace.executable.compiled()
    return program._calls, reroll(program._calls, program._specs, set(program.outputs))


LOOPS = {"by_scan": 2, "by_fold": 2, "by_two_states": 2, "by_range": 2, "over_columns": 2}


@pytest.mark.parametrize("name", [*LOOPS, "two_layers"])
def test_few_calls_are_left(name):
    calls, left = calls_of(trained(PROGRAMS[name]), X)
    loops = [entry for entry in left if type(entry) is Loop]
    left = [entry for entry in left if not is_slice(entry)]  # of which many are cut out at once

    assert len(calls) > 8 * STEPS
    assert len(left) < 80
    assert {loop.iterations for loop in loops} <= set(range(STEPS - 3, STEPS + 1))
    assert len(loops) == LOOPS.get(name, 4)


def is_slice(entry):
    return type(entry) is not Loop and entry.primitive.name == "take_slice"


def test_a_thousand_steps():
    x = tf.constant(RNG.normal(size=(1000, 2, 3)))

    def step(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            h, rows = tf.zeros([2, 4], tf.float64), tf.sin(x)
            for k in range(1000):
                h = cell(h, rows[k])
            y = tf.reduce_mean(h**2)
        return y, *tape.gradient(y, [x, W, U, B])

    calls, left = calls_of(step, x)
    f = tf.function(step, jit_compile=True)
    f(x)

    assert len(calls) > 8000
    assert len([entry for entry in left if not is_slice(entry)]) < 60
    for a, b in zip(step(x), f(x), strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-9, atol=1e-14)


def test_tapes_around_a_loop():
    f = tf.function(lambda x: tf.reduce_sum(by_fold(x) ** 2), jit_compile=True)

    def second(g):
        with tf.GradientTape() as outer:
            with tf.GradientTape() as inner:
                y = g(X)
            d = inner.gradient(y, U)
            s = tf.reduce_sum(d**2)
        return outer.gradient(s, [U, B])

    expected = second(lambda x: tf.reduce_sum(by_fold(x) ** 2))
    for a, b in zip(expected, second(f), strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-9)


def test_the_way_back_from_a_long_loop_is_handed_little():
    """Not each value of each turn, but the arguments, of which it computes these again."""

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
    drawn = 100  # which nobody could compute again
    assert len(derivative._forward.program.results) < 10 + 2 * drawn
    assert not derivative._residuals


def test_what_is_short_stays_as_it_is():
    calls, left = calls_of(lambda x: tf.sin(x) * 2.0, X)

    assert left == calls
