"""Loops found again in a recording: work that is done many times in a row, on other values.

A recording knows no loops; a recurrence over 1,000 steps is 1,000 times the same calls. On NumPy
that is as good as a loop. XLA would compile each of them, which takes minutes; so they are reroll
up into a loop before, the way there and the way back alike, whatever Python code they came from.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from retrograde.core.host_callbacks import Host
from retrograde.core.program import Call
from retrograde.core.rules import Spec
from retrograde.program.simplification import hashable
from retrograde.program.sum_of_slices import accumulated

_FEWEST_TURNS = 8
_FEWEST_CALLS = 64  # in all turns together: what is less compiles quickly as it is
_FARTHEST = 4096  # calls between one turn and the next, at most


class Carried(NamedTuple):
    """A value that each turn takes from the one before: where that one made it, and the first."""

    call: int
    output: int
    first: int | None  # the number of the value, or None if only the last is of interest


class Loop(NamedTuple):
    """The same calls in `turns` turns.

    `body` are those of the first turn. Their inputs that differ are told in `sources`, by call and
    input: ("same", n), a value from outside; ("made", c, o), an output of this turn;
    ("carried", i), the i-th of `carried`; ("each", i), the i-th of `each`, which lists a value
    from outside for each turn. `kept` are the outputs, by call and place, of which all turns
    are needed outside, and `numbers` those of all outputs by turn.
    """

    turns: int
    body: list[Call]
    sources: list[tuple[tuple, ...]]
    carried: list[Carried]
    each: list[list[int]]
    kept: list[tuple[int, int]]
    numbers: list[list[tuple[int, ...]]]  # by turn, then by call
    specs: list[list[Spec]]  # of the outputs, by call


def reroll(calls: Sequence[Call], specs: Sequence[Spec], wanted: set[int]) -> list[Call | Loop]:
    """`calls`, with those that repeat reroll up into loops; `wanted` are needed afterwards."""
    if len(calls) < _FEWEST_CALLS:
        return list(calls)
    calls, specs = accumulated(calls, specs, wanted)
    calls = _parts_early(calls)
    tokens = _tokens(calls, specs)
    uses = _Uses(calls, wanted)
    result: list[Call | Loop] = []
    place = 0
    while place < len(calls):
        found = None
        for period in _periods(tokens, place):
            turns = _turns(tokens, place, period)
            if turns >= _FEWEST_TURNS and turns * period >= _FEWEST_CALLS:
                found = _loop(calls, specs, uses, place, period, turns)
                if found is not None:
                    break
        if found is None:
            result.append(calls[place])
            place += 1
        else:
            result.append(found)
            place += found.turns * len(found.body)
    return result


def _parts_early(calls: Sequence[Call]) -> list[Call]:
    """`calls`, with those that cut parts out of a value right behind the one that made it.

    A loop over the rows of an array cuts out another one in each turn, at another place.
    """
    made = {n for call in calls for n in call.outputs}
    waiting: dict[int | None, list[Call]] = {}
    rest = []
    for call in calls:
        if call.primitive.name == "take_slice":
            (x,) = call.inputs
            waiting.setdefault(x if x in made else None, []).append(call)
        else:
            rest.append(call)
    result: list[Call] = []
    ahead = [*reversed(rest), *reversed(waiting.get(None, ()))]
    while ahead:
        call = ahead.pop()
        result.append(call)
        for n in reversed(call.outputs):
            ahead += reversed(waiting.get(n, ()))
    return result


def _tokens(calls: Sequence[Call], specs: Sequence[Spec]) -> np.ndarray:
    """A number for each call; the same one for calls that do the same to other values."""
    known: dict[Any, int] = {}
    tokens = []
    for i, call in enumerate(calls):
        attrs = None if type(call.primitive) is Host else hashable(call.attrs)
        shapes = tuple([specs[n] for n in (*call.inputs, *call.outputs)])
        key = i if attrs is None else (call.primitive.name, attrs, len(call.inputs), shapes)
        tokens.append(known.setdefault(key, len(known)))
    return np.array(tokens)


def _periods(tokens: np.ndarray, place: int) -> list[int]:
    """The distances to the next calls of the same kind, which may be those between turns."""
    ahead = tokens[place + 1 : place + 1 + _FARTHEST]
    return (np.flatnonzero(ahead == tokens[place])[:6] + 1).tolist()


def _turns(tokens: np.ndarray, place: int, period: int) -> int:
    """How many turns of `period` calls follow each other from `place` on."""
    alike = tokens[place:-period] == tokens[place + period :]
    differing = np.flatnonzero(~alike)
    length = int(differing[0]) if differing.size else len(alike)
    return length // period + 1


class _Uses:
    """Where values are used."""

    def __init__(self, calls: Sequence[Call], wanted: set[int]) -> None:
        self.users: dict[int, list[int]] = {}
        for i, call in enumerate(calls):
            for n in call.inputs:
                self.users.setdefault(n, []).append(i)
        self.wanted = wanted

    def outside(self, number: int, start: int, stop: int) -> bool:
        """Whether a value is used by calls before `start` or from `stop` on, or in the end."""
        users = self.users.get(number, ())
        return number in self.wanted or any(i < start or i >= stop for i in users)


def _loop(
    calls: Sequence[Call],
    specs: Sequence[Spec],
    uses: _Uses,
    start: int,
    period: int,
    turns: int,
) -> Loop | None:
    """The loop of `turns` turns from `start` on; `None` if its turns hang together otherwise.

    The last turns may differ from the others in how they hang together, and are left out then.
    """
    while turns >= _FEWEST_TURNS and turns * period >= _FEWEST_CALLS:
        loop = _Builder(calls, specs, uses, start, period, turns).loop()
        if isinstance(loop, Loop):
            return loop
        if loop < _FEWEST_TURNS:
            return None
        turns = loop
    return None


class _Builder:
    """Finds out how the turns hang together."""

    def __init__(
        self,
        calls: Sequence[Call],
        specs: Sequence[Spec],
        uses: _Uses,
        start: int,
        period: int,
        turns: int,
    ) -> None:
        self.calls = calls
        self.specs = specs
        self.uses = uses
        self.start, self.period, self.turns = start, period, turns
        self.stop = start + period * turns
        self.carried: list[Carried] = []
        self.each: list[list[int]] = []
        self._places: dict[int, tuple[int, int, int]] = {}
        for i in range(start, self.stop):
            turn, c = divmod(i - start, period)
            for o, n in enumerate(calls[i].outputs):
                self._places[n] = turn, c, o

    def call(self, turn: int, c: int) -> Call:
        return self.calls[self.start + turn * self.period + c]

    def loop(self) -> Loop | int:
        """The loop, or how many of its first turns hang together in one way."""
        sources = []
        for c in range(self.period):
            row = []
            for q in range(len(self.call(0, c).inputs)):
                source = self._source(c, q)
                if isinstance(source, int):
                    return source
                row.append(source)
            sources.append(tuple(row))
        kept = self._kept()
        numbers = [
            [self.call(turn, c).outputs for c in range(self.period)] for turn in range(self.turns)
        ]
        body = [self.call(0, c) for c in range(self.period)]
        specs = [[self.specs[n] for n in call.outputs] for call in body]
        return Loop(self.turns, body, sources, self.carried, self.each, kept, numbers, specs)

    def _source(self, c: int, q: int) -> tuple | int:
        """Where an input comes from in every turn; or in how many turns it comes from one place."""
        numbers = [self.call(turn, c).inputs[q] for turn in range(self.turns)]
        places = [self._places.get(n) for n in numbers]
        second = places[1]
        if all(p is None for p in places):
            if len(set(numbers)) == 1:
                return "same", numbers[0]
            return "each", self._index(self.each, numbers)
        if second is None:
            return next(turn for turn, p in enumerate(places) if p is not None)
        turn, made_by, output = second
        if turn == 1 and places[0] == (0, made_by, output):
            expected: list = [(turn, made_by, output) for turn in range(self.turns)]
            source: tuple = ("made", made_by, output)
        elif turn == 0 and places[0] is None:
            expected = [None, *((turn - 1, made_by, output) for turn in range(1, self.turns))]
            source = ("carried", self._index(self.carried, Carried(made_by, output, numbers[0])))
        else:
            return 0
        wrong = next(
            (t for t, (a, b) in enumerate(zip(places, expected, strict=True)) if a != b), None
        )
        return source if wrong is None else wrong

    def _index(self, values: list, value: Any) -> int:
        if value not in values:
            values.append(value)
        return values.index(value)

    def _kept(self) -> list[tuple[int, int]]:
        """Outputs of which all turns are needed outside. Of others the last one may be."""
        kept = []
        for c in range(self.period):
            for o in range(len(self.call(0, c).outputs)):
                numbers = [self.call(turn, c).outputs[o] for turn in range(self.turns)]
                needed = [self.uses.outside(n, self.start, self.stop) for n in numbers]
                if any(needed[:-1]):
                    kept.append((c, o))
                elif needed[-1] and not any(x[:2] == (c, o) for x in self.carried):
                    self.carried.append(Carried(c, o, None))
        return kept
