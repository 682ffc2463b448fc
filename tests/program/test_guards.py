"""Python control flow on the values of tensors: a function gives what eager code gives."""

import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import retrograde as tf

# Random programs: nested tuples, which `run` carries out as Python code would be written.

PLACES = st.integers(0, 3)
LIMITS = st.sampled_from([-1.0, -0.25, 0.0, 0.5, 1.0])
OPERATIONS = {
    "add": lambda a, b: a + b,
    "multiply": lambda a, b: a * b * 0.5,
    "sine": lambda a, b: tf.sin(a) - b,
    "maximum": tf.maximum,
    "mean": lambda a, b: a - tf.reduce_mean(b),
    "draw": lambda a, _: a + 0.1 * tf.random.normal([3]),
}

SIMPLE = st.one_of(
    st.tuples(st.just("compute"), st.sampled_from(sorted(OPERATIONS)), PLACES, PLACES, PLACES),
    st.tuples(st.just("append"), PLACES),
    st.tuples(st.just("assign"), PLACES),
    st.tuples(st.just("return if above"), PLACES, LIMITS),
    st.tuples(st.just("break if above"), PLACES, LIMITS),
    st.tuples(st.just("raise if above"), PLACES, LIMITS),
)


def nested(inner):
    body = st.lists(inner, min_size=1, max_size=3)
    return st.one_of(
        st.tuples(st.just("if above"), PLACES, LIMITS, body, body),
        st.tuples(st.just("while below"), PLACES, LIMITS, body),
        st.tuples(st.just("for"), PLACES, body),
        st.tuples(st.just("try"), body),
    )


PROGRAMS = st.lists(st.recursive(SIMPLE, nested, max_leaves=6), min_size=1, max_size=5)
INPUTS = st.lists(
    st.lists(st.floats(-2, 2, width=32), min_size=3, max_size=3), min_size=3, max_size=6
)


class _Return(Exception):
    pass


class _Break(Exception):
    pass


def run(program, x, variable):
    """Carries a program out on four places, a list and a variable."""
    places, found = [x, -x, tf.ones([3]), variable.value()], []
    try:
        _block(program, places, found, variable)
    except (_Return, _Break, ValueError):
        found.append(tf.zeros([3]))
    return [*places, *found, tf.constant(len(found))]


def _block(statements, places, found, variable):
    for statement in statements:
        _statement(statement, places, found, variable)


def _above(places, i, limit):
    return tf.reduce_sum(places[i]) > limit


def _statement(statement, places, found, variable):
    match statement:
        case ("compute", name, i, j, k):
            places[k] = OPERATIONS[name](places[i], places[j])
        case ("append", i):
            found.append(places[i])
        case ("assign", i):
            variable.assign(tf.clip_by_value(places[i], -3.0, 3.0))
            places[3] = variable + 0.25
        case ("return if above", i, limit):
            if _above(places, i, limit):
                raise _Return
        case ("break if above", i, limit):
            if _above(places, i, limit):
                raise _Break
        case ("raise if above", i, limit):
            if float(places[i][0]) > limit:
                raise ValueError("above")
        case ("if above", i, limit, then, otherwise):
            _block(then if _above(places, i, limit) else otherwise, places, found, variable)
        case ("while below", i, limit, body):
            turns = 0
            while not _above(places, i, limit) and turns < 3:
                turns += 1
                try:
                    _block(body, places, found, variable)
                except _Break:
                    break
        case ("for", i, body):
            for _ in range(int(tf.cast(tf.abs(places[i][1]), tf.int32)) % 3):
                try:
                    _block(body, places, found, variable)
                except _Break:
                    break
        case ("try", body):
            try:
                _block(body, places, found, variable)
            except ValueError:
                found.append(-places[0])


def results_of(f, inputs, variable):
    """What `f` gives for all inputs, one after the other, with the variable after each."""
    tf.random.set_seed(5)
    variable.assign([0.5, -0.5, 0.25])
    return [[*map(np.asarray, f(tf.constant(x))), variable.numpy()] for x in inputs]


