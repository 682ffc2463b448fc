"""Summary writers and the active writer of each thread."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from retrograde.core.tensor import Tensor
from retrograde.ops.arguments import integer
from retrograde.ops.conversion import as_tensor
from retrograde.summary import _events
from retrograde.values.arguments import expect

_BOOL, _INT64 = np.dtype(bool), np.dtype(np.int64)


class _Thread(threading.local):
    """The active writer, step and condition of a thread."""

    writer: SummaryWriter | None = None
    step: Any = None
    condition: Any = True


thread = _Thread()


class SummaryWriter:
    """Writes summaries. `tf.summary.create_file_writer` creates one."""

    _closed = False

    def set_as_default(self, step: Any = None) -> None:
        """Makes this the active writer of the thread, with the default `step` if given."""
        self._check_open()
        thread.writer = self
        if step is not None:
            thread.step = step

    @contextlib.contextmanager
    def as_default(self, step: Any = None) -> Iterator[SummaryWriter]:
        """Makes this the active writer in a block, with the default `step` if given."""
        self._check_open()
        previous = thread.writer, thread.step
        thread.writer = self
        if step is not None:
            thread.step = step
        try:
            yield self
        finally:
            self.flush()
            thread.writer = previous[0]
            if step is not None:
                thread.step = previous[1]

    def _check_open(self) -> None:
        if self._closed:
            raise RuntimeError(f"SummaryWriter {self!r} is already closed")

    def init(self) -> None:
        """Does nothing: writers need no initialization."""

    def flush(self) -> None:
        """Writes all pending summaries."""

    def close(self) -> None:
        """Flushes and closes the writer."""
        self._closed = True

    def _append(self, step: int, content: bytes) -> None:
        raise NotImplementedError


class _FileWriter(SummaryWriter):
    def __init__(self, file: _events.EventFile) -> None:
        self._file = file

    def flush(self) -> None:
        """Writes all pending summaries to the file."""
        if not self._closed:
            self._file.flush()

    def close(self) -> None:
        """Flushes and closes the file."""
        self._closed = True
        self._file.close()

    def _append(self, step: int, content: bytes) -> None:
        if not self._closed:
            self._file.append(_events.event(time.time(), step, content))


class _NoopWriter(SummaryWriter):
    """A writer that ignores all summaries."""


def create_file_writer(
    logdir: Any,
    max_queue: Any = None,
    flush_millis: Any = None,
    filename_suffix: Any = None,
    name: str | None = None,
    experimental_trackable: bool = False,
    experimental_mesh: Any = None,
) -> SummaryWriter:
    """Creates a writer to a new event file in `logdir`.

    Summaries are flushed to the file after `max_queue` summaries (default 10), after
    `flush_millis` milliseconds (default two minutes), at the end of each `as_default` block, and
    by `flush`.

    >>> import tempfile
    >>> logs = tempfile.mkdtemp()
    >>> writer = tf.summary.create_file_writer(logs)
    >>> with writer.as_default():
    ...     for step in range(3):
    ...         _ = tf.summary.scalar("loss", 1.0 / (step + 1), step=step)
    """
    if logdir is None:
        raise ValueError("Argument `logdir` cannot be None")
    if isinstance(logdir, Tensor):
        logdir = expect(logdir.numpy(), bytes, "create_file_writer", "a path").decode()
    directory = os.fspath(logdir)
    queue = 10 if max_queue is None else integer(max_queue, "max_queue")
    millis = 120_000 if flush_millis is None else integer(flush_millis, "flush_millis")
    suffix = ".v2" if filename_suffix is None else str(filename_suffix)
    return _FileWriter(_events.EventFile(directory, queue, millis / 1000, suffix))


def create_noop_writer() -> SummaryWriter:
    """Creates a writer that ignores all summaries."""
    return _NoopWriter()


def flush(writer: SummaryWriter | None = None, name: str | None = None) -> None:
    """Flushes `writer`, or the active writer."""
    writer = thread.writer if writer is None else writer
    if writer is not None:
        expect(writer, SummaryWriter, "flush", "a SummaryWriter").flush()


@contextlib.contextmanager
def record_if(condition: Any) -> Iterator[None]:
    """Writes the summaries of a block only if `condition` is true.

    `condition` is a boolean, a tensor, or a function that is called for each summary.
    """
    previous = thread.condition
    thread.condition = condition
    try:
        yield
    finally:
        thread.condition = previous


def should_record_summaries() -> Tensor:
    """Returns whether summaries are currently written."""
    if thread.writer is None or isinstance(thread.writer, _NoopWriter) or thread.writer._closed:
        return as_tensor(False)
    condition: Callable | Any = thread.condition
    return as_tensor(condition() if callable(condition) else condition, _BOOL)


def current_step(step: Any) -> Tensor:
    """Returns `step`, or the default step if it is `None`."""
    step = thread.step if step is None else step
    if step is None:
        raise ValueError(
            "No step set. Please specify one either through the `step` argument or through "
            "tf.summary.experimental.set_step()"
        )
    return as_tensor(step, _INT64)
