"""Tests the fast path of calls: it agrees with the slow path and donates only unshared buffers."""

import threading

import jax
import numpy as np
import pytest

import retrograde as tf
from retrograde.core.lazy import LazyTensor
from retrograde.devices import device_tensors

BACKENDS = {"numpy": {}, "xla": {"jit_compile": True}}

on_every_backend = pytest.mark.parametrize("options", BACKENDS.values(), ids=BACKENDS)

STRUCTURES = {
    "single tensor": lambda x: x + 1.0,
    "list": lambda x: [x + 1.0],
    "tuple": lambda x: (x + 1.0, x * 2.0),
    "with None": lambda x: [None, (x + 1.0, None)],
    "None": lambda _x: None,
    "empty": lambda x: [[], x + 1.0, ()],
    "dict": lambda x: {"b": x + 1.0, "a": [x * 2.0]},
    "dict with None": lambda x: {"it's": {}, "a": None, "\\": x + 1.0},
    "integer keys": lambda x: {2: x + 1.0, 1: x * 2.0},
    "argument": lambda x: [x, x + 1.0],
    "constant": lambda x: [tf.constant(3.0), x + 1.0, 5],
    "repeated": lambda x: [x + 1.0] * 2,
}


def call_repeatedly(f, *args, times=4):
    """Calls `f` several times, so that it takes the fast path, and returns the last result."""
    for _ in range(times):
        result = f(*args)
    return result


@on_every_backend
@pytest.mark.parametrize("f", STRUCTURES.values(), ids=STRUCTURES)
def test_results_have_the_same_structure_as_in_python(f, options):
    x = tf.constant([1.0, 2.0])
    expected, actual = f(x), call_repeatedly(tf.function(f, **options), x)

    tf.nest.assert_same_structure(actual, expected)
    assert type(actual) is type(expected) or isinstance(actual, tf.Tensor)
    if isinstance(expected, dict):
        assert list(actual) == list(expected)
    for a, e in zip(tf.nest.flatten(actual), tf.nest.flatten(expected), strict=True):
        if e is None:
            assert a is None
        else:
            np.testing.assert_array_equal(a, e)


@on_every_backend
def test_fast_calls_count_as_replays(options):
    f = tf.function(lambda x: x * 2.0, **options)
    call_repeatedly(f, tf.constant([1.0]), times=5)

    assert [r.replays for r in f.recordings()] == [4]


@on_every_backend
@pytest.mark.parametrize("dtype", [tf.float64, tf.bfloat16, tf.complex128, tf.int64])
def test_dtypes_are_kept(dtype, options):
    x = tf.cast([1, 2, 3], dtype)
    y = call_repeatedly(tf.function(lambda x: x * x, **options), x)

    assert y.dtype == dtype
    assert y.numpy().tolist() == [1, 4, 9]


@on_every_backend
def test_results_of_compiled_functions_can_be_arguments(options):
    f = tf.function(lambda x: x * 2.0, jit_compile=True)
    g = tf.function(lambda x: x + 1.0, **options)
    y = call_repeatedly(f, tf.constant([1.0, 2.0]))

    assert type(y) is LazyTensor
    assert call_repeatedly(g, y).numpy().tolist() == [3.0, 5.0]


def test_a_repeated_argument_is_cached_on_the_device_until_it_is_freed():
    f = tf.function(lambda x: x * 2.0, jit_compile=True)
    x = tf.constant([1.0, 2.0])
    call_repeatedly(f, x)
    assert id(x) in device_tensors.kept

    key = id(x)
    del x
    assert key not in device_tensors.kept


def test_a_variable_passed_as_a_tensor_is_read_in_every_call():
    f = tf.function(lambda x: x * 2.0, jit_compile=True)
    v = tf.Variable([1.0, 2.0])
    for i in range(6):
        assert f(tf.convert_to_tensor(v)).numpy().tolist() == [2.0 + 2 * i, 4.0 + 2 * i]
        v.assign_add([1.0, 1.0])


# Donation of variables


def make_counter():
    v = tf.Variable([0.0, 10.0])
    step = tf.function(lambda x: [tf.reduce_sum(v.assign_add(x))], jit_compile=True)
    one = tf.constant([1.0, 1.0])
    call_repeatedly(step, one)
    return v, step, one


def test_the_memory_of_a_variable_is_donated():
    v, step, one = make_counter()
    before = v._current()._device
    pointer = before.unsafe_buffer_pointer()
    del before
    step(one)

    assert v._current()._device.unsafe_buffer_pointer() == pointer
    assert v.numpy().tolist() == [5.0, 15.0]


def test_each_variable_is_aliased_with_its_own_buffer():
    """Two variables of the same shape are assigned in the reverse order of their reads."""
    weight, momentum = (tf.Variable(tf.ones((64, 64))) for _ in range(2))

    @tf.function(jit_compile=True)
    def step(x):
        gradient = x @ weight
        momentum.assign(0.9 * momentum + gradient)
        weight.assign_sub(0.1 * momentum)
        return tf.reduce_sum(gradient)

    x = tf.ones((64, 64))
    text = step.experimental_get_compiler_ir(x)(stage="optimized_hlo")
    assert "input_output_alias" in text
    assert not [line for line in text.splitlines() if "f32[64,64]{1,0} copy(" in line]
    assert float(weight[0, 0]) == float(momentum[0, 0]) == 1.0  # the step has not run yet
    for _ in range(3):
        step(x)
    np.testing.assert_allclose(weight[0, 0], expected_weight(3), rtol=1e-5)


