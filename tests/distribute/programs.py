"""Programs that workers run in tests. Each returns plain data."""

from __future__ import annotations

import os
import signal
import socket
import sys
import tempfile

import numpy as np

import retrograde as tf
from retrograde.ops.collectives import current_group


def semantics():
    """Everything that a program can observe of two replicas without training."""
    all_reduce = tf.function(lambda x: tf.distribute.get_replica_context().all_reduce("SUM", x))
    replica_count = tf.function(lambda: tf.distribute.get_replica_context().num_replicas_in_sync)
    before = [all_reduce(tf.constant(2.0)).numpy().item() for _ in range(3)]
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    results = {"replicas": strategy.num_replicas_in_sync}
    rank = strategy.cluster_resolver.task_id
    results["traced before"] = [*before, all_reduce(tf.constant(2.0)).numpy().item()]
    outside = [replica_count().numpy().item() for _ in range(2)]
    results["traced outside"] = [*outside, strategy.run(replica_count).numpy().item()]
    with strategy.scope():
        results["initial"] = tf.Variable(float(rank + 5)).numpy().item()
        results["drawn in scope"] = tf.random.normal([2]).numpy().tolist()
        plain = tf.Variable(1.0)
        aggregated = {
            name: tf.Variable(1.0, aggregation=getattr(tf.VariableAggregation, name))
            for name in ("SUM", "MEAN", "ONLY_FIRST_REPLICA")
        }
        on_read = {
            name: tf.Variable(
                1.0,
                synchronization=tf.VariableSynchronization.ON_READ,
                aggregation=getattr(tf.VariableAggregation, name),
            )
            for name in ("SUM", "MEAN", "ONLY_FIRST_REPLICA")
        }

    def replica():
        context = tf.distribute.get_replica_context()
        r = float(context.replica_id_in_sync_group)
        plain.assign(r + 1)
        seen = {"id": r, "count": context.num_replicas_in_sync, "plain": plain.numpy().item()}
        for name, v in aggregated.items():
            v.assign(r + 1)
            v.assign_add(tf.constant(r + 1))
            seen[f"mirrored {name}"] = v.numpy().item()
        for name, v in on_read.items():
            v.assign(r + 1)
            v.assign_add(r + 1)
            seen[f"on read {name}"] = v.numpy().item()
        seen["drawn"] = tf.random.normal([2]).numpy().tolist()
        seen["created"] = tf.Variable(r + 3).numpy().item()
        seen["loss"] = tf.nn.compute_average_loss([1.0, 2.0]).numpy().item()
        seen["regularization"] = tf.nn.scale_regularization_loss([1.0, 2.0]).numpy().item()
        x = tf.constant([1.0, 2.0]) * (r + 1)
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            total, mean = context.all_reduce("SUM", x), context.all_reduce("MEAN", x)
            rows = context.all_gather(x, axis=0)
            losses = [tf.reduce_sum(y * y * (r + 1)) for y in (total, mean, rows)]
        seen["gradients"] = [tape.gradient(loss, x).numpy().tolist() for loss in losses]
        seen["structure"] = [
            y.numpy().item() for y in context.all_reduce("SUM", [tf.constant(r), 2 * r + 1])
        ]
        sparse = tf.IndexedSlices(tf.constant([[r + 1]]), tf.constant([int(r)]), [3, 1])
        both = context.all_reduce("SUM", sparse)
        seen["sparse"] = type(both).__name__, tf.convert_to_tensor(both).numpy().ravel().tolist()
        seen["merged"] = context.merge_call(
            lambda s, y: s.reduce("SUM", y, axis=None), args=(tf.constant(r + 1),)
        ).numpy().item()  # fmt: skip
        seen["uneven"] = tf.range(1.0, 2.0 + 2 * r)
        seen["value"] = tf.constant(r + 1)
        return seen

    seen = strategy.run(replica)
    uneven, value = seen.pop("uneven"), seen.pop("value")
    results |= seen
    with strategy.scope():
        results["across"] = {name: v.numpy().item() for name, v in on_read.items()}
        on_read["SUM"].assign(8.0)
        results["assigned"] = on_read["SUM"].numpy().item()
        results["refused"] = _message(lambda: on_read["SUM"].assign_add(1.0))
    results["share"] = strategy.run(lambda: on_read["SUM"].numpy().item())
    results["reduced"] = [
        strategy.reduce("SUM", value, axis=None).numpy().item(),
        strategy.reduce("MEAN", value, axis=None).numpy().item(),
        strategy.reduce("SUM", uneven, axis=0).numpy().item(),
        strategy.reduce("MEAN", uneven, axis=0).numpy().item(),
    ]
    results["gathered"] = strategy.gather(uneven, axis=0).numpy().tolist()
    results["cross replica"] = _message(lambda: _in_scope(strategy, tf.nn.compute_average_loss))
    strategy.check_in_sync(list(aggregated.values()))
    results["drifted"] = _message(strategy.check_in_sync)
    results["shares"] = {
        f"{n} by {size}": [
            x.numpy().tolist()
            for x in strategy.experimental_distribute_dataset(tf.data.Dataset.range(n).batch(size))
        ]
        for n, size in [(10, 4), (9, 4), (7, 3), (5, 4)]
    }
    shuffled = tf.data.Dataset.range(8).shuffle(8).batch(4)
    dataset = strategy.experimental_distribute_dataset(shuffled)
    results["shuffled"] = [x for batch in dataset for x in batch.numpy().tolist()]
    results["from function"] = [
        x.numpy().tolist()
        for x in strategy.distribute_datasets_from_function(
            lambda context: tf.data.Dataset.range(5).shard(2, context.input_pipeline_id).batch(2)
        )
    ]
    results["by file"] = _read_by_file(strategy)
    with tf.GradientTape() as tape:
        y = plain * float(rank + 1)
    tape = tf.distribute.DistributedGradientTape(tape)
    results["averaged gradient"] = tape.gradient(y, plain).numpy().item()
    return results


