"""One process of `benchmarks.data_parallel` with retrograde."""

import sys

import retrograde as tf
from benchmarks.data_parallel import BATCH, PROCESSES, RATE, batch, serve, weights


def main(mode):
    """Trains with `MultiWorkerMirroredStrategy`."""
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    with strategy.scope():
        variables = [tf.Variable(array) for array in weights()]
        optimizer = tf.keras.optimizers.SGD(RATE)
        optimizer.build(variables)
    x, labels = map(tf.constant, batch(strategy.cluster_resolver.task_id))

    def replica(x, labels):
        with tf.GradientTape() as tape:
            h = tf.nn.relu(x @ variables[0] + variables[1])
            h = tf.nn.relu(h @ variables[2] + variables[3])
            logits = h @ variables[4] + variables[5]
            errors = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
            loss = tf.nn.compute_average_loss(errors, global_batch_size=BATCH * PROCESSES)
        gradients = tape.gradient(loss, variables)
        optimizer.apply_gradients(zip(gradients, variables, strict=True))
        return loss

    step = tf.function(
        lambda x, labels: strategy.run(replica, (x, labels)), jit_compile=mode == "retrograde_xla"
    )
    last = []

    def run():
        last[:] = [step(x, labels)]

    serve(run, lambda: float(last[0]) * PROCESSES)


if __name__ == "__main__":
    main(sys.argv[1])
