"""Tests `tf.optimize`."""

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
def test_every_method_finds_the_minimum(method):
    x = start()
    options = {"trust-constr": {"maxiter": 3000}, "TNC": {"maxfun": 1000}}.get(method)

    result = tf.optimize.minimize(lambda: rosenbrock(x), x, method, tol=1e-8, options=options)

    assert result.success, result.message
    np.testing.assert_allclose(x.numpy(), [1, 1, 1], atol=1e-3)
    np.testing.assert_allclose(result.loss, float(rosenbrock(x)), atol=1e-12)
    assert result.evaluations > 0
    assert result.iterations == len(result.history)
    assert result.history[-1] <= result.history[0]
    assert result.history[0] != float(
        rosenbrock(start())
    )  # the first entry is the loss after the first step


def test_steps_match_scipy_with_exact_derivatives():
    x = start()
    expected = scipy.optimize.minimize(
        scipy.optimize.rosen, x.numpy(), jac=scipy.optimize.rosen_der, method="BFGS"
    )

    result = tf.optimize.minimize(lambda: rosenbrock(x), x, "BFGS")

    assert result.iterations == expected.nit
    np.testing.assert_allclose(x.numpy(), expected.x, rtol=1e-9)


def test_hessian_vector_products_match_scipy():
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


def test_a_variable_that_the_loss_does_not_read_is_unchanged():
    x, unused = tf.Variable(3.0), tf.Variable(7.0)

    tf.optimize.minimize(lambda: x**2, [x, unused])

    assert abs(float(x)) < 1e-5
    assert float(unused) == 7.0


BOUNDS = {  # with the expected values of the two variables
    "one_pair": ((0.5, 2.0), [0.5, 0.5], [0.5, 2.0]),
    "pairs": ([(0.5, None), (None, np.array([1.0, 9.0]))], [0.5, 0.5], [-4.0, 5.0]),
    "none_for_one": ([None, (1.0, 2.0)], [-3.0, -3.0], [1.0, 2.0]),
    "one_pair_in_a_list": ([0.5, 2.0], [0.5, 0.5], [0.5, 2.0]),
    "one_bound_in_a_list": ([0.5, None], [0.5, 0.5], [0.5, 5.0]),
    "pairs_in_lists": ([[0.5, 2.0], [-1.0, 3.0]], [0.5, 0.5], [-1.0, 3.0]),
    "pairs_in_arrays": ([np.array([0.5, 2.0]), np.array([-1.0, 3.0])], [0.5, 0.5], [-1.0, 3.0]),
    "arrays_for_all": (([0.5, 0.25], np.array([2.0, 3.0])), [0.5, 0.25], [0.5, 3.0]),
}


@pytest.mark.parametrize("name", BOUNDS)
def test_bounds_are_respected(name):
    bounds, *expected = BOUNDS[name]
    a, b = tf.Variable([1.0, 1.0]), tf.Variable([1.0, 1.5])

    def loss():
        return tf.reduce_sum((a + 3.0) ** 2) + (b[0] + 4.0) ** 2 + (b[1] - 5.0) ** 2

    tf.optimize.minimize(loss, [a, b], bounds=bounds)

    np.testing.assert_allclose(a, expected[0], rtol=1e-5)
    np.testing.assert_allclose(b, expected[1], rtol=1e-5)


def test_a_callback_can_read_the_variables_and_stop():
    x = start()
    seen = []

    def callback(result):
        seen.append((result.iterations, result.loss, float(rosenbrock(x))))
        if result.iterations == 3:
            raise StopIteration

    result = tf.optimize.minimize(lambda: rosenbrock(x), x, callback=callback)

    assert [i for i, _, _ in seen] == [1, 2, 3]
    for _, reported, actual in seen:
        assert reported == actual
    assert not result.success


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.filterwarnings("ignore:delta_grad == 0.0")
def test_a_callback_can_stop_every_method(method):
    x = start()
    seen = []

    def callback(result):
        seen.append((result.loss, x.numpy().tolist()))
        if result.iterations == 2:
            raise StopIteration

    result = tf.optimize.minimize(lambda: rosenbrock(x), x, method, callback=callback)

    assert len(seen) == result.iterations == 2
    assert not result.success
    assert result.message == "`callback` raised `StopIteration`."
    assert (result.loss, x.numpy().tolist()) == seen[-1]
    assert result.history == [loss for loss, _ in seen]


