"""tf.config.experimental: memory, determinism, synchronous execution and other settings."""

from __future__ import annotations

from typing import Any, NoReturn

from retrograde._api.lazy import from_all
from retrograde.config import memory_growth
from retrograde.config.accelerators import accelerators
from retrograde.config.devices import (
    CPU,
    PhysicalDevice,
    check_known,
    get_visible_devices,
    list_logical_devices,
    list_physical_devices,
    set_visible_devices,
    short_name,
)
from retrograde.config.devices import (
    LogicalDeviceConfiguration as VirtualDeviceConfiguration,
)
from retrograde.config.devices import (
    get_logical_device_configuration as get_virtual_device_configuration,
)
from retrograde.config.devices import (
    set_logical_device_configuration as set_virtual_device_configuration,
)
from retrograde.fusion import lazy_calls
from retrograde.values.arguments import as_text, shown
from retrograde.values.device_spec import DeviceSpec
from retrograde.values.errors import UnimplementedError
from retrograde.values.settings import settings

__all__ = [
    "VirtualDeviceConfiguration",
    "disable_mlir_bridge",
    "enable_mlir_bridge",
    "enable_op_determinism",
    "enable_tensor_float_32_execution",
    "get_device_details",
    "get_device_policy",
    "get_memory_growth",
    "get_memory_info",
    "get_memory_usage",
    "get_synchronous_execution",
    "get_virtual_device_configuration",
    "get_visible_devices",
    "list_logical_devices",
    "list_physical_devices",
    "reset_memory_stats",
    "set_device_policy",
    "set_memory_growth",
    "set_synchronous_execution",
    "set_virtual_device_configuration",
    "set_visible_devices",
    "tensor_float_32_execution_enabled",
]

__getattr__, __dir__ = from_all(__name__)

_POLICIES = ("silent", "silent_for_int32", "warn", "explicit")


def set_memory_growth(device: Any, enable: bool) -> None:
    """Sets whether JAX allocates the memory of a GPU when it is needed, or most of it at the start.

    Call it before any value is on the GPU.
    """
    check_known(device)
    if device.device_type != "GPU":
        raise ValueError("Cannot set memory growth on non-GPU and non-Pluggable devices")
    memory_growth.set(bool(enable))


def get_memory_growth(device: Any) -> bool:
    """Returns the value set by `set_memory_growth`."""
    check_known(device)
    if device.device_type != "GPU":
        raise KeyError(device)
    return memory_growth.get()


def get_memory_info(device: str) -> dict[str, int]:
    """Returns the bytes that are in use on an accelerator, now ("current") and at most ("peak")."""
    statistics = _accelerator(device).memory_stats()
    if not statistics:
        raise ValueError(f"Allocator stats not available for device '{as_text(device)}'")
    current = statistics["bytes_in_use"]
    return {"current": current, "peak": statistics.get("peak_bytes_in_use", current)}


def get_memory_usage(device: str) -> int:
    """Returns the bytes that are in use on an accelerator."""
    return get_memory_info(device)["current"]


def reset_memory_stats(device: str) -> NoReturn:
    """Raises an error, since JAX does not reset the statistics of its allocators."""
    _accelerator(device)
    raise UnimplementedError(
        None, None, "JAX does not reset the peak of the memory in use: start a new process."
    )


def _accelerator(device: str) -> Any:
    """Returns the JAX device of a name such as "GPU:0"."""
    try:
        spec = DeviceSpec.from_string(device)
    except ValueError:
        spec = DeviceSpec()
    if spec.device_type is None or spec.device_index is None:
        raise ValueError(
            f"Failed parsing device name: '{as_text(device)}'. Note a valid device string should "
            'at least contain a device type and a device index, like "GPU:0".'
        )
    if (spec.device_type, spec.device_index) == ("CPU", 0):
        raise ValueError(f"Allocator stats not available for device '{as_text(device)}'")
    jax_device = accelerators(spec.device_type).get(f"{spec.device_type}:{spec.device_index}")
    if jax_device is None:
        raise ValueError(f"No matching devices found for '{as_text(device)}'")
    return jax_device


def get_device_details(device: Any) -> dict[str, Any]:
    """Returns the name and, for NVIDIA's GPUs, the compute capability of an accelerator."""
    if not isinstance(device, PhysicalDevice):
        raise ValueError(f"device must be a tf.config.PhysicalDevice, but got: {shown(device)}")
    if device not in (CPU, *list_physical_devices()):
        raise ValueError(
            "The PhysicalDevice must be one obtained from calling "
            f"`tf.config.list_physical_devices`, but got: {shown(device)}"
        )
    if device.device_type == "CPU":
        return {}
    jax_device = accelerators(device.device_type)[short_name(device)]
    details: dict[str, Any] = {"device_name": jax_device.device_kind}
    capability = getattr(jax_device, "compute_capability", None)
    if capability is not None:
        details["compute_capability"] = tuple(map(int, str(capability).split(".")))
    return details


def get_device_policy() -> str:
    """Returns the value set by `set_device_policy`."""
    return settings["device_policy"]


def set_device_policy(device_policy: str | None) -> None:
    """Stores the policy for inputs on another device, which has no effect."""
    if device_policy is not None and device_policy not in _POLICIES:
        raise ValueError(
            f"Invalid argument `device_policy`: {shown(device_policy)}. Expected None or one of "
            f"{', '.join(map(repr, _POLICIES))}."
        )
    settings["device_policy"] = device_policy or "silent"


def get_synchronous_execution() -> bool:
    """Returns the value set by `set_synchronous_execution`."""
    return settings["synchronous_execution"]


def set_synchronous_execution(enable: bool | None) -> None:
    """Sets whether every operation has finished when its call returns.

    By default, elementwise operations on large arrays are evaluated lazily and fused.
    `set_synchronous_execution(True)` disables this, for example to time a single operation;
    `None` or False enables it again. Results are identical.

    >>> tf.config.experimental.set_synchronous_execution(None)
    """
    settings["synchronous_execution"] = enable is None or bool(enable)
    lazy_calls.enabled = not enable


def enable_op_determinism() -> None:
    """Has no effect, since operations are always deterministic.

    Random numbers need a seed: see `tf.random.set_seed`.
    """
    settings["op_determinism"] = True


def tensor_float_32_execution_enabled() -> bool:
    """Returns the value set by `enable_tensor_float_32_execution`."""
    return settings["tensor_float_32"]


def enable_tensor_float_32_execution(enabled: bool) -> None:
    """Stores `enabled`. Products of float32 matrices are always computed in float32."""
    settings["tensor_float_32"] = bool(enabled)


def enable_mlir_bridge() -> None:
    """Does nothing: there is no MLIR bridge."""


def disable_mlir_bridge() -> None:
    """Does nothing: there is no MLIR bridge."""
