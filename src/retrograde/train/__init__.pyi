from retrograde.train import experimental as experimental
from retrograde.train._state import (
    checkpoints_iterator as checkpoints_iterator,
    get_checkpoint_state as get_checkpoint_state,
    latest_checkpoint as latest_checkpoint,
    list_variables as list_variables,
    load_checkpoint as load_checkpoint,
    load_variable as load_variable,
)
from retrograde.train.averages import ExponentialMovingAverage as ExponentialMovingAverage
from retrograde.train.checkpoint import (
    Checkpoint as Checkpoint,
    CheckpointOptions as CheckpointOptions,
)
from retrograde.train.manager import CheckpointManager as CheckpointManager
