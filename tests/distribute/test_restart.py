"""A killed worker: all start again from the last checkpoint and end with the same weights.

The campaign "restarts" kills random workers at random moments.
"""

import subprocess
import sys

import numpy as np

from tests.distribute.workers import SECONDS, environment

PROGRAM = """
import os, signal, sys
import numpy as np
import tensorflow as tf

folder, killed, at = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
strategy = tf.distribute.MultiWorkerMirroredStrategy()
rank = strategy.cluster_resolver.task_id
data = np.random.default_rng(0).normal(size=(20, 8, 4)).astype("float32")
with strategy.scope():
    w = tf.Variable(tf.ones([4, 1]))
    done = tf.Variable(0, trainable=False)
    optimizer = tf.keras.optimizers.Adam(0.1)
    optimizer.build([w])
checkpoint = tf.train.Checkpoint(w=w, done=done, optimizer=optimizer)
manager = tf.train.CheckpointManager(checkpoint, folder, max_to_keep=2)
if manager.latest_checkpoint:
    checkpoint.restore(manager.latest_checkpoint)
    print("restored", done.numpy())

@tf.function(jit_compile=True)
def train(x):
    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.nn.compute_average_loss(tf.reduce_sum((x @ w - 3.0) ** 2, 1))
        optimizer.apply_gradients([(tape.gradient(loss, w), w)])
    strategy.run(step, args=(x,))

while done.numpy() < 20:
    if rank == killed and done.numpy() == at and os.environ["RETROGRADE_RESTART"] == "0":
        os.kill(os.getpid(), signal.SIGKILL)
    train(tf.constant(data[done.numpy(), 4 * rank : 4 * rank + 4]))
    done.assign_add(1)
    if done.numpy() % 4 == 0 and rank == 0:
        manager.save()
    strategy.check_in_sync()
if rank == 0:
    np.save(f"{folder}/final.npy", w.numpy())
"""


def train(tmp_path, killed, at):
    folder = tmp_path / f"{killed}"
    folder.mkdir()
    (tmp_path / "train.py").write_text(PROGRAM)
    command = [sys.executable, "-m", "retrograde", "launch", "-n", "2", "--max-restarts", "1"]
    done = subprocess.run(
        [*command, str(tmp_path / "train.py"), str(folder), str(killed), str(at)],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert done.returncode == 0, done.stdout
    return np.load(folder / "final.npy"), done.stdout


def test_a_killed_worker_does_not_change_the_result(tmp_path):
    expected, _ = train(tmp_path, -1, 0)
    final, output = train(tmp_path, 0, 10)

    assert "[launch] worker 0 was ended by SIGKILL; restart 1 of 1" in output
    assert "restored 8" in output
    np.testing.assert_array_equal(final, expected)
