"""The walk back over what a tape recorded."""

from __future__ import annotations

import operator
from types import FrameType
from typing import Any, NamedTuple

import numpy as np

from retrograde.core import floating_point_flags, indexed_slices, required
from retrograde.core.apply import MANY, PRIMITIVES
from retrograde.core.indexed_slices import IndexedSlices
from retrograde.core.lazy import waiting
from retrograde.core.plans import Plan
from retrograde.core.recorders import thread
from retrograde.core.reference_counts import count, if_alone
from retrograde.core.source_location import locals_of
from retrograde.core.tape_notes import CustomName
from retrograde.core.tensor import Tensor
from retrograde.values.errors import exhausted, is_out_of_memory

_array_of = operator.attrgetter("_array")


def rewind(
    entries: list[tuple], cotangents: Cotangents, wanted: set[int], leads: set | None
) -> None:
    """Empties `entries` from the back, turning cotangents of targets into those of sources.

    `wanted` are the ids of the sources. Rules are run only for inputs in `leads`; `None` says
    that all of them lead to a source. At an alarm the rest of `entries` waits until the call is
    done, for a look at what came out of it.
    """
    boxed = cotangents.boxed
    quietly = thread.recorders.quietly
    run = _run if boxed else quietly
    take = cotangents.pop
    try:
        while entries or (cotangents.halt is not None and cotangents.resume(entries)):
            plan, ids, out, saved, attrs = entries.pop()
            if type(out) is tuple:
                g = cotangents.of_outputs(out, wanted)
            else:
                g = cotangents.get(out) if out in wanted else take(out, None)
            if g is None:
                continue
            if type(g) is IndexedSlices and not plan.passes_rows:
                g = run(indexed_slices.dense, g)
            if plan.joint is None:
                if boxed:
                    plan.pull_boxed(cotangents, leads, g, ids, saved, attrs)
                    if waiting and cotangents.alert and not cotangents.may_wait:
                        cotangents.settle(ids)
                else:
                    quietly(plan.pull, cotangents, leads, g, ids, saved, attrs)
                continue
            needed = plan.connected if leads is None else _needed(plan, ids, leads)
            for i, result in zip(ids, _run_joint(plan, needed, g, saved, attrs, run), strict=True):
                cotangents.deposit(i, result)
    except (MemoryError, ValueError) as error:
        if is_out_of_memory(error):
            raise exhausted(error, f"gradient of {plan.name}") from None
        raise


def _needed(plan: Plan, ids: tuple, leads: set) -> tuple[bool, ...]:
    """Which inputs of a call are connected, and lead to a source."""
    return tuple([c and i in leads for c, i in zip(plan.connected, ids, strict=True)])


class Halt(NamedTuple):
    """A call in whose walk back an alarm was heard, its cotangent, and the entries before it."""

    entry: tuple
    g: Any
    rest: list[tuple]


class Spoilt(NamedTuple):
    """The first call of a walk back after which a cotangent was not finite.

    `g` is the cotangent that it was given, one for each output; `before` are the calls that the
    walk had yet to come to, and `cotangents` those that it had then.
    """

    entry: tuple
    g: tuple
    before: list[tuple]
    cotangents: dict[int, Any]


class Cotangents(dict):
    """Cotangents by the id of their tensor; what arrives for one id adds up.

    They are raw arrays, or Tensors if `boxed`: while someone records, the walk is made of
    operations that can be recorded. If they are `alert`, the walk halts at alarms, and `spoilt`
    says where the first of them that is not finite came from. If they `may_wait`, calls are not
    made to run one by one for that.
    """

    __slots__ = ("_owned", "alert", "boxed", "halt", "may_wait", "spoilt")

    def __init__(self, boxed: bool) -> None:
        self.boxed = boxed
        self.may_wait = False
        self._owned: set[int] = set()  # those that are sums made here, so may be added to in place
        self.alert = False
        self.halt: Halt | None = None
        self.spoilt: Spoilt | None = None

    def deposit(self, key: int, value: Any) -> None:
        """Adds `value` to what is there."""
        if self.boxed or key not in self:
            self.add(key, value)
        else:
            thread.recorders.quietly(self.add, key, value)

    def add(self, key: int, value: Any) -> None:
        """As `deposit`, where NumPy is quiet already."""
        before = self.get(key)
        if before is None:
            if value is not None:
                self[key] = value
        elif key in self._owned and type(value) is np.ndarray and before.size < MANY:
            np.add(before, value, before)
        elif type(before) is np.ndarray and before.size >= MANY and self._is_ours(key, value):
            required.add.on_many(before, value, out=before)
        elif value is not None:
            self[key] = total = indexed_slices.add(before, value)
            if type(total) is np.ndarray:
                self._owned.add(key)
            else:
                self._owned.discard(key)

    def _is_ours(self, key: int, value: Any) -> bool:
        """Whether `value` may be added to the array that is there: nothing but this holds it."""
        if type(value) is not np.ndarray:
            return False
        return key in self._owned or (
            count(self[key]) == _ALONE
            and self[key].base is None
            and self[key].flags.writeable
            and (self[key].shape, self[key].dtype) == (value.shape, value.dtype)
        )

    def settle(self, ids: tuple) -> None:
        """Has the cotangents of `ids` computed, so that alarms come from the call at hand."""
        for g in map(self.get, ids):
            if isinstance(g, Tensor):
                g._array  # noqa: B018

    def resume(self, entries: list[tuple]) -> bool:
        """Looks at what came out of the call that the walk halted at; whether entries are left.

        If all of it is finite, nothing is kept of the call.
        """
        halt, self.halt = self.halt, None
        if not all(is_finite(self.get(i)) for i in halt.entry[1]):
            self.alert = False
            self._owned.clear()  # what is kept now must not be added to
            g = halt.g if type(halt.g) is tuple else (halt.g,)
            kept = {i: _unboxed(g) for i, g in self.items()} if self.boxed else dict(self)
            self.spoilt = Spoilt(halt.entry, g, list(halt.rest), kept)
        entries.extend(halt.rest)
        return bool(entries)

    def of_outputs(self, out: tuple, wanted: set[int]) -> tuple | None:
        """The cotangents of all outputs of one call; zeros for those that were not used."""
        found = [self.get(i) if i in wanted else self.pop(i, None) for i, _ in out]
        if all(g is None for g in found):
            return None
        whole = []
        for g, (_, spec) in zip(found, out, strict=True):
            if g is None:
                zeros = np.zeros(spec.shape, spec.dtype)
                g = Tensor(zeros) if self.boxed else zeros
            whole.append(indexed_slices.dense(g) if type(g) is IndexedSlices else g)
        return tuple(whole)


