"""tf.optimize: SciPy's minimisers on variables."""

import numpy as np
import pytest
import scipy.optimize

import retrograde as tf
from tests.namespaces.helpers import assert_raises


def rosenbrock(x):
    return tf.reduce_sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def start():
    return tf.Variable([-1.2, 1.0, 0.5], dtype=tf.float64)


METHODS = ("L-BFGS-B", "BFGS", "CG", "TNC", "SLSQP", "Newton-CG", "trust-ncg", "trust-krylov",
           "trust-constr", "Nelder-Mead", "Powell")  # fmt: skip


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.filterwarnings("ignore:delta_grad == 0.0")
def test_every_kind_of_method_finds_the_minimum(method):
    x = start()
    options = {"trust-constr": {"maxiter": 3000}, "TNC": {"maxfun": 1000}}.get(method)

    result = tf.optimize.minimize(lambda: rosenbrock(x), x, method, tol=1e-8, options=options)

    assert result.success, result.message
    np.testing.assert_allclose(x.numpy(), [1, 1, 1], atol=1e-3)
    np.testing.assert_allclose(result.loss, float(rosenbrock(x)), atol=1e-12)
    assert result.evaluations > 0
    assert result.iterations == len(result.history)
    assert result.history[-1] <= result.history[0]


def test_steps_are_those_of_scipy_with_exact_derivatives():
    x = start()
    expected = scipy.optimize.minimize(
        scipy.optimize.rosen, x.numpy(), jac=scipy.optimize.rosen_der, method="BFGS"
    )

    result = tf.optimize.minimize(lambda: rosenbrock(x), x, "BFGS")

    assert result.iterations == expected.nit
    np.testing.assert_allclose(x.numpy(), expected.x, rtol=1e-9)


def test_hessian_products_come_from_the_tape():
    x = start()
    expected = scipy.optimize.minimize(
        scipy.optimize.rosen,
        x.numpy(),
        jac=scipy.optimize.rosen_der,
        hessp=scipy.optimize.rosen_hess_prod,
        method="trust-ncg",
    )

    result = tf.optimize.minimize(lambda: rosenbrock(x), x, "trust-ncg")

    assert result.scipy.nhev == expected.nhev
    np.testing.assert_allclose(x.numpy(), expected.x, rtol=1e-9)


def test_structures_of_variables_of_any_shape_and_float_dtype():
    variables = {
        "matrix": tf.Variable(tf.zeros([2, 3])),
        "rest": [tf.Variable(5.0, dtype=tf.float64), tf.Variable([[1.0], [2.0]])],
    }

    def loss():
        matrix, (scalar, column) = variables["matrix"], variables["rest"]
        return (
            tf.reduce_sum((matrix - 3.0) ** 2)
            + tf.cast((scalar + 1.0) ** 2, tf.float32)
            + tf.reduce_sum((column - tf.constant([[4.0], [5.0]])) ** 2)
        )

    result = tf.optimize.minimize(loss, variables)

    assert result.success
    np.testing.assert_allclose(variables["matrix"], np.full([2, 3], 3.0), rtol=1e-4)
    np.testing.assert_allclose(variables["rest"][0], -1.0, rtol=1e-4)
    np.testing.assert_allclose(variables["rest"][1], [[4.0], [5.0]], rtol=1e-4)


def test_a_variable_that_the_loss_does_not_read_stays():
    x, unused = tf.Variable(3.0), tf.Variable(7.0)

    tf.optimize.minimize(lambda: x**2, [x, unused])

    assert abs(float(x)) < 1e-5
    assert float(unused) == 7.0


BOUNDS = {  # and where the two variables end up
    "one_pair": ((0.5, 2.0), [0.5, 0.5], [0.5, 2.0]),
    "pairs": ([(0.5, None), (None, np.array([1.0, 9.0]))], [0.5, 0.5], [-4.0, 5.0]),
    "none_for_one": ([None, (1.0, 2.0)], [-3.0, -3.0], [1.0, 2.0]),
}


@pytest.mark.parametrize("name", BOUNDS)
def test_bounds_hold(name):
    bounds, *expected = BOUNDS[name]
    a, b = tf.Variable([1.0, 1.0]), tf.Variable([1.0, 1.5])

    def loss():
        return tf.reduce_sum((a + 3.0) ** 2) + (b[0] + 4.0) ** 2 + (b[1] - 5.0) ** 2

    tf.optimize.minimize(loss, [a, b], bounds=bounds)

    np.testing.assert_allclose(a, expected[0], rtol=1e-5)
    np.testing.assert_allclose(b, expected[1], rtol=1e-5)