def test_a_gradient_free_method_reports_no_gradient_norm(capsys):
    x = start()
    norms = []

    tf.optimize.minimize(
        lambda: rosenbrock(x),
        x,
        "Nelder-Mead",
        callback=lambda result: norms.append(result.gradient_norm),
        progress=True,
    )

    assert norms and np.isnan(norms).all()
    assert "gradient" not in capsys.readouterr().err


def test_hessian_vector_products_with_sparse_gradients():
    table = tf.Variable(tf.ones([4, 2]))

    def loss():
        return tf.reduce_sum((tf.gather(table, [0, 2]) - 3.0) ** 2)

    tf.optimize.minimize(loss, table, "trust-ncg")

    np.testing.assert_allclose(table, [[3.0, 3.0], [1.0, 1.0], [3.0, 3.0], [1.0, 1.0]], rtol=1e-5)


def test_a_loss_of_one_element_is_a_scalar():
    x = tf.Variable([3.0])

    result = tf.optimize.minimize(lambda: x**2, x)

    assert result.success
    assert abs(float(x[0])) < 1e-5


def test_progress_prints_a_line_for_each_iteration(capsys):
    x = start()

    result = tf.optimize.minimize(lambda: rosenbrock(x), x, progress=True)

    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == result.iterations
    assert lines[0].startswith("iteration     1  loss ")


def test_variables_are_restored_if_the_loss_raises():
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
    variables = {
        "scale": tf.Variable(1.0, dtype=tf.float64),
        "rest": tf.Variable(np.array([1.0, 0.0])),
    }

    def residuals():
        return (
            variables["scale"] * tf.exp(-variables["rest"][0] * T) + variables["rest"][1] - MEASURED
        )

    return variables, residuals


@pytest.mark.parametrize("options", [{}, {"method": "lm"}, {"method": "dogbox"},
                                     {"matrix_free": True}, {"loss": "soft_l1"},
                                     {"bounds": (0.0, 10.0)}], ids=str)  # fmt: skip
def test_a_curve_is_fitted(options):
    variables, residuals = model()

    result = tf.optimize.least_squares(residuals, variables, **options)

    assert result.success
    np.testing.assert_allclose(variables["scale"], 3.0, rtol=1e-4)
    np.testing.assert_allclose(variables["rest"], [1.5, 0.5], rtol=1e-4)
    assert result.loss < 1e-8
    assert len(result.history) == result.iterations > 1


def cubic_loss(z):  # the interface of SciPy: values and two derivatives
    return np.array([z + z**3, 1.0 + 3.0 * z**2, 6.0 * z])


LOSSES = ("linear", "soft_l1", "huber", "cauchy", "arctan", cubic_loss)


@pytest.mark.parametrize("method", ["trf", "dogbox"])
@pytest.mark.parametrize("scale", [1.0, 0.3])
@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: getattr(loss, "__name__", loss))
def test_history_has_the_cost_after_each_iteration(loss, scale, method, capsys):
    noise = np.where(np.arange(30) % 7 == 3, 2.0, 0.0)  # outliers, for which the losses differ

    def residuals(a, b):
        return a * np.exp(-b * T) - MEASURED - noise

    def jacobian(x):
        return np.stack([np.exp(-x[1] * T), -x[0] * T * np.exp(-x[1] * T)], axis=1)

    expected = [
        scipy.optimize.least_squares(
            lambda x: residuals(*x), [1.0, 1.0], jacobian, loss=loss, f_scale=scale,
            method=method, max_nfev=steps,
        ).cost
        for steps in (1, 40)
    ]  # fmt: skip
    a, b = tf.Variable(1.0, dtype=tf.float64), tf.Variable(1.0, dtype=tf.float64)

    result = tf.optimize.least_squares(
        lambda: a * tf.exp(-b * T) - MEASURED - noise,
        [a, b],
        method,
        loss=loss,
        f_scale=scale,
        max_nfev=40,
        progress=True,
    )

    before, after = expected
    np.testing.assert_allclose(result.history[-1], after, rtol=1e-6)
    np.testing.assert_allclose(result.loss, after, rtol=1e-6)
    assert result.loss == pytest.approx(result.history[-1], rel=1e-12)
    assert before > result.history[0] > after
    assert result.history == sorted(result.history, reverse=True)
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.endswith(f"  loss {after:.6e}  gradient {result.gradient_norm:.2e}")


