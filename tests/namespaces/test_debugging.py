"""Tests `tf.debugging`: assertions, their messages, and checks for NaN and Inf."""

import json
import pathlib
import threading

import numpy as np
import pytest

import retrograde as tf
from retrograde.core.apply import PRIMITIVES
from retrograde.core.recorders import thread
from retrograde.diagnose.nonfinite import monitor
from retrograde.testing import check_gradients
from tests.data.recorded_results import evaluate, is_close
from tests.namespaces.helpers import assert_raises

DATA = pathlib.Path(__file__).parents[1] / "data"
EXPECTED = json.loads((DATA / "debugging_results.json").read_text())
Invalid = tf.errors.InvalidArgumentError


@pytest.mark.parametrize("call", EXPECTED)
def test_result_matches_tensorflow(call):
    actual = evaluate(call, tf)

    assert is_close(actual, EXPECTED[call]), f"got {actual}, expected {EXPECTED[call]}"


# check_numerics


def test_check_numerics_is_the_identity_for_derivatives():
    x = tf.constant([0.5, -2.0], tf.float64)

    check_gradients(
        lambda x: tf.sin(tf.debugging.check_numerics(x, "x")), [x], modes=("reverse", "forward")
    )


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_check_numerics_names_nan_and_inf(dtype):
    def call(*values):
        return lambda: tf.debugging.check_numerics(tf.constant(values, dtype), "loss")

    assert_raises(call(1.0, np.nan), Invalid, "loss : Tensor had NaN values")
    assert_raises(call(-np.inf), Invalid, "loss : Tensor had Inf values")
    assert_raises(call(np.nan, np.inf), Invalid, "loss : Tensor had Inf and NaN values")
    assert call(1.0, 2.0)().dtype.name == dtype


