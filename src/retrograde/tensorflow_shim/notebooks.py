"""Reads the code cells of notebooks, without the syntax that only IPython supports."""

from __future__ import annotations

import ast
import pathlib
import re
from typing import Any, NamedTuple

from retrograde.files.checked_json import read_json
from retrograde.values.errors import DataLossError

# Cell magics that do not change what the cell computes.
_TRANSPARENT_MAGICS = ("%%capture", "%%prun", "%%time", "%%timeit")
PARSE_ERRORS = (SyntaxError, ValueError, RecursionError, MemoryError)  # raised by `ast.parse`
_MAGIC = re.compile(r"\s*([!%?]|[\w., ]+=\s*[!%]|.*\?\s*$)")


class Cell(NamedTuple):
    """A code cell of a notebook.

    `number` counts the code cells from 1. `source` is the Python code of the cell, without the
    IPython lines in `skipped`.
    """

    number: int
    source: str
    skipped: list[str]


class NotANotebook(ValueError):
    """Raised for a file that is not a Jupyter notebook. The message is one line."""


def cells_of(path: str | pathlib.Path) -> list[Cell]:
    """Returns the code cells of a notebook. Raises `NotANotebook` or `OSError`."""
    description = f"{path} as a Jupyter notebook (format 4)"
    try:
        sources = [_source(cell) for cell in _code_cells(read_json(path, description))]
    except DataLossError as error:
        raise NotANotebook(str(error)) from None
    except ValueError as error:
        raise NotANotebook(f"Cannot read {description}: {error}.") from None
    return [Cell(number, *_split_ipython(source)) for number, source in enumerate(sources, 1)]


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


def _split_ipython(source: str) -> tuple[str, list[str]]:
    """Returns the Python code of a cell, with `pass` for each IPython line, and these lines."""
    lines = _without_first_indent(source.splitlines())
    skipped = []
    if lines and lines[0].startswith("%%"):
        skipped.append(lines[0])
        if lines[0].split()[0] not in _TRANSPARENT_MAGICS:
            return "", skipped
        lines[0] = ""
    start = 0  # lines before this one are complete statements
    while (offset := _ipython_line(lines[start:])) is not None:
        last = first = start + offset
        while lines[last].endswith("\\") and last + 1 < len(lines):
            last += 1
        skipped.append("\n".join(lines[first : last + 1]).strip())
        indent = lines[first][: len(lines[first]) - len(lines[first].lstrip())]
        lines[first : last + 1] = [f"{indent}pass"] + [""] * (last - first)
        start = start if indent else first
    return "\n".join(lines), skipped


def _without_first_indent(lines: list[str]) -> list[str]:
    """Removes the indent of the first line of code from all lines that have it, as IPython does."""
    first = next((line for line in lines if line.strip()), "")
    indent = first[: len(first) - len(first.lstrip())]
    return [line.removeprefix(indent) for line in lines]


def _ipython_line(lines: list[str]) -> int | None:
    """Returns the index of a line that IPython supports but Python does not."""
    try:
        ast.parse("\n".join(lines))
    except SyntaxError as error:
        line = (error.lineno or 0) - 1
        # Python may report the line after it.
        for index in (line, line - 1):
            if 0 <= index < len(lines) and _MAGIC.match(lines[index]):
                return index
    except PARSE_ERRORS:
        pass  # the error is reported where the cell is used
    return None
