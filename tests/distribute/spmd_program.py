"""Trains with MirroredStrategy on the logical CPU devices that DEVICES asks for, in all modes."""

from __future__ import annotations

import retrograde as tf
from campaigns._replicas.networks import NETWORKS, train
from retrograde.program.spmd import SpmdProgram, WorkerProgram
from tests.distribute import programs

STEPS = 4
MODES = ("eager", "replayed", "xla")


def _compiled(function):
    """Returns the SPMD program of a function, or `None` if it has none."""
    *_, trace = [trace for traces in function._signatures.values() for trace in traces.all]
    program = trace.executable.compiled()
    return program if isinstance(program, SpmdProgram) else None


def all_networks(modes=MODES):
    """Returns the trainings of all networks, by name and mode."""
    strategy = programs.make_strategy()
    return {(name, mode): _train(name, strategy, mode) for name in NETWORKS for mode in modes}


def _train(name, strategy, mode):
    losses, weights, step = train(name, strategy, mode, STEPS)
    compiled = _compiled(step) if mode == "xla" else None
    return {
        "losses": losses,
        "weights": weights,
        "all-reduces": compiled and compiled.text("stablehlo").count("stablehlo.all_reduce"),
    }


def details(strategy):
    """Returns what replicas see in a function that XLA compiles, and in eager code."""
    count = strategy.num_replicas_in_sync
    with strategy.scope():
        mirrored = tf.Variable(1.0, aggregation=tf.VariableAggregation.MEAN)
        first = tf.Variable(0.0, aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA)
        counted = tf.Variable(
            0.0,
            trainable=False,
            synchronization=tf.VariableSynchronization.ON_READ,
            aggregation=tf.VariableAggregation.SUM,
        )

    def replica(x):
        context = tf.distribute.get_replica_context()
        mirrored.assign_add(x)
        first.assign(x * 2)
        counted.assign_add(x)
        rows = context.all_gather(tf.reshape(x, [1]), axis=0)
        return rows, tf.random.stateless_uniform([2], [1, 2]), x + mirrored, tf.random.normal([3])

    def run(x):
        rows, same, own, drawn = strategy.run(replica, (x,))
        return strategy.gather(rows, axis=0), same, own, drawn

    def values(value):
        return [x.numpy().tolist() for x in strategy.experimental_local_results(value)]

    results = {}
    for mode in ("eager", "xla"):
        for v in (mirrored, first, counted):
            v.assign(0.0)
        tf.random.set_seed(5)
        f = run if mode == "eager" else tf.function(run, jit_compile=True)
        for _ in range(3):
            x = strategy.experimental_distribute_values_from_function(
                lambda context: tf.constant(context.replica_id_in_sync_group + 1.0)
            )
            rows, same, own, drawn = f(x)
        results[mode] = {
            "rows": rows.numpy().tolist(),
            "same": values(same),
            "own": values(own),
            "drawn": values(drawn),
            "variables": [v.numpy().item() for v in (mirrored, first, counted)],
            "compiled": mode == "eager" or count == 1 or _compiled(f) is not None,
        }
    counted.assign(0.0)

    def count_rows(x):
        strategy.run(counted.assign_add, (x,))

    count_rows = tf.function(count_rows)
    for _ in range(3):
        with tf.GradientTape():
            count_rows(x)
    results["under a tape"] = counted.numpy().item()

    def different():
        number = tf.distribute.get_replica_context().replica_id_in_sync_group
        return mirrored * 0.0 + 2.0 * 2.0 if number else mirrored - mirrored + 1.0

    f = tf.function(lambda: strategy.run(different), jit_compile=True)
    seen = [values(f()) for _ in range(2)][-1]
    results["different"] = {"values": seen, "compiled": _compiled(f) is not None}
    return results


def workers():
    """Returns trainings of a worker with uneven batches, and how many steps were compiled."""
    run, outcomes = WorkerProgram.run, []

    def observed(self, *args):
        outcome = run(self, *args)
        outcomes.append(outcome is not None)
        return outcome

    WorkerProgram.run = observed
    results = {mode: programs.training(mode, steps=14, rows=43) for mode in ("replayed", "xla")}
    results["compiled"] = list(outcomes)
    outcomes.clear()
    results["weights"] = _trained_with_known_and_new_shapes()
    return results | {"one worker traces": outcomes}


def _trained_with_known_and_new_shapes():
    """Returns weights after a step for which one of two workers has a trace.

    First they come from a function that has run with other shapes, and then from a new function.
    """
    strategy = programs.make_strategy()
    rank = strategy.cluster_resolver.task_id
    x, y = programs.data(4)
    with strategy.scope():
        w = tf.Variable(tf.ones([6, 1]))

    def replica(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.tanh(x @ w - y) ** 2)
        gradient = tape.gradient(loss, w)
        w.assign_sub(0.1 * tf.distribute.get_replica_context().all_reduce("SUM", gradient))

    def new_function():
        return tf.function(lambda *args: strategy.run(replica, args), jit_compile=True)

    def step(train, rows):
        train(tf.constant(x[:rows]), tf.constant(y[:rows]))
        return w.numpy()

    train = new_function()
    for rows in (4, 2 if rank == 0 else 4):
        before = step(train, rows)
    trained = [step(train, 2)]
    w.assign(before)
    return [*trained, step(new_function(), 2)]
