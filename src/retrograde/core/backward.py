"""The backward pass over what a tape recorded."""

from __future__ import annotations

import operator
from typing import Any, NamedTuple

import numpy as np

from retrograde.core import floating_point_flags, indexed_slices, required
from retrograde.core.apply import MANY, PRIMITIVES
from retrograde.core.indexed_slices import IndexedSlices
from retrograde.core.lazy import waiting
from retrograde.core.plans import Plan
from retrograde.core.recorders import thread
from retrograde.core.reference_counts import count, if_alone
from retrograde.core.tape_notes import CustomName
from retrograde.core.tensor import Tensor
from retrograde.values.errors import exhausted, is_out_of_memory

_array_of = operator.attrgetter("_array")


def backward_pass(
    entries: list[tuple], cotangents: Cotangents, wanted: set[int], leads: set | None
) -> None:
    """Empties `entries` from the end, turning cotangents of targets into those of sources.

    `wanted` are the ids of the sources. Rules run only for inputs in `leads`; `None` says that all
    of them lead to a source.
    """
    boxed = cotangents.boxed
    run = _run if boxed else thread.recorders.quietly
    take = cotangents.pop
    flags = floating_point_flags.flags()
    seen = flags.count
    try:
        while entries:
            plan, ids, out, saved, attrs = entry = entries.pop()
            if type(out) is tuple:
                g = cotangents.of_outputs(out, wanted, plan.takes_none)
            else:
                g = cotangents.get(out) if out in wanted else take(out, None)
            if g is None:
                continue
            if type(g) is IndexedSlices and not plan.passes_rows:
                g = run(indexed_slices.dense, g)
            if plan.joint is not None:
                _pull_joint(plan, cotangents, leads, g, ids, saved, attrs, run)
            elif boxed:
                _pull_boxed(plan, cotangents, leads, g, ids, saved, attrs)
            else:
                run(plan.pull, cotangents, leads, g, ids, saved, attrs)
            if flags.count != seen:
                cotangents.check(entry, g, entries)
                seen = flags.count
    except (MemoryError, ValueError) as error:
        if is_out_of_memory(error):
            raise exhausted(error, f"gradient of {plan.name}") from None
        raise


def _pull_boxed(plan: Plan, cotangents: Cotangents, leads: Any, g: Any, *call: Any) -> None:
    """Runs the rules of one call on tensors."""
    plan.pull_boxed(cotangents, leads, g, *call)
    if waiting and cotangents.alert and not cotangents.may_wait:
        ids, _, _ = call
        cotangents.settle(ids)


def _pull_joint(
    plan: Plan,
    cotangents: Cotangents,
    leads: set | None,
    g: Any,
    ids: tuple,
    saved: tuple,
    attrs: dict,
    run: Any,
) -> None:
    """Runs the joint rule of one call."""
    needed = plan.connected if leads is None else _needed(plan, ids, leads)
    for i, result in zip(ids, _run_joint(plan, needed, g, saved, attrs, run), strict=True):
        cotangents.deposit(i, result)


def _needed(plan: Plan, ids: tuple, leads: set) -> tuple[bool, ...]:
    """Which inputs of a call are connected, and lead to a source."""
    return tuple([c and i in leads for c, i in zip(plan.connected, ids, strict=True)])


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
    operations that can be recorded. If they are `alert`, `spoilt` is the call that produced the
    first non-finite cotangent. If they `may_wait`, lazily evaluated calls are not computed one by
    one for that.
    """

    __slots__ = ("_owned", "alert", "boxed", "may_wait", "spoilt")

    def __init__(self, boxed: bool) -> None:
        self.boxed = boxed
        self.may_wait = False
        self._owned: set[int] = set()  # those that are sums made here, so may be added to in place
        self.alert = False
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
        """Computes lazily evaluated cotangents, so that flags belong to the current call."""
        for g in map(self.get, ids):
            if isinstance(g, Tensor):
                g._array  # noqa: B018

    def check(self, entry: tuple, g: Any, before: list[tuple]) -> None:
        """Keeps the state of the backward pass if the gradient of a call is the first non-finite.

        `g` is the cotangent of its outputs, and `before` are the calls that are left.
        """
        if not self.alert or all(is_finite(self.get(i)) for i in entry[1]):
            return
        self.alert = False
        self._owned.clear()  # what is kept now must not be added to
        kept = {i: _unboxed(g) for i, g in self.items()} if self.boxed else dict(self)
        self.spoilt = Spoilt(entry, g if type(g) is tuple else (g,), list(before), kept)

    def of_outputs(self, out: tuple, wanted: set[int], none: bool = False) -> tuple | None:
        """Returns the cotangents of all outputs of one call, or `None` if none was used.

        The cotangent of an output that was not used is zeros, or `None` if `none` is true.
        """
        found = [self.get(i) if i in wanted else self.pop(i, None) for i, _ in out]
        if all(g is None for g in found):
            return None
        whole = []
        for g, (_, spec) in zip(found, out, strict=True):
            if g is None and not none:
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
        g = tuple([x if x is None else Tensor(x) for x in g]) if type(g) is tuple else Tensor(g)
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
