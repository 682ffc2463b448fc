"""ForwardAccumulator, alone, nested, and with tapes."""

import gc
import logging
import threading

import numpy as np
import pytest

import retrograde as tf
from retrograde.core.recorders import thread
from tests.namespaces.helpers import assert_raises

Accumulator = tf.autodiff.ForwardAccumulator


@pytest.fixture(autouse=True)
def _no_recorder_stays_active():
    yield
    assert thread.recorders == []


def f(x):
    """Combines rules that read y, broadcasts, reductions, a gather and a split."""
    a, b = tf.split(tf.exp(tf.gather(x, [0, 2, 1, 0])) * x[1], 2)
    return tf.reduce_prod(tf.concat([tf.tanh(a), b * b], 0)) + tf.reduce_max(x) * x


X = np.array([0.3, -0.8, 1.2])
T = np.array([1.0, -2.0, 0.5])
U = np.array([0.4, 0.1, -0.7])


def jvp(f, x, t):
    with Accumulator(x, tf.constant(t)) as forward:
        y = f(x)
    return forward.jvp(y)


def gradient(f, x, weights=None):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    return tape.gradient(y, x, weights)


def test_a_tangent_agrees_with_finite_differences():
    step = 1e-6
    plus, minus = (f(tf.constant(X + h * T)).numpy() for h in (step, -step))

    np.testing.assert_allclose(
        jvp(f, tf.constant(X), T), (plus - minus) / (2 * step), rtol=1e-8, atol=1e-9
    )


def test_forward_over_reverse_agrees_with_reverse_over_forward_and_reverse_over_reverse():
    def scalar(x):
        return tf.reduce_sum(f(x) ** 2)

    x, t = tf.constant(X), tf.constant(T)
    forward_over_reverse = jvp(lambda x: gradient(scalar, x), x, T)
    reverse_over_forward = gradient(lambda x: jvp(scalar, x, T), x)
    reverse_over_reverse = gradient(lambda x: tf.reduce_sum(gradient(scalar, x) * t), x)

    np.testing.assert_allclose(forward_over_reverse, reverse_over_reverse, rtol=1e-11)
    np.testing.assert_allclose(reverse_over_forward, reverse_over_reverse, rtol=1e-11)


def test_accumulators_nest_to_any_order():
    x = tf.constant(X)

    def third(x):
        return jvp(lambda x: jvp(lambda x: jvp(lambda x: x**4 * tf.sin(x), x, T), x, U), x, T)

    def by_tapes(x):
        first = lambda x: gradient(lambda x: x**4 * tf.sin(x), x) * T  # noqa: E731
        second = lambda x: gradient(first, x) * U  # noqa: E731
        return gradient(second, x) * T

    np.testing.assert_allclose(third(x), by_tapes(x), rtol=1e-11)


def test_an_inner_accumulator_does_not_record_the_outer_one():
    x = tf.constant(2.0)
    with Accumulator(x, 1.0) as outer, Accumulator(x, 1.0) as inner:
        y = x**3

    assert inner.jvp(outer.jvp(y)) is None
    assert float(outer.jvp(inner.jvp(y))) == 12.0


def test_an_inner_tape_does_not_record_the_accumulator():
    x = tf.constant(2.0)
    with Accumulator(x, 1.0) as forward, tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = tf.exp(x)

    assert tape.gradient(forward.jvp(y), x) is None
    assert len(tape._entries) == 1


def test_primals_and_tangents_can_be_structures():
    primals = {"a": tf.constant(2.0), "b": (tf.Variable([5.0, 6.0]),)}
    with Accumulator(primals, {"a": 1.0, "b": (np.array([10.0, 20.0], "float32"),)}) as forward:
        y = primals["a"] * primals["b"][0]

    result = forward.jvp([y, {"a": primals["a"], "v": primals["b"][0]}])

    assert result[0].numpy().tolist() == [25.0, 46.0]
    assert float(result[1]["a"]) == 1.0
    assert result[1]["v"].numpy().tolist() == [10.0, 20.0]


def test_unconnected_tensors_give_none_or_zeros():
    x, other = tf.constant([1.0, 2.0]), tf.constant([3.0])
    with Accumulator(x, tf.ones([2])) as forward:
        y, z = other * 2.0, tf.argmax(x)

    assert forward.jvp([y, z]) == [None, None]
    zeros = forward.jvp(y, unconnected_gradients=tf.UnconnectedGradients.ZERO)
    assert zeros.numpy().tolist() == [0.0]


