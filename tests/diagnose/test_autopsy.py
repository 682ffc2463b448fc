"""Tests `tape.autopsy()`: the origin of NaN and Inf, the cause and the fix."""

import pathlib

import numpy as np
import pytest

import retrograde as tf
from retrograde.diagnose.nonfinite import causes


@tf.custom_gradient
def square_with_infinite_gradient(x):
    return tf.square(x), lambda g: g / 0.0


@tf.custom_gradient
def root(x):
    return tf.sqrt(x), lambda g: g * 0.5 / tf.sqrt(x)


def half(x):
    return tf.cast(x, tf.float16)


# Functions that produce NaN or Inf from `x`, with the cause, the primitive and the index.
FORWARD_CASES = [
    (causes.LOG_OF_ZERO, tf.math.log, [1.0, 0.0], "log", (1,)),
    (causes.LOG_OF_ZERO, tf.math.log1p, [1.0, -1.0], "log1p", (1,)),
    (causes.LOG_OF_NEGATIVE, tf.math.log, [-2.0, 1.0], "log", (0,)),
    (causes.LOG_OF_NEGATIVE, tf.math.log1p, [-2.0, 1.0], "log1p", (0,)),
    (causes.DIVISION_BY_ZERO, lambda x: 1.0 / x, [1.0, 0.0], "divide", (1,)),
    (causes.DIVISION_BY_ZERO, lambda x: x / x, [1.0, 0.0], "divide", (1,)),
    (causes.DIVISION_BY_ZERO, tf.math.reciprocal, [1.0, 0.0], "reciprocal", (1,)),
    (causes.DIVISION_BY_ZERO, lambda x: tf.math.mod(x, 0.0), [1.0, 0.0], "mod", (0,)),
    (causes.DIVISION_BY_ZERO, tf.math.rsqrt, [1.0, 0.0], "rsqrt", (1,)),
    (causes.DIVISION_BY_ZERO, lambda x: x**-1.0, [1.0, 0.0], "power", (1,)),
    (causes.ROOT_OF_NEGATIVE, tf.sqrt, [1.0, -1.0], "sqrt", (1,)),
    (causes.ROOT_OF_NEGATIVE, tf.math.rsqrt, [1.0, -1.0], "rsqrt", (1,)),
    (causes.POWER_OF_NEGATIVE, lambda x: x**1.5, [1.0, -1.0], "power", (1,)),
    (causes.EXP_OVERFLOW, tf.exp, [1.0, 90.0], "exp", (1,)),
    (causes.EXP_OVERFLOW, tf.math.expm1, [1.0, 90.0], "expm1", (1,)),
    (causes.EXP_OVERFLOW, tf.cosh, [1.0, 90.0], "cosh", (1,)),
    (causes.EXP_OVERFLOW, tf.sinh, [1.0, 90.0], "sinh", (1,)),
    (causes.OVERFLOW, lambda x: x * x, [1.0, 1e20], "multiply", (1,)),
    (causes.OVERFLOW, tf.square, [1.0, 1e20], "square", (1,)),
    (causes.OVERFLOW, tf.reduce_sum, [3e38, 3e38], "sum", ()),
    (causes.OVERFLOW, tf.reduce_prod, [3e38, 3e38], "prod", ()),
    (causes.OVERFLOW, lambda x: tf.linalg.matvec([[1.0, 1.0]], x), [3e38, 3e38], "matmul", (0, 0)),
    (causes.HALF_OVERFLOW, half, [1.0, 1e6], "cast", (1,)),
    (causes.HALF_OVERFLOW, lambda x: half(x) * 300.0, [1.0, 300.0], "multiply", (1,)),
    (causes.OUT_OF_DOMAIN, tf.acos, [0.0, 1.5], "acos", (1,)),
    (causes.OUT_OF_DOMAIN, tf.atanh, [0.0, 1.0], "atanh", (1,)),
    (causes.OUT_OF_DOMAIN, tf.math.erfinv, [0.0, 1.0], "erfinv", (1,)),
    (causes.OUT_OF_DOMAIN, tf.math.lgamma, [1.0, 0.0], "lgamma", (1,)),
    (causes.EMPTY, lambda x: tf.reduce_mean(x[:0]), [1.0, 2.0], "mean", ()),
    (causes.EMPTY, lambda x: tf.reduce_max(x[:0]), [1.0, 2.0], "max", ()),
    (
        causes.NOT_POSITIVE_DEFINITE,
        lambda x: tf.linalg.cholesky(tf.linalg.diag(x)),
        [1.0, -1.0],
        "cholesky",
        (0, 0),
    ),
    (
        causes.SINGULAR,
        lambda x: tf.linalg.triangular_solve(tf.linalg.diag(x), [[1.0], [1.0]]),
        [1.0, 0.0],
        "triangular_solve",
        (1, 0),
    ),
    (causes.OUT_OF_DOMAIN, lambda x: tf.math.igamma(x, x), [-1.0, 1.0], "igamma", (0,)),
    (causes.CUSTOM_FUNCTION, root, [-1.0, 1.0], "root", (0,)),
]

