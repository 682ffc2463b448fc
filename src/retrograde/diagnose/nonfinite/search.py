"""Where a value that is not finite comes from: back along its way, to the call that made it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from retrograde.core.backward import Cotangents, depending_on
from retrograde.core.recorders import alone
from retrograde.core.tape_arguments import seed
from retrograde.core.tensor import Tensor
from retrograde.diagnose.backward_steps import is_finite, raw, step_by_step
from retrograde.diagnose.calls import RecordedCall, Values, calls_of, inside_of, values_inside
from retrograde.diagnose.tape_notes import LastGradient
from retrograde.values import dtypes

FORWARDS, BACKWARDS, GIVEN, UNHEARD = "forwards", "backwards", "given", "unheard"

_SQUARES = frozenset(("square", "multiply", "squared_difference", "power"))


@dataclass
class Step:
    """A value that is not finite, and the call that it came out of.

    `array` is the result of `call`; or, `backwards`, the cotangent of its input at `position`. A
    value that was `given` came out of no call. `key` is the id of a value on the way forwards.
    """

    direction: str
    array: Any
    call: RecordedCall | None = None
    position: int = 0
    key: int | None = None


@dataclass
class Birth:
    """The step that made a value that is not finite, what went into it, and the way from there.

    `inputs`, `y` and `g` are what the call saw; `None` stands for what is not known. `sums` says
    what the input is a sum or mean of, if that is known: "squares" or "deviations", squared. If it
    was inside of a function, `function` is its call.
    """

    step: Step
    inputs: list = field(default_factory=list)
    y: Any = None
    g: Any = None
    way: list[Step] = field(default_factory=list)
    sums: str | None = None
    function: RecordedCall | None = None


class Search:
    """Looks for the birth of what is not finite in the answer to a question asked of a tape."""

    def __init__(self, asked: LastGradient) -> None:
        self._last = asked
        self.calls = calls_of(asked.entries)
        # Variables may have changed since: `read` has what they were.
        sources = [x for x in asked.sources if isinstance(x, Tensor)]
        self.values = Values(self.calls, [*asked.targets, *asked.read, *sources])
        self._number = {id(call.entry): call.number for call in self.calls}
        self._spoilt: dict[int, tuple[int, Any]] = {}  # id: the call behind, and the cotangent
        self._origins: dict[int, tuple] = {}  # the cotangents that calls saw, while still finite

    def run(self) -> Birth | None:
        """The birth of what is not finite in the targets, or else in the gradients."""
        birth = self._found()
        if birth is None or birth.step.call is None:
            return birth
        found = _look_inside(birth, self._origins.get(birth.step.call.number, ()))
        while found.step.call is None and found.step.key in self.values.producer:
            # A function was given it, by calls of the tape that are to be looked at in their turn.
            self.values.know(found.step.key, found.step.array)
            found = _look_inside(_way_forwards(self.values, found.step.key, found.way), ())
        return found

    def _found(self) -> Birth | None:
        if not self._last.targets:
            return self._anywhere()
        if self._last.nonfinite is None:
            birth = self._before_the_walk()
            if birth is not None:
                return birth
        self._walk()
        for x in self._last.sources:
            if x._id in self._spoilt:
                return self._backwards(x._id)
        return None

    def _before_the_walk(self) -> Birth | None:
        for x in self._last.targets:
            if not is_finite(self.values.of(x._id)):
                return _way_forwards(self.values, x._id, [])
        for x, weight in zip(self._last.targets, self._last.weights, strict=True):
            if weight is not None and not is_finite(seed(x, weight, on_tensors=False)):
                return Birth(Step(GIVEN, raw(weight)))
        return None

    def _anywhere(self) -> Birth | None:
        for call in self.calls:
            for key, y in zip(call.outputs, self.values.outputs(call), strict=True):
                if not is_finite(y):
                    return _way_forwards(self.values, key, [])
        return None

    # Backwards

    def _walk(self) -> None:
        asked = self._last
        cotangents = Cotangents(on_tensors=False)
        entries = list(asked.entries)
        if asked.nonfinite is not None:
            cotangents.update(asked.nonfinite.cotangents)
            self._look(entries.pop(), asked.nonfinite.g, cotangents)
        else:
            for x, weight in zip(asked.targets, asked.weights, strict=True):
                if x._spec.dtype in dtypes.INEXACT:
                    cotangents.deposit(x._id, seed(x, weight, on_tensors=False))
        wanted = {x._id for x in asked.sources}
        needed = depending_on(wanted, asked.entries)
        with alone():
            step_by_step(entries, cotangents, wanted, needed, self._look)

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
            if self._last.nonfinite is not None and call.entry is self._last.entries[-1]:
                return self._born_unheard(call, way)
            key = next(i for i in call.outputs if i in self._spoilt)

    def _born_backwards(self, call: RecordedCall, way: list[Step]) -> Birth:
        """The rule of `call` made it; unless the rule was given values that were not finite."""
        inputs, outputs = self.values.inputs(call), self.values.outputs(call)
        for key, value in zip(call.outputs + call.inputs, outputs + inputs, strict=True):
            if key in call.saved and not is_finite(value):
                return _way_forwards(self.values, key, way[::-1], call)
        *after, step = way
        gs = self._origins[call.number]
        g = gs[0] if len(gs) == 1 else None
        y = outputs[0] if len(outputs) == 1 else None
        return Birth(step, inputs, y, g, after[::-1], _summed_in(self.values, call))

    def _born_unheard(self, call: RecordedCall, way: list[Step]) -> Birth:
        """It was there when the walk came to `call`, and the calls behind are gone."""
        gs = map(raw, self._last.nonfinite.g)
        return Birth(Step(UNHEARD, next(g for g in gs if not is_finite(g)), call), way=way[::-1])


def _way_forwards(
    values: Values, key: int, after: list[Step], reader: RecordedCall | None = None
) -> Birth:
    """The call that made the value of `key`, which is not finite, or what led to it."""
    way = []
    while True:
        call = values.producer.get(key)
        if call is None:
            step = Step(GIVEN, values.of(key, reader), key=key)
            return Birth(step, way=way[::-1] + after)
        array = values.of(key)
        inputs = values.inputs(call)
        way.append(Step(FORWARDS, array, call, key=key))
        bad = [i for i, x in zip(call.inputs, inputs, strict=True) if not is_finite(x)]
        bad = bad or _bad_further_back(values, call)
        if not bad:
            *rest, step = way
            return Birth(step, inputs, array, None, rest[::-1] + after)
        key, reader = min(bad, key=lambda i: _age(values, i)), call


def _bad_further_back(values: Values, call: RecordedCall) -> list[int]:
    """Values that are not finite, behind inputs of `call` that are not known any more."""
    bad: list[int] = []
    pending, seen = list(call.inputs), set()
    while pending:
        key = pending.pop()
        if key in seen:
            continue
        seen.add(key)
        value = values.of(key)
        if not is_finite(value):
            bad.append(key)
        elif value is None and key in values.producer:
            pending += values.producer[key].inputs
    return bad


def _age(values: Values, key: int) -> int:
    call = values.producer.get(key)
    return -1 if call is None else call.number


def _summed_in(values: Values, call: RecordedCall) -> str | None:
    """What the input of `call` is a sum or mean of."""
    total = values.producer.get(call.inputs[0])
    if total is None or total.name not in ("sum", "mean"):
        return None
    squares = values.producer.get(total.inputs[0])
    if squares is None or squares.name not in _SQUARES:
        return None
    root = values.producer.get(squares.inputs[0])
    deviates = total.name == "mean" and root is not None and root.name == "subtract"
    return "deviations" if deviates else "squares"


def _look_inside(birth: Birth, gs: tuple) -> Birth:
    """If a function made it, which of the calls in there did."""
    step, outer = birth.step, birth.step.call
    if step.direction not in (FORWARDS, BACKWARDS):
        return birth
    inside = inside_of(outer, gs)
    if inside is None:
        return birth
    values = values_inside(inside)
    if step.direction == BACKWARDS:
        key = inside.gradients[step.position]
    else:
        key = inside.program.results[outer.outputs.index(step.key)]
    if is_finite(values.of(key)):
        return birth  # as it may be if XLA computed it otherwise
    found = _way_forwards(values, key, [step, *birth.way])
    if found.step.call is None:
        named = dict(zip(inside.program.arguments, outer.inputs, strict=True))
        found.step.key = named.get(found.step.key, -1)
        return found
    origin = inside.origins.get(found.step.call.outputs[0])
    of = origin and origin.of
    if of in values.producer:
        derived = values.producer[of]
        found.step = Step(BACKWARDS, found.step.array, derived)
        found.inputs, found.y = values.inputs(derived), values.of(of)
        found.sums = _summed_in(values, derived)
    found.function = outer
    return found


def first_nan(birth: Birth) -> Step | None:
    """The first step on the way with NaN in it, if what was born is an infinity."""
    if np.isnan(birth.step.array).any():
        return None
    return next((step for step in birth.way if np.isnan(step.array).any()), None)