def test_check_numerics_checks_the_gradient():
    x = tf.constant(0.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.sqrt(tf.debugging.check_numerics(x, "x"))

    assert_raises(
        lambda: tape.gradient(y, x),
        Invalid,
        "Not a number (NaN) or infinity (Inf) values detected in gradient. x : Tensor had Inf "
        "values",
    )


# enable_check_numerics


@pytest.fixture
def checking():
    tf.debugging.enable_check_numerics()
    yield
    tf.debugging.disable_check_numerics()


@pytest.mark.usefixtures("checking")
class TestEnabled:
    def test_an_operation_that_produces_inf_is_named_with_its_inputs(self):
        with pytest.raises(Invalid) as caught:
            tf.constant([1.0, -1.0, 0.0]) / 0.0
        first, summary, where, *rest = str(caught.value).splitlines()

        assert first == (
            'Detected Infinity or NaN in output 0 of eagerly-executing op "divide" '
            "(# of outputs: 1)"
        )
        assert summary == "In the forward pass, divide produced NaN from finite inputs."
        assert where.endswith(": tf.constant([1.0, -1.0, 0.0]) / 0.0")
        assert rest == [
            "  3 of 3 elements are non-finite:",
            "    [0] divide(1, 0) = inf",
            "    [1] divide(-1, 0) = -inf",
            "    [2] divide(0, 0) = nan",
            "  Why: x / 0 is Inf, and 0 / 0 is NaN.",
            "  Fix: Use tf.math.divide_no_nan(x, y), which is 0 where y is 0, or x / (y + 1e-7) "
            "for",
            "    non-negative y.",
        ]

    @pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
    def test_every_float_dtype_is_checked(self, dtype):
        with pytest.raises(Invalid):
            tf.math.log(tf.constant(-1.0, dtype))

    def test_a_gradient_is_checked(self):
        x = tf.Variable(0.0)
        with tf.GradientTape() as tape:
            y = tf.sqrt(x)
        with pytest.raises(Invalid, match="Detected Infinity or NaN"):
            tape.gradient(y, x)

    def test_a_variable_with_nan_raises_when_it_is_used(self):
        with pytest.raises(Invalid):
            tf.Variable(np.nan) + 0.0

    def test_constants_and_operations_that_only_move_values_do_not_raise(self):
        x = tf.constant([np.nan, np.inf])
        for moved in (tf.identity(x), tf.reshape(x, [2, 1]), tf.concat([x, x], 0), x[0], x[::-1]):
            assert np.isnan(moved.numpy()).any()
        assert tf.math.log(tf.constant(-1, tf.complex64)).dtype is tf.complex64

    def test_finite_values_do_not_raise(self):
        x = tf.Variable(3.0)
        with tf.GradientTape() as outer:
            with tf.GradientTape() as inner:
                y = x**3.0
            g = inner.gradient(y, x)
        assert [float(g), float(outer.gradient(g, x))] == [27.0, 18.0]

    def test_other_threads_are_not_checked(self):
        results = []
        other = threading.Thread(target=lambda: results.append(tf.math.log(tf.constant(-1.0))))
        other.start()
        other.join()
        assert np.isnan(float(results[0]))


def test_pass_through_primitives_exist():
    assert set(PRIMITIVES) >= monitor.PASS_THROUGH


def test_checks_can_be_enabled_and_disabled_twice():
    for _ in range(2):
        tf.debugging.enable_check_numerics()
    for _ in range(2):
        tf.debugging.disable_check_numerics()

    assert np.isnan(float(tf.math.log(-1.0)))
    assert list(thread.recorders) == []


def test_checks_can_be_enabled_while_a_tape_records():
    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        tf.debugging.enable_check_numerics()
        y = x * x
        tf.debugging.disable_check_numerics()

    assert float(tape.gradient(y, x)) == 4.0


# Settings


def test_settings_are_remembered():
    tf.debugging.set_log_device_placement(True)
    assert tf.debugging.get_log_device_placement()
    tf.debugging.set_log_device_placement(False)


# Messages

ONES = tf.ones([2, 3])
X = "shape=(2, 3) dtype=float32"


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (
            lambda: tf.debugging.assert_equal([1, 2, 3], [1, 5, 6], message="hey"),
            Invalid,
            "hey\nCondition x == y did not hold.\nIndices of first 2 different values:\n"
            "[[1]\n [2]]\nCorresponding x values:\n[2 3]\nCorresponding y values:\n[5 6]\n"
            "First 3 elements of x:\n[1 2 3]\nFirst 3 elements of y:\n[1 5 6]",
        ),
        (
            lambda: tf.debugging.assert_equal(tf.range(10), 0, summarize=-1),
            Invalid,
            "Condition x == y did not hold.\nFirst 10 elements of x:\n[0 1 2 3 4 5 6 7 8 9]\n"
            "First 1 elements of y:\n[0]",
        ),
        (
            lambda: tf.debugging.assert_equal("a", "b"),
            Invalid,
            "Condition x == y did not hold.\nFirst 1 elements of x:\n[b'a']\n"
            "First 1 elements of y:\n[b'b']",
        ),
        (
            lambda: tf.debugging.assert_less([[1.0, 2.0]], [[2.0, 1.0]], summarize=1),
            Invalid,
            "Condition x < y did not hold.\nIndices of first 1 different values:\n[[0 1]]\n"
            "Corresponding x values:\n[2.]\nCorresponding y values:\n[1.]\n"
            "First 1 elements of x:\n[1.]\nFirst 1 elements of y:\n[2.]",
        ),
        (
            lambda: tf.debugging.assert_near([1.0, 2.0], [1.0, 2.5], rtol=0.0, message="mm"),
            Invalid,
            "mm.  \nx and y not equal to tolerance rtol = 0.0, atol = 1.1920928955078125e-06\n"
            "x (shape=(2,) dtype=float32) = \n1.0, 2.0\n"
            "y (shape=(2,) dtype=float32) = \n1.0, 2.5",
        ),
        (
            lambda: tf.debugging.assert_near(1, 1),
            ValueError,
            "assert_near: `x` has dtype int32. Expected a floating-point or complex dtype. Use "
            "assert_equal for other dtypes.",
        ),
        (
            lambda: tf.debugging.assert_positive([1, 2, 3, 0], message="m"),
            Invalid,
            "m.  \nCondition x > 0 did not hold element-wise:\n"
            "x (shape=(4,) dtype=int32) = \n1, 2, 3, ...",
        ),
        (
            lambda: tf.debugging.Assert(0, [1, "a", [1, 2, 3, 4]], summarize=2),
            Invalid,
            "Expected '0' to be true. Summarized data: 1\nb'a'\n1, 2, ...",
        ),
        (
            lambda: tf.debugging.Assert(False, 1),
            TypeError,
            "Assert: `data` must be a list. Received: 1.",
        ),
        (
            lambda: tf.debugging.assert_rank(ONES, 1, message="m"),
            ValueError,
            "m.  Tensor must have rank 1.  Received rank 2, shape (2, 3)",
        ),
        (
            lambda: tf.debugging.assert_rank(ONES, [1]),
            ValueError,
            "Rank must be a scalar. Received: [1].",
        ),
        (
            lambda: tf.debugging.assert_rank_at_least(ONES, 3),
            ValueError,
            "Tensor must have rank at least 3.  Received rank 2, shape (2, 3)",
        ),
        (
            lambda: tf.debugging.assert_rank_in(ONES, [0, 1]),
            ValueError,
            "Tensor must have rank in (0, 1).  Received rank 2, shape (2, 3)",
        ),
        (
            lambda: tf.debugging.assert_scalar(ONES),
            ValueError,
            "Expected scalar shape, saw shape: (2, 3).",
        ),
        (
            lambda: tf.debugging.assert_type(1.0, tf.int32, message="m"),
            TypeError,
            "m.  tensor must be of type tf.int32; got tf.float32",
        ),
        (
            lambda: tf.debugging.assert_integer(1.0),
            TypeError,
            'Expected "x" to be integer type.  Found: tensor of dtype tf.float32',
        ),
        (
            lambda: tf.debugging.assert_proper_iterable("a"),
            TypeError,
            'Expected argument "values" to be a "proper" iterable.  Found: <class \'str\'>',
        ),
        (
            lambda: tf.debugging.assert_proper_iterable(3),
            TypeError,
            "Expected argument \"values\" to be iterable.  Found: <class 'int'>",
        ),
        (
            lambda: tf.debugging.assert_same_float_dtype(
                [tf.constant(1.0), tf.constant(1.0, tf.float64)]
            ),
            ValueError,
            "assert_same_float_dtype: tf.Tensor(1.0, shape=(), dtype=float64) has dtype "
            "tf.float64. Expected the dtype of the first tensor, tf.float32.",
        ),
        (
            lambda: tf.debugging.assert_same_float_dtype([tf.constant(1.0)], tf.float64),
            ValueError,
            "assert_same_float_dtype: tf.Tensor(1.0, shape=(), dtype=float32) has dtype "
            "tf.float32. Expected `dtype`, tf.float64.",
        ),
        (
            lambda: tf.debugging.assert_same_float_dtype(dtype=tf.int32),
            ValueError,
            "Expected floating point type, got tf.int32.",
        ),
        (
            lambda: tf.debugging.check_numerics(1.0, 3),
            TypeError,
            "check_numerics: expected a string for `message`. Received: 3.",
        ),
        (
            lambda: tf.debugging.check_numerics(1, "m"),
            Invalid,
            "check_numerics: dtype int32 is not supported. Expected one of float16, bfloat16, "
            "float32, float64.",
        ),
        (
            lambda: tf.debugging.assert_shapes([(ONES, (2, 4))], message="m"),
            ValueError,
            f"m.  Specified explicitly.  Tensor {X} dimension 1 must have size 4.  Received size "
            "3, shape (2, 3)",
        ),
        (
            lambda: tf.debugging.assert_shapes([(ONES, "ab"), (tf.ones([4]), "a")]),
            ValueError,
            f"Specified by tensor {X} dimension 0.  Tensor shape=(4,) dtype=float32 dimension 0 "
            "must have size 2.  Received size 4, shape (4,)",
        ),
        (
            lambda: tf.debugging.assert_shapes([(ONES, ("a", "*"))]),
            ValueError,
            f"Tensor {X} specified shape index 1.  Symbol `...` or `*` for any number of axes is "
            "only allowed as the first entry",
        ),
        (
            lambda: tf.debugging.assert_shapes([(ONES, 2)]),
            ValueError,
            f"Tensor {X}.  Specified shape must be an iterable. Received: 2",
        ),
        (
            lambda: tf.debugging.assert_shapes([(ONES, (tf.constant(2), 3))]),
            ValueError,
            f"Tensor {X}.  Expected sizes and letters. Received: <tf.Tensor: shape=(), "
            "dtype=int32, numpy=2>",
        ),
    ],
)
def test_message(call, kind, message):
    assert_raises(call, kind, message)
