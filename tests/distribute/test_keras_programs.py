"""Keras under strategies: batch normalization, callbacks, datasets and checkpoints."""

import numpy as np
import pytest


@pytest.fixture
def one(one_replica):
    return one_replica["keras programs"]


@pytest.fixture
def workers(two_workers):
    return [worker["keras programs"] for worker in two_workers]


@pytest.fixture
def devices(two_devices):
    return two_devices["keras programs"]


def assert_close(actual, expected, tolerance=2e-6):
    for a, b in zip(actual["weights"], expected["weights"], strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=tolerance)


@pytest.mark.parametrize("eager", [False, True])
def test_synchronized_batch_normalization_gives_the_numbers_of_one_replica(
    one, workers, devices, eager
):
    expected = one["batch norm"][True, eager]
    for actual in (*workers, devices):
        assert_close(actual["batch norm"][True, eager], expected)
        for name in ("losses", "evaluated"):
            actual_values = actual["batch norm"][True, eager][name]
            np.testing.assert_allclose(actual_values, expected[name], rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("eager", [False, True])
def test_batch_normalization_uses_the_rows_of_each_replica(one, workers, devices, eager):
    first, second = (worker["batch norm"][False, eager] for worker in workers)
    alone = one["batch norm"][False, eager]
    on_devices = devices["batch norm"][False, eager]
    assert abs(first["losses"][-1] - alone["losses"][-1]) > 1e-3
    assert_close(on_devices, first)
    np.testing.assert_allclose(on_devices["losses"], first["losses"], rtol=2e-6)
    np.testing.assert_equal(first["weights"], second["weights"])
    assert first["evaluated"] == second["evaluated"]


def test_callbacks_of_workers_give_the_history_of_one_replica(one, workers, devices):
    expected = one["callbacks"]
    for actual in [devices["callbacks"], *[worker["callbacks"] for worker in workers]]:
        assert len(actual["history"]["loss"]) == 3
        for name, values in expected["history"].items():
            np.testing.assert_allclose(actual["history"][name], values, rtol=5e-6)
        assert_close(actual, expected)
        for name in ("predicted", "evaluated"):
            np.testing.assert_allclose(actual[name], expected[name], rtol=2e-6, atol=2e-6)
    assert workers[0]["callbacks"]["history"] == workers[1]["callbacks"]["history"]


def test_only_the_first_worker_writes_files(one, workers):
    assert one["callbacks"]["files"] == [".keras", ".v2"]
    assert [worker["callbacks"]["files"] for worker in workers] == [[".keras", ".v2"], []]
    assert [worker["backup"]["has files"] for worker in workers] == [True, False]


def test_all_workers_stop_if_a_callback_stops_one(workers):
    assert [worker["callbacks"]["epochs until one worker stops"] for worker in workers] == [2, 2]


def test_a_backup_of_the_first_worker_restores_all_workers(workers):
    for worker in workers:
        actual = worker["backup"]
        assert actual["resumed"]["epochs"] == [2, 3]
        np.testing.assert_equal(actual["resumed"]["weights"], actual["undisturbed"])


def test_fit_obeys_the_policy_by_which_workers_shard_a_dataset(one, workers):
    expected = one["policies"]["DATA"]
    rows = expected["rows"]
    first, second = (worker["policies"] for worker in workers)
    for name in ("DATA", "FILE", "OFF"):
        assert first[name]["losses"] == second[name]["losses"]
        assert first[name]["evaluated"] == second[name]["evaluated"]
    np.testing.assert_allclose(first["DATA"]["losses"], expected["losses"], rtol=2e-6)
    assert [first["DATA"]["rows"][0], second["DATA"]["rows"][0]] == [rows[0][:2], rows[0][2:]]
    halves = [half for batch in rows for half in (batch[:2], batch[2:])]
    assert first["OFF"]["rows"] == second["OFF"]["rows"] == halves
    assert [first[name]["updates"] for name in ("DATA", "FILE", "OFF")] == [6, 8, 12]
    assert first["FILE"]["rows"] == [halves[0], halves[1], halves[4], halves[5]]
    assert second["FILE"]["rows"] == [halves[2], halves[3], [], []]


def test_checkpoints_hold_the_aggregated_values_of_variables(workers, devices):
    for actual in (*workers, devices):
        assert actual["checkpoint"] == ([[1.0, 2.0], 5.0, 2.5], [[1.0, 2.0], 5.0, 2.5])
