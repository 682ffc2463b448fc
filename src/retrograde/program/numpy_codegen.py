"""NumPy replay: straight-line Python source, generated for one program."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from math import prod
from typing import Any

import numpy as np

from retrograde.core.apply import Primitive
from retrograde.core.program import Call, Guard, Program, ReadVariable, Write, last_uses
from retrograde.core.tensor import Tensor
from retrograde.fusion.fused_loops import Fused
from retrograde.fusion.grouping import fuse
from retrograde.ops.collectives import as_host_callback
from retrograde.ops.host_callbacks import HostCallback
from retrograde.program.inline_kernels import NAMES, WRITERS
from retrograde.program.interpreter import Divergence
from retrograde.program.tracing import key_of
from retrograde.values.source import SourceWriter, is_literal, is_name, literal
from retrograde.values.thresholds import LARGE_ARRAY_SIZE, MIN_FREED_BYTES

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
        self._variables = variables
        self._writer = SourceWriter(**NAMES, key_of=key_of, Divergence=Divergence, Tensor=Tensor)
        self._names: dict[int, str] = {n: f"x{n:d}" for n in program.arguments}
        for n, array in program.constants.items():
            self._names[n] = f"c{n:d}"
            self._writer.namespace[self._names[n]] = array
        self._lines: list[str] = []
        self._blocks = 0  # number of functions for fused calls
        self._guards = 0
        outputs = [(n, self._specs[n]) for step in program.steps for n in step.outputs]
        self._names |= {n: f"a{n:d}" for n, _ in outputs}
        large = {
            n for n, (shape, dtype) in outputs if prod(shape) * dtype.itemsize >= MIN_FREED_BYTES
        }
        freed = large - program.kept
        steps = _fuse_calls(program) if large else program.steps
        # The values with arrays that nothing else can hold or view.
        self._overwritable = freed & _find_unshared(steps) if freed else freed
        self._write(steps, freed)

    @property
    def source(self) -> str:
        """The source of the replay and of the fused loops that it calls."""
        return self._writer.source

    def _write(self, steps: list[Any], freed: set[int]) -> None:
        """Writes `steps`. The arrays of `freed` are deleted after their last use."""
        last_use_of = last_uses(steps) if freed else {}
        for place, step in enumerate(steps):
            unused: list[int] = []
            if freed:
                values = dict.fromkeys((*step.inputs, *step.outputs))
                unused = [n for n in values if n in freed and last_use_of[n] == place]
            if type(step) is Call:
                self._call(step, unused)
            elif type(step) is Fused:
                self._block(step)
            elif type(step) is Guard:
                self._guard(step)
            else:
                self._access_variable(step)
            names = [self._names[n] for n in unused if n in self._names] if unused else []
            if names:
                self._lines.append(f"del {', '.join(dict.fromkeys(names))}")
        arguments = [self._names[n] for n in self._program.arguments]
        results, writes = self._program.results, self._program.writes.values()
        self._writer.write(f"def replay({', '.join([*arguments, 'log'])}):")
        returned = f"return {self._tuple(results)}, {self._tuple(writes)}"
        self._writer.write(*self._lines, returned, depth=1)

    def compiled(self) -> Callable:
        """Returns the function that the source defines."""
        return self._writer.define("replay", "replay")

    def _tuple(self, numbers: Iterable[int]) -> str:
        names = [self._names[n] for n in numbers]
        return f"({', '.join(names)}{',' if len(names) == 1 else ''})"

    # Steps

    def _call(self, call: Call, unused: list[int]) -> None:
        primitive = call.primitive
        arguments = list(map(self._names.__getitem__, call.inputs))
        targets = list(map(self._names.__getitem__, call.outputs))
        target = ", ".join(targets) + ("," if primitive.outputs else "")
        if type(primitive) is HostCallback or not primitive.pure:
            source = self._host_call(call, ", ".join(arguments))
            self._lines.append(f"{target} = {source}" if targets else source)
            return
        specs = list(map(self._specs.__getitem__, call.inputs))
        inline: Any = WRITERS.get(primitive.name)
        source = inline and inline(specs, *arguments, **call.attrs)
        if source is None:
            is_large = prod(specs[0].shape) >= LARGE_ARRAY_SIZE
            kernel, leading_arguments = self._kernel(primitive, is_large, specs[0].dtype == object)
            arguments = [*leading_arguments, *arguments]
            if unused and not is_large:
                target = self._overwrite(call, unused, arguments) or target
            arguments += map(self._keyword, call.attrs, call.attrs.values())
            source = f"{kernel}({', '.join(arguments)})"
        self._lines.append(f"{target} = {source}")

    def _host_call(self, call: Call, arguments: str) -> str:
        """Returns the call of a host callback, or of a primitive that is not pure."""
        host = call.primitive
        if type(host) is HostCallback:
            name = self._writer.name(host, host.name.replace(" ", "_"))
            return (
                f"{name}.f({arguments})" if host.pure else f"log.result_of({name}, [{arguments}])"
            )
        name = self._writer.name(as_host_callback(call), host.name)
        return f"{name}.f({arguments}) if log is None else log.result_of({name}, [{arguments}])"

    def _kernel(
        self, primitive: Primitive, is_large: bool, is_string: bool
    ) -> tuple[str, list[str]]:
        """Returns the name of the kernel, and its arguments before the arrays."""
        if primitive.on_strings is not None and is_string:
            return self._writer.name(primitive.on_strings, primitive.name), []
        kernel = primitive.on_many if is_large else primitive.on_numpy
        if isinstance(kernel, functools.partial) and kernel.args == (np,) and not kernel.keywords:
            return self._writer.name(kernel.func, primitive.name), ["np"]
        name = getattr(kernel, "__name__", "")
        if getattr(np, name, None) is kernel:
            return f"np.{name}", []
        return self._writer.name(kernel, primitive.name), []

    def _overwrite(self, call: Call, unused: list[int], arguments: list[str]) -> str | None:
        """Adds an argument by which the result overwrites an unused input, if it may.

        Returns the name of that input. A new array would be C-contiguous, and the memory layout
        determines the order of summation, so all inputs have to be C-contiguous.
        """
        if not _is_ufunc(call.primitive) or call.attrs:
            return None
        (result,) = call.outputs
        for n in unused:
            if (
                n in self._overwritable
                and n in call.inputs
                and self._specs[n] == self._specs[result]
            ):
                matrices = [self._names[i] for i in call.inputs if self._specs[i].ndim > 1]
                flags = [f"{name}.flags.c_contiguous" for name in dict.fromkeys(matrices)]
                condition = f" if {' and '.join(flags)} else None" if flags else ""
                self._names[result] = target = self._names.pop(n)
                arguments.append(f"out={target}{condition}")
                return target
        return None

    def _keyword(self, name: str, value: Any) -> str:
        if not is_name(name):
            raise TypeError(f"Cannot pass an attribute by the name {name!r}.")
        return f"{name}={literal(value) if is_literal(value) else self._writer.name(value, name)}"

    def _block(self, fused: Fused) -> None:
        name = f"blocks_{self._blocks}"
        self._blocks += 1
        fused.write(self._writer, name)
        self._writer.write("", "")
        targets = list(map(self._names.__getitem__, fused.outputs))
        arguments = ", ".join([self._names[n] for n in fused.inputs])
        self._lines.append(f"{', '.join(targets)}, = {name}({arguments})")

    def _guard(self, guard: Guard) -> None:
        name = self._names[guard.inputs[0]]
        observed_key = f"bool({name})" if guard.truth else f"key_of({name})"
        key = literal(guard.key) if guard.truth else self._writer.name(guard.key, "key")
        self._lines.append(f"if {observed_key} != {key}:")
        self._lines.append(f"    return Divergence({literal(self._guards)}, {observed_key})")
        self._guards += 1

    def _access_variable(self, step: Write | ReadVariable) -> None:
        variable = self._writer.name(self._variables[step.variable], "variable")
        if isinstance(step, Write):
            self._lines.append(
                f"log.assign_early({variable}, Tensor({self._names[step.inputs[0]]}))"
            )
        else:
            name = self._names[step.outputs[0]]
            self._lines.append(f"{name} = {variable}._array")


def _find_unshared(steps: list[Any]) -> set[int]:
    """Returns the values whose array is new and shares no memory with others."""
    new_values: set[int] = set()
    shared_values: set[int] = set()
    for step in steps:
        if type(step) is Fused or (type(step) is Call and _is_fresh(step.primitive)):
            new_values.update(step.outputs)
        else:
            shared_values.update((*step.inputs, *step.outputs))
    return new_values - shared_values


def _fuse_calls(program: Program) -> list[Any]:
    """Returns the steps, with elementwise calls on large arrays fused."""
    parts: list[list[Any]] = [[]]
    for step in program.steps:
        if type(step) is Call and type(step.primitive) is not HostCallback:
            parts[-1].append(step)
        else:
            parts += [[step], []]
    read_later = program.kept
    unshared = _find_unshared(program.steps)
    fused_parts: list[list[Any]] = []
    for part in reversed(parts):
        read_values = {n for step in part for n in step.inputs}
        if len(part) > 1:
            # There may be as many parts as values, so each gets only the values that it reads.
            part_values = read_values.union(*(step.outputs for step in part))
            constants = {n: program.constants[n] for n in read_values if n in program.constants}
            overwritable = frozenset((unshared & part_values) - read_later)
            part = fuse(
                part, program.specs, frozenset(read_later & part_values), overwritable, constants
            )
        read_later |= read_values
        fused_parts.append(part)
    return [step for part in reversed(fused_parts) for step in part]


def _is_ufunc(primitive: Any) -> bool:
    return type(primitive) is Primitive and type(primitive.on_numpy) is np.ufunc


def _is_fresh(primitive: Any) -> bool:
    """Returns whether its results share no memory with its inputs."""
    if type(primitive) is not Primitive:
        return False
    return _is_ufunc(primitive) or primitive.writes is not None or primitive.name in _FRESH
