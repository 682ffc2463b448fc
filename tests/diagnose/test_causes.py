"""Tests each cause of a `None` gradient with a program.

Each program returns the result of `check_finding`, which calls `explain` before and after
`gradient`. The expected line is marked with `# here`.
"""

import sys
import threading

import numpy as np
import pytest

import retrograde as tf
from retrograde.diagnose.missing_gradients import causes, explain
from retrograde.values import nest

PROGRAMS = []


def program(cause):
    """Registers a function as a program whose gradient is `None` because of `cause`."""

    def register(function):
        PROGRAMS.append(pytest.param(cause, function, id=function.__name__))
        return function

    return register


def check_finding(tape, target, sources):
    """Returns the finding, and checks that it is the same before and after `gradient`."""
    frame = sys._getframe(1)
    before = explain.explanation_for(tape, target, sources, frame)
    assert nest.flatten(tape.gradient(target, sources)) == [None] * len(before)
    after = explain.explanation_for(tape, target, sources, frame)

    assert list(before) == list(after)
    return after[0]


@program(causes.NOT_WATCHED)
def a_plain_tensor():
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        y = x * x  # here
    return check_finding(tape, y, x)


@program(causes.WATCHED_LATE)
def watched_after_it_was_used():
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        y = x * x
        tape.watch(x)  # here
        z = y + 1.0
    return check_finding(tape, z, x)


@program(causes.NOT_WATCHED)
def a_plain_tensor_used_with_a_variable():
    x, w = tf.constant(3.0), tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = x * w  # here
    return check_finding(tape, y, x)


@program(causes.WATCHED_LATE)
def watched_after_use_with_a_variable():
    x, w = tf.constant(3.0), tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = x * w
        tape.watch(x)  # here
    return check_finding(tape, y, x)


@program(causes.BEFORE_THE_BLOCK)
def target_computed_before():
    x = tf.Variable(3.0)
    y = x * x  # here
    with tf.GradientTape() as tape:
        tf.exp(x)
    return check_finding(tape, y, x)


@program(causes.BEFORE_THE_BLOCK)
def an_input_of_the_target_computed_before():
    x = tf.Variable(3.0)
    square = x * x  # here
    with tf.GradientTape() as tape:
        y = tf.exp(square)
    return check_finding(tape, y, x)


@program(causes.AFTER_THE_BLOCK)
def target_computed_after():
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        h = x * x
    y = tf.exp(h)  # here
    return check_finding(tape, y, x)


@program(causes.STOP_RECORDING)
def target_computed_while_recording_is_stopped():
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        h = x * x
        with tape.stop_recording():  # here
            y = tf.exp(h)
    return check_finding(tape, y, x)


@program(causes.STOP_RECORDING)
def an_input_of_the_target_computed_while_recording_is_stopped():
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        with tape.stop_recording():  # here
            h = x * x
        y = tf.exp(h)
    return check_finding(tape, y, x)


@program(causes.RESET)
def target_computed_before_a_reset():
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = x * x
        tape.reset()  # here
    return check_finding(tape, y, x)


@program(causes.AFTER_THE_BLOCK)
def target_computed_between_two_blocks():
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        h = x * x
    y = tf.exp(h)  # here
    with tape:
        tf.exp(x)
    return check_finding(tape, y, x)


@program(causes.INDEPENDENT)
def a_source_that_is_not_used():
    x, unused = tf.Variable(3.0), tf.Variable(1.0)
    with tf.GradientTape() as tape:
        y = x * x  # here
    return check_finding(tape, y, unused)


@program(causes.INDEPENDENT)
def a_source_used_only_for_another_value():
    x, other = tf.Variable(3.0), tf.Variable(1.0)
    with tf.GradientTape() as tape:
        tf.exp(other)
        y = x * x  # here
    return check_finding(tape, y, other)


@program(causes.INDEPENDENT)
def a_bias_of_a_differentiated_function():
    x, y = [tf.constant([float(_)]) for _ in range(2)]
    w, bias = tf.Variable(3.0), tf.Variable(1.0)
    _ = bias * x  # not the name in the comprehension above
    with tf.GradientTape() as tape:
        with tf.GradientTape() as inner:
            inner.watch(x)
            u = tf.sin(w * x) + bias
        derivative = inner.gradient(u, x)
        loss = tf.reduce_sum(derivative**2 + y)  # here
    finding = check_finding(tape, loss, bias)
    assert finding.message.endswith("such as a bias, drops out of derivatives")
    return finding


@program(causes.INDEPENDENT)
def a_variable_as_the_target():
    x, v = tf.Variable(3.0), tf.Variable(1.0)  # here
    with tf.GradientTape() as tape:
        x * v
    return check_finding(tape, v, x)


@program(causes.CONVERTED)
def converted_by_numpy():
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        h = x * x
        array = h.numpy()  # here
        y = tf.reduce_sum(tf.constant(array) * 2.0)
    return check_finding(tape, y, x)


@program(causes.CONVERTED)
def converted_by_tolist():
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        values = (x * x).numpy().tolist()  # here
        y = tf.reduce_sum(tf.constant(values))
    return check_finding(tape, y, x)