def _read_by_file(strategy):
    """Returns the batches of this worker from three files with two lines each."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [os.path.join(folder, str(i)) for i in range(3)]
        for i, path in enumerate(paths):
            with open(path, "w") as file:
                file.write(f"{i}a\n{i}b\n")
        dataset = tf.data.TextLineDataset(paths).batch(2)
        return [x.numpy().tolist() for x in strategy.experimental_distribute_dataset(dataset)]


def _message(f):
    try:
        f()
    except (ValueError, RuntimeError, tf.errors.OpError) as error:
        return f"{type(error).__name__}: {error}"
    return "no error"


def _in_scope(strategy, f):
    with strategy.scope():
        f([1.0])


def data(rows=48, features=6, dtype="float32"):
    """Inputs and targets of a regression."""
    random = np.random.default_rng(3)
    x = random.normal(size=(rows, features)).astype(dtype)
    return x, (np.sin(x).sum(1, keepdims=True) + 0.1).astype(dtype)


def make_strategy(bytes_per_pack=0):
    """Returns a strategy for the workers, or for the logical devices that DEVICES asks for."""
    devices = int(os.environ.get("DEVICES", "0"))
    if devices:
        (cpu, *_) = tf.config.list_physical_devices("CPU")
        tf.config.set_logical_device_configuration(
            cpu, [tf.config.LogicalDeviceConfiguration()] * devices
        )
        return tf.distribute.MirroredStrategy()
    options = tf.distribute.experimental.CommunicationOptions(bytes_per_pack=bytes_per_pack)
    return tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)


def training(mode, dtype="float32", steps=14, batch=8, rows=44, bytes_per_pack=0):
    """Trains an MLP with momentum, and returns its weights, losses and number of collectives."""
    strategy = make_strategy(bytes_per_pack)
    x, y = data(rows, dtype=dtype)
    random = np.random.default_rng(5)
    with strategy.scope():
        weights = [
            tf.Variable(random.normal(size=shape).astype(dtype) * 0.3)
            for shape in [(6, 16), (16,), (16, 16), (16,), (16, 1), (1,)]
        ]
        optimizer = tf.keras.optimizers.SGD(0.05, momentum=0.9)

    def step(x, y):
        with tf.GradientTape() as tape:
            h = tf.tanh(x @ weights[0] + weights[1])
            h = tf.tanh(h @ weights[2] + weights[3])
            errors = tf.reduce_sum((h @ weights[4] + weights[5] - y) ** 2, axis=1)
            loss = tf.nn.compute_average_loss(errors, global_batch_size=batch)
        optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
        return loss

    def distributed(x, y):
        return strategy.reduce("SUM", strategy.run(step, args=(x, y)), axis=None)

    if mode != "eager":
        distributed = tf.function(distributed, jit_compile=mode == "xla")
    dataset = tf.data.Dataset.from_tensor_slices((x, y)).batch(batch).repeat()
    batches = iter(strategy.experimental_distribute_dataset(dataset))
    first = 7  # steps until all shapes are traced
    losses = [float(distributed(*next(batches))) for _ in range(first)]
    group = current_group()
    before = getattr(group, "collectives", 0)
    losses += [float(distributed(*next(batches))) for _ in range(steps - first)]
    count = getattr(group, "collectives", 0) - before
    strategy.check_in_sync()
    return {
        "weights": [w.numpy() for w in weights],
        "losses": losses,
        "collectives per step": count / (steps - first),
    }


def all_trainings():
    """Trains in all modes and dtypes, in one process each."""
    modes = ("eager", "replayed", "xla")
    return {
        (mode, dtype): training(mode, dtype) for dtype in ("float32", "float64") for mode in modes
    }


def _bytes_sent():
    """Returns how many bytes the kernel has sent through the TCP sockets of this process."""
    total = 0
    for name in os.listdir("/proc/self/fd"):
        try:
            if not os.readlink(f"/proc/self/fd/{name}").startswith("socket:"):
                continue
            with socket.socket(fileno=os.dup(int(name))) as connection:
                information = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 232)
        except OSError:  # closed in the meantime, or not TCP
            continue
        if len(information) >= 208:
            total += int.from_bytes(information[200:208], sys.byteorder)  # tcpi_bytes_sent
    return total


def traffic(megabytes=4, times=5):
    """Returns the bytes that this worker sends for all-reduces, and how many there are."""
    strategy = make_strategy(bytes_per_pack=1 << 20)
    parts = [tf.ones([1 << 16]) for _ in range(4 * megabytes)]  # 256 kB each
    group = current_group()

    def step():
        return tf.distribute.get_replica_context().all_reduce(
            "SUM", parts, tf.distribute.experimental.CommunicationOptions(bytes_per_pack=1 << 20)
        )

    strategy.run(step)
    before, count = _bytes_sent(), group.collectives
    for _ in range(times):
        strategy.run(step)
    return {
        "sent per step": (_bytes_sent() - before) / times,
        "size": megabytes << 20,
        "collectives per step": (group.collectives - count) / times,
    }


def failing(how, rank):
    """Reduces values until one worker fails."""
    if how == "version" and int(os.environ["RANK"]) == rank:
        tf.__version__ = "0.0.0"
    if how == "absent" and int(os.environ["RANK"]) == rank:
        return "absent"
    strategy = tf.distribute.MultiWorkerMirroredStrategy()

    def step(x):
        return tf.distribute.get_replica_context().all_reduce("SUM", x)

    try:
        for i in range(200):
            strategy.run(step, args=(tf.ones(2),))
            if i == 5 and strategy.cluster_resolver.task_id == rank:
                if how == "kill":
                    os.kill(os.getpid(), signal.SIGKILL)
                if how == "crash":
                    os.kill(os.getpid(), signal.SIGSEGV)
                if how == "stop":
                    os.kill(os.getpid(), signal.SIGSTOP)
                if how == "raise":
                    raise KeyError("a mistake")
                if how == "return":
                    return "early"
            if i == 2 and how == "diverge":  # all workers know both collectives
                strategy.run(step, args=(tf.ones(300),))
            if i == 5 and how == "diverge":
                strategy.run(step, args=(tf.ones([300, 2][strategy.cluster_resolver.task_id]),))
            if i == 5 and how == "differ":
                strategy.run(step, args=(tf.ones(3 + strategy.cluster_resolver.task_id),))
    except tf.errors.UnavailableError:
        if not os.environ.get("CATCH"):
            raise
        return "caught"
    return "finished"


def keras_model(layers, optimizer, strategy, **options):
    """Returns a compiled model that was created in the scope of `strategy`."""
    tf.keras.utils.set_random_seed(0)
    with strategy.scope():
        model = tf.keras.Sequential([tf.keras.Input((6,)), *layers(tf.keras.layers)])
        model.compile(optimizer, "mse", metrics=["mae"], **options)
    return model


def keras_training(folder):
    """Trains with `fit` on arrays and datasets of uneven batches, evaluates and predicts."""
    strategy = make_strategy()
    rank = current_group().rank
    x, y = data(21)
    results = {}
    for name, run_eagerly in [("eager", True), ("traced", False)]:
        model = keras_model(
            lambda layers: [
                layers.Dense(8, "tanh", kernel_regularizer="l2"),
                layers.Dense(1),
            ],
            "adam",
            strategy,
            run_eagerly=run_eagerly,
        )
        callbacks = [
            tf.keras.callbacks.ModelCheckpoint(f"{folder}/{rank}.{name}.keras"),
            tf.keras.callbacks.CSVLogger(f"{folder}/{rank}.{name}.csv"),
            tf.keras.callbacks.EarlyStopping("val_loss", patience=3),
        ]
        history = model.fit(
            x, y, batch_size=8, epochs=3, validation_data=(x[:5], y[:5]),
            callbacks=callbacks, verbose=0,
        )  # fmt: skip
        dataset = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(21, seed=1).batch(10)
        history.history["from dataset"] = model.fit(dataset, epochs=2, verbose=0).history["loss"]
        strategy.check_in_sync()
        results[name] = {
            "weights": model.get_weights(),
            "history": history.history,
            "evaluated": model.evaluate(x, y, batch_size=4, verbose=0),
            "on batch": model.test_on_batch(x[:7], y[:7]),
            "predicted": model.predict(x, batch_size=5, verbose=0),
        }
    return results


def keras_dropout():
    """Returns the dropout masks of one step."""
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    tf.keras.utils.set_random_seed(1)
    with strategy.scope():
        layer = tf.keras.layers.Dropout(0.5)
        dense = tf.keras.layers.Dense(3)
        dense.build((None, 2))
    mask = tf.function(lambda: layer(tf.ones([64]), training=True))
    drawn = [strategy.run(mask).numpy().tolist() for _ in range(2)]
    return {"masks": drawn, "initial": dense.kernel.numpy().tolist()}
