"""Memory: a tape keeps what its rules read, frees as it walks, and waits for no collector."""

import contextlib
import gc
import sys
import tracemalloc
import weakref

import numpy as np
import pytest

import retrograde as tf


@pytest.fixture(autouse=True)
def _no_collector():
    """Everything here has to be freed by reference count alone."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


class Freed:
    """Knows which of the tensors it has seen are gone, and which of their arrays."""

    def __init__(self):
        self.tensors, self.arrays = {}, {}

    def see(self, name, tensor):
        self.tensors[name] = weakref.ref(tensor)
        self.arrays[name] = weakref.ref(tensor._array)
        return tensor

    @property
    def alive(self):
        return [name for name, ref in self.arrays.items() if ref() is not None]


@pytest.fixture
def freed():
    return Freed()


def watched(tape, freed):
    x = tf.constant(np.linspace(0.1, 0.9, 5))
    tape.watch(x)
    return freed.see("x", x)


# What a tape keeps


def test_tanh_keeps_its_result_and_lets_its_input_go(freed):
    with tf.GradientTape() as tape:
        x = watched(tape, freed)
        h = freed.see("h", x * 2.0)
        y = freed.see("y", tf.tanh(h))
        del h
        z = freed.see("z", y + 1.0)
        del y

    assert freed.alive == ["x", "y", "z"]
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
def test_operations_that_need_not_keep_their_input(f, freed):
    with tf.GradientTape() as tape:
        x = watched(tape, freed)
        h = freed.see("h", x - 0.0)
        y = tf.identity(f(h)) + 0.0
        del h

    assert freed.tensors["h"]() is None
    assert tape.gradient(y, x) is not None


def test_sums_keep_nothing_at_all(freed):
    with tf.GradientTape() as tape:
        x = watched(tape, freed)
        y = x
        for i in range(10):
            y = freed.see(f"y{i}", y + x)

    assert freed.alive == ["x", "y9"]
    assert tape.gradient(y, x).numpy().tolist() == [11.0] * 5


def test_a_product_keeps_only_the_factor_that_its_rules_read(freed):
    with tf.GradientTape() as tape:
        x = watched(tape, freed)
        constant = freed.see("constant", tf.constant(np.ones(5)))
        h = freed.see("h", x + 0.0)
        y = h * constant
        del h, constant

    assert freed.alive == ["x", "constant"]
    assert tape.gradient(y, x).numpy().tolist() == [1.0] * 5


def test_what_leads_to_nothing_watched_is_not_kept(freed):
    with tf.GradientTape() as tape:
        x = watched(tape, freed)
        for i in range(3):
            y = freed.see(f"unwatched {i}", tf.tanh(tf.constant(np.ones(5))) * float(i))
        del y
        y = x * x

    assert freed.alive == ["x"]
    assert tape.gradient(y, x) is not None


def test_watching_keeps_no_tensor_alive(freed):
    with tf.GradientTape() as tape:
        for i in range(3):
            tape.watch(freed.see(str(i), tf.constant(np.ones(5))))

    assert freed.alive == []


# When it lets go


def chain(x, freed, length=5):
    y = x
    for i in range(length):
        y = freed.see(f"y{i}", tf.tanh(y))
    return y


def test_all_is_freed_when_the_gradient_is_taken(freed):
    with tf.GradientTape() as tape:
        x = watched(tape, freed)
        y = chain(x, freed)
    assert len(freed.alive) == 6

    gradient = tape.gradient(y, x)
    del y

    assert freed.alive == ["x"]
    assert gradient is not None


def test_all_is_freed_when_the_tape_dies(freed):
    for persistent in (False, True):
        with tf.GradientTape(persistent=persistent) as tape:
            x = watched(tape, freed)
            chain(x, freed)
        del tape, x

        assert freed.alive == []


def test_a_persistent_tape_keeps_all_until_it_dies(freed):
    with tf.GradientTape(persistent=True) as tape:
        x = watched(tape, freed)
        y = chain(x, freed)
    tape.gradient(y, x)
    del y

    assert len(freed.alive) == 6
    del tape
    assert freed.alive == ["x"]


def test_reset_lets_go(freed):
    with tf.GradientTape() as tape:
        x = watched(tape, freed)
        chain(x, freed)
        tape.reset()

        assert freed.alive == ["x"]


def test_an_exception_lets_go(freed):
    def step():
        with tf.GradientTape() as tape:
            x = watched(tape, freed)
            chain(x, freed)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        step()

    assert freed.alive == []


def test_each_array_is_freed_as_soon_as_it_was_used(freed):
    """While the rule of the first layer runs, those of later layers are gone already."""
    alive_at = []

    @tf.custom_gradient
    def look(x):
        def grad(upstream):
            alive_at.append(freed.alive)
            return upstream

        return tf.identity(x), grad

    with tf.GradientTape() as tape:
        x = watched(tape, freed)
        y = look(x)
        for i in range(4):
            y = freed.see(f"y{i}", tf.tanh(y))
        total = tf.reduce_sum(y)
        del y
    tape.gradient(total, x)

    assert alive_at == [["x"]]


def test_second_order_lets_go(freed):
    with tf.GradientTape() as outer:
        x = watched(outer, freed)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = chain(x, freed)
        first = inner.gradient(y, x)
    second = outer.gradient(first, x)
    del y, first, second

    assert freed.alive == ["x"]


def test_cotangents_are_freed_as_the_walk_goes_on():
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


# No cycles


def step(v, freed=None):
    with tf.GradientTape() as tape:
        h = tf.tanh(v[None] * 2.0)
        loss = tf.reduce_sum(tf.gather(h, [0]) ** 2) + tf.reduce_mean(tf.nn.softmax(v))
        if freed is not None:
            freed.see("h", h)
    gradient = tape.gradient(loss, v)
    v.assign_sub(0.1 * gradient)
    v.scatter_add(tf.IndexedSlices(tf.constant([0.1]), tf.constant([0])))
    v[1:].assign(v[1:] * 0.5)


def garbage_of(f):
    """How many objects only the cycle collector could free after `f`."""
    f()  # the first run fills caches
    gc.collect()
    f()
    return gc.collect()


def test_a_training_step_leaves_no_cycles():
    v = tf.Variable([1.0, 2.0, 3.0])

    assert garbage_of(lambda: step(v)) == 0


def test_higher_orders_leave_no_cycles():
    x = tf.Variable(2.0)

    def third():
        with tf.GradientTape() as a, tf.GradientTape() as b:
            with tf.GradientTape() as c:
                y = tf.exp(x * x)
            y = c.gradient(y, x)
            y = b.gradient(y, x)
        a.gradient(y, x)

    assert garbage_of(third) == 0


def test_persistent_tapes_leave_no_cycles():
    x = tf.Variable(2.0)

    def work():
        with tf.GradientTape(persistent=True) as tape:
            y = x**3
            y = tape.gradient(y, x)
        tape.gradient(y, x)

    assert garbage_of(work) == 0


def test_failures_leave_no_cycles():
    x = tf.Variable([1.0, 2.0])

    def work():
        with tf.GradientTape() as tape:
            y = x * x
            with contextlib.suppress(tf.errors.InvalidArgumentError):
                _ = y + tf.constant([1.0, 2.0, 3.0])
        with contextlib.suppress(tf.errors.InvalidArgumentError):
            tape.gradient(y, x, tf.constant([1]))
        tape.gradient(y, x)

    assert garbage_of(work) == 0


def test_custom_gradients_leave_no_cycles():
    @tf.custom_gradient
    def f(x):
        y = tf.exp(x)
        return y, lambda upstream: upstream * y

    x = tf.Variable(2.0)

    def work():
        with tf.GradientTape() as outer:
            with tf.GradientTape() as tape:
                y = f(x)
            gradient = tape.gradient(y, x)
        outer.gradient(gradient, x)

    assert garbage_of(work) == 0


def test_variables_and_tensors_leave_no_cycles():
    def work():
        v = tf.Variable([1.0, 2.0])
        v.assign(v + 1.0)
        return [v[0], v.value(), v.ref(), np.asarray(v)]

    assert garbage_of(work) == 0


# In the long run


def test_a_chain_of_100_000_operations_differentiates():
    x = tf.Variable(1.0, dtype=tf.float64)

    with tf.GradientTape() as tape:
        y = x
        for _ in range(100_000):
            y = y * 1.00001

    np.testing.assert_allclose(tape.gradient(y, x).numpy(), 1.00001**100_000, rtol=1e-9)


def test_a_long_chain_that_is_dropped_does_not_overflow_the_stack():
    x = tf.Variable(1.0)

    with tf.GradientTape() as tape:
        y = x
        for _ in range(100_000):
            y = tf.tanh(y)
    del tape, y


def test_1000_steps_hold_no_more_memory_than_10():
    """Nothing stays for each step: neither an object nor an array."""
    v = tf.Variable(np.linspace(0.0, 1.0, 1000).astype(np.float32))

    def held_after(steps):
        for _ in range(steps):
            step(v)
        assert gc.collect() == 0  # nothing to collect, but it empties the free lists of Python
        return sys.getallocatedblocks(), tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        held_after(300)  # fills the caches of Python and NumPy
        objects, memory = held_after(10)
        objects_later, memory_later = held_after(990)
    finally:
        tracemalloc.stop()

    assert objects_later - objects < 990 / 2
    assert memory_later - memory < 990 * 40
