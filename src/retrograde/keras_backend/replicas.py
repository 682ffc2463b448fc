"""Training under a strategy with several replicas: shares of batches, losses and callbacks."""

import contextlib
import functools
import random

import numpy as np
from keras.src import callbacks as callbacks_module
from keras.src import tree
from keras.src.losses import loss as loss_module

from retrograde.distribute.context import context
from retrograde.distribute.input import share
from retrograde.keras_backend.batches import LocalBatch, to_tensors
from retrograde.ops.collectives import current_group

# Callbacks that only write files. The first worker calls them.
_WRITERS = (
    callbacks_module.ModelCheckpoint,
    callbacks_module.TensorBoard,
    callbacks_module.CSVLogger,
)


def strategy_of(model):
    """Returns the strategy that a model was created in; `None` if it has one replica."""
    strategy = model._distribute_strategy
    return None if strategy is None or strategy.num_replicas_in_sync == 1 else strategy


def in_scope(method):
    """Makes a method of a model run in the scope of the model's strategy."""

    @functools.wraps(method)
    def run(self, *args, **kwargs):
        strategy = strategy_of(self)
        if strategy is None:
            return method(self, *args, **kwargs)
        with strategy.scope():
            synchronize_random_state()
            return method(self, *args, **kwargs)

    return run


# Steps


def distributed_step(model, step, make, gathers):
    """Returns a function of a global batch, which runs `step` on the share of this worker.

    `make(step)` returns the step as a function that may be traced, for each share of the loss. If
    it `gathers`, the rows of all workers are returned.
    """
    steps = {}

    def run(batch):
        strategy = model._distribute_strategy
        local, fraction = _local_batch(strategy, batch)
        if fraction not in steps:
            steps[fraction] = make(_with_fraction(step, fraction))
        with _unchanged_state(model) if fraction == 0 else contextlib.nullcontext():
            result = strategy.run(steps[fraction], (local,))
        if not gathers:
            return result
        rows = slice(0, None if fraction else 0)
        return tree.map_structure(lambda x: strategy.gather(x[rows], axis=0), result)

    return run


def _local_batch(strategy, batch):
    """Returns the share of this worker in a batch, and its fraction of the rows.

    The loss of a replica counts by this fraction, so that the sum is the loss of the whole batch,
    also if it is uneven. A worker without rows gets one row, and the fraction 0.
    """
    if isinstance(batch, LocalBatch):
        return batch.value, 1 / strategy.num_replicas_in_sync
    batch = to_tensors(batch)
    pipelines = strategy._input_context
    local = share(batch, pipelines.num_input_pipelines, pipelines.input_pipeline_id)
    rows, all_rows = (_count_rows(value) for value in (local, batch))
    if rows:
        return local, rows / all_rows
    return share(batch, all_rows, 0), 0.0  # the first row, which does not count


def _count_rows(batch):
    return next(leaf.shape[0] for leaf in tree.flatten(batch) if leaf is not None)


def _with_fraction(step, fraction):
    @functools.wraps(step)
    def run(batch):
        before, context.fraction = context.fraction, fraction
        try:
            return step(batch)
        finally:
            context.fraction = before

    return run


@contextlib.contextmanager
def _unchanged_state(model):
    """Restores metrics and other non-trainable variables after a step on a row that does not count.

    A worker without rows makes such a step to take part in collectives.
    """
    variables = [*model.metrics_variables, *model.non_trainable_variables]
    kept = [(v._value, v._value._current()) for v in variables if "float" in v.dtype]
    try:
        yield
    finally:
        for variable, tensor in kept:
            variable._hold(tensor)


# Losses


def patch_losses():
    """Patches Keras to scale losses by the share of a replica, as with TensorFlow."""
    loss_module.scale_loss_for_distribution = scale_loss
    loss_module.unscale_loss_for_distribution = unscale_loss


def scale_loss(value):
    """Returns a mean over the rows of this replica, weighted by its fraction of all rows."""
    fraction = _fraction()
    return value if fraction == 1 else value * fraction


def unscale_loss(value):
    """Undoes `scale_loss`."""
    fraction = _fraction()
    return value if fraction in (0, 1) else value * (1 / fraction)


def _fraction():
    if context.fraction is not None:
        return context.fraction
    return 1 if context.strategy is None else 1 / context.strategy.num_replicas_in_sync


# Loops


def synchronize_random_state():
    """Gives all workers the random state of the first one, by which Keras shuffles arrays."""
    group = current_group()
    kind, keys, *rest = np.random.get_state()
    version, numbers, gauss = random.getstate()
    keys, rest, numbers = group.broadcast(
        [keys, np.array(rest, np.float64), np.array(numbers, np.uint64)]
    )
    np.random.set_state((kind, keys, int(rest[0]), int(rest[1]), float(rest[2])))
    random.setstate((version, tuple(numbers.tolist()), gauss))


def callbacks_of_worker(callbacks, verbose):
    """Returns the callbacks of this worker and its verbosity.

    The first worker writes files and shows progress.
    """
    if not current_group().rank:
        return callbacks, verbose
    listed = callbacks if isinstance(callbacks, (list, tuple)) else [callbacks] if callbacks else []
    kept = [callback for callback in listed if not isinstance(callback, _WRITERS)]
    for callback in kept:
        if isinstance(callback, callbacks_module.BackupAndRestore):
            callback._save_model = _do_nothing
            callback.on_train_end = _do_nothing
    return kept, 0 if verbose == "auto" else verbose


def _do_nothing(*_args, **_kwargs):
    """Stands in place of a method that writes files."""