BACKWARD_CASES = [
    (causes.NORM_AT_ZERO, tf.norm, [0.0, 0.0], "sqrt", ()),
    (causes.NORM_AT_ZERO, tf.math.reduce_euclidean_norm, [0.0, 0.0], "sqrt", ()),
    (causes.STD_OF_EQUAL_VALUES, tf.math.reduce_std, [3.0, 3.0], "sqrt", ()),
    (causes.ROOT_AT_ZERO, tf.sqrt, [1.0, 0.0], "sqrt", (1,)),
    (causes.ROOT_AT_ZERO, lambda x: x**0.5, [1.0, 0.0], "power", (1,)),
    (causes.INFINITE_DERIVATIVE, tf.acos, [0.0, 1.0], "acos", (1,)),
    (causes.INFINITE_DERIVATIVE, tf.acosh, [2.0, 1.0], "acosh", (1,)),
    (causes.INFINITE_DERIVATIVE, lambda x: tf.atan2(x, x), [1.0, 0.0], "atan2", (1,)),
    (causes.INFINITE_DERIVATIVE, lambda x: 1.0 / x, [1.0, 1e-30], "divide", (1,)),
    (causes.INFINITE_DERIVATIVE, lambda x: tf.math.log(x) * 1e10, [1.0, 1e-30], "log", (1,)),
    (causes.NO_DERIVATIVE, lambda x: tf.linalg.qr(tf.linalg.diag(x))[1], [1.0, 0.0], "qr", (0, 0)),
    (
        causes.CUSTOM_GRADIENT,
        square_with_infinite_gradient,
        [1.0, 1.0],
        "square_with_infinite_gradient",
        (0,),
    ),
    (
        causes.CUSTOM_GRADIENT_AT_ZERO,
        lambda x: tf.where(x > 0.0, root(x), 0.0),
        [1.0, 0.0],
        "root",
        (1,),
    ),
    (
        causes.BACKWARD_OVERFLOW,
        lambda x: x * 1e-38 * 1e30 * 1e30,
        [1.0, 1.0],
        "multiply",
        (0,),
    ),
]


CAUSES = [cause for cause in vars(causes).values() if isinstance(cause, causes.Cause)]


def autopsy_of(f, x, **options):
    """Returns the autopsy of a tape with lines, and the gradient of `f(x)`."""
    x = tf.Variable(x, name="x")
    with tf.GradientTape(lines=True, **options) as tape:
        y = f(x)
    gradient = tape.gradient(y, x)
    return tape.autopsy(), gradient


@pytest.mark.parametrize(("cause", "f", "x", "primitive", "index"), FORWARD_CASES)
def test_origin_in_the_forward_pass_is_found(cause, f, x, primitive, index):
    report, _ = autopsy_of(lambda x: f(x) * 1.0, x)

    assert (report.direction, report.primitive, report.cause) == ("forward", primitive, cause.name)
    assert (report.why, report.fix) == (cause.why, cause.fix)
    assert report.elements[0].index == index
    assert not np.isfinite(report.elements[0].value)


