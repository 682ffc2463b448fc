"""Steps of MirroredStrategy that XLA compiles into one program for all devices."""

import numpy as np
import pytest

from tests.distribute.spmd_program import MODES, NETWORKS
from tests.distribute.workers import results

TOLERANCE = 2e-6


@pytest.fixture(scope="module")
def one_replica():
    return results("spmd_program:all_networks", 1, ("replayed",), DEVICES="1")[0]


@pytest.fixture(scope="module")
def several_devices():
    return {n: results("spmd_program:all_networks", 1, DEVICES=str(n))[0] for n in (2, 4)}


@pytest.mark.parametrize("devices", [2, 4])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", NETWORKS)
def test_devices_train_to_the_numbers_of_one_replica(
    one_replica, several_devices, name, mode, devices
):
    actual, expected = several_devices[devices][name, mode], one_replica[name, "replayed"]
    np.testing.assert_allclose(actual["losses"], expected["losses"], rtol=0, atol=TOLERANCE)
    for x, y in zip(actual["weights"], expected["weights"], strict=True):
        np.testing.assert_allclose(x, y, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("devices", [2, 4])
@pytest.mark.parametrize(
    ("name", "count"),
    # The gradients of an optimizer are one bucket, and the loss is reduced. Batch normalization
    # sums its moments in the forward and the backward pass.
    {"mlp": 2, "lstm": 2, "gan": 3}.items(),
)
def test_a_step_has_one_all_reduce_for_each_bucket(several_devices, name, count, devices):
    assert several_devices[devices][name, "xla"]["all-reduces"] == count


@pytest.mark.parametrize("devices", [2, 4])
def test_replicas_see_the_same_in_compiled_and_in_eager_code(several_devices, devices):
    details = several_devices[devices]["details"]
    eager, compiled = details["eager"], details["xla"]
    assert compiled["compiled"]
    for name in ("rows", "own", "same", "drawn", "variables"):
        np.testing.assert_allclose(compiled[name], eager[name], rtol=0, atol=TOLERANCE)
    assert compiled["rows"] == [float(i + 1) for i in range(devices)] * devices
    assert compiled["variables"][1] == 2.0


@pytest.mark.parametrize("devices", [2, 4])
def test_replicas_draw_different_random_numbers_in_a_compiled_step(several_devices, devices):
    drawn = several_devices[devices]["details"]["xla"]["drawn"]
    assert len(set(map(tuple, drawn))) == devices
