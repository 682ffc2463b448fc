"""A program that observes the replicas of MirroredStrategy on two logical CPU devices."""

from __future__ import annotations

import retrograde as tf
from tests.distribute import programs


def semantics():
    """Returns the values that replicas observe, as plain data."""
    strategy = programs.make_strategy()
    physical, logical = (
        [device.name for device in list_devices("CPU")]
        for list_devices in (tf.config.list_physical_devices, tf.config.list_logical_devices)
    )
    results = {"replicas": strategy.num_replicas_in_sync, "physical": physical, "logical": logical}
    aggregations = ("NONE", "SUM", "MEAN", "ONLY_FIRST_REPLICA")
    with strategy.scope():
        variables = {
            (kind, name): tf.Variable(
                0.0,
                trainable=False,
                synchronization=getattr(tf.VariableSynchronization, kind),
                aggregation=getattr(tf.VariableAggregation, name),
            )
            for kind in ("ON_WRITE", "ON_READ")
            for name in aggregations
        }

    def values(value):
        return [x.numpy().tolist() for x in strategy.experimental_local_results(value)]

    def update(v, how):
        getattr(v, how)(number() + 1.0)
        return v.read_value()

    for key, v in variables.items():
        seen = [values(strategy.run(update, (v, how))) for how in ("assign_add", "assign")]
        results[key] = (*seen, v.numpy().item())
    with strategy.scope():
        variables["ON_READ", "SUM"].assign(8.0)
        results["assigned"] = variables["ON_READ", "SUM"].numpy().item()
    results["share"] = values(strategy.run(variables["ON_READ", "SUM"].read_value))

    def gradients():
        context, r = tf.distribute.get_replica_context(), number()
        x = tf.constant([1.0, 2.0]) * (r + 1)
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            total, mean = context.all_reduce("SUM", x), context.all_reduce("MEAN", x)
            rows = context.all_gather(x, axis=0)
            losses = [tf.reduce_sum(y * y * (r + 1)) for y in (total, mean, rows)]
        return [tape.gradient(loss, x) for loss in losses]

    traced = tf.function(lambda: strategy.run(gradients))
    for name, run in [("eager", lambda: strategy.run(gradients)), ("traced", traced)]:
        results["gradients", name] = [list(map(values, run())) for _ in range(2)][-1]

    def merged():
        context = tf.distribute.get_replica_context()
        return context.merge_call(lambda s, x: s.reduce("SUM", x, axis=None), (number() + 1,))

    results["merged"] = values(strategy.run(merged))
    uneven = strategy.run(lambda: tf.range(1.0, 2.0 + number() * 2))
    results["reduced"] = [
        strategy.reduce(op, uneven, axis=0).numpy().item() for op in ("SUM", "MEAN")
    ]
    results["gathered"] = strategy.gather(uneven, axis=0).numpy().tolist()
    results["drawn"] = values(strategy.run(lambda: tf.random.normal([2])))
    results["loss"] = values(strategy.run(lambda: tf.nn.compute_average_loss([1.0, 2.0])))
    results["created"] = strategy.run(lambda: tf.Variable(number() + 3)).numpy().item()
    dataset = tf.data.Dataset.range(9).batch(4)
    results["shares"] = list(map(values, strategy.experimental_distribute_dataset(dataset)))
    results["from function"] = [
        values(x)
        for x in strategy.distribute_datasets_from_function(
            lambda context: tf.data.Dataset.range(5).batch(context.get_per_replica_batch_size(4))
        )
    ]
    results["values"] = values(
        strategy.experimental_distribute_values_from_function(
            lambda context: tf.constant(context.replica_id_in_sync_group)
        )
    )
    results["different"] = _message(
        lambda: strategy.run(lambda: variables["ON_WRITE", "SUM"].assign(1.0) if number() else None)
    )
    results["error"] = _message(lambda: strategy.run(lambda: tf.ones([2]) + tf.ones([3])))
    results["nested"] = _message(lambda: strategy.run(tf.function(merged)))
    all_reduce = tf.function(lambda: tf.distribute.get_replica_context().all_reduce("SUM", 2.0))
    replica_id = tf.function(number)
    results["traced outside"] = [f().numpy().item() for f in (all_reduce, replica_id) * 2]
    results["in replicas"] = [values(strategy.run(replica_id)) for _ in range(2)]
    results["nested all_reduce"] = _message(lambda: strategy.run(all_reduce)).partition(" while")[0]
    results["not distributed"] = _message(lambda: strategy.reduce("SUM", 3.0, axis=None))
    results["devices"] = _message(lambda: tf.distribute.MirroredStrategy(["CPU:0", "CPU:7"]))
    results["after an error"] = values(strategy.run(merged))
    return results


def number():
    """Returns the number of the replica, a float."""
    return float(tf.distribute.get_replica_context().replica_id_in_sync_group)


def _message(f):
    try:
        f()
    except (ValueError, RuntimeError, tf.errors.OpError) as error:
        return f"{type(error).__name__}: {error}"
    return "no error"
