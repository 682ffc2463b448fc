"""tape.autopsy(): who made the first value that is not finite, where, and what cures it."""

import pathlib

import numpy as np
import pytest

import retrograde as tf
from retrograde.diagnose.nonfinite import fixes


@tf.custom_gradient
def halved(x):
    return tf.square(x), lambda g: g / 0.0


@tf.custom_gradient
def root(x):
    return tf.sqrt(x), lambda g: g * 0.5 / tf.sqrt(x)


def half(x):
    return tf.cast(x, tf.float16)


# A call in `f` that makes something that is not finite out of `x`: kind, primitive, element.
BIRTHS = [
    (fixes.LOG_OF_ZERO, tf.math.log, [1.0, 0.0], "log", (1,)),
    (fixes.LOG_OF_ZERO, tf.math.log1p, [1.0, -1.0], "log1p", (1,)),
    (fixes.LOG_OF_NEGATIVE, tf.math.log, [-2.0, 1.0], "log", (0,)),
    (fixes.LOG_OF_NEGATIVE, tf.math.log1p, [-2.0, 1.0], "log1p", (0,)),
    (fixes.DIVISION_BY_ZERO, lambda x: 1.0 / x, [1.0, 0.0], "divide", (1,)),
    (fixes.DIVISION_BY_ZERO, lambda x: x / x, [1.0, 0.0], "divide", (1,)),
    (fixes.DIVISION_BY_ZERO, tf.math.reciprocal, [1.0, 0.0], "reciprocal", (1,)),
    (fixes.DIVISION_BY_ZERO, lambda x: tf.math.mod(x, 0.0), [1.0, 0.0], "mod", (0,)),
    (fixes.DIVISION_BY_ZERO, tf.math.rsqrt, [1.0, 0.0], "rsqrt", (1,)),
    (fixes.DIVISION_BY_ZERO, lambda x: x**-1.0, [1.0, 0.0], "power", (1,)),
    (fixes.ROOT_OF_NEGATIVE, tf.sqrt, [1.0, -1.0], "sqrt", (1,)),
    (fixes.ROOT_OF_NEGATIVE, tf.math.rsqrt, [1.0, -1.0], "rsqrt", (1,)),
    (fixes.POWER_OF_NEGATIVE, lambda x: x**1.5, [1.0, -1.0], "power", (1,)),
    (fixes.EXP_OVERFLOW, tf.exp, [1.0, 90.0], "exp", (1,)),
    (fixes.EXP_OVERFLOW, tf.math.expm1, [1.0, 90.0], "expm1", (1,)),
    (fixes.EXP_OVERFLOW, tf.cosh, [1.0, 90.0], "cosh", (1,)),
    (fixes.EXP_OVERFLOW, tf.sinh, [1.0, 90.0], "sinh", (1,)),
    (fixes.OVERFLOW, lambda x: x * x, [1.0, 1e20], "multiply", (1,)),
    (fixes.OVERFLOW, tf.square, [1.0, 1e20], "square", (1,)),
    (fixes.OVERFLOW, tf.reduce_sum, [3e38, 3e38], "sum", ()),
    (fixes.OVERFLOW, tf.reduce_prod, [3e38, 3e38], "prod", ()),
    (fixes.OVERFLOW, lambda x: tf.linalg.matvec([[1.0, 1.0]], x), [3e38, 3e38], "matmul", (0, 0)),
    (fixes.HALF_OVERFLOW, half, [1.0, 1e6], "cast", (1,)),
    (fixes.HALF_OVERFLOW, lambda x: half(x) * 300.0, [1.0, 300.0], "multiply", (1,)),
    (fixes.OUT_OF_DOMAIN, tf.acos, [0.0, 1.5], "acos", (1,)),
    (fixes.OUT_OF_DOMAIN, tf.atanh, [0.0, 1.0], "atanh", (1,)),
    (fixes.OUT_OF_DOMAIN, tf.math.erfinv, [0.0, 1.0], "erfinv", (1,)),
    (fixes.OUT_OF_DOMAIN, tf.math.lgamma, [1.0, 0.0], "lgamma", (1,)),
    (fixes.EMPTY, lambda x: tf.reduce_mean(x[:0]), [1.0, 2.0], "mean", ()),
    (fixes.EMPTY, lambda x: tf.reduce_max(x[:0]), [1.0, 2.0], "max", ()),
    (
        fixes.NOT_POSITIVE_DEFINITE,
        lambda x: tf.linalg.cholesky(tf.linalg.diag(x)),
        [1.0, -1.0],
        "cholesky",
        (0, 0),
    ),
    (
        fixes.SINGULAR,
        lambda x: tf.linalg.triangular_solve(tf.linalg.diag(x), [[1.0], [1.0]]),
        [1.0, 0.0],
        "triangular_solve",
        (1, 0),
    ),
    (fixes.OUT_OF_DOMAIN, lambda x: tf.math.igamma(x, x), [-1.0, 1.0], "igamma", (0,)),
    (fixes.OWN_FUNCTION, root, [-1.0, 1.0], "root", (0,)),
]

