"""Effects: Python code on arrays, which a replayed function has to run again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from retrograde.core.recorders import thread
from retrograde.core.tensor import Tensor, wrap


class Host:
    """A Python function that stands in a recording where a primitive would.

    `f(*arrays)` returns an array, or a tuple of them with `outputs`. If it is not `pure`, it gives
    something new each time, or does something: a replay calls it exactly once, in its turn, even if
    nobody uses what it returns. No gradient flows through it.
    """

    __slots__ = ("f", "name", "outputs", "pure")

    def __init__(self, name: str, f: Callable, *, pure: bool, outputs: bool = False) -> None:
        self.name = name
        self.f = f
        self.pure = pure
        self.outputs = outputs

    def __repr__(self) -> str:
        return f"<host {self.name}>"


def perform(host: Host, inputs: tuple[Tensor, ...] = ()) -> Any:
    """Runs `host` on tensors. A function that is being recorded takes note of it."""
    recording = thread.recorders.recording
    if recording is not None:
        return recording.perform(host, inputs)
    return wrapped(host, host.f(*[x._array for x in inputs]))


def wrapped(host: Host, value: Any) -> Any:
    """What `host` returned, as a tensor or a tuple of them."""
    return tuple([Tensor(v) for v in value]) if host.outputs else wrap(value)
