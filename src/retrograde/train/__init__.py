"""tf.train: checkpoints, and averages of variables."""

from typing import TYPE_CHECKING

from retrograde._api.lazy import lazily
from retrograde._api.names import HOMES

if TYPE_CHECKING:
    from retrograde.train import experimental
    from retrograde.train._state import (
        checkpoints_iterator,
        get_checkpoint_state,
        latest_checkpoint,
        list_variables,
        load_checkpoint,
        load_variable,
    )
    from retrograde.train.averages import ExponentialMovingAverage
    from retrograde.train.checkpoint import Checkpoint, CheckpointOptions
    from retrograde.train.manager import CheckpointManager

__getattr__, __dir__ = lazily(__name__, HOMES[__name__])

__all__ = [
    "Checkpoint",
    "CheckpointManager",
    "CheckpointOptions",
    "ExponentialMovingAverage",
    "checkpoints_iterator",
    "experimental",
    "get_checkpoint_state",
    "latest_checkpoint",
    "list_variables",
    "load_checkpoint",
    "load_variable",
]
