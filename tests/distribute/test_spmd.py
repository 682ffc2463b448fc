"""Steps of MirroredStrategy that XLA compiles into one program for all devices."""

import numpy as np
import pytest

from tests.distribute.spmd_program import MODES, NETWORKS
from tests.distribute.workers import results

TOLERANCE = 2e-6


@pytest.fixture(scope="module")
def one_replica():
    return results("spmd_program:all_networks", 1, ("replayed",), DEVICES="1")[0]


@pytest.fixture(scope="module", params=[2, 4], ids="{} devices".format)
def devices(request):
    """Returns the number of devices, and the trainings on them."""
    return request.param, results("spmd_program:all_networks", 1, DEVICES=str(request.param))[0]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", NETWORKS)
def test_devices_train_to_the_numbers_of_one_replica(one_replica, devices, name, mode):
    _, trained = devices
    actual, expected = trained[name, mode], one_replica[name, "replayed"]
    np.testing.assert_allclose(actual["losses"], expected["losses"], rtol=0, atol=TOLERANCE)
    for x, y in zip(actual["weights"], expected["weights"], strict=True):
        np.testing.assert_allclose(x, y, rtol=0, atol=TOLERANCE)


# The gradients of an optimizer are one bucket, and so is the loss.
@pytest.mark.parametrize(("name", "count"), {"mlp": 2, "lstm": 2, "gan": 3}.items())
def test_a_step_has_one_all_reduce_for_each_bucket(devices, name, count):
    _, trained = devices
    assert trained[name, "xla"]["all-reduces"] == count


def test_replicas_see_the_same_in_compiled_and_in_eager_code(devices):
    count, trained = devices
    eager, compiled = trained["details"]["eager"], trained["details"]["xla"]
    assert compiled["compiled"]
    for name in ("rows", "own", "same", "drawn", "variables"):
        np.testing.assert_allclose(compiled[name], eager[name], rtol=0, atol=TOLERANCE)
    assert compiled["rows"] == [float(i + 1) for i in range(count)] * count
    assert compiled["variables"][1] == 2.0


def test_replicas_draw_different_random_numbers_in_a_compiled_step(devices):
    count, trained = devices
    assert len(set(map(tuple, trained["details"]["xla"]["drawn"]))) == count


def test_replicas_that_make_different_calls_are_compiled_as_one_program(devices):
    count, trained = devices
    different = trained["details"]["different"]
    assert not different["compiled"]
    assert different["values"] == [1.0, *[4.0] * (count - 1)]


def test_a_tape_records_a_step_with_a_variable_of_each_replica(devices):
    count, trained = devices
    assert trained["details"]["under a tape"] == sum(range(1, count + 1)) * 3.0


def test_workers_compile_steps_except_for_batches_of_different_shapes():
    first, second = results("spmd_program:workers", 2)
    # Of 14 steps, steps 6 and 12 have three rows for two workers. Steps 1, 2 and 6 are traced: the
    # first creates the variables of the optimizer, the others are the first ones of their shape.
    assert first["compiled"] == second["compiled"] == [True] * 8 + [False] + [True] * 2
    for worker in (first, second):
        actual, expected = worker["xla"], first["replayed"]
        np.testing.assert_allclose(actual["losses"], expected["losses"], rtol=0, atol=TOLERANCE)
        for x, y in zip(actual["weights"], expected["weights"], strict=True):
            np.testing.assert_allclose(x, y, rtol=0, atol=TOLERANCE)
    for x, y in zip(first["xla"]["weights"], second["xla"]["weights"], strict=True):
        np.testing.assert_array_equal(x, y)
