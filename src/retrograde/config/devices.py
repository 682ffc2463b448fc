"""The devices of this machine: the CPU, and what JAX finds."""

from __future__ import annotations

from typing import Any, NamedTuple

from retrograde.values.arguments import shown


class PhysicalDevice(NamedTuple):
    """A device of this machine."""

    name: str
    device_type: str


class LogicalDevice(NamedTuple):
    """A device as operations see it."""

    name: str
    device_type: str


class LogicalDeviceConfiguration(NamedTuple):
    """How a part of a device would be used on its own."""

    memory_limit: float | None = None
    experimental_priority: int | None = None
    experimental_device_ordinal: int | None = None


CPU = PhysicalDevice("/physical_device:CPU:0", "CPU")


def devices_of_jax(device_type: str) -> list:
    """The devices of one type that JAX has, if it is installed."""
    try:
        import jax

        return jax.local_devices(backend=device_type.lower())
    except (ImportError, RuntimeError):  # RuntimeError: it has none of this type
        return []


def _names(device_type: str | None) -> list[tuple[str, str]]:
    """Types and places of all devices; the first CPU is NumPy's, and there without JAX."""
    wanted = ("CPU", "GPU", "TPU") if device_type is None else (device_type,)
    counts = {kind: len(devices_of_jax(kind)) for kind in wanted}
    if "CPU" in counts:
        counts["CPU"] = max(counts["CPU"], 1)
    return [(kind, f"{kind}:{i}") for kind, count in counts.items() for i in range(count)]


def list_physical_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    """The devices of this machine, or those of one type.

    >>> tf.config.list_physical_devices()
    [PhysicalDevice(name='/physical_device:CPU:0', device_type='CPU')]
    >>> tf.config.list_physical_devices("GPU")
    []
    """
    return [PhysicalDevice(f"/physical_device:{at}", kind) for kind, at in _names(device_type)]


def list_logical_devices(device_type: str | None = None) -> list[LogicalDevice]:
    """The devices that operations see, or those of one type."""
    return [LogicalDevice(f"/device:{at}", kind) for kind, at in _names(device_type)]


def get_visible_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    """The devices that may be used: all of them."""
    return list_physical_devices(device_type)


def set_visible_devices(devices: Any, device_type: str | None = None) -> None:
    """Says which devices may be used. Only the CPU can be, and it has to be."""
    chosen = [devices] if isinstance(devices, PhysicalDevice) else list(devices or [])
    for device in chosen:
        check_known(device)
    if device_type in (None, "CPU") and not chosen:
        raise RuntimeError(
            "set_visible_devices: the CPU cannot be hidden. Expected it in the list."
        )


def get_logical_device_configuration(device: Any) -> None:
    """`None`: the device is used as a whole."""
    check_known(device)


def set_logical_device_configuration(device: Any, logical_devices: Any) -> None:
    """Would divide a device. The CPU is used as a whole: one configuration is all it takes."""
    check_known(device)
    if len(logical_devices) != 1:
        raise RuntimeError(
            f"set_logical_device_configuration: the CPU cannot be divided into "
            f"{len(logical_devices)} devices. Expected one configuration."
        )
    if any(value is not None for value in logical_devices[0]):
        raise ValueError(
            "set_logical_device_configuration: the CPU has neither limits of memory nor "
            f"priorities. Received: {shown(logical_devices[0])}."
        )


def check_known(device: Any) -> None:
    """Refuses what is no device of this machine."""
    if device != CPU:
        raise ValueError(f"Unrecognized device: {shown(device)}. Expected {CPU!r}.")
