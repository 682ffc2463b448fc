"""Renders reports as text, and as HTML in notebooks."""

from __future__ import annotations

import html
import os
import textwrap
from typing import Any

import numpy as np

from retrograde.values import dtypes
from retrograde.values.source_location import SourceLocation

_INDENT = {"head": 0, "line": 2, "fact": 2, "row": 2, "element": 4, "step": 4, "why": 2, "fix": 2}
_CODE = "font-family:monospace;white-space:pre-wrap;overflow-wrap:anywhere"
_STYLE = {
    "head": "font-weight:600",
    "line": f"{_CODE};margin-left:1em",
    "fact": "margin-left:1em",
    "row": f"{_CODE};margin-left:1em",
    "element": f"{_CODE};margin-left:2em",
    "step": f"{_CODE};margin-left:2em",
    "why": "margin-left:1em",
    "fix": "margin-left:1em;font-weight:600",
}


_SENTENCES = frozenset(("head", "why", "fix"))
_WIDTH = 96


class Report:
    """The base class of reports. Subclasses implement `_lines`: (role, text) pairs."""

    def _lines(self) -> list[tuple[str, str]]:
        raise NotImplementedError

    def __str__(self) -> str:
        return "\n".join(_wrap_line(role, text) for role, text in self._lines())

    def _repr_html_(self) -> str:
        rows = [
            f'<div style="{_STYLE[role]}">{html.escape(text)}</div>' for role, text in self._lines()
        ]
        return f"<div>{''.join(rows)}</div>"


def _wrap_line(role: str, text: str) -> str:
    """Returns one line of a report; sentences are wrapped, source code is not."""
    indent = " " * _INDENT[role]
    if role not in _SENTENCES:
        return indent + text
    return textwrap.fill(
        text,
        _WIDTH,
        initial_indent=indent,
        subsequent_indent=indent + "  ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def source_line(location: SourceLocation) -> list[tuple[str, str]]:
    """Returns the report lines that show a line of the user's program."""
    return [("line", format_source_line(location))]


def format_source_line(location: SourceLocation) -> str:
    """Returns the file, the line number, the source code and the Keras layer of a location."""
    text = format_location(location)
    if location.text:
        text = f"{text}: {location.text}"
    return text if location.layer is None else f"{text}  (layer {location.layer})"


def format_location(location: SourceLocation) -> str:
    """Returns the file and line number of a location."""
    return f"{relative_path(location.filename)}:{location.line}"


def relative_path(filename: str) -> str:
    """Returns the path relative to the working directory, if the file is below it."""
    path = os.path.relpath(filename) if os.path.isabs(filename) else filename
    return filename if path.startswith("..") else path


def format_spec(array: Any) -> str:
    """Returns the dtype and shape of an array or spec, such as `float32[2, 3]`."""
    return f"{dtypes.of(array.dtype).name}{list(array.shape)}"


def format_number(value: Any) -> str:
    """Formats a number with six significant digits."""
    return f"{value:.6g}" if np.isrealobj(value) else str(value)


def format_table(rows: list[tuple[str, ...]], limit: int) -> list[str]:
    """Returns the first `limit` rows in aligned columns, followed by a count of the omitted rows.

    The first column is aligned to the right.
    """
    shown = rows[:limit]
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    lines = []
    for first, *rest in shown:
        cells = [first.rjust(widths[0])]
        cells += [cell.ljust(width) for cell, width in zip(rest, widths[1:], strict=True)]
        lines.append("  ".join(cells).rstrip())
    if len(rows) > limit:
        lines.append(f"... {len(rows) - limit} more")
    return lines


def format_bytes(count: float) -> str:
    """Returns a number of bytes in a suitable unit."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000 or unit == "GB":
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    raise AssertionError
