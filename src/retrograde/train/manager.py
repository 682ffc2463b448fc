"""CheckpointManager: keeps the latest checkpoints of a directory."""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Callable
from typing import Any

from retrograde.files.atomic import lock_directory
from retrograde.io.files import tensorflow_errors
from retrograde.train._files import file_of
from retrograde.train._state import CheckpointState, get_checkpoint_state, update_state
from retrograde.train.checkpoint import Checkpoint, CheckpointOptions, run_callbacks
from retrograde.values.arguments import as_int, as_text
from retrograde.values.errors import DataLossError


class CheckpointManager:
    """Saves checkpoints in a directory and deletes old ones.

    It keeps the last `max_to_keep` checkpoints, or all if that is `None`, and in addition one every
    `keep_checkpoint_every_n_hours`. With `step_counter` and `checkpoint_interval`, `save` does
    nothing until that many steps have passed since the last checkpoint.

    >>> import tempfile
    >>> step = tf.Variable(0)
    >>> manager = tf.train.CheckpointManager(
    ...     tf.train.Checkpoint(step=step), tempfile.mkdtemp(), max_to_keep=2
    ... )
    >>> for _ in range(3):
    ...     _ = step.assign_add(1)
    ...     _ = manager.save()
    >>> [path.split("/")[-1] for path in manager.checkpoints]
    ['ckpt-2', 'ckpt-3']
    """

    def __init__(
        self,
        checkpoint: Checkpoint,
        directory: Any,
        max_to_keep: int | None,
        keep_checkpoint_every_n_hours: float | None = None,
        checkpoint_name: str = "ckpt",
        step_counter: Any = None,
        checkpoint_interval: int | None = None,
        init_fn: Callable[[], Any] | None = None,
        last_checkpoint_step: int | None = None,
    ) -> None:
        if max_to_keep is not None and max_to_keep <= 0:
            raise ValueError(
                "Expected a positive integer or `None` for `max_to_keep`, got "
                f"{as_text(max_to_keep)}."
            )
        if checkpoint_interval is not None and step_counter is None:
            raise ValueError(
                "`step_counter` should be passed if `checkpoint_interval` is not None."
            )
        self._checkpoint, self._directory = checkpoint, os.fspath(directory)
        self._max_to_keep = max_to_keep
        self._every = keep_checkpoint_every_n_hours
        self._prefix = os.path.join(self._directory, checkpoint_name)
        self._step_counter, self._interval = step_counter, checkpoint_interval
        self._last_step = last_checkpoint_step
        self._init_fn = init_fn
        self._latest: str | None = None
        self._kept: dict[str, float] = {}
        self._last_preserved = time.time()
        state = get_checkpoint_state(self._directory)
        if state is not None:
            self._recover(state)

    def _recover(self, state: CheckpointState) -> None:
        """Continues from the state file of an earlier manager of the directory."""
        self._latest = state.model_checkpoint_path
        self._kept = self._managed_checkpoints(state)
        if state.last_preserved_timestamp is not None:
            self._last_preserved = state.last_preserved_timestamp

    def _managed_checkpoints(self, state: CheckpointState) -> dict[str, float]:
        """Returns the times of the listed checkpoints whose names match this manager's.

        No other checkpoint is ever deleted, regardless of the state file.
        """
        paths, times = state.all_model_checkpoint_paths, state.all_model_checkpoint_timestamps
        if len(times) != len(paths) or not all(isinstance(t, (int, float)) for t in times):
            times = [time.time()] * len(paths)
        name = re.compile(re.escape(os.path.abspath(self._prefix)) + r"-(-?\d+)")
        matches = zip([name.fullmatch(os.path.abspath(path)) for path in paths], times, strict=True)
        return {f"{self._prefix}-{match[1]}": time for match, time in matches if match}

    @property
    def directory(self) -> str:
        """The directory of the checkpoints."""
        return self._directory

    @property
    def checkpoint(self) -> Checkpoint:
        """The checkpoint object that is saved."""
        return self._checkpoint

    @property
    def checkpoint_interval(self) -> int | None:
        """The minimum number of steps between checkpoints."""
        return self._interval

    @property
    def latest_checkpoint(self) -> str | None:
        """The path of the latest checkpoint, or `None`."""
        return self._latest

    @property
    def checkpoints(self) -> list[str]:
        """The managed checkpoints, oldest first."""
        return list(self._kept)

    def save(
        self,
        checkpoint_number: Any = None,
        check_interval: bool = True,
        options: CheckpointOptions | None = None,
    ) -> str | None:
        """Saves a checkpoint. Returns its path, or `None` if `checkpoint_interval` has not passed.

        It is recorded as the latest before old ones are deleted. Checkpoints that another process
        saved with the same directory and name are managed as well.
        """
        step = None if self._step_counter is None else int(self._step_counter)
        if self._interval is not None and self._last_step is not None:
            due = self._last_step + (self._interval if check_interval else 1)
            if step < due:
                return None
        number = (
            None if checkpoint_number is None else as_int(checkpoint_number, "checkpoint_number")
        )
        with tensorflow_errors(self._directory):
            os.makedirs(self._directory, exist_ok=True)
        with lock_directory(self._directory):
            path = self._checkpoint._write_next(self._prefix, number)
            self._add(path)
        self._last_step = step
        run_callbacks(options, path)
        return path

    def _add(self, path: str) -> None:
        """Records a new checkpoint and deletes old ones."""
        with contextlib.suppress(DataLossError):  # the state file is replaced below
            state = get_checkpoint_state(self._directory)
            others = {} if state is None else self._managed_checkpoints(state)
            known = sorted((others | self._kept).items(), key=lambda item: item[1])
            self._kept = {path: time for path, time in known if os.path.exists(file_of(path))}
        self._latest = path
        self._kept.pop(path, None)
        self._kept[path] = time.time()
        self._record()
        if self._delete_old():
            self._record()

    def _record(self) -> None:
        update_state(
            self._directory,
            self._latest,
            [*self._kept],
            [*self._kept.values()],
            self._last_preserved,
        )

    def _delete_old(self) -> bool:
        """Deletes old checkpoints. Returns whether there were any."""
        before = len(self._kept)
        while self._max_to_keep is not None and len(self._kept) > self._max_to_keep:
            path = next(iter(self._kept))
            saved_at = self._kept.pop(path)
            if self._every is not None and saved_at - self._every * 3600 >= self._last_preserved:
                self._last_preserved = saved_at
                continue
            with contextlib.suppress(FileNotFoundError):
                os.remove(file_of(path))
        return len(self._kept) < before

    def restore_or_initialize(self) -> str | None:
        """Restores the latest checkpoint and returns its path.

        If there is none, it calls `init_fn` and returns `None`.
        """
        if self._latest is None:
            if self._init_fn is not None:
                self._init_fn()
            return None
        self._checkpoint.restore(self._latest)
        if self._interval is not None:
            self._last_step = int(self._step_counter)
        return self._latest

    def sync(self) -> None:
        """Does nothing: `save` returns after the file is on disk."""