BACKWARD_BIRTHS = [
    (fixes.NORM_AT_ZERO, tf.norm, [0.0, 0.0], "sqrt", ()),
    (fixes.NORM_AT_ZERO, tf.math.reduce_euclidean_norm, [0.0, 0.0], "sqrt", ()),
    (fixes.SPREAD_OF_EQUALS, tf.math.reduce_std, [3.0, 3.0], "sqrt", ()),
    (fixes.ROOT_AT_ZERO, tf.sqrt, [1.0, 0.0], "sqrt", (1,)),
    (fixes.ROOT_AT_ZERO, lambda x: x**0.5, [1.0, 0.0], "power", (1,)),
    (fixes.STEEP, tf.acos, [0.0, 1.0], "acos", (1,)),
    (fixes.STEEP, tf.acosh, [2.0, 1.0], "acosh", (1,)),
    (fixes.STEEP, lambda x: tf.atan2(x, x), [1.0, 0.0], "atan2", (1,)),
    (fixes.STEEP, lambda x: 1.0 / x, [1.0, 1e-30], "divide", (1,)),
    (fixes.STEEP, lambda x: tf.math.log(x) * 1e10, [1.0, 1e-30], "log", (1,)),
    (fixes.NO_DERIVATIVE, lambda x: tf.linalg.qr(tf.linalg.diag(x))[1], [1.0, 0.0], "qr", (0, 0)),
    (fixes.OWN_RULE, halved, [1.0, 1.0], "halved", (0,)),
    (
        fixes.OWN_RULE_AT_ZERO,
        lambda x: tf.where(x > 0.0, root(x), 0.0),
        [1.0, 0.0],
        "root",
        (1,),
    ),
    (
        fixes.BACKWARD_OVERFLOW,
        lambda x: x * 1e-38 * 1e30 * 1e30,
        [1.0, 1.0],
        "multiply",
        (0,),
    ),
]


KINDS = [kind for kind in vars(fixes).values() if isinstance(kind, fixes.Kind)]


def examined(f, x, **options):
    """What an autopsy says of `f(x)` and its gradient."""
    x = tf.Variable(x, name="x")
    with tf.GradientTape(lines=True, **options) as tape:
        y = f(x)
    gradient = tape.gradient(y, x)
    return tape.autopsy(), gradient


@pytest.mark.parametrize(("kind", "f", "x", "primitive", "index"), BIRTHS)
def test_a_birth_on_the_way_forwards_is_found(kind, f, x, primitive, index):
    found, _ = examined(lambda x: f(x) * 1.0, x)

    assert (found.direction, found.primitive, found.kind) == ("forwards", primitive, kind.name)
    assert (found.why, found.cure) == (kind.why, kind.cure)
    assert found.elements[0].index == index
    assert not np.isfinite(found.elements[0].value)


