"""How the values of replicas become one. Of one replica they are one already."""

from __future__ import annotations

import enum
from typing import Any


class ReduceOp(enum.Enum):
    """What becomes of the values of several replicas: their sum, or their mean."""

    SUM = "SUM"
    MEAN = "MEAN"


def reduce_op(given: Any) -> ReduceOp:
    """The `ReduceOp` that a program means by it, or by its name."""
    return ReduceOp(given.upper() if isinstance(given, str) else given)


class CrossDeviceOps:
    """How devices exchange values. There is one device, so that all of them do the same."""


class ReductionToOneDevice(CrossDeviceOps):
    """Accepted and ignored, as its arguments are."""

    def __init__(self, reduce_to_device: Any = None, accumulation_fn: Any = None) -> None:
        pass


class NcclAllReduce(CrossDeviceOps):
    """Accepted and ignored, as its argument is."""

    def __init__(self, num_packs: int = 1) -> None:
        pass


class HierarchicalCopyAllReduce(CrossDeviceOps):
    """Accepted and ignored, as its argument is."""

    def __init__(self, num_packs: int = 1) -> None:
        pass
