"""Deferring: calls on large arrays wait until somebody looks at a result, and then run together.

Only the arithmetic waits: shapes, dtypes and errors are known at once, and tapes hear of a call
when it is made. Arrays do not change, so the values are the same whenever they are computed.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from retrograde.core import floating_point_flags, namespaces
from retrograde.core.locks import fork_safe_lock
from retrograde.core.program import Call
from retrograde.core.recorders import next_id
from retrograde.core.rules import Spec
from retrograde.core.tensor import Tensor
from retrograde.values.errors import allocated

MOST = 48  # calls that wait at a time
_ALWAYS, _AT_MOST = 2, 8  # arrays that are held for them
_BYTES = 1 << 27  # of which more than a few may be as large as that

waiting: set[int] = set()  # the ids of all agendas in which a call waits

_new = object.__new__


class Promise:
    """What a tensor has in place of an array that is yet to be computed."""

    __slots__ = ("agenda", "dtype", "ndim", "number", "shape")

    agenda: Agenda
    number: int
    shape: tuple[int, ...]
    dtype: np.dtype
    ndim: int


class Deferred(Tensor):
    """A tensor whose array is computed when somebody looks at it; an ordinary one from then on."""

    __slots__ = ()

    @property
    def _array(self) -> Any:
        promise = self._form
        if type(promise) is Promise:
            promise.agenda.settle()
        return self._form


class Agenda:
    """Calls of one thread, on arrays of one shape and dtype, that wait to run together.

    It lives for as long as one of the tensors that wait. Values go by numbers: `values` are the
    arrays that were given, `specs` tell what results will be like, and `tensors` are those in which
    somebody may look for one. `run(agenda, numbers)` computes some of them.
    """

    def __init__(self, spec: Spec, run: Callable[[Agenda, tuple], Sequence[Any]]) -> None:
        self.spec = spec
        self.calls: list[Call] = []
        self.values: dict[int, Any] = {}
        self.specs: dict[int, Spec] = {}
        self.tensors: dict[int, weakref.ref[Deferred]] = {}
        self.alarmed = False  # whether a kernel set a floating-point flag
        self._run = run
        self._next_number = itertools.count().__next__
        self._numbers: dict[int, int] = {}  # of what was given, by its id
        self._arrays = self._bytes = 0  # that are held
        self._lock = fork_safe_lock()  # other threads may look at results

    def __del__(self, forget: Callable = waiting.discard) -> None:
        forget(id(self))

    def add(
        self, primitive: Any, inputs: tuple[Tensor, ...], attrs: dict, spec: Spec
    ) -> Deferred | None:
        """Writes a call down, and gives its result; `None` if there is no room."""
        for x in inputs:
            if type(x._form) is Promise and x._form.agenda is not self:
                x._array  # noqa: B018  is computed, before the lock: no two wait for each other
        with self._lock:
            if self._is_full():
                return None
            numbers = tuple([self._number(x._form) for x in inputs])
            number = self._next_number()
            y, promise = _new(Deferred), _new(Promise)
            promise.agenda = self
            promise.number = number
            promise.shape, promise.dtype = spec
            promise.ndim = len(spec.shape)
            y._form = promise
            y._id = next_id()
            self.specs[number] = spec
            self.tensors[number] = weakref.ref(y)
            self.calls.append(Call(primitive, numbers, attrs, (number,)))
        waiting.add(id(self))
        return y

    def _is_full(self) -> bool:
        held = self._arrays
        if held > _ALWAYS and (held > _AT_MOST or self._bytes > _BYTES):
            return True
        return len(self.calls) >= MOST

    def _number(self, form: Any) -> int:
        if type(form) is Promise:
            return form.number
        number = self._numbers.get(id(form))
        if number is None:
            number = self._next_number()
            self.values[number] = form
            self._numbers[id(form)] = number
            if form.ndim and not is_uniform(form):
                self._arrays += 1
                self._bytes += form.nbytes
        return number

    def settle(self, numbers: Iterable[int] | None = None) -> None:
        """Computes these values; without `numbers`, all that somebody may look at.

        If that fails, all wait as before.
        """
        with self._lock:
            waits = self.tensors
            asked = tuple(waits) if numbers is None else numbers
            pairs = [(n, waits[n]()) for n in asked if n in waits]
            found = {n: tensor for n, tensor in pairs if tensor is not None}
            if not found:
                return
            for n, array in zip(found, self._computed(tuple(found)), strict=True):
                found[n]._form = array
                found[n].__class__ = Tensor
                waits.pop(n, None)

    def _computed(self, numbers: tuple[int, ...]) -> Sequence[Any]:
        flags = floating_point_flags.flags()
        before = flags.count
        with np.errstate(
            divide="call",
            over="call",
            invalid="call",
            under="ignore",
            call=floating_point_flags.set_flag,
        ):
            found = allocated("a deferred result", self._run, self, numbers)
        self.alarmed = self.alarmed or flags.count != before
        return found


def is_uniform(array: np.ndarray) -> bool:
    """Whether all elements of `array` are one and the same place in memory."""
    return not any(array.strides)


namespaces.take_for_numpy(Promise)


def agenda_of(tensors: Iterable[Tensor]) -> Agenda | None:
    """The one agenda in which all `tensors` wait, if there is one."""
    agendas = {x._form.agenda if type(x._form) is Promise else None for x in tensors}
    return agendas.pop() if len(agendas) == 1 else None


def settle_only(tensors: Iterable[Tensor]) -> bool:
    """Computes these tensors, but no others that wait with them. Whether an alarm was heard."""
    agendas: dict[Agenda, list[int]] = {}
    for tensor in tensors:
        promise = tensor._form
        if type(promise) is Promise:
            agendas.setdefault(promise.agenda, []).append(promise.number)
    for agenda, numbers in agendas.items():
        agenda.settle(numbers)
    return any([agenda.alarmed for agenda in agendas])
