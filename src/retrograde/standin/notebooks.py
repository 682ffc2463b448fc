"""Notebooks: their code, cell by cell, without what only IPython understands."""

from __future__ import annotations

import ast
import json
import pathlib
import re
from typing import NamedTuple

# What IPython does to the rest of such a cell changes nothing of what it computes.
_PLAIN_CELLS = ("%%capture", "%%prun", "%%time", "%%timeit")
_MAGIC = re.compile(r"\s*([!%?]|[\w., ]+=\s*[!%]|.*\?\s*$)")


class Cell(NamedTuple):
    """A cell of code: its number among all cells of code, its Python, and what was taken out."""

    number: int
    source: str
    passed_over: list[str]


def cells_of(path: str | pathlib.Path) -> list[Cell]:
    """The cells of code of a notebook."""
    try:
        notebook = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
        written = [cell["source"] for cell in notebook["cells"] if cell["cell_type"] == "code"]
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is not a notebook of Jupyter (format 4): {error}") from error
    sources = ["".join(source) for source in written]
    return [Cell(number, *_python(source)) for number, source in enumerate(sources, 1)]


def _python(source: str) -> tuple[str, list[str]]:
    """The Python in a cell, line for line, and the lines that are not Python."""
    lines = source.splitlines()
    passed_over = []
    if lines and lines[0].startswith("%%"):
        passed_over.append(lines[0])
        if lines[0].split()[0] not in _PLAIN_CELLS:
            return "", passed_over
        lines[0] = ""
    while (place := _not_python(lines)) is not None:
        last = place
        while lines[last].endswith("\\") and last + 1 < len(lines):
            last += 1
        passed_over.append("\n".join(lines[place : last + 1]).strip())
        indent = lines[place][: len(lines[place]) - len(lines[place].lstrip())]
        lines[place : last + 1] = [f"{indent}pass"] + [""] * (last - place)
    return "\n".join(lines), passed_over


def _not_python(lines: list[str]) -> int | None:
    """Where a line stands that Python does not understand and IPython does."""
    try:
        ast.parse("\n".join(lines))
    except SyntaxError as error:
        place = (error.lineno or 0) - 1
        # Python may notice in the line after.
        for at in (place, place - 1):
            if 0 <= at < len(lines) and _MAGIC.match(lines[at]):
                return at
    return None
