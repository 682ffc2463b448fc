"""Tests trace reports, strict functions and the trace limit."""

import functools
import logging
import re
import weakref

import numpy as np
import pytest

import retrograde as tf


def changes(f):
    return [r.changed for r in f.recordings()]


def test_changes_are_relative_to_the_most_similar_trace():
    f = tf.function(lambda x, lr, options=None: x * lr if options is None else x)
    f(tf.ones([32, 784]), 0.1)
    f(tf.ones([32, 784]), 0.05)
    f(tf.ones([17, 784]), 0.1)
    f(tf.ones([17, 784], tf.float64), tf.constant(0.1, tf.float64))
    f(tf.ones([17, 784]), 0.05, {"a": [1]})

    assert changes(f) == [
        (),
        ("lr: Python float 0.1 → 0.05",),
        ("x: (32, 784) → (17, 784)",),
        ("x: (17, 784) float32 → (17, 784) float64", "lr: Python float 0.1 → () float64"),
        (
            "lr: Python float 0.1 → 0.05",
            "options: Python NoneType None → absent",
            "options['a'][0]: absent → Python int 1",
        ),
    ]


def test_reports_and_errors_list_all_changes():
    f = tf.function(lambda x, lr: x * lr)
    f(tf.ones([2]), 0.1)
    f(tf.ones([3]), 0.2)

    assert ": x: (2,) → (3,); lr: Python float 0.1 → 0.2\n" in str(f.recordings()[1])
    f.expect(recordings=2)
    with pytest.raises(RuntimeError, match=re.escape("x: (3,) → (4,); lr: Python float 0.2 → 0.3")):
        f(tf.ones([4]), 0.3)


def test_the_default_name_is_function():
    assert tf.function(functools.partial(lambda x: x)).name == "function"


def test_a_violated_guard_is_reported_as_a_change():
    f = tf.function(lambda x: x if x > 0.0 else -x)
    for v in (1.0, -1.0, 2.0, -3.0):
        f(tf.constant(v))

    first, second = f.recordings()
    assert first.changed == ()
    assert second.changed[0].startswith("bool of a tensor at ")
    assert second.changed[0].endswith(": True → False")
    assert __file__ in second.changed[0]
    assert (first.replays, second.replays) == (1, 1)


def test_location_and_number_of_replays():
    f = tf.function(lambda x: x + 1.0)
    for _ in range(5):
        f(tf.constant(1.0))

    (report,) = f.recordings()
    assert report.where.filename == __file__
    assert report.replays == 4
    assert report.seconds > 0
    assert "replayed 4 times" in str(report)


def test_operations_that_xla_cannot_compile_are_reported():
    f = tf.function(lambda x: tf.numpy_function(np.sin, [x * 2.0], tf.float32), jit_compile=True)
    f(tf.constant(1.0))

    (report,) = f.recordings()
    assert (report.compiled, report.uncompiled) == (False, "numpy_function")
    assert "NumPy (XLA cannot compile numpy_function)" in str(report)


def test_an_unexpected_trace_raises_without_side_effects():
    v = tf.Variable(0.0)
    f = tf.function(lambda x: v.assign_add(tf.reduce_sum(x))).expect(recordings=1)
    f(tf.constant([1.0]))
    f(tf.constant([1.0]))

    with pytest.raises(RuntimeError, match=r"requires another one. Changed: x: \(1,\) → \(2,\)"):
        f(tf.constant([1.0, 2.0]))

    assert v.numpy() == 2.0
    f(tf.constant([1.0]))
    assert v.numpy() == 3.0


def test_repeated_retracing_logs_a_warning(caplog):
    f = tf.function(lambda x, n: x * n)
    with caplog.at_level(logging.WARNING, "retrograde"):
        for n in range(10):
            f(tf.constant(1.0), float(n))

    assert "was traced 10 times and replayed 0 times" in caplog.text
    assert "n: Python float 8.0 → 9.0" in caplog.text


def test_source():
    f = tf.function(lambda x: (tf.sin(x) * 2.0 + tf.sin(x), tf.cos(x))[0])
    f(tf.constant(1.0))

    # `sin` once, `cos` never
    assert f.source() == (
        "def replay(x0, log):\n"
        "    a1 = np.sin(x0)\n"
        "    a3 = np.multiply(a1, c2)\n"
        "    a5 = np.add(a3, a1)\n"
        "    return (a5,), ()\n"
    )
    with pytest.raises(ValueError, match="has no traces yet"):
        tf.function(lambda x: x).source()


