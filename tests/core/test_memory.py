"""Tests memory: which arrays tapes keep, when they free them, and that they create no cycles."""

import contextlib
import gc
import sys
import tracemalloc
import weakref

import numpy as np
import pytest

import retrograde as tf


@pytest.fixture(autouse=True)
def _disable_garbage_collection():
    """Disables garbage collection, so that only reference counting frees memory."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


class Lifetimes:
    """Tracks which tensors and arrays are still alive."""

    def __init__(self):
        self.tensors, self.arrays = {}, {}

    def track(self, name, tensor):
        self.tensors[name] = weakref.ref(tensor)
        self.arrays[name] = weakref.ref(tensor._array)
        return tensor

    @property
    def alive(self):
        return [name for name, ref in self.arrays.items() if ref() is not None]


@pytest.fixture
def lifetimes():
    return Lifetimes()


def watched_input(tape, lifetimes):
    x = tf.constant(np.linspace(0.1, 0.9, 5))
    tape.watch(x)
    return lifetimes.track("x", x)


# Arrays that a tape keeps


def test_tanh_keeps_its_output_and_frees_its_input(lifetimes):
    with tf.GradientTape() as tape:
        x = watched_input(tape, lifetimes)
        h = lifetimes.track("h", x * 2.0)
        y = lifetimes.track("y", tf.tanh(h))
        del h
        z = lifetimes.track("z", y + 1.0)
        del y

    assert lifetimes.alive == ["x", "y", "z"]
    np.testing.assert_allclose(
        tape.gradient(z, x).numpy(), 2.0 * (1.0 - np.tanh(2.0 * x.numpy()) ** 2), rtol=1e-12
    )


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x + 1.0,
        lambda x: 1.0 - x,
        lambda x: -x,
        lambda x: tf.reshape(x, [5, 1]),
        lambda x: tf.transpose(x[None]),
        lambda x: tf.reduce_sum(x, keepdims=True),
        lambda x: tf.concat([x, x], 0),
        lambda x: x[1:],
        lambda x: tf.identity(x),
        lambda x: x * 3.0,
        lambda x: tf.exp(x),
        lambda x: tf.sqrt(x),
        lambda x: tf.sigmoid(x),
        lambda x: tf.nn.softmax(x),
        lambda x: tf.math.reciprocal(x),
    ],
)
def test_operations_that_do_not_keep_their_input(f, lifetimes):
    with tf.GradientTape() as tape:
        x = watched_input(tape, lifetimes)
        h = lifetimes.track("h", x - 0.0)
        y = tf.identity(f(h)) + 0.0
        del h

    assert lifetimes.tensors["h"]() is None
    assert tape.gradient(y, x) is not None


def test_sums_keep_no_arrays(lifetimes):
    with tf.GradientTape() as tape:
        x = watched_input(tape, lifetimes)
        y = x
        for i in range(10):
            y = lifetimes.track(f"y{i}", y + x)

    assert lifetimes.alive == ["x", "y9"]
    assert tape.gradient(y, x).numpy().tolist() == [11.0] * 5


def test_a_product_keeps_only_the_factor_that_its_rule_reads(lifetimes):
    with tf.GradientTape() as tape:
        x = watched_input(tape, lifetimes)
        constant = lifetimes.track("constant", tf.constant(np.ones(5)))
        h = lifetimes.track("h", x + 0.0)
        y = h * constant
        del h, constant

    assert lifetimes.alive == ["x", "constant"]
    assert tape.gradient(y, x).numpy().tolist() == [1.0] * 5


def test_operations_on_unwatched_inputs_are_not_kept(lifetimes):
    with tf.GradientTape() as tape:
        x = watched_input(tape, lifetimes)
        for i in range(3):
            y = lifetimes.track(f"unwatched {i}", tf.tanh(tf.constant(np.ones(5))) * float(i))
        del y
        y = x * x

    assert lifetimes.alive == ["x"]
    assert tape.gradient(y, x) is not None


def test_watching_does_not_keep_a_tensor_alive(lifetimes):
    with tf.GradientTape() as tape:
        for i in range(3):
            tape.watch(lifetimes.track(str(i), tf.constant(np.ones(5))))

    assert lifetimes.alive == []


# When a tape frees its arrays


def chain(x, lifetimes, length=5):
    y = x
    for i in range(length):
        y = lifetimes.track(f"y{i}", tf.tanh(y))
    return y


def test_gradient_frees_all_intermediates(lifetimes):
    with tf.GradientTape() as tape:
        x = watched_input(tape, lifetimes)
        y = chain(x, lifetimes)
    assert len(lifetimes.alive) == 6

    gradient = tape.gradient(y, x)
    del y

    assert lifetimes.alive == ["x"]
    assert gradient is not None


def test_deleting_the_tape_frees_all_intermediates(lifetimes):
    for persistent in (False, True):
        with tf.GradientTape(persistent=persistent) as tape:
            x = watched_input(tape, lifetimes)
            chain(x, lifetimes)
        del tape, x

        assert lifetimes.alive == []


def test_a_persistent_tape_keeps_intermediates_until_it_is_deleted(lifetimes):
    with tf.GradientTape(persistent=True) as tape:
        x = watched_input(tape, lifetimes)
        y = chain(x, lifetimes)
    tape.gradient(y, x)
    del y

    assert len(lifetimes.alive) == 6
    del tape
    assert lifetimes.alive == ["x"]


def test_reset_frees_all_intermediates(lifetimes):
    with tf.GradientTape() as tape:
        x = watched_input(tape, lifetimes)
        chain(x, lifetimes)
        tape.reset()

        assert lifetimes.alive == ["x"]


def test_an_exception_frees_all_intermediates(lifetimes):
    def step():
        with tf.GradientTape() as tape:
            x = watched_input(tape, lifetimes)
            chain(x, lifetimes)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        step()

    assert lifetimes.alive == []


def test_arrays_are_freed_during_the_backward_pass(lifetimes):
    """The arrays of later layers are already freed when the rule of the first layer runs."""
    alive_at = []

    @tf.custom_gradient
    def record_alive(x):
        def grad(upstream):
            alive_at.append(lifetimes.alive)
            return upstream

        return tf.identity(x), grad

    with tf.GradientTape() as tape:
        x = watched_input(tape, lifetimes)
        y = record_alive(x)
        for i in range(4):
            y = lifetimes.track(f"y{i}", tf.tanh(y))
        total = tf.reduce_sum(y)
        del y
    tape.gradient(total, x)

    assert alive_at == [["x"]]


def test_second_order_frees_all_intermediates(lifetimes):
    with tf.GradientTape() as outer:
        x = watched_input(outer, lifetimes)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = chain(x, lifetimes)
        first = inner.gradient(y, x)
    second = outer.gradient(first, x)
    del y, first, second

    assert lifetimes.alive == ["x"]


def test_cotangents_are_freed_during_the_backward_pass():
    size, length = 100_000, 30
    x = tf.constant(np.full(size, 0.5))
    tracemalloc.start()
    try:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x
            for _ in range(length):
                y = tf.tanh(y)
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        gradient = tape.gradient(y, x)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert gradient.shape == [size]
    assert peak - before < 5 * size * 8


# No reference cycles


def step(v, lifetimes=None):
    with tf.GradientTape() as tape:
        h = tf.tanh(v[None] * 2.0)
        loss = tf.reduce_sum(tf.gather(h, [0]) ** 2) + tf.reduce_mean(tf.nn.softmax(v))
        if lifetimes is not None:
            lifetimes.track("h", h)
    gradient = tape.gradient(loss, v)
    v.assign_sub(0.1 * gradient)
    v.scatter_add(tf.IndexedSlices(tf.constant([0.1]), tf.constant([0])))
    v[1:].assign(v[1:] * 0.5)


def count_garbage(f):
    """Returns the number of objects in reference cycles that `f` leaves."""
    f()  # the first run fills caches
    gc.collect()
    f()
    return gc.collect()


def test_a_training_step_creates_no_reference_cycles():
    v = tf.Variable([1.0, 2.0, 3.0])

    assert count_garbage(lambda: step(v)) == 0


def test_higher_orders_create_no_reference_cycles():
    x = tf.Variable(2.0)

    def third():
        with tf.GradientTape() as a, tf.GradientTape() as b:
            with tf.GradientTape() as c:
                y = tf.exp(x * x)
            y = c.gradient(y, x)
            y = b.gradient(y, x)
        a.gradient(y, x)

    assert count_garbage(third) == 0


def test_persistent_tapes_create_no_reference_cycles():
    x = tf.Variable(2.0)

    def run():
        with tf.GradientTape(persistent=True) as tape:
            y = x**3
            y = tape.gradient(y, x)
        tape.gradient(y, x)

    assert count_garbage(run) == 0


def test_errors_create_no_reference_cycles():
    x = tf.Variable([1.0, 2.0])

    def run():
        with tf.GradientTape() as tape:
            y = x * x
            with contextlib.suppress(tf.errors.InvalidArgumentError):
                _ = y + tf.constant([1.0, 2.0, 3.0])
        with contextlib.suppress(tf.errors.InvalidArgumentError):
            tape.gradient(y, x, tf.constant([1]))
        tape.gradient(y, x)

    assert count_garbage(run) == 0


def test_custom_gradients_create_no_reference_cycles():
    @tf.custom_gradient
    def f(x):
        y = tf.exp(x)
        return y, lambda upstream: upstream * y

    x = tf.Variable(2.0)

    def run():
        with tf.GradientTape() as outer:
            with tf.GradientTape() as tape:
                y = f(x)
            gradient = tape.gradient(y, x)
        outer.gradient(gradient, x)

    assert count_garbage(run) == 0


def test_variables_and_tensors_create_no_reference_cycles():
    def run():
        v = tf.Variable([1.0, 2.0])
        v.assign(v + 1.0)
        return [v[0], v.value(), v.ref(), np.asarray(v)]

    assert count_garbage(run) == 0


# Long chains and many steps


def test_gradient_of_a_chain_of_100_000_operations():
    x = tf.Variable(1.0, dtype=tf.float64)

    with tf.GradientTape() as tape:
        y = x
        for _ in range(100_000):
            y = y * 1.00001

    np.testing.assert_allclose(tape.gradient(y, x).numpy(), 1.00001**100_000, rtol=1e-9)


def test_freeing_a_long_chain_does_not_overflow_the_stack():
    x = tf.Variable(1.0)

    with tf.GradientTape() as tape:
        y = x
        for _ in range(100_000):
            y = tf.tanh(y)
    del tape, y


def test_memory_does_not_grow_over_1000_steps():
    """A step leaves neither objects nor arrays."""
    v = tf.Variable(np.linspace(0.0, 1.0, 1000).astype(np.float32))

    def memory_after(steps):
        for _ in range(steps):
            step(v)
        assert gc.collect() == 0  # finds no garbage, but clears Python's free lists
        return sys.getallocatedblocks(), tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        memory_after(300)  # fills the caches of Python and NumPy
        objects, memory = memory_after(10)
        objects_later, memory_later = memory_after(990)
    finally:
        tracemalloc.stop()

    assert objects_later - objects < 990 / 2
    assert memory_later - memory < 990 * 40
