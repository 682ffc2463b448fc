"""Tests the lifecycle of tapes: persistence, stopping, reset, re-entry, nesting and threads."""

import threading

import numpy as np
import pytest

import retrograde as tf
from retrograde.core.recorders import thread
from retrograde.values import errors


@pytest.fixture(autouse=True)
def _assert_no_active_recorders():
    yield
    assert thread.recorders == []


def floats(structure):
    return [None if g is None else float(g) for g in structure]


# Persistence


def test_a_persistent_tape_can_be_used_repeatedly():
    x = tf.Variable(2.0)

    with tf.GradientTape(persistent=True) as tape:
        y = x * x
        z = y * x

    assert [float(tape.gradient(t, x)) for t in (y, z, y, z)] == [4.0, 12.0, 4.0, 12.0]


def test_a_persistent_tape_records_its_own_gradient_calls():
    x = tf.Variable(2.0)

    with tf.GradientTape(persistent=True) as tape:
        y = x**4
        first = tape.gradient(y, x)
        second = tape.gradient(first, x)

    assert floats([first, second, tape.gradient(second, x)]) == [32.0, 48.0, 48.0]


def test_gradient_inside_the_block_ends_the_recording():
    x = tf.Variable(2.0)

    with tf.GradientTape() as tape:
        y = x * x
        gradient = tape.gradient(y, x)
        z = gradient * x

    assert float(gradient) == 4.0
    with pytest.raises(RuntimeError, match="can only be used to compute one set of gradients"):
        tape.gradient(z, x)


def test_an_outer_tape_records_gradient_calls_of_an_inner_tape():
    x = tf.Variable(2.0)

    with tf.GradientTape() as outer, tf.GradientTape() as inner:
        y = x**3
        gradient = inner.gradient(y, x)

    assert floats([gradient, outer.gradient(gradient, x)]) == [12.0, 12.0]


# Stopping, resetting, re-entering


def test_stop_recording():
    x = tf.Variable(2.0)

    with tf.GradientTape() as tape:
        with tape.stop_recording():
            y = x * x
        z = x * y

    assert float(tape.gradient(z, x)) == 4.0


def test_stop_recording_affects_only_its_own_tape():
    x = tf.Variable(2.0)

    with tf.GradientTape() as outer, tf.GradientTape() as inner, inner.stop_recording():
        y = x * x

    assert float(outer.gradient(y, x)) == 4.0
    assert inner.gradient(y, x) is None


def test_recording_resumes_after_an_exception_in_stop_recording():
    x = tf.Variable(2.0)

    with tf.GradientTape() as tape:
        with pytest.raises(ZeroDivisionError), tape.stop_recording():
            raise ZeroDivisionError
        y = x * x

    assert float(tape.gradient(y, x)) == 4.0


def test_stop_recording_can_be_repeated_and_followed_by_reset():
    x = tf.Variable(2.0)

    with tf.GradientTape() as tape:
        for _ in range(2):
            with tape.stop_recording():
                y = x * x
        tape.reset()
        y = x * x

    assert float(tape.gradient(y, x)) == 4.0


def test_a_persistent_tape_can_compute_gradients_while_stopped():
    x = tf.Variable(2.0)

    with tf.GradientTape(persistent=True) as tape:
        y = x**3
        with tape.stop_recording():
            gradient = tape.gradient(y, x)
        z = gradient * x

    assert floats([gradient, tape.gradient(z, x), tape.gradient(gradient, x)]) == [12.0, 12.0, None]


def test_a_non_persistent_tape_can_be_used_once_while_stopped():
    x = tf.Variable(2.0)

    with tf.GradientTape() as tape:
        y = x**3
        with tape.stop_recording():
            gradient = tape.gradient(y, x)
        y = x * x

    assert float(gradient) == 12.0
    with pytest.raises(RuntimeError, match="one set of gradients"):
        tape.gradient(y, x)


def test_stop_recording_and_reset_require_an_active_tape():
    tape = tf.GradientTape()

    with pytest.raises(RuntimeError, match="not recording"), tape.stop_recording():
        pass
    with pytest.raises(ValueError, match="not recording"):
        tape.reset()
    with tape:
        pass
    with pytest.raises(ValueError, match="not recording"), tape.stop_recording():
        pass


def test_reset_clears_recorded_operations_and_watched_sources():
    x, y = tf.Variable(2.0), tf.constant(3.0)

    with tf.GradientTape() as tape:
        tape.watch(y)
        before = x * y
        tape.reset()
        z = before * x * y

    assert floats(tape.gradient(z, [x, y])) == [18.0, None]
    assert tape.watched_variables() == (x,)


def test_an_active_tape_cannot_be_entered_again():
    tape = tf.GradientTape()

    with tape, pytest.raises(ValueError, match="Tape is still recording"), tape:
        pass


def test_recording_resumes_when_a_tape_is_entered_again():
    x = tf.constant(2.0)
    tape = tf.GradientTape()

    with tape:
        tape.watch(x)
        y = x * x
    not_recorded = y * x
    with tape:
        z = y * y + not_recorded

    assert float(tape.gradient(z, x)) == 32.0


def test_a_used_tape_can_be_entered_again():
    x = tf.Variable(2.0)
    tape = tf.GradientTape()

    with tape:
        y = x * x
    tape.gradient(y, x)
    with tape:
        y = x**3

    assert float(tape.gradient(y, x)) == 12.0


