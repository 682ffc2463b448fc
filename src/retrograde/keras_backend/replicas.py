"""Training under a strategy with several replicas: shards of batches, losses and callbacks."""

import contextlib
import functools
import random

import numpy as np
from keras.src import callbacks as callbacks_module
from keras.src import tree
from keras.src.losses import loss as loss_module

import retrograde
from retrograde.core.variable import VariableAggregation
from retrograde.distribute.context import OutsideStrategies, context
from retrograde.distribute.input import shard
from retrograde.distribute.local_variables import variables_of_replicas
from retrograde.distribute.values import combine_replicas, value_of_replica
from retrograde.distribute.variables import MirroredVariable
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


def distributed_step(model, step, make_function, gathers):
    """Returns a function that runs `step` on a global batch, in the replicas of this process.

    `make_function(step)` returns a function that may be traced. It is called once for each division
    of the rows among replicas. If `gathers` is true, the result has the rows of all replicas.
    """
    steps = {}

    def run(batch):
        strategy = model._distribute_strategy
        local, fractions = _local_batch(strategy, batch)
        if fractions not in steps:
            steps[fractions] = _function_of_replicas(
                strategy, step, make_function, fractions, gathers
            )
        unchanged = [i for i, fraction in enumerate(fractions) if not fraction]
        with _unchanged_state(model, unchanged) if unchanged else contextlib.nullcontext():
            result = steps[fractions](local)
        if not gathers:
            return value_of_replica(result, 0)
        return tree.map_structure(lambda x: strategy.gather(x, axis=0), result)

    return run


def _function_of_replicas(strategy, step, make_function, fractions, gathers):
    """Returns `step` as a function of the batches of all replicas of this process.

    With one replica, the step itself is traced. With several replicas, one trace runs all of them.
    """

    @functools.wraps(step)
    def run(batch):
        before = context.fraction
        index = context.replica if len(fractions) > 1 else 0
        context.fraction = fractions[index]
        try:
            result = step(batch)
        finally:
            context.fraction = before
        if gathers and not fractions[index]:
            return tree.map_structure(lambda x: x[:0], result)
        return result

    if len(fractions) == 1:
        traced = make_function(run)
        return lambda batch: strategy.run(traced, (batch,))

    @functools.wraps(step)
    def run_all(batch):
        return strategy.run(run, (batch,))

    return make_function(run_all)


def _local_batch(strategy, batch):
    """Returns the shards of a batch for the replicas of this process, and their fractions.

    The loss of a replica is weighted by its fraction of the rows, so that the sum is the loss of
    the batch even if the shards differ in size. A replica without rows gets one row and the
    fraction 0.
    """
    pipelines = strategy._input_context
    count, workers = strategy.num_replicas_in_sync, pipelines.num_input_pipelines
    per_worker = count // workers
    if isinstance(batch, LocalBatch):
        return _distributed_batch(batch.value, per_worker)
    batch = to_tensors(batch)
    first = pipelines.input_pipeline_id * per_worker
    local = [shard(batch, count, first + i) for i in range(per_worker)]
    all_rows = _count_rows(batch)
    rows = list(map(_count_rows, local))
    local = [x if n else shard(batch, all_rows, 0) for x, n in zip(local, rows, strict=True)]
    return combine_replicas(local), tuple([n / all_rows for n in rows])


def _distributed_batch(batch, per_worker):
    """Returns a batch of a distributed dataset, and the fractions of its rows in all replicas."""
    local = [value_of_replica(batch, i) for i in range(per_worker)]
    rows = list(map(_count_rows, local))
    all_rows = sum(current_group().all_gather(np.array(rows, np.int64), 0).tolist())
    local = [x if n else _row_of_zeros(x) for x, n in zip(local, rows, strict=True)]
    return combine_replicas(local), tuple([n / max(all_rows, 1) for n in rows])


def _count_rows(batch):
    return next(leaf.shape[0] for leaf in tree.flatten(batch) if leaf is not None)


def _row_of_zeros(batch):
    """Returns a batch with one row of zeros in place of an empty one."""

    def zeros(x):
        if x.dtype == "string":
            return retrograde.fill([1, *x.shape[1:]], "")
        return retrograde.zeros([1, *x.shape[1:]], x.dtype)

    return tree.map_structure(zeros, batch)


