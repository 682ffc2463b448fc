"""The strategy of each thread, and whether the thread runs code of a replica."""

from __future__ import annotations

import threading
from typing import Any


class _Context(threading.local):
    """Outside of all scopes, a program is in the only replica of the default strategy."""

    strategy: Any = None
    in_replica: bool = True
    replica: int = 0


context = _Context()


class Entered:
    """A context manager in which a thread is in other surroundings."""

    __slots__ = ("_before", "_in_replica", "_replica", "_strategy")

    def __init__(self, strategy: Any, in_replica: bool, replica: int = 0) -> None:
        self._strategy, self._in_replica, self._replica = strategy, in_replica, replica

    def __enter__(self) -> Any:
        self._before = context.strategy, context.in_replica, context.replica
        context.strategy = self._strategy
        context.in_replica, context.replica = self._in_replica, self._replica
        return self._strategy

    def __exit__(self, *_: object) -> None:
        context.strategy, context.in_replica, context.replica = self._before


def in_replica_of(strategy: Any) -> bool:
    """Whether this thread runs code of a replica of `strategy`."""
    return context.in_replica and context.strategy is strategy
