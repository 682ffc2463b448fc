"""Tests that donating variables to a compiled step never changes the values read from them."""

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
from tests.interrupts import CallAtInstruction, interrupt


def make_step():
    """Returns two variables, a compiled step that adds to both, and its argument."""
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


def only_value(array):
    """Returns the value that all elements of an array have."""
    assert array.min() == array.max()
    return float(array.flat[0])


def run_in_threads(*functions):
    """Runs each function in its own thread and raises their first error."""
    errors = []

    def run(f):
        try:
            f()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=[f]) for f in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    if errors:
        raise errors[0]


def test_variables_are_donated_from_call_to_call_until_they_are_read():
    variables, step, x = make_step()

    def are_donated():
        return [v._owner is not None for v in variables]

    assert are_donated() == [True, True]
    assert only_value(variables[0].numpy()) == 3.0
    assert are_donated() == [False, True]
    step(x)
    assert are_donated() == [True, True]
    assert [only_value(v.numpy()) for v in variables] == [4.0, 4.0]
    assert are_donated() == [False, False]


ASSIGNMENTS = {
    "assign": lambda v: v.assign(tf.fill([64, 64], 10.0)),
    "assign_add": lambda v: v.assign_add(tf.fill([64, 64], 7.0)),
    "slice": lambda v: v[:].assign(10.0),
    "scatter": lambda v: v.scatter_update(
        tf.IndexedSlices(tf.fill([64, 64], 10.0), tf.range(64), [64, 64])
    ),
    "function": lambda v: tf.function(lambda: v.assign(v + 7.0))(),
    "compiled function": lambda v: tf.function(lambda: v.assign(v + 7.0), jit_compile=True)(),
}


@pytest.mark.parametrize("assign", ASSIGNMENTS.values(), ids=ASSIGNMENTS)
def test_assignments_between_calls_are_used(assign):
    (first, second), step, x = make_step()
    assign(first)
    assert only_value(first.numpy()) == 10.0
    step(x)
    step(x)

    assert [only_value(v.numpy()) for v in (first, second)] == [12.0, 5.0]


def test_an_assignment_that_is_not_read_is_used():
    (first, second), step, x = make_step()
    first.assign(tf.fill([64, 64], 10.0))
    step(x)

    assert [only_value(v.numpy()) for v in (first, second)] == [11.0, 4.0]


def test_variables_can_be_donated_to_different_functions():
    (first, second), step, x = make_step()
    double = tf.function(lambda: tf.reduce_sum(first.assign(2.0 * first)), jit_compile=True)
    expected = 3.0
    for _ in range(5):
        double()
        step(x)
        expected = 2 * expected + 1

    assert [only_value(v.numpy()) for v in (first, second)] == [expected, 8.0]


def test_variables_that_are_arguments_are_donated_for_one_call():
    step = tf.function(lambda v, x: tf.reduce_sum(v.assign_add(x)), jit_compile=True)
    variables = [tf.Variable([float(i)]) for i in range(2)]
    for _ in range(4):
        for v in variables:
            step(v, tf.constant([1.0]))
            assert v._owner is None

    assert [v.numpy().tolist() for v in variables] == [[4.0], [5.0]]


def test_variables_are_valid_after_the_function_is_deleted():
    variables, step, _ = make_step()
    del step

    assert [only_value(v.numpy()) for v in variables] == [3.0, 3.0]


def test_results_are_freed_with_their_tensors():
    v = tf.Variable([0.0])
    step = tf.function(lambda x: [v.assign_add([1.0]), x * 2.0][1], jit_compile=True)
    for _ in range(3):
        y = step(tf.ones([3]))
    array = weakref.ref(y._device)
    del y

    assert array() is None
    assert v._owner is not None


def test_a_jax_array_with_other_references_is_not_donated():
    array = jax.numpy.zeros([3])
    v = tf.Variable(tf.zeros([3]))
    step = tf.function(lambda x: tf.reduce_sum(v.assign_add(x)), jit_compile=True)
    step(tf.ones([3]))
    v._hold(wrap(array))
    step(tf.ones([3]))

    assert not array.is_deleted()
    assert only_value(v.numpy()) == 1.0


