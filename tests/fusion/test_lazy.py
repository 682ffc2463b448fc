"""Lazy evaluation of calls on large arrays does not change results."""

import copy
import functools
import gc
import pickle
import threading
import weakref

import numpy as np
import pytest

import retrograde as tf
from retrograde.core import lazy
from retrograde.core.tensor import Tensor
from retrograde.fusion import deferred_calls, lazy_calls
from tests.fusion.lazy_evaluation import (
    assert_same,
    eagerly,
    is_deferred,
    lazy_small_arrays,
    numbers,
)
from tests.threads import run_concurrently


@pytest.fixture(autouse=True)
def lazy_evaluation():
    with lazy_small_arrays():
        yield


def count_computed_results(monkeypatch):
    """Returns a list. Each evaluation of a group appends its number of results."""
    counts = []
    run_group = lazy_calls._run_group

    def count_and_run(group, numbers):
        counts.append(len(numbers))
        return run_group(group, numbers)

    monkeypatch.setattr(lazy_calls, "_run_group", count_and_run)
    return counts


# Metadata and reads


def test_shape_and_dtype_are_known_without_evaluation():
    y = tf.sin(tf.constant(numbers(3, 4)))

    assert (y.shape, y.dtype, y.ndim, len(y)) == ([3, 4], tf.float32, 2, 3)
    y.set_shape([None, 4])
    assert isinstance(y, tf.Tensor)
    assert tf.is_tensor(y)
    assert tf.convert_to_tensor(y) is y
    assert is_deferred(y)


@pytest.mark.parametrize(
    "read",
    [
        lambda y: y.numpy(),
        lambda y: np.asarray(y),
        lambda y: np.from_dlpack(y),
        lambda y: repr(y),
        lambda y: str(y),
        lambda y: f"{y}",
        lambda y: list(y),
        lambda y: y[0],
        lambda y: y == y,
        lambda y: tf.reverse(y, [0]),
        lambda y: tf.cast(y, tf.float64),
        lambda y: tf.Variable(y),
        lambda y: pickle.dumps(y),
        lambda y: bool(tf.reduce_all(y > 0)),
    ],
)
def test_reading_a_deferred_tensor_makes_it_an_ordinary_tensor(read):
    y = tf.sin(tf.constant(numbers(4)))

    read(y)

    assert type(y) is Tensor
    np.testing.assert_array_equal(y, np.sin(numbers(4)))


def test_copies_and_pickles_are_ordinary_tensors():
    y = tf.sin(tf.constant(numbers(4)))

    assert copy.copy(y) is copy.deepcopy(y) is y
    assert type(pickle.loads(pickle.dumps(y))) is Tensor


@pytest.mark.parametrize(
    ("other", "error"),
    [
        (np.ones(3, np.float32), tf.errors.InvalidArgumentError),
        (tf.constant(np.ones(4)), tf.errors.InvalidArgumentError),
        ("two", TypeError),
    ],
)
def test_errors_are_raised_immediately(other, error):
    y = tf.sin(tf.constant(numbers(4)))

    with pytest.raises(error):
        y + other
    np.testing.assert_array_equal(y * 2.0, np.sin(numbers(4)) * 2)


def test_reading_one_result_computes_its_group():
    x = tf.constant(numbers(4))
    s, e = tf.sin(x), tf.exp(x)
    p = s * e

    p.numpy()

    assert not (is_deferred(s) or is_deferred(e) or is_deferred(p))  # all referenced results
    assert not lazy.waiting


# Variables


def test_assigning_to_a_variable_does_not_change_deferred_results():
    v = tf.Variable(numbers(4))
    before = v.numpy()
    first = tf.sin(v)
    v.assign_add(tf.ones(4))
    second = tf.sin(v)
    v.assign(tf.zeros(4))
    third = tf.sin(v)
    v[1:].assign(tf.ones(3))

    np.testing.assert_array_equal(third, np.zeros(4))
    np.testing.assert_array_equal(second, np.sin(before + 1))
    np.testing.assert_array_equal(first, np.sin(before))


def test_a_variable_is_updated_in_place_by_a_deferred_value():
    v = tf.Variable(numbers(4))
    before, array = v.numpy(), v._array.ctypes.data

    v.assign_sub(tf.sin(v) * 0.5)

    assert v._array.ctypes.data == array
    np.testing.assert_array_equal(v, before - np.sin(before) * np.float32(0.5))


# Memory


@pytest.fixture
def no_garbage_collection():
    gc.disable()
    yield
    gc.enable()


def doubled_sine():
    """Returns a deferred tensor, and a weak reference to the array that only it uses."""
    x = tf.constant(numbers(4))
    return tf.sin(x) * 2.0, weakref.ref(x._array)


@pytest.mark.usefixtures("no_garbage_collection")
def test_a_result_that_is_never_read_is_never_computed(monkeypatch):
    monkeypatch.setattr(lazy_calls, "_run_group", None)
    y, array = doubled_sine()
    assert array() is not None

    del y

    assert array() is None
    assert not lazy.waiting


