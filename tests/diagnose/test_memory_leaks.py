"""Tests `debugging.assert_no_memory_leak`."""

import pytest

import retrograde as tf
from tests.namespaces.helpers import assert_raises

Exhausted = tf.errors.ResourceExhaustedError
HISTORY = []


@pytest.fixture(autouse=True)
def _clear_history():
    yield
    HISTORY.clear()


def train_step(w):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(w * w)
    w.assign_sub(0.1 * tape.gradient(loss, w))
    return loss


def test_a_step_without_a_leak_passes():
    w = tf.Variable(tf.ones([7]))
    step = tf.debugging.assert_no_memory_leak(steps=6)(train_step)

    assert step.__name__ == "train_step"
    for _ in range(20):
        assert step(w).shape == []


def test_a_global_list_of_tensors_is_named():
    w = tf.Variable(tf.ones([7]))
    with tf.debugging.assert_no_memory_leak(steps=6) as check, pytest.raises(Exhausted) as caught:
        for _ in range(20):
            HISTORY.append(w * train_step(w))
            check.step()

    assert len(HISTORY) == 9
    assert str(caught.value) == (
        "Memory leak: 6 more live tensors (168 B) after 6 steps:\n"
        "  6 x float32[7], 168 B\n"
        f"    one of them is in a list of 9, {__name__}.HISTORY\n"
        "Store numbers instead of tensors (float(loss), x.numpy()), and do not keep tapes after "
        "their step."
    )


def test_an_attribute_with_tensors_is_named():
    class Trainer:
        def __init__(self):
            self.seen = {}

    trainer = Trainer()
    check = tf.debugging.assert_no_memory_leak(steps=4)
    with pytest.raises(Exhausted, match="a dict of 7, attribute seen of a Trainer"):
        for i in range(20):
            trainer.seen[i] = tf.ones([5, 5]) * 2.0
            check.step()


def test_a_tape_that_keeps_recording_is_found():
    w = tf.Variable(tf.ones([7]))
    check = tf.debugging.assert_no_memory_leak(steps=4)
    with tf.GradientTape(persistent=True), pytest.raises(Exhausted) as caught:
        for _ in range(20):
            tf.exp(w)
            check.step()

    assert str(caught.value).splitlines()[:3] == [
        "Memory leak: 4 more live tensors (112 B) after 4 steps:",
        "  4 x float32[7], 112 B",
        "    one of them is in the values that a GradientTape saved for exp",
    ]


def test_tensors_of_the_warm_up_steps_are_not_a_leak():
    w = tf.Variable(tf.ones([7]))
    check = tf.debugging.assert_no_memory_leak(steps=4)
    for i in range(12):
        if i < 3:
            HISTORY.append(w * 2.0)
        train_step(w)
        check.step()


def test_fewer_than_two_steps_raise():
    assert_raises(
        lambda: tf.debugging.assert_no_memory_leak(steps=1),
        ValueError,
        "assert_no_memory_leak: expected `steps` >= 2. Received: 1.",
    )
