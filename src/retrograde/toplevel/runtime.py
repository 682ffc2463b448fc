"""Timestamps, logging and critical sections."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from retrograde.core.recorders import thread
from retrograde.core.tensor import Tensor
from retrograde.ops.host_callbacks import HostCallback, call_host
from retrograde.toplevel.creation import convert_to_tensor
from retrograde.values import nest
from retrograde.values.locks import fork_safe_lock


class AggregationMethod:
    """Methods to sum gradients, for compatibility. All of them compute the same sum."""

    ADD_N = 0
    DEFAULT = ADD_N
    EXPERIMENTAL_TREE = 1
    EXPERIMENTAL_ACCUMULATE_N = 2


def timestamp(name: Any = None) -> Tensor:
    """Returns the seconds since 1970 as a float64. In a function, each call returns its own."""
    if thread.recorders.tracer is not None:
        return call_host(HostCallback("timestamp", _seconds, pure=False))
    return Tensor(_seconds())


def _seconds() -> np.float64:
    return np.float64(time.time())


def is_symbolic_tensor(tensor: Any) -> bool:
    """Returns False: every tensor has a value."""
    return False


def get_logger() -> Any:
    """Returns the library's logger."""
    import logging  # takes longer to import than this module

    return logging.getLogger("retrograde")


class CriticalSection:
    """A critical section, which only one thread can execute at a time.

    >>> section, total = tf.CriticalSection(), tf.Variable(0.0)
    >>> section.execute(lambda: total.assign_add(1.0)).numpy()
    np.float32(1.0)
    """

    def __init__(
        self,
        name: str | None = None,
        shared_name: str | None = None,
        critical_section_def: Any = None,
        import_scope: Any = None,
    ) -> None:
        if critical_section_def is not None:
            raise ValueError("Argument `critical_section_def` is not supported.")
        self._name = name or "critical_section"
        self._lock = fork_safe_lock() if shared_name is None else _shared_lock(shared_name)
        self._owner: int | None = None

    @property
    def name(self) -> str:
        """The name."""
        return self._name

    def execute(
        self, fn: Callable, exclusive_resource_access: bool = True, name: Any = None
    ) -> Any:
        """Runs `fn()` while no other thread is in the section; returns tensors."""
        thread = threading.get_ident()
        if self._owner == thread:
            raise ValueError(
                f"Attempting to lock a CriticalSection ({self._name}) in which we are already "
                "running. This is illegal and may cause deadlocks."
            )
        with self._lock:
            self._owner = thread
            try:
                leaves, pack = nest.flatten_with_pack(fn())
            finally:
                self._owner = None
        return pack([convert_to_tensor(leaf) for leaf in leaves])


_locks: dict[str, Any] = {}


def _shared_lock(name: str) -> Any:
    """Returns the lock of all sections that share `name`."""
    return _locks.setdefault(name, fork_safe_lock())
