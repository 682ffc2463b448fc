"""debugging.no_growth: tensors that pile up are counted, shown, and their holder is named."""

import pytest

import retrograde as tf
from tests.namespaces.helpers import assert_raises

Exhausted = tf.errors.ResourceExhaustedError
HISTORY = []


@pytest.fixture(autouse=True)
def _forget():
    yield
    HISTORY.clear()


def train_step(w):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(w * w)
    w.assign_sub(0.1 * tape.gradient(loss, w))
    return loss


def test_a_step_that_keeps_nothing_passes():
    w = tf.Variable(tf.ones([7]))
    step = tf.debugging.no_growth(steps=6)(train_step)

    assert step.__name__ == "train_step"
    for _ in range(20):
        assert step(w).shape == []


def test_a_list_of_tensors_is_named():
    w = tf.Variable(tf.ones([7]))
    with tf.debugging.no_growth(steps=6) as watch, pytest.raises(Exhausted) as caught:
        for _ in range(20):
            HISTORY.append(w * train_step(w))
            watch.step()

    assert len(HISTORY) == 9
    assert str(caught.value) == (
        "Live tensors grew by 6 in 6 steps, by 168 B:\n"
        "  6 more of float32[7], 168 B\n"
        f"    one of them is in a list of 9, HISTORY of the module {__name__}\n"
        "Keep numbers instead of tensors (float(loss), x.numpy()), and no tapes beyond their step."
    )


def test_an_attribute_that_holds_them_is_named():
    class Trainer:
        def __init__(self):
            self.seen = {}

    trainer = Trainer()
    watch = tf.debugging.no_growth(steps=4)
    with pytest.raises(Exhausted, match="a dict of 7, seen of a Trainer"):
        for i in range(20):
            trainer.seen[i] = tf.ones([5, 5]) * 2.0
            watch.step()


def test_a_tape_that_goes_on_recording_is_found():
    w = tf.Variable(tf.ones([7]))
    watch = tf.debugging.no_growth(steps=4)
    with tf.GradientTape(persistent=True), pytest.raises(Exhausted) as caught:
        for _ in range(20):
            tf.exp(w)
            watch.step()

    assert str(caught.value).splitlines()[:3] == [
        "Live tensors grew by 4 in 4 steps, by 112 B:",
        "  4 more of float32[7], 112 B",
        "    one of them is in what a GradientTape keeps of exp",
    ]


def test_what_is_made_in_the_first_steps_is_no_growth():
    w = tf.Variable(tf.ones([7]))
    watch = tf.debugging.no_growth(steps=4)
    for i in range(12):
        if i < 3:
            HISTORY.append(w * 2.0)
        train_step(w)
        watch.step()


def test_fewer_steps_than_two_are_refused():
    assert_raises(
        lambda: tf.debugging.no_growth(steps=1),
        ValueError,
        "no_growth: expected 2 steps or more. Received: 1.",
    )
