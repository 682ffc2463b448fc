"""Loop re-rolling: finds repeated sequences of calls and converts each to a loop.

A program has no loops: a recurrence over 1,000 steps repeats the same calls 1,000 times. NumPy runs
them as fast as a loop. XLA would compile each call, which takes minutes. So loops are re-rolled
before compilation, in the forward and the backward pass, regardless of the Python code.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, final

import numpy as np

from retrograde.core.program import Call, hashable
from retrograde.core.rules import Spec
from retrograde.ops.host_callbacks import HostCallback
from retrograde.program.sum_of_slices import sum_slices
from retrograde.values.thresholds import MAX_LOOP_PERIOD, MIN_LOOP_CALLS, MIN_LOOP_ITERATIONS


class Carried(NamedTuple):
    """A loop-carried value: the call and output that compute it, and its first value."""

    call: int
    output: int
    first: int | None  # the number of the value, or None if only the last one is read


@final
class Loop(NamedTuple):
    """The same calls in each of `iterations`.

    `body` are the calls of the first iteration. `sources` says, by call and input, where an input
    comes from: ("same", n), a value from outside; ("output", c, o), an output of this iteration;
    ("carried", i), the i-th of `carried`; ("each", i), the i-th of `each`, which lists a value
    from outside for each iteration. `kept` are the outputs, by call and position, that are read
    outside for all iterations, and `numbers` are the numbers of all outputs.
    """

    iterations: int
    body: list[Call]
    sources: list[tuple[tuple, ...]]
    carried: list[Carried]
    each: list[list[int]]
    kept: list[tuple[int, int]]
    numbers: list[list[tuple[int, ...]]]  # by iteration, then by call
    specs: list[list[Spec]]  # of the outputs, by call


def reroll(calls: Sequence[Call], specs: Sequence[Spec], read_later: set[int]) -> list[Call | Loop]:
    """Replaces repeated calls by loops. `read_later` are the values that are read afterwards."""
    if len(calls) < MIN_LOOP_CALLS:
        return list(calls)
    calls, specs = sum_slices(calls, specs, read_later)
    calls = _move_slices(calls)
    program = _Calls(calls, specs, read_later)
    tokens = _tokenize(calls, specs)
    result: list[Call | Loop] = []
    start = 0
    while start < len(calls):
        loop = None
        for period in _find_periods(tokens, start):
            iterations = _count_iterations(tokens, start, period)
            if iterations >= MIN_LOOP_ITERATIONS and iterations * period >= MIN_LOOP_CALLS:
                loop = _find_loop(program, start, period, iterations)
                if loop is not None:
                    break
        if loop is None:
            result.append(calls[start])
            start += 1
        else:
            result.append(loop)
            start += loop.iterations * len(loop.body)
    return result


def _move_slices(calls: Sequence[Call]) -> list[Call]:
    """Moves every slice of a value directly after the call that computes the value.

    A loop over the rows of an array takes a different slice in each iteration.
    """
    computed = {n for call in calls for n in call.outputs}
    pending: dict[int | None, list[Call]] = {}
    other_calls = []
    for call in calls:
        if call.primitive.name == "take_slice":
            (x,) = call.inputs
            pending.setdefault(x if x in computed else None, []).append(call)
        else:
            other_calls.append(call)
    result: list[Call] = []
    stack = [*reversed(other_calls), *reversed(pending.get(None, ()))]
    while stack:
        call = stack.pop()
        result.append(call)
        for n in reversed(call.outputs):
            stack += reversed(pending.get(n, ()))
    return result


def _tokenize(calls: Sequence[Call], specs: Sequence[Spec]) -> np.ndarray:
    """Returns a number for each call, which is the same for equal calls on different values."""
    tokens_by_key: dict[Any, int] = {}
    tokens = []
    for i, call in enumerate(calls):
        attrs = None if type(call.primitive) is HostCallback else hashable(call.attrs)
        shapes = tuple([specs[n] for n in (*call.inputs, *call.outputs)])
        key = i if attrs is None else (call.primitive.name, attrs, len(call.inputs), shapes)
        tokens.append(tokens_by_key.setdefault(key, len(tokens_by_key)))
    return np.array(tokens)


def _find_periods(tokens: np.ndarray, start: int) -> list[int]:
    """Returns the distances to the next equal calls, which may start the next iteration."""
    ahead = tokens[start + 1 : start + 1 + MAX_LOOP_PERIOD]
    return (np.flatnonzero(ahead == tokens[start])[:6] + 1).tolist()


def _count_iterations(tokens: np.ndarray, start: int, period: int) -> int:
    """Returns how many iterations of `period` calls follow each other from `start` on."""
    are_equal = tokens[start:-period] == tokens[start + period :]
    differences = np.flatnonzero(~are_equal)
    length = int(differences[0]) if differences.size else len(are_equal)
    return length // period + 1


class _Calls:
    """All calls of a program, and which of them read each value."""

    def __init__(self, calls: Sequence[Call], specs: Sequence[Spec], read_later: set[int]) -> None:
        self.calls, self.specs, self.read_later = calls, specs, read_later
        self.readers: dict[int, list[int]] = {}
        for i, call in enumerate(calls):
            for n in call.inputs:
                self.readers.setdefault(n, []).append(i)


def _find_loop(program: _Calls, start: int, period: int, iterations: int) -> Loop | None:
    """Returns the loop from `start` on, or `None` if its iterations are connected differently.

    The last iterations are omitted if only they are connected differently.
    """
    while iterations >= MIN_LOOP_ITERATIONS and iterations * period >= MIN_LOOP_CALLS:
        loop = _Builder(program, start, period, iterations).build()
        if isinstance(loop, Loop):
            return loop
        if loop < MIN_LOOP_ITERATIONS:
            return None
        iterations = loop
    return None


class _Builder:
    """Determines how the iterations of a loop are connected."""

    def __init__(self, program: _Calls, start: int, period: int, iterations: int) -> None:
        self.program = program
        self.positions = range(start, start + period * iterations)
        self.count = iterations
        starts = self.positions[::period]
        self.iterations = [program.calls[i : i + period] for i in starts]
        self.carried: list[Carried] = []
        self.each: list[list[int]] = []
        self._makers = {
            n: (iteration, c, o)
            for iteration, calls in enumerate(self.iterations)
            for c, call in enumerate(calls)
            for o, n in enumerate(call.outputs)
        }

    def build(self) -> Loop | int:
        """Returns the loop, or the number of first iterations that are connected equally."""
        body = self.iterations[0]
        sources = []
        for c, call in enumerate(body):
            row = []
            for q in range(len(call.inputs)):
                source = self._find_source(c, q)
                if isinstance(source, int):
                    return source
                row.append(source)
            sources.append(tuple(row))
        kept = self._find_kept_outputs()
        numbers = [[call.outputs for call in calls] for calls in self.iterations]
        specs = [[self.program.specs[n] for n in call.outputs] for call in body]
        return Loop(self.count, list(body), sources, self.carried, self.each, kept, numbers, specs)

    def _find_source(self, c: int, q: int) -> tuple | int:
        """Returns the source of an input, or the number of iterations with the same source."""
        numbers = [calls[c].inputs[q] for calls in self.iterations]
        positions = [self._makers.get(n) for n in numbers]
        second = positions[1]
        if all(p is None for p in positions):
            if len(set(numbers)) == 1:
                return "same", numbers[0]
            return "each", self._add_unique(self.each, numbers)
        if second is None:
            return next(iteration for iteration, p in enumerate(positions) if p is not None)
        iteration, maker, output = second
        if iteration == 1 and positions[0] == (0, maker, output):
            expected: list = [(i, maker, output) for i in range(self.count)]
            source: tuple = ("output", maker, output)
        elif iteration == 0 and positions[0] is None:
            expected = [None, *((i, maker, output) for i in range(self.count - 1))]
            source = ("carried", self._add_unique(self.carried, Carried(maker, output, numbers[0])))
        else:
            return 0
        pairs = enumerate(zip(positions, expected, strict=True))
        return next((i for i, (a, b) in pairs if a != b), source)

    def _add_unique(self, values: list, value: Any) -> int:
        if value not in values:
            values.append(value)
        return values.index(value)

    def _find_kept_outputs(self) -> list[tuple[int, int]]:
        """Returns the outputs that are read outside for all iterations, not only the last."""
        kept = []
        for c, call in enumerate(self.iterations[0]):
            for o in range(len(call.outputs)):
                needed = [self._is_read_outside(calls[c].outputs[o]) for calls in self.iterations]
                if any(needed[:-1]):
                    kept.append((c, o))
                elif needed[-1] and not any(x[:2] == (c, o) for x in self.carried):
                    self.carried.append(Carried(c, o, None))
        return kept

    def _is_read_outside(self, number: int) -> bool:
        readers = self.program.readers.get(number, ())
        return number in self.program.read_later or any(i not in self.positions for i in readers)
