"""Variables of a strategy with several replicas in one process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from retrograde.core.tensor import Tensor
from retrograde.core.variable import Variable, VariableAggregation
from retrograde.distribute import collectives
from retrograde.distribute.context import context, in_replica_of
from retrograde.distribute.reduction import ReduceOp
from retrograde.distribute.replica_threads import meet
from retrograde.distribute.variables import DistributedVariable
from retrograde.ops.conversion import as_tensor

_OPS = {VariableAggregation.SUM: ReduceOp.SUM, VariableAggregation.MEAN: ReduceOp.MEAN}


class LocalMirroredVariable(DistributedVariable):
    """A variable whose replicas share one value, because it is the same in all of them.

    A value that is assigned in replicas is aggregated, and then assigned once. Without an
    aggregation, that of the first replica is assigned.
    """

    __slots__ = ()

    def _attach(self, strategy: Any) -> None:
        self._strategy = strategy

    def assign(
        self,
        value: Any,
        use_locking: bool = False,
        name: str | None = None,
        read_value: bool = True,
    ) -> Variable | None:
        """Assigns `value`, in replicas after aggregating it."""
        if not in_replica_of(self._strategy):
            return super().assign(value, use_locking, name, read_value)

        def merge(values: list) -> list:
            Variable.assign(self, self._aggregated(values))
            return [None] * len(values)

        meet("assign", value, merge)
        return self if read_value else None

    def _update(self, ufunc: Any, primitive: Any, delta: Any, how: str, read_value: bool) -> Any:
        if not in_replica_of(self._strategy):
            return super()._update(ufunc, primitive, delta, how, read_value)

        def merge(values: list) -> list:
            Variable._update(self, ufunc, primitive, self._aggregated(values), how, True)
            return [None] * len(values)

        meet(how, delta, merge)
        return self if read_value else None

    def _aggregated(self, values: list) -> Any:
        if self._aggregation not in _OPS:
            return values[0]
        tensors = [as_tensor(value, self._spec.dtype) for value in values]
        return collectives.combined(_OPS[self._aggregation], tensors)


class LocalSyncOnReadVariable(DistributedVariable):
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

    def _of_replica(self) -> Variable | None:
        """Returns the variable of this replica; `None` for the first, which is this one."""
        return self._others[context.replica - 1] if context.replica else None

    def _read(self) -> Tensor:
        if in_replica_of(self._strategy):
            other = self._of_replica()
            return super()._read() if other is None else other._read()
        if self._aggregation not in _OPS:
            return super()._read()
        parts = [super()._read(), *[other._read() for other in self._others]]
        return collectives.combined(_OPS[self._aggregation], parts)

    def assign(
        self,
        value: Any,
        use_locking: bool = False,
        name: str | None = None,
        read_value: bool = True,
    ) -> Variable | None:
        """Assigns `value` to this replica, or to all replicas in cross-replica context.

        In cross-replica context, aggregation `SUM` divides it by the number of replicas.
        """
        if in_replica_of(self._strategy):
            other = self._of_replica()
            super().assign(value) if other is None else other.assign(value)
            return self if read_value else None
        if self._aggregation is VariableAggregation.SUM:
            value = as_tensor(value, self._spec.dtype) / len([self, *self._others])
        super().assign(value)
        for other in self._others:
            other.assign(value)
        return self if read_value else None

    def _update(self, ufunc: Any, primitive: Any, delta: Any, how: str, read_value: bool) -> Any:
        if in_replica_of(self._strategy):
            other = self._of_replica()  # is false if its value is 0
            variable = super() if other is None else other
            variable._update(ufunc, primitive, delta, how, read_value)
            return self if read_value else None
        if self._aggregation is VariableAggregation.SUM:
            raise ValueError(
                f"SyncOnReadVariable does not support `{how}` in cross-replica context when "
                "aggregation is set to `tf.VariableAggregation.SUM`."
            )
        for variable in (super(), *self._others):
            variable._update(ufunc, primitive, delta, how, read_value)
        return self if read_value else None


def variables_of_replicas(variable: Variable, replicas: Sequence[int]) -> list[Variable]:
    """Returns the variables that hold the values of some replicas of this process."""
    if isinstance(variable, LocalSyncOnReadVariable):
        return [[variable, *variable._others][i] for i in replicas]
    return [variable] if 0 in replicas else []
