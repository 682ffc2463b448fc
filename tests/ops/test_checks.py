"""Tests `check_gradients` with correct and with wrong gradients."""

import re

import numpy as np
import pytest

import retrograde as tf
from retrograde.testing import check_gradients

X = np.array([0.3, -0.7, 1.1])
MATRIX = np.array([[0.3, -0.7], [1.1, 0.4]])
BOTH = ("reverse", "forward")


def with_gradient(f, rule):
    """Returns `f` with the gradient `rule(g, *args)`."""

    @tf.custom_gradient
    def f_with_gradient(*args):
        return f(*args), lambda g: rule(g, *args)

    return f_with_gradient


@pytest.mark.parametrize("mode", BOTH)
@pytest.mark.parametrize(
    ("f", "args"),
    [
        (lambda x: tf.sin(x) * x, [X]),
        (lambda a, b: tf.matmul(a, b), [MATRIX, MATRIX + 1.0]),
        (lambda x: {"a": tf.exp(x), "b": [tf.reduce_prod(x)]}, [X]),
        (lambda x, i: tf.gather(x, i) ** 3.0, [X, [2, 0, 2]]),
        (lambda z: tf.abs(z * z) * tf.math.real(tf.exp(z)), [np.array([1 + 2j, 0.5j])]),
        (lambda z: tf.math.conj(z) / (z + 2.0), [np.array([1 + 2j, 0.5j])]),
        (with_gradient(tf.sin, lambda g, x: g * tf.cos(x)), [X]),
        (lambda x: tf.split(tf.nn.softmax(x), 3), [X]),
    ],
    ids=[
        "product",
        "matmul",
        "structure",
        "gather",
        "real_of_complex",
        "complex",
        "custom",
        "split",
    ],
)
def test_correct_gradients_are_accepted_to_third_order(f, args, mode):
    check_gradients(f, args, order=3, modes=[mode])


WRONG = {
    "factor": (tf.sin, lambda g, x: g * tf.cos(x) * 1.001, [X], 1),
    "sign": (tf.cos, lambda g, x: g * tf.sin(x), [X], 1),
    "zero": (tf.nn.softmax, lambda g, x: tf.zeros_like(x) * g, [X], 1),
    "nothing": (tf.sin, lambda _g, _x: None, [X], 1),
    "identity_for_transpose": (tf.transpose, lambda g, _x: g, [MATRIX], 1),
    "ones_for_upstream": (tf.sin, lambda _g, x: tf.cos(x), [X], 1),
    "no_conjugate": (tf.exp, lambda g, z: g * tf.exp(z), [np.array([0.3 + 1j])], 1),
    "stopped": (tf.sin, lambda g, x: g * tf.stop_gradient(tf.cos(x)), [X], 2),
    "upstream_stopped": (tf.sin, lambda g, x: tf.stop_gradient(g) * tf.cos(x), [X], 2),
}


@pytest.mark.parametrize(("f", "rule", "args", "order"), WRONG.values(), ids=WRONG)
def test_wrong_gradients_are_rejected_at_the_lowest_wrong_order(f, rule, args, order):
    wrong = with_gradient(f, rule)

    for lower in range(1, order):
        check_gradients(wrong, args, order=lower)
    with pytest.raises(AssertionError, match=f"the reverse-mode derivative of order {order} with"):
        check_gradients(wrong, args)


def test_report_names_forward_mode():
    wrong = with_gradient(tf.sin, lambda g, x: 2.0 * g * tf.cos(x))

    with pytest.raises(
        AssertionError, match="the forward-mode derivative of order 1 with respect to argument 0"
    ):
        check_gradients(wrong, [X], modes=["forward"])


def test_report_names_the_argument_and_both_numbers():
    wrong = with_gradient(lambda a, b: a * b, lambda g, a, b: (g * b, 3.0 * g * a))

    with pytest.raises(AssertionError) as caught:
        check_gradients(wrong, [2.0, 5.0], modes=BOTH)

    report = str(caught.value)
    computed, difference = map(float, re.findall(r": +(-?[0-9.]+)", report))
    assert computed == pytest.approx(3 * difference)
    assert report == (
        "check_gradients: the reverse-mode derivative of order 1 with respect to argument 1 is "
        "wrong.\n"
        f"  computed derivative: {computed!r}\n"
        f"  finite difference:   {difference!r}\n"
        "Both are derivatives along a random direction, of a random weighted sum of the outputs."
    )


def test_report_distinguishes_a_missing_gradient_from_zero():
    with pytest.raises(AssertionError, match="computed derivative: None"):
        check_gradients(lambda x: tf.stop_gradient(x) * 2.0, [X])


def test_report_names_the_upstream_gradient():
    """The gradient with respect to x is correct, but none flows to the upstream gradient."""
    wrong = with_gradient(lambda x: 2.0 * x, lambda g, _x: tf.stop_gradient(g) * 2.0)

    with pytest.raises(
        AssertionError, match="of order 2 with respect to upstream gradient 0 of order 1 is"
    ):
        check_gradients(wrong, [X])


def test_piecewise_constant_arguments_are_accepted():
    check_gradients(lambda x, y: x * 2.0 + tf.round(y), [X, X], modes=BOTH)


def test_the_seed_determines_the_directions():
    wrong = with_gradient(tf.sin, lambda g, _x: g)
    reports = []
    for seed in (0, 0, 1):
        with pytest.raises(AssertionError) as caught:
            check_gradients(wrong, [X], seed=seed)
        reports.append(str(caught.value))

    assert reports[0] == reports[1] != reports[2]


def test_single_precision_arguments_raise():
    with pytest.raises(ValueError, match=r"argument 1 has dtype float32\. Expected float64"):
        check_gradients(lambda x, y: x * y, [1.0, np.float32(2.0)])


def test_unknown_modes_raise():
    for modes in (["reverse", "sideways"], []):
        message = (
            "check_gradients: modes must be a non-empty subset of ('reverse', 'forward'). "
            f"Received: {modes}."
        )
        with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
            check_gradients(tf.sin, [X], modes=modes)
