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
    """A variable that is created in the scope of a strategy with several replicas."""

    __slots__ = ("_strategy",)

    _strategy: Any


class MirroredVariable(DistributedVariable):
    """A variable that has the same value in all replicas.

    In replica context, an assigned value is aggregated first: summed, averaged, or taken from the
    first replica. If `aggregation` is `NONE`, it is assigned without aggregation and has to be the
    same in all replicas.
    """

    __slots__ = ()

    def assign(
        self,
        value: Any,
        use_locking: bool = False,
        name: str | None = None,
        read_value: bool = True,
    ) -> Variable | None:
        """Assigns `value`. In replica context, it is aggregated first."""
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
            return collectives.broadcast_from_first(value)
        return collectives.all_reduce(_OPS[aggregation], value)


class SyncOnReadVariable(DistributedVariable):
    """A variable with one value per replica.

    Reading it in cross-replica context aggregates them.
    """

    __slots__ = ()

    def _read(self) -> Tensor:
        tensor = super()._read()
        if in_replica_of(self._strategy):
            return tensor
        if self._aggregation in _OPS:
            return collectives.all_reduce(_OPS[self._aggregation], tensor)
        return collectives.broadcast_from_first(tensor)

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
        if self._aggregation is VariableAggregation.SUM and not in_replica_of(self._strategy):
            value = Tensor(self._operand(value, "assign"))
            value = collectives.divide_by_num_replicas(value)
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
    """Returns the variable class for a `VariableSynchronization`."""
    if synchronization is VariableSynchronization.ON_READ:
        return SyncOnReadVariable
    return MirroredVariable
