"""Reproducible random numbers for iterations over a dataset."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from retrograde.ops import random_state


class Seeds:
    """Creates a random generator for each iteration. Without `reshuffle`, all are identical."""

    def __init__(self, seed: int | None, reshuffle: bool) -> None:
        draw = random_state.draw_key(seed)
        self.seed, self.reshuffle = seed, reshuffle
        # Datasets with the same seed draw the same numbers.
        self.key, self.start = draw.key, draw.counter if seed is None else (0, 0)
        self._numbers = itertools.count()

    def iterations_in(self, run: Any, worker: int = 0) -> IterationNumbers:
        """Returns the record of this object's iterations within a run.

        Without a seed, each `worker` that starts the record draws other numbers.
        """
        if id(self) not in run.iterations:
            count, stream = self.start
            if self.seed is None:
                stream = (stream + (worker << 40)) % (1 << 64)
            run.iterations[id(self)] = IterationNumbers(self.key, (count, stream), self._numbers)
        return run.iterations[id(self)]

    def _bit_generator(self, run: Any) -> np.random.Philox:
        iterations = self.iterations_in(run)
        number = iterations.next() if self.reshuffle else 0
        # NumPy would convert a list with a number above 2**63 to float64.
        counter = np.array([0, number, *iterations.start], np.uint64)
        return np.random.Philox(counter=counter, key=np.array([*iterations.key], np.uint64))

    def generator(self, run: Any) -> np.random.Generator:
        """Returns the generator for the next iteration."""
        return np.random.Generator(self._bit_generator(run))

    def streams(self, run: Any) -> Iterator[random_state.State]:
        """Returns random states for the calls of one iteration."""
        seed = int(self._bit_generator(run).random_raw())
        return (random_state.State(seed, call, {}) for call in itertools.count())


class IterationNumbers:
    """The iteration numbers of one run. They determine its random numbers.

    Runs share a counter. After a run was saved, it uses its own counter, which starts at the next
    number, so that a resumed run continues with the same numbers. A resumed run first repeats the
    saved numbers.
    """

    def __init__(
        self,
        key: Sequence[int],
        start: Sequence[int],
        shared: Iterator[int],
        numbers: Sequence[int] = (),
        next_number: int | None = None,
    ) -> None:
        self.key, self.start = key, start
        self._shared, self._numbers, self._next_number = shared, list(numbers), next_number
        self._used = 0

    def next(self) -> int:
        """Returns the number of the next iteration."""
        if self._used == len(self._numbers):
            self._numbers.append(
                next(self._shared) if self._next_number is None else self._next_number
            )
            self._next_number = None if self._next_number is None else self._next_number + 1
        self._used += 1
        return self._numbers[self._used - 1]

    def state(self) -> dict[str, Any]:
        """Returns the state for `resume`."""
        if self._next_number is None:
            self._next_number = next(self._shared)
        return {
            "key": list(self.key),
            "start": list(self.start),
            "numbers": self._numbers,
            "next_number": self._next_number,
        }

    @classmethod
    def resume(cls, state: dict[str, Any]) -> IterationNumbers:
        """Creates an object that repeats the saved numbers and continues after them."""
        return cls(shared=iter(()), **state)
