"""Tests that arrays that are too large raise `ResourceExhaustedError`."""

import numpy as np
import pytest

import retrograde as tf
from retrograde.core.recorders import thread
from retrograde.values.errors import exhausted, is_out_of_memory

HUGE = 10**7  # a matrix of this size takes more bytes than a process can address
SHAPE = (HUGE, HUGE)


def column():
    return tf.fill([HUGE, 1], 1.0)


def row():
    return tf.fill([1, HUGE], 1.0)


def huge_tensor():
    return tf.fill(SHAPE, 1.0)  # a broadcast view of one number


def huge_array():
    return np.broadcast_to(np.float32(1), SHAPE)


ALLOCATIONS = {
    "a kernel": lambda: column() * row(),
    "a kernel with attributes": lambda: tf.concat([huge_tensor(), huge_tensor()], 0),
    "matmul": lambda: tf.matmul(column(), row()),
    "lazy result": lambda: (huge_tensor() + 1.0).numpy(),
    "numpy": lambda: huge_tensor().numpy(),
    "__array__": lambda: np.asarray(huge_tensor(), np.float64),
    "zeros": lambda: tf.zeros(SHAPE),
    "ones": lambda: tf.ones(SHAPE),
    "strings": lambda: tf.zeros(SHAPE, tf.string),
    "eye": lambda: tf.eye(HUGE),
    "range": lambda: tf.range(10**15),
    "floating range": lambda: tf.range(0.0, 1e15, 1.0),
    "linspace": lambda: tf.linspace(0.0, 1.0, 10**15),
    "sequence_mask": lambda: tf.sequence_mask([10**15]),
    "sequence_mask with maxlen": lambda: tf.sequence_mask([1], 10**15),
    "one_hot": lambda: tf.one_hot(tf.zeros([HUGE], tf.int32), HUGE),
    "constant": lambda: tf.constant(huge_array()),
    "Python range": lambda: tf.constant(range(10**15)),
    "Python range in a list": lambda: tf.constant([range(10**15)]),
    "Python range next to numbers": lambda: tf.constant([1, range(10**15)]),
    "Variable": lambda: tf.Variable(huge_array()),
    "assign_add": lambda: tf.Variable(huge_tensor()).assign_add(huge_tensor()),
    "normal": lambda: tf.random.normal(SHAPE),
    "poisson": lambda: tf.random.poisson(SHAPE, 1.0),
    "stateless": lambda: tf.random.stateless_uniform(SHAPE, [1, 2]),
    "a generator": lambda: tf.random.Generator.from_seed(1).normal(SHAPE),
    "ragged range": lambda: tf.ragged.range(10**15),
    "TensorArray": lambda: tf.TensorArray(tf.float32, 10**15),
    "a dataset": lambda: next(iter(tf.data.Dataset.from_tensors(huge_tensor()).batch(1))),
    "a window": lambda: tf.signal.hann_window(10**15),
    "a function": lambda: tf.function(lambda: column() * row())(),
    "random numbers in a function": lambda: tf.function(lambda: tf.random.normal(SHAPE))(),
}


@pytest.mark.parametrize("name", ALLOCATIONS)
def test_allocations_that_are_too_large_raise_resource_exhausted(name):
    with pytest.raises(tf.errors.ResourceExhaustedError, match=r"out of memory: .*smaller shape"):
        ALLOCATIONS[name]()
    assert not thread.recorders


def test_the_message_states_bytes_shape_and_dtype():
    with pytest.raises(tf.errors.ResourceExhaustedError) as raised:
        column() * row()
    assert str(raised.value) == (
        "multiply: out of memory: cannot allocate 400000000000000 bytes for an array of shape "
        "(10000000, 10000000) and dtype float32. Use a smaller batch or a smaller shape."
    )


def test_programs_can_catch_the_error_and_use_a_smaller_size():
    size = HUGE
    while True:
        try:
            y = tf.ones([size, 1]) * tf.ones([1, size])
            break
        except tf.errors.ResourceExhaustedError:
            size //= 100_000
    assert y.shape == (100, 100)


def test_the_backward_pass_raises_resource_exhausted():
    x = tf.Variable(1.0)
    with tf.GradientTape() as tape:
        y = _gradient_needs_too_much_memory(x)
    with pytest.raises(tf.errors.ResourceExhaustedError) as raised:
        tape.gradient(y, x)
    assert "out of memory: cannot allocate" in str(raised.value)
    assert x.numpy() == 1.0


@tf.custom_gradient
def _gradient_needs_too_much_memory(x):
    return x * 2.0, lambda g: g * tf.reduce_sum(column() * row())


def test_the_message_names_the_gradient_of_an_operation():
    x = tf.Variable(tf.fill([HUGE, 1], 1.0))
    with tf.GradientTape() as tape:
        y = tf.broadcast_to(x, SHAPE)[0]
    with pytest.raises(tf.errors.ResourceExhaustedError) as raised:
        tape.gradient(y, x)
    assert str(raised.value).startswith("gradient of take_slice: out of memory: cannot allocate")


def test_a_jacobian_raises_resource_exhausted():
    x = tf.Variable(tf.fill([HUGE], 1.0))
    with tf.GradientTape() as tape:
        y = x * 2.0
    with pytest.raises(tf.errors.ResourceExhaustedError):
        tape.jacobian(y, x, memory_limit=10**18)


@pytest.mark.parametrize("jit_compile", [False, True])
def test_a_failed_replay_does_not_assign_variables(jit_compile):
    if jit_compile:
        pytest.importorskip("jax")
    count = tf.Variable(0.0)

    @tf.function(jit_compile=jit_compile)
    def step(x, y):
        count.assign_add(1.0)
        return x * y

    step(tf.ones([2, 1]), tf.ones([1, 2]))
    step(tf.ones([2, 1]), tf.ones([1, 2]))
    with pytest.raises(tf.errors.ResourceExhaustedError):
        step(column(), row())
    assert count.numpy() == 2.0


def test_out_of_memory_errors_of_xla_are_converted(monkeypatch):
    from retrograde.program.traces import Trace

    step = tf.function(lambda x: x * 2.0)
    x = tf.Variable([1.0])
    step(x)

    def fail(*_):
        raise RuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 16 bytes.\nMore.")

    monkeypatch.setattr(Trace, "run", fail)
    with pytest.raises(tf.errors.ResourceExhaustedError) as raised:
        step(x)
    assert str(raised.value).endswith(
        "out of memory: RESOURCE_EXHAUSTED: Out of memory allocating 16 bytes. Use a smaller batch "
        "or a smaller shape."
    )


@pytest.mark.parametrize(
    "allocate",
    [
        lambda: np.zeros((2**70,)),
        lambda: np.zeros((2**62, 2**62)),
        lambda: np.broadcast_to(1.0, (2**40, 2**40)),
        lambda: [0] * 2**60,
    ],
    ids=["large dimension", "large size", "large iterator", "large list"],
)
def test_out_of_memory_errors_of_numpy_are_recognized(allocate):
    with pytest.raises((ValueError, MemoryError)) as raised:
        allocate()
    assert is_out_of_memory(raised.value)
    assert isinstance(exhausted(raised.value), tf.errors.ResourceExhaustedError)


def test_other_errors_are_not_out_of_memory():
    assert not is_out_of_memory(ValueError("shapes differ"))
    assert not is_out_of_memory(RuntimeError("INTERNAL: something"))
