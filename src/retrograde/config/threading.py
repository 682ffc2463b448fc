"""tf.config.threading: how many threads share the work."""

from __future__ import annotations

from typing import Any

from retrograde._api.lazy import from_all
from retrograde.fusion import blocks
from retrograde.values.arguments import shown
from retrograde.values.settings import settings

__all__ = [
    "get_inter_op_parallelism_threads",
    "get_intra_op_parallelism_threads",
    "set_inter_op_parallelism_threads",
    "set_intra_op_parallelism_threads",
]

__getattr__, __dir__ = from_all(__name__)


def get_intra_op_parallelism_threads() -> int:
    """How many threads share one operation; 0 for as many as there are cores."""
    return blocks.limit


def set_intra_op_parallelism_threads(num_threads: int) -> None:
    """Sets how many threads share one elementwise operation on large tensors.

    0 is for as many as there are cores. Matrix products have the threads of NumPy's BLAS, which
    are set by its own means.
    """
    blocks.limit = _checked(num_threads)


def get_inter_op_parallelism_threads() -> int:
    """What `set_inter_op_parallelism_threads` was told last."""
    return settings["inter_op_threads"]


def set_inter_op_parallelism_threads(num_threads: int) -> None:
    """Remembers `num_threads`. Operations run one after the other."""
    settings["inter_op_threads"] = _checked(num_threads)


def _checked(num_threads: Any) -> int:
    if not isinstance(num_threads, int) or num_threads < 0:
        raise ValueError(
            f"Expected a number of threads, or 0 for as many as there are cores. Received: "
            f"{shown(num_threads)}."
        )
    return num_threads
