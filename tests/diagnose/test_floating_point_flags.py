"""Tests autopsies of ordinary tapes, which monitor floating-point exception flags."""

import gc
import re
import weakref

import numpy as np
import pytest

import retrograde as tf
from retrograde.diagnose.nonfinite import causes
from retrograde.diagnose.nonfinite.likely_line import likely_line
from retrograde.fusion import blocks
from tests.diagnose.test_autopsy import BACKWARD_CASES, FORWARD_CASES, autopsy_of
from tests.namespaces.helpers import assert_raises

NO_LINES = "To see the line, create the tape with tf.GradientTape(lines=True)."


def autopsy_after_gradient(f, x):
    """Returns the autopsy of an ordinary tape after `gradient`, and the gradient."""
    x = tf.Variable(x, name="x")
    with tf.GradientTape() as tape:
        y = f(x)
    gradient = tape.gradient(y, x)
    return tape.autopsy(), gradient


@pytest.mark.parametrize(("cause", "f", "x", "primitive", "index"), BACKWARD_CASES)
def test_ordinary_tape_finds_origin_in_the_backward_pass(cause, f, x, primitive, index):
    expected, _ = autopsy_of(lambda x: f(x * 1.0 + 0.0) * 1.0, x)
    report, gradient = autopsy_after_gradient(lambda x: f(x * 1.0 + 0.0) * 1.0, x)

    assert not np.isfinite(gradient.numpy()).all()
    assert (report.direction, report.primitive, report.cause) == ("backward", primitive, cause.name)
    assert report.elements[0].index == index
    assert report.elements[0].g == expected.elements[0].g
    assert report.count == expected.count
    assert report.became_nan == re.sub(r" at \S+:\d+", "", expected.became_nan)
    assert report.path == tuple(step.split("  ")[0] for step in expected.path)


# A tape without lines cannot find these, because it does not save the constant operand.
NOT_FOUND = ("mod", "triangular_solve", "root")


@pytest.mark.parametrize(
    ("cause", "f", "x", "primitive", "index"),
    [case for case in FORWARD_CASES if case[3] not in NOT_FOUND],
)
def test_ordinary_tape_finds_origin_in_the_forward_pass(cause, f, x, primitive, index):
    report, _ = autopsy_after_gradient(lambda x: f(x) * 1.0, x)

    assert (report.direction, report.primitive, report.cause) == ("forward", primitive, cause.name)
    assert report.elements[0].index == index


def test_text_without_lines():
    report, _ = autopsy_after_gradient(lambda x: tf.norm(x) * 3.0, [0.0, 0.0])

    assert str(report) == (
        "In the backward pass, the gradient of sqrt produced Inf from finite inputs.\n"
        f"  {NO_LINES}\n"
        "    gradient of sqrt(0) for upstream gradient 3: inf\n"
        "  Why: The gradient of a norm is undefined at 0: the derivative of sqrt divides by 0.\n"
        "  Then: the gradient of multiply turned it into NaN.\n"
        "  Fix: Add a small epsilon inside the sqrt: tf.sqrt(tf.reduce_sum(x * x, axis) + 1e-12). "
        "To\n    divide by the norm, use tf.nn.l2_normalize(x, axis).\n"
        "  Path from there:\n"
        "    gradient of sum\n"
        "    gradient of multiply\n"
        "    the gradient with respect to 'x:0'"
    )


def test_the_origin_closest_to_the_target_is_reported():
    report, _ = autopsy_after_gradient(lambda x: tf.sqrt(tf.norm(x)), [0.0, 0.0])

    assert (report.primitive, report.cause) == ("sqrt", causes.ROOT_AT_ZERO.name)
    assert report.path[0] == "gradient of sqrt"


