"""What `explain` returns, what it looks like, and what `on_none` makes of it."""

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
    """The text, without the folder of this file."""
    return re.sub(r"  \S*test_explain.py:", "  program.py:", str(explanation))


def test_a_connected_source_comes_with_its_way():
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(tf.sin(x * x))
    before = tape.explain(y, x)
    tape.gradient(y, x)

    for explanation in (before, tape.explain(y, x)):
        (finding,) = explanation
        assert explanation.connected
        assert finding.connected
        assert finding.way == ("multiply", "sin", "sum")
        assert str(explanation) == "d y / d x: connected\n  By 3 calls: multiply → sin → sum."


def test_a_source_that_is_the_target_is_connected():
    x = tf.Variable(1.0)
    with tf.GradientTape() as tape:
        tape.watch(x)

    assert str(tape.explain(x, x)) == "d x / d x: connected\n  It is the target itself."


def test_a_long_way_is_shortened():
    x = tf.Variable(1.0)
    with tf.GradientTape() as tape:
        y = x
        for _ in range(20):
            y = tf.sin(y)

    shown = " → ".join(["sin"] * 5 + ["… 10 more …"] + ["sin"] * 5)
    assert tape.explain(y, x)[0].meaning == f"by 20 calls: {shown}"
    assert len(tape.explain(y, x)[0].way) == 20


def test_the_text_names_the_line_the_reason_and_the_cure():
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        y = x * x
    line = tape.explain(y, x)[0].line.line

    assert text_of(tape.explain(y, x)) == textwrap.dedent(
        f"""\
        d y / d x is None: not watched
          program.py:{line}: y = x * x
          `x` is a plain tensor, and nobody watched it: by itself a tape follows only trainable
          variables.
          Instead: call `tape.watch(x)` at the start of the block, or make it a tf.Variable."""
    )
    assert repr(tape.explain(y, x)) == str(tape.explain(y, x))


def test_what_is_the_same_for_several_sources_is_said_once_and_what_is_missing_first():
    used, a, b = (tf.Variable(x, name=name) for x, name in ((1.0, "used"), (2.0, "a"), (3.0, "b")))
    c = tf.constant(4.0)
    with tf.GradientTape() as tape:
        y = used * tf.stop_gradient(c)
    answer = tape.explain(y, [used, a, b, c])

    assert [finding.connected for finding in answer] == [True, False, False, False]
    paragraphs = str(answer).split("\n\n")
    assert paragraphs[0].startswith("d y / d a is None: independent")
    assert paragraphs[0].endswith("The same for b.")
    assert paragraphs[1].startswith("d y / d c is None: stop_gradient")
    assert paragraphs[2:] == ["Connected: used."]


def test_obstacles_behind_the_first_are_told_too():
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        h = tf.round(x)
        y = tf.stop_gradient(h) * 2.0
    (finding,) = tape.explain(y, x)

    assert finding.cause == causes.NO_SLOPE
    assert [another.cause for another in finding.further] == [causes.STOP_GRADIENT]
    assert f"Then also, stop_gradient ({finding.further[0].line}): tf.stop_gradient lets the" in (
        str(finding)
    )


def test_the_way_with_the_fewest_obstacles_is_told_of():
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = tf.stop_gradient(tf.round(x)) + tf.floor(x)

    assert "`floor`" in tape.explain(y, x)[0].meaning


def test_an_open_way_beside_a_closed_one_is_connected():
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = tf.stop_gradient(x) + x * float(x)

    assert tape.explain(y, x).connected


def test_notebooks_get_a_table():
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


def test_names_are_those_of_the_program():
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


def test_with_lines_each_call_has_its_own():
    x = tf.Variable(3.0)
    unused = tf.Variable(3.0)

    def loss():
        return tf.reduce_sum(x * x)

    with tf.GradientTape(lines=True) as tape:
        results = [loss()]

    assert tape.explain(results[0], unused)[0].line.text == "return tf.reduce_sum(x * x)"


def test_inside_a_function_the_line_is_found_when_it_runs_eagerly():
    @tf.function
    def rounded(x):
        return tf.round(x)

    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = rounded(x)
    assert "tf.config.run_functions_eagerly(True)" in tape.explain(y, x)[0].cure

    tf.config.run_functions_eagerly(True)
    try:
        with tf.GradientTape() as tape:
            y = rounded(x)
    finally:
        tf.config.run_functions_eagerly(False)
    assert tape.explain(y, x)[0].line.text == "return tf.round(x)"


def test_threads_of_others_are_not_blamed():
    computed, done = threading.Event(), threading.Event()

    def compute():  # as XLA does, in threads that Python did not start
        tf.sqrt(tf.constant(2.0))
        computed.set()
        done.wait()

    x, rounded = tf.Variable(2.0), tf.function(tf.round)
    with tf.GradientTape() as tape:
        _thread.start_new_thread(compute, ())
        computed.wait()
        y = rounded(x)
    try:
        assert tape.explain(y, x)[0].cause != causes.ANOTHER_THREAD
    finally:
        done.set()


