"""ReplicaContext: the replica that code runs in, and its collectives."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from retrograde.distribute import collectives
from retrograde.distribute.context import StrategyScope
from retrograde.distribute.reduction import ReduceOp, as_reduce_op
from retrograde.values import nest


class ReplicaContext:
    """The replica that a function runs in, and its collectives.

    All replicas call the same methods in the same order.
    """

    def __init__(self, strategy: Any, replica_id_in_sync_group: int) -> None:
        self.strategy = strategy
        self._replica = replica_id_in_sync_group

    @property
    def replica_id_in_sync_group(self) -> int:
        """The number of this replica, from 0."""
        return self._replica

    @property
    def num_replicas_in_sync(self) -> int:
        """The number of replicas."""
        return self.strategy.num_replicas_in_sync

    @property
    def devices(self) -> tuple[str, ...]:
        """The device of this replica."""
        return (self.strategy.extended.worker_devices[self._replica_on_worker],)

    @property
    def _replica_on_worker(self) -> int:
        return self._replica % self.strategy.extended.num_local_replicas

    def all_reduce(self, reduce_op: ReduceOp | str, value: Any, options: Any = None) -> Any:
        """Returns the sum or mean over all replicas of each tensor in `value`.

        The gradient is the sum or mean of the gradients of all replicas.

        >>> strategy = tf.distribute.MirroredStrategy()
        >>> def f():
        ...     context = tf.distribute.get_replica_context()
        ...     return context.all_reduce("SUM", tf.constant(2.0))
        >>> strategy.run(f).numpy()
        np.float32(2.0)
        """
        op = as_reduce_op(reduce_op)
        return collectives.all_reduce(op, value, self.strategy._bytes_per_pack(options))

    def all_gather(self, value: Any, axis: int, options: Any = None) -> Any:
        """Returns the tensors of all replicas, concatenated along `axis`.

        They may differ in the length of that axis. The gradient is the part of this replica in the
        sum of the gradients of all replicas.
        """
        if self.num_replicas_in_sync == 1:
            return value
        leaves = [collectives.all_gather(leaf, axis) for leaf in nest.leaves(value)]
        return nest.pack(value, iter(leaves))

    def merge_call(
        self, merge_fn: Callable, args: Sequence = (), kwargs: Mapping | None = None
    ) -> Any:
        """Calls `merge_fn` with the strategy and `args`, in the cross-replica context."""
        return self.strategy._merge_call(merge_fn, tuple(args), dict(kwargs or {}))

    def __enter__(self) -> ReplicaContext:
        self._scope = StrategyScope(self.strategy, in_replica=True, replica=self._replica)
        self._scope.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._scope.__exit__(*error)

    def __repr__(self) -> str:
        return f"<replica {self._replica} of {self.num_replicas_in_sync}>"
