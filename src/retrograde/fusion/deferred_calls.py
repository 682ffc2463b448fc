"""Groups of deferred calls on large arrays, which run together when a result is read.

Only the arithmetic is deferred. Shapes, dtypes and errors are known immediately, and tapes record
the call right away. Arrays are immutable, so it does not matter when values are computed.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from retrograde.core import floating_point_flags
from retrograde.core.lazy import LazyTensor, Materializer, waiting
from retrograde.core.program import Call
from retrograde.core.recorders import next_id
from retrograde.core.rules import Spec
from retrograde.core.tensor import Tensor
from retrograde.values.errors import allocate
from retrograde.values.locks import fork_safe_lock
from retrograde.values.thresholds import MAX_DEFERRED_ARRAYS, MAX_DEFERRED_BYTES, MAX_DEFERRED_CALLS

_new = object.__new__


class Deferred(Materializer):
    """A deferred value, which is computed with the others of its group: see `DeferredCalls`."""

    __slots__ = ("dtype", "group", "ndim", "number", "shape")

    group: DeferredCalls
    number: int
    ndim: int

    def materialize(self, tensor: LazyTensor) -> Any:
        """Computes the group of `tensor`, which becomes an ordinary Tensor."""
        self.group.compute()
        return tensor._spec


class DeferredCalls:
    """A group of calls of one thread, on arrays of one shape and dtype, that will run together.

    Its results keep it alive. Values are numbered: `values` are the input arrays,
    `specs` describe results, and `tensors` are the results that are still referenced.
    `run(group, numbers)` computes some of them.
    """

    def __init__(self, spec: Spec, run: Callable[[DeferredCalls, tuple], Sequence[Any]]) -> None:
        self.spec = spec
        self.calls: list[Call] = []
        self.values: dict[int, Any] = {}
        self.specs: dict[int, Spec] = {}
        self.tensors: dict[int, weakref.ref[LazyTensor]] = {}
        self.flagged = False  # whether a kernel set a floating-point exception flag
        self._run = run
        self._next_number = itertools.count().__next__
        self._numbers: dict[int, int] = {}  # of input arrays, by id
        self._arrays = self._bytes = 0  # of inputs
        self._lock = fork_safe_lock()  # other threads may read results

    def __del__(self, forget: Callable = waiting.discard) -> None:
        forget(id(self))

    def add(
        self, primitive: Any, inputs: tuple[Tensor, ...], attrs: dict, spec: Spec
    ) -> LazyTensor | None:
        """Adds a call and returns its result; `None` if the group is full."""
        for x in inputs:
            value = x._spec
            if type(value) is Deferred and value.group is not self:
                x._array  # noqa: B018  is computed before locking: two groups could deadlock
        with self._lock:
            if self._is_full():
                return None
            numbers = tuple([self._number(x._spec) for x in inputs])
            number = self._next_number()
            y, value = _new(LazyTensor), _new(Deferred)
            value.group = self
            value.number = number
            value.shape, value.dtype = spec
            value.ndim = len(spec.shape)
            y._spec = value
            y._id = next_id()
            self.specs[number] = spec
            self.tensors[number] = weakref.ref(y)
            self.calls.append(Call(primitive, numbers, attrs, (number,)))
        waiting.add(id(self))
        return y

    def _is_full(self) -> bool:
        arrays, (always, most) = self._arrays, MAX_DEFERRED_ARRAYS
        if arrays > always and (arrays > most or self._bytes > MAX_DEFERRED_BYTES):
            return True
        return len(self.calls) >= MAX_DEFERRED_CALLS

    def _number(self, value: Any) -> int:
        if type(value) is Deferred:
            return value.number
        array = value.array if isinstance(value, Materializer) else value
        number = self._numbers.get(id(array))
        if number is None:
            number = self._next_number()
            self.values[number] = array
            self._numbers[id(array)] = number
            if array.ndim and not is_uniform(array):
                self._arrays += 1
                self._bytes += array.nbytes
        return number

    def compute(self, numbers: Iterable[int] | None = None) -> None:
        """Computes these values; without `numbers`, all that are still referenced.

        If that fails, all of them stay deferred.
        """
        with self._lock:
            deferred = self.tensors
            requested = tuple(deferred) if numbers is None else numbers
            pairs = [(n, deferred[n]()) for n in requested if n in deferred]
            tensors = {n: tensor for n, tensor in pairs if tensor is not None}
            if not tensors:
                return
            for n, array in zip(tensors, self._evaluate(tuple(tensors)), strict=True):
                tensors[n]._spec = array
                tensors[n].__class__ = Tensor
                deferred.pop(n, None)

    def _evaluate(self, numbers: tuple[int, ...]) -> Sequence[Any]:
        flags = floating_point_flags.flags()
        before = flags.count
        with np.errstate(
            divide="call",
            over="call",
            invalid="call",
            under="ignore",
            call=floating_point_flags.set_flag,
        ):
            arrays = allocate("a deferred result", self._run, self, numbers)
        self.flagged = self.flagged or flags.count != before
        return arrays


def is_uniform(array: np.ndarray) -> bool:
    """Returns whether all elements of `array` share one memory location."""
    return not any(array.strides)


def group_of(tensors: Iterable[Tensor]) -> DeferredCalls | None:
    """Returns the group that all `tensors` belong to, or `None`."""
    # `_spec` is read once per tensor, because another thread may materialize the tensor.
    groups = {v.group if type(v := x._spec) is Deferred else None for x in tensors}
    return groups.pop() if len(groups) == 1 else None


def compute_only(tensors: Iterable[Tensor]) -> bool:
    """Computes only these tensors. Returns whether a floating-point exception flag was set."""
    groups: dict[DeferredCalls, list[int]] = {}
    for tensor in tensors:
        value = tensor._spec
        if type(value) is Deferred:
            groups.setdefault(value.group, []).append(value.number)
    for group, numbers in groups.items():
        group.compute(numbers)
    return any([group.flagged for group in groups])
