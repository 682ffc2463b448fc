"""Objects that wait for attributes: values were read for these before they were there."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

_waiting: dict[int, tuple[weakref.ref, Callable[[], None]]] = {}


def wait(owner: Any, look: Callable[[], None]) -> None:
    """Has `look()` called each time an attribute of `owner` was set, until `stop(owner)`."""
    key = id(owner)
    _waiting[key] = weakref.ref(owner, lambda _: _waiting.pop(key, None)), look


def stop(owner: Any) -> None:
    """Lets `owner` wait no longer."""
    _waiting.pop(id(owner), None)


def notice(owner: Any) -> None:
    """To be called after an attribute of `owner` was set."""
    if _waiting:
        _, look = _waiting.get(id(owner), (None, None))
        if look is not None:
            look()
