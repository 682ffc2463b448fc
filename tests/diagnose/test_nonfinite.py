"""Tests `debugging.nonfinite`."""

import threading

import numpy as np
import pytest

import retrograde as tf
from retrograde.core.recorders import thread
from retrograde.core.tape import GradientTape
from tests.namespaces.helpers import assert_raises

Invalid = tf.errors.InvalidArgumentError


def test_raise_names_the_operation_the_elements_and_the_fix():
    x = tf.constant([1.0, 0.0])
    with tf.debugging.nonfinite("raise"), pytest.raises(Invalid) as caught:
        tf.math.log(x)
    first, summary, where, *rest = str(caught.value).splitlines()

    assert first == (
        'Detected Infinity or NaN in output 0 of eagerly-executing op "log" (# of outputs: 1)'
    )
    assert summary == "In the forward pass, log produced Inf from finite inputs."
    assert where.endswith(": tf.math.log(x)")
    assert "test_nonfinite.py:" in where
    assert rest[:3] == [
        "  1 of 2 elements are non-finite:",
        "    [1] log(0) = -inf",
        "  Why: The logarithm of 0 is -Inf.",
    ]
    assert rest[3].startswith("  Fix: Use tf.math.xlogy(p, p) for p * log(p)")


def test_raise_stops_the_backward_pass_and_names_the_line_of_the_call():
    x = tf.Variable([1.0, 0.0])
    with tf.debugging.nonfinite("raise"):
        with tf.GradientTape() as tape:
            y = tf.sqrt(x)
            z = y * 2.0
        with pytest.raises(Invalid) as caught:
            tape.gradient(z, x)
    first, summary, where, *rest = str(caught.value).splitlines()

    assert first == 'Detected Infinity or NaN in the gradient of eagerly-executing op "sqrt"'
    assert summary == "In the backward pass, the gradient of sqrt produced Inf from finite inputs."
    assert where.endswith(": y = tf.sqrt(x)")
    assert rest[:2] == [
        "  1 of 2 elements are non-finite:",
        "    [1] gradient of sqrt(0) for upstream gradient 2: inf",
    ]


def test_warnings_have_the_line_of_the_user():
    x = tf.constant([-1.0])
    with (
        tf.debugging.nonfinite("warn"),
        pytest.warns(RuntimeWarning, match="log produced NaN") as seen,
    ):
        tf.math.log(x)

    assert [warning.filename for warning in seen] == [__file__]


def test_explanations_are_printed_once_for_each_location(capsys):
    x = tf.constant([-1.0])
    with tf.debugging.nonfinite("explain"):
        for _ in range(3):
            tf.math.log(x)
        tf.sqrt(x)

    printed = capsys.readouterr().out
    assert printed.count("In the forward pass, log produced NaN") == 1
    assert printed.count("In the forward pass, sqrt produced NaN") == 1


def test_only_the_origin_is_reported(capsys):
    x = tf.Variable([0.0, 1.0])
    with tf.debugging.nonfinite("explain"):
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(tf.math.log(x) * 2.0 + 1.0)
        tape.gradient(y, x)

    printed = capsys.readouterr().out
    assert printed.count("In the ") == 1
    assert "log produced Inf" in printed


def test_a_nonfinite_variable_is_named():
    w = tf.Variable([np.nan], name="weights")
    with tf.debugging.nonfinite("raise"), pytest.raises(Invalid) as caught:
        w * 2.0

    assert "The variable 'weights:0' already contained NaN." in str(caught.value)


def test_raise_raises_each_time():
    x = tf.constant([np.inf])
    with tf.debugging.nonfinite("raise"):
        for _ in range(2):
            with pytest.raises(Invalid, match="An input already contained Inf"):
                x * 2.0


def test_output_gradients_are_checked():
    x = tf.Variable([1.0])
    with tf.debugging.nonfinite("raise"):
        with tf.GradientTape() as tape:
            y = x * 2.0
        with pytest.raises(Invalid, match="Detected Infinity or NaN in output_gradients"):
            tape.gradient(y, x, output_gradients=tf.constant([np.inf]))


@pytest.mark.parametrize(
    "derive",
    [
        lambda tape, y, _, x: tape.jacobian(y, x),
        lambda tape, _, loss, x: tape.hessian(loss, x),
        lambda tape, y, _, x: tape.gradient(y, x, per_example=True),
    ],
)
def test_other_derivatives_are_checked(derive):
    x = tf.Variable([1.0, 2.0, 0.0])
    with tf.debugging.nonfinite("raise"):
        with tf.GradientTape(persistent=True) as tape:
            y = tf.sqrt(x)
            loss = tf.reduce_sum(y)
        with pytest.raises(Invalid, match="sqrt"):
            derive(tape, y, loss, x)


