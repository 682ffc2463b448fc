"""tape.verify(): the first wrong rule is named, kinks are told from mistakes."""

import numpy as np
import pytest

import retrograde as tf
from tests.namespaces.helpers import assert_raises

rng = np.random.default_rng(7)
SQUARE = rng.standard_normal((4, 4))


def verified(f, x, dtype=tf.float32, **options):
    """What `verify` says of `f(x)`, from a tape that keeps all."""
    x = tf.Variable(tf.cast(x, dtype))
    with tf.GradientTape(lines=True) as tape:
        y = f(x)
    return tape.verify(y, x, **options)


@tf.custom_gradient
def wrong_cube(x):
    return x**3, lambda g: g * 2.0 * x**2


@tf.custom_gradient
def right_cube(x):
    return x**3, lambda g: g * 3.0 * x**2


# Right rules are found right, on the values of a float32 program.

RIGHT = [
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
    right_cube,
    tf.recompute_grad(lambda x: tf.sin(x) * x),
]


@pytest.mark.parametrize("f", RIGHT)
def test_right_rules_are_found_right(f):
    report = verified(f, SQUARE)

    assert report, str(report)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "complex64"])
def test_every_dtype_is_checked_in_double_precision(dtype):
    report = verified(lambda x: tf.sin(x) * x, SQUARE, dtype)

    assert report
    assert (report.checked, report.skipped) == (2, ())


# Wrong rules


def test_the_first_wrong_rule_is_named_with_its_line_and_element():
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
    assert report.place.text == "z = wrong_cube(y)"
    assert report.value == pytest.approx(np.exp(1.0), rel=1e-6)
    assert report.rule / report.slopes[0] == pytest.approx(2 / 3, rel=1e-4)
    assert str(report).splitlines()[0] == "The rule of wrong_cube is wrong."
    assert str(report).splitlines()[2:] == [
        "  At element [0] of input 0, which is 2.71828 there, for a random cotangent:",
        f"    the rule says  {report.rule:.6g}",
        f"    the slope is   {sum(report.slopes) / 2:.6g}",
        "  1 calls before it are right.",
    ]


def test_one_wrong_element_among_many_is_found():
    factor = np.ones(1000)
    factor[637] = 1.001

    @tf.custom_gradient
    def nearly(x):
        return tf.square(x), lambda g: g * 2.0 * x * tf.constant(factor, g.dtype)

    assert verified(nearly, np.linspace(1.0, 2.0, 1000)).index == (637,)


def test_a_function_that_insists_on_its_dtype_is_checked_in_it():
    weights = tf.constant([2.0, 3.0])

    def make(slope):
        @tf.custom_gradient
        def weighed(x):
            return x * weights, lambda g: g * weights * slope

        return weighed

    assert verified(make(1.0), [1.0, 2.0])
    wrong = verified(make(1.2), [1.0, 2.0])
    assert not wrong
    assert wrong.rule / wrong.slopes[1] == pytest.approx(1.2, rel=0.02)


def test_gradients_of_variables_that_a_function_reads_are_checked():
    v = tf.Variable([2.0, 3.0])

    def make(slope):
        @tf.custom_gradient
        def scaled(x):
            def grad(g, variables):  # noqa: ARG001
                return g * v, [g * x * slope]

            return x * v, grad

        return scaled

    assert verified(make(1.0), [1.0, 2.0])
    wrong = verified(make(2.0), [1.0, 2.0])
    assert (wrong.primitive, wrong.input) == ("scaled", 1)
    assert v.dtype is tf.float32
    np.testing.assert_array_equal(v.numpy(), [2.0, 3.0])


def test_none_for_an_input_that_matters_is_a_mistake():
    @tf.custom_gradient
    def product(x, y):
        return x * y, lambda g: (g * y, None)

    report = verified(lambda x: product(x, x + 1.0), [1.0, 2.0])

    assert (report.primitive, report.input, report.rule) == ("product", 1, 0.0)


def test_a_straight_through_estimator_is_no_derivative():
    report = verified(tf.grad_pass_through(tf.round), [0.3, 1.2])

    assert not report
    assert report.primitive == "round"
    assert report.slopes == (0.0, 0.0)


