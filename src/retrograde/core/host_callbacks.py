"""Host callbacks: Python code on arrays, which a replayed function has to run again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from retrograde.core.recorders import thread
from retrograde.core.tensor import Tensor, wrap
from retrograde.values.errors import allocate

NUMPY_CALL = "numpy call"  # how a value leaves for a call that a replay will repeat


class Recipe(NamedTuple):
    """How to make a `Host`: `HOST_BUILDERS[maker](function, values)` of `ops/host_functions.py`."""

    maker: str
    function: str
    values: Any


class Host:
    """A Python function that stands in a recording where a primitive would.

    `f(*arrays)` returns an array, or a tuple of them with `outputs`. If it is not `pure`, it gives
    something new each time, or does something: a replay calls it exactly once, in its turn, even if
    nothing uses its result. `draws` says that it only takes the next place in a stream of
    random numbers. No gradient flows through it. One that has a `recipe` can be made again of plain
    data, in another process.
    """

    __slots__ = ("draws", "f", "name", "outputs", "pure", "recipe")

    def __init__(
        self,
        name: str,
        f: Callable,
        *,
        pure: bool,
        outputs: bool = False,
        draws: bool = False,
        recipe: Recipe | None = None,
    ) -> None:
        self.name = name
        self.f = f
        self.pure = pure
        self.outputs = outputs
        self.draws = draws
        self.recipe = recipe

    def run(self, arrays: Sequence[Any], _attrs: dict) -> Any:
        """Calls the function on arrays."""
        return self.f(*arrays)

    def __repr__(self) -> str:
        return f"<host {self.name}>"


def perform(host: Host, inputs: tuple[Tensor, ...] = ()) -> Any:
    """Runs `host` on tensors. A function that is being recorded takes note of it."""
    recording = thread.recorders.recording
    if recording is not None:
        return allocate(host.name, recording.perform, host, inputs)
    return wrapped(host, allocate(host.name, host.f, *[x._array for x in inputs]))


def wrapped(host: Host, value: Any) -> Any:
    """What `host` returned, as a tensor or a tuple of them."""
    return tuple([Tensor(v) for v in value]) if host.outputs else wrap(value)