def test_derivatives_are_unchanged_by_monitoring():
    rng = np.random.default_rng(0)
    x = tf.Variable(rng.standard_normal((5, 4)))
    w = tf.Variable(rng.standard_normal((4, 3)))
    rows = tf.constant([0, 2, 2])

    def derivatives():
        with tf.GradientTape(persistent=True) as tape:
            h = tf.tanh(tf.gather(x, rows) @ w)
            parts = tf.split(h, 3, axis=1)
            loss = tf.reduce_sum(parts[0] * parts[2]) + tf.reduce_mean(h)
        return [
            *tape.gradient(loss, [x, w]),
            tape.jacobian(h, w),
            tape.hessian(loss, w),
            tape.hvp(loss, w, tf.ones_like(w)),
        ]

    expected = derivatives()
    with tf.debugging.nonfinite("raise"):
        actual = derivatives()
    for a, b in zip(actual, expected, strict=True):
        np.testing.assert_array_equal(tf.convert_to_tensor(a), tf.convert_to_tensor(b))


def test_the_previous_state_is_restored_after_the_block():
    with tf.debugging.nonfinite("warn"):
        with tf.debugging.nonfinite("raise"), pytest.raises(Invalid):
            tf.math.log(-1.0)
        with pytest.warns(RuntimeWarning, match="log produced NaN"):
            tf.math.log(-1.0)

    assert np.isnan(tf.math.log(-1.0).numpy())
    assert list(thread.recorders) == []
    assert thread.recorders.backward_pass is None
    assert not GradientTape._records_lines


def test_other_threads_are_not_checked():
    results = []
    with tf.debugging.nonfinite("raise"):
        other = threading.Thread(target=lambda: results.append(tf.math.log(-1.0)))
        other.start()
        other.join()

    assert np.isnan(float(results[0]))


def test_vectorized_operations_are_checked():
    x = tf.constant([1.0, 0.0])
    with tf.debugging.nonfinite("raise"), pytest.raises(Invalid, match="log produced Inf"):
        tf.vectorized_map(tf.math.log, x)


def test_an_unknown_mode_raises():
    assert_raises(
        lambda: tf.debugging.nonfinite("shout"),
        ValueError,
        "nonfinite: expected 'raise', 'warn' or 'explain'. Received: 'shout'.",
    )


def test_autopsy_works_after_a_warning():
    x = tf.Variable([0.0])
    with tf.debugging.nonfinite("warn"), pytest.warns(RuntimeWarning):
        with tf.GradientTape() as tape:
            y = tf.sqrt(x)
        tape.gradient(y, x)

    assert tape.autopsy().primitive == "sqrt"


def test_functions_are_checked_when_traced_and_replayed():
    f = tf.function(lambda x: tf.math.log(x) * 2.0)
    with tf.debugging.nonfinite("raise"):
        for _ in range(2):
            with pytest.raises(Invalid, match="log produced Inf"):
                f(tf.constant([1.0, 0.0]))
        np.testing.assert_array_equal(f(tf.constant([1.0, 1.0])), [0.0, 0.0])
    np.testing.assert_array_equal(f(tf.constant([1.0, 0.0])), [0.0, -np.inf])
    with tf.debugging.nonfinite("raise"), pytest.raises(Invalid, match="log produced Inf"):
        f(tf.constant([1.0, 0.0]))


def test_gradients_inside_functions_are_checked():
    x = tf.Variable([1.0, 0.0])

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            y = tf.sqrt(x)
        return tape.gradient(y, x)

    step()
    with tf.debugging.nonfinite("raise"), pytest.raises(Invalid) as caught:
        step()
    lines = str(caught.value).splitlines()

    assert lines[1] == "In the backward pass, the gradient of sqrt produced Inf from finite inputs."
    assert lines[2].endswith(": y = tf.sqrt(x)")
    note, rest = "\n".join(lines[3:]).split("  1 of 2 elements are non-finite:\n")
    assert " ".join(note.split()).startswith("This is inside a tf.function called at ")
    assert note.endswith(": step().\n")
    assert rest.startswith(
        "    [1] gradient of sqrt(0): inf\n  Why: The derivative of the square root"
    )


def test_functions_that_run_eagerly_have_their_own_lines():
    x = tf.Variable([1.0, 0.0])

    @tf.function
    def f():
        return tf.math.log(x)

    tf.config.run_functions_eagerly(True)
    try:
        with tf.debugging.nonfinite("raise"), pytest.raises(Invalid) as caught:
            f()
    finally:
        tf.config.run_functions_eagerly(False)

    assert str(caught.value).splitlines()[2].endswith(": return tf.math.log(x)")
    assert "tf.function" not in str(caught.value)


def test_gradients_of_functions_are_checked():
    x = tf.Variable([1.0, 0.0])
    f = tf.function(tf.sqrt)
    f(x)
    with tf.debugging.nonfinite("raise"):
        with tf.GradientTape() as tape:
            y = f(x)
        with pytest.raises(Invalid, match="the gradient of sqrt produced Inf"):
            tape.gradient(y, x)


def test_a_monitor_inside_a_traced_function_ends_with_its_block():
    @tf.function
    def f(x):
        with tf.debugging.nonfinite("raise"):
            return x * 2.0

    for _ in range(2):
        np.testing.assert_array_equal(f(tf.constant([1.0])), [2.0])
    assert list(thread.recorders) == []


def test_values_that_propagate_are_reported_once(capsys):
    w = tf.Variable([0.0])
    with tf.debugging.nonfinite("explain"):
        for _ in range(2):
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(tf.sqrt(w))
            w.assign_sub(0.1 * tape.gradient(loss, w))

    assert capsys.readouterr().out.count("In the ") == 1