def check(program, inputs, compiled, tolerance):
    variable = tf.Variable(tf.zeros([3]))
    f = tf.function(lambda x: run(program, x, variable), jit_compile=compiled)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a function runs eagerly from now on
        expected = results_of(lambda x: run(program, x, variable), inputs, variable)
        found = results_of(f, inputs * 2, variable)[: len(inputs)]
        again = results_of(f, inputs, variable)

    for theirs in (found, again):
        for a, b in zip(expected, theirs, strict=True):
            assert len(a) == len(b)
            for x, y in zip(a, b, strict=True):
                np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance)


QUICK = settings(deadline=None, suppress_health_check=list(HealthCheck))


@settings(QUICK, max_examples=100)
@given(PROGRAMS, INPUTS)
def test_replays_do_what_python_does(program, inputs):
    check(program, inputs, compiled=False, tolerance=0)


@settings(QUICK, max_examples=8)
@given(PROGRAMS, INPUTS)
def test_compiled_programs_do_what_python_does(program, inputs):
    check(program, inputs, compiled=True, tolerance=1e-4)


# Some by hand


def test_a_branch_on_a_tensor():
    f = tf.function(lambda x: x * x if x > 0.0 else -x)

    assert [f(tf.constant(v)).numpy() for v in (3.0, -2.0, 4.0, -5.0)] == [9.0, 2.0, 16.0, 5.0]
    assert len(f.recordings()) == 2


def test_a_loop_on_a_tensor_and_a_list():
    @tf.function
    def collatz(n):
        seen = [n]
        while n != 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            seen.append(n)
        return tf.stack(seen)

    for n, expected in ((6, [6, 3, 10, 5, 16, 8, 4, 2, 1]), (1, [1]), (4, [4, 2, 1])):
        assert collatz(tf.constant(n)).numpy().tolist() == expected


@pytest.mark.parametrize(
    "leave",
    [float, int, bool, lambda x: x.numpy().tolist(), np.asarray, lambda x: f"{x:.2f}", abs],
    ids=["float", "int", "bool", "numpy", "asarray", "format", "stays"],
)
def test_every_way_out_is_watched(leave):
    def body(x):
        left = leave(x * 2.0)
        return tf.constant(float(left)) + x

    f = tf.function(body)
    for v in (1.5, -2.0, 0.0, 1.5, 7.25):
        assert f(tf.constant(v)).numpy() == body(tf.constant(v)).numpy()


def test_shapes_that_depend_on_values():
    f = tf.function(lambda n: tf.reduce_sum(tf.range(n)))

    assert [int(f(tf.constant(n))) for n in (3, 5, 3, 0)] == [3, 10, 3, 0]
    g = tf.function(lambda x: tf.boolean_mask(x, x > 0.0) * 2.0)
    for values in ([1.0, -1.0], [1.0, 2.0], [-1.0, -2.0]):
        expected = [2.0 * v for v in values if v > 0]
        assert g(tf.constant(values)).numpy().tolist() == expected


def test_a_function_that_never_settles_runs_eagerly_and_says_so_once():
    f = tf.function(lambda x: tf.constant(float(x)) + x)
    with pytest.warns(UserWarning) as caught:
        found = [f(tf.constant(float(v))).numpy() for v in range(40)]

    assert found == [2.0 * v for v in range(40)]
    (message,) = [str(w.message) for w in caught]
    assert "the value converted to Python at" in message
    assert __file__ in message
    assert "(by float) changes on every call" in message
    assert len(f.recordings()) == 16


def test_exceptions_from_python_leave_as_they_are():
    class Mine(Exception):
        pass

    @tf.function
    def f(x):
        if tf.reduce_any(tf.math.is_nan(x)):
            raise Mine("nan")
        return x + 1.0

    assert f(tf.constant(1.0)).numpy() == 2.0
    for _ in range(2):
        with pytest.raises(Mine, match="nan"):
            f(tf.constant(np.nan))
    assert f(tf.constant(2.0)).numpy() == 3.0


def test_a_call_that_goes_another_way_under_forward_mode():
    f = tf.function(lambda x: x * x if x > 0.0 else -x)
    for _ in range(2):
        f(tf.constant(2.0))
    x = tf.constant(-3.0)

    with tf.autodiff.ForwardAccumulator(x, tf.constant(1.0)) as forward:
        y = f(x)

    assert [float(y), float(forward.jvp(y))] == [3.0, -1.0]
