"""Passes that shorten a program: constant folding, common subexpressions, dead code."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from retrograde.core import required
from retrograde.core.program import Call, CustomGradient, Program, Write, hashable, needed
from retrograde.core.recorders import isolate, thread
from retrograde.core.rules import Spec
from retrograde.ops.host_callbacks import HostCallback
from retrograde.program.tracing import Tracer, may_read_variables
from retrograde.values.thresholds import MAX_COMPARED_BYTES, MAX_FOLDED_BYTES


def simplify(tracer: Tracer, results: list[int], fold: bool = True) -> Program:
    """Returns the traced steps as a program without redundant steps.

    With `fold`, calls on constants are computed now.
    """
    merged = merge(tracer.constants, tracer.steps, fold=fold)
    results = [merged.same.get(n, n) for n in results]
    steps = needed(merged.steps, {*results, *merged.writes.values()})
    arguments = tracer.arguments
    return Program(steps, tracer.specs, merged.constants, arguments, results, merged.writes)


def merge(constants: dict[int, Any], *parts: list[Any], fold: bool = True) -> Merged:
    """Joins several lists of steps, without repeated calls."""
    merged = Merged(constants, fold)
    for part in parts:
        merged.starts.append(len(merged.steps))
        for step in part:
            merged.add(step)
    return merged


class Merged:
    """Steps without repeated calls.

    `constants` are arrays by number, `same` maps values to equal earlier ones, and `starts` has the
    index of the first step of each part. `writes` are the last values of variables.
    """

    def __init__(self, constants: dict[int, Any], fold: bool) -> None:
        self.steps: list[Any] = []
        self.starts: list[int] = []
        self.constants: dict[int, Any] = {}
        self.same: dict[int, int] = {}
        self.writes: dict[int, int] = {}
        self._fold = fold
        self._seen: dict[Any, tuple[int, ...]] = {}
        self._small: dict[Any, int] = {}
        for n, x in constants.items():
            self._add_constant(n, x._array)

    def add(self, step: Any) -> None:
        """Appends a step, unless its outputs equal earlier values."""
        if not self.same.keys().isdisjoint(step.inputs):
            step = rename_inputs(step, self.same)
        kind = type(step)
        if kind is Call:
            if not step.primitive.pure and may_read_variables([step]):
                self.steps += [Write(variable, (n,)) for variable, n in self.writes.items()]
                self.writes = {}
            self._add_call(step)
        elif kind is CustomGradient:
            # The last inputs are the values that the outputs equal.
            self.same.update(zip(step.outputs[::-1], step.inputs[::-1], strict=False))
        elif kind is Write:
            (self.writes[step.variable],) = step.inputs
        else:
            self.steps.append(step)

    def _add_constant(self, number: int, array: Any) -> None:
        """Adds a constant. A small one that equals another becomes the same value."""
        if array.nbytes <= MAX_COMPARED_BYTES and array.dtype.kind != "O":
            key = (type(array), array.dtype, array.shape, array.tobytes())
            first = self._small.setdefault(key, number)
            if first != number:
                self.same[number] = first
                return
        self.constants[number] = array

    def _add_call(self, call: Call) -> None:
        is_foldable = self._fold and call.primitive.pure
        if is_foldable and all(map(self.constants.__contains__, call.inputs)):
            values = self._evaluate(call)
            if sum([v.nbytes for v in values]) <= MAX_FOLDED_BYTES:
                for number, value in zip(call.outputs, values, strict=True):
                    self._add_constant(number, value)
                return
        is_merged = call.primitive.pure and type(call.primitive) is not HostCallback
        attrs = hashable(call.attrs) if call.attrs else ()
        if is_merged and attrs is not None:
            key = (call.primitive.name, call.inputs, attrs)
            earlier_outputs = self._seen.setdefault(key, call.outputs)
            if earlier_outputs is not call.outputs:
                self.same.update(zip(call.outputs, earlier_outputs, strict=True))
                return
        self.steps.append(call)

    def _evaluate(self, call: Call) -> tuple:
        arrays = [self.constants[n] for n in call.inputs]
        if type(call.primitive) is HostCallback:
            with isolate():
                return call.evaluate(arrays)
        y = thread.recorders.quietly(call.primitive.run, arrays, call.attrs)
        return y if call.primitive.outputs else (y,)


def rename_inputs(step: Any, equal_values: dict[int, int]) -> Any:
    """Returns `step` with its inputs replaced by the equal values in `equal_values`."""
    return step._replace(inputs=tuple(map(equal_values.get, step.inputs, step.inputs)))


class Reduced(NamedTuple):
    """A backward pass without some of its cotangents.

    `absent` are the values that depend on missing cotangents only, and `zeros` has arrays for those
    that steps still read. `same` maps sums to the only term that is left.
    """

    steps: list[Any]
    zeros: dict[int, np.ndarray]
    absent: set[int]
    same: dict[int, int]


def without_cotangents(
    steps: list[Any], specs: list[Spec], cotangents: list[int], missing: set[int]
) -> Reduced:
    """Removes the steps from a backward pass that depend on `missing` cotangents only.

    Eager code does not make these calls. Passing zeros instead is different: 0 * NaN is NaN.
    """
    dependent = set(cotangents)
    reduced = Reduced([], {}, set(missing), {})
    equal_values, absent = reduced.same, reduced.absent
    for step in steps:
        if not equal_values.keys().isdisjoint(step.inputs):
            step = rename_inputs(step, equal_values)
        read_cotangents = dependent.intersection(
            step.values if type(step) is CustomGradient else step.inputs
        )
        if read_cotangents:
            dependent.update(step.outputs)
        if read_cotangents and read_cotangents <= absent:
            absent.update(step.outputs)
            continue
        if (
            type(step) is Call
            and step.primitive is required.add
            and not absent.isdisjoint(read_cotangents)
        ):
            (term,) = read_cotangents - absent
            if specs[term] == specs[step.outputs[0]]:
                equal_values[step.outputs[0]] = term
                continue
        for n in absent.intersection(step.inputs):
            reduced.zeros[n] = np.zeros(specs[n].shape, specs[n].dtype)[()]
        reduced.steps.append(step)
    return reduced
