"""Tests Python control flow on tensor values: functions return the same results as eager code."""

import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import retrograde as tf

# Random programs are nested tuples, which `run` interprets like Python statements.

SLOTS = st.integers(0, 3)
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
    st.tuples(st.just("compute"), st.sampled_from(sorted(OPERATIONS)), SLOTS, SLOTS, SLOTS),
    st.tuples(st.just("append"), SLOTS),
    st.tuples(st.just("assign"), SLOTS),
    st.tuples(st.just("return if above"), SLOTS, LIMITS),
    st.tuples(st.just("break if above"), SLOTS, LIMITS),
    st.tuples(st.just("raise if above"), SLOTS, LIMITS),
)


def nested_statements(inner):
    body = st.lists(inner, min_size=1, max_size=3)
    return st.one_of(
        st.tuples(st.just("if above"), SLOTS, LIMITS, body, body),
        st.tuples(st.just("while below"), SLOTS, LIMITS, body),
        st.tuples(st.just("for"), SLOTS, body),
        st.tuples(st.just("try"), body),
    )


PROGRAMS = st.lists(st.recursive(SIMPLE, nested_statements, max_leaves=6), min_size=1, max_size=5)
INPUTS = st.lists(
    st.lists(st.floats(-2, 2, width=32), min_size=3, max_size=3), min_size=3, max_size=6
)


class _Return(Exception):
    pass


class _Break(Exception):
    pass


def run(program, x, variable):
    """Runs a program on four slots, a list of outputs and a variable."""
    slots, outputs = [x, -x, tf.ones([3]), variable.value()], []
    try:
        _block(program, slots, outputs, variable)
    except (_Return, _Break, ValueError):
        outputs.append(tf.zeros([3]))
    return [*slots, *outputs, tf.constant(len(outputs))]


def _block(statements, slots, outputs, variable):
    for statement in statements:
        _statement(statement, slots, outputs, variable)


def _is_above(slots, i, limit):
    return tf.reduce_sum(slots[i]) > limit


def _statement(statement, slots, outputs, variable):
    match statement:
        case ("compute", name, i, j, k):
            slots[k] = OPERATIONS[name](slots[i], slots[j])
        case ("append", i):
            outputs.append(slots[i])
        case ("assign", i):
            variable.assign(tf.clip_by_value(slots[i], -3.0, 3.0))
            slots[3] = variable + 0.25
        case ("return if above", i, limit):
            if _is_above(slots, i, limit):
                raise _Return
        case ("break if above", i, limit):
            if _is_above(slots, i, limit):
                raise _Break
        case ("raise if above", i, limit):
            if float(slots[i][0]) > limit:
                raise ValueError("above")
        case ("if above", i, limit, then, otherwise):
            _block(then if _is_above(slots, i, limit) else otherwise, slots, outputs, variable)
        case ("while below", i, limit, body):
            iterations = 0
            while not _is_above(slots, i, limit) and iterations < 3:
                iterations += 1
                try:
                    _block(body, slots, outputs, variable)
                except _Break:
                    break
        case ("for", i, body):
            for _ in range(int(tf.cast(tf.abs(slots[i][1]), tf.int32)) % 3):
                try:
                    _block(body, slots, outputs, variable)
                except _Break:
                    break
        case ("try", body):
            try:
                _block(body, slots, outputs, variable)
            except ValueError:
                outputs.append(-slots[0])


def run_all(f, inputs, variable):
    """Returns the results of `f` for each input, and the variable after each call."""
    tf.random.set_seed(5)
    variable.assign([0.5, -0.5, 0.25])
    return [[*map(np.asarray, f(tf.constant(x))), variable.numpy()] for x in inputs]


def check(program, inputs, compiled, tolerance):
    variable = tf.Variable(tf.zeros([3]))
    f = tf.function(lambda x: run(program, x, variable), jit_compile=compiled)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the warning that a function now runs eagerly
        expected = run_all(lambda x: run(program, x, variable), inputs, variable)
        first_run = run_all(f, inputs * 2, variable)[: len(inputs)]
        second_run = run_all(f, inputs, variable)

    for results in (first_run, second_run):
        for a, b in zip(expected, results, strict=True):
            assert len(a) == len(b)
            for x, y in zip(a, b, strict=True):
                np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance)


QUICK = settings(deadline=None, suppress_health_check=list(HealthCheck))


@settings(QUICK, max_examples=100)
@given(PROGRAMS, INPUTS)
def test_replays_match_eager_code(program, inputs):
    check(program, inputs, compiled=False, tolerance=0)


@settings(QUICK, max_examples=8)
@given(PROGRAMS, INPUTS)
def test_compiled_programs_match_eager_code(program, inputs):
    check(program, inputs, compiled=True, tolerance=1e-4)


# Hand-written functions


def test_branch_on_a_tensor():
    f = tf.function(lambda x: x * x if x > 0.0 else -x)

    assert [f(tf.constant(v)).numpy() for v in (3.0, -2.0, 4.0, -5.0)] == [9.0, 2.0, 16.0, 5.0]
    assert len(f.recordings()) == 2


def test_loop_on_a_tensor_that_appends_to_a_list():
    @tf.function
    def collatz(n):
        sequence = [n]
        while n != 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            sequence.append(n)
        return tf.stack(sequence)

    for n, expected in ((6, [6, 3, 10, 5, 16, 8, 4, 2, 1]), (1, [1]), (4, [4, 2, 1])):
        assert collatz(tf.constant(n)).numpy().tolist() == expected


@pytest.mark.parametrize(
    "convert",
    [float, int, bool, lambda x: x.numpy().tolist(), np.asarray, lambda x: f"{x:.2f}", abs],
    ids=["float", "int", "bool", "numpy", "asarray", "format", "no conversion"],
)
def test_every_conversion_adds_a_guard(convert):
    def body(x):
        converted = convert(x * 2.0)
        return tf.constant(float(converted)) + x

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


def test_a_function_with_ever_changing_guards_warns_and_runs_eagerly():
    f = tf.function(lambda x: tf.constant(float(x)) + x)
    with pytest.warns(UserWarning) as caught:
        results = [f(tf.constant(float(v))).numpy() for v in range(40)]

    assert results == [2.0 * v for v in range(40)]
    (message,) = [str(w.message) for w in caught]
    assert "the value converted to Python at" in message
    assert __file__ in message
    assert "(by float) changes on every call" in message
    assert len(f.recordings()) == 16


def test_user_exceptions_propagate_unchanged():
    class CustomError(Exception):
        pass

    @tf.function
    def f(x):
        if tf.reduce_any(tf.math.is_nan(x)):
            raise CustomError("nan")
        return x + 1.0

    assert f(tf.constant(1.0)).numpy() == 2.0
    for _ in range(2):
        with pytest.raises(CustomError, match="nan"):
            f(tf.constant(np.nan))
    assert f(tf.constant(2.0)).numpy() == 3.0


def test_a_violated_guard_under_forward_mode():
    f = tf.function(lambda x: x * x if x > 0.0 else -x)
    for _ in range(2):
        f(tf.constant(2.0))
    x = tf.constant(-3.0)

    with tf.autodiff.ForwardAccumulator(x, tf.constant(1.0)) as forward:
        y = f(x)

    assert [float(y), float(forward.jvp(y))] == [3.0, -1.0]
