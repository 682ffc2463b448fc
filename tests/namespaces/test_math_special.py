"""tf.math.special and the gamma, beta, zeta and error functions of tf.math."""

import json
import pathlib

import numpy as np
import pytest

import retrograde as tf
from retrograde.errors import InvalidArgumentError
from retrograde.testing import check_gradients
from tests.data.recorded_results import evaluate, is_close
from tests.namespaces.helpers import FLOATS, assert_gradients, assert_raises, float64, gradient

DATA = pathlib.Path(__file__).parents[1] / "data"
EXPECTED = json.loads((DATA / "special_results.json").read_text())


@pytest.mark.parametrize("expression", EXPECTED)
def test_values_and_gradients_match_tensorflow(expression):
    actual = evaluate(expression, tf)

    assert is_close(actual, EXPECTED[expression]), f"{actual}, expected {EXPECTED[expression]}"


POSITIVE = [0.3, 1.7, 4.5]
EITHER = [-1.3, 0.2, 2.4]
UNIT = [0.1, 0.4, 0.9]

UNARY = [
    (tf.math.lgamma, EITHER),
    (tf.math.digamma, EITHER),
    (tf.math.erfc, EITHER),
    (tf.math.erfinv, UNIT),
    (tf.math.erfcinv, UNIT),
    (tf.math.ndtri, UNIT),
    (tf.math.lbeta, POSITIVE),
    *[(getattr(tf.math.special, name), POSITIVE) for name in tf.math.special.__all__],
]


@pytest.mark.parametrize(("f", "x"), UNARY, ids=lambda v: getattr(v, "__name__", ""))
def test_derivatives_to_third_order(f, x):
    check_gradients(f, [float64(x)], order=3)


@pytest.mark.parametrize(("f", "x"), UNARY, ids=lambda v: getattr(v, "__name__", ""))
def test_half_precision_is_computed_in_single_precision(f, x):
    for dtype in FLOATS[:2]:
        inputs = tf.cast(tf.constant(x), dtype)
        expected = tf.cast(f(tf.cast(inputs, tf.float32)), dtype)
        if f is tf.math.lbeta:  # a sum, rounded at each step
            np.testing.assert_allclose(f(inputs), expected, rtol=0.02)
        else:
            np.testing.assert_allclose(
                tf.cast(f(inputs), tf.float64), tf.cast(expected, tf.float64), rtol=0.01
            )
        assert f(inputs).dtype == dtype


TWO = [
    (tf.math.igamma, POSITIVE, [0.5, 2.5, 4.0]),
    (tf.math.igammac, POSITIVE, [0.5, 2.5, 4.0]),
    (lambda a, x: tf.math.igamma(a, x), [40.0, 300.0, 0.01], [38.0, 310.0, 0.02]),
]


@pytest.mark.parametrize(("f", "a", "x"), TWO)
def test_higher_derivatives_of_igamma_with_respect_to_both_arguments(f, a, x):
    check_gradients(f, [float64(a), float64(x)], order=2)


def test_derivative_of_igamma_with_respect_to_a_satisfies_the_recurrence():
    a, x = np.array([0.01, 0.7, 3.0, 50.0, 5e5]), np.array([0.5, 0.7, 7.0, 48.0, 5.001e5])

    def left(a):
        return tf.math.igamma(a, float64(x)) - tf.math.igamma(a + 1, float64(x))

    def right(a):
        return tf.exp(a * tf.math.log(float64(x)) - x - tf.math.lgamma(a + 1))

    np.testing.assert_allclose(gradient(left, a), gradient(right, a), rtol=1e-9)


def test_derivative_of_igamma_with_respect_to_a_is_zero_at_the_ends_and_nan_outside():
    (g, _) = gradient(
        tf.math.igamma, np.array([2.0, 2.0, 2.0, -1.0]), np.array([0.0, np.inf, -1.0, 1.0])
    )

    np.testing.assert_array_equal(g, [0.0, 0.0, np.nan, np.nan])


def test_betainc_zeta_and_polygamma_to_second_order():
    check_gradients(lambda x: tf.math.betainc(float64(0.7), float64(2.5), x), [float64(UNIT)])
    check_gradients(lambda x: tf.math.zeta(float64(2.5), x), [float64(POSITIVE)], order=2)
    check_gradients(lambda x: tf.math.polygamma(float64(2), x), [float64(POSITIVE)], order=2)


def test_no_gradient_flows_to_the_parameters_of_betainc_zeta_and_polygamma():
    assert gradient(tf.math.betainc, 1.5, 2.5, 0.5)[:2] == [None, None]
    assert gradient(tf.math.zeta, 2.5, 0.5)[0] is None
    assert gradient(tf.math.polygamma, 2.0, 0.5)[0] is None


