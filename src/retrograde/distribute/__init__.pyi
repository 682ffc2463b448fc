from retrograde.distribute import cluster_resolver as cluster_resolver
from retrograde.distribute import experimental as experimental
from retrograde.distribute.extended import StrategyExtended as StrategyExtended
from retrograde.distribute.failures import WorkerLostError as WorkerLostError
from retrograde.distribute.input import DistributedDataset as DistributedDataset
from retrograde.distribute.input import DistributedIterator as DistributedIterator
from retrograde.distribute.input import InputContext as InputContext
from retrograde.distribute.input import InputOptions as InputOptions
from retrograde.distribute.input import InputReplicationMode as InputReplicationMode
from retrograde.distribute.input import RunOptions as RunOptions
from retrograde.distribute.mirrored import MirroredStrategy as MirroredStrategy
from retrograde.distribute.mirrored import TPUStrategy as TPUStrategy
from retrograde.distribute.multi_worker import (
    MultiWorkerMirroredStrategy as MultiWorkerMirroredStrategy,
)
from retrograde.distribute.reduction import CrossDeviceOps as CrossDeviceOps
from retrograde.distribute.reduction import HierarchicalCopyAllReduce as HierarchicalCopyAllReduce
from retrograde.distribute.reduction import NcclAllReduce as NcclAllReduce
from retrograde.distribute.reduction import ReduceOp as ReduceOp
from retrograde.distribute.reduction import ReductionToOneDevice as ReductionToOneDevice
from retrograde.distribute.replica_context import ReplicaContext as ReplicaContext
from retrograde.distribute.strategy import OneDeviceStrategy as OneDeviceStrategy
from retrograde.distribute.strategy import Strategy as Strategy
from retrograde.distribute.strategy import experimental_set_strategy as experimental_set_strategy
from retrograde.distribute.strategy import get_replica_context as get_replica_context
from retrograde.distribute.strategy import get_strategy as get_strategy
from retrograde.distribute.strategy import has_strategy as has_strategy
from retrograde.distribute.strategy import in_cross_replica_context as in_cross_replica_context
from retrograde.distribute.tape import DistributedGradientTape as DistributedGradientTape
from retrograde.distribute.values import DistributedValues as DistributedValues
from retrograde.distribute.values import Mirrored as Mirrored
from retrograde.distribute.values import PerReplica as PerReplica
