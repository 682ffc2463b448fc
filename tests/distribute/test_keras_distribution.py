"""`keras.distribution`: training with layouts over devices gives the numbers of one device."""

import numpy as np
import pytest

from tests.distribute.workers import results

TOLERANCE = 2e-6


@pytest.fixture(scope="module")
def four_devices():
    return results("layout_program:four_devices", 1, JAX_NUM_CPU_DEVICES="4")[0]


def assert_close(actual, expected):
    np.testing.assert_allclose(actual["losses"], expected["losses"], rtol=0, atol=TOLERANCE)
    for x, y in zip(actual["weights"], expected["weights"], strict=True):
        np.testing.assert_allclose(x, y, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("name", ["data", "model"])
def test_a_transformer_on_four_devices_trains_to_the_numbers_of_one(four_devices, name):
    assert_close(four_devices[name], four_devices["one"])
    assert not four_devices["one"]["layouts"]


def test_variables_and_optimizer_slots_have_the_layouts_of_the_map(four_devices):
    layouts = four_devices["model"]["layouts"]
    assert layouts["wide/kernel"] == (None, "model")
    assert layouts["narrow/kernel"][0] == "model"
    assert layouts["attention/query/kernel"][1] == "model"
    assert {axes for path, axes in layouts.items() if "wide_kernel_momentum" in path} == {
        (None, "model")
    }
    assert not any(layouts["logits/kernel"])
    assert not any(map(any, four_devices["data"]["layouts"].values()))


def test_uneven_batches_give_the_numbers_of_one_device(four_devices):
    np.testing.assert_allclose(
        four_devices["uneven"], four_devices["predicted"], rtol=0, atol=TOLERANCE
    )
    np.testing.assert_allclose(
        four_devices["evaluated"], four_devices["expected"], rtol=0, atol=TOLERANCE
    )


def test_an_assigned_value_gets_the_layout_of_the_variable(four_devices):
    assert four_devices["assigned"] == ((None, "model"), {(8, 8)})
    assert four_devices["sums"] == 2 * 8 * 16


def test_distributed_tensors_have_values_gradients_and_layouts(four_devices):
    x = np.arange(8.0).reshape(4, 2)
    for y, gradient, spec in four_devices["tensors"]:
        np.testing.assert_array_equal(y, x**2)
        np.testing.assert_array_equal(gradient, 4 * x**3)
        assert spec in (None, ("data",), ("data", None))
    eager, _, compiled = [spec for *_, spec in four_devices["tensors"]]
    assert eager[0] == compiled[0] == "data"


def test_devices_are_listed_by_name(four_devices):
    assert four_devices["devices"] == ["cpu:0", "cpu:1", "cpu:2", "cpu:3"]


def test_two_processes_train_to_the_numbers_of_one_device(four_devices):
    first, second = results("layout_program:two_processes", 2)
    assert first["drawn"] == second["drawn"]
    for name in ("data", "model"):
        assert_close(first[name], four_devices["one"])
        assert_close(second[name], four_devices["one"])
