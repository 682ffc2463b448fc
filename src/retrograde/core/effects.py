"""Effects: Python code on arrays, which a replayed function has to run again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from retrograde.core.errors import allocated
from retrograde.core.recorders import thread
from retrograde.core.tensor import Tensor, wrap

NUMPY_CALL = "numpy call"  # how a value leaves for a call that a recording will repeat


class Recipe(NamedTuple):
    """How to make a `Host`: `MAKERS[maker](function, values)`, the function being a `known` one."""

    maker: str
    function: str
    values: Any


MAKERS: dict[str, Callable[[Callable, Any], Host]] = {}
KNOWN: dict[str, Callable] = {}  # functions of this library that a recipe may name


def known(function: Callable) -> Callable:
    """Lets recipes name `function`, which stands in a module of this library."""
    KNOWN[name_of(function)] = function
    return function


def name_of(function: Callable) -> str:
    """The name by which a recipe knows `function`."""
    return f"{function.__module__}.{function.__qualname__}"


class Host:
    """A Python function that stands in a recording where a primitive would.

    `f(*arrays)` returns an array, or a tuple of them with `outputs`. If it is not `pure`, it gives
    something new each time, or does something: a replay calls it exactly once, in its turn, even if
    nobody uses what it returns. `draws` says that it only takes the next place in a stream of
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

    def __repr__(self) -> str:
        return f"<host {self.name}>"


def perform(host: Host, inputs: tuple[Tensor, ...] = ()) -> Any:
    """Runs `host` on tensors. A function that is being recorded takes note of it."""
    recording = thread.recorders.recording
    if recording is not None:
        return allocated(host.name, recording.perform, host, inputs)
    return wrapped(host, allocated(host.name, host.f, *[x._array for x in inputs]))


def wrapped(host: Host, value: Any) -> Any:
    """What `host` returned, as a tensor or a tuple of them."""
    return tuple([Tensor(v) for v in value]) if host.outputs else wrap(value)


class Answer(NamedTuple):
    """What Python code gave: arrays, or `None`; what they mean; something to be kept with them."""

    arrays: list
    meaning: str = ""
    kept: Any = None


def boxed(value: Any) -> np.ndarray:
    """A Python object as an array without axes."""
    box = np.empty((), object)
    box[()] = value
    return box


def fresh(name: str, f: Callable, inputs: tuple[Tensor, ...] = ()) -> tuple[list, Tensor]:
    """What `f(*arrays)`, an `Answer`, holds for this call of a function and each one that follows.

    The arrays come as tensors, with a tensor that holds the answer itself. A call in which they
    have other shapes, dtypes or another meaning is another recording.
    """

    def described(*arrays: Any) -> tuple:
        answer = f(*arrays)
        shapes = [None if x is None else (x.shape, x.dtype.str) for x in answer.arrays]
        return boxed(f"{shapes} {answer.meaning}".encode()), boxed(answer)

    description, box = perform(Host(name, described, pure=False, outputs=True), inputs)
    np.asarray(description)  # is heard, and so becomes a guard
    arrays = box._array.item().arrays
    parts = iter(perform(Host("parts", _parts, pure=True, outputs=True), (box,)))
    return [None if x is None else next(parts) for x in arrays], box


def _parts(box: np.ndarray) -> tuple:
    return tuple([x for x in box.item().arrays if x is not None])
