"""tf.config: devices, of which there is one, and settings."""

from __future__ import annotations

from retrograde._api.lazy import speaking
from retrograde.config import experimental, optimizer, threading
from retrograde.config._settings import settings
from retrograde.config.devices import (
    LogicalDevice,
    LogicalDeviceConfiguration,
    PhysicalDevice,
    get_logical_device_configuration,
    get_visible_devices,
    list_logical_devices,
    list_physical_devices,
    set_logical_device_configuration,
    set_visible_devices,
)

__all__ = [
    "LogicalDevice",
    "LogicalDeviceConfiguration",
    "PhysicalDevice",
    "experimental",
    "experimental_functions_run_eagerly",
    "experimental_run_functions_eagerly",
    "functions_run_eagerly",
    "get_logical_device_configuration",
    "get_soft_device_placement",
    "get_visible_devices",
    "list_logical_devices",
    "list_physical_devices",
    "optimizer",
    "run_functions_eagerly",
    "set_logical_device_configuration",
    "set_soft_device_placement",
    "set_visible_devices",
    "threading",
]

__getattr__ = speaking(__name__)


def functions_run_eagerly() -> bool:
    """Whether functions were asked to run eagerly."""
    return settings["run_functions_eagerly"]


def run_functions_eagerly(run_eagerly: bool) -> None:
    """Says whether functions should run eagerly, call by call."""
    settings["run_functions_eagerly"] = bool(run_eagerly)


experimental_functions_run_eagerly = functions_run_eagerly
experimental_run_functions_eagerly = run_functions_eagerly


def get_soft_device_placement() -> bool:
    """What `set_soft_device_placement` was told last."""
    return settings["soft_device_placement"]


def set_soft_device_placement(enabled: bool) -> None:
    """Remembers `enabled`. Operations run where their inputs are."""
    settings["soft_device_placement"] = bool(enabled)
