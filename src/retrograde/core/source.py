"""Generated Python source: the one place that writes literals into it and runs it.

Plans of tapes, replays on NumPy, fused loops and fast calls are generated source. It consists of
fixed text, names that are a prefix and a number, and literals. Numbers and literals may come from
an untrusted file, so both are checked here, whatever a loader has checked before.
Everything else that the source needs is an object in its namespace.
"""

from __future__ import annotations

import keyword
from typing import Any

from retrograde.values.arguments import shown


def literal(value: Any) -> str:
    """Returns the Python literal of `value`: `None`, a bool, an int, a string, or a tuple of these.

    Subclasses are refused, because they have a `repr` of their own.
    """
    if type(value) is tuple:
        parts = ", ".join(map(literal, value))
        return f"({parts},)" if len(value) == 1 else f"({parts})"
    if value is None or type(value) in (bool, int, str):
        return repr(value)
    raise TypeError(f"Cannot write {shown(value)} of type {type(value).__name__!r} as a literal.")


def is_literal(value: Any) -> bool:
    """Whether `literal` accepts `value`."""
    if type(value) is tuple:
        return all(map(is_literal, value))
    return value is None or type(value) in (bool, int, str)


def numbered(prefix: str, number: int) -> str:
    """Returns the name of value `number` of a program, such as `x3`."""
    if type(number) is not int or number < 0:
        raise TypeError(f"Cannot name a value by {shown(number)}. Expected a non-negative integer.")
    return f"{prefix}{number}"


def is_name(text: Any) -> bool:
    """Whether `text` can be a name in Python source."""
    return type(text) is str and text.isidentifier() and not keyword.iskeyword(text)


def define(name: str, source: str, namespace: dict[str, Any], kind: str) -> Any:
    """Runs `source` in `namespace` and returns what it defines under `name`.

    Tracebacks show the source as the file `<retrograde kind>`. The namespace becomes the
    globals of the function and does not keep its name, which would be a reference cycle.
    """
    exec(compile(source, f"<retrograde {kind}>", "exec"), namespace)
    return namespace.pop(name)
