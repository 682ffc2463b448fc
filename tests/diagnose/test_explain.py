"""Tests the result and the text of `explain`, and the option `on_none`."""

import _thread
import gc
import re
import textwrap
import threading
import weakref

import numpy as np
import pytest

import retrograde as tf
from retrograde.diagnose.missing_gradients import causes
from retrograde.diagnose.missing_gradients.explain import NoGradientError


def text_of(explanation):
    """Returns the text without the directory of this file."""
    return re.sub(r"  \S*test_explain.py:", "  program.py:", str(explanation))


def test_a_connected_source_has_its_path():
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(tf.sin(x * x))
    before = tape.explain(y, x)
    tape.gradient(y, x)

    for explanation in (before, tape.explain(y, x)):
        (finding,) = explanation
        assert explanation.connected
        assert finding.connected
        assert finding.path == ("multiply", "sin", "sum")
        assert str(explanation) == "d y / d x: connected\n  Through 3 calls: multiply → sin → sum."


def test_a_source_that_is_the_target_is_connected():
    x = tf.Variable(1.0)
    with tf.GradientTape() as tape:
        tape.watch(x)

    assert str(tape.explain(x, x)) == "d x / d x: connected\n  It is the target itself."


def test_a_long_path_is_shortened():
    x = tf.Variable(1.0)
    with tf.GradientTape() as tape:
        y = x
        for _ in range(20):
            y = tf.sin(y)

    shown = " → ".join(["sin"] * 5 + ["… 10 more …"] + ["sin"] * 5)
    assert tape.explain(y, x)[0].message == f"through 20 calls: {shown}"
    assert len(tape.explain(y, x)[0].path) == 20


def test_text_has_the_line_the_message_and_the_fix():
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        y = x * x
    line = tape.explain(y, x)[0].line.line

    assert text_of(tape.explain(y, x)) == textwrap.dedent(
        f"""\
        d y / d x is None: not watched
          program.py:{line}: y = x * x
          `x` is a plain tensor that was not watched: tapes watch only trainable variables
          automatically.
          Fix: call `tape.watch(x)` at the start of the block, or make it a tf.Variable."""
    )
    assert repr(tape.explain(y, x)) == str(tape.explain(y, x))


def test_missing_gradients_come_first_and_equal_findings_appear_once():
    used, a, b = (tf.Variable(x, name=name) for x, name in ((1.0, "used"), (2.0, "a"), (3.0, "b")))
    c = tf.constant(4.0)
    with tf.GradientTape() as tape:
        y = used * tf.stop_gradient(c)
    explanation = tape.explain(y, [used, a, b, c])

    assert [finding.connected for finding in explanation] == [True, False, False, False]
    paragraphs = str(explanation).split("\n\n")
    assert paragraphs[0].startswith("d y / d a is None: independent")
    assert paragraphs[0].endswith("The same applies to b.")
    assert paragraphs[1].startswith("d y / d c is None: stop_gradient")
    assert paragraphs[2:] == ["Connected: used."]


def test_additional_obstacles_are_listed():
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        h = tf.round(x)
        y = tf.stop_gradient(h) * 2.0
    (finding,) = tape.explain(y, x)

    assert finding.cause == causes.NON_DIFFERENTIABLE
    (other,) = finding.additional
    assert other.cause == causes.STOP_GRADIENT
    assert f"Also: stop_gradient ({other.line}): tf.stop_gradient passes the" in str(finding)


def test_the_path_with_the_fewest_obstacles_is_reported():
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = tf.stop_gradient(tf.round(x)) + tf.floor(x)

    assert "`floor`" in tape.explain(y, x)[0].message


def test_one_differentiable_path_of_several_is_enough():
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = tf.stop_gradient(x) + x * float(x)

    assert tape.explain(y, x).connected


def test_html_is_a_table():
    x, v = tf.constant(3.0), tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = x * v if v < 5.0 else x
    table = tape.explain(y, [x, v])._repr_html_()

    assert table.count("<tr") == 3
    assert "<code>x</code>" in table
    assert "None: not watched" in table
    assert "y = x * v if v &lt; 5.0 else x" in table
    assert "<code>tape.watch(x)</code>" in table
    assert tape.explain(y, x)[0]._repr_html_().count("<tr") == 2


