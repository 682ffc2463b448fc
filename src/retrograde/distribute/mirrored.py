"""MirroredStrategy: one replica per logical device, in one process."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from retrograde.core.variable import VariableSynchronization
from retrograde.distribute import collectives
from retrograde.distribute.context import StrategyScope, context
from retrograde.distribute.input import InputContext, ValueContext
from retrograde.distribute.local_variables import LocalMirroredVariable, LocalSyncOnReadVariable
from retrograde.distribute.reduction import ReduceOp
from retrograde.distribute.replica_threads import ReplicaThreads, merge_across_replicas
from retrograde.distribute.strategy import Strategy
from retrograde.distribute.values import (
    DistributedValues,
    PerReplica,
    combine_replicas,
    local_results,
    value_of_replica,
)
from retrograde.ops.conversion import as_tensor
from retrograde.ops.shaping import concat
from retrograde.values import nest
from retrograde.values.arguments import shown


class MirroredStrategy(Strategy):
    """Runs one replica per logical device of this process and sums their gradients.

    By default, there is one replica for each GPU that JAX finds. Without GPUs, there is one for
    each logical CPU device; `tf.config.set_logical_device_configuration` creates several. In a
    function with `jit_compile=True`, XLA runs them in parallel on their devices. Otherwise they run
    one after the other, up to the next collective.
    """

    def __init__(self, devices: Sequence[str] | None = None, cross_device_ops: Any = None) -> None:
        super().__init__()
        available = _local_devices()
        if devices is None:
            self._devices = available
        else:
            self._devices = tuple(map(_canonical, devices))
            if len(self._devices) > 1 and not set(self._devices) <= set(available):
                raise ValueError(
                    f"MirroredStrategy: this process has the devices {list(available)}. Received: "
                    f"devices={shown(list(devices))}. Divide the CPU with "
                    "tf.config.set_logical_device_configuration before JAX starts."
                )

    @property
    def num_replicas_in_sync(self) -> int:
        """The number of devices."""
        return len(self._devices)

    def run(
        self, fn: Callable, args: Sequence = (), kwargs: Mapping | None = None, options: Any = None
    ) -> Any:
        """Calls `fn` in one replica after the other and returns the results of all replicas."""
        count = len(self._devices)
        if count == 1:
            return super().run(fn, args, kwargs)
        kwargs = dict(kwargs or {})

        def function(replica: int) -> Callable[[], Any]:
            local_args, local_kwargs = value_of_replica((tuple(args), kwargs), replica)
            return lambda: fn(*local_args, **local_kwargs)

        with self._enter_scope(in_replica=False):
            return combine_replicas(ReplicaThreads(self, list(map(function, range(count)))).run())

    def _jax_devices(self) -> list:
        """Returns the JAX devices of the replicas."""
        from retrograde.config.devices import jax_devices

        names = [name.removeprefix("/device:").partition(":") for name in self._devices]
        return [jax_devices(kind)[int(index)] for kind, _, index in names]

    def _merge_call(self, merge_fn: Callable, args: tuple, kwargs: dict) -> Any:
        if self.num_replicas_in_sync == 1:
            return super()._merge_call(merge_fn, args, kwargs)

        def merge(values: list) -> list:
            args, kwargs = combine_replicas(values)
            with StrategyScope(self, in_replica=False):
                result = merge_fn(self, *args, **kwargs)
            return [value_of_replica(result, i) for i in range(len(values))]

        return merge_across_replicas("merge_call", (args, kwargs), merge)

    def _first(self, structure: Any) -> Any:
        return value_of_replica(structure, 0)

    def _reduce(self, op: ReduceOp, value: Any) -> Any:
        if len(self._devices) == 1:
            return value
        leaves = [self._reduce_leaf(op, leaf) for leaf in nest.leaves(value)]
        return nest.pack(value, iter(leaves))

    def _reduce_leaf(self, op: ReduceOp, value: Any) -> Any:
        if not isinstance(value, DistributedValues):
            if op is ReduceOp.SUM:
                raise ValueError(
                    f"A non-DistributedValues value {shown(value)} cannot be reduced with the "
                    f"given reduce op {op}."
                )
            return value
        return collectives.combine_local(op, value.values)

    def _regroup(self, parts: list) -> Any:
        return parts[0] if len(parts) == 1 else PerReplica(parts)

    def gather(self, value: Any, axis: int) -> Any:
        """Returns the values of all replicas, concatenated along `axis`."""
        parts = [as_tensor(part) for part in local_results(value)]
        return parts[0] if len(parts) == 1 else concat(*parts, axis=axis)

    def experimental_distribute_values_from_function(self, value_fn: Callable) -> Any:
        """Returns the results of `value_fn(context)` for all replicas."""
        count = self.num_replicas_in_sync
        return self._regroup([value_fn(ValueContext(i, count)) for i in range(count)])

    def _create_variable(self, create: Callable, **arguments: Any) -> Any:
        """Creates a variable once, for all replicas."""
        del create  # creates plain variables
        if context.local is not None:  # in a replica
            return merge_across_replicas(
                "Variable", arguments, lambda values: self._create_once(values)
            )
        return self._new_variable(arguments)

    def _create_once(self, values: list) -> list:
        return [self._new_variable(values[0])] * len(values)

    def _new_variable(self, arguments: dict) -> Any:
        is_on_read = arguments.get("synchronization") is VariableSynchronization.ON_READ
        kind = LocalSyncOnReadVariable if is_on_read else LocalMirroredVariable
        variable = type.__call__(kind, **arguments)
        variable._attach(self)
        self._created.append(weakref.ref(variable))
        return variable

    @property
    def _input_context(self) -> InputContext:
        return InputContext(1, 0, self.num_replicas_in_sync)


class TPUStrategy(MirroredStrategy):
    """Runs one replica per TPU that JAX finds. Raises a `ValueError` if there are none."""

    def __init__(
        self,
        tpu_cluster_resolver: Any = None,
        experimental_device_assignment: Any = None,
        experimental_spmd_xla_partitioning: bool = False,
    ) -> None:
        from retrograde.config.devices import list_logical_devices

        devices = [device.name for device in list_logical_devices("TPU")]
        if not devices:
            raise ValueError(
                "TPUStrategy: JAX finds no TPU. Use tf.distribute.MirroredStrategy() for the GPUs "
                "or the CPU of this machine."
            )
        Strategy.__init__(self)
        self._devices = tuple(devices)


def _local_devices() -> tuple[str, ...]:
    from retrograde.config.devices import list_logical_devices

    devices = list_logical_devices("GPU") or list_logical_devices("CPU")
    return tuple(device.name for device in devices)


def _canonical(name: str) -> str:
    """Returns a device name in the form of `list_logical_devices`: "/device:CPU:0"."""
    kind, _, index = name.rpartition("/")[2].removeprefix("device:").partition(":")
    return f"/device:{kind.upper()}:{index or 0}"