def test_the_tangent_of_a_variable_survives_an_assignment():
    v = tf.Variable([1.0, 2.0])
    with Accumulator(v, tf.constant([1.0, 0.0])) as forward:
        v.assign(v * 3.0)
        y = v * v

    assert forward.jvp(y).numpy().tolist() == [6.0, 0.0]


def test_custom_gradients_are_used_in_forward_mode():
    @tf.custom_gradient
    def f(x):
        return x * x, lambda upstream: upstream * 7.0

    assert float(jvp(f, tf.constant(2.0), np.float32(3.0))) == 21.0


def test_recompute_grad_in_forward_mode():
    x = tf.constant(X)
    np.testing.assert_allclose(jvp(tf.recompute_grad(tf.sin), x, T), np.cos(X) * T, rtol=1e-12)


def test_complex_tangents():
    z, t = tf.constant([1 + 2j, 0.5 - 1j]), np.array([1j, 2 - 1j])

    np.testing.assert_allclose(jvp(lambda z: z * z, z, t), 2 * z.numpy() * t, rtol=1e-12)
    np.testing.assert_allclose(
        jvp(tf.math.abs, z, t), np.real(np.conj(z.numpy()) * t) / np.abs(z.numpy()), rtol=1e-12
    )


def test_an_accumulator_can_be_entered_again():
    x = tf.constant(3.0)
    with Accumulator(x, 1.0) as forward:
        y = x * x
    outside = y * 100.0
    with forward:
        z = y * 2.0

    assert forward.jvp(outside) is None
    assert float(forward.jvp(z)) == 12.0


def test_tangents_of_freed_tensors_are_freed():
    x = tf.constant(X)
    with Accumulator(x, tf.constant(T)) as forward:
        y = x
        for _ in range(50):
            y = tf.sin(y)
    gc.collect()

    assert len(forward._tangents) == 2
    assert forward.jvp(y) is not None


def test_other_threads_are_not_recorded():
    x = tf.constant(2.0)
    results = []
    with Accumulator(x, 1.0) as forward:
        worker = threading.Thread(target=lambda: results.append(x * x))
        worker.start()
        worker.join()

    assert forward.jvp(results[0]) is None


def test_integers_have_no_tangents(caplog):
    with caplog.at_level(logging.WARNING, "retrograde"):
        x = tf.constant([1, 2])
        with Accumulator(x, tf.constant([1, 1])) as forward:
            y = x * x

    assert forward.jvp(y) is None
    assert caplog.messages == [
        "The dtype of the watched primal must be floating (e.g. tf.float32), got tf.int32"
    ]


def test_error_messages():
    x = tf.constant([1.0, 2.0])
    forward = Accumulator(x, x)

    def enter_twice():
        with forward, forward:
            pass

    assert_raises(enter_twice, ValueError, "Accumulator is already recording.")
    assert_raises(
        lambda: Accumulator(x, tf.ones([3])),
        ValueError,
        "A tangent has shape (3,), its primal (2,). Expected the same shape.",
    )
    assert_raises(
        lambda: Accumulator(x, tf.ones([2], tf.float64)),
        ValueError,
        "Tensor conversion requested dtype float32 for a tensor with dtype float64. Use tf.cast to "
        "change the dtype.",
    )
    assert_raises(
        lambda: Accumulator(2.0, 1.0),
        TypeError,
        "A primal must be a tensor or a variable. Received: 2.0 of type 'float'.",
    )
    assert_raises(
        lambda: forward.jvp(3.0),
        TypeError,
        "jvp() expects tensors or variables. Received: 3.0 of type 'float'.",
    )
    assert_raises(
        lambda: Accumulator([1.0], [1.0, 2.0]),
        ValueError,
        "The primals and tangents don't have the same nested structure.\n"
        "  primals: [1.0]\n"
        "  tangents: [1.0, 2.0]\n"
        "Expected one tangent for each primal. Use tf.constant for lists and arrays.",
    )


def test_a_failing_block_removes_the_recorder():
    x = tf.constant(1.0)
    with pytest.raises(KeyError), Accumulator(x, 1.0):
        raise KeyError
    assert thread.recorders == []