def test_structures_of_sources_are_flattened_in_order():
    a, b = tf.Variable(1.0), tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = a * 2.0
    explanation = tape.explain({"loss": y}, {"b": b, "a": [a]})

    assert [f.source for f in explanation] == ["a", "b"]
    assert [f.connected for f in explanation] == [True, False]
    assert len(explanation[:1]) == 1
    assert not explanation.connected


def test_sources_have_their_names_in_the_program():
    class Net(tf.Module):
        def __init__(self):
            self.w = tf.Variable(1.0)

    net, weights = Net(), [tf.Variable(1.0), tf.Variable(1.0)]
    named, unnamed = {"v": tf.Variable(1.0)}, lambda: tf.Variable(1.0, name="bias")
    with tf.GradientTape() as tape:
        y = tf.constant(1.0)
    sources = [net.w, weights[1], named["v"], unnamed(), tf.Variable(1.0)]
    explanation = tape.explain([y], list(sources))
    names = [finding.source for finding in explanation]

    assert names[:3] == ["net.w", "weights[1]", "named['v']"]
    del sources
    assert [f.source for f in tape.explain([y], [unnamed(), tf.Variable(1.0)])] == [
        "bias",
        "sources[1]",
    ]


def test_lines_option_locates_each_call():
    x = tf.Variable(3.0)
    unused = tf.Variable(3.0)

    def loss():
        return tf.reduce_sum(x * x)

    with tf.GradientTape(lines=True) as tape:
        results = [loss()]

    assert tape.explain(results[0], unused)[0].line.text == "return tf.reduce_sum(x * x)"


def test_line_inside_a_function_is_found_if_it_runs_eagerly():
    @tf.function
    def round_values(x):
        return tf.round(x)

    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = round_values(x)
    assert "tf.config.run_functions_eagerly(True)" in tape.explain(y, x)[0].fix

    tf.config.run_functions_eagerly(True)
    try:
        with tf.GradientTape() as tape:
            y = round_values(x)
    finally:
        tf.config.run_functions_eagerly(False)
    assert tape.explain(y, x)[0].line.text == "return tf.round(x)"


def test_threads_that_python_did_not_start_are_ignored():
    computed, done = threading.Event(), threading.Event()

    def compute():  # as XLA does, in threads that Python did not start
        tf.sqrt(tf.constant(2.0))
        computed.set()
        done.wait()

    x, round_values = tf.Variable(2.0), tf.function(tf.round)
    with tf.GradientTape() as tape:
        _thread.start_new_thread(compute, ())
        computed.wait()
        y = round_values(x)
    try:
        assert tape.explain(y, x)[0].cause != causes.ANOTHER_THREAD
    finally:
        done.set()


def test_explain_works_while_the_tape_records():
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        y = x * x

        assert tape.explain(y, x)[0].cause == causes.NOT_WATCHED


def test_explain_works_on_a_tape_that_was_never_entered():
    x = tf.Variable(3.0)
    y = x * x

    assert tf.GradientTape().explain(y, x)[0].cause == causes.BEFORE_THE_BLOCK


def test_explain_works_for_several_targets_of_a_persistent_tape():
    x = tf.Variable(3.0)
    with tf.GradientTape(persistent=True) as tape:
        y = x * x
        z = tf.round(x)

    assert tape.gradient(z, x) is None
    assert tape.explain(y, x).connected
    assert not tape.explain(z, x).connected


def test_outputs_of_a_call_are_distinguished_after_the_backward_pass():
    x = tf.Variable([[2.0, 0.0], [0.0, 3.0]])
    with tf.GradientTape() as tape:
        q, r = tf.linalg.qr(x)
        first, second = tf.unstack(x * 2.0)
        y = tf.reduce_sum(q) + tf.reduce_sum(second)
    tape.gradient(y, x)

    assert tape.explain(y, x)[0].connected
    assert tape.explain(r, x)[0].path == ("qr",)
    assert tape.explain(first, x)[0].path == ("multiply", "unstack")


