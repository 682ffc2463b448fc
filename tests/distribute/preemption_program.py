"""A training program that saves and stops when a worker gets SIGTERM."""

from __future__ import annotations

import pathlib
import sys
import time

import retrograde as tf
from retrograde.ops.collectives import current_group

experimental = tf.distribute.experimental


def train(folder, steps, options=None):
    """Trains a variable in steps of handler calls, and returns the first step and the result."""
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    rank = current_group().rank
    with strategy.scope():
        w = tf.Variable([1.0, 2.0])
    config = experimental.TerminationConfig(exit_fn=lambda: sys.exit(17), **(options or {}))
    handler = experimental.PreemptionCheckpointHandler(
        strategy.cluster_resolver, tf.train.Checkpoint(w=w), f"{folder}/checkpoints", config
    )
    first = handler.total_run_calls

    def step(i):
        gradient = tf.distribute.get_replica_context().all_reduce("SUM", w * (rank + i) / 100)
        w.assign_sub(gradient / 10)
        return i

    results = []
    for i in range(first, steps):
        results.append(handler.run(lambda i=i: strategy.run(step, args=(i,))))
        pathlib.Path(folder, f"{rank}.steps").write_text(str(handler.total_run_calls))
        time.sleep(0.05)
    assert results == list(range(first, steps))
    return first, w.numpy().tolist()
