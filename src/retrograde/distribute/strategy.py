"""Strategy: replicas that run the same program on different parts of the data."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from retrograde.core.tensor import Tensor
from retrograde.distribute import collectives
from retrograde.distribute.context import StrategyScope, context, enter
from retrograde.distribute.extended import StrategyExtended
from retrograde.distribute.input import (
    InputContext,
    ValueContext,
    distribute_dataset,
    distribute_dataset_from_function,
)
from retrograde.distribute.reduction import ReduceOp, as_reduce_op
from retrograde.distribute.replica_context import ReplicaContext
from retrograde.distribute.synchronization import check_in_sync, variables_of_all_workers
from retrograde.distribute.values import local_results
from retrograde.math import reduce_mean, reduce_sum
from retrograde.ops.casting import to_dtype
from retrograde.ops.conversion import as_tensor
from retrograde.values.variable_scopes import scopes


class Strategy:
    """Runs a program in one or more replicas. This one has a single replica.

    >>> strategy = tf.distribute.MirroredStrategy()
    >>> with strategy.scope():
    ...     w = tf.Variable(2.0)
    >>> loss = strategy.run(lambda x: w * x, args=(tf.constant(3.0),))
    >>> strategy.reduce(tf.distribute.ReduceOp.SUM, loss, axis=None).numpy()
    np.float32(6.0)
    """

    _options: Any = None
    _rank = 0  # of the first replica of this process

    def __init__(self, extended: Any = None) -> None:
        self._created: list[weakref.ref] = []

    def __copy__(self) -> Strategy:
        return self

    def __deepcopy__(self, _memo: dict) -> Strategy:
        return self

    @property
    def num_replicas_in_sync(self) -> int:
        """The number of replicas whose gradients are summed."""
        return 1

    @property
    def extended(self) -> StrategyExtended:
        """Methods for code that updates variables in the cross-replica context."""
        return StrategyExtended(self)

    @property
    def cluster_resolver(self) -> Any:
        """The resolver of a strategy of several workers, else `None`."""
        return None

    def scope(self) -> contextlib.AbstractContextManager:
        """Returns a context manager that makes this the strategy.

        Variables that are created in it are mirrored: all replicas start from the initial value of
        the first one.
        """
        present = context.strategy
        if present is not None and present is not self:
            raise RuntimeError(
                f"Mixing different tf.distribute.Strategy objects: {present!r} is not {self!r}. "
                "Leave the scope of the one before the scope of the other."
            )
        return self._enter_scope(in_replica=False)

    @contextlib.contextmanager
    def _enter_scope(self, in_replica: bool) -> Any:
        creators = scopes.variable_creators
        with StrategyScope(self, in_replica, self._rank):
            if self.num_replicas_in_sync == 1 or self._create_variable in creators:
                yield self
                return
            # Creators of scopes inside are called first.
            scopes.variable_creators = [self._create_variable, *creators]
            try:
                yield self
            finally:
                scopes.variable_creators = creators

    def _create_variable(self, create: Callable, **arguments: Any) -> Any:
        """Creates a variable, as a creator of a scope."""
        return create(**arguments)

    def run(
        self, fn: Callable, args: Sequence = (), kwargs: Mapping | None = None, options: Any = None
    ) -> Any:
        """Calls `fn` in each replica of this process, and returns its results."""
        before = context.strategy, context.in_replica, context.replica
        context.strategy, context.in_replica, context.replica = self, True, 0
        try:
            return fn(*args, **kwargs) if kwargs else fn(*args)
        finally:
            context.strategy, context.in_replica, context.replica = before

    def _merge_call(self, merge_fn: Callable, args: tuple, kwargs: dict) -> Any:
        with StrategyScope(self, in_replica=False, replica=context.replica):
            return merge_fn(self, *args, **kwargs)

    def _first(self, structure: Any) -> Any:
        """Returns the values of the first replica, which are the same in all."""
        return structure

    def reduce(self, reduce_op: ReduceOp | str, value: Any, axis: int | None) -> Any:
        """Returns the sum or mean of `value` over all replicas, and along `axis` if there is one.

        A mean along an axis is the mean of all rows, also if replicas have different numbers of
        them.
        """
        op = as_reduce_op(reduce_op)
        if axis is None:
            return self._reduce(op, value)
        if self.num_replicas_in_sync == 1:
            return (reduce_sum if op is ReduceOp.SUM else reduce_mean)(value, axis)
        parts = [as_tensor(part) for part in local_results(value)]
        total = self._reduce(ReduceOp.SUM, self._distributed(parts, axis))
        if op is ReduceOp.SUM:
            return total
        counts = [Tensor(np.array(x._spec.shape[axis], np.int64)[()]) for x in parts]
        count = self._reduce(ReduceOp.SUM, self._regroup(counts))
        return total / to_dtype(count, total._spec.dtype)

    def _distributed(self, parts: list, axis: int) -> Any:
        return self._regroup([reduce_sum(part, axis) for part in parts])

    def _regroup(self, parts: list) -> Any:
        """Returns the values of the replicas of this process as one."""
        (part,) = parts
        return part

    def _reduce(self, op: ReduceOp, value: Any) -> Any:
        return collectives.all_reduce(op, value, self._bytes_per_pack(None))

    def gather(self, value: Any, axis: int) -> Any:
        """Returns the values of all replicas, concatenated along `axis`."""
        return collectives.all_gather(value, axis)

    def experimental_local_results(self, value: Any) -> tuple:
        """Returns the values of the replicas of this process."""
        return local_results(value)

    def experimental_distribute_dataset(self, dataset: Any, options: Any = None) -> Any:
        """Returns a dataset whose elements are the shards of global batches.

        An uneven batch is divided as evenly as possible; the last replicas may get no rows.
        """
        return distribute_dataset(self, dataset)

    def distribute_datasets_from_function(self, dataset_fn: Callable, options: Any = None) -> Any:
        """Returns the dataset that `dataset_fn` creates from the `InputContext` of this worker."""
        return distribute_dataset_from_function(self, dataset_fn)

    def experimental_distribute_datasets_from_function(
        self, dataset_fn: Callable, options: Any = None
    ) -> Any:
        """Calls `distribute_datasets_from_function`. This is its older name."""
        return self.distribute_datasets_from_function(dataset_fn, options)

    def experimental_distribute_values_from_function(self, value_fn: Callable) -> Any:
        """Returns the result of `value_fn` for the contexts of the replicas of this process."""
        return self._regroup([value_fn(ValueContext(self._rank, self.num_replicas_in_sync))])

    def check_in_sync(self, variables: Sequence[Any] | None = None) -> None:
        """Raises a `FailedPreconditionError` if mirrored variables differ between replicas.

        By default it checks all variables that were created in the scope. In eager code, a
        forgotten all-reduce lets replicas drift apart without an error; this finds it.
        """
        if variables is None:
            variables = variables_of_all_workers(self._created)
        check_in_sync(self, variables)

    def _bytes_per_pack(self, options: Any) -> int:
        chosen = options or self._options
        return 0 if chosen is None else chosen.bytes_per_pack

    @property
    def _input_context(self) -> InputContext:
        return InputContext(1, 0, self.num_replicas_in_sync)


class OneDeviceStrategy(Strategy):
    """A strategy for one device. Programs run where `tf.device` says."""

    def __init__(self, device: str) -> None:
        super().__init__()
        self._device = device


_default = Strategy()


def get_strategy() -> Strategy:
    """Returns the strategy whose scope this is; outside of all, one with a single replica."""
    return context.strategy or _default


def has_strategy() -> bool:
    """Returns whether this is the scope of a strategy that the program created."""
    return context.strategy not in (None, _default)


def in_cross_replica_context() -> bool:
    """Returns whether this is the scope of a strategy, but not code of a replica."""
    return not context.in_replica


def get_replica_context() -> ReplicaContext | None:
    """Returns the context of the replica; `None` in the cross-replica context of a strategy."""
    return ReplicaContext(get_strategy(), context.replica) if context.in_replica else None


def experimental_set_strategy(strategy: Strategy | None) -> None:
    """Sets the strategy of this thread; `None` sets the default strategy."""
    if context.strategy is not None:
        scopes.variable_creators = []
    enter(None, in_replica=True, replica=0)
    if strategy is not None:
        strategy._enter_scope(in_replica=False).__enter__()