def test_missing_jacobians_are_explained():
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape(on_none="raise") as tape:
        y = x * x

    with pytest.raises(NoGradientError, match="not watched"):
        tape.jacobian(y, x)


def test_explain_runs_a_custom_gradient_once_and_keeps_the_tape_usable():
    calls = []

    @tf.custom_gradient
    def f(x):
        def grad(upstream):
            calls.append(1)
            return upstream * 2.0

        return x * 2.0, grad

    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = f(x)

    assert tape.explain(y, x)[0].path == ("f",)
    assert calls == [1]
    assert tape.gradient(y, x).numpy() == 2.0


def test_a_used_tape_holds_no_arrays():
    x = tf.Variable(np.ones(1000))
    with tf.GradientTape() as tape:
        h = x * 2.0
        array = weakref.ref(h._array)
        y = tf.reduce_sum(h * h)
        tf.argmax(h)
    gc.disable()
    try:
        tape.gradient(y, x)
        del h
        assert array() is None
    finally:
        gc.enable()
    assert tape.explain(y, x)[0].path == ("multiply", "multiply", "sum")


def test_notes_are_bounded(monkeypatch):
    monkeypatch.setattr("retrograde.diagnose.tape_notes.LIMIT", 10)
    x = tf.constant(1.0)
    with tf.GradientTape() as tape:
        for _ in range(30):
            y = x + 1.0

    assert len(tape._notes.unrecorded) == 10
    assert tape.explain(y, x)[0].cause == causes.NOT_WATCHED


# on_none


def test_none_does_not_warn_by_default():
    x, y = tf.Variable(1.0), tf.Variable(2.0)
    with tf.GradientTape() as tape:
        z = x * 2.0

    assert tape.gradient(z, y) is None  # warnings are errors here


def test_on_none_explain_warns_and_returns_none():
    x, y = tf.Variable(1.0), tf.Variable(2.0)
    with tf.GradientTape(on_none="explain") as tape:
        z = x * 2.0

    with pytest.warns(
        UserWarning, match=r"(?s)The gradient is None\..*d z / d y is None"
    ) as record:
        gradients = tape.gradient(z, [x, y])
    assert gradients[0].numpy() == 2.0
    assert gradients[1] is None
    assert record[0].filename == __file__
    assert "d z / d x" not in str(record[0].message)


def test_on_none_raise_raises_with_the_causes():
    x, y = tf.Variable(1.0), tf.Variable(2.0)
    with tf.GradientTape(on_none="raise") as tape:
        z = x * tf.stop_gradient(y)

    with pytest.raises(
        NoGradientError, match=r"(?s)The gradient is None\..*stop_gradient"
    ) as error:
        tape.gradient(z, [x, y])
    assert isinstance(error.value, ValueError)
    assert [f.cause for f in error.value.explanation] == [causes.STOP_GRADIENT]


def test_on_none_zeros_returns_zeros():
    x, y = tf.Variable(1.0), tf.Variable([2.0, 3.0])
    with tf.GradientTape(persistent=True, on_none="zeros") as tape:
        z = x * 2.0

    np.testing.assert_array_equal(tape.gradient(z, y), [0.0, 0.0])
    np.testing.assert_array_equal(tape.jacobian(z, y), [0.0, 0.0])


def test_unconnected_gradients_zero_overrides_on_none():
    x, y = tf.Variable(1.0), tf.Variable(2.0)
    with tf.GradientTape(on_none="raise") as tape:
        z = x * 2.0

    assert tape.gradient(z, y, unconnected_gradients="zero").numpy() == 0.0


def test_on_none_rejects_other_values():
    with pytest.raises(ValueError) as error:
        tf.GradientTape(on_none="shout")

    assert str(error.value) == (
        "Unknown value for on_none: 'shout'. Expected 'explain', 'raise', 'zeros' or None."
    )
