"""Program: a list of steps over numbered values, and the analyses that every use of it shares.

Traces, NumPy replay, XLA, lazy evaluation, rematerialization, saved models and diagnostics all work
on programs. Only a tape keeps its calls as flat tuples, for speed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, final

import numpy as np

from retrograde.values import dtypes

# Every kind of step has `inputs` and `outputs`, the numbers of the values that it reads and
# computes, and `has_side_effects`, by which it is kept even if nothing reads its outputs.


@final
class Call(NamedTuple):
    """A call of a primitive or of a host callback."""

    primitive: Any
    inputs: tuple[int, ...]
    attrs: dict
    outputs: tuple[int, ...]

    @property
    def has_side_effects(self) -> bool:
        """Whether it is a host callback that is not pure."""
        return not self.primitive.pure

    def evaluate(self, arrays: Sequence[Any]) -> tuple:
        """Computes the outputs from the arrays of the inputs."""
        y = self.primitive.run(arrays, self.attrs)
        return tuple(y) if self.primitive.outputs else (y,)


class Guard(NamedTuple):
    """A value that Python has used: a run in which it differs needs another trace.

    `truth` says that only `bool(value)` was used, `key` identifies the value, and `how` and
    `where` are the conversion and the location in the user's program.
    """

    inputs: tuple[int]
    truth: bool
    key: Any
    how: str
    where: Any
    outputs: tuple[()] = ()
    has_side_effects: bool = True  # it can end the run


class Write(NamedTuple):
    """An assignment to a variable, given by its index in the list of variables."""

    variable: int
    inputs: tuple[int]
    outputs: tuple[()] = ()
    has_side_effects: bool = True


class ReadVariable(NamedTuple):
    """A read of a variable that host code may have changed since it was read before."""

    variable: int
    outputs: tuple[int]
    inputs: tuple[()] = ()
    has_side_effects: bool = False


class CustomGradient(NamedTuple):
    """A `custom_gradient`: `outputs` equal `values`, and `rule` leads from them to `sources`.

    `inputs` are the sources, followed by the values.
    """

    name: str
    rule: Callable
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    has_side_effects: bool = False

    @property
    def sources(self) -> tuple[int, ...]:
        """The values that have a gradient."""
        return self.inputs[: len(self.inputs) - len(self.outputs)]

    @property
    def values(self) -> tuple[int, ...]:
        """The values that are equal to the outputs."""
        return self.inputs[len(self.inputs) - len(self.outputs) :]


class Program(NamedTuple):
    """A list of steps with its inputs and results.

    `specs` has the shape and dtype of every value, and `constants` the arrays of some. `arguments`
    are the values that are passed in, including the initial values of variables. `results`
    are returned, and `writes` are assigned to variables, given by their indices, at the end.
    """

    steps: list[Any]
    specs: Any  # a sequence or mapping from numbers to `Spec`
    constants: dict[int, Any]
    arguments: list[int]
    results: list[int]
    writes: dict[int, int]

    @property
    def kept(self) -> set[int]:
        """The values that are needed after the last step."""
        return {*self.results, *self.writes.values()}

    @property
    def calls(self) -> list[Call]:
        """The steps that are calls."""
        return [step for step in self.steps if type(step) is Call]

    def __str__(self) -> str:
        lines = [f"program({', '.join(map(self._describe, self.arguments))}):"]
        lines += [
            f"{_name(n)} = constant {self._spec(n)}"
            for n in self.constants
            if any(n in step.inputs for step in self.steps) or n in self.kept
        ]
        lines += [self._line(step) for step in self.steps]
        lines += [f"variable {index} = {_name(n)}" for index, n in self.writes.items()]
        lines.append(f"return {', '.join(map(_name, self.results))}")
        return "\n    ".join(lines)

    def _line(self, step: Any) -> str:
        kind = type(step)
        if kind is Guard:
            value = _name(step.inputs[0])
            value = f"bool({value})" if step.truth else value
            return f"guard {value} is {step.key!r}"
        if kind is Write:
            return f"variable {step.variable} = {_name(step.inputs[0])}"
        outputs = ", ".join(map(self._describe, step.outputs))
        if kind is ReadVariable:
            return f"{outputs} = variable {step.variable}"
        if kind is CustomGradient:
            values = ", ".join(map(_name, step.values))
            return f"{outputs} = {values}, with the gradient of {step.name}"
        attrs = [f"{name}={value!r}" for name, value in step.attrs.items()]
        return f"{outputs} = {step.primitive.name}({', '.join([*map(_name, step.inputs), *attrs])})"

    def _describe(self, number: int) -> str:
        return f"{_name(number)}: {self._spec(number)}"

    def _spec(self, number: int) -> str:
        spec = self.specs[number]
        return f"{dtypes.of(spec.dtype).name}[{', '.join(map(str, spec.shape))}]"


def _name(number: int) -> str:
    return f"%{number}"


# Liveness


def needed(
    steps: Sequence[Any],
    wanted: Iterable[int],
    known: Container[int] | None = None,
    end: int | None = None,
) -> list[Any]:
    """Returns the steps that lead to the values `wanted`, and those that have side effects.

    If the values of some numbers are `known`, these are not computed. Then side effects do not
    count either, and the search ends as soon as all values are found. With `end`, only the steps
    before that index count.
    """
    wanted = set(wanted)
    kept = []
    for index in reversed(range(len(steps) if end is None else end)):
        step = steps[index]
        if known is not None and not wanted:
            break
        if wanted.isdisjoint(step.outputs) and (known is not None or not step.has_side_effects):
            continue
        wanted.difference_update(step.outputs)
        wanted.update(step.inputs if known is None else [n for n in step.inputs if n not in known])
        kept.append(step)
    return kept[::-1]


def last_uses(steps: Iterable[Any]) -> dict[int, int]:
    """Returns the index of the last step that reads or computes each value."""
    return {n: i for i, step in enumerate(steps) for n in (*step.outputs, *step.inputs)}


def depending_on(steps: Iterable[Any], sources: Iterable[int]) -> set[int]:
    """Returns all values that depend on `sources`, including `sources`."""
    dependent = set(sources)
    for step in steps:
        if not dependent.isdisjoint(step.inputs):
            dependent.update(step.outputs)
    return dependent


# Evaluation


def evaluate(
    calls: Sequence[Call], values: Mapping[int, Any], results: Collection[int]
) -> dict[int, Any]:
    """Computes `results` on arrays, one call after the other, and frees each array early."""
    values, last = dict(values), last_uses(calls)
    for index, call in enumerate(calls):
        values.update(
            zip(call.outputs, call.evaluate([values[n] for n in call.inputs]), strict=True)
        )
        for n in {*call.inputs, *call.outputs}:
            if last[n] == index and n not in results:
                del values[n]
    return {n: values[n] for n in results}


def hashable(value: Any) -> Any:
    """Returns a hashable form of attributes, or `None` if a value has an unsupported type."""
    if isinstance(value, dict):
        if not value:
            return ()
        parts = list(map(hashable, value.values()))
        return None if None in parts else tuple(sorted(zip(value, parts, strict=True)))
    if isinstance(value, (list, tuple)):
        parts = list(map(hashable, value))
        return None if None in parts else (type(value).__name__, *parts)
    if isinstance(value, slice):
        return hashable((value.start, value.stop, value.step))
    if value is None or isinstance(value, (bool, int, float, complex, str, bytes, np.dtype)):
        return type(value).__name__, repr(value)
    return None
