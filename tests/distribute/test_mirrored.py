"""Tests MirroredStrategy on logical CPU devices. TensorFlow computed the expected numbers."""

import numpy as np
import pytest

from tests.distribute.test_multi_worker import TOLERANCE, assert_close, assert_same


# TensorFlow 2.21 returns these results with two logical CPUs, except for mirrored variables without
# an aggregation. Their replicas may differ in TensorFlow; retrograde assigns the first one's value.
@pytest.mark.parametrize(
    ("name", "expected"),
    {
        "replicas": 2,
        "physical": ["/physical_device:CPU:0"],
        "logical": ["/device:CPU:0", "/device:CPU:1"],
        ("ON_WRITE", "NONE"): ([1.0, 1.0], [1.0, 1.0], 1.0),
        ("ON_WRITE", "SUM"): ([3.0, 3.0], [3.0, 3.0], 3.0),
        ("ON_WRITE", "MEAN"): ([1.5, 1.5], [1.5, 1.5], 1.5),
        ("ON_WRITE", "ONLY_FIRST_REPLICA"): ([1.0, 1.0], [1.0, 1.0], 1.0),
        ("ON_READ", "NONE"): ([1.0, 2.0], [1.0, 2.0], 1.0),
        ("ON_READ", "SUM"): ([1.0, 2.0], [1.0, 2.0], 3.0),
        ("ON_READ", "MEAN"): ([1.0, 2.0], [1.0, 2.0], 1.5),
        ("ON_READ", "ONLY_FIRST_REPLICA"): ([1.0, 2.0], [1.0, 2.0], 1.0),
        "assigned": 8.0,
        "share": [4.0, 4.0],
        ("gradients", "eager"): [[[18.0, 36.0]] * 2, [[4.5, 9.0]] * 2, [[6.0, 12.0], [12.0, 24.0]]],
        ("gradients", "traced"): [
            [[18.0, 36.0]] * 2,
            [[4.5, 9.0]] * 2,
            [[6.0, 12.0], [12.0, 24.0]],
        ],
        "merged": [3.0],
        "reduced": [7.0, 1.75],
        "gathered": [1.0, 1.0, 2.0, 3.0],
        "loss": [0.75, 0.75],
        "created": 3.0,
        "shares": [[[0, 1], [2, 3]], [[4, 5], [6, 7]], [[8], []]],
        "from function": [[[0, 1], [2, 3]], [[4], []]],
        "values": [0, 1],
        "after an error": [3.0],
        "traced outside": [2.0, 0.0, 2.0, 0.0],
        "in replicas": [[0.0, 1.0], [0.0, 1.0]],
        "nested all_reduce": "RuntimeError: `all_reduce` called",
    }.items(),
    ids=str,
)
def test_replicas_see_what_they_see_in_tensorflow(two_devices, name, expected):
    assert two_devices["semantics"][name] == expected


def test_random_numbers_differ_between_replicas(two_devices):
    first, second = two_devices["semantics"]["drawn"]
    assert first != second


@pytest.mark.parametrize(
    ("name", "message"),
    {
        "different": "RuntimeError: Replicas do different things: replica 0 has ended, replica 1 "
        "is at assign. All replicas have to call the same collectives in the same order.",
        "error": "InvalidArgumentError: add: incompatible shapes (2,) and (3,). Expected shapes "
        "that broadcast: aligned at their last axes, each pair of dimensions is equal or one of "
        "them is 1.",
        "nested": "RuntimeError: `merge_call` called while defining a new graph or a tf.function. "
        "This can often happen if the function `fn` passed to `strategy.run()` contains a nested "
        "`@tf.function`, and the nested `@tf.function` contains a synchronization point, such as "
        "aggregating gradients (e.g, optimizer.apply_gradients). Call strategy.run() inside of the "
        "tf.function instead.",
        "not distributed": "ValueError: A non-DistributedValues value 3.0 cannot be reduced with "
        "the given reduce op ReduceOp.SUM.",
        "devices": "ValueError: MirroredStrategy: this process has the devices ['/device:CPU:0', "
        "'/device:CPU:1']. Received: devices=['CPU:0', 'CPU:7']. Divide the CPU with "
        "tf.config.set_logical_device_configuration before JAX starts.",
    }.items(),
)
def test_errors_say_what_is_wrong(two_devices, name, message):
    assert two_devices["semantics"][name] == message


def test_two_replicas_train_to_the_weights_of_one(two_devices, one_replica):
    trained = two_devices["trainings"]
    for (mode, dtype), actual in trained.items():
        assert_close(actual, one_replica["trainings"]["eager", dtype], TOLERANCE[dtype])
        if mode == "replayed":
            assert_same(actual, trained["eager", dtype])


def test_four_replicas_train_to_the_weights_of_one(four_devices, one_replica):
    assert_close(
        four_devices["training"], one_replica["trainings"]["eager", "float32"], TOLERANCE["float32"]
    )


@pytest.mark.parametrize("mode", ["eager", "traced"])
def test_keras_models_train_evaluate_and_predict_as_with_one_replica(
    two_devices, one_replica, mode
):
    actual, expected = two_devices["keras training"][mode], one_replica["keras training"][mode]
    for a, b in zip(actual["weights"], expected["weights"], strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=2e-6)
    for name, values in expected["history"].items():
        np.testing.assert_allclose(actual["history"][name], values, rtol=2e-6, atol=2e-6)
    for name in ("evaluated", "on batch", "predicted"):
        np.testing.assert_allclose(actual[name], expected[name], rtol=2e-6, atol=2e-6)
