"""Calls by the short way: the same as by the long one, and nothing is lost that someone holds."""

import threading

import jax
import numpy as np
import pytest

import retrograde as tf
from retrograde.core.lazy import LazyTensor
from retrograde.program import device_tensors

WAYS = {"numpy": {}, "xla": {"jit_compile": True}}

every_way = pytest.mark.parametrize("options", WAYS.values(), ids=WAYS)

STRUCTURES = {
    "one": lambda x: x + 1.0,
    "list": lambda x: [x + 1.0],
    "tuple": lambda x: (x + 1.0, x * 2.0),
    "nothing in it": lambda x: [None, (x + 1.0, None)],
    "nothing": lambda _x: None,
    "empty": lambda x: [[], x + 1.0, ()],
    "mapping": lambda x: {"b": x + 1.0, "a": [x * 2.0]},
    "nothing in a mapping": lambda x: {"it's": {}, "a": None, "\\": x + 1.0},
    "numbers as keys": lambda x: {2: x + 1.0, 1: x * 2.0},
    "argument": lambda x: [x, x + 1.0],
    "constant": lambda x: [tf.constant(3.0), x + 1.0, 5],
    "twice": lambda x: [x + 1.0] * 2,
}


def called(f, *arguments, times=4):
    """The result of the last of several calls, which goes the short way if there is one."""
    for _ in range(times):
        result = f(*arguments)
    return result


@every_way
@pytest.mark.parametrize("f", STRUCTURES.values(), ids=STRUCTURES)
def test_results_have_the_structure_they_have_in_python(f, options):
    x = tf.constant([1.0, 2.0])
    expected, actual = f(x), called(tf.function(f, **options), x)

    tf.nest.assert_same_structure(actual, expected)
    assert type(actual) is type(expected) or isinstance(actual, tf.Tensor)
    if isinstance(expected, dict):
        assert list(actual) == list(expected)
    for a, e in zip(tf.nest.flatten(actual), tf.nest.flatten(expected), strict=True):
        if e is None:
            assert a is None
        else:
            np.testing.assert_array_equal(a, e)


@every_way
def test_every_call_is_counted(options):
    f = tf.function(lambda x: x * 2.0, **options)
    called(f, tf.constant([1.0]), times=5)

    assert [r.replays for r in f.recordings()] == [4]


@every_way
@pytest.mark.parametrize("dtype", [tf.float64, tf.bfloat16, tf.complex128, tf.int64])
def test_dtypes_are_kept(dtype, options):
    x = tf.cast([1, 2, 3], dtype)
    y = called(tf.function(lambda x: x * x, **options), x)

    assert y.dtype == dtype
    assert y.numpy().tolist() == [1, 4, 9]


@every_way
def test_what_a_program_made_can_be_an_argument(options):
    f = tf.function(lambda x: x * 2.0, jit_compile=True)
    g = tf.function(lambda x: x + 1.0, **options)
    y = called(f, tf.constant([1.0, 2.0]))

    assert type(y) is LazyTensor
    assert called(g, y).numpy().tolist() == [3.0, 5.0]


def test_a_tensor_that_is_used_again_stays_on_the_device_while_it_lives():
    f = tf.function(lambda x: x * 2.0, jit_compile=True)
    x = tf.constant([1.0, 2.0])
    called(f, x)
    assert id(x) in device_tensors.kept

    key = id(x)
    del x
    assert key not in device_tensors.kept


def test_a_variable_that_was_read_as_an_argument_is_read_anew():
    f = tf.function(lambda x: x * 2.0, jit_compile=True)
    v = tf.Variable([1.0, 2.0])
    for i in range(6):
        assert f(tf.convert_to_tensor(v)).numpy().tolist() == [2.0 + 2 * i, 4.0 + 2 * i]
        v.assign_add([1.0, 1.0])


# What variables donate


def counter():
    v = tf.Variable([0.0, 10.0])
    step = tf.function(lambda x: [tf.reduce_sum(v.assign_add(x))], jit_compile=True)
    one = tf.constant([1.0, 1.0])
    called(step, one)
    return v, step, one


def test_the_memory_of_a_variable_is_donated():
    v, step, one = counter()
    before = v._current()._device
    pointer = before.unsafe_buffer_pointer()
    del before
    step(one)

    assert v._current()._device.unsafe_buffer_pointer() == pointer
    assert v.numpy().tolist() == [5.0, 15.0]


def test_each_variable_takes_its_own_memory_back():
    """Two of a shape, written in the other order than they are read, as optimizers do."""
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
    assert float(weight[0, 0]) == float(momentum[0, 0]) == 1.0  # nothing was run yet
    for _ in range(3):
        step(x)
    np.testing.assert_allclose(weight[0, 0], weights_by_hand(3), rtol=1e-5)