@contextlib.contextmanager
def _unchanged_state(model, replicas):
    """Restores metrics and other non-trainable variables of `replicas` after a step.

    A replica without rows runs the step on a dummy row to take part in collectives. `replicas` are
    the indices of such replicas in this process.
    """
    variables = [*model.metrics_variables, *model.non_trainable_variables]
    float_variables = [
        variable
        for v in variables
        if "float" in v.dtype
        for variable in variables_of_replicas(v._value, replicas)
    ]
    kept = [(variable, variable._current()) for variable in float_variables]
    try:
        yield
    finally:
        for variable, tensor in kept:
            variable._hold(tensor)


# Losses


def patch_losses():
    """Patches Keras to scale losses by the fraction of a replica, as with TensorFlow."""
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
    """Broadcasts the first worker's random state, which Keras uses to shuffle arrays."""
    group = current_group()
    kind, keys, *rest = np.random.get_state()
    version, numbers, gauss = random.getstate()
    keys, rest, numbers = group.broadcast(
        [keys, np.array(rest, np.float64), np.array(numbers, np.uint64)]
    )
    np.random.set_state((kind, keys, int(rest[0]), int(rest[1]), float(rest[2])))
    random.setstate((version, tuple(numbers.tolist()), gauss))


def synchronize_epoch(model):
    """Synchronizes the workers after the steps of an epoch.

    Non-trainable variables that replicas assign without an aggregation, such as the moving averages
    of batch normalization, get the values of the first worker.
    """
    if current_group().size > 1:
        variables = [v._value for v in model.non_trainable_variables]
        _broadcast([v for v in variables if _may_differ(v)])


def any_worker(condition):
    """Returns whether `condition` is true in any worker."""
    group = current_group()
    if group.size == 1:
        return condition
    return any(group.gather_integers(int(bool(condition))))


def _may_differ(variable):
    is_mirrored = isinstance(variable, MirroredVariable)
    return is_mirrored and variable._aggregation is VariableAggregation.NONE


def begin_training(model, callbacks):
    """Calls `on_train_begin` of callbacks.

    If the first worker restores a backup, the others get its values: only it needs the files.
    """
    group, optimizer = current_group(), model.optimizer
    if group.size == 1 or not any(map(_is_backup, callbacks.callbacks)):
        callbacks.on_train_begin()
        return
    if optimizer is not None and not optimizer.built:
        optimizer.build(model.trainable_variables)
    callbacks.on_train_begin()
    variables = [*model.variables, *([] if optimizer is None else optimizer.variables)]
    _broadcast([v._value for v in variables if isinstance(v._value, MirroredVariable)])
    (epoch,) = group.broadcast([np.array(model._initial_epoch or 0, np.int64)])
    model._initial_epoch = int(epoch)


def _broadcast(variables):
    """Assigns the values of the first worker."""
    arrays = current_group().broadcast([v._array for v in variables])
    for variable, array in zip(variables, arrays, strict=True):
        variable.assign(array)


def _is_backup(callback):
    return isinstance(callback, callbacks_module.BackupAndRestore)


def callbacks_of_worker(callbacks, verbose):
    """Returns the callbacks of this worker and its verbosity.

    The first worker writes files and shows progress.
    """
    listed = callbacks if isinstance(callbacks, (list, tuple)) else [callbacks] if callbacks else []
    if not current_group().rank:
        for callback in listed:
            if _is_backup(callback) and current_group().size > 1:
                callback._load_model = _alone(callback._load_model)
        return callbacks, verbose
    kept = [callback for callback in listed if not isinstance(callback, _WRITERS)]
    for callback in kept:
        if _is_backup(callback):
            callback._save_model = _do_nothing
            callback.on_train_begin = _do_nothing
            callback.on_train_end = _do_nothing
    return kept, 0 if verbose == "auto" else verbose


def _alone(method):
    """Makes a method create plain variables: the other workers do not call it."""

    @functools.wraps(method)
    def run(*args, **kwargs):
        with OutsideStrategies():
            return method(*args, **kwargs)

    return run


def _do_nothing(*_args, **_kwargs):
    """Replaces a method that writes files."""
