"""Kills workers of `retrograde launch` at random moments, several times in a training run.

A trial trains in two workers with `--max-restarts` and checkpoints. Steps are compiled in every
other trial, and replayed in the others. It kills a random worker at a
random moment after each start: while Python imports, workers connect, a step runs, a checkpoint is
written, or others already fail. Afterwards the final parameters must be bitwise equal to the
parameters of a run that was not disturbed. It prints the time lost per kill.
"""

from __future__ import annotations

import functools
import os
import pathlib
import queue
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from typing import IO

SHORT = 1
KILLS = 5
WORKERS = 2
MODES = ("compiled", "replayed")
_LIMIT = 200.0  # seconds for one run
_ROOT = pathlib.Path(__file__).resolve().parent.parent

PROGRAM = """
import os, sys, time
print("pid", os.getpid(), flush=True)
import numpy as np
import tensorflow as tf

folder, mode = sys.argv[1:]
strategy = tf.distribute.MultiWorkerMirroredStrategy()
rank = strategy.cluster_resolver.task_id
rows = np.random.default_rng(0).normal(size=(60, 8, 4)).astype("float32")
with strategy.scope():
    w = tf.Variable(tf.ones([4, 3]))
    momentum = tf.Variable(tf.zeros([4, 3]), trainable=False)
    done = tf.Variable(0, trainable=False)
checkpoint = tf.train.Checkpoint(w=w, momentum=momentum, done=done)
manager = tf.train.CheckpointManager(checkpoint, folder, max_to_keep=2)
manager.restore_or_initialize()

@tf.function(jit_compile=mode == "compiled")
def train(x):
    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.nn.compute_average_loss(tf.reduce_sum((tf.tanh(x @ w) - 3.0) ** 2, 1))
        gradient = tf.distribute.get_replica_context().all_reduce("SUM", tape.gradient(loss, w))
        momentum.assign(0.9 * momentum + gradient)
        w.assign_sub(0.05 * momentum)
    strategy.run(step, args=(x,))

while done.numpy() < len(rows):
    train(tf.constant(rows[done.numpy(), 4 * rank : 4 * rank + 4]))
    done.assign_add(1)
    if done.numpy() % 5 == 0 and rank == 0:
        manager.save()
    time.sleep(0.02)
strategy.check_in_sync()
if rank == 0:
    w.numpy().tofile(f"{folder}/final")
"""


def trial(seed: int) -> str | None:
    """Runs one trial. Returns a description of the problem, if any."""
    rng = random.Random(seed)
    mode = MODES[seed % 2]
    expected, undisturbed = _expected(mode)
    plan = [(rng.randrange(WORKERS), rng.uniform(0.0, 4.0)) for _ in range(KILLS)]
    final, seconds, kills, output = run(mode, plan)
    lost = (seconds - undisturbed) / max(kills, 1)
    print(f"restarts: seed {seed}, {mode}, {kills} kills, {lost:.1f} s lost per kill", flush=True)
    if final == expected:
        return None
    problem = f"The final parameters differ, or there are none. Kills: {plan}."
    return f"{problem} Output:\n{output[-3000:]}"


@functools.cache
def _expected(mode: str) -> tuple[bytes, float]:
    final, seconds, _, output = run(mode, [])
    if final is None:
        raise RuntimeError(f"The run without kills failed: {output[-3000:]}")
    return final, seconds


def run(mode: str, plan: list[tuple[int, float]]) -> tuple[bytes | None, float, int, str]:
    """Trains, and kills the worker of each `(rank, seconds after its start)`.

    Returns the final parameters, the duration, the number of kills and the output.
    """
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder, "train.py")
        program.write_text(PROGRAM)
        command = [sys.executable, "-m", "retrograde", "launch", "-n", str(WORKERS)]
        command += ["--max-restarts", str(len(plan) + 1), str(program), folder, mode]
        start = time.monotonic()
        launcher = subprocess.Popen(
            command, env=_environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        try:
            kills, output = _watch(launcher, list(plan), start + _LIMIT)
        finally:
            if launcher.poll() is None:
                launcher.kill()  # the kernel ends its workers
            launcher.wait()
        seconds = time.monotonic() - start
        final = pathlib.Path(folder, "final")
        ended_well = launcher.returncode == 0 and final.exists()
        return final.read_bytes() if ended_well else None, seconds, kills, output


def _watch(
    launcher: subprocess.Popen, plan: list[tuple[int, float]], end: float
) -> tuple[int, str]:
    """Kills workers as planned until the launcher ends."""
    lines: queue.Queue = queue.Queue()
    threading.Thread(target=_read, args=(launcher.stdout, lines), daemon=True).start()
    output, pids, due, kills = [], {}, float("inf"), 0
    while time.monotonic() < end:
        try:
            line = lines.get(timeout=0.02)
        except queue.Empty:
            line = ""
        if line is None:
            break
        output.append(line)
        started = re.match(r"\[(\d+)\] pid (\d+)", line)
        if started:
            pids[int(started[1])] = int(started[2])
            if len(pids) == WORKERS and plan:
                due = time.monotonic() + plan[0][1]
        if time.monotonic() >= due:
            rank, _ = plan.pop(0)
            kills += _kill(pids[rank])
            pids, due = {}, float("inf")
    return kills, "".join(output)


def _kill(pid: int) -> int:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:  # it has finished
        return 0
    return 1


def _read(stream: IO[str], lines: queue.Queue) -> None:
    for line in stream:
        lines.put(line)
    lines.put(None)


def _environment() -> dict[str, str]:
    return os.environ | {
        "JAX_PLATFORMS": "cpu",
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": str(_ROOT / "src"),
        "RETROGRADE_START_TIMEOUT": "60",
        "RETROGRADE_COLLECTIVE_TIMEOUT": "60",
    }
