"""Random numbers for passes over a dataset, in an order that can be repeated."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from retrograde.ops import random_state


class Seeds:
    """Generators of random numbers, one for each pass; all alike unless `anew`."""

    def __init__(self, seed: int | None, anew: bool) -> None:
        draw = random_state.draw_key(seed)
        self.seed, self.anew = seed, anew
        # With a seed, the same for every dataset that is made with it.
        self.key, self.start = draw.key, draw.counter if seed is None else (0, 0)
        self._numbers = itertools.count()

    def passes_of(self, run: Any) -> Passes:
        """Which passes a run has made by this."""
        if id(self) not in run.passes:
            run.passes[id(self)] = Passes(self.key, self.start, self._numbers)
        return run.passes[id(self)]

    def _drawn(self, run: Any) -> np.random.Philox:
        passes = self.passes_of(run)
        number = passes.next() if self.anew else 0
        return np.random.Philox(counter=[0, number, *passes.start], key=[*passes.key])

    def generator(self, run: Any) -> np.random.Generator:
        """Numbers for the next pass."""
        return np.random.Generator(self._drawn(run))

    def streams(self, run: Any) -> Iterator[random_state.State]:
        """States of random numbers for the calls of one pass."""
        seed = int(self._drawn(run).random_raw())
        return (random_state.State(seed, place, {}) for place in itertools.count())


class Passes:
    """Which passes one run makes by a `Seeds`: their numbers.

    Runs share the numbers, each taking the next. Once a run was saved, it goes on by itself from
    the next one, as will the run that is resumed from there; that makes the earlier ones again.
    """

    def __init__(
        self,
        key: Sequence[int],
        start: Sequence[int],
        shared: Iterator[int],
        numbers: Sequence[int] = (),
        following: int | None = None,
    ) -> None:
        self.key, self.start = key, start
        self._shared, self._numbers, self._following = shared, list(numbers), following
        self._made = 0

    def next(self) -> int:
        """The number of the next pass."""
        if self._made == len(self._numbers):
            self._numbers.append(next(self._shared) if self._following is None else self._following)
            self._following = None if self._following is None else self._following + 1
        self._made += 1
        return self._numbers[self._made - 1]

    def state(self) -> dict[str, Any]:
        """What `resumed` needs."""
        if self._following is None:
            self._following = next(self._shared)
        return {
            "key": list(self.key),
            "start": list(self.start),
            "numbers": self._numbers,
            "following": self._following,
        }

    @classmethod
    def resumed(cls, state: dict[str, Any]) -> Passes:
        """The same passes once more, and those that follow."""
        return cls(shared=iter(()), **state)
