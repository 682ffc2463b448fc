"""Who listens: a stack of recorders for each thread."""

from __future__ import annotations

import contextlib
import contextvars
import itertools
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from retrograde.core.floating_point_flags import set_flag


class Recorder:
    """Watches finished calls and changes nothing.

    `record` hears every applied primitive; `read`, every variable that a call reads; `escape`,
    every value that leaves for Python or NumPy, where it can no longer be followed; `store`, every
    value that is put into a variable, which is such a way out as well; `create`, every new
    variable. One that `records_functions` writes down all that happens in a call of a `function`,
    to do it again. One that `defers` does not look at the arrays that it hears of.
    """

    __slots__ = ()

    records_functions = False
    defers = False

    def record(self, primitive: Any, inputs: tuple, attrs: dict, y: Any) -> None:
        """Hears that `primitive` made `y`, a tensor or a tuple of them, out of `inputs`."""

    def read(self, variable: Any) -> None:
        """Hears that the value of `variable` is about to be used."""

    def escape(self, tensor: Any, how: str) -> None:
        """Hears that the value of `tensor` leaves, by `bool`, `numpy`, `assign` and the like."""

    def store(self, variable: Any, tensor: Any) -> None:
        """Hears that the value of `tensor` is about to be assigned to `variable`, or to a part."""

    def create(self, variable: Any) -> None:
        """Hears that `variable` was made."""


def quiet_context(on_flag: Callable[[str, int], Any] = set_flag) -> contextvars.Context:
    """A context in which NumPy computes inf and nan without warnings, as TensorFlow does.

    NumPy calls `on_flag` if a kernel produces one from other numbers.
    """
    context = contextvars.Context()
    context.run(np.seterr, divide="call", over="call", invalid="call", under="ignore")
    context.run(np.seterrcall, on_flag)
    return context


class Recorders(list):
    """The recorders of one thread, outermost first.

    `quietly(f, *args)` calls `f` where NumPy does not warn. `walk`, if there is one, takes the
    place of the walk back over a tape, to look at each step of it. `recording` is the recorder of
    the `function` whose first call this is, if it is one: always the outermost. They live here so
    that an operation finds all it needs of its thread in one look.
    """

    __slots__ = ("quietly", "recording", "walk")

    def __init__(
        self,
        recorders: Iterable[Recorder] = (),
        quietly: Callable | None = None,
        walk: Callable | None = None,
    ) -> None:
        super().__init__(recorders)
        self.quietly = quietly or quiet_context().run
        self.walk = walk
        self.recording = self[0] if self and self[0].records_functions else None


# The newest threads that computed something: their names, and the time of their first look here.
threads: deque[tuple[str, int]] = deque(maxlen=256)

# Ids are given in order, so they tell the time: what has a smaller one was made before.
clock = itertools.count(1)
next_id = clock.__next__


class _Thread(threading.local):
    def __init__(self) -> None:
        self.recorders = Recorders()
        threads.append((threading.current_thread().name, next_id()))


thread = _Thread()


def changes(tensor: Any) -> bool:
    """Whether a `function` is being recorded, in other calls of which `tensor` may be another."""
    recording = thread.recorders.recording
    return recording is not None and recording.changes(tensor)


def notify(
    recorders: Iterable[Recorder], primitive: Any, inputs: tuple, attrs: dict, y: Any
) -> None:
    """Tells `recorders` of a call that has been computed. `apply` does so inline."""
    for recorder in recorders:
        recorder.record(primitive, inputs, attrs, y)


def escape(tensor: Any, how: str) -> None:
    """Tells the recorders that the value of `tensor` leaves. Those of a batch refuse to."""
    for recorder in thread.recorders:
        recorder.escape(tensor, how)
    refuse = getattr(tensor._array, "_refuse", None)
    if refuse is not None:
        refuse()


@contextlib.contextmanager
def listening(recorders: Iterable[Recorder]) -> Iterator[None]:
    """Puts `recorders` in the place of this thread's own for the time of a block.

    A `function` that is being recorded goes on to hear all that happens.
    """
    before = thread.recorders
    recorders = list(recorders)
    if before.recording is not None and before.recording not in recorders:
        recorders.insert(0, before.recording)
    thread.recorders = Recorders(recorders, before.quietly, before.walk)
    try:
        yield
    finally:
        thread.recorders = before


@contextlib.contextmanager
def alone(recorder: Recorder | None = None) -> Iterator[None]:
    """A block in which nobody listens but `recorder`."""
    before = thread.recorders
    thread.recorders = Recorders([] if recorder is None else [recorder], before.quietly)
    try:
        yield
    finally:
        thread.recorders = before
