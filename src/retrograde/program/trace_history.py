"""The history of the traces of a function: when and where each was made, and why."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, NamedTuple

from retrograde.core.variable import Variable
from retrograde.program.traces import Trace
from retrograde.values import dtypes, nest
from retrograde.values.arguments import shown
from retrograde.values.composites import CompositeTensor
from retrograde.values.conversion import tensor_or_variable
from retrograde.values.source_location import SourceLocation


class TraceSummary(NamedTuple):
    """A summary of one recording (trace).

    `changed` says what differed from the most similar earlier call. `seconds` is the duration of
    the traced call, and `compile_seconds` the time for code generation or compilation. `replays`
    is the number of replays so far. `uncompiled` names the Python code that prevents compilation,
    if there is any. `times` are the seconds of a replayed and of a compiled call, if
    `jit_compile="auto"` has measured them.
    """

    created: float
    where: SourceLocation | None
    arguments: Mapping[str, str]
    changed: tuple[str, ...]
    seconds: float
    compile_seconds: float
    replays: int
    compiled: bool
    uncompiled: str | None
    times: tuple[float, float] | None = None

    def __str__(self) -> str:
        when = time.strftime("%H:%M:%S", time.localtime(self.created))
        reason = "; ".join(self.changed) or "first trace"
        how = "XLA" if self.compiled else "NumPy"
        if self.uncompiled is not None:
            how += f" (XLA cannot compile {self.uncompiled})"
        text = (
            f"{when} at {self.where}: {reason}\n    traced in {1e3 * self.seconds:.1f} ms, "
            f"compiled for {how} in {1e3 * self.compile_seconds:.1f} ms, "
            f"replayed {self.replays} times"
        )
        if self.times is not None:
            replayed, compiled = [f"{1e3 * seconds:.3g} ms" for seconds in self.times]
            text += f"\n    measured per call: {replayed} with NumPy, {compiled} with XLA"
        return text

    def __repr__(self) -> str:
        return str(self)


class HistoryEntry:
    """A trace, with the call that was traced."""

    def __init__(
        self, trace: Trace, where: SourceLocation | None, arguments: dict[str, str], seconds: float
    ) -> None:
        self.trace = trace
        self.where = where
        self.arguments = arguments
        self.seconds = seconds
        self.created = time.time()

    def summary(self, earlier_entries: list[HistoryEntry]) -> TraceSummary:
        """Returns a summary of this trace, given the earlier ones."""
        executable = self.trace.executable
        return TraceSummary(
            self.created,
            self.where,
            self.arguments,
            self.changed(earlier_entries),
            self.seconds,
            executable.seconds,
            self.trace.replays,
            executable.compiles,
            executable.uncompiled,
            self.trace.times,
        )

    def changed(self, earlier_entries: list[HistoryEntry]) -> tuple[str, ...]:
        """Returns the differences from the most similar earlier trace."""
        differences = [tuple(_differences(entry, self)) for entry in reversed(earlier_entries)]
        return min(differences, key=len, default=())


def _differences(old: HistoryEntry, new: HistoryEntry) -> list[str]:
    names = dict.fromkeys([*old.arguments, *new.arguments])
    pairs = [(n, old.arguments.get(n, "absent"), new.arguments.get(n, "absent")) for n in names]
    changes = [f"{name}: {_format_change(a, b)}" for name, a, b in pairs if a != b]
    if changes:
        return changes
    for a, b in zip(old.trace.guards, new.trace.guards, strict=False):
        if a.key != b.key:
            values = f" {a.key} → {b.key}" if a.truth else " a different value"
            return [f"{b.how} of a tensor at {b.where}:{values}"]
    return ["variables with different shapes"]


def _format_change(old: str, new: str) -> str:
    """Formats a change, without repeating a common prefix or suffix."""
    head = "Python "
    if old.startswith(head) and new.startswith(head) and old.split()[1] == new.split()[1]:
        return f"{old} → {new.split(maxsplit=2)[2]}"
    *_, old_dtype = old.split()
    *shape, new_dtype = new.split()
    if old_dtype == new_dtype and old.startswith("(") and new.startswith("("):
        return f"{old.removesuffix(' ' + old_dtype)} → {' '.join(shape)}"
    return f"{old} → {new}"


def describe_arguments(names: list[str], args: tuple, kwargs: dict) -> dict[str, str]:
    """Describes the arguments of a call, by name."""
    descriptions: dict[str, str] = {}
    extra = [f"args[{i}]" for i in range(len(args) - len(names))]
    for name, value in [*zip([*names, *extra], args, strict=False), *kwargs.items()]:
        _describe(name, value, descriptions)
    return descriptions


def _describe(name: str, value: Any, descriptions: dict[str, str]) -> None:
    tensor = tensor_or_variable(value)
    if tensor is None and hasattr(value, "dtype") and hasattr(value, "shape"):
        tensor = value
    if tensor is not None and not isinstance(value, CompositeTensor):
        kind = "variable " if isinstance(tensor, Variable) else ""
        descriptions[name] = f"{kind}{tuple(tensor.shape)} {dtypes.as_dtype(tensor.dtype).name}"
    elif nest.is_nested(value):
        items = value.items() if isinstance(value, Mapping) else enumerate(nest.children(value))
        for key, child in items:
            _describe(f"{name}[{key!r}]", child, descriptions)
    else:
        descriptions[name] = f"Python {type(value).__name__} {shown(value)}"
