"""The example `neural_ode.py`, with a small network."""

import numpy as np
import pytest

import retrograde as tf


@pytest.fixture(scope="module")
def ode(example):
    return example("neural_ode")


def test_the_solver_is_of_fourth_order(ode):
    start = tf.constant([[1.0, 2.0]], tf.float64)
    errors = []
    for steps in (10, 20):
        path = ode.integrate(lambda y: -y, start, 1.0 / steps, steps)
        errors.append(np.max(np.abs(path[-1].numpy() - np.exp(-1.0) * start.numpy())))

    assert 14 < errors[0] / errors[1] < 18


def test_recomputation_does_not_change_the_gradient(ode):
    law = ode.Law(width=6, seed=1)
    _, _, observed = ode.observe(40, 1.0, 0.01, seed=1)
    observed = ode.segments(observed, length=5, every=5)
    gradients = []
    for recompute in (True, False):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(ode.integrate(law, observed[0], 0.02, 5, recompute) ** 2)
        gradients.append(tape.gradient(loss, law.variables))

    for a, e in zip(*gradients, strict=True):
        np.testing.assert_allclose(a, e, rtol=1e-12)


def test_training_learns_the_law(ode):
    times, orbit, observed = ode.observe(100, 2.4, 0.0, seed=1)
    law = ode.Law(width=12, seed=1)
    observed = ode.segments(observed, length=8, every=8)
    reports = []

    def report(step, steps, loss):
        reports.append((step, steps, loss))

    losses = ode.train(law, observed, times[1] - times[0], 40, report)

    assert observed.shape == (9, 12, 2)
    assert reports == [(step, 40, loss) for step, loss in enumerate(losses, 1)]
    assert losses[-1] < 0.05 * losses[0]
    predicted = ode.integrate(law, tf.constant(ode.START), times[1] - times[0], 99).numpy()[:, 0]
    assert np.mean(np.linalg.norm(predicted - orbit, axis=1)) < 1.0