def test_a_callback_sees_the_variables_and_may_stop():
    x = start()
    seen = []

    def callback(result):
        seen.append((result.iterations, result.loss, float(rosenbrock(x))))
        if result.iterations == 3:
            raise StopIteration

    result = tf.optimize.minimize(lambda: rosenbrock(x), x, callback=callback)

    assert [i for i, _, _ in seen] == [1, 2, 3]
    for _, told, real in seen:
        assert told == real
    assert not result.success


def test_progress_is_a_line_for_each_iteration(capsys):
    x = start()

    result = tf.optimize.minimize(lambda: rosenbrock(x), x, progress=True)

    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == result.iterations
    assert lines[0].startswith("iteration     1  loss ")


def test_a_failing_loss_leaves_the_variables_as_they_were():
    x = start()
    before, calls = x.numpy(), []

    def loss():
        calls.append(1)
        if len(calls) == 4:
            raise KeyError("broken")
        return rosenbrock(x)

    with pytest.raises(KeyError):
        tf.optimize.minimize(loss, x)

    assert len(calls) == 4
    assert x.numpy().tolist() == before.tolist()


# least_squares


T = np.linspace(0.0, 2.0, 30)
MEASURED = 3.0 * np.exp(-1.5 * T) + 0.5


def model():
    parts = {"scale": tf.Variable(1.0, dtype=tf.float64), "rest": tf.Variable(np.array([1.0, 0.0]))}

    def residuals():
        return parts["scale"] * tf.exp(-parts["rest"][0] * T) + parts["rest"][1] - MEASURED

    return parts, residuals


@pytest.mark.parametrize("options", [{}, {"method": "lm"}, {"method": "dogbox"},
                                     {"matrix_free": True}, {"loss": "soft_l1"},
                                     {"bounds": (0.0, 10.0)}], ids=str)  # fmt: skip
def test_a_curve_is_fitted(options):
    parts, residuals = model()

    result = tf.optimize.least_squares(residuals, parts, **options)

    assert result.success
    np.testing.assert_allclose(parts["scale"], 3.0, rtol=1e-4)
    np.testing.assert_allclose(parts["rest"], [1.5, 0.5], rtol=1e-4)
    assert result.loss < 1e-8
    assert len(result.history) == result.iterations > 1


def test_residuals_may_be_a_structure():
    x = tf.Variable([1.0, 1.0], dtype=tf.float64)

    tf.optimize.least_squares(lambda: {"a": x - 2.0, "b": (tf.reduce_sum(x) - 4.0,)}, x)

    np.testing.assert_allclose(x, [2.0, 2.0], rtol=1e-8)


# Errors


def test_errors_say_what_was_expected():
    x, n = tf.Variable([1.0, 2.0]), tf.Variable(3, name="n")

    assert_raises(
        lambda: tf.optimize.minimize(lambda: x * x, x),
        ValueError,
        "The loss must be a scalar. Received: shape (2,). Use tf.reduce_mean or tf.reduce_sum.",
    )
    assert_raises(
        lambda: tf.optimize.minimize(lambda: tf.constant(1.0), x),
        ValueError,
        "The loss does not depend on any of the variables: all gradients are None. Compute it "
        "inside the function that is minimised, with tf operations.",
    )
    assert_raises(
        lambda: tf.optimize.minimize(lambda: 1.0, [2.0]),
        TypeError,
        "minimize: expected variables to change. Received: 2.0 of type 'float'.",
    )
    assert_raises(
        lambda: tf.optimize.least_squares(lambda: x, n),
        TypeError,
        "least_squares: variable 'n:0' has dtype int32. Expected a float dtype.",
    )
    assert_raises(
        lambda: tf.optimize.minimize(lambda: 1.0, []),
        ValueError,
        "minimize: there are no variables to change.",
    )
    assert_raises(
        lambda: tf.optimize.minimize(lambda: tf.reduce_sum(x), x, bounds=[(0, 1), (0, 1)]),
        ValueError,
        "bounds: expected a pair (low, high), or one for each of 1 variables. Received: "
        "[(0, 1), (0, 1)].",
    )
