"""How the values of replicas are combined: operations, and options of the communication."""

from __future__ import annotations

import enum
from typing import Any

from retrograde.values.arguments import shown


class ReduceOp(enum.Enum):
    """The way to combine the values of several replicas: their sum or their mean."""

    SUM = "SUM"
    MEAN = "MEAN"


def as_reduce_op(value: Any) -> ReduceOp:
    """Returns the `ReduceOp` that a program passes, or passes by name."""
    if type(value) is ReduceOp:
        return value
    return ReduceOp(value.upper() if isinstance(value, str) else value)


class CommunicationImplementation(enum.Enum):
    """The libraries that TensorFlow can use for collectives. Accepted; JAX chooses."""

    AUTO = "AUTO"
    RING = "RING"
    NCCL = "NCCL"


class CommunicationOptions:
    """Options of collectives.

    Gradients are sent in buckets of at most `bytes_per_pack` bytes; 0 stands for 4 MB.
    `timeout_seconds` is how long a collective waits for the other workers.
    """

    def __init__(
        self,
        bytes_per_pack: int = 0,
        timeout_seconds: float | None = None,
        implementation: Any = CommunicationImplementation.AUTO,
    ) -> None:
        if bytes_per_pack < 0:
            raise ValueError(
                f"Argument `bytes_per_pack` must be >= 0. Received: {shown(bytes_per_pack)}."
            )
        self.bytes_per_pack = bytes_per_pack
        self.timeout_seconds = timeout_seconds
        self.implementation = CommunicationImplementation(
            getattr(implementation, "value", implementation)
        )


class CollectiveHints(CommunicationOptions):
    """The older name of `CommunicationOptions`."""

    def __init__(self, bytes_per_pack: int = 0, timeout_seconds: float | None = None) -> None:
        super().__init__(bytes_per_pack, timeout_seconds)


class CrossDeviceOps:
    """The algorithm for communication between devices. JAX chooses it; all of them are the same."""

    def reduce(
        self,
        reduce_op: ReduceOp | str,
        per_replica_value: Any,
        destinations: Any,
        options: Any = None,
    ) -> Any:
        """Returns the sum or mean of the values of the replicas of this process."""
        from retrograde.distribute import collectives

        values = getattr(per_replica_value, "values", (per_replica_value,))
        return collectives.combine_local(as_reduce_op(reduce_op), values)

    def batch_reduce(
        self, reduce_op: ReduceOp | str, value_destination_pairs: Any, options: Any = None
    ) -> list:
        """Returns the sums or means of several values."""
        return [
            self.reduce(reduce_op, value, destination, options)
            for value, destination in value_destination_pairs
        ]

    def broadcast(self, tensor: Any, destinations: Any) -> Any:
        """Returns `tensor`: the replicas of this process share it."""
        return tensor


class ReductionToOneDevice(CrossDeviceOps):
    """Accepted and ignored, with its arguments."""

    def __init__(self, reduce_to_device: Any = None, accumulation_fn: Any = None) -> None:
        pass


class NcclAllReduce(CrossDeviceOps):
    """Accepted and ignored, with its argument."""

    def __init__(self, num_packs: int = 1) -> None:
        pass


class HierarchicalCopyAllReduce(CrossDeviceOps):
    """Accepted and ignored, with its argument."""

    def __init__(self, num_packs: int = 1) -> None:
        pass
