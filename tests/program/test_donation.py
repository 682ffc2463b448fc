"""Donation to a compiled step shows in no value of a variable."""

import contextlib
import itertools
import threading
import weakref

import jax
import pytest

import retrograde as tf
from retrograde.core import variable_cell
from retrograde.core.tensor import wrap
from retrograde.core.variable_cell import writing
from retrograde.program import donation
from retrograde.program.donation import Donation
from tests.interrupts import At, interrupt


def pair():
    """Two variables, and a step that adds to both."""
    variables = [tf.Variable(tf.zeros([64, 64])) for _ in range(2)]

    @tf.function(jit_compile=True)
    def step(x):
        for v in variables:
            v.assign_add(x)
        return tf.reduce_sum(x)

    x = tf.ones([64, 64])
    for _ in range(3):
        step(x)
    return variables, step, x


def whole(array):
    """The one number that an array is full of."""
    assert array.min() == array.max()
    return float(array.flat[0])


def run_together(*works):
    """Runs functions in threads of their own, and raises what they raise."""
    errors = []

    def guarded(work):
        try:
            work()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=[work]) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    if errors:
        raise errors[0]


def test_variables_are_donated_from_call_to_call_until_they_are_read():
    variables, step, x = pair()

    def are_donated():
        return [v._owner is not None for v in variables]

    assert are_donated() == [True, True]
    assert whole(variables[0].numpy()) == 3.0
    assert are_donated() == [False, True]
    step(x)
    assert are_donated() == [True, True]
    assert [whole(v.numpy()) for v in variables] == [4.0, 4.0]
    assert are_donated() == [False, False]


