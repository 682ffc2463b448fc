"""StrategyExtended: reductions and updates in the cross-replica context."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from retrograde.distribute.context import StrategyScope
from retrograde.distribute.reduction import as_reduce_op


class StrategyExtended:
    """The methods that code in the cross-replica context uses, such as in a `merge_call`."""

    def __init__(self, strategy: Any) -> None:
        self._strategy = strategy

    @property
    def num_local_replicas(self) -> int:
        """The number of replicas of this process."""
        return 1

    @property
    def worker_devices(self) -> tuple[str, ...]:
        """The devices of the replicas of this process."""
        return ("/job:localhost/replica:0/task:0/device:CPU:0",)

    @property
    def parameter_devices(self) -> tuple[str, ...]:
        """The devices that hold variables."""
        return self.worker_devices

    @property
    def experimental_require_static_shapes(self) -> bool:
        """False: shapes may differ from call to call."""
        return False

    def reduce_to(
        self, reduce_op: Any, value: Any, destinations: Any = None, options: Any = None
    ) -> Any:
        """Returns the sum or mean over all replicas."""
        return self._strategy._reduce(as_reduce_op(reduce_op), value)

    def batch_reduce_to(
        self, reduce_op: Any, value_destination_pairs: Sequence[tuple], options: Any = None
    ) -> list:
        """Returns the sums or means of several values, in as few collectives as buckets allow."""
        values = [value for value, _ in value_destination_pairs]
        return list(self._strategy._reduce(as_reduce_op(reduce_op), values))

    def update(
        self, var: Any, fn: Callable, args: Sequence = (), kwargs: Any = None, group: bool = True
    ) -> Any:
        """Calls `fn(var, *args)` to update a variable in the same way in all replicas."""
        with StrategyScope(self._strategy, in_replica=False):
            return fn(var, *args, **(kwargs or {}))

    def call_for_each_replica(self, fn: Callable, args: Sequence = (), kwargs: Any = None) -> Any:
        """Calls `fn` in each replica of this process."""
        return self._strategy.run(fn, args, kwargs)

    def variable_created_in_scope(self, v: Any) -> bool:
        """Returns whether a variable was created in the scope of the strategy."""
        return any(reference() is v for reference in self._strategy._created)

    def value_container(self, value: Any) -> Any:
        """Returns the variable that `value` belongs to: itself."""
        return value

    def colocate_vars_with(self, colocate_with_variable: Any) -> Any:
        """Returns a context manager without effect."""
        return StrategyScope(self._strategy, in_replica=False)
