"""tf.distribute.experimental: options of collectives."""

from __future__ import annotations

from retrograde._api.lazy import from_all
from retrograde.distribute.input import ValueContext
from retrograde.distribute.multi_worker import MultiWorkerMirroredStrategy
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
    "ValueContext",
]

__path__: list[str] = []  # allows imports of submodules, as in TensorFlow

CollectiveCommunication = CommunicationImplementation

__getattr__, __dir__ = from_all(__name__)
