"""The strategy of each thread, and whether the thread runs code of a replica."""

from __future__ import annotations

import threading
from typing import Any

from retrograde.values.settings import count_replica_scopes
from retrograde.values.variable_scopes import scopes


class _Context(threading.local):
    """Outside of all scopes, a program is in the only replica of the default strategy."""

    strategy: Any = None
    in_replica: bool = True
    replica: int = 0
    local: Any = None  # the thread of a replica, if a process has several
    fraction: float | None = None  # of the rows of a global batch, if Keras divides it


context = _Context()


class StrategyScope:
    """A context manager that sets the strategy and the replica of a thread."""

    __slots__ = ("_before", "_has_others", "_in_replica", "_replica", "_strategy")

    def __init__(self, strategy: Any, in_replica: bool, replica: int = 0) -> None:
        self._strategy, self._in_replica, self._replica = strategy, in_replica, replica

    def __enter__(self) -> Any:
        strategy = self._strategy
        self._before = context.strategy, context.in_replica, context.replica, scopes.replica
        self._has_others = strategy is not None and strategy.num_replicas_in_sync > 1
        if self._has_others:
            count_replica_scopes(1)
        enter(strategy, self._in_replica, self._replica)
        return strategy

    def __exit__(self, *_: object) -> None:
        context.strategy, context.in_replica, context.replica, scopes.replica = self._before
        if self._has_others:
            count_replica_scopes(-1)


def enter(strategy: Any, in_replica: bool, replica: int) -> None:
    """Makes `strategy` the strategy of this thread.

    Functions have separate traces in each replica of a strategy with several replicas.
    """
    context.strategy, context.in_replica, context.replica = strategy, in_replica, replica
    has_others = strategy is not None and strategy.num_replicas_in_sync > 1
    scopes.replica = (strategy, in_replica, replica) if has_others else None


class OutsideStrategies:
    """A context manager for work that one worker does without the others.

    New variables are plain ones: nothing is exchanged.
    """

    def __enter__(self) -> None:
        self._scope = StrategyScope(None, in_replica=True)
        self._scope.__enter__()
        self._creators, scopes.variable_creators = scopes.variable_creators, []

    def __exit__(self, *error: object) -> None:
        scopes.variable_creators = self._creators
        self._scope.__exit__(*error)


def in_replica_of(strategy: Any) -> bool:
    """Returns whether this thread runs code of a replica of `strategy`."""
    return context.in_replica and context.strategy is strategy
