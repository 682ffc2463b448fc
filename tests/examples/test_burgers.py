"""The example `burgers.py`, with a small network."""

import numpy as np
import pytest

import retrograde as tf


@pytest.fixture(scope="module")
def burgers(example):
    return example("burgers")


def test_nested_tapes_and_derivatives_give_the_same_residual(burgers):
    network = burgers.Network(width=8, depth=2, seed=1)
    points = burgers.make_points(40, 10, seed=1)

    difference, seconds = burgers.compare_methods(network, points, times=1)

    assert difference < 1e-12
    assert set(seconds) == {"nested tapes", "derivatives"}
    losses = [
        burgers.loss_fn(network, points, method)
        for method in (burgers.residual_by_derivatives, burgers.residual_by_nested_tapes)
    ]
    np.testing.assert_allclose(*losses, rtol=1e-12)


def test_the_exact_solution_satisfies_the_equation(burgers):
    t, x, h = np.array([[0.3]]), np.array([[0.4]]), 1e-4

    def u(dt=0.0, dx=0.0):
        return burgers.exact(t + dt, x + dx)

    u_t = (u(dt=h) - u(dt=-h)) / (2 * h)
    u_x = (u(dx=h) - u(dx=-h)) / (2 * h)
    u_xx = (u(dx=h) - 2 * u() + u(dx=-h)) / h**2

    np.testing.assert_allclose(u_t + u() * u_x, burgers.VISCOSITY * u_xx, atol=1e-5)
    np.testing.assert_allclose(
        burgers.exact(np.zeros(3), np.array([-0.5, 0.0, 0.5])), [1, 0, -1], atol=1e-9
    )


def test_training_lowers_the_loss_and_reports_each_step(burgers):
    network = burgers.Network(width=8, depth=2, seed=1)
    points = burgers.make_points(60, 20, seed=1)
    reports = []

    def report(step, steps, loss):
        reports.append((step, steps, float(loss)))

    adam = burgers.train_with_adam(network, points, 20, report)
    lbfgs = burgers.train_with_lbfgs(network, points, 30, report)

    assert [steps for _, steps, _ in reports] == [20] * 20 + [30] * len(lbfgs)
    assert lbfgs[-1] < 0.5 * adam[0]
    np.testing.assert_allclose(float(burgers.loss_fn(network, points)), lbfgs[-1], rtol=1e-9)
    _, _, u, expected = burgers.on_grid(network, size=11)
    assert u.shape == expected.shape == (11, 6)
    assert isinstance(network.variables[0], tf.Variable)