def test_intermediate_values_are_not_written(monkeypatch):
    counts = count_computed_results(monkeypatch)
    x = tf.constant(numbers(4))
    kept = tf.exp(x)
    y = tf.sin(x) * kept + tf.tanh(x)
    y.numpy()

    assert counts == [2]


@pytest.mark.usefixtures("no_garbage_collection")
def test_inputs_are_freed_by_the_evaluation():
    y, array = doubled_sine()

    y.numpy()

    assert array() is None


def test_a_long_chain_is_computed_in_groups_of_limited_size():
    x = y = tf.constant(numbers(4))
    expected = x.numpy()
    for _ in range(3 * deferred_calls.MAX_DEFERRED_CALLS):
        y = tf.sin(y) + x
        assert len(y._spec.group.calls) <= deferred_calls.MAX_DEFERRED_CALLS
        expected = np.sin(expected) + x.numpy()

    np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize(
    "length", range(deferred_calls.MAX_DEFERRED_CALLS - 2, deferred_calls.MAX_DEFERRED_CALLS + 2)
)
def test_a_sum_that_does_not_fit_in_the_group_is_computed_immediately(length):
    x = numbers(2000)

    def chain():
        y = tf.constant(x)
        for _ in range(length):
            y = tf.sin(y)
        s = tf.reduce_sum(y)
        return s, tf.cos(y) + s

    expected = eagerly(chain)
    for _ in range(3):  # repeated calls are fused
        assert_same(chain(), expected)


def test_a_group_keeps_only_a_few_arrays_alive():
    y = tf.sin(tf.constant(numbers(4)))
    arrays = []
    for seed in range(30):
        x = tf.constant(numbers(4, seed=seed))
        arrays.append(weakref.ref(x._array))
        y = y + x
        del x
        assert sum(array() is not None for array in arrays) <= 10

    assert is_deferred(y)
    total = np.float32(0) + np.sin(numbers(4))
    for seed in range(30):
        total = total + numbers(4, seed=seed)
    np.testing.assert_array_equal(y, total)


def test_a_group_keeps_fewer_large_arrays_alive(monkeypatch):
    monkeypatch.setattr(deferred_calls, "MAX_DEFERRED_BYTES", 1)
    y = tf.sin(tf.constant(numbers(4)))
    for seed in range(5):
        y = y + tf.constant(numbers(4, seed=seed))
        arrays = [x for x in y._spec.group.values.values() if x.ndim]
        assert len(arrays) <= 3


def test_arrays_of_another_shape_start_a_new_group():
    first = tf.sin(tf.constant(numbers(4)))
    second = tf.sin(tf.constant(numbers(5)))

    assert not is_deferred(first)
    assert is_deferred(second)


def test_results_stay_deferred_after_a_failure(monkeypatch):
    def fails(*_):
        raise MemoryError

    y = tf.sin(tf.constant(numbers(4, 1, 7))) * 2.0  # a shape that no other test uses
    with monkeypatch.context() as patch:
        patch.setattr(lazy_calls, "evaluate", fails)
        with pytest.raises(tf.errors.ResourceExhaustedError):
            y.numpy()
        assert is_deferred(y)

    np.testing.assert_array_equal(y, np.sin(numbers(4, 1, 7)) * 2)


# Threads


def test_other_threads_can_read():
    y = tf.sin(tf.constant(numbers(10_000))) * 2.0
    results = [None] * 8

    def read(i):
        results[i] = y.numpy()

    run_concurrently(*[functools.partial(read, i) for i in range(8)])

    for array in results:
        np.testing.assert_array_equal(array, np.sin(numbers(10_000)) * 2)


@pytest.mark.parametrize(
    "read", [lazy.LazyTensor.numpy, lazy.LazyTensor.__array__, lazy.LazyTensor.__repr__]
)
def test_a_method_of_a_lazy_tensor_works_after_another_thread_has_materialized_it(read):
    y = tf.sin(tf.constant(numbers(10_000)))
    assert type(y) is lazy.LazyTensor
    y.numpy()
    assert type(y) is Tensor
    assert str(read(y)) == str(getattr(y, read.__name__)())


