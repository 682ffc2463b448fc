"""SIGTERM: all workers save at the same step and stop; a restarted program continues there."""

import contextlib
import pathlib
import signal
import subprocess
import time

import numpy as np
import pytest

import retrograde as tf
from tests.distribute.workers import SECONDS, outcome, results, started

STEPS = 60


def preempt(folder, rank, steps=STEPS):
    """Trains in two workers, sends SIGTERM to one of them, and returns how both ended."""
    with started("preemption_program:train", 2, folder, (folder, steps), {}) as workers:
        end = time.monotonic() + SECONDS
        while not all(read_steps(folder, i) > 5 for i in (0, 1)):
            assert time.monotonic() < end
            assert all(worker.poll() is None for worker in workers)
            time.sleep(0.02)
        workers[rank].send_signal(signal.SIGTERM)
        for worker in workers:
            with contextlib.suppress(subprocess.TimeoutExpired):
                worker.wait(max(0.1, end - time.monotonic()))
        return [outcome(worker, folder, i) for i, worker in enumerate(workers)]


def read_steps(folder, rank):
    path = pathlib.Path(folder, f"{rank}.steps")
    text = path.read_text() if path.exists() else ""
    return int(text or 0)


def test_all_workers_save_and_stop_at_the_same_step(tmp_path):
    undisturbed = str(tmp_path / "undisturbed")
    pathlib.Path(undisturbed).mkdir()
    expected = results("preemption_program:train", 2, undisturbed, STEPS)
    for rank in (0, 1):
        folder = str(tmp_path / str(rank))
        pathlib.Path(folder).mkdir()
        ended = preempt(folder, rank)
        assert [worker.code for worker in ended] == [17, 17], [worker.output for worker in ended]
        steps = {read_steps(folder, i) for i in (0, 1)}
        assert len(steps) == 1
        if rank:  # restarting once is enough
            resumed = results("preemption_program:train", 2, folder, STEPS)
            assert {first for first, _ in resumed} == steps
            np.testing.assert_array_equal([w for _, w in resumed], [w for _, w in expected])


class Exit(Exception):
    pass


def make_handler(checkpoint, folder, **options):
    def leave():
        raise Exit

    config = tf.distribute.experimental.TerminationConfig(exit_fn=leave, **options)
    return tf.distribute.experimental.PreemptionCheckpointHandler(
        tf.distribute.cluster_resolver.TFConfigClusterResolver(), checkpoint, folder, config
    )


def run_until_exit(handler, step):
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        handler.run(step.assign_add, 1)
        time.sleep(0.01)


def test_one_worker_saves_when_its_watcher_says_so(tmp_path):
    step, notices = tf.Variable(0), []
    handler = make_handler(
        tf.train.Checkpoint(step=step), str(tmp_path), termination_watcher_fn=lambda: bool(notices)
    )
    for _ in range(3):
        handler.run(step.assign_add, 1)
    notices.append("stop")
    with pytest.raises(Exit):
        run_until_exit(handler, step)

    assert handler.total_run_calls == step.numpy()
    again = tf.Variable(0)
    restored = make_handler(
        tf.train.Checkpoint(step=again), str(tmp_path), termination_watcher_fn=lambda: False
    )
    assert restored.total_run_calls == again.numpy() == step.numpy()


def test_training_continues_in_the_grace_period_and_saves_twice(tmp_path):
    step, saved = tf.Variable(0), []
    manager = tf.train.CheckpointManager(tf.train.Checkpoint(step=step), str(tmp_path), None)

    def save():
        saved.append(int(step.numpy()))
        manager.save()

    handler = make_handler(
        manager, None, termination_watcher_fn=lambda: True, grace_period=1.0, save_fn=save
    )
    with pytest.raises(Exit):
        run_until_exit(handler, step)

    first, last = saved
    assert first < last == step.numpy()


def test_a_loop_without_run_saves_after_a_step(tmp_path):
    step = tf.Variable(0)
    handler = make_handler(
        tf.train.Checkpoint(step=step), str(tmp_path), termination_watcher_fn=lambda: step >= 3
    )
    with pytest.raises(Exit), handler.watch_preemption_scope():
        for _ in range(1000):
            step.assign_add(1)
            time.sleep(0.01)
            handler.save_checkpoint_if_preempted()

    assert handler.total_run_calls == step.numpy() >= 3
    assert tf.train.latest_checkpoint(str(tmp_path)) is not None


def test_a_checkpoint_needs_a_directory():
    with pytest.raises(ValueError) as caught:
        make_handler(tf.train.Checkpoint(), None)

    assert str(caught.value).startswith(
        "PreemptionCheckpointHandler: expected a tf.train.CheckpointManager, or a "
        "tf.train.Checkpoint and a checkpoint_dir. Received: "
    )
