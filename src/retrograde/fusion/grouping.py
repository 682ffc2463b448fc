"""Groups elementwise calls on large arrays that can be fused."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from retrograde.core.program import Call
from retrograde.core.rules import Spec
from retrograde.fusion.fused_loops import FUSED_BLOCK_SIZE, Fused, find_equal_value, is_sum
from retrograde.values.dtypes import SINGLE_AND_DOUBLE
from retrograde.values.thresholds import LARGE_ARRAY_SIZE

_CASTS = ("cast", "cast_discrete")


def fuse(
    calls: Sequence[Call],
    specs: Sequence[Spec],
    kept: frozenset[int],
    dead: frozenset[int] = frozenset(),
    constants: Mapping[int, Any] = MappingProxyType({}),
) -> list[Call | Fused]:
    """Fuses calls on large arrays. Returns calls and `Fused` objects in a valid order.

    `specs` has the shape and dtype of every value, and `kept` are the values needed afterwards.
    Calls must not have side effects. Elementwise calls with unused outputs are dropped.

    `dead` are values whose arrays have no other references or views: the last `Fused` to read one
    may overwrite it. `constants` are the arrays of constant values. Uniform constants are read as
    scalars.
    """
    if not any(
        [math.prod(specs[n].shape) >= LARGE_ARRAY_SIZE for call in calls for n in call.outputs]
    ):
        return list(calls)
    grouping = _Grouping(calls, specs, constants)
    for i in range(len(calls)):
        grouping.add(i)
    for i in range(len(calls)):
        grouping.add_sum(i)
    return grouping.result(kept, dead)


class _Group:
    """Calls, by their indices, that can be fused: their results have the same shape.

    `leads` are the numbers of leading axes along which all arrays can be split into blocks.
    `inputs` are the values from outside, and `dependencies` the groups that must run before.
    """

    def __init__(self, shape: tuple[int, ...], leads: frozenset[int]) -> None:
        self.shape = shape
        self.leads = leads
        self.indices: list[int] = []
        self.inputs: set[int] = set()
        self.dependencies: set[_Group] = set()
        self.merged_into: _Group | None = None


class _Grouping:
    """Assigns calls to groups without circular dependencies."""

    def __init__(
        self, calls: Sequence[Call], specs: Sequence[Spec], constants: Mapping[int, Any]
    ) -> None:
        self.calls = calls
        self.specs = specs
        self.uniform = {v: x.flat[0] for v, x in constants.items() if _is_uniform(x)}
        self.repeats: dict[int, int] = {}  # maps a value to the value with the same elements
        self.producers: dict[int, _Group] = {}  # maps a value to the group that computes it
        self.required: dict[int, set[_Group]] = {}  # maps a value to the groups it depends on

    # Grouping

    def add(self, i: int) -> None:
        """Adds call `i` to a group, if it can be fused."""
        call = self.calls[i]
        reads = self._reads(call)
        same = find_equal_value(call, reads, self.specs, self.uniform)
        if same is not None:
            self.repeats[call.outputs[0]] = same
        elif leads := self._splittable_axes(call, reads):
            self._join(i, reads, leads)
            return
        for y in call.outputs:
            self.required[y] = set().union(*(self.required.get(v, ()) for v in reads))

    def _reads(self, call: Call) -> tuple[int, ...]:
        return tuple(self.repeats.get(v, v) for v in call.inputs)

    def _splittable_axes(self, call: Call, reads: tuple[int, ...]) -> frozenset[int]:
        """Returns the numbers of leading axes along which a call can be split; empty if none."""
        is_elementwise = call.primitive.partials is not None or call.primitive.name in _CASTS
        shape, dtype = self.specs[call.outputs[0]]
        specs = [self.specs[v] for v in reads if v not in self.uniform]
        if not is_elementwise or math.prod(shape) < LARGE_ARRAY_SIZE:
            return frozenset()
        if any(d.kind == "O" for d in (dtype, *(spec.dtype for spec in specs))):
            return frozenset()
        leads = range(1, len(shape) + 1)
        return frozenset(k for k in leads if all(_can_be_split(s.shape, shape, k) for s in specs))

    def _join(self, i: int, reads: tuple[int, ...], leads: frozenset[int]) -> None:
        y = self.calls[i].outputs[0]
        shape = self.specs[y].shape
        chosen = None
        for group in dict.fromkeys(self.producer_of(v) for v in reversed(reads)):
            if group is None or group.shape != shape or not group.leads & leads:
                continue
            if chosen is None:
                chosen = group if self._may_enter(reads, group) else None
            elif self._may_merge(chosen, group, leads) and self._may_enter(reads, chosen, group):
                self._merge(chosen, group)
        if chosen is None:
            chosen = _Group(shape, leads)
        chosen.leads &= leads
        chosen.indices.append(i)
        entering = [v for v in reads if self.producer_of(v) is not chosen]
        chosen.inputs.update(entering)
        for v in entering:
            chosen.dependencies |= self.required.get(v, set())
        self.producers[y] = chosen
        self.required[y] = {chosen}

    def producer_of(self, v: int) -> _Group | None:
        group = self.producers.get(v)
        return group and _final(group)

    def _may_enter(self, values: Iterable[int], *groups: _Group) -> bool:
        """Returns whether `groups` can read `values` without a circular dependency."""
        outside = [v for v in values if self.producer_of(v) not in groups]
        needed = _with_dependencies(g for v in outside for g in self.required.get(v, ()))
        return needed.isdisjoint(groups)

    def _may_merge(self, one: _Group, other: _Group, leads: frozenset[int]) -> bool:
        inputs = one.inputs | other.inputs
        return bool(one.leads & other.leads & leads) and self._may_enter(inputs, one, other)

    def _merge(self, one: _Group, other: _Group) -> None:
        other.merged_into = one
        one.leads &= other.leads
        one.indices += other.indices
        one.inputs = {v for v in one.inputs | other.inputs if self.producer_of(v) is not one}
        one.dependencies |= other.dependencies

    def add_sum(self, i: int) -> None:
        """Adds call `i` to a group if it sums all elements of a value computed there."""
        call = self.calls[i]
        if not is_sum(call):
            return
        x, y = self._reads(call)[0], call.outputs[0]
        group = self.producer_of(x)
        spec = self.specs[x]
        if group is None or spec != self.specs[call.inputs[0]] or spec.ndim not in group.leads:
            return
        if spec.dtype in SINGLE_AND_DOUBLE and math.prod(self.specs[y].shape) == 1:
            group.leads = frozenset({spec.ndim})
            group.indices.append(i)

    # Ordering

    def result(self, kept: frozenset[int], dead: frozenset[int]) -> list[Call | Fused]:
        """Returns calls and fused groups in order, with only the outputs that are read."""
        needed = set(kept)
        steps: list[Call | Fused] = []
        for indices in reversed(self._in_order()):
            calls = [self.calls[i] for i in indices]
            if len(calls) > 1:
                step = self._fuse(calls, needed, dead)
            else:
                y = calls[0].outputs[:1]
                step = None if y and y[0] in self.repeats and y[0] not in needed else calls[0]
            if step is not None:
                steps.append(step)
                needed.update(step.inputs)
        return steps[::-1]

    def _fuse(self, calls: list[Call], needed: set[int], dead: frozenset[int]) -> Fused | None:
        inside: set[int] = set()
        used = []
        for call in reversed(calls):
            if call.outputs[0] in needed or call.outputs[0] in inside:
                used.append(call)
                inside.update(self._reads(call))
        if not used:
            return None
        used.reverse()
        group = self.producer_of(used[0].outputs[0])
        outputs = [call.outputs[0] for call in used if call.outputs[0] in needed]
        read_later = needed | {self.repeats[v] for v in needed if v in self.repeats}
        uniform = frozenset(self.uniform)
        return Fused(
            used, self.specs, outputs, max(group.leads), self.repeats, uniform, dead - read_later
        )

    def _in_order(self) -> list[list[int]]:
        """Returns lists of fused calls in a valid order, otherwise in the original order."""
        group_of = {i: [i] for i in range(len(self.calls))}
        for group in {_final(g) for g in self.producers.values()}:
            indices = sorted(group.indices)
            group_of.update(dict.fromkeys(indices, indices))
        lists = {indices[-1]: indices for indices in group_of.values()}
        produced_at = {
            y: group_of[i][-1] for i, call in enumerate(self.calls) for y in call.outputs
        }
        depends_on = {}
        for last, indices in lists.items():
            calls = [self.calls[i] for i in indices]
            reads = {v for call in calls for v in (self._reads(call) if calls[1:] else call.inputs)}
            depends_on[last] = {produced_at[v] for v in reads if v in produced_at} - {last}
        return [lists[last] for last in _topological_sort(depends_on)]


def _topological_sort(depends_on: Mapping[int, set[int]]) -> list[int]:
    """Returns the keys, each after those it depends on; otherwise, smaller keys first."""
    followers: dict[int, list[int]] = {}
    for key, others in depends_on.items():
        for other in others:
            followers.setdefault(other, []).append(key)
    waiting = {key: len(others) for key, others in depends_on.items()}
    ready = sorted(key for key, count in waiting.items() if not count)
    order = []
    while ready:
        order.append(heapq.heappop(ready))
        for key in followers.get(order[-1], ()):
            waiting[key] -= 1
            if not waiting[key]:
                heapq.heappush(ready, key)
    return order


def _can_be_split(shape: tuple[int, ...], full: tuple[int, ...], lead: int) -> bool:
    """Returns whether an input of `shape` can be split along the first `lead` axes of `full`."""
    if math.prod(full[lead:]) > FUSED_BLOCK_SIZE:
        return False
    leading = ((1,) * (len(full) - len(shape)) + tuple(shape))[:lead]
    return leading == full[:lead] or math.prod(leading) == 1


def _is_uniform(x: Any) -> bool:
    return x.size == 1 or (x.size > 1 and not any(x.strides))


def _final(group: _Group) -> _Group:
    while group.merged_into is not None:
        group = group.merged_into
    return group


def _with_dependencies(groups: Iterable[_Group]) -> set[_Group]:
    """Returns `groups` and all their dependencies."""
    pending, reached = list(groups), set()
    while pending:
        group = _final(pending.pop())
        if group not in reached:
            reached.add(group)
            pending.extend(group.dependencies)
    return reached