@pytest.mark.parametrize(("cause", "f", "x", "primitive", "index"), BACKWARD_CASES)
def test_origin_in_the_backward_pass_is_found(cause, f, x, primitive, index):
    report, gradient = autopsy_of(lambda x: f(x + 0.0), x)

    assert not np.isfinite(gradient.numpy()).all()
    assert (report.direction, report.primitive, report.cause) == ("backward", primitive, cause.name)
    assert (report.why, report.fix) == (cause.why, cause.fix)
    assert report.elements[0].index == index
    assert not np.isfinite(report.elements[0].value)


def test_every_cause_has_a_test():
    tested = {case[0] for case in FORWARD_CASES + BACKWARD_CASES}
    tested_below = {
        causes.VARIABLE,
        causes.INPUT,
        causes.OUTPUT_GRADIENTS,
        causes.INPUTS_NOT_SAVED,
        causes.UNKNOWN,
    }

    assert set(CAUSES) == tested | tested_below


@pytest.mark.parametrize("cause", CAUSES, ids=lambda cause: cause.name)
def test_every_cause_is_documented(cause):
    page = " ".join((pathlib.Path(__file__).parents[2] / "docs" / "nan.md").read_text().split())

    assert f"**{cause.name[0].upper()}{cause.name[1:]}.** {cause.why} *Fix:* {cause.fix}" in page


# Values from outside the tape


def test_a_nonfinite_variable_is_named():
    report, _ = autopsy_of(lambda x: tf.reduce_sum(x * 2.0), [1.0, np.nan])

    assert (report.direction, report.cause) == ("input", causes.VARIABLE.name)
    assert report.summary == "The variable 'x:0' already contained NaN"
    assert report.elements[0].index == (1,)
    assert report.location.expression == "x * 2.0"


def test_a_nonfinite_input_is_found():
    data = tf.constant([1.0, np.inf])
    report, _ = autopsy_of(lambda x: tf.reduce_sum(x * data), [1.0, 1.0])

    assert (report.direction, report.cause) == ("input", causes.INPUT.name)
    assert report.location.expression == "x * data"


def test_nonfinite_output_gradients_are_found():
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape(persistent=True) as tape:
        y = x * 2.0
    tape.gradient(y, x, output_gradients=tf.constant([1.0, np.nan]))
    report = tape.autopsy()

    assert (report.direction, report.cause) == ("input", causes.OUTPUT_GRADIENTS.name)
    assert report.summary == "The `output_gradients` already contained NaN"
    assert report.elements[0].index == (1,)


# The path


def test_text_for_a_norm_at_zero():
    x = tf.Variable([0.0, 0.0], name="w")
    with tf.GradientTape(lines=True) as tape:
        length = tf.norm(x)
        loss = length * 3.0
    assert np.isnan(tape.gradient(loss, x).numpy()).all()
    report = tape.autopsy()
    at = f"{__file__}:{report.location.line}"

    assert report
    assert report.location.text == "length = tf.norm(x)"
    assert report.elements[0].inputs == (0.0,)
    assert report.elements[0].g == 3.0
    assert str(report).replace(str(report._lines()[1][1].split(":")[0]), __file__) == (
        "In the backward pass, the gradient of sqrt produced Inf from finite inputs.\n"
        f"  {at}: length = tf.norm(x)\n"
        "    gradient of sqrt(0) for upstream gradient 3: inf\n"
        "  Why: The gradient of a norm is undefined at 0: the derivative of sqrt divides by 0.\n"
        f"  Then: the gradient of multiply at {at} turned it into NaN.\n"
        "  Fix: Add a small epsilon inside the sqrt: tf.sqrt(tf.reduce_sum(x * x, axis) + 1e-12). "
        "To\n    divide by the norm, use tf.nn.l2_normalize(x, axis).\n"
        "  Path from there:\n"
        f"    gradient of sum  {at}: tf.norm(x)\n"
        f"    gradient of multiply  {at}: tf.norm(x)\n"
        "    the gradient with respect to 'w:0'"
    )