def _of_the_walk() -> int:
    """What `_is_ours` counts if nobody else holds an array, and `add` looks at it."""
    cotangents = {0: np.zeros(2)}
    before = cotangents.get(0)  # noqa: F841
    return count(cotangents[0])


_ALONE = if_alone(_of_the_walk)


def _halt(frame: FrameType) -> FrameType | None:
    """Has the walk in `frame` halt after the call that it is at."""
    cotangents, entries, g, *entry = locals_of(
        frame, "cotangents", "entries", "g", "plan", "ids", "out", "saved", "attrs"
    )
    if cotangents.alert and cotangents.halt is None:
        cotangents.halt = Halt(tuple(entry), g, entries[:])
        entries.clear()
    return frame.f_back


def _pass_by_walk(frame: FrameType) -> FrameType | None:
    """The alarm comes before the walk has a cotangent for the call that it is at."""
    return frame.f_back.f_back


floating_point_flags.answer_in(rewind.__code__, _halt)
floating_point_flags.answer_in(Cotangents.of_outputs.__code__, _pass_by_walk)


def is_finite(g: Any) -> bool:
    """Whether a cotangent has neither NaN nor infinity in it, as far as NumPy holds it."""
    if type(g) is IndexedSlices:
        g = g._values
    array = g._array if isinstance(g, Tensor) else g
    return not isinstance(array, (np.ndarray, np.generic)) or bool(np.isfinite(array).all())


def _run(rule: Any, *values: Any, **attrs: Any) -> Any:
    return rule(*values, **attrs)


def _run_joint(plan: Plan, needed: tuple, g: Any, saved: tuple, attrs: dict, run: Any) -> tuple:
    """The cotangents for all inputs of a call, by its one rule.

    The rule of a `custom_gradient` is the user's own and computes with tensors in any case.
    """
    boxed = run is _run
    if not plan.user_code:
        return run(plan.joint, needed, g, *(saved if boxed else map(_array_of, saved)), **attrs)
    if not boxed:
        g = tuple(map(Tensor, g)) if type(g) is tuple else Tensor(g)
    results = plan.joint(needed, g, *saved, **attrs)
    if type(plan.name) is CustomName:
        plan.name.withheld = tuple([i for i, result in enumerate(results) if result is None])
    return results if boxed else [_unboxed(result) for result in results]


def _unboxed(result: Any) -> Any:
    if isinstance(result, IndexedSlices):
        return IndexedSlices(result.values._array, result.indices._array, result.dense_shape)
    return None if result is None else result._array


_CALLS_OF_A_RULE = 3  # as many, or fewer


def can_wait(entries: list[tuple], most: int) -> bool:
    """Whether a walk over `entries` is made of calls that may wait, and no more than `most`."""
    if _CALLS_OF_A_RULE * len(entries) > most:
        return False
    primitives = [PRIMITIVES.get(plan.name) for plan, _, _, _, _ in entries]
    return all([p is not None and p.put_off is not None for p in primitives])


def leading_to(wanted: set[int], entries: list[tuple]) -> set[int]:
    """The ids of all tensors that depend on `wanted`: only through these need a walk go."""
    leads = set(wanted)
    for _, ids, out, _, _ in entries:
        if not leads.isdisjoint(ids):
            if type(out) is tuple:
                leads.update([i for i, _ in out])
            else:
                leads.add(out)
    return leads
