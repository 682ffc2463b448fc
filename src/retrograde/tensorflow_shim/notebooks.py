"""Notebooks: their code, cell by cell, without what only IPython understands."""

from __future__ import annotations

import ast
import pathlib
import re
from typing import Any, NamedTuple

from retrograde.files.checked_json import read_json
from retrograde.values.errors import DataLossError

# What IPython does to the rest of such a cell changes nothing of what it computes.
_PLAIN_CELLS = ("%%capture", "%%prun", "%%time", "%%timeit")
UNREADABLE = (SyntaxError, ValueError, RecursionError, MemoryError)  # what the parser may raise
_MAGIC = re.compile(r"\s*([!%?]|[\w., ]+=\s*[!%]|.*\?\s*$)")


class Cell(NamedTuple):
    """A cell of code: its number among all cells of code, its Python, and what was taken out."""

    number: int
    source: str
    passed_over: list[str]


class NotANotebook(ValueError):
    """A file that is not a Jupyter notebook; the message is one line."""


def cells_of(path: str | pathlib.Path) -> list[Cell]:
    """Returns the cells of code of a notebook. Raises `NotANotebook`, or `OSError`."""
    what = f"{path} as a Jupyter notebook (format 4)"
    try:
        sources = [_source(cell) for cell in _code_cells(read_json(path, what))]
    except DataLossError as error:
        raise NotANotebook(str(error)) from None
    except ValueError as error:
        raise NotANotebook(f"Cannot read {what}: {error}.") from None
    return [Cell(number, *_python(source)) for number, source in enumerate(sources, 1)]


def _code_cells(notebook: Any) -> list[dict[str, Any]]:
    match notebook:
        case {"cells": list(cells)} if all(isinstance(cell, dict) for cell in cells):
            return [cell for cell in cells if cell.get("cell_type") == "code"]
    raise ValueError("it has no list of cells")


def _source(cell: dict[str, Any]) -> str:
    source = cell.get("source")
    lines = [source] if isinstance(source, str) else source
    if not (isinstance(lines, list) and all(isinstance(line, str) for line in lines)):
        raise ValueError("the source of a cell is neither a string nor a list of strings")
    return "".join(lines)


def _python(source: str) -> tuple[str, list[str]]:
    """The Python in a cell, line for line, and the lines that are not Python."""
    lines = source.splitlines()
    passed_over = []
    if lines and lines[0].startswith("%%"):
        passed_over.append(lines[0])
        if lines[0].split()[0] not in _PLAIN_CELLS:
            return "", passed_over
        lines[0] = ""
    start = 0  # lines before this one are complete statements
    while (place := _not_python(lines[start:])) is not None:
        last = place = start + place
        while lines[last].endswith("\\") and last + 1 < len(lines):
            last += 1
        passed_over.append("\n".join(lines[place : last + 1]).strip())
        indent = lines[place][: len(lines[place]) - len(lines[place].lstrip())]
        lines[place : last + 1] = [f"{indent}pass"] + [""] * (last - place)
        start = start if indent else place
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
    except UNREADABLE:
        pass  # the error is reported where the cell is used
    return None