def test_a_tape_that_still_records_can_be_asked():
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        y = x * x

        assert tape.explain(y, x)[0].cause == causes.NOT_WATCHED


def test_a_tape_that_never_began_heard_nothing():
    x = tf.Variable(3.0)
    y = x * x

    assert tf.GradientTape().explain(y, x)[0].cause == causes.BEFORE_THE_BLOCK


def test_a_persistent_tape_can_be_asked_for_several_targets():
    x = tf.Variable(3.0)
    with tf.GradientTape(persistent=True) as tape:
        y = x * x
        z = tf.round(x)

    assert tape.gradient(z, x) is None
    assert tape.explain(y, x).connected
    assert not tape.explain(z, x).connected


def test_several_outputs_of_a_call_are_told_apart_after_the_walk():
    x = tf.Variable([[2.0, 0.0], [0.0, 3.0]])
    with tf.GradientTape() as tape:
        q, r = tf.linalg.qr(x)
        first, second = tf.unstack(x * 2.0)
        y = tf.reduce_sum(q) + tf.reduce_sum(second)
    tape.gradient(y, x)

    assert tape.explain(y, x)[0].connected
    assert tape.explain(r, x)[0].way == ("qr",)
    assert tape.explain(first, x)[0].way == ("multiply", "unstack")


def test_what_was_asked_of_jacobians_is_explained_too():
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape(on_none="raise") as tape:
        y = x * x

    with pytest.raises(NoGradientError, match="not watched"):
        tape.jacobian(y, x)


def test_a_custom_gradient_is_run_once_to_find_out_and_the_tape_stays_whole():
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

    assert tape.explain(y, x)[0].way == ("f",)
    assert calls == [1]
    assert tape.gradient(y, x).numpy() == 2.0


def test_what_a_spent_tape_keeps_holds_no_arrays():
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
    assert tape.explain(y, x)[0].way == ("multiply", "multiply", "sum")


def test_notes_are_bounded(monkeypatch):
    monkeypatch.setattr("retrograde.diagnose.tape_notes.LIMIT", 10)
    x = tf.constant(1.0)
    with tf.GradientTape() as tape:
        for _ in range(30):
            y = x + 1.0

    assert len(tape._notes.unrecorded) == 10
    assert tape.explain(y, x)[0].cause == causes.NOT_WATCHED


# on_none


def test_by_default_none_stays_silent():
    x, y = tf.Variable(1.0), tf.Variable(2.0)
    with tf.GradientTape() as tape:
        z = x * 2.0

    assert tape.gradient(z, y) is None  # warnings are errors here


def test_on_none_explain_warns_and_returns_none():
    x, y = tf.Variable(1.0), tf.Variable(2.0)
    with tf.GradientTape(on_none="explain") as tape:
        z = x * 2.0

    with pytest.warns(
        UserWarning, match=r"(?s)There is no gradient\..*d z / d y is None"
    ) as record:
        gradients = tape.gradient(z, [x, y])
    assert gradients[0].numpy() == 2.0
    assert gradients[1] is None
    assert record[0].filename == __file__
    assert "d z / d x" not in str(record[0].message)


def test_on_none_raise_raises_with_the_reasons():
    x, y = tf.Variable(1.0), tf.Variable(2.0)
    with tf.GradientTape(on_none="raise") as tape:
        z = x * tf.stop_gradient(y)

    with pytest.raises(
        NoGradientError, match=r"(?s)There is no gradient\..*stop_gradient"
    ) as error:
        tape.gradient(z, [x, y])
    assert isinstance(error.value, ValueError)
    assert [f.cause for f in error.value.explanation] == [causes.STOP_GRADIENT]


def test_on_none_zeros_gives_zeros():
    x, y = tf.Variable(1.0), tf.Variable([2.0, 3.0])
    with tf.GradientTape(persistent=True, on_none="zeros") as tape:
        z = x * 2.0

    np.testing.assert_array_equal(tape.gradient(z, y), [0.0, 0.0])
    np.testing.assert_array_equal(tape.jacobian(z, y), [0.0, 0.0])


def test_zeros_that_were_asked_for_need_no_reasons():
    x, y = tf.Variable(1.0), tf.Variable(2.0)
    with tf.GradientTape(on_none="raise") as tape:
        z = x * 2.0

    assert tape.gradient(z, y, unconnected_gradients="zero").numpy() == 0.0


def test_on_none_takes_no_other_words():
    with pytest.raises(ValueError) as error:
        tf.GradientTape(on_none="shout")

    assert str(error.value) == (
        "Unknown value for on_none: 'shout'. Expected 'explain', 'raise', 'zeros' or None."
    )