@program(causes.CONVERTED)
def converted_by_float():
    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = tf.constant(float(x * x))  # here
    return check_finding(tape, y, x)


@program(causes.CONVERTED)
def converted_by_int():
    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        n = int(x * x)  # here
        y = tf.ones([n]) * 2.0
    return check_finding(tape, y, x)


@program(causes.CONVERTED)
def converted_by_bool():
    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = tf.constant(1.0) if x > 0.0 else tf.constant(-1.0)  # here
    return check_finding(tape, y, x)


@program(causes.CONVERTED)
def converted_by_a_numpy_call():
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(np.sin(x))  # here
    return check_finding(tape, y, x)


@program(causes.CONVERTED)
def converted_by_numpy_function():
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        y = tf.numpy_function(np.sort, [x * 2.0], tf.float32)  # here
    return check_finding(tape, y, x)


@program(causes.COPIED)
def copied_into_a_new_variable():
    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        v = tf.Variable(x * x)  # here
        y = v * 3.0
    return check_finding(tape, y, x)


@program(causes.INTEGER_SOURCE)
def an_integer_source():
    x = tf.Variable(3)  # here
    with tf.GradientTape() as tape:
        y = tf.cast(x, tf.float32) * 2.0
    return check_finding(tape, y, x)


@program(causes.INTEGER_SOURCE)
def a_boolean_source():
    x = tf.constant(True)  # here
    with tf.GradientTape() as tape:
        y = tf.where(x, 1.0, 2.0)
    return check_finding(tape, y, x)


@program(causes.INTEGER_CAST)
def cast_to_integers_and_back():
    x = tf.Variable(3.7)
    with tf.GradientTape() as tape:
        count = tf.cast(x, tf.int32)  # here
        y = tf.cast(count + 1, tf.float32) * x.shape.rank
        y = y + 1.0
    return check_finding(tape, y, x)


def non_differentiable(function):
    def build():
        x = tf.Variable([1.5, 2.5])
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(tf.cast(function(x), tf.float32))  # here
        return check_finding(tape, y, x)

    return build


for name, function in {
    "argmax": tf.argmax,
    "argsort": tf.argsort,
    "round": tf.round,
    "floor": tf.floor,
    "ceil": tf.math.ceil,
    "comparison": lambda x: x > 2.0,  # here
    "equal": lambda x: tf.equal(x, 2.0),  # here
    "is_finite": tf.math.is_finite,
    "top_k": lambda x: tf.math.top_k(x, 1).indices,  # here
    "zeros_like": tf.zeros_like,
}.items():
    PROGRAMS.append(pytest.param(causes.NON_DIFFERENTIABLE, non_differentiable(function), id=name))


@program(causes.INTEGER_CAST)
def one_hot_of_a_cast_value():
    x = tf.Variable([1.5, 2.5])
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(tf.one_hot(tf.cast(x, tf.int32), 3))  # here
    return check_finding(tape, y, x)


@program(causes.NON_DIFFERENTIABLE)
def an_integer_target():
    x = tf.Variable([1.5, 2.5])
    with tf.GradientTape() as tape:
        y = tf.argmax(x)  # here
    return check_finding(tape, y, x)