@pytest.mark.parametrize("options", [{"method": "lm"}, {}, {"matrix_free": True}], ids=str)
def test_history_of_least_squares_ends_with_the_loss(options):
    variables, residuals = model()
    before = 0.5 * float(tf.reduce_sum(residuals() ** 2))

    result = tf.optimize.least_squares(residuals, variables, **options)

    assert result.history[0] < before
    assert result.history[-1] == pytest.approx(result.loss, rel=1e-9)
    assert len(set(result.history)) == len(result.history)


def test_no_iterations_if_it_starts_at_the_minimum():
    x = tf.Variable([2.0, 2.0], dtype=tf.float64)

    result = tf.optimize.least_squares(lambda: x - 2.0, x)

    assert (result.iterations, result.history, result.loss) == (0, [], 0.0)


def test_lm_gets_a_matrix_of_any_size(monkeypatch):
    monkeypatch.setattr(tf.optimize, "_MAX_DENSE", 0)
    variables, residuals = model()

    result = tf.optimize.least_squares(residuals, variables, "lm")

    assert result.success


def test_residuals_can_be_a_structure():
    x = tf.Variable([1.0, 1.0], dtype=tf.float64)

    tf.optimize.least_squares(lambda: {"a": x - 2.0, "b": (tf.reduce_sum(x) - 4.0,)}, x)

    np.testing.assert_allclose(x, [2.0, 2.0], rtol=1e-8)


# Errors


def test_error_messages():
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
        "inside the loss function, with tf operations.",
    )
    assert_raises(
        lambda: tf.optimize.minimize(lambda: 1.0, [2.0]),
        TypeError,
        "minimize: expected variables. Received: 2.0 of type 'float'.",
    )
    assert_raises(
        lambda: tf.optimize.least_squares(lambda: x, n),
        TypeError,
        "least_squares: expected a float dtype. Variable 'n:0' has dtype int32.",
    )
    assert_raises(
        lambda: tf.optimize.minimize(lambda: 1.0, []),
        ValueError,
        "minimize: expected at least one variable.",
    )
    for bounds in ([(0, 1), (0, 1)], 5.0, (1, 2, 3), [np.float64(1.0)]):
        assert_raises(
            lambda bounds=bounds: tf.optimize.minimize(lambda: 1.0, x, bounds=bounds),
            ValueError,
            "bounds: expected a pair (low, high), or one for each of 1 variables. Received: "
            f"{bounds!r}.",
        )
    assert_raises(
        lambda: tf.optimize.minimize(lambda: 1.0, x, bounds=(np.zeros(3), None)),
        ValueError,
        "bounds: expected bounds that broadcast to the shape (2,) of the variable. Received: shape "
        "(3,).",
    )
    assert_raises(
        lambda: tf.optimize.minimize(lambda: 1.0, [x, x]),
        ValueError,
        "minimize: expected distinct variables. A variable is listed twice.",
    )
    assert_raises(
        lambda: tf.optimize.least_squares(lambda: tf.constant([1.0]), x),
        ValueError,
        "The residuals do not depend on any of the variables: all gradients are None. Compute them "
        "inside the function, with tf operations.",
    )
    assert_raises(
        lambda: tf.optimize.least_squares(lambda: [], x),
        ValueError,
        "least_squares: the residuals are an empty structure.",
    )
