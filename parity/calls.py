"""Defines the sample calls and their precisions."""

from __future__ import annotations

import json
import pathlib
from typing import NamedTuple

PRECISIONS = ("float32", "float64", "float16", "bfloat16")

FOLDER = pathlib.Path(__file__).parent


class Call(NamedTuple):
    """One call to one function.

    `expression` uses `f` (the function), `S` (which creates a source), `tf` and `np`. If it is
    empty, only the existence of the function is checked.
    """

    function: str
    expression: str
    precision: str


def namespaces() -> dict[str, dict[str, list[str]]]:
    """Returns the expressions to compare for each function of each namespace.

    `more_calls.json` has additional calls, and calls "instead" of those whose result is not unique,
    such as the signs of eigenvectors.
    """
    recorded = json.loads((FOLDER / "calls.json").read_text())
    added = json.loads((FOLDER / "more_calls.json").read_text())
    instead, more = added["instead"], added["more"]
    return {
        namespace: {
            name: [e for e in (instead.get(name, expression), *more.get(name, [])) if e]
            for name, expression in functions.items()
        }
        for namespace, functions in recorded.items()
    }


def all_calls() -> list[Call]:
    """Returns every call, in every precision."""
    return [
        Call(name, expression, precision)
        for functions in namespaces().values()
        for name, expressions in functions.items()
        for expression in expressions or [""]
        for precision in PRECISIONS
    ]