def weights_by_hand(steps):
    weight = momentum = 1.0
    for _ in range(steps):
        momentum = 0.9 * momentum + 64 * weight
        weight -= 0.1 * momentum
    return weight


def test_an_array_of_a_variable_that_is_held_elsewhere_is_not_donated():
    v, step, one = counter()
    device = v._current()._device
    step(one)

    assert not device.is_deleted()


@pytest.mark.parametrize(
    "hold",
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
def test_what_was_read_of_a_variable_stays(hold):
    v, step, one = counter()
    held = hold(v)
    called(step, one)

    assert np.asarray(held).tolist() == [4.0, 14.0]
    assert v.numpy().tolist() == [8.0, 18.0]


RETURNING = {
    "the variable": lambda v, x: v.assign_add(x),
    "its tensor": lambda v, x: tf.convert_to_tensor(v.assign_add(x)),
    "what it is given": lambda v, x: _given(v, v + x),
}


def _given(v, y):
    v.assign(y)
    return y


@pytest.mark.parametrize("f", RETURNING.values(), ids=RETURNING)
def test_a_result_that_a_variable_holds_too_stays(f):
    v, x = tf.Variable([0.0, 10.0]), tf.constant([1.0, 1.0])
    step = tf.function(lambda x: f(v, x), jit_compile=True)
    results = [step(x) for _ in range(5)]

    assert [r.numpy().tolist() for r in results] == [[i + 1.0, i + 11.0] for i in range(5)]


def test_a_variable_can_be_given_what_another_held():
    old, new = tf.Variable([0.0]), tf.Variable([0.0])

    @tf.function(jit_compile=True)
    def step(x):
        old.assign(new)
        new.assign_add(x)
        return tf.reduce_sum(new)

    called(step, tf.constant([1.0]), times=5)
    assert (old.numpy().tolist(), new.numpy().tolist()) == ([4.0], [5.0])


@every_way
def test_the_short_way_itself_answers(options):
    """If it failed, the long way would answer in its place, unnoticed."""
    v, w, x = tf.Variable([1.0, 2.0]), tf.Variable([3.0, 4.0]), tf.constant([5.0, 6.0])
    f = tf.function(lambda x: [x * v, w.assign_add(x)], **options)
    called(f, x)
    before = w.numpy()

    product, total = f._latest(x)

    assert product.numpy().tolist() == [5.0, 12.0]
    assert total.numpy().tolist() == w.numpy().tolist() == (before + x.numpy()).tolist()


def test_threads_that_share_a_compiled_step_lose_no_update():
    v = tf.Variable(tf.zeros([100]))
    step = tf.function(lambda x: tf.reduce_sum(v.assign_add(x)), jit_compile=True)
    x = tf.ones([100])
    called(step, x)
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


def test_an_array_of_numpy_is_not_written_over():
    start = np.zeros(1000, np.float32)
    v = tf.Variable(start)
    read = v.read_value()
    step = tf.function(lambda x: tf.reduce_sum(v.assign_add(x)), jit_compile=True)
    called(step, tf.ones([1000]))

    assert not start.any()
    assert not read.numpy().any()
    assert isinstance(v._current()._device, jax.Array)


def test_calls_find_their_recording_by_number_shape_and_dtype():
    f = tf.function(lambda *xs: tf.add_n(xs), jit_compile=True)
    calls = [[tf.ones([n], dtype)] * count for n in (1, 2) for dtype in "fd" for count in (1, 2)]
    for _ in range(5):
        for xs in calls:
            y = f(*xs)
            assert (y.shape, y.dtype) == (xs[0].shape, xs[0].dtype)
            assert set(y.numpy()) == {len(xs)}

    assert [r.replays for r in f.recordings()] == [4] * len(calls)


@every_way
def test_a_variable_in_the_place_of_a_tensor_is_no_tensor(options):
    f = tf.function(lambda x: x.assign_add([1.0]) if isinstance(x, tf.Variable) else x, **options)
    v = tf.Variable([1.0])
    for _ in range(3):
        called(f, tf.constant([1.0]))
        f(v)

    assert v.numpy().tolist() == [4.0]


def test_a_compiled_step_without_arguments_may_close_over_a_large_constant():
    data = tf.constant(np.arange(5000, dtype=np.float32))
    total = tf.Variable(tf.zeros([5000]))

    @tf.function(jit_compile=True)
    def step():
        total.assign_add(2.0 * data)

    for _ in range(4):
        step()

    np.testing.assert_array_equal(total.numpy(), 8.0 * data.numpy())
    assert step._latest is not None and step._fast_calls
