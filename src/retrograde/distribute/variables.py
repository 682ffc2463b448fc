"""Variables of strategies with several replicas.

In this module, each process has one replica. `local_variables.py` contains the variables of a
process with several replicas.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from retrograde.core.tensor import Tensor
from retrograde.core.variable import (
    Variable,
    VariableAggregation,
    VariableSynchronization,
)
from retrograde.distribute import collectives
from retrograde.distribute.context import in_replica_of
from retrograde.distribute.reduction import ReduceOp
from retrograde.ops.conversion import as_tensor

REDUCE_OPS = {VariableAggregation.SUM: ReduceOp.SUM, VariableAggregation.MEAN: ReduceOp.MEAN}


class DistributedVariable(Variable):
    """A variable that is created in the scope of a strategy with several replicas.

    Subclasses implement `_write_value`.
    """

    __slots__ = ("_strategy",)

    _strategy: Any

    def assign(
        self,
        value: Any,
        use_locking: bool = False,
        name: str | None = None,
        read_value: bool = True,
    ) -> Variable | None:
        """Assigns `value`, in replicas as `synchronization` and `aggregation` say."""
        self._write_value(Variable.assign, value, "assign")
        return self if read_value else None

    def _update(self, ufunc: Any, primitive: Any, delta: Any, how: str, read_value: bool) -> Any:
        def update(variable: Variable, value: Any) -> None:
            Variable._update(variable, ufunc, primitive, value, how, True)

        self._write_value(update, delta, how)
        return self if read_value else None

    def _write_value(self, write: Callable[[Variable, Any], Any], value: Any, how: str) -> None:
        """Calls `write` with variables, and the value for each. `how` is the method's name."""
        raise NotImplementedError

    @property
    def _in_replica(self) -> bool:
        return in_replica_of(self._strategy)


class MirroredVariable(DistributedVariable):
    """A variable that has the same value in all replicas.

    In replica context, an assigned value is aggregated first: summed, averaged, or taken from the
    first replica. If `aggregation` is `NONE`, it is assigned without aggregation and has to be the
    same in all replicas.
    """

    __slots__ = ()

    def _write_value(self, write: Callable[[Variable, Any], Any], value: Any, how: str) -> None:
        write(self, self._aggregate(value) if self._in_replica else value)

    def _aggregate(self, value: Any) -> Any:
        aggregation = self._aggregation
        if aggregation is VariableAggregation.NONE:
            return value
        value = as_tensor(value, self._spec.dtype)
        if aggregation is VariableAggregation.ONLY_FIRST_REPLICA:
            return collectives.broadcast_from_first(value)
        return collectives.all_reduce(REDUCE_OPS[aggregation], value)


class SyncOnRead(DistributedVariable):
    """The base of variables with one value per replica.

    In cross-replica context, reading them aggregates the values, and assigning a value to a sum
    divides it by the number of replicas.
    """

    __slots__ = ()

    def _share(self, value: Any, how: str) -> Any:
        """Returns the value for each replica of one that is assigned in cross-replica context."""
        if self._aggregation is not VariableAggregation.SUM:
            return value
        if how != "assign":
            raise ValueError(
                f"SyncOnReadVariable does not support `{how}` in cross-replica context when "
                "aggregation is set to `tf.VariableAggregation.SUM`."
            )
        total = as_tensor(value, self._spec.dtype)
        return collectives.divide_by_num_replicas(total, self._strategy.num_replicas_in_sync)

    def _checkpoint_array(self) -> np.ndarray:
        """Returns the aggregated value. All workers have to call it."""
        return np.asarray(self._read()._array)


class SyncOnReadVariable(SyncOnRead):
    """A variable with one value per replica, in processes with one replica."""

    __slots__ = ()

    def _read(self) -> Tensor:
        tensor = super()._read()
        if self._in_replica:
            return tensor
        if self._aggregation in REDUCE_OPS:
            return collectives.all_reduce(REDUCE_OPS[self._aggregation], tensor)
        return collectives.broadcast_from_first(tensor)

    def _write_value(self, write: Callable[[Variable, Any], Any], value: Any, how: str) -> None:
        write(self, value if self._in_replica else self._share(value, how))


def variable_class(synchronization: Any) -> type[DistributedVariable]:
    """Returns the variable class for a `VariableSynchronization`."""
    if synchronization is VariableSynchronization.ON_READ:
        return SyncOnReadVariable
    return MirroredVariable