CHANGES = {
    "assign": lambda v: v.assign(tf.fill([64, 64], 10.0)),
    "assign_add": lambda v: v.assign_add(tf.fill([64, 64], 7.0)),
    "a part": lambda v: v[:].assign(10.0),
    "scatter": lambda v: v.scatter_update(
        tf.IndexedSlices(tf.fill([64, 64], 10.0), tf.range(64), [64, 64])
    ),
    "a function": lambda v: tf.function(lambda: v.assign(v + 7.0))(),
    "a compiled function": lambda v: tf.function(lambda: v.assign(v + 7.0), jit_compile=True)(),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_what_is_assigned_between_calls_counts(change):
    (first, second), step, x = pair()
    change(first)
    assert whole(first.numpy()) == 10.0
    step(x)
    step(x)

    assert [whole(v.numpy()) for v in (first, second)] == [12.0, 5.0]


def test_what_is_assigned_unseen_counts():
    (first, second), step, x = pair()
    first.assign(tf.fill([64, 64], 10.0))
    step(x)

    assert [whole(v.numpy()) for v in (first, second)] == [11.0, 4.0]


def test_the_same_variables_are_donated_to_one_function_after_another():
    (first, second), step, x = pair()
    double = tf.function(lambda: tf.reduce_sum(first.assign(2.0 * first)), jit_compile=True)
    expected = 3.0
    for _ in range(5):
        double()
        step(x)
        expected = 2 * expected + 1

    assert [whole(v.numpy()) for v in (first, second)] == [expected, 8.0]


def test_variables_that_are_arguments_are_donated_for_one_call():
    step = tf.function(lambda v, x: tf.reduce_sum(v.assign_add(x)), jit_compile=True)
    variables = [tf.Variable([float(i)]) for i in range(2)]
    for _ in range(4):
        for v in variables:
            step(v, tf.constant([1.0]))
            assert v._owner is None

    assert [v.numpy().tolist() for v in variables] == [[4.0], [5.0]]


def test_a_variable_outlives_the_function_that_it_was_donated_to():
    variables, step, _ = pair()
    del step

    assert [whole(v.numpy()) for v in variables] == [3.0, 3.0]


def test_a_result_lives_no_longer_than_its_tensor():
    v = tf.Variable([0.0])
    step = tf.function(lambda x: [v.assign_add([1.0]), x * 2.0][1], jit_compile=True)
    for _ in range(3):
        y = step(tf.ones([3]))
    array = weakref.ref(y._device)
    del y

    assert array() is None
    assert v._owner is not None


def test_an_array_of_jax_that_is_held_elsewhere_is_not_donated():
    array = jax.numpy.zeros([3])
    v = tf.Variable(tf.zeros([3]))
    step = tf.function(lambda x: tf.reduce_sum(v.assign_add(x)), jit_compile=True)
    step(tf.ones([3]))
    v._hold(wrap(array))
    step(tf.ones([3]))

    assert not array.is_deleted()
    assert whole(v.numpy()) == 1.0


def test_a_call_that_fails_leaves_variables_as_they_were():
    variables = [tf.Variable(tf.fill([2], float(i))) for i in range(2)]
    donation = Donation(variables, 1)

    def failing(*_):
        raise ZeroDivisionError

    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            donation.run(failing, ())
    assert [whole(v.numpy()) for v in variables] == [0.0, 1.0]


# Threads


def test_a_thread_can_read_what_another_trains():
    variables, step, x = pair()
    seen = []
    training = threading.Event()

    def train():
        for _ in range(200):
            step(x)
        training.set()

    def read():
        while not training.is_set():
            seen.append([whole(v.numpy()) for v in variables])

    run_together(train, read)
    assert seen == sorted(seen)
    assert [whole(v.numpy()) for v in variables] == [203.0, 203.0]


def test_two_steps_may_read_what_the_other_writes():
    """As those of a generator and a discriminator do, here in two threads."""
    first, second = (tf.Variable(tf.zeros([100])) for _ in range(2))

    def adding(written, read):
        compiled = tf.function(
            lambda x: tf.reduce_sum(written.assign_add(x + 0.0 * read)), jit_compile=True
        )

        def work():
            for _ in range(100):
                compiled(tf.ones([100]))

        return work

    run_together(adding(first, second), adding(second, first))
    assert [whole(v.numpy()) for v in (first, second)] == [100.0, 100.0]


# Signals, which Python handles between any two instructions

FILES = [donation.__file__, variable_cell.__file__]


@contextlib.contextmanager
def released():
    """Releases locks that a simulated interrupt left: signals do not come there."""
    yield
    for lock in (donation._lock, writing):
        while lock._is_owned():
            lock.release()


def test_a_tensor_read_at_any_instruction_of_a_donation_stays_valid():
    variables, step, x = pair()
    for n in itertools.count(1):
        held = []

        def read(held=held):
            held.extend(v._tensor for v in variables if v._tensor is not None)

        for v in variables:
            v._current()  # ends the donation
        with At(n, read, FILES) as place:
            step(x)
        for tensor in held:
            assert whole(tensor.numpy()) in (n + 2, n + 3)
        if not place.was_reached:
            break
    assert n > 100


LENGTHS = {"which begins a donation": False, "in a donation": True}


@pytest.mark.parametrize("is_donated", LENGTHS.values(), ids=LENGTHS)
def test_an_interrupt_loses_nothing(is_donated):
    """Control-C leaves all variables with the values of one and the same step."""

    variables, step, x = pair()
    steps = 3.0
    for n in itertools.count(1):
        if is_donated:
            step(x)
            steps += 1
        with At(n, interrupt, FILES) as place, released(), contextlib.suppress(KeyboardInterrupt):
            step(x)
            variables[0].numpy()
        values = {whole(v.numpy()) for v in variables}
        assert values in ({steps}, {steps + 1})
        (steps,) = values
        if not place.was_reached:
            break
    assert n > 100


@pytest.mark.parametrize("is_donated", LENGTHS.values(), ids=LENGTHS)
def test_a_signal_handler_can_read_variables(is_donated):
    variables, step, x = pair()
    steps = 3
    for n in itertools.count(1):
        if is_donated:
            step(x)
            steps += 1
        seen = []
        with At(n, lambda: seen.extend(whole(v.numpy()) for v in variables), FILES) as place:  # noqa: B023
            step(x)
            steps += 1
        if not place.was_reached:
            break
        assert seen in ([steps - 1] * 2, [steps] * 2)
    assert n > 40
    assert [whole(v.numpy()) for v in variables] == [steps] * 2
