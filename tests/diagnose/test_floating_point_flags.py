"""Autopsies of tapes that let go of what they recorded: they listen to alarms meanwhile."""

import gc
import re
import weakref

import numpy as np
import pytest

import retrograde as tf
from retrograde.diagnose.nonfinite import fixes
from retrograde.diagnose.nonfinite.likely_line import likely_line
from retrograde.fusion import blocks
from tests.diagnose.test_autopsy import BACKWARD_BIRTHS, BIRTHS, examined
from tests.namespaces.helpers import assert_raises

NO_LINES = "To see the line, make the tape with tf.GradientTape(lines=True)."


def examined_after(f, x):
    """What an autopsy of an ordinary tape says, asked after its gradient."""
    x = tf.Variable(x, name="x")
    with tf.GradientTape() as tape:
        y = f(x)
    gradient = tape.gradient(y, x)
    return tape.autopsy(), gradient


@pytest.mark.parametrize(("kind", "f", "x", "primitive", "index"), BACKWARD_BIRTHS)
def test_births_on_the_way_back_are_found_by_an_ordinary_tape(kind, f, x, primitive, index):
    expected, _ = examined(lambda x: f(x * 1.0 + 0.0) * 1.0, x)
    found, gradient = examined_after(lambda x: f(x * 1.0 + 0.0) * 1.0, x)

    assert not np.isfinite(gradient.numpy()).all()
    assert (found.direction, found.primitive, found.kind) == ("backwards", primitive, kind.name)
    assert found.elements[0].index == index
    assert found.elements[0].g == expected.elements[0].g
    assert found.count == expected.count
    assert found.turn == re.sub(r" at \S+:\d+", "", expected.turn)
    assert found.way == tuple(step.split("  ")[0] for step in expected.way)


# Those that a tape without lines cannot tell: it lets go of the constant that is at fault.
UNTOLD = ("mod", "triangular_solve", "root")


@pytest.mark.parametrize(
    ("kind", "f", "x", "primitive", "index"), [case for case in BIRTHS if case[3] not in UNTOLD]
)
def test_births_on_the_way_forwards_are_found_by_an_ordinary_tape(kind, f, x, primitive, index):
    found, _ = examined_after(lambda x: f(x) * 1.0, x)

    assert (found.direction, found.primitive, found.kind) == ("forwards", primitive, kind.name)
    assert found.elements[0].index == index


def test_what_is_told_without_lines():
    found, _ = examined_after(lambda x: tf.norm(x) * 3.0, [0.0, 0.0])

    assert str(found) == (
        "On the way back, the rule of sqrt made an infinity out of finite values.\n"
        f"  {NO_LINES}\n"
        "    slope of sqrt(0), with the cotangent 3: inf\n"
        "  Why: The length of a vector has no slope at the origin: the rule of the root divides "
        "by 0.\n"
        "  Then: the rule of multiply made nan out of it.\n"
        "  Cure: Put a small number under the root: tf.sqrt(tf.reduce_sum(x * x, axis) + 1e-12); "
        "to\n    divide by the length, tf.nn.l2_normalize(x, axis).\n"
        "  The way from there:\n"
        "    rule of sum\n"
        "    rule of multiply\n"
        "    the gradient of 'x:0'"
    )


def test_the_first_birth_is_the_one_next_to_the_target():
    found, _ = examined_after(lambda x: tf.sqrt(tf.norm(x)), [0.0, 0.0])

    assert (found.primitive, found.kind) == ("sqrt", fixes.ROOT_AT_ZERO.name)
    assert found.way[0] == "rule of sqrt"


def test_a_walk_that_others_record_is_listened_to():
    x = tf.Variable([0.0, 4.0])
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = tf.reduce_sum(tf.sqrt(x * 1.0))
        g = inner.gradient(y, x)
        loss = tf.reduce_sum(g[1:])
    outer.gradient(loss, x)

    assert (inner.autopsy().primitive, inner.autopsy().elements[0].index) == ("sqrt", (0,))


