"""Tests that assignments write in place only if nothing else references the array."""

import itertools
import sys
import threading

import numpy as np
import pytest

import retrograde as tf
from retrograde.core import variable as variable_module
from retrograde.core import variable_cell
from tests.interrupts import CallAtInstruction

SIZE = 4
FILES = [variable_module.__file__, variable_cell.__file__]


def make_variable():
    return tf.Variable(np.arange(SIZE, dtype=np.float32))


def slices(rows, indices):
    return tf.IndexedSlices(tf.constant(rows), tf.constant(indices))


ASSIGNMENTS = {
    "assign": lambda v: v.assign(np.full(SIZE, 9.0)),
    "assign_add": lambda v: v.assign_add(np.ones(SIZE)),
    "assign_sub": lambda v: v.assign_sub(np.ones(SIZE)),
    "assign_add of a tensor": lambda v: v.assign_add(tf.ones(SIZE)),
    "assign_sub of a tensor": lambda v: v.assign_sub(tf.ones(SIZE)),
    "scatter_add": lambda v: v.scatter_add(slices([5.0], [0])),
    "scatter_sub": lambda v: v.scatter_sub(slices([5.0], [0])),
    "scatter_mul": lambda v: v.scatter_mul(slices([5.0], [1])),
    "scatter_div": lambda v: v.scatter_div(slices([5.0], [1])),
    "scatter_min": lambda v: v.scatter_min(slices([-5.0], [0])),
    "scatter_max": lambda v: v.scatter_max(slices([5.0], [0])),
    "scatter_update": lambda v: v.scatter_update(slices([5.0], [0])),
    "batch_scatter_update": lambda v: v.batch_scatter_update(slices([5.0], [0])),
    "scatter_nd_add": lambda v: v.scatter_nd_add([[0]], [5.0]),
    "scatter_nd_update": lambda v: v.scatter_nd_update([[0]], [5.0]),
    "slice": lambda v: v[0].assign(5.0),
}

READERS = {
    "value()": lambda v: v.value(),
    "identity": lambda v: tf.identity(v),
    "convert_to_tensor": lambda v: tf.convert_to_tensor(v),
    "numpy()": lambda v: v.numpy(),
    "np.asarray": lambda v: np.asarray(v),
    "np.asarray of value()": lambda v: np.asarray(v.value()),
    "a view of np.asarray": lambda v: np.asarray(v)[1:],
    "base of a view": lambda v: np.asarray(v).base,
    "memoryview": lambda v: memoryview(np.asarray(v)),
    "dlpack": lambda v: np.from_dlpack(v.value()),
    "a slice": lambda v: v[1:],
    "full slice": lambda v: v[...],
    "reshape": lambda v: tf.reshape(v, [2, 2]),
    "transpose": lambda v: tf.transpose(v),
    "expand": lambda v: v[None],
    "another variable": lambda v: tf.Variable(v),
    "a variable assigned from it": lambda v: tf.Variable(np.zeros(SIZE, np.float32)).assign(v),
    "stop_gradient": lambda v: tf.stop_gradient(v),
    "its tensor": lambda v: v._read(),
    "its array": lambda v: v._read()._array,
}


def copy_values(value):
    return np.array(value.numpy() if hasattr(value, "numpy") else value)


@pytest.mark.parametrize("assign", ASSIGNMENTS.values(), ids=ASSIGNMENTS)
@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_assignments_do_not_change_other_references(read, assign):
    v = make_variable()
    value = read(v)
    before = copy_values(value)

    for _ in range(3):
        assign(v)
        np.testing.assert_array_equal(copy_values(value), before)

    expected = make_variable()
    for _ in range(3):
        assign(expected)
    np.testing.assert_array_equal(v.numpy(), expected.numpy())


@pytest.mark.parametrize("assign", ASSIGNMENTS.values(), ids=ASSIGNMENTS)
def test_assignments_do_not_change_values_on_a_tape(assign):
    v = make_variable()

    with tf.GradientTape() as tape:
        y = v * v
        assign(v)
        assign(v)

    np.testing.assert_array_equal(tape.gradient(y, v).numpy(), 2.0 * np.arange(SIZE))


@pytest.mark.parametrize("method", ["assign", "initial value"])
@pytest.mark.parametrize("change", ["assign_add", "scatter_add", "slice"])
def test_updates_do_not_change_the_assigned_value(method, change):
    array, tensor = np.ones(SIZE, np.float32), tf.constant(np.ones(SIZE, np.float32))
    other = tf.Variable(np.ones(SIZE, np.float32))

    for source in (array, tensor, other):
        if method == "assign":
            v = tf.Variable(np.zeros(SIZE, np.float32)).assign(source)
        else:
            v = tf.Variable(source)
        ASSIGNMENTS[change](v)
        ASSIGNMENTS[change](v)

        np.testing.assert_array_equal(np.asarray(source), np.ones(SIZE))
        assert not np.array_equal(v.numpy(), np.ones(SIZE))


def test_writes_to_an_assigned_array_do_not_change_the_variable():
    v, array = make_variable(), np.ones(SIZE, np.float32)

    v.assign(array)
    array[:] = 7.0

    assert v.numpy().tolist() == [1.0] * SIZE


def test_updates_do_not_change_an_assigned_gradient():
    v, w = make_variable(), make_variable()

    with tf.GradientTape() as tape:
        y = tf.reduce_sum(v) + tf.reduce_sum(w)
    gradients = tape.gradient(y, [v, w])
    v.assign(gradients[0])
    v.assign_add(np.ones(SIZE))

    for gradient in gradients:
        assert gradient.numpy().tolist() == [1.0] * SIZE


