"""References to an object, counted: what nobody else holds may be written over."""

from __future__ import annotations

import sys
from collections.abc import Callable

count = sys.getrefcount


def unshared_count(counted: Callable[[], int]) -> int:
    """What `counted` finds where nobody else holds an object, for others to compare with.

    Without the global lock counts say nothing. What is found then is no count: nobody is alone.
    """
    is_locked = getattr(sys, "_is_gil_enabled", lambda: True)()
    return counted() if is_locked else -1
