"""tf.config: devices and settings."""

import numpy as np
import pytest

import retrograde as tf
from retrograde.fusion import blocks
from tests.namespaces.helpers import assert_raises

CPU = tf.config.PhysicalDevice("/physical_device:CPU:0", "CPU")
GPU = tf.config.PhysicalDevice("/physical_device:GPU:0", "GPU")
UNKNOWN = (
    "Unrecognized device: PhysicalDevice(name='/physical_device:GPU:0', device_type='GPU'). "
    "Expected PhysicalDevice(name='/physical_device:CPU:0', device_type='CPU')."
)


def test_the_cpu_is_the_only_device():
    for devices in (tf.config, tf.config.experimental):
        assert devices.list_physical_devices() == [CPU]
        assert devices.list_physical_devices("CPU") == [CPU]
        assert devices.list_physical_devices("GPU") == []
        assert devices.get_visible_devices() == [CPU]
        assert repr(devices.list_logical_devices()) == (
            "[LogicalDevice(name='/device:CPU:0', device_type='CPU')]"
        )
        assert devices.list_logical_devices("TPU") == []


def test_default_device_configurations_are_accepted():
    tf.config.set_visible_devices([], "GPU")
    tf.config.set_visible_devices([CPU], "CPU")
    tf.config.set_visible_devices(CPU)
    tf.config.set_logical_device_configuration(CPU, [tf.config.LogicalDeviceConfiguration()])
    assert tf.config.get_logical_device_configuration(CPU) is None
    assert tf.config.experimental.get_virtual_device_configuration(CPU) is None
    assert tf.config.experimental.get_device_details(CPU) == {}


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: tf.config.set_visible_devices([GPU]), ValueError, UNKNOWN),
        (
            lambda: tf.config.set_visible_devices([], "CPU"),
            RuntimeError,
            "set_visible_devices: the CPU cannot be hidden. Expected a list with the CPU.",
        ),
        (lambda: tf.config.get_logical_device_configuration(GPU), ValueError, UNKNOWN),
        (
            lambda: tf.config.set_logical_device_configuration(CPU, []),
            ValueError,
            "set_logical_device_configuration: expected at least one configuration. Received: [].",
        ),
        (
            lambda: tf.config.set_logical_device_configuration(
                CPU, [tf.config.LogicalDeviceConfiguration(memory_limit=3)]
            ),
            ValueError,
            "set_logical_device_configuration: memory limits and priorities are not supported on "
            "the CPU. Received: LogicalDeviceConfiguration(memory_limit=3, "
            "experimental_priority=None, experimental_device_ordinal=None).",
        ),
        (lambda: tf.config.experimental.set_memory_growth(GPU, True), ValueError, UNKNOWN),
        (
            lambda: tf.config.experimental.set_memory_growth(CPU, True),
            ValueError,
            "Cannot set memory growth on non-GPU and non-Pluggable devices",
        ),
        (
            lambda: tf.config.experimental.get_memory_growth(CPU),
            KeyError,
            "PhysicalDevice(name='/physical_device:CPU:0', device_type='CPU')",
        ),
        (
            lambda: tf.config.experimental.get_memory_info("CPU:0"),
            ValueError,
            "Allocator stats not available for device 'CPU:0'",
        ),
        (
            lambda: tf.config.experimental.get_memory_usage("GPU:0"),
            ValueError,
            "No matching devices found for 'GPU:0'",
        ),
        (
            lambda: tf.config.experimental.reset_memory_stats("banana"),
            ValueError,
            "Failed parsing device name: 'banana'. Note a valid device string should at least "
            'contain a device type and a device index, like "GPU:0".',
        ),
        (
            lambda: tf.config.experimental.get_device_details(GPU),
            ValueError,
            "The PhysicalDevice must be one obtained from calling "
            "`tf.config.list_physical_devices`, but got: "
            "PhysicalDevice(name='/physical_device:GPU:0', device_type='GPU')",
        ),
        (
            lambda: tf.config.experimental.get_device_details(3),
            ValueError,
            "device must be a tf.config.PhysicalDevice, but got: 3",
        ),
        (
            lambda: tf.config.experimental.set_device_policy("banana"),
            ValueError,
            "Invalid argument `device_policy`: 'banana'. Expected None or one of 'silent', "
            "'silent_for_int32', 'warn', 'explicit'.",
        ),
        (
            lambda: tf.config.threading.set_intra_op_parallelism_threads(-1),
            ValueError,
            "Expected a number of threads, or 0 for one per core. Received: -1.",
        ),
    ],
)
def test_error_message(call, error, message):
    assert_raises(call, error, message)


@pytest.mark.parametrize(
    ("get", "set_value", "default", "other"),
    [
        (tf.config.functions_run_eagerly, tf.config.run_functions_eagerly, False, True),
        (tf.config.get_soft_device_placement, tf.config.set_soft_device_placement, True, False),
        (
            tf.config.experimental.get_device_policy,
            tf.config.experimental.set_device_policy,
            "silent",
            "warn",
        ),
        (
            tf.config.experimental.tensor_float_32_execution_enabled,
            tf.config.experimental.enable_tensor_float_32_execution,
            True,
            False,
        ),
        (tf.config.optimizer.get_jit, tf.config.optimizer.set_jit, "", "autoclustering"),
        (
            tf.config.optimizer.get_experimental_options,
            tf.config.optimizer.set_experimental_options,
            {},
            {"constant_folding": False},
        ),
        (
            tf.config.threading.get_inter_op_parallelism_threads,
            tf.config.threading.set_inter_op_parallelism_threads,
            0,
            2,
        ),
        (
            tf.config.threading.get_intra_op_parallelism_threads,
            tf.config.threading.set_intra_op_parallelism_threads,
            0,
            1,
        ),
    ],
)
def test_settings_are_stored(get, set_value, default, other):
    assert get() == default
    try:
        set_value(other)
        assert get() == other
    finally:
        set_value(default)


@pytest.mark.parametrize("synchronous", [True, False])
def test_synchronous_execution_disables_lazy_evaluation(synchronous):
    x = tf.ones([1 << 20])
    try:
        tf.config.experimental.set_synchronous_execution(synchronous)
        assert tf.config.experimental.get_synchronous_execution() == synchronous
        assert (type(tf.sin(x)) is type(x)) == synchronous
    finally:
        tf.config.experimental.set_synchronous_execution(None)
    assert tf.config.experimental.get_synchronous_execution()
    assert type(tf.sin(x)) is not type(x)


def test_set_jit_accepts_a_boolean():
    tf.config.optimizer.set_jit(True)
    assert tf.config.optimizer.get_jit() == "autoclustering"
    tf.config.optimizer.set_jit(False)
    assert tf.config.optimizer.get_jit() == ""


def test_results_with_one_thread_are_identical():
    x = tf.constant(np.linspace(0.0, 1.0, blocks.MIN_THREADED_SIZE_IF_COSTLY * 2))
    expected = tf.exp(x).numpy()
    tf.config.threading.set_intra_op_parallelism_threads(1)
    try:
        assert blocks.threads() == 1
        np.testing.assert_array_equal(tf.exp(x).numpy(), expected)
    finally:
        tf.config.threading.set_intra_op_parallelism_threads(0)


def test_functions_without_effect_can_be_called():
    tf.config.experimental.enable_op_determinism()
    tf.config.experimental.enable_mlir_bridge()
    tf.config.experimental.disable_mlir_bridge()
