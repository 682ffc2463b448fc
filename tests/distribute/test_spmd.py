"""Steps of MirroredStrategy that XLA compiles into one program for all devices."""

import numpy as np
import pytest

from tests.distribute.spmd_program import MODES, NETWORKS

TOLERANCE = 2e-6


@pytest.fixture(params=[2, 4], ids="{} devices".format)
def devices(request):
    """Returns the number of devices, and the results of the programs on them."""
    name = {2: "two_devices", 4: "four_devices"}[request.param]
    return request.param, request.getfixturevalue(name)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", NETWORKS)
def test_devices_train_to_the_numbers_of_one_replica(one_replica, devices, name, mode):
    _, results = devices
    actual, expected = results["networks"][name, mode], one_replica["networks"][name, "replayed"]
    np.testing.assert_allclose(actual["losses"], expected["losses"], rtol=0, atol=TOLERANCE)
    for x, y in zip(actual["weights"], expected["weights"], strict=True):
        np.testing.assert_allclose(x, y, rtol=0, atol=TOLERANCE)


# The gradients of an optimizer are one bucket, and so is the loss.
@pytest.mark.parametrize(("name", "count"), {"mlp": 2, "lstm": 2, "gan": 3}.items())
def test_a_step_has_one_all_reduce_for_each_bucket(devices, name, count):
    _, results = devices
    assert results["networks"][name, "xla"]["all-reduces"] == count


def test_replicas_see_the_same_in_compiled_and_in_eager_code(devices):
    count, results = devices
    eager, compiled = results["details"]["eager"], results["details"]["xla"]
    assert compiled["compiled"]
    for name in ("rows", "own", "same", "drawn", "variables"):
        np.testing.assert_allclose(compiled[name], eager[name], rtol=0, atol=TOLERANCE)
    assert compiled["rows"] == [float(i + 1) for i in range(count)] * count
    assert compiled["variables"][1] == 2.0


def test_replicas_draw_different_random_numbers_in_a_compiled_step(devices):
    count, results = devices
    assert len(set(map(tuple, results["details"]["xla"]["drawn"]))) == count


def test_replicas_that_make_different_calls_are_compiled_as_one_program(devices):
    count, results = devices
    different = results["details"]["different"]
    assert not different["compiled"]
    assert different["values"] == [1.0, *[4.0] * (count - 1)]


def test_a_tape_records_a_step_with_a_variable_of_each_replica(devices):
    count, results = devices
    assert results["details"]["under a tape"] == sum(range(1, count + 1)) * 3.0


def test_workers_compile_steps_except_for_batches_of_different_shapes(two_workers):
    first, second = (worker["compiled"] for worker in two_workers)
    # Of 14 steps, steps 6 and 12 have three rows for two workers. Steps that are traced
    # run again, compiled.
    expected = [step not in (6, 12) for step in range(1, 15)]
    assert first["compiled"] == second["compiled"] == expected
    for worker in (first, second):
        actual, expected = worker["xla"], first["replayed"]
        np.testing.assert_allclose(actual["losses"], expected["losses"], rtol=0, atol=TOLERANCE)
        for x, y in zip(actual["weights"], expected["weights"], strict=True):
            np.testing.assert_allclose(x, y, rtol=0, atol=TOLERANCE)
    for x, y in zip(first["xla"]["weights"], second["xla"]["weights"], strict=True):
        np.testing.assert_array_equal(x, y)


def test_a_step_has_the_same_bits_if_some_workers_trace_it(two_workers):
    for worker in two_workers:
        first, again = worker["compiled"]["weights"]
        np.testing.assert_array_equal(first, again)
    # Worker 0 traces steps 1, 2 and 4. Worker 1 traces steps 1, 3 and 4. In step 2 they have
    # different programs. A worker with a trace compares programs before and after the step.
    outcomes = [worker["compiled"]["one worker traces"] for worker in two_workers]
    assert outcomes == [[True, False, False, True, True], [True, False, False, True, True]]