def test_a_tape_is_usable_after_an_exception_in_its_block():
    x = tf.Variable(2.0)

    with pytest.raises(ZeroDivisionError), tf.GradientTape() as tape:
        y = x * x
        raise ZeroDivisionError

    assert float(tape.gradient(y, x)) == 4.0


def test_a_failed_operation_is_not_recorded():
    x = tf.Variable([2.0])

    with tf.GradientTape() as tape:
        y = x * x
        with pytest.raises(errors.InvalidArgumentError):
            y = y + tf.constant([1])

    assert tape.gradient(y, x).numpy().tolist() == [4.0]


# Several tapes


@pytest.mark.parametrize("order", range(1, 7))
def test_higher_order_derivatives(order):
    x = tf.constant(2.0, tf.float64)
    expected = [6 * 2.0**5, 30 * 2.0**4, 120 * 2.0**3, 360 * 2.0**2, 720 * 2.0, 720.0]

    def derivative(n):
        if n == 0:
            return x**6
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = derivative(n - 1)
        return tape.gradient(y, x)

    np.testing.assert_allclose(derivative(order).numpy(), expected[order - 1], rtol=1e-12)


def test_fourth_derivative_with_one_persistent_tape():
    x = tf.Variable(2.0)

    with tf.GradientTape(persistent=True) as tape:
        y = x * x * x * x * x * x
        for _ in range(3):
            y = tape.gradient(y, x)

    assert float(tape.gradient(y, x)) == 360.0 * 4.0


def test_mixed_second_derivatives():
    x, y = tf.Variable(2.0), tf.Variable(3.0)

    with tf.GradientTape(persistent=True) as outer:
        with tf.GradientTape() as inner:
            z = x * x * y * y * y
        dx, dy = inner.gradient(z, [x, y])

    assert floats(outer.gradient(dx, [x, y])) == [54.0, 108.0]
    assert floats(outer.gradient(dy, [x, y])) == [108.0, 72.0]


def test_overlapping_tapes_that_are_not_nested():
    x = tf.Variable(2.0)
    first, second = tf.GradientTape(), tf.GradientTape()

    first.__enter__()
    a = x * x
    second.__enter__()
    b = a * x
    first.__exit__(None, None, None)
    c = b * x
    second.__exit__(None, None, None)

    assert floats(first.gradient([b, c], [a, x])) == [2.0, 12.0]
    assert floats(second.gradient(c, [a, x])) == [None, 16.0]


def test_tapes_that_record_the_same_operations_are_independent():
    x, y = tf.constant(2.0), tf.constant(3.0)

    with tf.GradientTape() as one, tf.GradientTape() as two:
        one.watch(x)
        two.watch(y)
        z = x * y

    assert floats(one.gradient(z, [x, y])) == [3.0, None]
    assert floats(two.gradient(z, [x, y])) == [None, 2.0]


def test_gradient_of_the_inner_tape_after_the_outer_tape_ended():
    x = tf.Variable(2.0)

    with tf.GradientTape() as outer, tf.GradientTape() as inner:
        y = x**3
    gradient = inner.gradient(y, x)

    assert float(gradient) == 12.0
    assert outer.gradient(gradient, x) is None


# Threads


def run_in_thread(f):
    """Returns the result of `f`, called in another thread."""
    results = []
    worker = threading.Thread(target=lambda: results.append(f()))
    worker.start()
    worker.join()
    return results[0]


def test_a_tape_records_only_its_own_thread():
    x = tf.Variable(2.0)

    with tf.GradientTape() as tape:
        y = run_in_thread(lambda: x * x)
        z = x * x

    assert tape.gradient([y, z], x).numpy() == 4.0


def test_concurrent_threads_use_separate_tapes():
    x = tf.Variable(2.0)
    barrier = threading.Barrier(4)
    results = {}

    def work(power):
        for _ in range(20):
            barrier.wait()
            with tf.GradientTape() as tape:
                y = x
                for _ in range(power - 1):
                    y = y * x
            results.setdefault(power, set()).add(float(tape.gradient(y, x)))

    workers = [threading.Thread(target=work, args=(power,)) for power in (2, 3, 4, 5)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()

    assert results == {2: {4.0}, 3: {12.0}, 4: {32.0}, 5: {80.0}}


def test_gradient_can_be_called_in_another_thread():
    x = tf.Variable(2.0)

    with tf.GradientTape() as tape:
        y = x * x

    assert float(run_in_thread(lambda: tape.gradient(y, x))) == 4.0


def test_gradient_in_another_thread_ends_the_recording():
    x = tf.Variable(2.0)

    with tf.GradientTape() as tape:
        y = x * x
        gradient = run_in_thread(lambda: tape.gradient(y, x))
        z = y * x

    assert float(gradient) == 4.0
    with pytest.raises(RuntimeError, match="one set of gradients"):
        tape.gradient(z, x)


def test_a_tape_entered_while_another_is_stopped_keeps_recording():
    x = tf.Variable(3.0)
    outer, inner = tf.GradientTape(), tf.GradientTape()
    with outer:
        stopped = outer.stop_recording()
        stopped.__enter__()
        inner.__enter__()
        stopped.__exit__(None, None, None)
        y = x * x
        inner.__exit__(None, None, None)

    assert float(inner.gradient(y, x)) == 6.0
    assert float(outer.gradient(y, x)) == 6.0
