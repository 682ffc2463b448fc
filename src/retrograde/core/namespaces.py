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


def namespace_of(arrays: Iterable[Any]) -> ModuleType:
    """`numpy` if all `arrays` are NumPy's, else the namespace of the first that is not."""
    for array in arrays:
        if not isinstance(array, _NUMPY) and hasattr(array, "__array_namespace__"):
            return array.__array_namespace__()
    return np