def test_recorded_backward_pass_is_monitored():
    x = tf.Variable([0.0, 4.0])
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = tf.reduce_sum(tf.sqrt(x * 1.0))
        g = inner.gradient(y, x)
        loss = tf.reduce_sum(g[1:])
    outer.gradient(loss, x)

    assert (inner.autopsy().primitive, inner.autopsy().elements[0].index) == ("sqrt", (0,))


def test_nested_backward_pass_reports_to_the_outer_one():
    report, gradient = autopsy_after_gradient(
        lambda x: tf.reduce_sum(tf.recompute_grad(lambda x: tf.sqrt(x) * 2.0)(x * 1.0)), [4.0, 0.0]
    )

    assert np.isinf(gradient.numpy()[1])
    assert report.direction == "backward"
    assert report.cause == causes.CUSTOM_GRADIENT.name
    assert report.elements[0].index == (1,)


def test_overflow_in_a_sum_of_cotangents_is_reported():
    def f(x):
        big = tf.constant(60000.0, tf.float16)
        return x * big + x * big

    report, gradient = autopsy_after_gradient(f, np.float16(0.5))

    assert np.isinf(gradient.numpy())
    assert (report.direction, report.primitive) == ("backward", "multiply")
    assert report.cause == causes.HALF_OVERFLOW.name


def test_sparse_gradients_are_monitored():
    report, gradient = autopsy_after_gradient(
        lambda x: tf.reduce_sum(tf.gather(tf.sqrt(x), [0, 2])), [0.0, 1.0, 4.0]
    )

    assert np.isinf(gradient.numpy()[0])
    assert (report.primitive, report.elements[0].index) == ("sqrt", (0,))


def test_flags_of_worker_threads_are_monitored(monkeypatch):
    monkeypatch.setattr(blocks, "processors", lambda: 2)
    x = np.ones(blocks.MIN_THREADED_SIZE_IF_CHEAP, np.float32)
    x[-1] = 0.0  # in the block of the other thread

    report, gradient = autopsy_after_gradient(lambda x: tf.reduce_sum(tf.sqrt(x)), x)

    assert np.isinf(gradient.numpy()[-1])
    assert (report.primitive, report.elements[0].index) == (
        "sqrt",
        (blocks.MIN_THREADED_SIZE_IF_CHEAP - 1,),
    )


def test_nonfinite_output_gradients_are_found():
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        y = x * 2.0
    tape.gradient(y, x, output_gradients=tf.constant([1.0, np.nan]))

    assert tape.autopsy().cause == causes.OUTPUT_GRADIENTS.name


def test_origin_without_a_flag_is_unknown():
    @tf.custom_gradient
    def nonfinite(x):
        return x * 1.0, lambda _: tf.constant([np.inf, 1.0])

    report, gradient = autopsy_after_gradient(lambda x: nonfinite(x * 0.0), [1.0, 2.0])

    assert np.isnan(gradient.numpy()[0])
    assert (report.direction, report.cause) == ("unknown", causes.UNKNOWN.name)
    assert report.summary == "In the backward pass, the cotangent of multiply already contained Inf"
    assert report.elements[0].index == (0,)
    assert report.path == ("gradient of multiply", "the gradient with respect to 'x:0'")


# Lines from the source code


def test_the_only_line_that_qualifies_is_named():
    x = tf.Variable([0.0, 4.0])
    with tf.GradientTape() as tape:
        y = x * 2.0
        root = tf.sqrt(y)
        loss = tf.reduce_sum(root)
    tape.gradient(loss, x)
    report = tape.autopsy()

    assert report.location is None
    assert report.likely_line.endswith(
        "test_floating_point_flags.py:" + report.likely_line.split(":")[1] + ": root = tf.sqrt(y)"
    )
    assert str(report).splitlines()[1] == f"  {report.likely_line}"
    assert report.note == ""


