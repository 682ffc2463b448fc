"""Floating-point exception flags: how often a kernel of this thread has produced a NaN or Inf.

The CPU sets a flag at a division by zero, an overflow or an invalid operation, and NumPy checks the
flags after each kernel anyway. A callback that counts costs nothing until a flag is set. Code that
has to find the operation compares the counts before and after it.
"""

from __future__ import annotations

import threading


class Flags:
    """Counts the kernels of one thread that set a flag."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0


class _Thread(threading.local):
    def __init__(self) -> None:
        self.flags = Flags()


_thread = _Thread()


def flags() -> Flags:
    """Returns the counter of this thread."""
    return _thread.flags


def set_flag(_kind: str = "", _flags: int = 0) -> None:
    """Counts a flag. NumPy calls it after a kernel."""
    _thread.flags.count += 1
