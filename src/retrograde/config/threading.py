"""tf.config.threading: numbers of threads."""

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
    """Returns the number of threads per operation; 0 means one per core."""
    return blocks.limit


def set_intra_op_parallelism_threads(num_threads: int) -> None:
    """Sets the number of threads of elementwise operations on large tensors.

    0 means one thread per core. Matrix products use the threads of NumPy's BLAS, which are
    configured separately.
    """
    blocks.limit = _check_count(num_threads)


def get_inter_op_parallelism_threads() -> int:
    """Returns the value set by `set_inter_op_parallelism_threads`."""
    return settings["inter_op_threads"]


def set_inter_op_parallelism_threads(num_threads: int) -> None:
    """Stores `num_threads`. Operations always run sequentially."""
    settings["inter_op_threads"] = _check_count(num_threads)


def _check_count(num_threads: Any) -> int:
    if not isinstance(num_threads, int) or num_threads < 0:
        raise ValueError(
            f"Expected a number of threads, or 0 for one per core. Received: {shown(num_threads)}."
        )
    return num_threads