def expected_weight(steps):
    weight = momentum = 1.0
    for _ in range(steps):
        momentum = 0.9 * momentum + 64 * weight
        weight -= 0.1 * momentum
    return weight


def test_a_device_array_with_other_references_is_not_donated():
    v, step, one = make_counter()
    device = v._current()._device
    step(one)

    assert not device.is_deleted()


@pytest.mark.parametrize(
    "read",
    [
        tf.convert_to_tensor,
        tf.identity,
        lambda v: v.read_value(),
        lambda v: v.value(),
        lambda v: tf.Variable(v),
        lambda v: tf.Variable(tf.zeros([2])).assign(v),
        lambda v: v.numpy(),
        np.asarray,
    ],
)
def test_values_read_from_a_variable_stay_valid(read):
    v, step, one = make_counter()
    value_read = read(v)
    call_repeatedly(step, one)

    assert np.asarray(value_read).tolist() == [4.0, 14.0]
    assert v.numpy().tolist() == [8.0, 18.0]


RETURNING = {
    "variable": lambda v, x: v.assign_add(x),
    "tensor of the variable": lambda v, x: tf.convert_to_tensor(v.assign_add(x)),
    "assigned tensor": lambda v, x: _assign_and_return(v, v + x),
}


def _assign_and_return(v, y):
    v.assign(y)
    return y


@pytest.mark.parametrize("f", RETURNING.values(), ids=RETURNING)
def test_results_that_share_memory_with_a_variable_stay_valid(f):
    v, x = tf.Variable([0.0, 10.0]), tf.constant([1.0, 1.0])
    step = tf.function(lambda x: f(v, x), jit_compile=True)
    results = [step(x) for _ in range(5)]

    assert [r.numpy().tolist() for r in results] == [[i + 1.0, i + 11.0] for i in range(5)]


def test_the_old_value_of_a_variable_can_be_assigned_to_another():
    old, new = tf.Variable([0.0]), tf.Variable([0.0])

    @tf.function(jit_compile=True)
    def step(x):
        old.assign(new)
        new.assign_add(x)
        return tf.reduce_sum(new)

    call_repeatedly(step, tf.constant([1.0]), times=5)
    assert (old.numpy().tolist(), new.numpy().tolist()) == ([4.0], [5.0])


@on_every_backend
def test_the_fast_path_itself_returns_the_results(options):
    """If it failed, the slow path would silently return them instead."""
    v, w, x = tf.Variable([1.0, 2.0]), tf.Variable([3.0, 4.0]), tf.constant([5.0, 6.0])
    f = tf.function(lambda x: [x * v, w.assign_add(x)], **options)
    call_repeatedly(f, x)
    before = w.numpy()

    product, total = f._latest_fast_call(x)

    assert product.numpy().tolist() == [5.0, 12.0]
    assert total.numpy().tolist() == w.numpy().tolist() == (before + x.numpy()).tolist()


def test_updates_by_threads_that_share_a_compiled_step_are_not_lost():
    v = tf.Variable(tf.zeros([100]))
    step = tf.function(lambda x: tf.reduce_sum(v.assign_add(x)), jit_compile=True)
    x = tf.ones([100])
    call_repeatedly(step, x)
    errors = []

    def work():
        try:
            for _ in range(50):
                step(x)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert errors == []
    assert v.numpy().tolist() == [204.0] * 100


def test_numpy_arrays_are_not_overwritten():
    start = np.zeros(1000, np.float32)
    v = tf.Variable(start)
    read = v.read_value()
    step = tf.function(lambda x: tf.reduce_sum(v.assign_add(x)), jit_compile=True)
    call_repeatedly(step, tf.ones([1000]))

    assert not start.any()
    assert not read.numpy().any()
    assert isinstance(v._current()._device, jax.Array)


def test_traces_are_found_by_number_shape_and_dtype_of_arguments():
    f = tf.function(lambda *xs: tf.add_n(xs), jit_compile=True)
    calls = [[tf.ones([n], dtype)] * count for n in (1, 2) for dtype in "fd" for count in (1, 2)]
    for _ in range(5):
        for xs in calls:
            y = f(*xs)
            assert (y.shape, y.dtype) == (xs[0].shape, xs[0].dtype)
            assert set(y.numpy()) == {len(xs)}

    assert [r.replays for r in f.recordings()] == [4] * len(calls)


@on_every_backend
def test_variable_and_tensor_arguments_have_separate_traces(options):
    f = tf.function(lambda x: x.assign_add([1.0]) if isinstance(x, tf.Variable) else x, **options)
    v = tf.Variable([1.0])
    for _ in range(3):
        call_repeatedly(f, tf.constant([1.0]))
        f(v)

    assert v.numpy().tolist() == [4.0]


def test_a_compiled_step_without_arguments_can_capture_a_large_constant():
    data = tf.constant(np.arange(5000, dtype=np.float32))
    total = tf.Variable(tf.zeros([5000]))

    @tf.function(jit_compile=True)
    def step():
        total.assign_add(2.0 * data)

    for _ in range(4):
        step()

    np.testing.assert_array_equal(total.numpy(), 8.0 * data.numpy())
    assert step._latest_fast_call is not None and step._fast_calls
