"""The device on which the operations of a thread run: a JAX device, or NumPy."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

from retrograde.core import namespaces

_DEFAULT = object()

device_names: dict[Any, str] = {}  # TensorFlow's names of JAX devices, such as "GPU:0"


class _Scope(threading.local):
    device: Any = _DEFAULT


_scope = _Scope()
_default_device: Any = None
_find_default: Callable[[], Any] | None = None


@contextlib.contextmanager
def device_scope(device: Any) -> Iterator[None]:
    """Makes operations run on a JAX device in a `with` block; `None` stands for NumPy."""
    before = _scope.device
    _scope.device = device
    if device is not None:
        namespaces.admit()
    try:
        yield
    finally:
        _scope.device = before


def on_host(function: Callable) -> Callable:
    """Returns `function`, extended to run operations with NumPy."""

    def run(*args: Any) -> Any:
        with device_scope(None):
            return function(*args)

    return run


def current_device() -> Any:
    """Returns the JAX device on which operations of this thread run, or `None` for NumPy."""
    device = _scope.device
    return default_device() if device is _DEFAULT else device


def default_device() -> Any:
    """Returns the JAX device on which operations run outside of device scopes, or `None`."""
    global _find_default, _default_device
    if _find_default is not None:
        find, _find_default = _find_default, None
        _default_device = find()
        namespaces.expect_devices(_default_device is not None)
    return _default_device


def set_default_device(find: Callable[[], Any]) -> None:
    """Makes operations run on the device that `find()` returns. It is called on first use."""
    global _find_default
    _find_default = find
    namespaces.expect_devices(True)


def is_elsewhere() -> bool:
    """Returns whether the current device is not the one on which JAX runs programs by default."""
    return current_device() is not default_device()


def compiles_all() -> bool:
    """Returns whether XLA compiles every function, because operations run on a device."""
    return bool(namespaces.foreign) and current_device() is not None


def device_name(array: Any) -> str:
    """Returns the name of the device that holds a JAX array, in TensorFlow's notation."""
    device = min(array.devices(), key=lambda device: device.id)
    name = device_names.get(device) or f"{device.platform.upper()}:{device.id}"
    return f"/job:localhost/replica:0/task:0/device:{name}"
