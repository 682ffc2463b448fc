"""Which array namespace a call belongs to: `numpy`, or that of a foreign array."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from retrograde.values.locks import fork_safe_lock

# Whether any tensor has ever held an array that is not NumPy's, or may hold a batch of them now.
# While neither is so, nobody looks; afterwards, whether it `concerns` the arrays at hand.
foreign = False

_NUMPY = (np.ndarray, np.generic)
_ordinary: tuple[type, ...] = _NUMPY  # and what stands for arrays of NumPy's
_lock = fork_safe_lock()
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
    put: Callable | None = None


_place = _Place()


def concerns(arrays: Iterable[Any]) -> bool:
    """Whether, where there is something `foreign`, work on these arrays has to do with it."""
    return _place.put is not None or not all([isinstance(x, _ordinary) for x in arrays])


def take_for_numpy(kind: type) -> None:
    """Says that objects of this kind, where tensors have them, stand for arrays of NumPy's."""
    global _ordinary
    _ordinary = (*_ordinary, kind)


@contextlib.contextmanager
def placing(put: Callable | None) -> Iterator[None]:
    """A block in which arrays are `put` on a device of JAX's first; `None` is NumPy's own place."""
    global foreign, _admitted
    before = _place.put
    _place.put = put
    if put is not None:
        foreign = _admitted = True
    try:
        yield
    finally:
        _place.put = before


def has_place() -> bool:
    """Whether this thread is in such a block."""
    return _place.put is not None


def placed(array: Any) -> Any:
    """`array` on the device of the block around, if there is one."""
    is_batch = not isinstance(array, _NUMPY) and not hasattr(array, "__array_namespace__")
    if _place.put is None or is_batch or array.dtype.kind == "O":
        return array
    return _place.put(array)


def run(kernel: Any, arrays: Sequence[Any], attrs: dict) -> Any:
    """A kernel in the namespace of arrays some of which are JAX's, where 64 bits are 64 bits."""
    jax = sys.modules["jax"]  # has been imported by whoever made such arrays
    with jax.enable_x64(True):
        return kernel(namespace_of(arrays), *arrays, **attrs)


def namespace_of(arrays: Iterable[Any]) -> ModuleType:
    """`numpy` if all `arrays` are NumPy's, else the namespace of the first that is not."""
    for array in arrays:
        if not isinstance(array, _NUMPY) and hasattr(array, "__array_namespace__"):
            return array.__array_namespace__()
    return np
