"""Selection of devices by name: the CPU, and JAX devices."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from retrograde.config.accelerators import visible_accelerators
from retrograde.config.devices import list_logical_devices
from retrograde.devices.scopes import device_scope
from retrograde.values.arguments import as_text
from retrograde.values.device_spec import DeviceSpec
from retrograde.values.errors import invalid
from retrograde.values.settings import settings


def device(device_name: Any) -> contextlib.AbstractContextManager[None]:
    """Creates a context in which operations run, and tensors and variables live, on a device.

    `device_name` is a name or a `DeviceSpec`. "/CPU:0" computes with NumPy; all others are JAX
    devices. A missing device is replaced by the CPU, as in TensorFlow, unless it belongs to another
    job or `tf.config.set_soft_device_placement(False)` was called.

    >>> with tf.device("/CPU:0"):
    ...     print(tf.constant(1.0).device)
    /job:localhost/replica:0/task:0/device:CPU:0
    """
    if callable(device_name):
        raise RuntimeError("tf.device does not support functions. Expected a name.")
    if device_name is not None and not isinstance(device_name, (str, DeviceSpec)):
        raise ValueError(
            f"Expecting a string device name. Got {type(device_name)}({as_text(device_name)})"
        )
    return _placement(device_name or DeviceSpec())


@contextlib.contextmanager
def _placement(device_name: str | DeviceSpec) -> Iterator[None]:
    spec = DeviceSpec.from_string(device_name) if isinstance(device_name, str) else device_name
    if spec.job not in (None, "localhost") or spec.replica or spec.task:
        raise invalid(
            f"{spec.to_string()} unknown device. Expected one of /job:localhost/replica:0/task:0."
        )
    if not spec.device_type:
        yield
        return
    device = _jax_device(spec)
    with device_scope(device):
        yield


def _jax_device(spec: DeviceSpec) -> Any:
    """Returns the JAX device of a spec, or `None` to compute with NumPy."""
    kind, index = spec.device_type, spec.device_index or 0
    if (kind, index) == ("CPU", 0):
        return None
    device = visible_accelerators(kind).get(f"{kind}:{index}")
    if device is not None:
        return device
    if settings["soft_device_placement"]:
        return None
    available = [device.name for device in list_logical_devices()]
    raise invalid(
        f"Could not satisfy device specification '{spec.to_string()}'. Expected one of "
        f"{available}. tf.config.set_soft_device_placement(True) uses the CPU for missing devices."
    )
