"""The devices of this machine: the CPU, and the accelerators that JAX finds."""

from __future__ import annotations

from typing import Any, NamedTuple

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


def jax_devices(device_type: str) -> list:
    """Returns the devices of one type that JAX finds, if it is installed."""
    try:
        import jax

        return jax.local_devices(backend=device_type.lower())
    except (ImportError, RuntimeError):  # RuntimeError: JAX has no devices of this type
        return []


def _names(device_type: str | None) -> list[tuple[str, str]]:
    """Returns types and names of all devices; the first CPU exists without JAX."""
    types = ("CPU", "GPU", "TPU") if device_type is None else (device_type,)
    counts = {kind: len(jax_devices(kind)) for kind in types}
    if "CPU" in counts:
        counts["CPU"] = max(counts["CPU"], 1)
    return [(kind, f"{kind}:{i}") for kind, count in counts.items() for i in range(count)]


def list_physical_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    """Returns the devices of this machine, optionally of one type.

    >>> tf.config.list_physical_devices()
    [PhysicalDevice(name='/physical_device:CPU:0', device_type='CPU')]
    >>> tf.config.list_physical_devices("GPU")
    []
    """
    return [PhysicalDevice(f"/physical_device:{name}", kind) for kind, name in _names(device_type)]


def list_logical_devices(device_type: str | None = None) -> list[LogicalDevice]:
    """Returns the devices on which operations run, optionally of one type."""
    return [LogicalDevice(f"/device:{name}", kind) for kind, name in _names(device_type)]


def get_visible_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    """Returns the visible devices: all of them."""
    return list_physical_devices(device_type)


def set_visible_devices(devices: Any, device_type: str | None = None) -> None:
    """Checks that the list of visible devices is the CPU; nothing else can be configured."""
    chosen = [devices] if isinstance(devices, PhysicalDevice) else list(devices or [])
    for device in chosen:
        check_known(device)
    if device_type in (None, "CPU") and not chosen:
        raise RuntimeError(
            "set_visible_devices: the CPU cannot be hidden. Expected a list with the CPU."
        )


def get_logical_device_configuration(device: Any) -> None:
    """Returns `None`: devices are not divided."""
    check_known(device)


def set_logical_device_configuration(device: Any, logical_devices: Any) -> None:
    """Checks the configuration of a device. The CPU accepts only one default configuration."""
    check_known(device)
    if len(logical_devices) != 1:
        raise RuntimeError(
            f"set_logical_device_configuration: the CPU cannot be divided into "
            f"{len(logical_devices)} devices. Expected one configuration."
        )
    if any(value is not None for value in logical_devices[0]):
        raise ValueError(
            "set_logical_device_configuration: memory limits and priorities are not "
            f"supported on the CPU. Received: {shown(logical_devices[0])}."
        )


def check_known(device: Any) -> None:
    """Raises if `device` is not a device of this machine."""
    if device != CPU:
        raise ValueError(f"Unrecognized device: {shown(device)}. Expected {CPU!r}.")