def test_an_inf_that_became_nan_later():
    report, _ = autopsy_of(lambda p: -tf.reduce_sum(p * tf.math.log(p)), [0.25, 0.75, 0.0])

    assert report.primitive == "log"
    assert report.location.expression == "tf.math.log(p)"
    assert report.became_nan.endswith(" turned it into NaN: 0 * Inf is NaN.")
    assert [step.split()[0] for step in report.path] == ["multiply", "sum", "negative", "the"]
    assert report.path[-1] == "the target"


def test_a_branch_that_where_does_not_select_is_ignored():
    def f(x):
        safe = tf.where(x > 0.0, tf.math.log(x), 0.0)
        return tf.reduce_sum(safe) + tf.norm(x * 0.0)

    report, _ = autopsy_of(f, [1.0, -1.0])

    assert (report.direction, report.primitive) == ("backward", "sqrt")


def test_finite_gradients_despite_an_inf_yield_no_finding():
    def f(x):
        return tf.reduce_sum(tf.minimum(tf.exp(x) * x, 1.0))

    report, gradient = autopsy_of(lambda x: f(x) + tf.reduce_sum(1.0 / tf.exp(x) * 0.0), [100.0])

    assert np.isfinite(gradient.numpy()).all() == (not report)


def test_a_long_path_is_shortened():
    def f(x):
        x = tf.math.log(x)
        for _ in range(20):
            x = x * 1.0
        return x

    report, _ = autopsy_of(f, [0.0])

    assert len(report.path) == 9
    assert report.path[4] == "... 13 more ..."


# Different tapes


def test_finite_values_and_gradients():
    report, _ = autopsy_of(lambda x: x * x, [1.0, 2.0])

    assert not report
    assert str(report) == "All available values and gradients of this tape are finite."


def test_an_ordinary_tape_with_a_nonfinite_loss():
    x = tf.Variable([0.0, 1.0])
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.math.log(x))
    tape.gradient(loss, x)
    report = tape.autopsy()

    assert (report.primitive, report.location) == ("log", None)


def test_unsaved_inputs_hide_the_origin():
    x = tf.Variable([0.0, 1.0])
    with tf.GradientTape(persistent=True) as tape:
        y = tf.exp(x + tf.constant([np.nan, 0.0])) * 2.0
    tape.gradient(y, x)
    report = tape.autopsy()

    assert report.summary == "In the forward pass, exp returned NaN"
    assert (report.cause, report.fix) == (causes.INPUTS_NOT_SAVED.name, causes.INPUTS_NOT_SAVED.fix)


def test_without_a_gradient_all_calls_are_searched():
    x = tf.Variable([0.0, 1.0])
    with tf.GradientTape() as tape:
        tf.math.log(x) * 0.0

    assert tape.autopsy().primitive == "log"
    assert not tf.GradientTape().autopsy()


def test_updates_after_the_gradient_are_ignored():
    w, b = tf.Variable([0.0, 1.0], name="w"), tf.Variable([1.0, 1.0], name="b")
    with tf.GradientTape(persistent=True) as tape:
        loss = tf.reduce_sum(tf.sqrt(w) + b)
    for variable, g in zip((w, b), tape.gradient(loss, [w, b]), strict=True):
        variable.assign_sub(g * np.nan)

    assert (tape.autopsy().direction, tape.autopsy().primitive) == ("backward", "sqrt")


def test_watched_tensors_and_second_derivatives():
    x = tf.constant([0.0, 4.0])
    with tf.GradientTape(persistent=True) as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = tf.reduce_sum(x**1.5)
        g = inner.gradient(y, x)
    outer.gradient(g, x)
    report = outer.autopsy()

    assert report.direction == "backward"
    assert report.elements[0].index == (0,)


def test_html_is_escaped():
    report, _ = autopsy_of(lambda x: (tf.math.log(x) < 1.0 and x) or tf.math.log(x), [0.0])
    page = report._repr_html_()

    assert "The logarithm of 0 is -Inf." in page
    assert "&lt;" in page
