"""Where a value that is not finite comes from: back along its way, to the call that made it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from retrograde.core import dtypes
from retrograde.core.recorders import alone
from retrograde.core.rewinding import Cotangents, leading_to
from retrograde.core.tape_arguments import Asked, seed
from retrograde.core.tensor import Tensor
from retrograde.testimony.calls import Call, Values, calls_of
from retrograde.testimony.walking import is_finite, raw, walk

FORWARDS, BACKWARDS, GIVEN, UNHEARD = "forwards", "backwards", "given", "unheard"

_SQUARES = frozenset(("square", "multiply", "squared_difference", "power"))


@dataclass
class Step:
    """A value that is not finite, and the call that it came out of.

    `array` is the result of `call`; or, `backwards`, the cotangent of its input at `position`. A
    value that was `given` came out of no call; then `key` is its id.
    """

    direction: str
    array: Any
    call: Call | None = None
    position: int = 0
    key: int | None = None


@dataclass
class Birth:
    """The step that made a value that is not finite, what went into it, and the way from there.

    `inputs`, `y` and `g` are what the call saw; `None` stands for what is not known. `of_squares`
    says that the input is a sum of squares.
    """

    step: Step
    inputs: list = field(default_factory=list)
    y: Any = None
    g: Any = None
    way: list[Step] = field(default_factory=list)
    of_squares: bool = False


class Search:
    """Looks for the birth of what is not finite in the answer to a question asked of a tape."""

    def __init__(self, asked: Asked) -> None:
        self._asked = asked
        self.calls = calls_of(asked.entries)
        # Variables may have changed since: `read` has what they were.
        sources = [x for x in asked.sources if isinstance(x, Tensor)]
        self.values = Values(self.calls, [*asked.targets, *asked.read, *sources])
        self._number = {id(call.entry): call.number for call in self.calls}
        self._spoilt: dict[int, tuple[int, Any]] = {}  # id: the call behind, and the cotangent
        self._origins: dict[int, tuple] = {}  # the cotangents that calls saw, while still finite

    def run(self) -> Birth | None:
        """The birth of what is not finite in the targets, or else in the gradients."""
        if not self._asked.targets:
            return self._anywhere()
        if self._asked.spoilt is None:
            birth = self._before_the_walk()
            if birth is not None:
                return birth
        self._walk()
        for x in self._asked.sources:
            if x._id in self._spoilt:
                return self._backwards(x._id)
        return None

    def _before_the_walk(self) -> Birth | None:
        for x in self._asked.targets:
            if not is_finite(self.values.of(x._id)):
                return self._forwards(x._id, [])
        for x, weight in zip(self._asked.targets, self._asked.weights, strict=True):
            if weight is not None and not is_finite(seed(x, weight, boxed=False)):
                return Birth(Step(GIVEN, raw(weight)))
        return None

    def _anywhere(self) -> Birth | None:
        for call in self.calls:
            for key, y in zip(call.outputs, self.values.outputs(call), strict=True):
                if not is_finite(y):
                    return self._forwards(key, [])
        return None

    # Backwards

    def _walk(self) -> None:
        asked = self._asked
        cotangents = Cotangents(boxed=False)
        entries = list(asked.entries)
        if asked.spoilt is not None:
            cotangents.update(asked.spoilt.cotangents)
            self._look(entries.pop(), asked.spoilt.g, cotangents)
        else:
            for x, weight in zip(asked.targets, asked.weights, strict=True):
                if x._array.dtype in dtypes.INEXACT:
                    cotangents.deposit(x._id, seed(x, weight, boxed=False))
        wanted = {x._id for x in asked.sources}
        leads = leading_to(wanted, asked.entries)
        with alone():
            walk(entries, cotangents, wanted, leads, self._look)

    def _look(self, entry: tuple, gs: tuple, cotangents: Cotangents) -> None:
        number = self._number[id(entry)]
        for i in entry[1]:
            if i not in self._spoilt and not is_finite(cotangents.get(i)):
                self._spoilt[i] = (number, raw(cotangents[i]))
                if all(is_finite(g) for g in gs):
                    self._origins[number] = tuple(map(raw, gs))

    def _backwards(self, key: int) -> Birth:
        way = []
        while True:
            number, array = self._spoilt[key]
            call = self.calls[number]
            way.append(Step(BACKWARDS, array, call, call.inputs.index(key)))
            if number in self._origins:
                return self._born_backwards(call, way)
            if self._asked.spoilt is not None and call.entry is self._asked.entries[-1]:
                return self._born_unheard(call, way)
            key = next(i for i in call.outputs if i in self._spoilt)

    def _born_backwards(self, call: Call, way: list[Step]) -> Birth:
        """The rule of `call` made it; unless the rule was given values that were not finite."""
        inputs, outputs = self.values.inputs(call), self.values.outputs(call)
        for key, value in zip(call.outputs + call.inputs, outputs + inputs, strict=True):
            if key in call.saved and not is_finite(value):
                return self._forwards(key, way[::-1], call)
        *after, step = way
        gs = self._origins[call.number]
        g = gs[0] if len(gs) == 1 else None
        y = outputs[0] if len(outputs) == 1 else None
        return Birth(step, inputs, y, g, after[::-1], self._is_of_squares(call))

    def _born_unheard(self, call: Call, way: list[Step]) -> Birth:
        """It was there when the walk came to `call`, and the calls behind are gone."""
        gs = map(raw, self._asked.spoilt.g)
        return Birth(Step(UNHEARD, next(g for g in gs if not is_finite(g)), call), way=way[::-1])

    def _is_of_squares(self, call: Call) -> bool:
        total = self.values.producer.get(call.inputs[0])
        if total is None or total.name not in ("sum", "mean"):
            return False
        squares = self.values.producer.get(total.inputs[0])
        return squares is not None and squares.name in _SQUARES

    # Forwards

    def _forwards(self, key: int, after: list[Step], reader: Call | None = None) -> Birth:
        """The call that made the value of `key`, which is not finite, or what led to it."""
        way = []
        while True:
            call = self.values.producer.get(key)
            if call is None:
                step = Step(GIVEN, self.values.of(key, reader), key=key)
                return Birth(step, way=way[::-1] + after)
            array = self.values.of(key)
            inputs = self.values.inputs(call)
            way.append(Step(FORWARDS, array, call))
            bad = [i for i, x in zip(call.inputs, inputs, strict=True) if not is_finite(x)]
            if not bad:
                *rest, step = way
                return Birth(step, inputs, array, None, rest[::-1] + after)
            key, reader = min(bad, key=self._age), call

    def _age(self, key: int) -> int:
        call = self.values.producer.get(key)
        return -1 if call is None else call.number


def first_nan(birth: Birth) -> Step | None:
    """The first step on the way with NaN in it, if what was born is an infinity."""
    if np.isnan(birth.step.array).any():
        return None
    return next((step for step in birth.way if np.isnan(step.array).any()), None)
