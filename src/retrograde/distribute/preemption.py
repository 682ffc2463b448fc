"""PreemptionCheckpointHandler: saves and stops at the same step on all workers before they end."""

from __future__ import annotations

import atexit
import contextlib
import itertools
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from retrograde.core.variable import Variable
from retrograde.distribute.context import OutsideStrategies
from retrograde.distribute.failures import WorkerLostError
from retrograde.ops.collectives import current_group
from retrograde.train.checkpoint import Checkpoint
from retrograde.train.manager import CheckpointManager
from retrograde.values import dtypes
from retrograde.values.arguments import shown

_EXIT_CODE = 42  # TensorFlow's
_POLL_SECONDS = 0.5
_handlers = itertools.count()


class TerminationConfig:
    """Options of `PreemptionCheckpointHandler`.

    - `termination_watcher_fn` is called repeatedly in a thread and returns whether this worker is
      about to be stopped. By default, SIGTERM is the notice.
    - `exit_fn` is called after the checkpoint is saved; by default the program ends with code 42.
    - `grace_period` is the time in seconds between the notice and the end of the machine. If it is
      positive, training continues after the first checkpoint, and a second one is saved before the
      time is over.
    - `save_fn` saves the checkpoint in place of the manager's `save`.
    """

    def __init__(
        self,
        termination_watcher_fn: Callable[[], bool] | None = None,
        exit_fn: Callable[[], Any] | None = None,
        grace_period: float | None = None,
        save_fn: Callable | None = None,
    ) -> None:
        self.termination_watcher_fn = termination_watcher_fn
        self.exit_fn = exit_fn
        self.grace_period = grace_period
        self.save_fn = save_fn


class PreemptionCheckpointHandler:
    """Saves a checkpoint and ends the program if any worker gets notice that it will be stopped.

    All workers save and end after the same number of steps. A new handler restores the latest
    checkpoint, and `total_run_calls` continues from it.

    >>> import tempfile
    >>> step = tf.Variable(0)
    >>> handler = tf.distribute.experimental.PreemptionCheckpointHandler(
    ...     tf.distribute.cluster_resolver.TFConfigClusterResolver(),
    ...     tf.train.Checkpoint(step=step),
    ...     tempfile.mkdtemp(),
    ...     tf.distribute.experimental.TerminationConfig(termination_watcher_fn=lambda: False),
    ... )
    >>> for _ in range(handler.total_run_calls, 3):
    ...     _ = handler.run(step.assign_add, 1)
    >>> handler.total_run_calls
    3
    """

    def __init__(
        self,
        cluster_resolver: Any,
        checkpoint_or_checkpoint_manager: Checkpoint | CheckpointManager,
        checkpoint_dir: str | None = None,
        termination_config: TerminationConfig | None = None,
    ) -> None:
        config = termination_config or TerminationConfig()
        self._save_fn = config.save_fn
        self._exit_fn = config.exit_fn or _exit
        self._manager, self._reader = _managers(checkpoint_or_checkpoint_manager, checkpoint_dir)
        checkpoint = self._manager.checkpoint
        if not hasattr(checkpoint, "checkpointed_runs"):
            with OutsideStrategies():
                checkpoint.checkpointed_runs = Variable(0, dtype=dtypes.int64, trainable=False)
        self._reader.restore_or_initialize()
        self._runs = int(checkpoint.checkpointed_runs)
        self._seconds_per_run = self._seconds_to_save = 0.0
        self._notices = _Notices(config.termination_watcher_fn, config.grace_period or 0.0)

    @property
    def total_run_calls(self) -> int:
        """The number of calls of `run`, including those before the restored checkpoint."""
        return self._runs

    def run(self, distributed_train_function: Callable, *args: Any, **kwargs: Any) -> Any:
        """Returns `distributed_train_function(*args, **kwargs)`, one training step.

        If all workers have to stop before this step, it saves a checkpoint and ends the program.
        """
        self._save_if_notified()
        started = time.monotonic()
        result = distributed_train_function(*args, **kwargs)
        self._seconds_per_run = max(self._seconds_per_run, time.monotonic() - started)
        self._runs += 1
        return result

    def save_checkpoint_if_preempted(self, *args: Any, **kwargs: Any) -> None:
        """Saves a checkpoint and ends the program if all workers have to stop here.

        Call it once after each step, in place of `run`. Arguments are passed to the manager's
        `save`.
        """
        self._runs += 1
        self._save_if_notified(*args, **kwargs)

    @contextlib.contextmanager
    def watch_preemption_scope(self) -> Iterator[None]:
        """Returns a context manager for training loops. It has no effect: `run` does the work."""
        yield

    def _save_if_notified(self, *args: Any, **kwargs: Any) -> None:
        spare = 6 * self._seconds_per_run + 3 * self._seconds_to_save
        notice = self._notices.reached(self._runs, spare)
        if notice is None:
            return
        self._save(*args, **kwargs)
        if notice.is_last:
            self._notices.stop()
            self._exit_fn()

    def _save(self, *args: Any, **kwargs: Any) -> None:
        started = time.monotonic()
        self._manager.checkpoint.checkpointed_runs.assign(self._runs)
        (self._save_fn or self._manager.save)(*args, **kwargs)
        current_group().barrier()  # all files are complete before any worker ends
        self._seconds_to_save = time.monotonic() - started


