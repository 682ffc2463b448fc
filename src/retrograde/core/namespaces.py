"""Which array namespace a call belongs to: `numpy`, or that of a foreign array."""

from __future__ import annotations

from collections.abc import Iterable
from types import ModuleType
from typing import Any

import numpy as np

# Whether any tensor has ever held an array that is not NumPy's. While none has, nobody looks.
foreign = False


_NUMPY = (np.ndarray, np.generic)


def admit(array: Any) -> None:
    """Takes note that `array` is about to live in a tensor."""
    global foreign
    if not isinstance(array, _NUMPY):
        foreign = True


def namespace_of(arrays: Iterable[Any]) -> ModuleType:
    """`numpy` if all `arrays` are NumPy's, else the namespace of the first that is not."""
    for array in arrays:
        if not isinstance(array, _NUMPY) and hasattr(array, "__array_namespace__"):
            return array.__array_namespace__()
    return np
