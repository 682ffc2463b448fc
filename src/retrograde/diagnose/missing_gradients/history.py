"""The history of a tape: what was made of what, recorded or not."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

from retrograde.core.apply import PRIMITIVES
from retrograde.core.custom_gradient import CustomName
from retrograde.diagnose.tape_notes import Exit, Notes
from retrograde.values.source_location import Place

# How long a stretch of a way is: a way that needs less of what is uncertain comes first.
_CALL, _DEAD_END, _INTO_VARIABLE, _OUT, _BRANCH = 1e-6, 1.0, 1.0, 1.5, 2.5

_FOR_THE_EYE = frozenset({"print", "format"})  # such values do not come back
_FEW = 64  # exits to think of for one constant


class ObservedCall(NamedTuple):
    """A call that the tape observed; `recorded` if a gradient can flow through it."""

    name: str
    ids: tuple[int, ...]
    place: Place | None
    recorded: bool

    def passes(self, position: int) -> bool:
        """Whether a gradient flows from the result to the input at `position`."""
        if isinstance(self.name, CustomName):
            return position not in self.name.withheld
        primitive = PRIMITIVES.get(self.name)
        if primitive is None or primitive.joint is not None:
            return self.recorded or primitive is not None
        return primitive.vjps is not None and primitive.vjps[position] is not None


class Stretch(NamedTuple):
    """One step of a way, from the value `start` to the value `end`.

    It goes by a `call`, from its input at `position`; or by an `exit`, where the value left.
    """

    start: int
    end: int
    call: ObservedCall | None
    position: int
    exit: Exit | None

    @property
    def is_open(self) -> bool:
        """Whether a gradient could flow here."""
        return self.call is not None and self.call.passes(self.position)


class History:
    """All that a tape saw, and the ways through it."""

    def __init__(self, tape: Any) -> None:
        self.notes: Notes = tape._notes or Notes()
        self.began: int = tape._began
        self.ended: int | None = tape._ended if tape._began and not tape._recording else None
        self.variables: dict[int, Any] = tape._variables
        self._connected: dict[int, Any] = tape._connected
        self.origins: dict[int, ObservedCall] = {}
        places = tape._places or {}
        for name, ids, outputs in _recorded(tape):
            place = places.get(outputs[0]) or getattr(name, "place", None)
            self.origins.update(dict.fromkeys(outputs, ObservedCall(name, ids, place, True)))
        for name, ids, outputs, place in self.notes.unrecorded:
            self.origins.update(dict.fromkeys(outputs, ObservedCall(name, ids, place, False)))
        self._stores = [e for e in self.notes.exits if e.variable is not None]
        self._exits = [
            e for e in self.notes.exits if e.variable is None and e.how not in _FOR_THE_EYE
        ]

    def followed_since(self, source: int) -> float:
        """The time from which on the tape followed `source`, which may be never."""
        if source not in self._connected:
            return float("inf")
        watched = self.notes.watched.get(source)
        return 0 if watched is None else watched.when

    def way(self, source: int, targets: list[int]) -> list[Stretch] | None:
        """The way from `source` to one of `targets` that meets the fewest obstacles."""
        since = self.followed_since(source)
        steps: dict[int, Stretch | None] = {}
        number = itertools.count()
        ahead = [(0.0, next(number), target, None) for target in targets]
        while ahead:
            length, _, node, step = heapq.heappop(ahead)
            if node in steps:
                continue
            steps[node] = step
            if node == source:
                return _traced(steps, source)
            for stretch, cost in self._stretches_to(node, step):
                if stretch.start not in steps:
                    if stretch.start == source and stretch.end < since:
                        cost += _DEAD_END
                    heapq.heappush(ahead, (length + cost, next(number), stretch.start, stretch))
        return None

    def _stretches_to(self, node: int, used: Stretch | None) -> Iterator[tuple[Stretch, float]]:
        """The stretches that end at `node`, each with its length; `used` is how it was used."""
        call = self.origins.get(node)
        if call is not None:
            for position, start in enumerate(call.ids):
                stretch = Stretch(start, node, call, position, None)
                yield stretch, _CALL if stretch.is_open else _DEAD_END
            return
        time = float("inf") if used is None else used.end
        for exit in self._stores:
            if exit.variable == node and exit.when < time:
                yield Stretch(exit.tensor, node, None, 0, exit), _INTO_VARIABLE
        if node > self.began:  # a constant or a variable made in the block
            before = [exit for exit in self._exits if exit.when < node]
            for age, exit in enumerate(reversed(before[-_FEW:])):
                cost = _BRANCH if exit.how == "bool" else _OUT
                yield Stretch(exit.tensor, node, None, 0, exit), cost + age * 1e-3

    def ancestors(self, nodes: list[int]) -> set[int]:
        """All values that `nodes` were made of, by calls that the tape saw."""
        seen: set[int] = set()
        ahead = list(nodes)
        while ahead:
            node = ahead.pop()
            if node not in seen:
                seen.add(node)
                call = self.origins.get(node)
                ahead += call.ids if call else ()
        return seen

    def uses_of(self, node: int) -> list[ObservedCall]:
        """The calls that took `node` as an input."""
        return [call for call in self.origins.values() if node in call.ids]


def _traced(steps: dict[int, Stretch | None], source: int) -> list[Stretch]:
    way = []
    step = steps[source]
    while step is not None:
        way.append(step)
        step = steps[step.end]
    return way


def _recorded(tape: Any) -> Iterator[tuple[str, tuple, tuple]]:
    """The name, inputs and outputs of each recorded call; also if the tape is spent."""
    if tape._entries is not None:
        for plan, ids, out, _, _ in tape._entries:
            yield plan.name, ids, tuple([i for i, _ in out]) if type(out) is tuple else (out,)
        return
    made = ((out, ids) for out, ids in tape._connected.items() if ids is not None)
    calls = itertools.groupby(made, key=lambda pair: id(pair[1]))  # outputs of a call share ids
    for name, (_, pairs) in zip(tape._names, calls, strict=True):
        outs, (ids, *_) = zip(*pairs, strict=True)
        yield name, ids, outs