@pytest.mark.parametrize(("kind", "f", "x", "primitive", "index"), BACKWARD_BIRTHS)
def test_a_birth_on_the_way_back_is_found(kind, f, x, primitive, index):
    found, gradient = examined(lambda x: f(x + 0.0), x)

    assert not np.isfinite(gradient.numpy()).all()
    assert (found.direction, found.primitive, found.kind) == ("backwards", primitive, kind.name)
    assert (found.why, found.cure) == (kind.why, kind.cure)
    assert found.elements[0].index == index
    assert not np.isfinite(found.elements[0].value)


def test_every_kind_is_tried():
    tried = {case[0] for case in BIRTHS + BACKWARD_BIRTHS}
    elsewhere = {fixes.VARIABLE, fixes.INPUT, fixes.WEIGHTS, fixes.NOT_KEPT, fixes.UNHEARD}

    assert set(KINDS) == tried | elsewhere


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_kind_is_on_its_page(kind):
    page = " ".join((pathlib.Path(__file__).parents[2] / "docs" / "nan.md").read_text().split())

    assert f"**{kind.name[0].upper()}{kind.name[1:]}.** {kind.why} *Cure:* {kind.cure}" in page


# What was given


def test_a_variable_that_was_spoilt_before_is_named():
    found, _ = examined(lambda x: tf.reduce_sum(x * 2.0), [1.0, np.nan])

    assert (found.direction, found.kind) == ("given", fixes.VARIABLE.name)
    assert found.what == "The variable 'x:0' held nan before the tape saw it"
    assert found.elements[0].index == (1,)
    assert found.place.marked == "x * 2.0"


def test_an_input_that_was_spoilt_before_is_found():
    data = tf.constant([1.0, np.inf])
    found, _ = examined(lambda x: tf.reduce_sum(x * data), [1.0, 1.0])

    assert (found.direction, found.kind) == ("given", fixes.INPUT.name)
    assert found.place.marked == "x * data"


def test_output_gradients_that_are_not_finite_are_found():
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape(persistent=True) as tape:
        y = x * 2.0
    tape.gradient(y, x, output_gradients=tf.constant([1.0, np.nan]))
    found = tape.autopsy()

    assert (found.direction, found.kind) == ("given", fixes.WEIGHTS.name)
    assert found.what == "The `output_gradients` held nan before the tape saw it"
    assert found.elements[0].index == (1,)


# The way


def test_what_is_told_of_a_norm_at_zero():
    x = tf.Variable([0.0, 0.0], name="w")
    with tf.GradientTape(lines=True) as tape:
        length = tf.norm(x)
        loss = length * 3.0
    assert np.isnan(tape.gradient(loss, x).numpy()).all()
    found = tape.autopsy()
    at = f"{__file__}:{found.place.line}"

    assert found
    assert found.place.text == "length = tf.norm(x)"
    assert found.elements[0].inputs == (0.0,)
    assert found.elements[0].g == 3.0
    assert str(found).replace(str(found._lines()[1][1].split(":")[0]), __file__) == (
        "On the way back, the rule of sqrt made an infinity out of finite values.\n"
        f"  {at}: length = tf.norm(x)\n"
        "    slope of sqrt(0), with the cotangent 3: inf\n"
        "  Why: The length of a vector has no slope at the origin: the rule of the root divides "
        "by 0.\n"
        f"  Then: the rule of multiply at {at} made nan out of it.\n"
        "  Cure: Put a small number under the root: tf.sqrt(tf.reduce_sum(x * x, axis) + 1e-12); "
        "to\n    divide by the length, tf.nn.l2_normalize(x, axis).\n"
        "  The way from there:\n"
        f"    rule of sum  {at}: tf.norm(x)\n"
        f"    rule of multiply  {at}: tf.norm(x)\n"
        "    the gradient of 'w:0'"
    )


