"""The walk back over what a tape recorded."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from retrograde.core import indexed_slices
from retrograde.core.indexed_slices import IndexedSlices
from retrograde.core.notes import CustomName
from retrograde.core.recorders import thread
from retrograde.core.rules import Plan, passed_on
from retrograde.core.tensor import Tensor

_array_of = operator.attrgetter("_array")


def rewind(
    entries: list[tuple], cotangents: Cotangents, wanted: set[int], leads: set | None
) -> None:
    """Empties `entries` from the back, turning cotangents of targets into those of sources.

    `wanted` are the ids of the sources. Rules are run only for inputs in `leads`; `None` says
    that all of them lead to a source.
    """
    boxed = cotangents.boxed
    run = _run if boxed else thread.recorders.quietly
    take = cotangents.pop
    while entries:
        plan, ids, out, saved, attrs = entries.pop()
        if type(out) is tuple:
            g = cotangents.of_outputs(out, wanted)
        else:
            g = cotangents.get(out) if out in wanted else take(out, None)
        if g is None:
            continue
        if type(g) is IndexedSlices:
            g = run(indexed_slices.dense, g)
        if plan.joint is not None:
            values = None  # those of the call before are free now
            needed = plan.connected
            if leads is not None:
                needed = tuple([c and i in leads for c, i in zip(needed, ids, strict=True)])
            for i, result in zip(ids, _run_joint(plan, needed, g, saved, attrs, run), strict=True):
                cotangents.deposit(i, result)
            continue
        values = saved if boxed else [*map(_array_of, saved)]
        for position, rule in plan.rules:
            key = ids[position]
            if leads is None or key in leads:
                if rule is passed_on:
                    result = g
                elif attrs:
                    result = run(rule, g, *values, **attrs)
                elif len(values) == 2:  # written out for the sake of speed, as in apply
                    result = run(rule, g, values[0], values[1])
                elif len(values) == 3:
                    result = run(rule, g, values[0], values[1], values[2])
                else:
                    result = run(rule, g, *values)
                if key in cotangents:
                    cotangents.deposit(key, result)
                else:
                    cotangents[key] = result


class Cotangents(dict):
    """Cotangents by the id of their tensor; what arrives for one id adds up.

    They are raw arrays, or Tensors if `boxed`: while someone records, the walk is made of
    operations that can be recorded.
    """

    __slots__ = ("_owned", "boxed")

    def __init__(self, boxed: bool) -> None:
        self.boxed = boxed
        self._owned: set[int] = set()  # those that are sums made here, so may be added to in place

    def deposit(self, key: int, value: Any) -> None:
        """Adds `value` to what is there."""
        before = self.get(key)
        if before is None:
            if value is not None:
                self[key] = value
        elif key in self._owned and type(value) is np.ndarray:
            thread.recorders.quietly(np.add, before, value, before)
        elif value is not None:
            self[key] = total = (
                indexed_slices.add(before, value)
                if self.boxed
                else thread.recorders.quietly(indexed_slices.add, before, value)
            )
            if type(total) is np.ndarray:
                self._owned.add(key)
            else:
                self._owned.discard(key)

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
