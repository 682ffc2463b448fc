"""Which array namespace a call belongs to: `numpy`, or that of a foreign array."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import Any

import numpy as np

# Whether any tensor has ever held an array that is not NumPy's, or may hold a batch of them now.
# While neither is so, nobody looks.
foreign = False

_NUMPY = (np.ndarray, np.generic)
_lock = threading.Lock()
_batches = 0  # blocks in which batches are expected, in all threads
_admitted = False


def admit(array: Any) -> None:
    """Takes note that `array` is about to live in a tensor."""
    global foreign, _admitted
    if not isinstance(array, _NUMPY) and hasattr(array, "__array_namespace__"):
        foreign = _admitted = True


@contextlib.contextmanager
def expecting_batches() -> Iterator[None]:
    """A block in which tensors may hold batches."""
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
def visiting() -> Iterator[None]:
    """A block in which tensors may hold arrays that are not NumPy's, none of which outlives it."""
    global foreign, _admitted
    before = _admitted
    with expecting_batches():
        try:
            yield
        finally:
            _admitted = before


def batches_are_expected() -> bool:
    """Whether any thread is in such a block."""
    return _batches > 0


class _Place(threading.local):
    device: Any = None


_place = _Place()


@contextlib.contextmanager
def placing(device: Any) -> Iterator[None]:
    """A block in which operations run on a device of JAX's; `None` is NumPy's own place."""
    global foreign, _admitted
    before = _place.device
    _place.device = device
    if device is not None:
        foreign = _admitted = True
    try:
        yield
    finally:
        _place.device = before


def has_place() -> bool:
    """Whether this thread is in such a block."""
    return _place.device is not None


def placed(array: Any) -> Any:
    """`array` on the device of the block around, if there is one."""
    device = _place.device
    is_batch = not isinstance(array, _NUMPY) and not hasattr(array, "__array_namespace__")
    if device is None or is_batch or array.dtype.kind == "O":
        return array
    import jax

    with jax.enable_x64(True):
        return jax.device_put(array, device)


def run(kernel: Any, arrays: list, attrs: dict) -> Any:
    """A kernel in the namespace of arrays some of which are JAX's, where 64 bits are 64 bits."""
    import jax

    with jax.enable_x64(True):
        return kernel(namespace_of(arrays), *arrays, **attrs)


def namespace_of(arrays: Iterable[Any]) -> ModuleType:
    """`numpy` if all `arrays` are NumPy's, else the namespace of the first that is not."""
    for array in arrays:
        if not isinstance(array, _NUMPY) and hasattr(array, "__array_namespace__"):
            return array.__array_namespace__()
    return np
