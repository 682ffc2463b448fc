"""Hooks that run when an attribute of an object is set, for deferred restoration."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

_hooks: dict[int, tuple[weakref.ref, Callable[[], None]]] = {}


def register(owner: Any, callback: Callable[[], None]) -> None:
    """Calls `callback()` after each attribute of `owner` is set, until `unregister(owner)`."""
    key = id(owner)
    _hooks[key] = weakref.ref(owner, lambda _: _hooks.pop(key, None)), callback


def unregister(owner: Any) -> None:
    """Removes the hook of `owner`."""
    _hooks.pop(id(owner), None)


def notify(owner: Any) -> None:
    """Runs the hook of `owner`. Call this after an attribute was set."""
    if _hooks:
        _, callback = _hooks.get(id(owner), (None, None))
        if callback is not None:
            callback()
