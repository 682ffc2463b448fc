"""The account of a function: when it was recorded, by which call, and what was new about it."""

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
from retrograde.values.source_location import Place


class TraceSummary(NamedTuple):
    """What is known of one recording.

    `changed` tells what was new in the call that made it, against the nearest of those before.
    `seconds` is how long the call took; `compile_seconds`, how long it took to write or compile
    the replay, once that was needed. `replays` is how often it has been used since. `uncompiled`
    names the Python code that keeps a function with `jit_compile` from being compiled, if any.
    """

    made: float
    where: Place | None
    arguments: Mapping[str, str]
    changed: tuple[str, ...]
    seconds: float
    compile_seconds: float
    replays: int
    compiled: bool
    uncompiled: str | None

    def __str__(self) -> str:
        when = time.strftime("%H:%M:%S", time.localtime(self.made))
        news = "; ".join(self.changed) or "the first"
        how = "XLA" if self.compiled else "NumPy"
        if self.uncompiled is not None:
            how += f" (XLA cannot compile {self.uncompiled})"
        return (
            f"{when} at {self.where}: {news}\n    recorded in {1e3 * self.seconds:.1f} ms, made "
            f"ready for {how} in {1e3 * self.compile_seconds:.1f} ms, replayed {self.replays} times"
        )

    def __repr__(self) -> str:
        return str(self)


class HistoryEntry:
    """What is written down when a recording is made."""

    def __init__(
        self, trace: Trace, where: Place | None, arguments: dict[str, str], seconds: float
    ) -> None:
        self.trace = trace
        self.where = where
        self.arguments = arguments
        self.seconds = seconds
        self.made = time.time()

    def told(self, before: list[HistoryEntry]) -> TraceSummary:
        """The account of this recording, `before` being those that were made earlier."""
        executable = self.trace.executable
        return TraceSummary(
            self.made,
            self.where,
            self.arguments,
            self.changed(before),
            self.seconds,
            executable.seconds,
            self.trace.replays,
            executable.compiles,
            executable.uncompiled,
        )

    def changed(self, before: list[HistoryEntry]) -> tuple[str, ...]:
        """What is new against the nearest of those `before`."""
        differences = [tuple(_differences(entry, self)) for entry in reversed(before)]
        return min(differences, key=len, default=())


def _differences(old: HistoryEntry, new: HistoryEntry) -> list[str]:
    names = dict.fromkeys([*old.arguments, *new.arguments])
    pairs = [(n, old.arguments.get(n, "absent"), new.arguments.get(n, "absent")) for n in names]
    found = [f"{name}: {_arrow(a, b)}" for name, a, b in pairs if a != b]
    if found:
        return found
    for a, b in zip(old.trace.guards, new.trace.guards, strict=False):
        if a.key != b.key:
            values = f" {a.key} → {b.key}" if a.truth else " another value"
            return [f"{b.how} of a tensor at {b.where}:{values}"]
    return ["variables of other shapes"]


def _arrow(old: str, new: str) -> str:
    """Both, without repeating the words that they begin or end with."""
    head = "Python "
    if old.startswith(head) and new.startswith(head) and old.split()[1] == new.split()[1]:
        return f"{old} → {new.split(maxsplit=2)[2]}"
    *_, old_dtype = old.split()
    *shape, new_dtype = new.split()
    if old_dtype == new_dtype and old.startswith("(") and new.startswith("("):
        return f"{old.removesuffix(' ' + old_dtype)} → {' '.join(shape)}"
    return f"{old} → {new}"


def readable(names: list[str], args: tuple, kwargs: dict) -> dict[str, str]:
    """The arguments of a call in words, by their names."""
    found: dict[str, str] = {}
    extra = [f"args[{i}]" for i in range(len(args) - len(names))]
    for name, value in [*zip([*names, *extra], args, strict=False), *kwargs.items()]:
        _tell(name, value, found)
    return found


def _tell(name: str, value: Any, found: dict[str, str]) -> None:
    held = tensor_or_variable(value)
    if held is None and hasattr(value, "dtype") and hasattr(value, "shape"):
        held = value
    if held is not None and not isinstance(value, CompositeTensor):
        kind = "variable " if isinstance(held, Variable) else ""
        found[name] = f"{kind}{tuple(held.shape)} {dtypes.as_dtype(held.dtype).name}"
    elif nest.is_nested(value):
        items = value.items() if isinstance(value, Mapping) else enumerate(value)
        for key, child in items:
            _tell(f"{name}[{key!r}]", child, found)
    else:
        found[name] = f"Python {type(value).__name__} {shown(value)}"
