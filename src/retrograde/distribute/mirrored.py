"""MirroredStrategy: a replica on each device of this process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from retrograde.distribute.strategy import Strategy
from retrograde.values.arguments import shown


class MirroredStrategy(Strategy):
    """A strategy for the devices of one machine. At present it uses one device."""

    def __init__(self, devices: Sequence[str] | None = None, cross_device_ops: Any = None) -> None:
        super().__init__()
        if devices is not None and len(devices) > 1:
            raise ValueError(
                f"MirroredStrategy: there is one device. Received: devices={shown(list(devices))}. "
                "Pass one of them, or none."
            )