def test_a_rule_that_is_neither_side_of_a_kink_is_a_mistake():
    def make(at_zero):
        @tf.custom_gradient
        def ramp(x):
            slope = tf.where(x > 0.0, 1.0, tf.where(x < 0.0, 0.0, at_zero))
            return tf.nn.relu(x), lambda g: g * tf.cast(slope, g.dtype)

        return ramp

    values = [1.0, 0.0, -1.0]
    inside, outside = verified(make(0.3), values), verified(make(1.5), values)
    assert inside
    assert inside.kinks == ("ramp",)
    assert not outside
    assert outside.index == (1,)


def test_a_function_with_random_numbers_draws_the_same_ones():
    @tf.custom_gradient
    def dropped(x):
        mask = tf.cast(tf.random.uniform([50]) > 0.5, x.dtype)
        return x * mask, lambda g: g * mask

    assert verified(dropped, np.ones(50))


def test_several_outputs_and_structures_are_checked():
    @tf.custom_gradient
    def both(pair):
        a, b = pair["a"], pair["b"]
        return (a * b, a + b), lambda g, h: {"a": g * b + h, "b": g * a + 2.0 * h}

    report = verified(lambda x: sum(both({"a": x, "b": x * 2.0})), [1.0, 2.0])

    assert (report.primitive, report.input) == ("both", 1)


# Kinks


def test_kinks_are_counted_and_no_mistakes():
    report = verified(lambda x: tf.nn.relu(x) * 2.0, [0.0, 1.0, -1.0, 0.0])

    assert report
    assert report.kinks == ("relu", "relu")
    assert str(report) == (
        "The rules of 2 calls agree with finite differences.\n"
        "  2 kinks, at which any slope will do: relu."
    )


def test_many_kinks_do_not_hide_a_mistake():
    @tf.custom_gradient
    def ramp(x):
        return tf.nn.relu(x), lambda g: g * tf.where(x > 0.0, 1.1, 0.0)

    values = np.zeros(1000)
    values[500] = 1.0
    assert verified(tf.nn.relu, values)
    report = verified(ramp, values)
    assert (bool(report), report.index) == (False, (500,))


# What is looked at


def test_only_the_way_to_the_target_is_checked():
    x, other = tf.Variable([1.0]), tf.Variable([2.0])
    with tf.GradientTape() as tape:
        wrong_cube(x)
        y = tf.sin(x) * wrong_cube(other)
    assert tape.verify(y, x)
    assert not tape.verify(y)
    assert not tape.verify(y, [other])


def test_inputs_that_the_tape_let_go_are_replaced_if_no_rule_reads_them():
    x = tf.Variable(SQUARE)
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(tf.exp(tf.reshape(x + 1.0, [2, 8])), axis=1)
    report = tape.verify(y, x)

    assert report
    assert (report.checked, report.skipped) == (2, ("add", "exp"))
    assert str(report).splitlines()[1:] == [
        "  2 calls were not checked, since their inputs are not known: add, exp. A tape with "
        "lines=True",
        "    keeps them.",
    ]


def test_values_are_those_of_before_the_update():
    x = tf.Variable([2.0])
    with tf.GradientTape(persistent=True) as tape:
        y = wrong_cube(x)
    tape.gradient(y, x)

    assert tape.verify(y, x).value == 2.0


def test_a_tape_that_let_go_says_what_to_do():
    x = tf.Variable([1.0])
    with tf.GradientTape() as tape:
        y = x * x
    tape.gradient(y, x)
    assert_raises(
        lambda: tape.verify(y, x),
        RuntimeError,
        "verify: this tape let go of what it recorded in the walk back at "
        f"{__file__}:{tape._used_at[1]}.\nTo be able to ask, make the tape with persistent=True "
        "or lines=True, or ask before gradient().",
    )


def test_nothing_is_recorded_or_left_behind():
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape(persistent=True) as tape:
        y = right_cube(x)
        calls = len(tape._entries)
        assert tape.verify(y, x)
        assert len(tape._entries) == calls
