"""Tests `tape.verify()`."""

import numpy as np
import pytest

import retrograde as tf
from tests.namespaces.helpers import assert_raises

rng = np.random.default_rng(7)
SQUARE = rng.standard_normal((4, 4))


def verify(f, x, dtype=tf.float32, **options):
    """Returns the verification of `f(x)`, from a tape with lines."""
    x = tf.Variable(tf.cast(x, dtype))
    with tf.GradientTape(lines=True) as tape:
        y = f(x)
    return tape.verify(y, x, **options)


@tf.custom_gradient
def wrong_cube(x):
    return x**3, lambda g: g * 2.0 * x**2


@tf.custom_gradient
def correct_cube(x):
    return x**3, lambda g: g * 3.0 * x**2


# Correct gradients, at float32 values

CORRECT = [
    lambda x: tf.sin(x) * tf.exp(x) / (1.0 + tf.square(x)),
    lambda x: tf.nn.softmax(x @ x) + tf.nn.log_softmax(x),
    lambda x: tf.nn.gelu(x) + tf.nn.softplus(x) + tf.sigmoid(x),
    lambda x: tf.reduce_logsumexp(x, axis=1) + tf.reduce_prod(x, axis=0),
    lambda x: tf.linalg.inv(x + 5.0 * tf.eye(4)),
    lambda x: tf.linalg.svd(x)[0],
    lambda x: tf.linalg.cholesky(x @ tf.transpose(x) + tf.eye(4)),
    lambda x: tf.linalg.eigh(x @ tf.transpose(x))[0] + tf.linalg.eigvalsh(x @ tf.transpose(x)),
    lambda x: tf.gather(x, [0, 2, 2]) + tf.concat([x[:1], x[1:3]], axis=0),
    lambda x: tf.where(x > 0.0, x * 2.0, tf.exp(x)),
    lambda x: tf.nn.conv2d(x[None, :, :, None], tf.ones([2, 2, 1, 3]), 1, "SAME"),
    lambda x: tf.nn.max_pool2d(x[None, :, :, None], 2, 2, "VALID"),
    lambda x: tf.math.abs(tf.signal.fft(tf.cast(x, tf.complex64))),
    lambda x: tf.math.top_k(x, 2).values + tf.sort(x)[:, :2],
    lambda x: tf.math.unsorted_segment_sum(x, [0, 1, 1, 0], 2),
    lambda x: tf.einsum("ij,kj->ik", x, x) + tf.cumsum(x),
    lambda x: tf.math.lgamma(tf.abs(x) + 0.1) + tf.math.erf(x),
    lambda x: x * tf.cast(tf.round(x), x.dtype),
    correct_cube,
    tf.recompute_grad(lambda x: tf.sin(x) * x),
]


@pytest.mark.parametrize("f", CORRECT)
def test_correct_gradients_are_accepted(f):
    report = verify(f, SQUARE)

    assert report, str(report)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "complex64"])
def test_every_dtype_is_checked_in_double_precision(dtype):
    report = verify(lambda x: tf.sin(x) * x, SQUARE, dtype)

    assert report
    assert (report.checked, report.skipped) == (2, ())


# Wrong gradients


def test_the_first_wrong_gradient_is_named_with_its_line_and_element():
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape(lines=True) as tape:
        y = tf.exp(x)
        z = wrong_cube(y)
        z = wrong_cube(z)
    report = tape.verify(z, x)

    assert not report
    assert (report.primitive, report.input, report.index, report.checked) == (
        "wrong_cube",
        0,
        (0,),
        2,
    )
    assert report.location.text == "z = wrong_cube(y)"
    assert report.value == pytest.approx(np.exp(1.0), rel=1e-6)
    assert report.gradient / report.differences[0] == pytest.approx(2 / 3, rel=1e-4)
    assert str(report).splitlines()[0] == "The gradient of wrong_cube is wrong."
    assert str(report).splitlines()[2:] == [
        "  At element [0] of input 0, with value 2.71828, for a random upstream gradient:",
        f"    gradient           {report.gradient:.6g}",
        f"    finite difference  {sum(report.differences) / 2:.6g}",
        "  The gradients of 1 earlier call are correct.",
    ]


def test_one_wrong_element_among_many_is_found():
    factor = np.ones(1000)
    factor[637] = 1.001

    @tf.custom_gradient
    def almost_square(x):
        return tf.square(x), lambda g: g * 2.0 * x * tf.constant(factor, g.dtype)

    assert verify(almost_square, np.linspace(1.0, 2.0, 1000)).index == (637,)


def test_a_function_that_requires_its_dtype_is_checked_in_it():
    weights = tf.constant([2.0, 3.0])

    def make(factor):
        @tf.custom_gradient
        def apply_weights(x):
            return x * weights, lambda g: g * weights * factor

        return apply_weights

    assert verify(make(1.0), [1.0, 2.0])
    wrong = verify(make(1.2), [1.0, 2.0])
    assert not wrong
    assert wrong.gradient / wrong.differences[1] == pytest.approx(1.2, rel=0.02)


