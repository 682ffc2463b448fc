"""The devices of this machine: the CPU, and the accelerators that JAX finds."""

from __future__ import annotations

import os
import sys
from typing import Any, NamedTuple

from retrograde.config.accelerators import accelerators, hidden, jax_devices, set_visible
from retrograde.values.arguments import shown


class PhysicalDevice(NamedTuple):
    """A device of this machine."""

    name: str
    device_type: str


class LogicalDevice(NamedTuple):
    """A device on which operations run."""

    name: str
    device_type: str


class LogicalDeviceConfiguration(NamedTuple):
    """The configuration of one logical device of a physical device."""

    memory_limit: float | None = None
    experimental_priority: int | None = None
    experimental_device_ordinal: int | None = None


CPU = PhysicalDevice("/physical_device:CPU:0", "CPU")


def _names(device_type: str | None) -> list[tuple[str, str]]:
    """Returns types and names of all devices; the first CPU exists without JAX."""
    types = ("CPU", "GPU", "TPU") if device_type is None else (device_type,)
    by_type = {kind: list(accelerators(kind)) for kind in types}
    if "CPU" in by_type:
        by_type["CPU"] = by_type["CPU"] or ["CPU:0"]
    return [(kind, name) for kind, names in by_type.items() for name in names]


def list_physical_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    """Returns the devices of this machine, optionally of one type.

    >>> tf.config.list_physical_devices("CPU")
    [PhysicalDevice(name='/physical_device:CPU:0', device_type='CPU')]
    >>> tf.config.list_physical_devices("TPU")
    []
    """
    names = _names(device_type)
    if _cpu_configurations:  # JAX lists the logical devices
        names = [(kind, name) for kind, name in names if kind != "CPU" or name == "CPU:0"]
    return [PhysicalDevice(f"/physical_device:{name}", kind) for kind, name in names]


def list_logical_devices(device_type: str | None = None) -> list[LogicalDevice]:
    """Returns the devices on which operations run, optionally of one type."""
    visible = [(kind, name) for kind, name in _names(device_type) if name not in hidden]
    return [LogicalDevice(f"/device:{name}", kind) for kind, name in visible]


def get_visible_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    """Returns the devices that `set_visible_devices` has not hidden, optionally of one type."""
    devices = list_physical_devices(device_type)
    return [device for device in devices if short_name(device) not in hidden]


def set_visible_devices(devices: Any, device_type: str | None = None) -> None:
    """Hides all accelerators, or all of one type, except `devices`. The CPU cannot be hidden.

    `set_visible_devices([], "GPU")` makes a program run on the CPU. Values that are on a hidden
    device already stay there.

    >>> tf.config.set_visible_devices([], "TPU")
    >>> tf.config.get_visible_devices("TPU")
    []
    """
    chosen = [devices] if isinstance(devices, PhysicalDevice) else list(devices or [])
    for device in chosen:
        check_known(device)
    if device_type in (None, "CPU") and CPU not in chosen:
        raise RuntimeError(
            "set_visible_devices: the CPU cannot be hidden. Expected a list with the CPU."
        )
    for kind in ("GPU", "TPU") if device_type is None else (device_type,):
        if kind != "CPU":
            set_visible(kind, [short_name(device) for device in chosen])


def short_name(device: PhysicalDevice) -> str:
    """Returns the type and the index of a device, such as "GPU:0"."""
    return device.name.rpartition("device:")[2]


# The configurations of the logical devices that the CPU is divided into
_cpu_configurations: list[LogicalDeviceConfiguration] = []


def get_logical_device_configuration(device: Any) -> list[LogicalDeviceConfiguration] | None:
    """Returns the configurations of the logical devices of `device`; `None` if there is one."""
    check_known(device)
    return list(_cpu_configurations) or None


def set_logical_device_configuration(device: Any, logical_devices: Any) -> None:
    """Divides the CPU into logical devices, each of which JAX treats as a device.

    Call it before JAX starts.
    """
    check_known(device)
    if not logical_devices:
        raise ValueError(
            "set_logical_device_configuration: expected at least one configuration. Received: []."
        )
    for configuration in logical_devices:
        if any(value is not None for value in configuration):
            raise ValueError(
                "set_logical_device_configuration: memory limits and priorities are not "
                f"supported on the CPU. Received: {shown(configuration)}."
            )
    if len(logical_devices) > 1 or _cpu_configurations:
        _set_cpu_count(len(logical_devices))
        _cpu_configurations[:] = logical_devices


def _set_cpu_count(count: int) -> None:
    """Makes JAX create `count` CPU devices when it starts."""
    jax = sys.modules.get("jax")
    if jax is None:
        os.environ["JAX_NUM_CPU_DEVICES"] = str(count)
        return
    try:
        jax.config.update("jax_num_cpu_devices", count)
    except RuntimeError:  # JAX has started, perhaps only to list devices
        if len(jax_devices("CPU")) == count:
            return
        if jax.live_arrays():
            raise RuntimeError(
                "Virtual devices cannot be modified after being initialized: there are arrays on "
                "JAX's devices. Call set_logical_device_configuration at the beginning of the "
                "program."
            ) from None
        from jax.extend.backend import clear_backends

        clear_backends()
        jax.config.update("jax_num_cpu_devices", count)


def check_known(device: Any) -> None:
    """Raises if `device` is not a device of this machine."""
    if device != CPU and device not in list_physical_devices():
        known = ", ".join(map(repr, [CPU, *_accelerators()]))
        raise ValueError(f"Unrecognized device: {shown(device)}. Expected {known}.")


def _accelerators() -> list[PhysicalDevice]:
    return [device for device in list_physical_devices() if device.device_type != "CPU"]