def test_updates_do_not_change_a_gradient_that_aliases_a_variable():
    v, w = (tf.Variable(np.full(5000, x, np.float32)) for x in (2.0, 3.0))

    with tf.GradientTape() as tape:
        y = tf.reduce_sum(v * w)  # the cotangent of a sum is 1, so the gradient of v is w
    gradient = tape.gradient(y, v)
    w.assign_add(tf.ones(5000))
    v.assign(gradient)
    v.assign_add(tf.ones(5000))

    assert set(gradient.numpy()) == {3.0}
    assert set(w.numpy()) == set(v.numpy()) == {4.0}


def test_broadcast_values_can_be_assigned_and_updated():
    v = tf.Variable(np.zeros((100, 100), np.float32))

    v.assign(tf.broadcast_to(tf.constant(1.0), [100, 100]))
    v.assign_add(np.ones((100, 100)))
    v[0, 0].assign(5.0)

    assert v.numpy()[0, :2].tolist() == [5.0, 2.0]


def address(v):
    return np.asarray(v).ctypes.data


@pytest.mark.parametrize(
    "assign",
    [assign for name, assign in ASSIGNMENTS.items() if name not in ("assign", "slice")],
    ids=[name for name in ASSIGNMENTS if name not in ("assign", "slice")],
)
def test_an_unshared_variable_is_updated_in_place(assign):
    v = make_variable()
    before = address(v)

    for _ in range(3):
        assign(v)

    assert address(v) == before


def test_an_update_copies_a_shared_array_only_once():
    v = make_variable()
    value = v.value()
    before = address(v)

    v.assign_add(np.ones(SIZE))
    after = address(v)
    v.assign_add(np.ones(SIZE))

    assert after != before
    assert address(v) == after
    assert value.numpy().tolist() == [0.0, 1.0, 2.0, 3.0]


def test_updates_are_in_place_after_the_tape_is_freed():
    v = make_variable()
    before = address(v)

    with tf.GradientTape() as tape:
        y = v * v
    tape.gradient(y, v)
    del y
    v.assign_add(np.ones(SIZE))

    assert address(v) == before


def test_a_training_step_updates_in_place():
    v = make_variable()
    before = address(v)

    for _ in range(3):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(v * v)
        v.assign_sub(0.1 * tape.gradient(loss, v))

    assert address(v) == before


# Threads


@pytest.fixture
def _switch_often():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def run_in_threads(*functions):
    """Runs each function in its own thread and raises their first error."""
    failures = []

    def run(f):
        try:
            f()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(f,)) for f in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


READS = {
    "value": lambda v: v.value().numpy(),
    "numpy": lambda v: v.numpy(),
    "asarray": lambda v: np.array(np.asarray(v)),
    "operation": lambda v: (v + 0.0).numpy(),
    "slice": lambda v: v[1:].numpy(),
}


@pytest.mark.usefixtures("_switch_often")
@pytest.mark.parametrize("read", READS.values(), ids=READS)
@pytest.mark.parametrize("method", ["assign", "assign_add", "scatter_add"])
def test_concurrent_reads_are_consistent(method, read):
    """All elements are always equal, so an inconsistent read has different elements."""
    size, rounds = 200_000, 100
    v = tf.Variable(np.zeros(size, np.float32))
    indices = tf.range(size)
    done = threading.Event()

    def write():
        try:
            for i in range(rounds):
                if method == "assign":
                    v.assign(np.full(size, i, np.float32))
                elif method == "assign_add":
                    v.assign_add(np.ones(size, np.float32))
                else:
                    v.scatter_add(tf.IndexedSlices(np.float32(1.0), indices, None))
        finally:
            done.set()

    def check():
        while not done.is_set():
            array = read(v)
            assert array.min() == array.max()

    run_in_threads(write, check, check)


@pytest.mark.usefixtures("_switch_often")
@pytest.mark.parametrize("size", [(), (3,), (50_000,)])
def test_concurrent_updates_are_not_lost(size):
    rounds = 200
    v = tf.Variable(np.zeros(size, np.float64))

    def add():
        for _ in range(rounds):
            v.assign_add(np.ones(size))

    def subtract():
        for _ in range(rounds // 2):
            v.assign_sub(np.ones(size))

    run_in_threads(add, add, add, subtract)

    np.testing.assert_array_equal(v.numpy(), np.full(size, 2.5 * rounds))


@pytest.mark.usefixtures("_switch_often")
@pytest.mark.parametrize("method", ["assign_add", "assign_sub"])
def test_a_tensor_read_during_an_update_does_not_change(method):
    """A replay in another thread reads `_tensor` and commits if the variable still holds it."""
    v, one = tf.Variable(tf.zeros([3])), tf.ones([3])
    for n in itertools.count(1):
        tensors = []

        def read(tensors=tensors):
            if v._tensor is not None:
                tensors.append((v._tensor, v._tensor.numpy()))

        with CallAtInstruction(n, read, FILES) as at:
            getattr(v, method)(one)
        for tensor, before in tensors:
            np.testing.assert_array_equal(tensor.numpy(), before)
        if not at.was_reached:
            break
    assert n > 40


def test_updates_in_another_thread_do_not_change_a_tensor():
    v = tf.Variable(np.zeros(10_000, np.float32))
    done = threading.Event()

    def write():
        try:
            for _ in range(300):
                v.assign_add(np.ones(10_000, np.float32))
        finally:
            done.set()

    def check():
        while not done.is_set():
            tensor = v.value()
            first = tensor.numpy()
            for _ in range(5):
                np.testing.assert_array_equal(tensor.numpy(), first)

    run_in_threads(write, check, check)
