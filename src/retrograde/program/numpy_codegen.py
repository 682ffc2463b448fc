"""NumPy replay: straight-line Python source, generated for one program."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from retrograde.core.apply import Primitive
from retrograde.core.host_callbacks import HostCallback
from retrograde.core.program import Call, Guard, Program, ReadVariable, Write, last_uses
from retrograde.core.rules import Spec
from retrograde.fusion.fused_loops import Fused
from retrograde.fusion.grouping import fuse
from retrograde.ops.collectives import as_host_callback
from retrograde.program.inline_kernels import NAMES, inline
from retrograde.program.interpreter import Divergence
from retrograde.program.tracing import key_of
from retrograde.values.source import SourceWriter, is_literal, is_name, literal
from retrograde.values.thresholds import FREED as _WORTH_FREEING
from retrograde.values.thresholds import MANY

# Primitives whose results never share memory with their inputs
_FRESH = {"matmul", "sum", "mean", "prod", "max", "min", "argmax", "argmin"}


class ReplayWriter:
    """Writes the source of a replay.

    The name of a value is `x` for an argument, `c` for a constant and `a` for a computed one,
    followed by its number.
    """

    def __init__(self, program: Program, variables: list[Any]) -> None:
        self._program = program
        self._specs = program.specs
        self._steps = _fused(program)
        self._variables = variables
        self._writer = SourceWriter(**NAMES, key_of=key_of, Divergence=Divergence)
        self._names: dict[int, str] = {n: f"x{n:d}" for n in program.arguments}
        for n, array in program.constants.items():
            self._names[n] = f"c{n:d}"
            self._writer.namespace[self._names[n]] = array
        self._lines: list[str] = []
        self._blocks = 0  # number of functions for fused calls
        self._guards = 0
        self._last = self._last_uses()
        self._unshared = self._overwritable()
        self._write()

    @property
    def source(self) -> str:
        """The source of the replay and of the fused loops that it calls."""
        return self._writer.source

    def _write(self) -> None:
        arguments = [self._names[n] for n in self._program.arguments]
        for place, step in enumerate(self._steps):
            if type(step) is Call:
                self._call(step, place)
            elif type(step) is Fused:
                self._block(step)
            elif type(step) is Guard:
                self._guard(step)
            elif type(step) is Write:
                variable = self._writer.name(self._variables[step.variable], "variable")
                self._lines.append(f"log.assign_early({variable}, {self._name(step.value)})")
            else:
                self._read_variable(step)
            self._free(place)
        results = _tuple(self._name(n) for n in self._program.results)
        writes = _tuple(self._name(n) for n in self._program.writes.values())
        self._writer.write(f"def replay({', '.join([*arguments, 'log'])}):")
        self._writer.write(*self._lines, f"return {results}, {writes}", depth=1)

    def compiled(self) -> Callable:
        """Returns the function that the source defines."""
        return self._writer.define("replay", "replay")

    # Liveness

    def _last_uses(self) -> dict[int, list[int]]:
        """Returns, for each place, the values that are needed there for the last time."""
        last, kept = last_uses(self._steps), self._program.kept
        return {
            place: [
                n
                for n in dict.fromkeys((*step.inputs, *step.outputs))
                if last[n] == place and n not in kept
            ]
            for place, step in enumerate(self._steps)
        }

    def _overwritable(self) -> set[int]:
        """Returns the values with large arrays that nothing else can hold or view."""
        unshared = _unshared(self._steps)
        large = {n for n in unshared if _nbytes(self._specs[n]) >= _WORTH_FREEING}
        return large - self._program.kept

    def _free(self, place: int) -> None:
        names = [
            self._names[n]
            for n in self._last.get(place, ())
            if n in self._names
            and self._names[n][0] == "a"
            and _nbytes(self._specs[n]) >= _WORTH_FREEING
        ]
        if names:
            self._lines.append(f"del {', '.join(dict.fromkeys(names))}")

    # Lines

    def _name(self, number: int) -> str:
        return self._names[number]

    def _new_name(self, number: int) -> str:
        return self._names.setdefault(number, f"a{number:d}")

    def _call(self, call: Call, place: int) -> None:
        arguments = [self._name(n) for n in call.inputs]
        targets = [self._new_name(n) for n in call.outputs]
        target = ", ".join(targets) + ("," if call.primitive.outputs else "")
        if type(call.primitive) is HostCallback:
            host = self._writer.name(call.primitive, call.primitive.name.replace(" ", "_"))
            args = ", ".join(arguments)
            source = (
                f"{host}.f({args})" if call.primitive.pure else f"log.result_of({host}, [{args}])"
            )
            self._lines.append(f"{target} = {source}" if targets else source)
            return
        if not call.primitive.pure:
            host = self._writer.name(as_host_callback(call), call.primitive.name)
            given = ", ".join(arguments)
            self._lines.append(
                f"{target} = {host}.f({given}) if log is None else log.result_of({host}, [{given}])"
            )
            return
        inlined = inline(call, self._specs, arguments)
        if inlined is not None:
            self._lines.append(f"{target} = {inlined}")
            return
        kernel, first = self._kernel(call)
        arguments = [*first, *arguments]
        out = self._out(call, place)
        if out is not None:
            (n,) = call.outputs
            same_order = self._same_order(call)
            self._names[n] = target = self._names.pop(out)
            arguments.append(f"out={target}{same_order and f' if {same_order} else None'}")
        arguments += [self._keyword(name, value) for name, value in call.attrs.items()]
        self._lines.append(f"{target} = {kernel}({', '.join(arguments)})")

    def _same_order(self, call: Call) -> str:
        """Returns the condition under which the result may overwrite an input, as source.

        A new array would be C-contiguous, and the memory layout determines the order of summation.
        """
        matrices = dict.fromkeys(self._name(n) for n in call.inputs if self._specs[n].ndim > 1)
        return " and ".join(f"{name}.flags.c_contiguous" for name in matrices)

    def _block(self, fused: Fused) -> None:
        name = f"blocks_{self._blocks}"
        self._blocks += 1
        fused.write(self._writer, name)
        self._writer.write("", "")
        targets = [self._new_name(n) for n in fused.outputs]
        arguments = ", ".join(self._name(n) for n in fused.inputs)
        self._lines.append(f"{', '.join(targets)}, = {name}({arguments})")

    def _kernel(self, call: Call) -> tuple[str, list[str]]:
        """Returns the name of the kernel, and its arguments before the arrays."""
        primitive = call.primitive
        if primitive.on_strings is not None and self._specs[call.inputs[0]].dtype == object:
            return self._writer.name(primitive.on_strings, primitive.name), []
        many = _size(self._specs[call.inputs[0]]) >= MANY
        kernel = primitive.on_many if many else primitive.on_numpy
        if isinstance(kernel, functools.partial) and kernel.args == (np,) and not kernel.keywords:
            return self._writer.name(kernel.func, primitive.name), ["np"]
        name = getattr(kernel, "__name__", "")
        if getattr(np, name, None) is kernel:
            return f"np.{name}", []
        return self._writer.name(kernel, primitive.name), []

    def _out(self, call: Call, place: int) -> int | None:
        """Returns an input whose array the result may overwrite."""
        many = _size(self._specs[call.inputs[0]]) >= MANY
        if not _is_ufunc(call.primitive) or call.attrs or many:
            return None
        (result,) = call.outputs
        for n in self._last.get(place, ()):
            if n in self._unshared and n in call.inputs and self._specs[n] == self._specs[result]:
                return n
        return None

    def _guard(self, guard: Guard) -> None:
        name = self._name(guard.value)
        found = f"bool({name})" if guard.truth else f"key_of({name})"
        key = literal(guard.key) if guard.truth else self._writer.name(guard.key, "key")
        self._lines.append(f"if {found} != {key}:")
        self._lines.append(f"    return Divergence({literal(self._guards)}, {found})")
        self._guards += 1

    def _read_variable(self, reading: ReadVariable) -> None:
        variable = self._writer.name(self._variables[reading.variable], "variable")
        name = self._new_name(reading.value)
        self._lines.append(f"{name} = {variable}._array")

    def _keyword(self, name: str, value: Any) -> str:
        if not is_name(name):
            raise TypeError(f"Cannot pass an attribute by the name {name!r}.")
        return f"{name}={literal(value) if is_literal(value) else self._writer.name(value, name)}"


def _unshared(steps: list[Any]) -> set[int]:
    """Returns the values whose array is new and shares no memory with others."""
    new: set[int] = set()
    shared: set[int] = set()
    for step in steps:
        if type(step) is Fused or (type(step) is Call and _is_fresh(step.primitive)):
            new.update(step.outputs)
        else:
            shared.update((*step.inputs, *step.outputs))
    return new - shared


def _fused(program: Program) -> list[Any]:
    """Returns the steps, with elementwise calls on large arrays fused."""
    parts: list[list[Any]] = [[]]
    for step in program.steps:
        if type(step) is Call and type(step.primitive) is not HostCallback:
            parts[-1].append(step)
        else:
            parts += [[step], []]
    wanted = program.kept
    unshared = _unshared(program.steps)
    found: list[list[Any]] = []
    for part in reversed(parts):
        used = {n for step in part for n in step.inputs}
        if len(part) > 1:
            # There may be as many parts as values, so each gets only the values that it reads.
            here = used.union(*(step.outputs for step in part))
            constants = {n: program.constants[n] for n in used if n in program.constants}
            dead = frozenset((unshared & here) - wanted)
            part = fuse(part, program.specs, frozenset(wanted & here), dead, constants)
        wanted |= used
        found.append(part)
    return [step for part in reversed(found) for step in part]


def _tuple(names: Iterable[str]) -> str:
    names = list(names)
    return f"({', '.join(names)}{',' if len(names) == 1 else ''})"


def _is_ufunc(primitive: Any) -> bool:
    return type(primitive) is Primitive and type(primitive.on_numpy) is np.ufunc


def _is_fresh(primitive: Any) -> bool:
    """Returns whether its results share no memory with its inputs."""
    if type(primitive) is not Primitive:
        return False
    return _is_ufunc(primitive) or primitive.writes is not None or primitive.name in _FRESH


def _size(spec: Spec) -> int:
    size = 1
    for length in spec.shape:
        size *= length
    return size


def _nbytes(spec: Spec) -> int:
    return _size(spec) * spec.dtype.itemsize
