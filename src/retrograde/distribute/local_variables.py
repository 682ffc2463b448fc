"""Variables of a strategy with several replicas in one process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from retrograde.core.tensor import Tensor
from retrograde.core.variable import Variable, VariableAggregation
from retrograde.distribute import collectives
from retrograde.distribute.context import context
from retrograde.distribute.replica_threads import merge_across_replicas
from retrograde.distribute.variables import REDUCE_OPS, DistributedVariable, SyncOnRead
from retrograde.ops.conversion import as_tensor


class LocalMirroredVariable(DistributedVariable):
    """A variable whose replicas share one value, because it is the same in all of them.

    A value that is assigned in replicas is aggregated, and then assigned once. Without an
    aggregation, the value of the first replica is assigned.
    """

    __slots__ = ()

    def _attach(self, strategy: Any) -> None:
        self._strategy = strategy

    def _write_value(self, write: Callable[[Variable, Any], Any], value: Any, how: str) -> None:
        if not self._in_replica:
            write(self, value)
            return

        def merge(values: list) -> list:
            write(self, self._aggregate(values))
            return [None] * len(values)

        merge_across_replicas(how, value, merge)

    def _aggregate(self, values: list) -> Any:
        if self._aggregation not in REDUCE_OPS:
            return values[0]
        tensors = [as_tensor(value, self._spec.dtype) for value in values]
        return collectives.combine_local(REDUCE_OPS[self._aggregation], tensors)


class LocalSyncOnReadVariable(SyncOnRead):
    """A variable with a value for each replica, which are aggregated when it is read outside."""

    __slots__ = ("_others",)

    _others: list[Variable]  # the values of all replicas but the first

    def _attach(self, strategy: Any) -> None:
        self._strategy = strategy
        start = self._array
        if self._aggregation is VariableAggregation.NONE:
            self._aggregation = VariableAggregation.ONLY_FIRST_REPLICA
        self._others = [
            type.__call__(Variable, Tensor(start), trainable=False, name=self._name)
            for _ in range(strategy.num_replicas_in_sync - 1)
        ]

    def _replica_variable(self) -> Variable:
        """Returns the variable of this replica. The first replica uses this object."""
        return [self, *self._others][context.replica]

    def _read(self) -> Tensor:
        if self._in_replica:
            return super()._read() if not context.replica else self._replica_variable()._read()
        if self._aggregation not in REDUCE_OPS:
            return super()._read()
        parts = [super()._read(), *[other._read() for other in self._others]]
        return collectives.combine_local(REDUCE_OPS[self._aggregation], parts)

    def _write_value(self, write: Callable[[Variable, Any], Any], value: Any, how: str) -> None:
        if self._in_replica:
            write(self._replica_variable(), value)
            return
        value = self._share(value, how)
        for variable in (self, *self._others):
            write(variable, value)


def variables_of_replicas(variable: Variable, replicas: Sequence[int]) -> list[Variable]:
    """Returns the variables that hold the values of some replicas of this process."""
    if isinstance(variable, LocalSyncOnReadVariable):
        return [[variable, *variable._others][i] for i in replicas]
    return [variable] if 0 in replicas else []
