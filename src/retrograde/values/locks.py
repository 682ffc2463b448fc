"""Locks that are released in a forked child."""

from __future__ import annotations

import os
import threading
import weakref
from typing import Any

_locks: weakref.WeakSet = weakref.WeakSet()


def fork_safe_lock() -> Any:
    """Returns a reentrant lock that a forked child can acquire.

    If another thread holds the lock during a fork, that thread does not exist in the child and
    would never release it there.
    """
    lock = threading.RLock()
    _locks.add(lock)
    return lock


def _release_in_child() -> None:
    for lock in _locks:
        if not lock._is_owned():  # by the thread that forked
            lock._at_fork_reinit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_release_in_child)