def test_bessel_functions_are_smooth_at_zero():
    zero = float64([0.0])
    for name, first, second in [
        ("bessel_i0", 0.0, 0.5),
        ("bessel_i1", 0.5, 0.0),
        ("bessel_j0", 0.0, -0.5),
        ("bessel_j1", 0.5, 0.0),
    ]:
        f = getattr(tf.math.special, name)
        with tf.GradientTape() as outer:
            outer.watch(zero)
            with tf.GradientTape() as inner:
                inner.watch(zero)
                y = f(zero)
            g = inner.gradient(y, zero)
        assert g.numpy().tolist() == [first]
        assert outer.gradient(g, zero).numpy().tolist() == [second]


@pytest.mark.parametrize("kind", "jy")
@pytest.mark.parametrize("x", [2e6, 1e12, 1e30])
def test_derivatives_of_oscillating_functions_at_large_arguments(kind, x):
    zeroth, first = (getattr(tf.math.special, f"bessel_{kind}{order}") for order in (0, 1))

    np.testing.assert_allclose(gradient(first, float64(x))[0], zeroth(float64(x)), rtol=1e-5)


@pytest.mark.parametrize("name", ["bessel_i1e", "bessel_k1e"])
def test_scaled_bessel_functions_decay_as_inverse_square_root(name):
    f = getattr(tf.math.special, name)

    derivative = gradient(f, float64(2e6))[0]
    np.testing.assert_allclose(derivative, -f(float64(2e6)) / 4e6, rtol=1e-6)
    assert abs(gradient(f, float64(1e30))[0]) < 1e-30
    assert gradient(f, tf.constant(1e30))[0] == 0.0


def test_derivatives_of_scaled_bessel_functions_vanish_at_infinity():
    for name in ("bessel_i0e", "bessel_i1e", "bessel_k0e", "bessel_k1e"):
        f = getattr(tf.math.special, name)
        assert f(np.inf).numpy() == 0.0
        assert gradient(f, np.inf)[0] == 0.0


def test_nextafter_converts_python_numbers_to_float32():
    for x in (1, 1.0, np.float64(1), [1.0], np.array([1])):
        y = tf.math.nextafter(x, 2)
        assert (y.dtype, float(tf.reshape(y, []))) == (tf.float32, 1 + 2**-23)
    assert tf.math.nextafter(float64(1.0), 2).numpy() == 1 + 2**-52


def test_spence_is_smooth_at_one():
    assert_gradients(tf.math.special.spence, [1.0])
    assert gradient(tf.math.special.spence, 1.0)[0] == -1.0
    assert gradient(lambda x: _derivative(tf.math.special.spence, x), float64(1.0))[0] == 0.5


def _derivative(f, x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    return tape.gradient(y, x)


def test_a_pole_in_the_other_branch_does_not_affect_the_gradient():
    for f in (tf.math.lgamma, tf.math.digamma, tf.math.special.bessel_k0, tf.math.special.expint):
        y = gradient(lambda x, f=f: tf.where(x > 0, f(x), 0.0), [0.0, 1.0])[0]
        assert y[0] == 0.0


@pytest.mark.parametrize("name", tf.math.special.__all__)
def test_functions_accept_ragged_tensors(name):
    f = getattr(tf.math.special, name)
    y = f(tf.ragged.constant([[0.5, 1.5], [2.5]]))

    assert isinstance(y, tf.RaggedTensor)
    np.testing.assert_array_equal(y.flat_values, f([0.5, 1.5, 2.5]))


def test_errors():
    assert_raises(
        lambda: tf.math.lgamma([1, 2]),
        InvalidArgumentError,
        "lgamma: dtype int32 is not supported. "
        "Expected one of float16, bfloat16, float32, float64.",
    )
    half = tf.constant(1.0, tf.float16)
    assert_raises(
        lambda: tf.math.nextafter(half, half),
        InvalidArgumentError,
        "nextafter: dtype float16 is not supported. Expected float32 or float64.",
    )
    assert_raises(
        lambda: tf.math.lbeta(2.0),
        InvalidArgumentError,
        "lbeta: expected a tensor of rank >= 1. Received: shape ().",
    )
    assert_raises(
        lambda: tf.math.igamma([1.0, 2.0], [1.0, 2.0, 3.0]),
        InvalidArgumentError,
        "igamma: incompatible shapes (2,) and (3,). Expected shapes that broadcast: aligned at "
        "their last axes, each pair of dimensions is equal or one of them is 1.",
    )