@pytest.mark.parametrize(
    ("block", "primitive", "expected"),
    [
        ("y = tf.norm(x)", "sqrt", "y = tf.norm(x)"),
        ("y = x ** 0.5\n    z = y * 2.0", "power", "y = x ** 0.5"),
        ("y = 1.0 / x", "divide", "y = 1.0 / x"),
        ("y = atan2(x, x)", "atan2", "y = atan2(x, x)"),
        ("y = tf.sqrt(x)\n    z = tf.norm(y)", "sqrt", None),  # two lines qualify
        ("y = model(x)", "sqrt", None),  # no line qualifies
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

    report = likely_line(str(program), last, primitive)

    assert (report and report[1]) == expected
    assert expected is None or report[0] == 4


def test_an_unreadable_program_has_no_likely_line(tmp_path):
    (tmp_path / "broken.py").write_text("with (")

    assert likely_line(str(tmp_path / "broken.py"), 1, "sqrt") is None
    assert likely_line("<nowhere>", 1, "sqrt") is None


# Finite gradients


def used_tape(f, x):
    x = tf.Variable(x, name="x")
    with tf.GradientTape() as tape:
        y = f(x)
    return tape, tape.gradient(y, x)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: tf.reduce_sum(x * x),
        lambda x: tf.reduce_sum(
            tf.where(x > 0.0, tf.math.log(x), 0.0)
        ),  # raises the flag, but the gradient is finite
        lambda x: tf.reduce_sum(tf.where(x > 0.0, tf.sqrt(x), 0.0) * 2.0),
    ],
)
def test_finite_gradients_keep_no_entries(f):
    tape, gradient = used_tape(f, [0.0, 1.0])
    where = f"{__file__}:{tape._used_at[1]}"

    assert np.isfinite(gradient.numpy()).all()
    assert tape._last_gradient is None
    assert not tape.autopsy()
    assert " ".join(str(tape.autopsy()).split()) == (
        f"NumPy detected no NaN or Inf in the backward pass at {where}. "
        "NumPy does not check computations of XLA and of SciPy's special functions. If a gradient "
        "is NaN anyway, create the tape with lines=True, which keeps all values, and run it again."
    )


def test_nonfinite_cotangents_of_other_inputs_keep_no_entries():
    x, w = tf.Variable([0.0, 1.0]), tf.Variable([2.0, 3.0])
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(tf.sqrt(x) * w)
    assert np.isfinite(tape.gradient(y, w).numpy()).all()

    assert tape._last_gradient is None


@pytest.fixture
def _no_garbage_collection():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("_no_garbage_collection")
def test_a_flag_with_finite_gradients_delays_no_freeing():
    """Entries are freed as the pass proceeds, before and after the flag is raised."""
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


@pytest.mark.usefixtures("_no_garbage_collection")
def test_kept_entries_are_freed_with_the_tape():
    x = tf.Variable([0.0, 1.0])
    with tf.GradientTape() as tape:
        h = tf.exp(x * 1.0)
        y = tf.sqrt(tf.math.log(h))
    array_ref = weakref.ref(h._array)
    del h
    tape.gradient(y, x)

    assert array_ref() is not None  # kept for autopsy
    del tape
    assert array_ref() is None


def test_jacobian_does_not_monitor_flags():
    x = tf.Variable([0.0, 1.0])
    with tf.GradientTape() as tape:
        y = tf.sqrt(x)
    tape.jacobian(y, x)
    line = tape._used_at[1]

    assert_raises(
        tape.autopsy,
        RuntimeError,
        f"autopsy: this tape freed its recording in the backward pass at {__file__}:{line}.\n"
        "Create the tape with persistent=True or lines=True, or call autopsy() before gradient().",
    )


def test_entries_kept_for_autopsy_are_not_used_otherwise():
    tape, _ = used_tape(lambda x: tf.sqrt(x), [0.0, 1.0])
    line = tape._used_at[1]

    assert str(tape) == f"<GradientTape, 1 watched, used by gradient() at {__file__}:{line}>"
    with pytest.raises(RuntimeError, match="freed its recording"):
        tape.graph(tf.constant(1.0))
