"""tf.distribute.experimental: options of collectives, and checkpoints before preemption."""

from __future__ import annotations

from typing import Any

from retrograde._api.lazy import from_all
from retrograde.distribute import mirrored, multi_worker
from retrograde.distribute.input import ValueContext
from retrograde.distribute.preemption import PreemptionCheckpointHandler, TerminationConfig
from retrograde.distribute.reduction import (
    CollectiveHints,
    CommunicationImplementation,
    CommunicationOptions,
)

__all__ = [
    "CollectiveCommunication",
    "CollectiveHints",
    "CommunicationImplementation",
    "CommunicationOptions",
    "MultiWorkerMirroredStrategy",
    "PreemptionCheckpointHandler",
    "TPUStrategy",
    "TerminationConfig",
    "ValueContext",
]

__path__: list[str] = []  # allows imports of submodules, as in TensorFlow

CollectiveCommunication = CommunicationImplementation


class MultiWorkerMirroredStrategy(multi_worker.MultiWorkerMirroredStrategy):
    """`tf.distribute.MultiWorkerMirroredStrategy` with the arguments of its older version."""

    def __init__(
        self,
        communication: Any = CommunicationImplementation.AUTO,
        cluster_resolver: Any = None,
    ) -> None:
        super().__init__(cluster_resolver, CommunicationOptions(implementation=communication))


class TPUStrategy(mirrored.TPUStrategy):
    """`tf.distribute.TPUStrategy` with the arguments of its older version."""

    def __init__(self, tpu_cluster_resolver: Any = None, device_assignment: Any = None) -> None:
        super().__init__(tpu_cluster_resolver, device_assignment)


__getattr__, __dir__ = from_all(__name__)
