"""Trains with MirroredStrategy on the logical CPU devices that DEVICES asks for, in all modes."""

from __future__ import annotations

import numpy as np

import retrograde as tf
from retrograde.program.spmd import SpmdProgram, WorkerProgram
from tests.distribute import programs

BATCH, STEPS = 8, 4
MODES = ("eager", "replayed", "xla")


def _sgd():
    return tf.keras.optimizers.SGD(0.05, momentum=0.9)


def _supervised(network, x, y):
    """Returns a function that makes the step of a network, and its data."""

    def make():
        model, optimizer = network(), _sgd()
        model.build((None, *x.shape[1:]))
        optimizer.build(model.trainable_variables)

        def step(x, y):
            with tf.GradientTape() as tape:
                errors = tf.reduce_sum((model(x, training=True) - y) ** 2, axis=1)
                loss = tf.nn.compute_average_loss(errors, global_batch_size=BATCH)
            variables = model.trainable_variables
            gradients = tape.gradient(loss, variables)
            optimizer.apply_gradients(zip(gradients, variables, strict=True))
            return loss

        return step, model.variables

    return make, (x, y)


def _random(*shape):
    return np.random.default_rng(sum(shape)).normal(size=shape).astype("float32")


def mlp():
    """Returns a multilayer perceptron."""
    layers = tf.keras.layers
    return _supervised(
        lambda: tf.keras.Sequential([layers.Dense(8, "tanh"), layers.Dense(2)]),
        _random(BATCH * STEPS, 3),
        _random(BATCH * STEPS, 2),
    )


def cnn():
    """Returns a convolutional network with batch normalization over all replicas."""
    layers = tf.keras.layers
    return _supervised(
        lambda: tf.keras.Sequential(
            [
                layers.Conv2D(3, 3, use_bias=False),
                layers.BatchNormalization(synchronized=True),
                layers.ReLU(),
                layers.GlobalAveragePooling2D(),
                layers.Dense(2),
            ]
        ),
        _random(BATCH * STEPS, 5, 5, 2),
        _random(BATCH * STEPS, 2),
    )


def lstm():
    """Returns a recurrent network."""
    layers = tf.keras.layers
    return _supervised(
        lambda: tf.keras.Sequential([layers.LSTM(4), layers.Dense(2)]),
        _random(BATCH * STEPS, 6, 2),
        _random(BATCH * STEPS, 2),
    )


def gan():
    """Returns a generator and a discriminator with an optimizer each."""
    layers = tf.keras.layers
    real, noise = _random(BATCH * STEPS, 3), _random(BATCH * STEPS, 2)

    def make():
        generator = tf.keras.Sequential([layers.Dense(6, "tanh"), layers.Dense(3)])
        discriminator = tf.keras.Sequential([layers.Dense(6, "tanh"), layers.Dense(1)])
        models, optimizers = (generator, discriminator), (_sgd(), _sgd())
        generator.build((None, 2))
        discriminator.build((None, 3))
        for model, optimizer in zip(models, optimizers, strict=True):
            optimizer.build(model.trainable_variables)

        def loss_of(logits, label):
            labels = tf.fill(tf.shape(logits), label)
            errors = tf.nn.sigmoid_cross_entropy_with_logits(labels, logits)
            return tf.nn.compute_average_loss(errors[:, 0], global_batch_size=BATCH)

        def step(real, noise):
            with tf.GradientTape(persistent=True) as tape:
                scores = discriminator(generator(noise))
                losses = (
                    loss_of(scores, 1.0),
                    loss_of(scores, 0.0) + loss_of(discriminator(real), 1.0),
                )
            for model, optimizer, loss in zip(models, optimizers, losses, strict=True):
                variables = model.trainable_variables
                gradients = tape.gradient(loss, variables)
                optimizer.apply_gradients(zip(gradients, variables, strict=True))
            return losses[0] + losses[1]

        return step, [*generator.variables, *discriminator.variables]

    return make, (real, noise)


NETWORKS = {"mlp": mlp, "cnn": cnn, "lstm": lstm, "gan": gan}


def train(name, strategy, mode):
    """Returns the losses and the weights, and the HLO of the step if XLA compiled it for all."""
    tf.keras.utils.set_random_seed(3)
    make, arrays = NETWORKS[name]()
    with strategy.scope():
        step, variables = make()

    def distributed(*batch):
        return strategy.reduce("SUM", strategy.run(step, batch), axis=None)

    if mode != "eager":
        distributed = tf.function(distributed, jit_compile=mode == "xla")
    dataset = tf.data.Dataset.from_tensor_slices(arrays).batch(BATCH)
    batches = strategy.experimental_distribute_dataset(dataset)
    losses = [float(distributed(*batch)) for batch in batches]
    compiled = _compiled(distributed) if mode == "xla" else None
    return {
        "losses": losses,
        "weights": [v.numpy() for v in variables],
        "all-reduces": compiled and compiled.text("stablehlo").count("stablehlo.all_reduce"),
    }


def _compiled(function):
    """Returns the SPMD program of a function, or `None` if it has none."""
    *_, trace = [trace for traces in function._signatures.values() for trace in traces.all]
    program = trace.executable.compiled()
    return program if isinstance(program, SpmdProgram) else None


def all_networks(modes=MODES):
    """Returns the trainings of all networks."""
    strategy = programs.make_strategy()
    found = {(name, mode): train(name, strategy, mode) for name in NETWORKS for mode in modes}
    found["details"] = _details(strategy)
    return found


def _details(strategy):
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

    found = {}
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
        found[mode] = {
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
    found["under a tape"] = counted.numpy().item()

    def different():
        number = tf.distribute.get_replica_context().replica_id_in_sync_group
        return mirrored * 0.0 + 2.0 * 2.0 if number else mirrored - mirrored + 1.0

    f = tf.function(lambda: strategy.run(different), jit_compile=True)
    seen = [values(f()) for _ in range(2)][-1]
    found["different"] = {"values": seen, "compiled": _compiled(f) is not None}
    return found


def workers():
    """Returns trainings of a worker with uneven batches, and how many steps were compiled."""
    run, outcomes = WorkerProgram.run, []

    def observed(self, *args):
        outcome = run(self, *args)
        outcomes.append(outcome is not None)
        return outcome

    WorkerProgram.run = observed
    found = {mode: programs.training(mode, steps=14, rows=43) for mode in ("replayed", "xla")}
    return found | {"compiled": outcomes}
