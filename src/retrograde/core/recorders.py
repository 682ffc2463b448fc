"""Recorders, which observe finished calls: a stack of them for each thread."""

from __future__ import annotations

import contextlib
import contextvars
import itertools
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from retrograde.core.floating_point_flags import flags, set_flag


class Recorder:
    """Observes finished calls and changes nothing.

    `record` is called for every applied primitive; `read`, for every variable that a call reads;
    `escape`, for every value that is converted to Python or NumPy, where it can no longer be
    followed; `store`, for every value that is assigned to a variable, which ends its path as well;
    `create`, for every new variable. One that `records_functions` traces a call of a `function`.
    One that `defers` does not look at the arrays of the calls that it observes.
    """

    __slots__ = ()

    records_functions = False
    defers = False

    def record(self, primitive: Any, inputs: tuple, attrs: dict, y: Any) -> None:
        """Observes that `primitive` computed `y`, a tensor or a tuple of them, from `inputs`."""

    def read(self, variable: Any) -> None:
        """Observes that the value of `variable` is about to be used."""

    def escape(self, tensor: Any, how: str) -> None:
        """Observes that the value of `tensor` leaves by `bool`, `numpy`, `assign` and the like."""

    def store(self, variable: Any, tensor: Any) -> None:
        """Observes that the value of `tensor` is about to be assigned to `variable` or a part."""

    def create(self, variable: Any) -> None:
        """Observes that `variable` was created."""


def quiet_context(on_flag: Callable[[str, int], Any] = set_flag) -> contextvars.Context:
    """Returns a context in which NumPy computes inf and nan without warnings, as TensorFlow does.

    NumPy calls `on_flag` if a kernel produces one from other numbers.
    """
    context = contextvars.Context()
    context.run(np.seterr, divide="call", over="call", invalid="call", under="ignore")
    context.run(np.seterrcall, on_flag)
    return context


class Recorders(list):
    """The recorders of one thread, outermost first.

    `quietly(f, *args)` calls `f` where NumPy does not warn. `backward_pass`, if it is not `None`,
    replaces the backward pass over a tape, to check each step of it. `recording` is the recorder of
    the `function` that is being traced, always the outermost. They are here so that an operation
    finds all that it needs of its thread in one lookup.
    """

    __slots__ = ("backward_pass", "quietly", "recording")

    def __init__(
        self,
        recorders: Iterable[Recorder] = (),
        quietly: Callable | None = None,
        backward_pass: Callable | None = None,
    ) -> None:
        super().__init__(recorders)
        self.quietly: Callable = quietly or quiet_context().run
        self.backward_pass = backward_pass
        self.recording = self[0] if self and self[0].records_functions else None


# The newest threads that computed something: their names, and the time of their first lookup here.
threads: deque[tuple[str, int]] = deque(maxlen=256)

# Ids are given in order, so they tell the time: what has a smaller one was made before.
clock = itertools.count(1)
next_id = clock.__next__


class _Thread(threading.local):
    def __init__(self) -> None:
        self.recorders = Recorders()
        self.flags = flags()
        threads.append((threading.current_thread().name, next_id()))


thread = _Thread()


def changes(tensor: Any) -> bool:
    """Whether a `function` is being traced in whose other calls `tensor` may differ."""
    recording = thread.recorders.recording
    return recording is not None and recording.changes(tensor)


def notify(
    recorders: Iterable[Recorder], primitive: Any, inputs: tuple, attrs: dict, y: Any
) -> None:
    """Notifies `recorders` of a call that has been computed."""
    for recorder in recorders:
        recorder.record(primitive, inputs, attrs, y)


def escape(tensor: Any, how: str) -> None:
    """Notifies the recorders that the value of `tensor` leaves. Values of a batch refuse to."""
    for recorder in thread.recorders:
        recorder.escape(tensor, how)
    refuse = getattr(tensor._array, "_refuse", None)
    if refuse is not None:
        refuse()


@contextlib.contextmanager
def listening(recorders: Iterable[Recorder]) -> Iterator[None]:
    """Replaces the recorders of this thread for the duration of a block.

    The recorder of a `function` that is being traced stays: it observes everything.
    """
    before = thread.recorders
    recorders = list(recorders)
    if before.recording is not None and before.recording not in recorders:
        recorders.insert(0, before.recording)
    thread.recorders = Recorders(recorders, before.quietly, before.backward_pass)
    try:
        yield
    finally:
        thread.recorders = before


@contextlib.contextmanager
def alone(recorder: Recorder | None = None) -> Iterator[None]:
    """Makes `recorder` the only recorder of this thread for the duration of a block."""
    before = thread.recorders
    thread.recorders = Recorders([] if recorder is None else [recorder], before.quietly)
    try:
        yield
    finally:
        thread.recorders = before
