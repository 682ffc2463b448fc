"""Each cause for a gradient that is None: a program that has it, the cause found, and the line.

A program ends with what `asked` says, which asks the tape before and after the gradient is taken.
The line to be found is the one marked with `# here`.
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
    """Marks a function as a program whose gradient is None for `cause`."""

    def mark(function):
        PROGRAMS.append(pytest.param(cause, function, id=function.__name__))
        return function

    return mark


def asked(tape, target, sources):
    """What the tape tells after the gradient is taken, which is None; and before, the same."""
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
    return asked(tape, y, x)


@program(causes.WATCHED_LATE)
def watched_after_it_was_used():
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        y = x * x
        tape.watch(x)  # here
        z = y + 1.0
    return asked(tape, z, x)


@program(causes.NOT_WATCHED)
def a_plain_tensor_beside_a_variable():
    x, w = tf.constant(3.0), tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = x * w  # here
    return asked(tape, y, x)


@program(causes.WATCHED_LATE)
def watched_after_it_met_a_variable():
    x, w = tf.constant(3.0), tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = x * w
        tape.watch(x)  # here
    return asked(tape, y, x)


@program(causes.BEFORE_THE_BLOCK)
def target_computed_before():
    x = tf.Variable(3.0)
    y = x * x  # here
    with tf.GradientTape() as tape:
        tf.exp(x)
    return asked(tape, y, x)


@program(causes.BEFORE_THE_BLOCK)
def a_part_computed_before():
    x = tf.Variable(3.0)
    square = x * x  # here
    with tf.GradientTape() as tape:
        y = tf.exp(square)
    return asked(tape, y, x)


@program(causes.AFTER_THE_BLOCK)
def target_computed_after():
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        h = x * x
    y = tf.exp(h)  # here
    return asked(tape, y, x)


@program(causes.STOP_RECORDING)
def target_computed_while_stopped():
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        h = x * x
        with tape.stop_recording():  # here
            y = tf.exp(h)
    return asked(tape, y, x)


@program(causes.STOP_RECORDING)
def a_part_computed_while_stopped():
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        with tape.stop_recording():  # here
            h = x * x
        y = tf.exp(h)
    return asked(tape, y, x)


@program(causes.RESET)
def target_computed_before_a_reset():
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = x * x
        tape.reset()  # here
    return asked(tape, y, x)


@program(causes.AFTER_THE_BLOCK)
def target_computed_between_two_blocks():
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        h = x * x
    y = tf.exp(h)  # here
    with tape:
        tf.exp(x)
    return asked(tape, y, x)


@program(causes.INDEPENDENT)
def a_source_that_is_not_used():
    x, unused = tf.Variable(3.0), tf.Variable(1.0)
    with tf.GradientTape() as tape:
        y = x * x  # here
    return asked(tape, y, unused)


@program(causes.INDEPENDENT)
def a_source_that_is_used_for_something_else():
    x, other = tf.Variable(3.0), tf.Variable(1.0)
    with tf.GradientTape() as tape:
        tf.exp(other)
        y = x * x  # here
    return asked(tape, y, other)


@program(causes.INDEPENDENT)
def a_bias_of_what_enters_by_its_derivative_alone():
    x, y = [tf.constant([float(_)]) for _ in range(2)]
    w, bias = tf.Variable(3.0), tf.Variable(1.0)
    _ = bias * x  # another name than that in the list above
    with tf.GradientTape() as tape:
        with tf.GradientTape() as inner:
            inner.watch(x)
            u = tf.sin(w * x) + bias
        slope = inner.gradient(u, x)
        loss = tf.reduce_sum(slope**2 + y)  # here
    found = asked(tape, loss, bias)
    assert found.meaning.endswith("What is only added, as a bias is, drops out of derivatives")
    return found


@program(causes.INDEPENDENT)
def a_variable_as_the_target():
    x, v = tf.Variable(3.0), tf.Variable(1.0)  # here
    with tf.GradientTape() as tape:
        x * v
    return asked(tape, v, x)


@program(causes.LEFT)
def out_by_numpy():
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        h = x * x
        array = h.numpy()  # here
        y = tf.reduce_sum(tf.constant(array) * 2.0)
    return asked(tape, y, x)


@program(causes.LEFT)
def out_by_tolist():
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        values = (x * x).numpy().tolist()  # here
        y = tf.reduce_sum(tf.constant(values))
    return asked(tape, y, x)


@program(causes.LEFT)
def out_by_float():
    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = tf.constant(float(x * x))  # here
    return asked(tape, y, x)


@program(causes.LEFT)
def out_by_int():
    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        n = int(x * x)  # here
        y = tf.ones([n]) * 2.0
    return asked(tape, y, x)


@program(causes.LEFT)
def out_by_bool():
    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = tf.constant(1.0) if x > 0.0 else tf.constant(-1.0)  # here
    return asked(tape, y, x)


@program(causes.LEFT)
def out_by_a_function_of_numpy():
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(np.sin(x))  # here
    return asked(tape, y, x)


@program(causes.LEFT)
def out_by_numpy_function():
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        y = tf.numpy_function(np.sort, [x * 2.0], tf.float32)  # here
    return asked(tape, y, x)


@program(causes.COPIED)
def into_a_new_variable():
    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        v = tf.Variable(x * x)  # here
        y = v * 3.0
    return asked(tape, y, x)


@program(causes.INTEGER_SOURCE)
def an_integer_source():
    x = tf.Variable(3)  # here
    with tf.GradientTape() as tape:
        y = tf.cast(x, tf.float32) * 2.0
    return asked(tape, y, x)


@program(causes.INTEGER_SOURCE)
def a_boolean_source():
    x = tf.constant(True)  # here
    with tf.GradientTape() as tape:
        y = tf.where(x, 1.0, 2.0)
    return asked(tape, y, x)


@program(causes.INTEGER_HOP)
def by_way_of_integers():
    x = tf.Variable(3.7)
    with tf.GradientTape() as tape:
        whole = tf.cast(x, tf.int32)  # here
        y = tf.cast(whole + 1, tf.float32) * x.shape.rank
        y = y + 1.0
    return asked(tape, y, x)


def dead_end(function):
    def build():
        x = tf.Variable([1.5, 2.5])
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(tf.cast(function(x), tf.float32))  # here
        return asked(tape, y, x)

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
    PROGRAMS.append(pytest.param(causes.NO_SLOPE, dead_end(function), id=name))


@program(causes.INTEGER_HOP)
def one_hot_of_what_was_cast():
    x = tf.Variable([1.5, 2.5])
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(tf.one_hot(tf.cast(x, tf.int32), 3))  # here
    return asked(tape, y, x)


@program(causes.NO_SLOPE)
def an_integer_target():
    x = tf.Variable([1.5, 2.5])
    with tf.GradientTape() as tape:
        y = tf.argmax(x)  # here
    return asked(tape, y, x)


@program(causes.INTEGER_TARGET)
def a_target_of_integers_alone():
    n, x = tf.constant([1, 2]), tf.Variable(1.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.gather(n, 0)  # here
    return asked(tape, y, x)


@program(causes.STOP_GRADIENT)
def stop_gradient():
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = tf.stop_gradient(x * x) * 2.0  # here
    return asked(tape, y, x)


@program(causes.NO_GRADIENT)
def an_argument_without_a_gradient():
    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = tf.math.polygamma(x, 3.0)  # here
    return asked(tape, y, x)


@program(causes.NO_GRADIENT)
def a_function_that_passes_no_gradient():
    @tf.function
    def rounded(x):
        return tf.round(x)

    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = rounded(x) + 1.0  # here
    return asked(tape, y, x)


@program(causes.REBOUND)
def a_name_rebound_between_steps():
    w = tf.Variable(3.0)
    for _ in range(2):
        with tf.GradientTape() as tape:
            loss = w * w
        if isinstance(w, tf.Tensor):
            return asked(tape, loss, w)
        w = w - 0.1 * tape.gradient(loss, w)  # here
    return None


@program(causes.REBOUND)
def a_name_rebound_before_the_gradient():
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = x * x
    x = x + 1.0  # here
    return asked(tape, y, x)


@program(causes.MADE_AFTERWARDS)
def a_source_made_after_the_target():
    v = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = v * v
    x = tf.identity(v)  # here
    return asked(tape, y, x)


@program(causes.ASSIGN)
def by_way_of_an_assignment():
    x, state = tf.Variable(3.0), tf.Variable(0.0)
    with tf.GradientTape() as tape:
        state.assign(x * x)  # here
        y = state * 2.0
    return asked(tape, y, x)


@program(causes.ASSIGN)
def by_way_of_adding_to_a_variable():
    x, total = tf.Variable(3.0), tf.Variable(0.0)
    with tf.GradientTape() as tape:
        for _ in range(3):
            total.assign_add(x)  # here
        y = total * 2.0
    return asked(tape, y, x)


@program(causes.NOT_TRAINABLE)
def a_variable_that_is_not_trainable():
    v = tf.Variable(3.0, trainable=False)  # here
    with tf.GradientTape() as tape:
        y = v * v
    return asked(tape, y, v)


@program(causes.VARIABLES_NOT_WATCHED)
def a_tape_that_does_not_watch_variables():
    v = tf.Variable(3.0)
    with tf.GradientTape(watch_accessed_variables=False) as tape:  # here
        y = v * v
    return asked(tape, y, v)


@program(causes.MADE_ANEW)
def a_variable_made_in_every_call():
    def layer(x):
        weight = tf.Variable([2.0, 2.0])  # here
        return x * weight, weight

    x = tf.constant([1.0, 2.0])
    _, weight = layer(x)
    with tf.GradientTape() as tape:
        y, _ = layer(x)
    return asked(tape, y, weight)


@program(causes.INNER_GRADIENT)
def an_inner_gradient_outside_of_the_outer_tape():
    x = tf.Variable(3.0)
    with tf.GradientTape() as outer, tf.GradientTape() as inner:
        y = x * x * x
    first = inner.gradient(y, x)  # here
    return asked(outer, first, x)


@program(causes.LINEAR)
def a_second_derivative_of_a_linear_function():
    x = tf.Variable(3.0)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = 3.0 * x
        first = inner.gradient(y, x)  # here
    return asked(outer, first, x)


@program(causes.CUSTOM_GRADIENT)
def a_custom_gradient_that_is_none():
    @tf.custom_gradient
    def scaled(x, factor):
        return x * factor, lambda upstream: (upstream * factor, None)

    x, factor = tf.Variable(3.0), tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = scaled(x, factor)  # here
    return asked(tape, y, factor)


@program(causes.ANOTHER_THREAD)
def a_part_computed_in_another_thread():
    x, results = tf.Variable(3.0), []
    with tf.GradientTape() as tape:
        worker = threading.Thread(target=lambda: results.append(x * x), name="worker")
        worker.start()
        worker.join()
        y = results[0] + 1.0  # here
    return asked(tape, y, x)


@program(causes.ANOTHER_THREAD)
def a_source_from_another_thread():
    x, results = tf.Variable(3.0), []
    with tf.GradientTape() as tape:
        worker = threading.Thread(target=lambda: results.append(x * x), name="worker")
        worker.start()
        worker.join()
        h = results[0]
        y = h * 2.0  # here
    return asked(tape, y, h)


@program(causes.COMPUTED_APART)
def a_layer_called_apart_from_the_model():
    kernel = tf.Variable([[1.0, 2.0], [3.0, 4.0]], name="kernel")
    x = tf.constant([[1.0, 2.0]])

    def features(x):
        return tf.nn.relu(x @ kernel)

    with tf.GradientTape() as tape:
        conv = features(x)  # here
        score = tf.reduce_sum(features(x))
    return asked(tape, score, conv)


@pytest.mark.parametrize(("cause", "function"), PROGRAMS)
def test_cause_and_line_are_found(cause, function):
    finding = function()

    assert (finding.cause, finding.connected) == (cause, False)
    assert finding.filename == __file__
    assert finding.line.text.endswith("# here"), finding.line


# What gradient() refuses as a source or target


class Symbolic:
    """Looks like what Keras has in place of tensors while a model is put together."""

    _keras_history = None


class Layer:
    trainable_variables = ()


@pytest.mark.parametrize(
    ("cause", "source"),
    [
        (causes.SYMBOLIC, Symbolic()),
        (causes.MODEL, Layer()),
        (causes.MODEL, tf.Module()),
        (causes.NO_TENSOR, 3.0),
        (causes.NO_TENSOR, np.ones(3)),
        (causes.NO_TENSOR, None),
    ],
    ids=["symbolic", "layer", "module", "number", "array", "none"],
)
def test_sources_that_are_no_tensors_are_explained(cause, source):
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = x * x
    (finding,) = tape.explain(y, [source])  # here

    assert finding.cause == cause
    assert finding.line.text.endswith("# here")


def test_a_target_that_has_left_is_explained():
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        loss = float(x * x)  # here
    (finding,) = tape.explain(loss, x)

    assert finding.cause == causes.NO_TENSOR_TARGET
    assert finding.line.text.endswith("# here")


def test_every_cause_has_a_program():
    tested = {param.values[0] for param in PROGRAMS}
    elsewhere = {
        causes.CONNECTED,
        causes.SYMBOLIC,
        causes.MODEL,
        causes.NO_TENSOR,
        causes.NO_TENSOR_TARGET,
    }

    assert tested | elsewhere == set(causes.ALL)