def test_a_failed_call_does_not_change_variables():
    variables = [tf.Variable(tf.fill([2], float(i))) for i in range(2)]
    donation = Donation(variables, 1)

    def fail(*_):
        raise ZeroDivisionError

    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            donation.run(fail, ())
    assert [only_value(v.numpy()) for v in variables] == [0.0, 1.0]


# Threads


def test_another_thread_can_read_variables_during_training():
    variables, step, x = make_step()
    values_read = []
    trained = threading.Event()

    def train():
        for _ in range(200):
            step(x)
        trained.set()

    def read():
        while not trained.is_set():
            values_read.append([only_value(v.numpy()) for v in variables])

    run_in_threads(train, read)
    assert values_read == sorted(values_read)
    assert [only_value(v.numpy()) for v in variables] == [203.0, 203.0]


def test_two_steps_can_read_each_others_variables_in_two_threads():
    """The training steps of a generator and a discriminator do this."""
    first, second = (tf.Variable(tf.zeros([100])) for _ in range(2))

    def make_loop(written, read):
        compiled = tf.function(
            lambda x: tf.reduce_sum(written.assign_add(x + 0.0 * read)), jit_compile=True
        )

        def f():
            for _ in range(100):
                compiled(tf.ones([100]))

        return f

    run_in_threads(make_loop(first, second), make_loop(second, first))
    assert [only_value(v.numpy()) for v in (first, second)] == [100.0, 100.0]


# Signals, which Python can handle between any two instructions

FILES = [donation.__file__, variable_cell.__file__]


@contextlib.contextmanager
def release_locks():
    """Releases locks that a simulated interrupt left held. Real signals do not arrive there."""
    yield
    for lock in (donation._lock, writing):
        while lock._is_owned():
            lock.release()


def test_a_tensor_read_during_a_donation_stays_valid():
    variables, step, x = make_step()
    for n in itertools.count(1):
        tensors = []

        def read(tensors=tensors):
            tensors.extend(v._tensor for v in variables if v._tensor is not None)

        for v in variables:
            v._current()  # ends the donation
        with CallAtInstruction(n, read, FILES) as at:
            step(x)
        for tensor in tensors:
            assert only_value(tensor.numpy()) in (n + 2, n + 3)
        if not at.was_reached:
            break
    assert n > 100


DONATION_STATES = {"before donation": False, "after donation": True}


@pytest.mark.parametrize("is_donated", DONATION_STATES.values(), ids=DONATION_STATES)
def test_an_interrupt_leaves_consistent_variables(is_donated):
    """After Control-C, all variables have the values of the same step."""

    variables, step, x = make_step()
    steps = 3.0
    for n in itertools.count(1):
        if is_donated:
            step(x)
            steps += 1
        with (
            CallAtInstruction(n, interrupt, FILES) as at,
            release_locks(),
            contextlib.suppress(KeyboardInterrupt),
        ):
            step(x)
            variables[0].numpy()
        values = {only_value(v.numpy()) for v in variables}
        assert values in ({steps}, {steps + 1})
        (steps,) = values
        if not at.was_reached:
            break
    assert n > 100


@pytest.mark.parametrize("is_donated", DONATION_STATES.values(), ids=DONATION_STATES)
def test_a_signal_handler_can_read_variables(is_donated):
    variables, step, x = make_step()
    steps = 3
    for n in itertools.count(1):
        if is_donated:
            step(x)
            steps += 1
        values_read = []

        def read(values_read=values_read):
            values_read.extend(only_value(v.numpy()) for v in variables)

        with CallAtInstruction(n, read, FILES) as at:
            step(x)
            steps += 1
        if not at.was_reached:
            break
        assert values_read in ([steps - 1] * 2, [steps] * 2)
    assert n > 40
    assert [only_value(v.numpy()) for v in variables] == [steps] * 2
