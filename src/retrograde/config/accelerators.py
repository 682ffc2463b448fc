"""The accelerators of this machine, and the one on which operations run by default.

The environment variable RETROGRADE_DEVICE names the default device: "GPU:0", "TPU:0", or "CPU:0"
for NumPy. "CPU:1" makes JAX create two CPU devices and use the second as if it were a GPU, for
tests on machines without an accelerator. Without the variable, the default is the first GPU or TPU
that JAX finds. JAX is imported only if one of its plugins for accelerators is installed.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from retrograde._api.default_device import VARIABLE
from retrograde.devices.device_tensors import host_device
from retrograde.devices.scopes import device_names, set_default_device
from retrograde.values.device_spec import DeviceSpec

_TYPES = ("GPU", "TPU")

hidden: set[str] = set()  # names of devices that `set_visible_devices` has hidden


def select_default_device() -> None:
    """Makes operations run on an accelerator if there is one, or on the device of `VARIABLE`."""
    index = _replacement_index()
    if index:
        _create_cpu_devices(index + 1)
    set_default_device(_find_default)


def _find_default() -> Any:
    """Returns the default device, or `None` for NumPy."""
    try:
        import jax
    except ImportError:
        return None
    devices = [device for kind in _TYPES for device in visible_accelerators(kind).values()]
    index = _replacement_index()
    name = os.environ.get(VARIABLE)
    if name and not index:
        spec = DeviceSpec.from_string(name if name.startswith("/") else f"/{name}")
        devices = [d for d in devices if device_names[d] == _name(spec)]
    device = devices[0] if devices else None
    if device is None and name and name != "CPU:0" and not hidden:
        raise RuntimeError(
            f"{VARIABLE} is {name!r}, but JAX has no such device. Its devices are {jax.devices()}."
        )
    if jax.config.jax_default_device is not None or jax.devices()[0] is not (
        device or host_device()
    ):
        jax.config.update("jax_default_device", device or host_device())
    return device


def _name(spec: DeviceSpec) -> str:
    return f"{spec.device_type}:{spec.device_index or 0}"


def _replacement_index() -> int:
    """Returns the index of the CPU device that replaces a GPU, or 0 if there is none."""
    name = os.environ.get(VARIABLE, "").lstrip("/").upper()
    return int(name.removeprefix("CPU:")) if name.removeprefix("CPU:").isdigit() else 0


def jax_devices(device_type: str) -> list:
    """Returns the devices of one type that JAX finds, if it is installed."""
    index = _replacement_index()
    try:
        import jax

        if not index:
            return jax.local_devices(backend=device_type.lower())
        devices = jax.local_devices(backend="cpu")
    except (ImportError, RuntimeError):  # RuntimeError: JAX has no devices of this type
        return []
    if device_type == "CPU":
        return devices[:index]
    return devices[index : index + 1] if device_type == "GPU" else []


def _create_cpu_devices(count: int) -> None:
    """Makes JAX create `count` CPU devices, if it has not started."""
    jax = sys.modules.get("jax")
    if jax is None:
        os.environ.setdefault("JAX_NUM_CPU_DEVICES", str(count))
    elif jax.config.jax_num_cpu_devices < count:
        jax.config.update("jax_num_cpu_devices", count)


def accelerators(device_type: str) -> dict[str, Any]:
    """Returns the JAX devices of a type by name, such as "GPU:0"."""
    by_name = {f"{device_type}:{i}": device for i, device in enumerate(jax_devices(device_type))}
    device_names.update({device: name for name, device in by_name.items()})
    return by_name


def visible_accelerators(device_type: str) -> dict[str, Any]:
    """Returns the accelerators of a type that are not hidden."""
    by_name = accelerators(device_type)
    return {name: device for name, device in by_name.items() if name not in hidden}


def set_visible(device_type: str, names: list[str]) -> None:
    """Hides all accelerators of a type except those in `names`."""
    every = set(accelerators(device_type))
    before = set(hidden)
    hidden.difference_update(every)
    hidden.update(every.difference(names))
    if hidden != before:
        set_default_device(_find_default)


def restart_jax() -> bool:
    """Makes JAX start again, with new settings, when it is next used.

    Returns `False` if that is impossible because there are arrays on its devices.
    """
    import jax

    if jax.live_arrays():
        return False
    from jax.extend.backend import clear_backends

    clear_backends()
    host_device.cache_clear()
    device_names.clear()
    set_default_device(_find_default)
    return True
