"""Keras programs that workers run in tests. Each returns plain data."""

from __future__ import annotations

import os
import pathlib

import numpy as np

import retrograde as tf
from retrograde.ops.collectives import current_group
from tests.distribute.programs import data, keras_model, make_strategy


def everything(folder):
    """Returns the results of all programs of this file."""
    strategy = make_strategy()
    return {
        "batch norm": {
            (synchronized, eager): batch_norm(strategy, synchronized, eager)
            for synchronized in (False, True)
            for eager in (False, True)
        },
        "callbacks": callbacks(strategy, folder),
        "backup": backup(strategy, folder),
        "policies": policies(strategy, folder),
        "checkpoint": checkpoint(strategy, folder),
    }


def batch_norm(strategy, synchronized, run_eagerly):
    """Trains with batch normalization on uneven batches; the last one has a single row."""
    x, y = data(17)
    model = keras_model(
        lambda layers: [
            layers.Dense(8),
            layers.BatchNormalization(synchronized=synchronized, momentum=0.8),
            layers.Activation("tanh"),
            layers.Dense(1),
        ],
        tf.keras.optimizers.SGD(0.05, momentum=0.9),
        strategy,
        run_eagerly=run_eagerly,
    )
    losses = model.fit(x, y, batch_size=8, epochs=3, shuffle=False, verbose=0).history["loss"]
    strategy.check_in_sync()
    return {
        "weights": model.get_weights(),
        "losses": losses,
        "evaluated": model.evaluate(x, y, batch_size=5, verbose=0),
    }


def dense_model(strategy, **options):
    """Returns a compiled regression model."""
    return keras_model(
        lambda layers: [layers.Dense(8, "tanh"), layers.Dense(1)], "adam", strategy, **options
    )


class StopOnOneWorker(tf.keras.callbacks.Callback):
    """Stops training after the second epoch in the last worker."""

    def on_epoch_end(self, epoch, logs=None):  # noqa: ARG002
        group = current_group()
        if epoch == 1 and group.rank == group.size - 1:
            self.model.stop_training = True


def callbacks(strategy, folder):
    """Trains with the callbacks that write files or stop training."""
    results = {}
    x, y = data(21)
    rank = current_group().rank
    home = f"{folder}/{rank}"  # each worker is asked to write to its own folder
    tensorboard = tf.keras.callbacks.TensorBoard(f"{home}/logs")
    model = dense_model(strategy, steps_per_execution=2)
    history = model.fit(
        x, y, batch_size=5, epochs=6, verbose=0, validation_data=(x[:9], y[:9]),
        callbacks=[
            tensorboard,
            tf.keras.callbacks.ModelCheckpoint(f"{home}/best.keras", save_best_only=True),
            tf.keras.callbacks.EarlyStopping(
                "val_loss", min_delta=1e9, patience=2, restore_best_weights=True
            ),
        ],
    )  # fmt: skip
    results["history"] = history.history
    results["weights"] = model.get_weights()
    results["predicted"] = model.predict(x, batch_size=4, verbose=0, steps=3)
    results["evaluated"] = model.evaluate(x, y, batch_size=4, verbose=0, steps=3)
    results["files"] = sorted({path.suffix for path in pathlib.Path(home).rglob("*.*")})
    model = dense_model(strategy)
    history = model.fit(x, y, batch_size=5, epochs=5, verbose=0, callbacks=[StopOnOneWorker()])
    results["epochs until one worker stops"] = len(history.epoch)
    return results


class FailAfter(tf.keras.callbacks.Callback):
    """Raises an error in all workers, as a preempted program does, at the end of an epoch."""

    def __init__(self, epoch):
        super().__init__()
        self.epoch = epoch

    def on_epoch_begin(self, epoch, logs=None):  # noqa: ARG002
        if epoch == self.epoch:
            raise InterruptedError


