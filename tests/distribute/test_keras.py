"""Keras under a strategy of several workers: the same model as with one, files written once."""

import numpy as np
import pytest


@pytest.mark.parametrize("mode", ["eager", "traced"])
def test_fit_evaluate_and_predict_give_the_numbers_of_one_worker(two_workers, one_replica, mode):
    workers = [worker["keras training"] for worker in two_workers]
    for worker in workers:
        actual, expected = worker[mode], one_replica["keras training"][mode]
        for a, b in zip(actual["weights"], expected["weights"], strict=True):
            np.testing.assert_allclose(a, b, rtol=0, atol=2e-6)
        assert actual["history"].keys() == expected["history"].keys()
        for name, values in expected["history"].items():
            np.testing.assert_allclose(actual["history"][name], values, rtol=2e-6, atol=2e-6)
        for name in ("evaluated", "on batch", "predicted"):
            np.testing.assert_allclose(actual[name], expected[name], rtol=2e-6, atol=2e-6)
    np.testing.assert_equal(workers[0][mode]["weights"], workers[1][mode]["weights"])
    assert workers[0][mode]["history"] == workers[1][mode]["history"]


def test_the_first_worker_writes_files(two_workers):
    assert two_workers[1]["files"] == [
        "0.eager.csv",
        "0.eager.keras",
        "0.traced.csv",
        "0.traced.keras",
    ]


def test_dropout_differs_between_workers_and_initial_values_do_not(two_workers):
    first, second = (worker["dropout"] for worker in two_workers)

    assert first["initial"] == second["initial"]
    masks = [*first["masks"], *second["masks"]]
    assert len({str(mask) for mask in masks}) == 4
