"""The history of a tape: which values were computed from which, whether recorded or not."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

from retrograde.core.apply import PRIMITIVES
from retrograde.core.custom_gradient import CustomName
from retrograde.diagnose.tape_notes import Escape, Notes
from retrograde.values.source_location import SourceLocation

# Costs of edges: the path with the fewest uncertain steps is the cheapest.
_CALL, _BLOCKED, _ASSIGNMENT, _CONVERSION, _BRANCH = 1e-6, 1.0, 1.0, 1.5, 2.5

_DISPLAY_ONLY = frozenset({"print", "format"})  # values that do not enter the computation again
_MAX_ESCAPES = 64  # considered for each constant


class ObservedCall(NamedTuple):
    """A call that the tape observed; `recorded` if a gradient can flow through it."""

    name: str
    ids: tuple[int, ...]
    location: SourceLocation | None
    recorded: bool

    def passes(self, position: int) -> bool:
        """Returns whether a gradient flows from the output to the input at `position`."""
        if isinstance(self.name, CustomName):
            return position not in self.name.missing
        primitive = PRIMITIVES.get(self.name)
        if primitive is None or primitive.joint is not None:
            return self.recorded or primitive is not None
        return primitive.vjps is not None and primitive.vjps[position] is not None


class Edge(NamedTuple):
    """A step of a path, from the value `start` to the value `end`.

    It is either a `call`, from its input at `position`, or an `escape`, where the value left the
    tape.
    """

    start: int
    end: int
    call: ObservedCall | None
    position: int
    escape: Escape | None

    @property
    def passes_gradient(self) -> bool:
        """True if a gradient can flow along this edge."""
        return self.call is not None and self.call.passes(self.position)


class History:
    """Everything that a tape observed, as a graph."""

    def __init__(self, tape: Any) -> None:
        self.notes: Notes = tape._notes or Notes()
        self.began: int = tape._began
        self.ended: int | None = tape._ended if tape._began and not tape._recording else None
        self.variables: dict[int, Any] = tape._variables
        self._connected: dict[int, Any] = tape._connected
        self.origins: dict[int, ObservedCall] = {}
        locations = tape._locations or {}
        for name, ids, outputs in _recorded_calls(tape):
            location = locations.get(outputs[0]) or getattr(name, "location", None)
            self.origins.update(dict.fromkeys(outputs, ObservedCall(name, ids, location, True)))
        for name, ids, outputs, location in self.notes.unrecorded:
            self.origins.update(dict.fromkeys(outputs, ObservedCall(name, ids, location, False)))
        self._assignments = [e for e in self.notes.escapes if e.variable is not None]
        self._conversions = [
            e for e in self.notes.escapes if e.variable is None and e.how not in _DISPLAY_ONLY
        ]

    def watched_since(self, source: int) -> float:
        """Returns the time since which the tape watches `source`; infinity if it does not."""
        if source not in self._connected:
            return float("inf")
        watched = self.notes.watched.get(source)
        return 0 if watched is None else watched.when

    def path(self, source: int, targets: list[int]) -> list[Edge] | None:
        """Returns the path from `source` to one of `targets` with the fewest obstacles."""
        since = self.watched_since(source)
        next_edges: dict[int, Edge | None] = {}
        tie_breaker = itertools.count()
        queue = [(0.0, next(tie_breaker), target, None) for target in targets]
        while queue:
            total, _, node, edge = heapq.heappop(queue)
            if node in next_edges:
                continue
            next_edges[node] = edge
            if node == source:
                return _edges_from(source, next_edges)
            for incoming, cost in self._edges_to(node, edge):
                if incoming.start not in next_edges:
                    if incoming.start == source and incoming.end < since:
                        cost += _BLOCKED
                    item = (total + cost, next(tie_breaker), incoming.start, incoming)
                    heapq.heappush(queue, item)
        return None

    def _edges_to(self, node: int, use: Edge | None) -> Iterator[tuple[Edge, float]]:
        """Yields the edges that end at `node`, with their costs; `use` is the edge after `node`."""
        call = self.origins.get(node)
        if call is not None:
            for position, start in enumerate(call.ids):
                edge = Edge(start, node, call, position, None)
                yield edge, _CALL if edge.passes_gradient else _BLOCKED
            return
        time = float("inf") if use is None else use.end
        for escape in self._assignments:
            if escape.variable == node and escape.when < time:
                yield Edge(escape.tensor, node, None, 0, escape), _ASSIGNMENT
        if node > self.began:  # a constant or a variable that was created in the block
            before = [escape for escape in self._conversions if escape.when < node]
            for age, escape in enumerate(reversed(before[-_MAX_ESCAPES:])):
                cost = _BRANCH if escape.how == "bool" else _CONVERSION
                yield Edge(escape.tensor, node, None, 0, escape), cost + age * 1e-3

    def ancestors(self, nodes: list[int]) -> set[int]:
        """Returns all values that `nodes` were computed from, by observed calls."""
        seen: set[int] = set()
        pending = list(nodes)
        while pending:
            node = pending.pop()
            if node not in seen:
                seen.add(node)
                call = self.origins.get(node)
                pending += call.ids if call else ()
        return seen

    def uses_of(self, node: int) -> list[ObservedCall]:
        """Returns the calls that have `node` as an input."""
        return [call for call in self.origins.values() if node in call.ids]


def _edges_from(source: int, next_edges: dict[int, Edge | None]) -> list[Edge]:
    path = []
    edge = next_edges[source]
    while edge is not None:
        path.append(edge)
        edge = next_edges[edge.end]
    return path


def _recorded_calls(tape: Any) -> Iterator[tuple[str, tuple, tuple]]:
    """Yields the name, inputs and outputs of each recorded call, even if the tape was used."""
    if tape._entries is not None:
        for plan, ids, out, _, _ in tape._entries:
            yield plan.name, ids, tuple([i for i, _ in out]) if type(out) is tuple else (out,)
        return
    pairs = ((out, ids) for out, ids in tape._connected.items() if ids is not None)
    calls = itertools.groupby(pairs, key=lambda pair: id(pair[1]))  # outputs of a call share ids
    for name, (_, group) in zip(tape._names, calls, strict=True):
        outs, (ids, *_) = zip(*group, strict=True)
        yield name, ids, outs
