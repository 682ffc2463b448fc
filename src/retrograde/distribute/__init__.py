"""tf.distribute: strategies, for programs that ask for one; each has one replica, on one device."""

from typing import TYPE_CHECKING

from retrograde._api.lazy import lazily
from retrograde._api.names import HOMES

if TYPE_CHECKING:
    from retrograde.distribute import cluster_resolver
    from retrograde.distribute.reducing import (
        CrossDeviceOps,
        HierarchicalCopyAllReduce,
        NcclAllReduce,
        ReduceOp,
        ReductionToOneDevice,
    )
    from retrograde.distribute.strategies import (
        InputContext,
        MirroredStrategy,
        OneDeviceStrategy,
        ReplicaContext,
        Strategy,
        get_replica_context,
        get_strategy,
        has_strategy,
        in_cross_replica_context,
    )

__getattr__, __dir__ = lazily(__name__, HOMES[__name__])

__all__ = [
    "CrossDeviceOps",
    "HierarchicalCopyAllReduce",
    "InputContext",
    "MirroredStrategy",
    "NcclAllReduce",
    "OneDeviceStrategy",
    "ReduceOp",
    "ReductionToOneDevice",
    "ReplicaContext",
    "Strategy",
    "cluster_resolver",
    "get_replica_context",
    "get_strategy",
    "has_strategy",
    "in_cross_replica_context",
]
