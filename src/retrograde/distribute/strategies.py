"""Strategies with one replica: what a program does under one, it does once."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from retrograde.distribute.reducing import (
    ReduceOp,
)
from retrograde.distribute.reducing import (
    reduce_op as _reduce_op,  # methods have it as argument
)
from retrograde.math import reduce_mean, reduce_sum
from retrograde.ops.conversion import as_tensor
from retrograde.values.arguments import as_text, shown


class _Where(threading.local):
    """Where a thread is: under which strategy, and whether in its replica."""

    strategy: Strategy | None = None
    in_replica: bool = True  # as a program is that knows of no strategy


_where = _Where()


@contextlib.contextmanager
def _being(strategy: Strategy | None, in_replica: bool) -> Iterator[Any]:
    before = _where.strategy, _where.in_replica
    _where.strategy, _where.in_replica = strategy, in_replica
    try:
        yield strategy
    finally:
        _where.strategy, _where.in_replica = before


class InputContext:
    """What a function that makes a dataset is told of the replicas it is for."""

    def __init__(
        self,
        num_input_pipelines: int = 1,
        input_pipeline_id: int = 0,
        num_replicas_in_sync: int = 1,
    ) -> None:
        self.num_input_pipelines = num_input_pipelines
        self.input_pipeline_id = input_pipeline_id
        self.num_replicas_in_sync = num_replicas_in_sync

    def get_per_replica_batch_size(self, global_batch_size: int) -> int:
        """The share of one replica in a batch."""
        if global_batch_size % self.num_replicas_in_sync:
            raise ValueError(
                f"get_per_replica_batch_size: {as_text(global_batch_size)} cannot be shared by "
                f"{self.num_replicas_in_sync} replicas. Use a multiple of that."
            )
        return global_batch_size // self.num_replicas_in_sync


class ReplicaContext:
    """What code in a replica is told: that it is the only one."""

    def __init__(self, strategy: Strategy, replica_id_in_sync_group: int) -> None:
        self.strategy = strategy
        self.replica_id_in_sync_group = replica_id_in_sync_group
        self.num_replicas_in_sync = 1

    def all_reduce(self, reduce_op: ReduceOp | str, value: Any, options: Any = None) -> Any:
        """The sum, or the mean, over all replicas: `value`."""
        _reduce_op(reduce_op)
        return value

    def all_gather(self, value: Any, axis: int, options: Any = None) -> Any:
        """The values of all replicas, one behind the other: `value`."""
        return value

    def merge_call(
        self, merge_fn: Callable, args: Sequence = (), kwargs: Mapping | None = None
    ) -> Any:
        """Calls `merge_fn` with the strategy and `args`, outside of the replica."""
        strategy = self.strategy
        with _being(strategy, in_replica=False):
            return merge_fn(strategy, *args, **(kwargs or {}))


class Strategy:
    """Runs a program in one replica, on the device of this machine.

    >>> strategy = tf.distribute.MirroredStrategy()
    >>> with strategy.scope():
    ...     w = tf.Variable(2.0)
    >>> loss = strategy.run(lambda x: w * x, args=(tf.constant(3.0),))
    >>> strategy.reduce(tf.distribute.ReduceOp.SUM, loss, axis=None).numpy()
    np.float32(6.0)
    """

    @property
    def num_replicas_in_sync(self) -> int:
        """How many replicas there are: one."""
        return 1

    def scope(self) -> contextlib.AbstractContextManager:
        """A block in which this is the strategy."""
        under = _where.strategy
        if under is not None and under is not self:
            raise RuntimeError(
                f"Mixing different tf.distribute.Strategy objects: {under!r} is not {self!r}. "
                "Leave the scope of the one before the scope of the other."
            )
        return _being(self, in_replica=False)

    def run(
        self, fn: Callable, args: Sequence = (), kwargs: Mapping | None = None, options: Any = None
    ) -> Any:
        """What `fn` returns, called once, in the replica."""
        with _being(self, in_replica=True):
            return fn(*args, **(kwargs or {}))

    def reduce(self, reduce_op: ReduceOp | str, value: Any, axis: int | None) -> Any:
        """The sum, or the mean, of `value` over all replicas, and along `axis` if there is one."""
        found = _reduce_op(reduce_op)
        if axis is None:
            return value
        return (reduce_sum if found is ReduceOp.SUM else reduce_mean)(value, axis)

    def gather(self, value: Any, axis: int) -> Any:
        """The values of all replicas, one behind the other along `axis`: `value`."""
        return as_tensor(value)

    def experimental_local_results(self, value: Any) -> tuple:
        """The value of each replica."""
        return (value,)

    def experimental_distribute_dataset(self, dataset: Any, options: Any = None) -> Any:
        """The elements for each replica: all of them."""
        return dataset

    def distribute_datasets_from_function(self, dataset_fn: Callable, options: Any = None) -> Any:
        """The dataset that `dataset_fn` makes of an `InputContext`."""
        return dataset_fn(InputContext())

    def experimental_distribute_values_from_function(self, value_fn: Callable) -> Any:
        """What `value_fn` makes of the context of the replica."""
        return value_fn(ReplicaContext(self, 0))


class MirroredStrategy(Strategy):
    """A strategy for the devices of one machine, of which there is one."""

    def __init__(self, devices: Sequence[str] | None = None, cross_device_ops: Any = None) -> None:
        if devices is not None and len(devices) > 1:
            raise ValueError(
                f"MirroredStrategy: there is one device. Received: devices={shown(list(devices))}. "
                "Pass one of them, or none."
            )


class OneDeviceStrategy(Strategy):
    """A strategy for one device. Programs run where `tf.device` says."""

    def __init__(self, device: str) -> None:
        self._device = device


_default = Strategy()


def get_strategy() -> Strategy:
    """The strategy whose scope this is; outside of all, one that changes nothing."""
    return _where.strategy or _default


def has_strategy() -> bool:
    """Whether this is the scope of a strategy that the program made."""
    return _where.strategy not in (None, _default)


def in_cross_replica_context() -> bool:
    """Whether this is the scope of a strategy, but not in its replica."""
    return not _where.in_replica


def get_replica_context() -> ReplicaContext | None:
    """The context of the replica; `None` outside of it, in the scope of a strategy."""
    return ReplicaContext(get_strategy(), 0) if _where.in_replica else None
