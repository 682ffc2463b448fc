"""Makes malloc reuse the memory of arrays of a few megabytes instead of mapping it again.

glibc returns a large block to the kernel as soon as it is freed, and the next allocation takes a
page fault for every 4 KiB. For temporary arrays that costs more than the arithmetic. So retrograde
raises glibc's thresholds when it is imported, for the whole process. Set the environment variable
`RETROGRADE_MALLOC=default` to keep the defaults. Other systems and allocators are not changed.
"""

from __future__ import annotations

import os
import sys

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # names of mallopt's parameters, from malloc.h
_LARGEST_REUSED = 32 << 20  # bytes: the most that glibc accepts
_KEPT_FREE = 512 << 20


def raise_malloc_thresholds() -> bool:
    """Raises the thresholds. Returns whether it did."""
    if os.environ.get("RETROGRADE_MALLOC") == "default" or not sys.platform.startswith("linux"):
        return False
    import ctypes

    libc = ctypes.CDLL(None)
    if not hasattr(libc, "gnu_get_libc_version"):
        return False
    kept = libc.mallopt(_MMAP_THRESHOLD, _LARGEST_REUSED)
    return bool(kept and libc.mallopt(_TRIM_THRESHOLD, _KEPT_FREE))
