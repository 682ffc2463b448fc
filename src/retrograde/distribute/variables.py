"""Variables of strategies with several replicas."""

from __future__ import annotations

from typing import Any

from retrograde.core.tensor import Tensor
from retrograde.core.variable import (
    Variable,
    VariableAggregation,
    VariableSynchronization,
)
from retrograde.distribute import collectives
from retrograde.distribute.context import in_replica_of
from retrograde.distribute.reduction import ReduceOp

_OPS = {VariableAggregation.SUM: ReduceOp.SUM, VariableAggregation.MEAN: ReduceOp.MEAN}


class DistributedVariable(Variable):
    """A variable that was created in the scope of a strategy with several replicas."""

    __slots__ = ("_strategy",)

    _strategy: Any


class MirroredVariable(DistributedVariable):
    """A variable that has the same value in all replicas.

    A value that is assigned in a replica is aggregated first: summed, averaged, or taken from the
    first replica. Without an aggregation it is assigned as it is, and has to be the same in all
    replicas.
    """

    __slots__ = ()

    def assign(
        self,
        value: Any,
        use_locking: bool = False,
        name: str | None = None,
        read_value: bool = True,
    ) -> Variable | None:
        """Assigns `value`, in a replica after aggregating it."""
        return super().assign(self._aggregated(value), use_locking, name, read_value)

    def _update(self, ufunc: Any, primitive: Any, delta: Any, how: str, read_value: bool) -> Any:
        return super()._update(ufunc, primitive, self._aggregated(delta), how, read_value)

    def _aggregated(self, value: Any) -> Any:
        aggregation = self._aggregation
        if aggregation is VariableAggregation.NONE or not in_replica_of(self._strategy):
            return value
        if not isinstance(value, Tensor):
            value = Tensor(self._operand(value, "assign"))
        if aggregation is VariableAggregation.ONLY_FIRST_REPLICA:
            return collectives.from_first(value)
        return collectives.all_reduce(_OPS[aggregation], value)


class SyncOnReadVariable(DistributedVariable):
    """A variable with a value for each replica, which are aggregated when it is read outside."""

    __slots__ = ()

    def _read(self) -> Tensor:
        tensor = super()._read()
        if in_replica_of(self._strategy):
            return tensor
        if self._aggregation in _OPS:
            return collectives.all_reduce(_OPS[self._aggregation], tensor)
        return collectives.from_first(tensor)

    def assign(
        self,
        value: Any,
        use_locking: bool = False,
        name: str | None = None,
        read_value: bool = True,
    ) -> Variable | None:
        """Assigns to the value of this replica; outside of replicas, to those of all.

        If they are summed, each replica gets an equal share of `value`.
        """
        if self._aggregation is VariableAggregation.SUM and not in_replica_of(self._strategy):
            value = Tensor(self._operand(value, "assign"))
            value = collectives.mean_of(value)
        return super().assign(value, use_locking, name, read_value)

    def _update(self, ufunc: Any, primitive: Any, delta: Any, how: str, read_value: bool) -> Any:
        is_sum = self._aggregation is VariableAggregation.SUM
        if is_sum and not in_replica_of(self._strategy):
            raise ValueError(
                f"SyncOnReadVariable does not support `{how}` in cross-replica context when "
                "aggregation is set to `tf.VariableAggregation.SUM`."
            )
        return super()._update(ufunc, primitive, delta, how, read_value)


def variable_class(synchronization: Any) -> type[DistributedVariable]:
    """Returns the class of a variable that synchronizes in this way."""
    if synchronization is VariableSynchronization.ON_READ:
        return SyncOnReadVariable
    return MirroredVariable
