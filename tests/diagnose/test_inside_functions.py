"""Tests autopsies and `nonfinite` for operations inside a `tf.function`."""

import numpy as np
import pytest

import retrograde as tf
from retrograde.diagnose.nonfinite import causes

Invalid = tf.errors.InvalidArgumentError
JITS = pytest.mark.parametrize("jit", [False, True], ids=["numpy", "xla"])


def used_tape(f, x, calls=2, **options):
    """Calls `f` several times. Returns the tape of the last call and its gradient."""
    x = tf.Variable(x, name="x")
    for _ in range(calls):
        with tf.GradientTape(**options) as tape:
            y = f(x)
        gradient = tape.gradient(y, x)
    return tape, gradient


def roots(x):
    doubled = x * 2.0
    root = tf.sqrt(doubled)
    return tf.reduce_sum(root)


def logs(x):
    log = tf.math.log(x * 2.0)
    return tf.reduce_sum(log)


@JITS
@pytest.mark.parametrize("calls", [1, 3])
@pytest.mark.parametrize("lines", [None, True])
def test_origin_in_the_backward_pass_of_a_function(jit, calls, lines):
    tape, gradient = used_tape(tf.function(roots, jit_compile=jit), [4.0, 0.0], calls, lines=lines)
    report = tape.autopsy()

    assert np.isinf(gradient.numpy()[1])
    assert (report.direction, report.primitive) == ("backward", "sqrt")
    assert report.cause == causes.ROOT_AT_ZERO.name
    assert report.location.text == "root = tf.sqrt(doubled)"
    assert report.elements[0].index == (1,)
    assert (report.elements[0].y, report.elements[0].inputs) == (0.0, (0.0,))
    assert [step.split("  ")[0] for step in report.path] == [
        "gradient of multiply",
        "gradient of function",
        "the gradient with respect to 'x:0'",
    ]
    assert report.path[0].endswith(": x * 2.0")
    where = " called at " if lines else "."
    assert report.note.startswith(f"This is inside a tf.function{where}")


@JITS
def test_origin_in_the_forward_pass_of_a_function(jit):
    tape, _ = used_tape(tf.function(logs, jit_compile=jit), [4.0, 0.0], lines=True)
    report = tape.autopsy()

    assert (report.direction, report.primitive) == ("forward", "log")
    assert report.cause == causes.LOG_OF_ZERO.name
    assert report.location.text == "log = tf.math.log(x * 2.0)"
    assert report.elements[0].inputs == (0.0,)
    assert [step.split("  ")[0] for step in report.path] == ["sum", "function", "the target"]
    assert report.note.endswith(": y = f(x).")


def test_norm_inside_a_function_is_recognized():
    tape, _ = used_tape(tf.function(lambda x: tf.norm(x) * 2.0), [0.0, 0.0])

    assert tape.autopsy().cause == causes.NORM_AT_ZERO.name


def test_one_of_several_outputs_of_a_function_is_traced():
    @tf.function
    def f(x):
        first = tf.math.exp(x)
        second = tf.math.log(x)
        return first, second

    x = tf.Variable([0.0, 1.0])
    for _ in range(2):
        with tf.GradientTape() as tape:
            first, second = f(x)
            loss = tf.reduce_sum(second) + tf.reduce_sum(first)
        tape.gradient(loss, x)

    assert tape.autopsy().location.text == "second = tf.math.log(x)"


def test_custom_gradient_inside_a_function_has_its_own_line():
    @tf.custom_gradient
    def third(x):
        def rule(g):
            return g / (x - x)

        return x / 3.0, rule

    f = tf.function(lambda x: tf.reduce_sum(third(x)))
    tape, _ = used_tape(f, [1.0, 2.0])
    report = tape.autopsy()

    assert report.location.text == "return g / (x - x)"
    assert report.primitive == "divide"


def test_sparse_gradients_inside_a_function():
    f = tf.function(lambda x: tf.reduce_sum(tf.sqrt(tf.gather(x, [1, 1]))))
    tape, gradient = used_tape(f, [4.0, 0.0])
    report = tape.autopsy()

    assert np.isinf(tf.convert_to_tensor(gradient).numpy()[1])
    assert (report.primitive, report.cause) == ("sqrt", causes.ROOT_AT_ZERO.name)


def test_nonfinite_argument_of_a_function_is_an_input():
    data = tf.constant([1.0, np.nan])
    f = tf.function(lambda x, data: tf.reduce_sum(x * data))
    tape, _ = used_tape(lambda x: f(x, data), [1.0, 2.0], lines=True)

    report = tape.autopsy()

    assert (report.direction, report.cause) == ("input", causes.INPUT.name)
    assert [step.split("  ")[0] for step in report.path] == [
        "multiply",
        "sum",
        "function",
        "the target",
    ]


@JITS
def test_nonfinite_names_the_line_inside_a_replayed_function(jit):
    f = tf.function(logs, jit_compile=jit)
    x = tf.constant([1.0, 0.0])
    f(x)
    with tf.debugging.nonfinite("raise"), pytest.raises(Invalid) as caught:
        f(x)
    lines = str(caught.value).splitlines()

    assert lines[1] == "In the forward pass, log produced Inf from finite inputs."
    assert lines[2].endswith(": log = tf.math.log(x * 2.0)")
    note = "\n".join(lines[3:]).split("\n  1 of 2 elements are non-finite:")[0]
    assert note.split("called at")[1].endswith(": f(x).")


def test_nonfinite_names_the_line_inside_a_function_in_the_backward_pass():
    f = tf.function(roots)
    x = tf.Variable([1.0, 0.0])
    f(x)
    with tf.debugging.nonfinite("raise"):
        with tf.GradientTape() as tape:
            y = f(x)
        with pytest.raises(Invalid) as caught:
            tape.gradient(y, x)

    assert str(caught.value).splitlines()[2].endswith(": root = tf.sqrt(doubled)")


def test_tapes_with_lines_store_the_lines_of_replayed_functions():
    f = tf.function(roots)
    x = tf.Variable([1.0, 4.0])
    f(x)
    with tf.debugging.nonfinite("raise"), tf.GradientTape() as tape:
        f(x)

    assert [location.text for location in tape._locations.values()] == [
        "doubled = x * 2.0",
        "root = tf.sqrt(doubled)",
        "return tf.reduce_sum(root)",
    ]


@pytest.mark.parametrize("decorate", [lambda f: f, tf.function], ids=["eager", "function"])
def test_nonfinite_argument_is_traced_to_the_call_that_produced_it(decorate):
    w, noise = tf.Variable([1.0, 20.0]), tf.constant([0.1, 0.2])

    @decorate
    def loss_fn(action, log_probability):
        return tf.reduce_mean(0.1 * log_probability - action)

    for _ in range(3):
        with tf.GradientTape() as tape:
            action = tf.tanh(w)
            # The tape saves neither the minuend nor the summands.
            log_probability = -0.5 * tf.square(noise) - tf.math.log(1.0 - tf.square(action))
            loss = loss_fn(action, tf.reduce_sum(log_probability[None], axis=-1))
        tape.gradient(loss, w)

        report = tape.autopsy()
        assert (report.direction, report.primitive) == ("forward", "log")
        assert [element.index for element in report.elements] == [(1,)]