def test_repeated_scalar_computations_are_eliminated():
    step, first, second = tf.Variable(3.0), tf.Variable([1.0]), tf.Variable([2.0])

    @tf.function
    def f():
        for v in (first, second):
            rate = tf.sqrt(1.0 - tf.pow(0.5, step))
            v.assign_sub(rate * tf.constant([1.0]))

    for _ in range(2):
        f()

    assert [f.source().count(name) for name in ("np.power", "np.sqrt")] == [1, 1]
    expected = 2 * np.sqrt(1 - 0.5**3)
    np.testing.assert_allclose([first[0], second[0]], [1 - expected, 2 - expected], rtol=1e-6)


def test_constants_of_different_dtype_or_sign_are_not_merged():
    @tf.function
    def f(x):
        return x + tf.cast(1, "float32"), tf.cast(x, "float64") + 1.0, x * -0.0, x * 0.0

    f(tf.constant(2.0))
    y32, y64, *zeros = f(tf.constant(2.0))

    assert (y32.dtype, y64.dtype) == (tf.float32, tf.float64)
    assert [np.signbit(zero) for zero in zeros] == [True, False]


@pytest.mark.parametrize("compiled", [False, True], ids=["numpy", "xla"])
def test_strict_functions_detect_changed_python_values(compiled):
    scale, v = [1.0], tf.Variable(1.0)

    def body(x):
        v.assign_add(x * tf.random.normal([]))
        return x * scale[0] + v

    f = tf.function(body, strict=True, jit_compile=compiled)
    for _ in range(2):
        f(tf.constant(1.0))
    scale[0] = 2.0
    before = v.numpy()

    with pytest.raises(RuntimeError, match="differs from the Python function in result 0"):
        f(tf.constant(1.0))

    assert v.numpy() == before


def test_strict_functions_change_state_only_once_per_call():
    v = tf.Variable(0.0)

    def body(x):
        v.assign_add(x)
        return v + tf.random.normal([])

    f = tf.function(body, strict=True)
    tf.random.set_seed(1)
    expected = [body(tf.constant(1.0)).numpy() for _ in range(5)]
    v.assign(0.0)
    tf.random.set_seed(1)

    assert [f(tf.constant(1.0)).numpy() for _ in range(5)] == expected
    assert v.numpy() == 5.0


class TestTraceLimit:
    def test_traces_beyond_the_limit_are_dropped(self):
        f = tf.function(lambda x: 2.0 * x, trace_limit=3)

        for size in range(1, 11):
            f(tf.ones([size]))

        assert len(f.recordings()) == 3
        assert [r.arguments["x"] for r in f.recordings()] == [f"({n},) float32" for n in (8, 9, 10)]
        assert f.experimental_get_tracing_count() == 3

    def test_signatures_that_are_in_use_are_kept(self):
        f = tf.function(lambda x: 2.0 * x, trace_limit=3)

        for size in range(2, 11):
            for _ in range(3):
                f(tf.ones([1]))
            f(tf.ones([size]))

        assert next(r.arguments["x"] for r in f.recordings()) == "(1,) float32"

    def test_a_dropped_signature_is_traced_again(self):
        traced = []
        f = tf.function(lambda x: traced.append(x.shape[0]) or 2.0 * x, trace_limit=1)

        results = [f(tf.ones([size])).numpy().tolist() for size in (1, 2, 1, 1, 1)]

        assert results == [[2.0], [2.0, 2.0], [2.0], [2.0], [2.0]]
        assert traced == [1, 2, 1]

    def test_dropped_traces_are_freed(self):
        f = tf.function(lambda x: 2.0 * x, trace_limit=2)
        f(tf.ones([1]))
        for _ in range(3):
            f(tf.ones([1]))
        trace = weakref.ref(f._history[0].trace)

        for size in range(2, 6):
            for _ in range(3):
                f(tf.ones([size]))

        assert trace() is None

    def test_each_instance_of_a_method_has_its_own_limit(self):
        class Model:
            @tf.function(trace_limit=2)
            def __call__(self, x):
                return 2.0 * x

        model = Model()
        for size in range(1, 6):
            model(tf.ones([size]))

        assert len(type(model).__dict__["__call__"].__get__(model).recordings()) == 2

    @pytest.mark.parametrize("limit", [0, -1, 1.5, None])
    def test_invalid_limits_raise(self, limit):
        with pytest.raises(ValueError) as raised:
            tf.function(lambda x: x, trace_limit=limit)

        assert str(raised.value) == f"trace_limit must be a positive integer. Received: {limit!r}."
