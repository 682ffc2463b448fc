"""Reference counts: an array without other references can be overwritten."""

from __future__ import annotations

import sys
from collections.abc import Callable

count = sys.getrefcount


def unshared_count(counted: Callable[[], int]) -> int:
    """Returns the count that `counted` finds for an object without other references.

    Without the GIL, counts are unreliable. Then the result is -1, which no count equals.
    """
    is_locked = getattr(sys, "_is_gil_enabled", lambda: True)()
    return counted() if is_locked else -1
