"""Array namespaces: `numpy`, or the namespace of a foreign array, such as `jax.numpy`."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from retrograde.values.locks import fork_safe_lock

# Whether any tensor has ever held an array that is not a NumPy array, or may hold a batch now. Only
# then do operations check whether their inputs are foreign, with `involves_foreign`.
foreign = False

_NUMPY = (np.ndarray, np.generic)
_ordinary: tuple[type, ...] = _NUMPY  # and types that represent NumPy arrays
_lock = fork_safe_lock()
_batches = 0  # blocks in which batches are expected, in all threads
_admitted = False


def register(array: Any) -> None:
    """Registers that a tensor is about to hold `array`."""
    global foreign, _admitted
    if not isinstance(array, _NUMPY) and hasattr(array, "__array_namespace__"):
        foreign = _admitted = True


@contextlib.contextmanager
def allow_batches() -> Iterator[None]:
    """Allows tensors to hold batches in a `with` block."""
    _count_batches(1)
    try:
        yield
    finally:
        _count_batches(-1)


def _count_batches(step: int) -> None:
    global foreign, _batches
    with _lock:
        _batches += step
        foreign = _admitted or _batches > 0


@contextlib.contextmanager
def temporary_foreign_arrays() -> Iterator[None]:
    """Allows tensors to hold foreign arrays in a `with` block, none of which outlives the block."""
    global foreign, _admitted
    before = _admitted
    with allow_batches():
        try:
            yield
        finally:
            _admitted = before


def batches_are_allowed() -> bool:
    """Returns whether any thread is in a block of `allow_batches`."""
    return _batches > 0


class _DeviceScope(threading.local):
    put: Callable | None = None


_scope = _DeviceScope()


def involves_foreign(arrays: Iterable[Any]) -> bool:
    """Returns whether any of `arrays` is foreign, or a device scope is active.

    Only meaningful while `foreign` is true.
    """
    return _scope.put is not None or not all([isinstance(x, _ordinary) for x in arrays])


def treat_as_numpy(kind: type) -> None:
    """Makes `involves_foreign` treat objects of this type as NumPy arrays."""
    global _ordinary
    _ordinary = (*_ordinary, kind)


@contextlib.contextmanager
def device_scope(put: Callable | None) -> Iterator[None]:
    """Puts arrays on a JAX device with `put` in a `with` block; `None` keeps them in NumPy."""
    global foreign, _admitted
    before = _scope.put
    _scope.put = put
    if put is not None:
        foreign = _admitted = True
    try:
        yield
    finally:
        _scope.put = before


def in_device_scope() -> bool:
    """Returns whether this thread is in a `device_scope` of a JAX device."""
    return _scope.put is not None


def place(array: Any) -> Any:
    """Returns `array` on the device of the current device scope, if there is one."""
    is_batch = not isinstance(array, _NUMPY) and not hasattr(array, "__array_namespace__")
    if _scope.put is None or is_batch or array.dtype.kind == "O":
        return array
    return _scope.put(array)


def run(kernel: Any, arrays: Sequence[Any], attrs: dict) -> Any:
    """Runs a kernel on arrays some of which are JAX arrays, with 64-bit types enabled."""
    jax = sys.modules["jax"]  # imported by the code that created the arrays
    with jax.enable_x64(True):
        return kernel(namespace_of(arrays), *arrays, **attrs)


def namespace_of(arrays: Iterable[Any]) -> ModuleType:
    """Returns `numpy` if all `arrays` are NumPy arrays, else the namespace of the first other."""
    for array in arrays:
        if not isinstance(array, _NUMPY) and hasattr(array, "__array_namespace__"):
            return array.__array_namespace__()
    return np