def backup(strategy, folder):
    """Continues an interrupted training. Only the folder of the first worker has files."""
    x, y = data(21)
    rank = current_group().rank
    backup_dir = f"{folder}/backup{rank}"

    def new_model():
        model = dense_model(strategy)
        # The first step of a compiled function is traced, and rounded as NumPy does.
        model.jit_compile = False
        return model

    def train(*added):
        model = new_model()
        restore = tf.keras.callbacks.BackupAndRestore(backup_dir)
        history = model.fit(
            x, y, batch_size=8, epochs=4, verbose=0, shuffle=False, callbacks=[restore, *added]
        )
        strategy.check_in_sync()
        return {"weights": model.get_weights(), "epochs": history.epoch}

    try:
        train(FailAfter(2))
    except InterruptedError:
        files = os.path.exists(backup_dir)
    model = new_model()
    model.fit(x, y, batch_size=8, epochs=4, verbose=0, shuffle=False)
    return {"has files": files, "resumed": train(), "undisturbed": model.get_weights()}


def policies(strategy, folder):
    """Trains from datasets that are sharded by files, or not sharded."""
    x, y = data(12)
    paths = [f"{folder}/data{i}" for i in range(3)]
    if not current_group().rank:
        for i, path in enumerate(paths):
            rows = np.concatenate([x, y], 1)[i * 4 : i * 4 + 4]
            np.savetxt(path, rows, delimiter=",", fmt="%.8f")
    current_group().barrier()

    def parse(line):
        numbers = tf.strings.to_number(tf.strings.split(line, ","))
        return numbers[:6], numbers[6:]

    results = {}
    for name in ("DATA", "FILE", "OFF"):
        options = tf.data.Options()
        options.experimental_distribute.auto_shard_policy = getattr(
            tf.data.experimental.AutoShardPolicy, name
        )
        dataset = tf.data.TextLineDataset(paths).map(parse).batch(4).with_options(options)
        model = dense_model(strategy)
        losses = model.fit(dataset, epochs=2, verbose=0, shuffle=False).history["loss"]
        strategy.check_in_sync()
        batches = strategy.experimental_distribute_dataset(dataset)
        results[name] = {
            "losses": losses,
            "evaluated": model.evaluate(dataset, verbose=0),
            "rows": [
                [row[0] for part in strategy.experimental_local_results(x) for row in part.numpy()]
                for x, _ in batches
            ],
            "updates": int(model.optimizer.iterations),
        }
    return results


def checkpoint(strategy, folder):
    """Saves variables of all kinds, on all workers, and restores them."""
    rank = current_group().rank
    with strategy.scope():
        mirrored = tf.Variable([1.0, 2.0])
        on_read = {
            name: tf.Variable(
                0.0,
                trainable=False,
                synchronization=tf.VariableSynchronization.ON_READ,
                aggregation=getattr(tf.VariableAggregation, name),
            )
            for name in ("SUM", "MEAN")
        }

    def count():
        number = tf.distribute.get_replica_context().replica_id_in_sync_group
        for v in on_read.values():
            v.assign(number + 2.0)

    strategy.run(count)
    checkpoint = tf.train.Checkpoint(mirrored=mirrored, **on_read)
    path = checkpoint.write(f"{folder}/{rank}.checkpoint")
    saved = [v.numpy().tolist() for v in (mirrored, *on_read.values())]
    for v in (mirrored, *on_read.values()):
        v.assign(tf.zeros_like(v))
    checkpoint.read(path).assert_consumed()
    model = dense_model(strategy)
    x, y = data(8)
    model.fit(x, y, verbose=0)
    if not rank:  # one worker may save a model without the others
        tf.train.Checkpoint(model=model).write(f"{folder}/model")
    return saved, [v.numpy().tolist() for v in (mirrored, *on_read.values())]


def some(folder, *names):
    """Returns the results of some programs of this file."""
    strategy = make_strategy()
    return {name: globals()[name](strategy, folder) for name in names}