def test_a_walk_inside_of_a_rule_tells_the_one_outside_as_well():
    """As where values are computed again in the walk back."""
    found, gradient = examined_after(
        lambda x: tf.reduce_sum(tf.recompute_grad(lambda x: tf.sqrt(x) * 2.0)(x * 1.0)), [4.0, 0.0]
    )

    assert np.isinf(gradient.numpy()[1])
    assert found.direction == "backwards"
    assert found.kind == fixes.OWN_RULE.name
    assert found.elements[0].index == (1,)


def test_sums_of_cotangents_that_overflow_are_told_of():
    def f(x):
        big = tf.constant(60000.0, tf.float16)
        return x * big + x * big

    found, gradient = examined_after(f, np.float16(0.5))

    assert np.isinf(gradient.numpy())
    assert (found.direction, found.primitive) == ("backwards", "multiply")
    assert found.kind == fixes.HALF_OVERFLOW.name


def test_gradients_of_gathered_rows_are_listened_to():
    found, gradient = examined_after(
        lambda x: tf.reduce_sum(tf.gather(tf.sqrt(x), [0, 2])), [0.0, 1.0, 4.0]
    )

    assert np.isinf(gradient.numpy()[0])
    assert (found.primitive, found.elements[0].index) == ("sqrt", (0,))


def test_what_other_threads_hear_is_heard(monkeypatch):
    monkeypatch.setattr(blocks, "processors", lambda: 2)
    x = np.ones(blocks.HUGE, np.float32)
    x[-1] = 0.0  # in the share of the other thread

    found, gradient = examined_after(lambda x: tf.reduce_sum(tf.sqrt(x)), x)

    assert np.isinf(gradient.numpy()[-1])
    assert (found.primitive, found.elements[0].index) == ("sqrt", (blocks.HUGE - 1,))


def test_output_gradients_that_are_not_finite_are_found():
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        y = x * 2.0
    tape.gradient(y, x, output_gradients=tf.constant([1.0, np.nan]))

    assert tape.autopsy().kind == fixes.WEIGHTS.name


def test_what_raised_no_alarm_is_told_as_such():
    @tf.custom_gradient
    def spoilt(x):
        return x * 1.0, lambda _: tf.constant([np.inf, 1.0])

    found, gradient = examined_after(lambda x: spoilt(x * 0.0), [1.0, 2.0])

    assert np.isnan(gradient.numpy()[0])
    assert (found.direction, found.kind) == ("unheard", fixes.UNHEARD.name)
    assert found.what == "On the way back there was an infinity when the walk came to multiply"
    assert found.elements[0].index == (0,)
    assert found.way == ("rule of multiply", "the gradient of 'x:0'")


# Lines that were not kept


def test_the_one_line_that_may_have_done_it_is_named():
    x = tf.Variable([0.0, 4.0])
    with tf.GradientTape() as tape:
        y = x * 2.0
        root = tf.sqrt(y)
        loss = tf.reduce_sum(root)
    tape.gradient(loss, x)
    found = tape.autopsy()

    assert found.place is None
    assert found.likely.endswith(
        "test_floating_point_flags.py:" + found.likely.split(":")[1] + ": root = tf.sqrt(y)"
    )
    assert str(found).splitlines()[1] == f"  {found.likely}"
    assert found.note == ""


@pytest.mark.parametrize(
    ("block", "primitive", "expected"),
    [
        ("y = tf.norm(x)", "sqrt", "y = tf.norm(x)"),
        ("y = x ** 0.5\n    z = y * 2.0", "power", "y = x ** 0.5"),
        ("y = 1.0 / x", "divide", "y = 1.0 / x"),
        ("y = atan2(x, x)", "atan2", "y = atan2(x, x)"),
        ("y = tf.sqrt(x)\n    z = tf.norm(y)", "sqrt", None),  # two of them
        ("y = model(x)", "sqrt", None),  # none
    ],
)
def test_lines_are_found_in_the_block_of_the_tape(tmp_path, block, primitive, expected):
    program = tmp_path / "program.py"
    program.write_text(
        "with GradientTape() as before:\n    tf.sqrt(x)\n"
        f"with tf.GradientTape() as tape:\n    {block}\n"
        "g = tape.gradient(y, x)\nafterwards = tf.sqrt(g) / g\n"
    )
    last = program.read_text().splitlines().index("g = tape.gradient(y, x)") + 1

    found = likely_line(str(program), last, primitive)

    assert (found and found[1]) == expected
    assert expected is None or found[0] == 4


