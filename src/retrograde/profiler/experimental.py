"""tf.profiler.experimental: records when operations ran, for TensorBoard's profile plugin.

Python's profiling hook observes the calls, so a program that is not profiled pays nothing. XLA runs
a compiled function in one call; `jax.profiler` shows the operations inside it.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
import time
from collections.abc import Callable
from types import CodeType, FrameType, TracebackType
from typing import Any, NamedTuple

from retrograde._api.lazy import from_all
from retrograde.core.apply import apply
from retrograde.core.tape import GradientTape
from retrograde.files.atomic import write_bytes
from retrograde.profiler.xplane import Event, encode_space
from retrograde.program.function import Function
from retrograde.values.errors import AlreadyExistsError, UnavailableError

__all__ = ["Profile", "ProfilerOptions", "Trace", "start", "stop"]

__path__: list[str] = []  # allows imports of submodules, as in TensorFlow
__getattr__, __dir__ = from_all(__name__)


class ProfilerOptions(NamedTuple):
    """Says what is recorded.

    With a `host_tracer_level` of 1, these are the blocks of `Trace`; with 2, also operations,
    functions and gradients. With a `python_tracer_level` of 1, all Python functions are recorded.
    The other options have no effect.
    """

    host_tracer_level: int = 2
    python_tracer_level: int = 0
    device_tracer_level: int = 1
    delay_ms: int | None = None


# The functions that are recorded, and the name of each call.
_NAMES: dict[CodeType, Callable[[FrameType], str]] = {
    apply.__code__: lambda frame: frame.f_locals["primitive"].name,
    Function.__call__.__code__: lambda frame: frame.f_locals["self"]._name,
    GradientTape.gradient.__code__: lambda _frame: "GradientTape.gradient",
}


class _Session:
    """Records events of all threads until it is stopped."""

    def __init__(self, logdir: Any, options: ProfilerOptions) -> None:
        self.directory = os.fspath(logdir)
        self.options = options
        self.begin = time.time_ns()
        self._clock = time.perf_counter_ns()
        self.events: dict[tuple[int, str], list[Event]] = {}
        if options.python_tracer_level or options.host_tracer_level > 1:
            self._observe()

    def now(self) -> int:
        """Returns the nanoseconds since the session began."""
        return time.perf_counter_ns() - self._clock

    def _observe(self) -> None:
        names = _NAMES if self.options.host_tracer_level > 1 else {}
        records_all = bool(self.options.python_tracer_level)
        open_calls: dict[int, tuple[str, int]] = {}  # name and start, by frame

        def hook(frame: FrameType, event: str, _argument: Any) -> None:
            if event == "call":
                name = names.get(frame.f_code)
                if name is not None:
                    open_calls[id(frame)] = name(frame), self.now()
                elif records_all:
                    open_calls[id(frame)] = frame.f_code.co_qualname, self.now()
            elif event == "return" and (call := open_calls.pop(id(frame), None)) is not None:
                self.add(Event(call[0], call[1], self.now() - call[1], {}))

        threading.setprofile(hook)
        sys.setprofile(hook)

    def add(self, event: Event) -> None:
        """Adds an event of this thread."""
        thread = threading.current_thread()
        self.events.setdefault((thread.native_id or 0, thread.name), []).append(event)

    def finish(self) -> None:
        """Stops recording."""
        threading.setprofile(None)
        sys.setprofile(None)

    def save(self) -> None:
        """Writes the events to the directory where TensorBoard looks for profiles."""
        run = time.strftime("%Y_%m_%d_%H_%M_%S", time.localtime(self.begin / 1e9))
        folder = os.path.join(self.directory, "plugins", "profile", run)
        os.makedirs(folder, exist_ok=True)
        host = socket.gethostname()
        path = os.path.join(folder, f"{host}.xplane.pb")
        write_bytes(path, encode_space(host, self.begin, self.events))


_session: _Session | None = None


def start(logdir: Any, options: ProfilerOptions | None = None) -> None:
    """Starts to record a profile. `stop` writes it to `logdir`.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as logdir:
    ...     tf.profiler.experimental.start(logdir)
    ...     y = tf.linalg.matmul(tf.ones([2, 2]), tf.ones([2, 2]))
    ...     tf.profiler.experimental.stop()
    ...     tf.io.gfile.listdir(logdir)
    ['plugins']
    """
    global _session
    if _session is not None:
        raise AlreadyExistsError(None, None, "Another profiler is running.")
    _session = _Session(logdir, ProfilerOptions() if options is None else options)


def stop(save: bool = True) -> None:
    """Stops the profile and writes it, unless `save` is false."""
    global _session
    if _session is None:
        message = "Cannot export profiling results. No profiler is running."
        raise UnavailableError(None, None, message)
    session, _session = _session, None
    session.finish()
    if save:
        session.save()


class Profile:
    """Records a profile in a `with` block.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as logdir, tf.profiler.experimental.Profile(logdir):
    ...     y = tf.sin(1.0)
    """

    def __init__(self, logdir: Any, options: ProfilerOptions | None = None) -> None:
        self._logdir = logdir
        self._options = options

    def __enter__(self) -> None:
        start(self._logdir, self._options)

    def __exit__(self, *_: object) -> None:
        stop()


class Trace:
    """Records a `with` block as an event, with metadata such as `step_num`.

    It does nothing if no profile is being recorded.

    >>> with tf.profiler.experimental.Trace("train", step_num=1, _r=1):
    ...     y = tf.sin(1.0)
    """

    def __init__(self, name: str, **kwargs: Any) -> None:
        self._name = name
        self._metadata = kwargs
        self._start: int | None = None

    def set_metadata(self, **kwargs: Any) -> None:
        """Adds metadata to the event."""
        self._metadata |= kwargs

    def __enter__(self) -> Trace:
        if _session is not None and _session.options.host_tracer_level:
            self._start = _session.now()
        return self

    def __exit__(
        self, _kind: type | None, _error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        if _session is not None and self._start is not None:
            duration = _session.now() - self._start
            _session.add(Event(self._name, self._start, duration, self._metadata))