def test_what_is_told_of_an_infinity_that_became_nan_later():
    found, _ = examined(lambda p: -tf.reduce_sum(p * tf.math.log(p)), [0.25, 0.75, 0.0])

    assert found.primitive == "log"
    assert found.place.marked == "tf.math.log(p)"
    assert found.turn.endswith(" made nan out of it: 0 * inf is nan.")
    assert [step.split()[0] for step in found.way] == ["multiply", "sum", "negative", "the"]
    assert found.way[-1] == "the target"


def test_a_branch_that_was_not_taken_is_not_blamed():
    def f(x):
        safe = tf.where(x > 0.0, tf.math.log(x), 0.0)
        return tf.reduce_sum(safe) + tf.norm(x * 0.0)

    found, _ = examined(f, [1.0, -1.0])

    assert (found.direction, found.primitive) == ("backwards", "sqrt")


def test_a_rule_that_was_given_an_infinity_leads_back_to_who_made_it():
    def f(x):
        return tf.reduce_sum(tf.minimum(tf.exp(x) * x, 1.0))

    found, gradient = examined(lambda x: f(x) + tf.reduce_sum(1.0 / tf.exp(x) * 0.0), [100.0])

    assert np.isfinite(gradient.numpy()).all() == (not found)


def test_a_long_way_is_shortened():
    def f(x):
        x = tf.math.log(x)
        for _ in range(20):
            x = x * 1.0
        return x

    found, _ = examined(f, [0.0])

    assert len(found.way) == 9
    assert found.way[4] == "... 13 more ..."


# Which tapes can be asked


def test_all_is_well():
    found, _ = examined(lambda x: x * x, [1.0, 2.0])

    assert not found
    assert str(found) == "All values and gradients that this tape knows of are finite."


def test_a_tape_with_a_loss_that_is_not_finite_can_be_asked_whatever_it_is():
    x = tf.Variable([0.0, 1.0])
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.math.log(x))
    tape.gradient(loss, x)
    found = tape.autopsy()

    assert (found.primitive, found.place) == ("log", None)


def test_a_tape_that_let_inputs_go_accuses_nobody():
    x = tf.Variable([0.0, 1.0])
    with tf.GradientTape(persistent=True) as tape:
        y = tf.exp(x + tf.constant([np.nan, 0.0])) * 2.0
    tape.gradient(y, x)
    found = tape.autopsy()

    assert found.what == "On the way forwards, exp gave nan"
    assert (found.kind, found.cure) == (fixes.NOT_KEPT.name, fixes.NOT_KEPT.cure)


def test_a_tape_that_was_not_asked_yet_is_searched_from_the_start():
    x = tf.Variable([0.0, 1.0])
    with tf.GradientTape() as tape:
        tf.math.log(x) * 0.0

    assert tape.autopsy().primitive == "log"
    assert not tf.GradientTape().autopsy()


def test_updates_after_the_gradient_do_not_mislead():
    w, b = tf.Variable([0.0, 1.0], name="w"), tf.Variable([1.0, 1.0], name="b")
    with tf.GradientTape(persistent=True) as tape:
        loss = tf.reduce_sum(tf.sqrt(w) + b)
    for variable, g in zip((w, b), tape.gradient(loss, [w, b]), strict=True):
        variable.assign_sub(g * np.nan)

    assert (tape.autopsy().direction, tape.autopsy().primitive) == ("backwards", "sqrt")


def test_a_tape_can_be_asked_of_tensors_and_second_derivatives():
    x = tf.constant([0.0, 4.0])
    with tf.GradientTape(persistent=True) as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = tf.reduce_sum(x**1.5)
        g = inner.gradient(y, x)
    outer.gradient(g, x)
    found = outer.autopsy()

    assert found.direction == "backwards"
    assert found.elements[0].index == (0,)


def test_notebooks_show_the_same_as_html():
    found, _ = examined(lambda x: (tf.math.log(x) < 1.0 and x) or tf.math.log(x), [0.0])
    page = found._repr_html_()

    assert "The logarithm of 0 is -inf." in page
    assert "&lt;" in page
