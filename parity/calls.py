"""The sample calls: what is called, and in what precision."""

from __future__ import annotations

import json
import pathlib
from typing import NamedTuple

FOLDER = pathlib.Path(__file__).parent


class Call(NamedTuple):
    """One call of one function.

    `expression` is over `f` (the function), `S` (which makes a source), `tf` and `np`. An empty one
    only asks whether the function is there.
    """

    function: str
    expression: str
    precision: str


def namespaces() -> dict[str, dict[str, list[str]]]:
    """The expressions to compare for each function of each namespace."""
    recorded = json.loads((FOLDER / "calls.json").read_text())
    added = json.loads((FOLDER / "more_calls.json").read_text())
    return {
        namespace: {
            name: [e for e in (expression, *added.get(name, [])) if e]
            for name, expression in functions.items()
        }
        for namespace, functions in recorded.items()
    }


def all_calls() -> list[Call]:
    """Every call, in single and then in double precision."""
    return [
        Call(name, expression, precision)
        for functions in namespaces().values()
        for name, expressions in functions.items()
        for expression in expressions or [""]
        for precision in ("float32", "float64")
    ]
