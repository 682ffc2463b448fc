"""Finding calls to fuse: elementwise work on large arrays, to be done block by block in cache."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from retrograde.core.program import Call
from retrograde.core.rules import Spec
from retrograde.fusion.fused_loops import BLOCK, Fused, is_sum, repeated
from retrograde.values.dtypes import SINGLE_AND_DOUBLE
from retrograde.values.thresholds import MANY

_CASTS = ("cast", "cast_discrete")


def fuse(
    calls: Sequence[Call],
    specs: Sequence[Spec],
    kept: frozenset[int],
    dead: frozenset[int] = frozenset(),
    constants: Mapping[int, Any] = MappingProxyType({}),
) -> list[Call | Fused]:
    """`calls`, with those on large arrays put together, in an order in which all can run.

    `specs` tells shape and dtype of every value, `kept` which values are needed afterwards. Calls
    are taken to have no effects but their outputs. Elementwise calls whose outputs are not needed
    are left out.

    `dead` are values whose arrays nobody else holds or looks into: a Fused that is the last to
    read one may write over it. `constants` are the arrays of values that are always the same;
    those with one number all over are not read again and again.
    """
    if not any([math.prod(specs[n].shape) >= MANY for call in calls for n in call.outputs]):
        return list(calls)
    fusing = _Fusing(calls, specs, constants)
    for place in range(len(calls)):
        fusing.take(place)
    for place in range(len(calls)):
        fusing.take_sum(place)
    return fusing.result(kept, dead)


class _Group:
    """Calls, by their places in the list, that may run together: all make arrays of one shape.

    `leads` are the numbers of leading axes along which all their arrays can be cut into blocks,
    `inputs` the values that come from outside, `behind` the groups that must run before.
    """

    def __init__(self, shape: tuple[int, ...], leads: frozenset[int]) -> None:
        self.shape = shape
        self.leads = leads
        self.places: list[int] = []
        self.inputs: set[int] = set()
        self.behind: set[_Group] = set()
        self.merged_into: _Group | None = None


class _Fusing:
    """Puts calls into groups, one after the other, so that no two wait for each other."""

    def __init__(
        self, calls: Sequence[Call], specs: Sequence[Spec], constants: Mapping[int, Any]
    ) -> None:
        self.calls = calls
        self.specs = specs
        self.uniform = {v: x.flat[0] for v, x in constants.items() if _is_uniform(x)}
        self.plain: dict[int, int] = {}  # by value: which other one it repeats
        self.maker: dict[int, _Group] = {}  # by value: the group that makes it, block by block
        self.needs: dict[int, set[_Group]] = {}  # by value: the groups it cannot do without

    # Grouping

    def take(self, place: int) -> None:
        """Puts the call at `place` into a group, if it can be in one."""
        call = self.calls[place]
        reads = self._reads(call)
        same = repeated(call, reads, self.specs, self.uniform)
        if same is not None:
            self.plain[call.outputs[0]] = same
        elif leads := self._leads(call, reads):
            self._join(place, reads, leads)
            return
        for y in call.outputs:
            self.needs[y] = set().union(*(self.needs.get(v, ()) for v in reads))

    def _reads(self, call: Call) -> tuple[int, ...]:
        return tuple(self.plain.get(v, v) for v in call.inputs)

    def _leads(self, call: Call, reads: tuple[int, ...]) -> frozenset[int]:
        """Along how many leading axes the call can be done in blocks; none if it should not."""
        is_elementwise = call.primitive.partials is not None or call.primitive.name in _CASTS
        shape, dtype = self.specs[call.outputs[0]]
        specs = [self.specs[v] for v in reads if v not in self.uniform]
        if not is_elementwise or math.prod(shape) < MANY:
            return frozenset()
        if any(d.kind == "O" for d in (dtype, *(spec.dtype for spec in specs))):
            return frozenset()
        leads = range(1, len(shape) + 1)
        return frozenset(k for k in leads if all(_can_be_cut(s.shape, shape, k) for s in specs))

    def _join(self, place: int, reads: tuple[int, ...], leads: frozenset[int]) -> None:
        y = self.calls[place].outputs[0]
        shape = self.specs[y].shape
        chosen = None
        for group in dict.fromkeys(self.maker_of(v) for v in reversed(reads)):
            if group is None or group.shape != shape or not group.leads & leads:
                continue
            if chosen is None:
                chosen = group if self._may_enter(reads, group) else None
            elif self._may_merge(chosen, group, leads) and self._may_enter(reads, chosen, group):
                self._merge(chosen, group)
        if chosen is None:
            chosen = _Group(shape, leads)
        chosen.leads &= leads
        chosen.places.append(place)
        entering = [v for v in reads if self.maker_of(v) is not chosen]
        chosen.inputs.update(entering)
        for v in entering:
            chosen.behind |= self.needs.get(v, set())
        self.maker[y] = chosen
        self.needs[y] = {chosen}

    def maker_of(self, v: int) -> _Group | None:
        group = self.maker.get(v)
        return group and _final(group)

    def _may_enter(self, values: Iterable[int], *groups: _Group) -> bool:
        """Whether `groups` can read `values`: what others make of their results, they cannot."""
        outside = [v for v in values if self.maker_of(v) not in groups]
        needed = _with_all_behind(g for v in outside for g in self.needs.get(v, ()))
        return needed.isdisjoint(groups)

    def _may_merge(self, one: _Group, other: _Group, leads: frozenset[int]) -> bool:
        inputs = one.inputs | other.inputs
        return bool(one.leads & other.leads & leads) and self._may_enter(inputs, one, other)

    def _merge(self, one: _Group, other: _Group) -> None:
        other.merged_into = one
        one.leads &= other.leads
        one.places += other.places
        one.inputs = {v for v in one.inputs | other.inputs if self.maker_of(v) is not one}
        one.behind |= other.behind

    def take_sum(self, place: int) -> None:
        """Puts the call at `place` into a group if it sums up all of an array made there."""
        call = self.calls[place]
        if not is_sum(call):
            return
        x, y = self._reads(call)[0], call.outputs[0]
        group = self.maker_of(x)
        spec = self.specs[x]
        if group is None or spec != self.specs[call.inputs[0]] or spec.ndim not in group.leads:
            return
        if spec.dtype in SINGLE_AND_DOUBLE and math.prod(self.specs[y].shape) == 1:
            group.leads = frozenset({spec.ndim})
            group.places.append(place)

    # The list of what is to be run

    def result(self, kept: frozenset[int], dead: frozenset[int]) -> list[Call | Fused]:
        """The calls and groups in order, with only those outputs that are read."""
        needed = set(kept)
        steps: list[Call | Fused] = []
        for places in reversed(self._in_order()):
            calls = [self.calls[place] for place in places]
            if len(calls) > 1:
                step = self._fused(calls, needed, dead)
            else:
                y = calls[0].outputs[:1]
                step = None if y and y[0] in self.plain and y[0] not in needed else calls[0]
            if step is not None:
                steps.append(step)
                needed.update(step.inputs)
        return steps[::-1]

    def _fused(self, calls: list[Call], needed: set[int], dead: frozenset[int]) -> Fused | None:
        inside: set[int] = set()
        used = []
        for call in reversed(calls):
            if call.outputs[0] in needed or call.outputs[0] in inside:
                used.append(call)
                inside.update(self._reads(call))
        if not used:
            return None
        used.reverse()
        group = self.maker_of(used[0].outputs[0])
        outputs = [call.outputs[0] for call in used if call.outputs[0] in needed]
        held = needed | {self.plain[v] for v in needed if v in self.plain}
        uniform = frozenset(self.uniform)
        return Fused(used, self.specs, outputs, max(group.leads), self.plain, uniform, dead - held)

    def _in_order(self) -> list[list[int]]:
        """Lists of places that run together, each after what it reads from; else as they stood."""
        together = {place: [place] for place in range(len(self.calls))}
        for group in {_final(g) for g in self.maker.values()}:
            places = sorted(group.places)
            together.update(dict.fromkeys(places, places))
        lists = {places[-1]: places for places in together.values()}
        made_at = {y: together[i][-1] for i, call in enumerate(self.calls) for y in call.outputs}
        waits_for = {}
        for last, places in lists.items():
            calls = [self.calls[place] for place in places]
            reads = {v for call in calls for v in (self._reads(call) if calls[1:] else call.inputs)}
            waits_for[last] = {made_at[v] for v in reads if v in made_at} - {last}
        return [lists[last] for last in _sorted_by_need(waits_for)]


def _sorted_by_need(waits_for: Mapping[int, set[int]]) -> list[int]:
    """The keys, each behind those it waits for, and smaller ones first."""
    followers: dict[int, list[int]] = {}
    for key, others in waits_for.items():
        for other in others:
            followers.setdefault(other, []).append(key)
    waiting = {key: len(others) for key, others in waits_for.items()}
    ready = sorted(key for key, count in waiting.items() if not count)
    found = []
    while ready:
        found.append(heapq.heappop(ready))
        for key in followers.get(found[-1], ()):
            waiting[key] -= 1
            if not waiting[key]:
                heapq.heappush(ready, key)
    return found


def _can_be_cut(part: tuple[int, ...], whole: tuple[int, ...], lead: int) -> bool:
    """Whether blocks along `lead` axes of `whole` are blocks of `part`, or have all of it."""
    if math.prod(whole[lead:]) > BLOCK:
        return False
    leading = ((1,) * (len(whole) - len(part)) + tuple(part))[:lead]
    return leading == whole[:lead] or math.prod(leading) == 1


def _is_uniform(x: Any) -> bool:
    return x.size == 1 or (x.size > 1 and not any(x.strides))


def _final(group: _Group) -> _Group:
    while group.merged_into is not None:
        group = group.merged_into
    return group


def _with_all_behind(groups: Iterable[_Group]) -> set[_Group]:
    """`groups`, and all that must run before one of them."""
    left, found = list(groups), set()
    while left:
        group = _final(left.pop())
        if group not in found:
            found.add(group)
            left.extend(group.behind)
    return found
