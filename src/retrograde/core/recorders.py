"""Recorders observe finished calls. Each thread has a stack of them."""

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
    followed; `store`, for every value that is assigned to a variable, where its path ends as well;
    `create`, for every new variable. A recorder with `records_functions` traces a `function`. A
    recorder with `defers` does not read the arrays of the calls that it observes.
    """

    __slots__ = ()

    records_functions = False
    defers = False

    def record(self, primitive: Any, inputs: tuple, attrs: dict, y: Any) -> None:
        """Observes that `primitive` computed `y`, a tensor or a tuple of them, from `inputs`."""

    def read(self, variable: Any) -> None:
        """Observes that the value of `variable` is about to be used."""

    def escape(self, tensor: Any, how: str) -> None:
        """Observes that `bool`, `numpy`, `assign` or the like reads the value of `tensor`."""

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
    replaces the backward pass over a tape, to check each step of it. `tracer` traces the current
    `function` and is always the outermost recorder. An operation finds all state of its thread here
    in one lookup.
    """

    __slots__ = ("backward_pass", "quietly", "tracer")

    def __init__(
        self,
        recorders: Iterable[Recorder] = (),
        quietly: Callable | None = None,
        backward_pass: Callable | None = None,
    ) -> None:
        super().__init__(recorders)
        self.quietly: Callable = quietly or quiet_context().run
        self.backward_pass = backward_pass
        self.tracer = self[0] if self and self[0].records_functions else None


# The names of the newest threads that ran operations, and the time of their first operation.
threads: deque[tuple[str, int]] = deque(maxlen=256)

# Ids increase, so they also order events in time: a tensor with a smaller id was created earlier.
clock = itertools.count(1)
next_id = clock.__next__


class _Thread(threading.local):
    def __init__(self) -> None:
        self.recorders = Recorders()
        self.flags = flags()
        threads.append((threading.current_thread().name, next_id()))


thread = _Thread()


def changes(tensor: Any) -> bool:
    """Returns whether a function is being traced and `tensor` may differ in its other calls."""
    tracer = thread.recorders.tracer
    return tracer is not None and tracer.changes(tensor)


def symbolic_name(tensor: Any) -> str | None:
    """Returns the name of `tensor` in the function that is being traced, or in shape inference.

    Returns `None` elsewhere, and for tensors that are the same in all calls.
    """
    tracer = thread.recorders.tracer
    name = getattr(tensor._spec, "symbolic_name", None)
    return name if name is not None or tracer is None else tracer.name_of(tensor)


def notify(
    recorders: Iterable[Recorder], primitive: Any, inputs: tuple, attrs: dict, y: Any
) -> None:
    """Notifies `recorders` of a call that has been computed."""
    for recorder in recorders:
        recorder.record(primitive, inputs, attrs, y)


def escape(tensor: Any, how: str) -> None:
    """Notifies the recorders that Python or NumPy reads the value of `tensor`.

    Raises `CannotBatch` for a value that differs between the examples of a batch.
    """
    for recorder in thread.recorders:
        recorder.escape(tensor, how)
    refuse = getattr(tensor._spec, "_refuse", None)
    if refuse is not None:
        refuse()


@contextlib.contextmanager
def use_recorders(recorders: Iterable[Recorder]) -> Iterator[None]:
    """Replaces the recorders of this thread in a `with` block.

    The tracer of a `function` stays, because it observes everything.
    """
    before = thread.recorders
    recorders = list(recorders)
    if before.tracer is not None and before.tracer not in recorders:
        recorders.insert(0, before.tracer)
    thread.recorders = Recorders(recorders, before.quietly, before.backward_pass)
    try:
        yield
    finally:
        thread.recorders = before


@contextlib.contextmanager
def isolate(recorder: Recorder | None = None) -> Iterator[None]:
    """Makes `recorder` the only recorder of this thread in a `with` block."""
    before = thread.recorders
    thread.recorders = Recorders([] if recorder is None else [recorder], before.quietly)
    try:
        yield
    finally:
        thread.recorders = before
