"""Generated Python source. All literals are written, and all source is compiled, in this module.

Tape plans, NumPy replays, fused loops and fast calls are generated source. It consists of fixed
text, names made of a prefix and a number, and literals. Numbers and literals may come from an
untrusted file, so both are checked here, even if a loader has checked them before. All other
objects that the source uses are in its namespace.
"""

from __future__ import annotations

import keyword
import re
from typing import Any

import numpy as np

from retrograde.values.arguments import shown


def literal(value: Any) -> str:
    """Returns the Python literal of `value`: `None`, a bool, an int, a string, or a tuple of these.

    Subclasses are refused, because they can override `repr`.
    """
    if type(value) is tuple:
        parts = ", ".join(map(literal, value))
        return f"({parts},)" if len(value) == 1 else f"({parts})"
    if value is None or type(value) in (bool, int, str):
        return repr(value)
    raise TypeError(f"Cannot write {shown(value)} of type {type(value).__name__!r} as a literal.")


def is_literal(value: Any) -> bool:
    """Returns whether `literal` accepts `value`."""
    if type(value) is tuple:
        return all(map(is_literal, value))
    return value is None or type(value) in (bool, int, str)


def numbered(prefix: str, number: int) -> str:
    """Returns the name of value `number` of a program, such as `x3`."""
    if type(number) is not int or number < 0:
        raise TypeError(f"Cannot name a value by {shown(number)}. Expected a non-negative integer.")
    return f"{prefix}{number}"


def is_name(text: Any) -> bool:
    """Returns whether `text` can be a name in Python source."""
    return type(text) is str and text.isidentifier() and not keyword.iskeyword(text)


class SourceWriter:
    """Writes the source of functions line by line, and collects the objects it refers to."""

    def __init__(self, **namespace: Any) -> None:
        self.namespace: dict[str, Any] = namespace
        self._lines: list[str] = []
        self._names: dict[int, str] = {}  # of objects, by their ids

    @property
    def source(self) -> str:
        """The source so far."""
        return "\n".join(self._lines) + "\n"

    def write(self, *lines: str, depth: int = 0) -> None:
        """Appends lines, indented by `depth` levels."""
        self._lines += [f"{'    ' * depth}{line}" if line else line for line in lines]

    def name(self, value: Any, hint: str) -> str:
        """Returns the name of an object in the source: `hint`, or a similar name if it is taken."""
        key = id(value)
        if key not in self._names:
            name = hint if is_name(hint) else "object"
            while name in self.namespace or name in vars(np):
                name += "_"
            self.namespace[name] = value  # keeps it alive, so that its id is not reused
            self._names[key] = name
        return self._names[key]

    def define(self, name: str, kind: str) -> Any:
        """Runs the source and returns the object that it defines as `name`.

        Tracebacks show the source as the file `<retrograde kind>`. The namespace becomes the
        globals of the function and does not keep its name, which would be a reference cycle.
        """
        source = self.source
        words = set(re.findall(r"\w+", source))
        namespace = {key: value for key, value in self.namespace.items() if key in words}
        exec(compile(source, f"<retrograde {kind}>", "exec"), namespace)
        return namespace.pop(name)
