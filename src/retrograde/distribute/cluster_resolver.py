"""tf.distribute.cluster_resolver: for programs that look for a TPU, and go on without one."""

from __future__ import annotations

from typing import Any

from retrograde._api.lazy import from_all
from retrograde.values.arguments import shown

__all__ = ["TPUClusterResolver"]

__getattr__, __dir__ = from_all(__name__)


class TPUClusterResolver:
    """Finds no TPU: it raises the `ValueError` that tells a program to go on without."""

    def __init__(
        self,
        tpu: Any = None,
        zone: Any = None,
        project: Any = None,
        job_name: str = "worker",
        coordinator_name: Any = None,
        coordinator_address: Any = None,
        credentials: Any = "default",
        service: Any = None,
        discovery_url: Any = None,
    ) -> None:
        raise ValueError(
            f"TPUClusterResolver: there is no TPU. Received: tpu={shown(tpu)}. A program runs on "
            "one machine and one device; take the strategy that tf.distribute.get_strategy() "
            "returns."
        )