def test_gradients_of_variables_that_a_function_reads_are_checked():
    v = tf.Variable([2.0, 3.0])

    def make(factor):
        @tf.custom_gradient
        def scale(x):
            def grad(g, variables):  # noqa: ARG001
                return g * v, [g * x * factor]

            return x * v, grad

        return scale

    assert verify(make(1.0), [1.0, 2.0])
    wrong = verify(make(2.0), [1.0, 2.0])
    assert (wrong.primitive, wrong.input) == ("scale", 1)
    assert v.dtype is tf.float32
    np.testing.assert_array_equal(v.numpy(), [2.0, 3.0])


def test_none_for_a_used_input_is_wrong():
    @tf.custom_gradient
    def product(x, y):
        return x * y, lambda g: (g * y, None)

    report = verify(lambda x: product(x, x + 1.0), [1.0, 2.0])

    assert (report.primitive, report.input, report.gradient) == ("product", 1, 0.0)


def test_a_straight_through_estimator_is_not_the_derivative():
    report = verify(tf.grad_pass_through(tf.round), [0.3, 1.2])

    assert not report
    assert report.primitive == "round"
    assert report.differences == (0.0, 0.0)


def test_a_gradient_that_is_not_a_subgradient_is_wrong():
    def make(at_zero):
        @tf.custom_gradient
        def ramp(x):
            derivative = tf.where(x > 0.0, 1.0, tf.where(x < 0.0, 0.0, at_zero))
            return tf.nn.relu(x), lambda g: g * tf.cast(derivative, g.dtype)

        return ramp

    values = [1.0, 0.0, -1.0]
    inside, outside = verify(make(0.3), values), verify(make(1.5), values)
    assert inside
    assert inside.nondifferentiable == ("ramp",)
    assert not outside
    assert outside.index == (1,)


def test_random_functions_are_called_with_the_same_random_numbers():
    @tf.custom_gradient
    def dropout(x):
        mask = tf.cast(tf.random.uniform([50]) > 0.5, x.dtype)
        return x * mask, lambda g: g * mask

    assert verify(dropout, np.ones(50))


def test_several_outputs_and_structures_are_checked():
    @tf.custom_gradient
    def both(pair):
        a, b = pair["a"], pair["b"]
        return (a * b, a + b), lambda g, h: {"a": g * b + h, "b": g * a + 2.0 * h}

    report = verify(lambda x: sum(both({"a": x, "b": x * 2.0})), [1.0, 2.0])

    assert (report.primitive, report.input) == ("both", 1)


# Non-differentiable points


def test_non_differentiable_points_are_counted_and_accepted():
    report = verify(lambda x: tf.nn.relu(x) * 2.0, [0.0, 1.0, -1.0, 0.0])

    assert report
    assert report.nondifferentiable == ("relu", "relu")
    assert str(report) == (
        "The gradients of 2 calls agree with finite differences.\n"
        "  2 non-differentiable points, where any subgradient is accepted: relu."
    )


def test_a_wrong_gradient_among_many_non_differentiable_points_is_found():
    @tf.custom_gradient
    def ramp(x):
        return tf.nn.relu(x), lambda g: g * tf.where(x > 0.0, 1.1, 0.0)

    values = np.zeros(1000)
    values[500] = 1.0
    assert verify(tf.nn.relu, values)
    report = verify(ramp, values)
    assert (bool(report), report.index) == (False, (500,))


# The calls that are checked


def test_only_the_path_to_the_target_is_checked():
    x, other = tf.Variable([1.0]), tf.Variable([2.0])
    with tf.GradientTape() as tape:
        wrong_cube(x)
        y = tf.sin(x) * wrong_cube(other)
    assert tape.verify(y, x)
    assert not tape.verify(y)
    assert not tape.verify(y, [other])


def test_unsaved_inputs_are_replaced_if_no_gradient_reads_them():
    x = tf.Variable(SQUARE)
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(tf.exp(tf.reshape(x + 1.0, [2, 8])), axis=1)
    report = tape.verify(y, x)

    assert report
    assert (report.checked, report.skipped) == (2, ("add", "exp"))
    assert str(report).splitlines()[1:] == [
        "  Not checked, because the tape did not save their inputs: add, exp. A tape with "
        "lines=True",
        "    saves all inputs.",
    ]


def test_values_are_from_the_time_of_the_call():
    x = tf.Variable([2.0])
    with tf.GradientTape(persistent=True) as tape:
        y = wrong_cube(x)
    tape.gradient(y, x)

    assert tape.verify(y, x).value == 2.0


def test_a_used_tape_raises():
    x = tf.Variable([1.0])
    with tf.GradientTape() as tape:
        y = x * x
    tape.gradient(y, x)
    assert_raises(
        lambda: tape.verify(y, x),
        RuntimeError,
        "verify: this tape freed its recording in the backward pass at "
        f"{__file__}:{tape._used_at[1]}.\nCreate the tape with persistent=True or lines=True, or "
        "call verify() before gradient().",
    )


def test_verify_does_not_record():
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape(persistent=True) as tape:
        y = correct_cube(x)
        calls = len(tape._entries)
        assert tape.verify(y, x)
        assert len(tape._entries) == calls
