"""Batching: runs code that was written for one example on many examples at once."""

from __future__ import annotations

import contextlib
import itertools
import math
import threading
from collections.abc import Iterable, Iterator
from typing import Any, NoReturn

from retrograde.core import namespaces
from retrograde.core.recorders import Recorder, Recorders, notify, thread
from retrograde.core.tensor import Tensor, wrap
from retrograde.values.errors import UnimplementedError

_next_depth = itertools.count(1).__next__


class CannotBatch(UnimplementedError):
    """Raised if Python needs a value that differs between the examples of a batch."""

    def __init__(self, message: str) -> None:
        super().__init__(None, None, message)


class Level:
    """A batch: its number of examples, and the recorders that were active when it began.

    Levels nest. An inner level has a greater depth.
    """

    __slots__ = ("depth", "outer", "size")

    def __init__(self, size: int, outer: list[Recorder]) -> None:
        self.size = size
        self.outer = outer
        self.depth = _next_depth()


class Batched:
    """Holds all examples in place of an array, and has the shape and dtype of one example.

    `value` has the examples along its first axis. It is an array, or a Tensor while a recorder
    outside of the batch is active, which then observes the work on all examples. Operators are
    bound in `retrograde.ops.operators`.
    """

    __slots__ = ("dtype", "level", "shape", "value")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, value: Any, level: Level) -> None:
        array = value._array if isinstance(value, Tensor) else value
        self.value = value
        self.level = level
        self.shape = array.shape[1:]
        self.dtype = array.dtype

    @property
    def ndim(self) -> int:
        """The number of axes that one example has."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements that one example has."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """The bytes that all examples take."""
        array = self.value._array if isinstance(self.value, Tensor) else self.value
        return array.nbytes

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        self._refuse()

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise CannotBatch(
            f"A value of shape {self.shape} differs between the examples of a batch, so it cannot "
            "be converted to Python or NumPy. Use tf operations, or tf.map_fn."
        )

    __array__ = __array_function__ = __bool__ = __int__ = __float__ = __complex__ = _refuse
    __index__ = __iter__ = __len__ = __format__ = _refuse

    def __repr__(self) -> str:
        return f"<{self.level.size} examples of shape {self.shape}, {self.dtype}>"


@contextlib.contextmanager
def batching(size: int) -> Iterator[Level]:
    """Starts a level in which arrays of `size` examples can be `Batched`."""
    with namespaces.allow_batches():
        yield Level(size, list(thread.recorders))


class _Maps(threading.local):
    levels: tuple[Level, ...] = ()


_maps = _Maps()


@contextlib.contextmanager
def mapping(size: int) -> Iterator[Level]:
    """Starts a level in which each example draws its own random numbers."""
    before = _maps.levels
    with batching(size) as level:
        _maps.levels = (*before, level)
        try:
            yield level
        finally:
            _maps.levels = before


def mapped() -> tuple[Level, ...]:
    """Returns the levels of `mapping` in this thread, outermost first."""
    return _maps.levels


@contextlib.contextmanager
def reenter(level: Level) -> Iterator[None]:
    """Continues with `level` in a `with` block. The active recorders are outside of it."""
    before = level.outer
    level.outer = [*before, *thread.recorders]
    try:
        with namespaces.allow_batches():
            yield
    finally:
        level.outer = before


def innermost(arrays: Iterable[Any]) -> Level | None:
    """Returns the innermost level that any of `arrays` belongs to."""
    level = None
    for array in arrays:
        if type(array) is Batched and (level is None or array.level.depth > level.depth):
            level = array.level
    return level


def run_batch(level: Level, primitive: Any, inputs: Iterable[Any], attrs: dict) -> Any:
    """Returns the result of the batch rule of `primitive`, as `Batched` values of `level`."""
    if primitive.batch is None:
        raise CannotBatch(f"{primitive.name} cannot run on a batch of examples.")
    flags, values = [], []
    for x in inputs:
        array = x._array if isinstance(x, Tensor) else x
        batched = type(array) is Batched and array.level is level
        flags.append(batched)
        values.append(array.value if batched else x)
    y = primitive.batch(tuple(flags), *values, **attrs)
    return tuple([Batched(part, level) for part in y]) if primitive.outputs else Batched(y, level)


def apply_batch(level: Level, primitive: Any, inputs: tuple, attrs: dict) -> Any:
    """Applies a primitive to tensors some of which are batched.

    Recorders that were active before the batch began observe the call on all examples. Later ones
    observe the call on one example.
    """
    recorders = thread.recorders
    outer = [recorder for recorder in recorders if recorder in level.outer]
    values = inputs if outer else [x._array for x in inputs]
    thread.recorders = Recorders(outer, recorders.quietly, recorders.backward_pass)
    try:
        if outer:
            value = run_batch(level, primitive, values, attrs)
        else:
            value = recorders.quietly(run_batch, level, primitive, values, attrs)
    finally:
        thread.recorders = recorders
    y = tuple(map(wrap, value)) if primitive.outputs else wrap(value)
    notify([r for r in recorders if r not in outer], primitive, inputs, attrs, y)
    return y


def examples_of(x: Any, level: Level, broadcast_to: Any) -> Any:
    """Returns the examples of `x` at `level` along a first axis, broadcast if `x` is not batched.

    The result is a tensor if `x` is one, else an array.
    """
    array = x._array if isinstance(x, Tensor) else x
    if type(array) is Batched and array.level is level:
        return array.value
    return broadcast_to(x, shape=(level.size, *array.shape))