def _managers(target: Any, directory: str | None) -> tuple[CheckpointManager, CheckpointManager]:
    """Returns the managers that save and restore. Only the first worker's files are kept."""
    if isinstance(target, CheckpointManager):
        return target, target
    if not isinstance(target, Checkpoint) or directory is None:
        raise ValueError(
            "PreemptionCheckpointHandler: expected a tf.train.CheckpointManager, or a "
            "tf.train.Checkpoint and a checkpoint_dir. Received: "
            f"{shown(target)} and checkpoint_dir={shown(directory)}."
        )
    reader = CheckpointManager(target, directory, max_to_keep=1)
    if not current_group().rank:
        return reader, reader
    temporary = tempfile.TemporaryDirectory()
    atexit.register(temporary.cleanup)
    return CheckpointManager(target, temporary.name, max_to_keep=1), reader


def _exit() -> None:
    sys.exit(_EXIT_CODE)


class _Notice:
    """A notice to stop, which all workers follow after the same number of runs.

    A worker that receives it publishes how many runs it has begun, and begins no other run until
    all workers have published theirs. All of them continue to the largest number.
    """

    def __init__(self, group: Any, key: str, is_last: bool) -> None:
        self.is_last = is_last
        self._group, self._key = group, key
        self._lock = threading.Lock()
        self._begun = 0
        self._is_published = False
        self._last_run: int | None = None

    def announce(self) -> None:
        """Announces the notice to all workers."""
        if self._group.size == 1:
            self._publish()
        else:
            self._group.post(f"{self._key}/notice", str(self._group.rank))

    def listen(self) -> bool:
        """Returns whether a worker has announced the notice, after waiting for a moment."""
        if self._group.size == 1:
            time.sleep(_POLL_SECONDS / 10)
        elif self._group.read_posted(f"{self._key}/notice", _POLL_SECONDS) is not None:
            self._publish()
        return self._is_published

    def _publish(self) -> None:
        with self._lock:
            self._is_published = True
        if self._group.size > 1:
            self._group.post(f"{self._key}/{self._group.rank}", str(self._begun))

    def reached(self, runs: int) -> bool:
        """Returns whether all workers stop after `runs` runs, the number of finished ones."""
        with self._lock:
            if not self._is_published:
                self._begun = runs + 1  # the caller begins another one
                return False
        if self._last_run is None:
            others = [i for i in range(self._group.size) if i != self._group.rank]
            awaited = "the step at which all workers save"
            others_begun = [
                int(self._group.wait_for(f"{self._key}/{i}", i, awaited)) for i in others
            ]
            self._last_run = max([self._begun, *others_begun])
        return runs >= self._last_run


class _Notices:
    """Watches for the notice of this worker and of the others, in a thread."""

    def __init__(self, watcher_fn: Callable[[], bool] | None, grace_period: float) -> None:
        group = current_group()
        key = f"retrograde/preemption/{next(_handlers)}"
        self._pending = [_Notice(group, f"{key}/first", is_last=grace_period <= 0)]
        if grace_period > 0:
            self._pending.append(_Notice(group, f"{key}/last", is_last=True))
        self._watcher_fn, self._grace_period = watcher_fn, grace_period
        self._received = threading.Event()
        self._deadline = float("inf")  # when the first notice was received, plus the grace period
        self._spare = 0.0
        self._is_stopped = False
        if watcher_fn is None:
            signal.signal(signal.SIGTERM, self._receive)
        self._thread = threading.Thread(target=self._run, name="preemption", daemon=True)
        self._thread.start()
        atexit.register(self.stop)  # runs before the process group ends

    def _receive(self, *_: object) -> None:
        if not self._received.is_set():
            self._deadline = time.monotonic() + self._grace_period
            self._received.set()

    def _run(self) -> None:
        with contextlib.suppress(WorkerLostError):  # the main thread raises it at a collective
            self._watch()

    def _watch(self) -> None:
        for index, notice in enumerate(list(self._pending)):
            is_announced = False
            while not self._is_stopped:
                if not self._received.is_set() and self._watcher_fn and self._watcher_fn():
                    self._receive()
                is_due = index == 0 or time.monotonic() > self._deadline - self._spare
                if self._received.is_set() and is_due and not is_announced:
                    notice.announce()
                    is_announced = True
                if notice.listen():
                    break

    def reached(self, runs: int, spare: float) -> _Notice | None:
        """Returns the notice that all workers follow after `runs` runs; `None` if there is none.

        `spare` is the time in seconds that the last checkpoint needs.
        """
        self._spare = spare
        if self._pending and self._pending[0].reached(runs):
            return self._pending.pop(0)
        return None

    def stop(self) -> None:
        """Stops the thread."""
        self._is_stopped = True
        self._thread.join(2 * _POLL_SECONDS)
