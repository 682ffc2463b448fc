"""The example `spirals.py`: data, training steps and decision regions."""

import numpy as np
import pytest


@pytest.fixture(scope="module")
def spirals(example):
    return example("spirals")


def test_points_are_the_same_for_the_same_seed(spirals):
    points, labels = spirals.make_spirals(20, seed=3)
    same_points, labels_again = spirals.make_spirals(20, seed=3)

    assert points.shape == (60, 2)
    assert points.dtype == np.float32
    assert np.bincount(labels).tolist() == [20, 20, 20]
    np.testing.assert_array_equal(points, same_points)
    np.testing.assert_array_equal(labels, labels_again)


def test_steps_on_one_batch_lower_its_loss(spirals):
    x, labels = spirals.make_spirals(20, seed=3)
    network = spirals.Network((2, 16, 3), seed=3)
    optimizer = spirals.Adam(network.variables, rate=0.05)

    losses = [float(spirals.train_step(network, optimizer, x, labels)) for _ in range(40)]

    assert losses[-1] < 0.8 * losses[0]
    assert optimizer.steps == 40


def test_the_last_batch_may_be_smaller(spirals, monkeypatch):
    sizes = []
    step = spirals.train_step
    monkeypatch.setattr(
        spirals, "train_step", lambda *args: sizes.append(len(args[-1])) or step(*args)
    )

    numbers = spirals.main(["--small", "--points", "41", "--epochs", "1"])

    assert sizes == [8] * 15 + [3]
    assert np.isfinite(list(numbers.values())).all()


def test_training_reports_each_epoch_and_learns(spirals):
    training = spirals.make_spirals(100, seed=3)
    testing = spirals.make_spirals(20, seed=4)
    network = spirals.Network((2, 32, 32, 3), seed=3)
    reports = []

    curve = spirals.train(
        network, training, testing, epochs=25, batch=50, seed=3, report=lambda *r: reports.append(r)
    )

    assert [report[0] for report in reports] == list(range(1, 26))
    assert [report[2] for report in reports] == [loss for loss, _ in curve]
    assert curve[-1][0] < 0.8 * curve[0][0]
    assert float(spirals.accuracy_of(network, *training)) > 0.6


def test_probabilities_of_the_regions_sum_to_one(spirals):
    network = spirals.Network((2, 8, 3), seed=3)

    probabilities = spirals.regions(network, size=5)

    assert probabilities.shape == (5, 5, 3)
    np.testing.assert_allclose(probabilities.sum(axis=-1), 1.0, rtol=1e-6)