def test_a_program_that_cannot_be_read_has_no_lines(tmp_path):
    (tmp_path / "broken.py").write_text("with (")

    assert likely_line(str(tmp_path / "broken.py"), 1, "sqrt") is None
    assert likely_line("<nowhere>", 1, "sqrt") is None


# When nothing is wrong


def spent(f, x):
    x = tf.Variable(x, name="x")
    with tf.GradientTape() as tape:
        y = f(x)
    return tape, tape.gradient(y, x)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: tf.reduce_sum(x * x),
        lambda x: tf.reduce_sum(tf.where(x > 0.0, tf.math.log(x), 0.0)),  # alarms, but no harm
        lambda x: tf.reduce_sum(tf.where(x > 0.0, tf.sqrt(x), 0.0) * 2.0),
    ],
)
def test_gradients_that_are_finite_leave_nothing_behind(f):
    tape, gradient = spent(f, [0.0, 1.0])
    where = f"{__file__}:{tape._used_at[1]}"

    assert np.isfinite(gradient.numpy()).all()
    assert tape._last_gradient is None
    assert not tape.autopsy()
    assert " ".join(str(tape.autopsy()).split()) == (
        f"No gradient was spoilt in the walk back at {where}, as far as NumPy can tell. "
        "What XLA or SciPy's special functions compute raises no alarm: if you see nan all the "
        "same, make the tape with lines=True, which keeps everything, and ask again."
    )


def test_a_cotangent_that_was_spoilt_on_the_way_alone_leaves_nothing_behind():
    """The source that is asked for lies on another way."""
    x, w = tf.Variable([0.0, 1.0]), tf.Variable([2.0, 3.0])
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(tf.sqrt(x) * w)
    assert np.isfinite(tape.gradient(y, w).numpy()).all()

    assert tape._last_gradient is None


@pytest.fixture
def _no_collector():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("_no_collector")
def test_an_alarm_without_harm_holds_nothing_up():
    """What the walk has passed is free, whether it was before or at the alarm."""
    x = tf.Variable(np.linspace(0.0, 1.0, 5))
    arrays, alive = {}, []

    @tf.custom_gradient
    def first(x):
        def rule(g):
            alive.extend([name for name, array in arrays.items() if array() is not None])
            return g

        return x * 1.0, rule

    with tf.GradientTape() as tape:
        h = first(x)
        y = tf.tanh(tf.where(h > 0.0, tf.math.log(h), 0.0))
        arrays = {"h": weakref.ref(h._array), "y": weakref.ref(y._array)}
        loss = tf.reduce_sum(y * 2.0)
        del h, y
    assert {name for name, array in arrays.items() if array() is not None} == {"h", "y"}

    assert np.isfinite(tape.gradient(loss, x).numpy()).all()
    assert alive == []


@pytest.mark.usefixtures("_no_collector")
def test_a_spoilt_gradient_is_freed_with_its_tape():
    x = tf.Variable([0.0, 1.0])
    with tf.GradientTape() as tape:
        h = tf.exp(x * 1.0)
        y = tf.sqrt(tf.math.log(h))
    held = weakref.ref(h._array)
    del h
    tape.gradient(y, x)

    assert held() is not None  # for the autopsy
    del tape
    assert held() is None


def test_a_jacobian_listens_to_no_alarms():
    x = tf.Variable([0.0, 1.0])
    with tf.GradientTape() as tape:
        y = tf.sqrt(x)
    tape.jacobian(y, x)
    line = tape._used_at[1]

    assert_raises(
        tape.autopsy,
        RuntimeError,
        "autopsy: this tape let go of what it recorded in the walk back at "
        f"{__file__}:{line}.\nTo be able to ask, make the tape with persistent=True or lines=True, "
        "or ask before gradient().",
    )


def test_what_is_left_of_a_spoilt_walk_is_for_autopsies_alone():
    tape, _ = spent(lambda x: tf.sqrt(x), [0.0, 1.0])
    line = tape._used_at[1]

    assert str(tape) == f"<GradientTape, 1 watched, which gave its gradients at {__file__}:{line}>"
    with pytest.raises(RuntimeError, match="let go of what it recorded"):
        tape.graph(tf.constant(1.0))