@program(causes.INTEGER_TARGET)
def an_integer_target_without_float_inputs():
    n, x = tf.constant([1, 2]), tf.Variable(1.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.gather(n, 0)  # here
    return check_finding(tape, y, x)


@program(causes.STOP_GRADIENT)
def stop_gradient():
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = tf.stop_gradient(x * x) * 2.0  # here
    return check_finding(tape, y, x)


@program(causes.NO_GRADIENT)
def an_argument_without_a_gradient():
    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = tf.math.polygamma(x, 3.0)  # here
    return check_finding(tape, y, x)


@program(causes.NO_GRADIENT)
def a_function_that_passes_no_gradient():
    @tf.function
    def round_values(x):
        return tf.round(x)

    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = round_values(x) + 1.0  # here
    return check_finding(tape, y, x)


@program(causes.REBOUND)
def a_name_rebound_between_steps():
    w = tf.Variable(3.0)
    for _ in range(2):
        with tf.GradientTape() as tape:
            loss = w * w
        if isinstance(w, tf.Tensor):
            return check_finding(tape, loss, w)
        w = w - 0.1 * tape.gradient(loss, w)  # here
    return None


@program(causes.REBOUND)
def a_name_rebound_before_the_gradient():
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = x * x
    x = x + 1.0  # here
    return check_finding(tape, y, x)


@program(causes.CREATED_AFTER_TARGET)
def a_source_created_after_the_target():
    v = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = v * v
    x = tf.identity(v)  # here
    return check_finding(tape, y, x)


@program(causes.ASSIGN)
def assigned_to_a_variable():
    x, state = tf.Variable(3.0), tf.Variable(0.0)
    with tf.GradientTape() as tape:
        state.assign(x * x)  # here
        y = state * 2.0
    return check_finding(tape, y, x)


@program(causes.ASSIGN)
def added_to_a_variable():
    x, total = tf.Variable(3.0), tf.Variable(0.0)
    with tf.GradientTape() as tape:
        for _ in range(3):
            total.assign_add(x)  # here
        y = total * 2.0
    return check_finding(tape, y, x)


@program(causes.NOT_TRAINABLE)
def a_non_trainable_variable():
    v = tf.Variable(3.0, trainable=False)  # here
    with tf.GradientTape() as tape:
        y = v * v
    return check_finding(tape, y, v)


@program(causes.VARIABLES_NOT_WATCHED)
def a_tape_that_does_not_watch_variables():
    v = tf.Variable(3.0)
    with tf.GradientTape(watch_accessed_variables=False) as tape:  # here
        y = v * v
    return check_finding(tape, y, v)


@program(causes.RECREATED)
def a_variable_created_in_every_call():
    def layer(x):
        weight = tf.Variable([2.0, 2.0])  # here
        return x * weight, weight

    x = tf.constant([1.0, 2.0])
    _, weight = layer(x)
    with tf.GradientTape() as tape:
        y, _ = layer(x)
    return check_finding(tape, y, weight)


@program(causes.INNER_GRADIENT)
def an_inner_gradient_outside_the_outer_tape():
    x = tf.Variable(3.0)
    with tf.GradientTape() as outer, tf.GradientTape() as inner:
        y = x * x * x
    first = inner.gradient(y, x)  # here
    return check_finding(outer, first, x)


@program(causes.CONSTANT_DERIVATIVE)
def a_second_derivative_of_a_linear_function():
    x = tf.Variable(3.0)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = 3.0 * x
        first = inner.gradient(y, x)  # here
    return check_finding(outer, first, x)


@program(causes.CUSTOM_GRADIENT)
def a_custom_gradient_that_is_none():
    @tf.custom_gradient
    def scale(x, factor):
        return x * factor, lambda upstream: (upstream * factor, None)

    x, factor = tf.Variable(3.0), tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = scale(x, factor)  # here
    return check_finding(tape, y, factor)


@program(causes.ANOTHER_THREAD)
def an_input_of_the_target_from_another_thread():
    x, results = tf.Variable(3.0), []
    with tf.GradientTape() as tape:
        worker = threading.Thread(target=lambda: results.append(x * x), name="worker")
        worker.start()
        worker.join()
        y = results[0] + 1.0  # here
    return check_finding(tape, y, x)


@program(causes.ANOTHER_THREAD)
def a_source_from_another_thread():
    x, results = tf.Variable(3.0), []
    with tf.GradientTape() as tape:
        worker = threading.Thread(target=lambda: results.append(x * x), name="worker")
        worker.start()
        worker.join()
        h = results[0]
        y = h * 2.0  # here
    return check_finding(tape, y, h)


@program(causes.COMPUTED_SEPARATELY)
def features_computed_twice():
    kernel = tf.Variable([[1.0, 2.0], [3.0, 4.0]], name="kernel")
    x = tf.constant([[1.0, 2.0]])

    def features(x):
        return tf.nn.relu(x @ kernel)

    with tf.GradientTape() as tape:
        conv = features(x)  # here
        score = tf.reduce_sum(features(x))
    return check_finding(tape, score, conv)


@pytest.mark.parametrize(("cause", "function"), PROGRAMS)
def test_cause_and_line_are_found(cause, function):
    finding = function()

    assert (finding.cause, finding.connected) == (cause, False)
    assert finding.filename == __file__
    assert finding.line.text.endswith("# here"), finding.line


# Sources and targets that `gradient` rejects


class Symbolic:
    """Looks like a Keras tensor."""

    _keras_history = None


class Layer:
    trainable_variables = ()


@pytest.mark.parametrize(
    ("cause", "source"),
    [
        (causes.SYMBOLIC, Symbolic()),
        (causes.MODEL, Layer()),
        (causes.MODEL, tf.Module()),
        (causes.NOT_A_TENSOR, 3.0),
        (causes.NOT_A_TENSOR, np.ones(3)),
        (causes.NOT_A_TENSOR, None),
    ],
    ids=["symbolic", "layer", "module", "number", "array", "none"],
)
def test_sources_that_are_not_tensors_are_explained(cause, source):
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = x * x
    (finding,) = tape.explain(y, [source])  # here

    assert finding.cause == cause
    assert finding.line.text.endswith("# here")


def test_a_target_that_is_a_python_number_is_explained():
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        loss = float(x * x)  # here
    (finding,) = tape.explain(loss, x)

    assert finding.cause == causes.TARGET_NOT_A_TENSOR
    assert finding.line.text.endswith("# here")


def test_every_cause_has_a_program():
    tested = {param.values[0] for param in PROGRAMS}
    tested_above = {
        causes.CONNECTED,
        causes.SYMBOLIC,
        causes.MODEL,
        causes.NOT_A_TENSOR,
        causes.TARGET_NOT_A_TENSOR,
    }

    assert tested | tested_above == set(causes.ALL)
