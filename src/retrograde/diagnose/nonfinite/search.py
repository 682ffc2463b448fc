"""Traces a NaN or Inf back to the call that produced it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from retrograde.core.backward import Cotangents, depending_on
from retrograde.core.recorders import isolate
from retrograde.core.tape_arguments import seed
from retrograde.core.tensor import Tensor
from retrograde.diagnose.backward_steps import is_finite, step_by_step, to_numpy
from retrograde.diagnose.calls import RecordedCall, Values, calls_of, details_of, values_inside
from retrograde.diagnose.tape_notes import LastGradient
from retrograde.values import dtypes

FORWARD, BACKWARD, INPUT, UNKNOWN = "forward", "backward", "input", "unknown"

_SQUARES = frozenset(("square", "multiply", "squared_difference", "power"))


@dataclass
class Step:
    """A non-finite value, and the call that returned it.

    `array` is the output of `call`; in the "backward" direction, it is the cotangent of the input
    at `position`. An "input" has no call. `key` is the id of a value of the forward pass.
    """

    direction: str
    array: Any
    call: RecordedCall | None = None
    position: int = 0
    key: int | None = None


@dataclass
class NonfiniteOrigin:
    """The step that produced a NaN or Inf, its inputs, and the path from there.

    `inputs`, `y` and `g` are the inputs, output and cotangent of the call; `None` if unknown.
    `sums` names the terms that the input is a sum or mean of, if known: "squares" or "deviations"
    (squared). If the step was inside a function, `function` is the call to the function.
    """

    step: Step
    inputs: list = field(default_factory=list)
    y: Any = None
    g: Any = None
    path: list[Step] = field(default_factory=list)
    sums: str | None = None
    function: RecordedCall | None = None


class Search:
    """Searches the last gradient of a tape for the origin of a NaN or Inf."""

    def __init__(self, last: LastGradient) -> None:
        self._last = last
        self.calls = calls_of(last.entries)
        # Variables may have changed since then: `read` has the values that they had.
        sources = [x for x in last.sources if isinstance(x, Tensor)]
        self.values = Values(self.calls, [*last.targets, *last.read, *sources])
        self._number = {id(call.entry): call.number for call in self.calls}
        # By the id of an input: the first call that returned a non-finite cotangent, and the
        # cotangent.
        self._nonfinite: dict[int, tuple[int, Any]] = {}
        # By the number of a call with non-finite results: its own cotangents, if they were finite.
        self._finite_cotangents: dict[int, tuple] = {}

    def run(self) -> NonfiniteOrigin | None:
        """Returns the origin of a NaN or Inf in the targets, or else in the gradients."""
        origin = self._find()
        if origin is None or origin.step.call is None:
            return origin
        gs = self._finite_cotangents.get(origin.step.call.number, ())
        inner = _search_inside(origin, gs)
        while inner.step.call is None and inner.step.key in self.values.producer:
            # The value was an argument of a function, and calls of the tape produced it.
            self.values.set(inner.step.key, inner.step.array)
            inner = _search_inside(_search_forward(self.values, inner.step.key, inner.path), ())
        return inner

    def _find(self) -> NonfiniteOrigin | None:
        if not self._last.targets:
            return self._find_in_all_calls()
        if self._last.nonfinite is None:
            origin = self._find_in_targets()
            if origin is not None:
                return origin
        self._run_backward()
        for x in self._last.sources:
            if x._id in self._nonfinite:
                return self._search_backward(x._id)
        return None

    def _find_in_targets(self) -> NonfiniteOrigin | None:
        for x in self._last.targets:
            if not is_finite(self.values.get(x._id)):
                return _search_forward(self.values, x._id, [])
        for x, weight in zip(self._last.targets, self._last.weights, strict=True):
            if weight is not None and not is_finite(seed(x, weight, on_tensors=False)):
                return NonfiniteOrigin(Step(INPUT, to_numpy(weight)))
        return None

    def _find_in_all_calls(self) -> NonfiniteOrigin | None:
        for call in self.calls:
            for key, y in zip(call.outputs, self.values.outputs(call), strict=True):
                if not is_finite(y):
                    return _search_forward(self.values, key, [])
        return None

    # The backward pass

    def _run_backward(self) -> None:
        last = self._last
        cotangents = Cotangents(on_tensors=False)
        entries = list(last.entries)
        if last.nonfinite is not None:
            cotangents.update(last.nonfinite.cotangents)
            self._check_step(entries.pop(), last.nonfinite.g, cotangents)
        else:
            for x, weight in zip(last.targets, last.weights, strict=True):
                if x._spec.dtype in dtypes.INEXACT:
                    cotangents.deposit(x._id, seed(x, weight, on_tensors=False))
        source_ids = {x._id for x in last.sources}
        needed = depending_on(source_ids, last.entries)
        with isolate():
            step_by_step(entries, cotangents, source_ids, needed, self._check_step)

    def _check_step(self, entry: tuple, gs: tuple, cotangents: Cotangents) -> None:
        number = self._number[id(entry)]
        for i in entry[1]:
            if i not in self._nonfinite and not is_finite(cotangents.get(i)):
                self._nonfinite[i] = (number, to_numpy(cotangents[i]))
                if all(is_finite(g) for g in gs):
                    self._finite_cotangents[number] = tuple(map(to_numpy, gs))

    def _search_backward(self, key: int) -> NonfiniteOrigin:
        path = []
        while True:
            number, array = self._nonfinite[key]
            call = self.calls[number]
            path.append(Step(BACKWARD, array, call, call.inputs.index(key)))
            if number in self._finite_cotangents:
                return self._origin_in_gradient(call, path)
            if self._last.nonfinite is not None and call.entry is self._last.entries[-1]:
                return self._unknown_origin(call, path)
            key = next(i for i in call.outputs if i in self._nonfinite)

    def _origin_in_gradient(self, call: RecordedCall, path: list[Step]) -> NonfiniteOrigin:
        """Returns the gradient of `call`, or the origin of a non-finite value that it reads."""
        inputs, outputs = self.values.inputs(call), self.values.outputs(call)
        for key, value in zip(call.outputs + call.inputs, outputs + inputs, strict=True):
            if key in call.saved and not is_finite(value):
                return _search_forward(self.values, key, path[::-1], call)
        *after, step = path
        gs = self._finite_cotangents[call.number]
        g = gs[0] if len(gs) == 1 else None
        y = outputs[0] if len(outputs) == 1 else None
        return NonfiniteOrigin(step, inputs, y, g, after[::-1], _summed_terms(self.values, call))

    def _unknown_origin(self, call: RecordedCall, path: list[Step]) -> NonfiniteOrigin:
        """Returns the cotangent of `call`, because the calls after `call` are freed."""
        gs = map(to_numpy, self._last.nonfinite.g)
        step = Step(UNKNOWN, next(g for g in gs if not is_finite(g)), call)
        return NonfiniteOrigin(step, path=path[::-1])


def _search_forward(
    values: Values, key: int, after: list[Step], reader: RecordedCall | None = None
) -> NonfiniteOrigin:
    """Returns the origin of the non-finite value with id `key`; `after` ends its path."""
    path = []
    while True:
        call = values.producer.get(key)
        if call is None:
            step = Step(INPUT, values.get(key, reader), key=key)
            return NonfiniteOrigin(step, path=path[::-1] + after)
        array = values.get(key)
        inputs = values.inputs(call)
        path.append(Step(FORWARD, array, call, key=key))
        nonfinite_ids = [i for i, x in zip(call.inputs, inputs, strict=True) if not is_finite(x)]
        nonfinite_ids = nonfinite_ids or _nonfinite_ancestors(values, call)
        if not nonfinite_ids:
            *rest, step = path
            return NonfiniteOrigin(step, inputs, array, None, rest[::-1] + after)
        key, reader = min(nonfinite_ids, key=lambda i: _call_number(values, i)), call


def _nonfinite_ancestors(values: Values, call: RecordedCall) -> list[int]:
    """Returns non-finite values from which freed inputs of `call` were computed."""
    nonfinite_ids: list[int] = []
    pending, seen = list(call.inputs), set()
    while pending:
        key = pending.pop()
        if key in seen:
            continue
        seen.add(key)
        value = values.get(key)
        if not is_finite(value):
            nonfinite_ids.append(key)
        elif value is None and key in values.producer:
            pending += values.producer[key].inputs
    return nonfinite_ids


def _call_number(values: Values, key: int) -> int:
    call = values.producer.get(key)
    return -1 if call is None else call.number


def _summed_terms(values: Values, call: RecordedCall) -> str | None:
    """Returns the name of the terms that the input of `call` is a sum or mean of, if known."""
    total = values.producer.get(call.inputs[0])
    if total is None or total.name not in ("sum", "mean"):
        return None
    squares = values.producer.get(total.inputs[0])
    if squares is None or squares.name not in _SQUARES:
        return None
    root = values.producer.get(squares.inputs[0])
    deviates = total.name == "mean" and root is not None and root.name == "subtract"
    return "deviations" if deviates else "squares"


def _search_inside(origin: NonfiniteOrigin, gs: tuple) -> NonfiniteOrigin:
    """Returns the origin inside a function if the call of `origin` is a function call."""
    step, outer = origin.step, origin.step.call
    if step.direction not in (FORWARD, BACKWARD):
        return origin
    inside = details_of(outer, gs)
    if inside is None:
        return origin
    values = values_inside(inside)
    if step.direction == BACKWARD:
        key = inside.gradients[step.position]
    else:
        key = inside.program.results[outer.outputs.index(step.key)]
    if is_finite(values.get(key)):
        return origin  # XLA may have computed it differently
    inner = _search_forward(values, key, [step, *origin.path])
    if inner.step.call is None:
        outer_ids = dict(zip(inside.program.arguments, outer.inputs, strict=True))
        inner.step.key = outer_ids.get(inner.step.key, -1)
        return inner
    trace_origin = inside.origins.get(inner.step.call.outputs[0])
    differentiated = trace_origin and trace_origin.of
    if differentiated in values.producer:
        derived = values.producer[differentiated]
        inner.step = Step(BACKWARD, inner.step.array, derived)
        inner.inputs, inner.y = values.inputs(derived), values.get(differentiated)
        inner.sums = _summed_terms(values, derived)
    inner.function = outer
    return inner


def first_nan(origin: NonfiniteOrigin) -> Step | None:
    """Returns the first step of the path that contains NaN, if the origin is an Inf."""
    if np.isnan(origin.step.array).any():
        return None
    return next((step for step in origin.path if np.isnan(step.array).any()), None)