def test_threads_that_read_each_others_results_do_not_deadlock():
    x = tf.constant(numbers(100))
    results = {0: tf.sin(x), 1: tf.sin(x)}
    barrier = threading.Barrier(2)

    def work(me):
        for _ in range(200):
            mine, others = results[me], results[1 - me]
            barrier.wait()
            results[me] = tf.sin(mine + others) + tf.tanh(mine)
            barrier.wait()

    threads = [threading.Thread(target=work, args=(i,), daemon=True) for i in range(2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)

    assert not any(t.is_alive() for t in threads)
    np.testing.assert_array_equal(results[0], results[1])


# Tapes


def curve(x, a, b):
    return a * tf.exp(-tf.square(x - b)) + tf.tanh(x) * b


def test_gradients_are_computed_together_with_the_loss(monkeypatch):
    x = tf.Variable(numbers(50))

    def step():
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(tf.sin(x) * tf.exp(x) + tf.tanh(x))
        return [y, tape.gradient(y, x)]

    expected = eagerly(step)
    counts = count_computed_results(monkeypatch)
    for _ in range(3):
        assert_same(step(), expected)
    assert counts == [2] * 3  # one pass, which writes only the loss and the gradient


def test_gradients_with_respect_to_broadcast_scalars():
    x = tf.constant(numbers(2000))
    y = tf.constant(numbers(2000, seed=1))
    a, b = tf.Variable(1.5), tf.Variable(0.5)

    def step():
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(curve(x, a, b) - y))
        return [loss, *tape.gradient(loss, [a, b])]

    expected = eagerly(step)
    for _ in range(3):
        assert_same(step(), expected)


def test_a_tape_can_be_used_only_once():
    x = tf.Variable(numbers(50))
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(tf.sin(x))
    tape.gradient(y, x)

    with pytest.raises(RuntimeError, match=r"test_lazy\.py"):
        tape.gradient(y, x)


def test_a_persistent_tape_computes_several_gradients():
    x = tf.Variable(numbers(50))

    def steps():
        with tf.GradientTape(persistent=True) as tape:
            s = tf.sin(x)
            y = tf.reduce_sum(s * s)
        return [tape.gradient(y, x), tape.gradient(y, s), tape.gradient(s, x)]

    assert_same(steps(), eagerly(steps))


def test_intermediate_values_can_be_read_after_the_gradient():
    x = tf.Variable(numbers(50))

    def step():
        with tf.GradientTape() as tape:
            s = tf.sin(x)
            y = tf.reduce_sum(tf.exp(s) * s)
        return [tape.gradient(y, x), s, s + 1.0, y]

    expected = eagerly(step)
    for _ in range(3):
        assert_same(step(), expected)


def test_unconnected_sources():
    x, other = tf.Variable(numbers(50)), tf.Variable(numbers(50))

    with tf.GradientTape() as tape:
        y = tf.reduce_sum(tf.sin(x))
    gradients = tape.gradient(y, [x, other])

    np.testing.assert_array_equal(gradients[0], np.cos(numbers(50)))
    assert gradients[1] is None
    assert "other" in str(tape.explain(y, other))


def test_second_derivatives():
    x = tf.Variable(numbers(50))

    def second():
        with tf.GradientTape() as outer:
            with tf.GradientTape() as inner:
                y = tf.reduce_sum(tf.sin(x) * tf.exp(x))
            g = inner.gradient(y, x)
            z = tf.reduce_sum(g * g)
        return [g, outer.gradient(z, x)]

    expected = eagerly(second)
    for _ in range(3):
        assert_same(second(), expected)


@pytest.mark.parametrize("f", [lambda x: tf.sqrt(x - 1.0), lambda x: tf.exp(x * 1000.0)])
def test_autopsy_finds_the_operation_that_produced_nan(f):
    x = tf.Variable(np.ones(50, np.float32))

    def autopsy():
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(f(x))
        gradient = tape.gradient(y, x)
        assert not np.isfinite(gradient).any()
        return tape.autopsy()

    actual, expected = autopsy(), eagerly(autopsy)
    assert (actual.primitive, actual.direction, actual.cause) == (
        expected.primitive,
        expected.direction,
        expected.cause,
    )
    assert expected.primitive is not None


def test_tapes_that_keep_all_values_disable_lazy_evaluation():
    x = tf.constant(numbers(50))

    for options in ({"lines": True}, {"memory_limit": "1GB"}):
        with tf.GradientTape(**options) as tape:
            tape.watch(x)
            assert not is_deferred(tf.sin(x))


def test_accumulators_and_functions_disable_lazy_evaluation():
    x = tf.constant(numbers(50))

    with tf.autodiff.ForwardAccumulator(x, tf.ones(50)) as forward:
        y = tf.sin(x)
        assert not is_deferred(y)
    np.testing.assert_array_equal(forward.jvp(y), np.cos(numbers(50)))
    y = tf.function(lambda x: tf.sin(x) * 2.0)(x)
    assert not is_deferred(y)
    np.testing.assert_array_equal(y, np.sin(numbers(50)) * 2)


def test_functions_and_datasets_accept_deferred_tensors():
    x = tf.constant(numbers(50))
    double = tf.function(lambda x: x * 2.0)
    expected = np.sin(numbers(50))

    for _ in range(3):
        np.testing.assert_array_equal(double(tf.sin(x)), expected * 2)
    rows = [row.numpy() for row in tf.data.Dataset.from_tensor_slices(tf.sin(x))]
    np.testing.assert_array_equal(rows, expected)
