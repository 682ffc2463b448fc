"""How answers are told: as lines of text, and as HTML in notebooks."""

from __future__ import annotations

import html
import os
import textwrap
from typing import Any

import numpy as np

from retrograde.values import dtypes
from retrograde.values.source_location import Place

_INDENT = {"head": 0, "line": 2, "fact": 2, "row": 2, "element": 4, "step": 4, "why": 2, "cure": 2}
_CODE = "font-family:monospace;white-space:pre-wrap;overflow-wrap:anywhere"
_STYLE = {
    "head": "font-weight:600",
    "line": f"{_CODE};margin-left:1em",
    "fact": "margin-left:1em",
    "row": f"{_CODE};margin-left:1em",
    "element": f"{_CODE};margin-left:2em",
    "step": f"{_CODE};margin-left:2em",
    "why": "margin-left:1em",
    "cure": "margin-left:1em;font-weight:600",
}


_SENTENCES = frozenset(("head", "why", "cure"))
_WIDTH = 96


class Told:
    """An answer in lines, each with a role, that `_lines` gives."""

    def _lines(self) -> list[tuple[str, str]]:
        raise NotImplementedError

    def __str__(self) -> str:
        return "\n".join(_wrapped(role, words) for role, words in self._lines())

    def _repr_html_(self) -> str:
        rows = [
            f'<div style="{_STYLE[role]}">{html.escape(words)}</div>'
            for role, words in self._lines()
        ]
        return f"<div>{''.join(rows)}</div>"


def _wrapped(role: str, words: str) -> str:
    """One line of an answer; sentences are broken, lines of programs are not."""
    indent = " " * _INDENT[role]
    if role not in _SENTENCES:
        return indent + words
    return textwrap.fill(
        words,
        _WIDTH,
        initial_indent=indent,
        subsequent_indent=indent + "  ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def the_line(place: Place) -> list[tuple[str, str]]:
    """A line of the user's program, as it is shown in an answer."""
    return [("line", line_of(place))]


def line_of(place: Place) -> str:
    """A line of the user's program in words: where, what, and in which layer."""
    words = f"{shown(place)}: {place.text}" if place.text else shown(place)
    return words if place.layer is None else f"{words}  (layer {place.layer})"


def shown(place: Place) -> str:
    """A place, by a path from here if the file lies below."""
    return f"{path_from_here(place.filename)}:{place.line}"


def path_from_here(filename: str) -> str:
    """A path from here if the file lies below, else as it is."""
    path = os.path.relpath(filename) if os.path.isabs(filename) else filename
    return filename if path.startswith("..") else path


def described(array: Any) -> str:
    """The dtype and shape of an array, or of one that is gone."""
    return f"{dtypes.of(array.dtype).name}{list(array.shape)}"


def number(value: Any) -> str:
    """A number, short."""
    return f"{value:.6g}" if np.isrealobj(value) else str(value)


def table(rows: list[tuple[str, ...]], most: int) -> list[str]:
    """Rows in columns, numbers on the left at the right; those after the first `most` counted."""
    chosen = rows[:most]
    widths = [max(map(len, column)) for column in zip(*chosen, strict=True)]
    lines = []
    for first, *rest in chosen:
        cells = [first.rjust(widths[0])]
        cells += [cell.ljust(width) for cell, width in zip(rest, widths[1:], strict=True)]
        lines.append("  ".join(cells).rstrip())
    if len(rows) > most:
        lines.append(f"... {len(rows) - most} more")
    return lines


def bytes_in_words(count: float) -> str:
    """A number of bytes in the unit that fits."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000 or unit == "GB":
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    raise AssertionError
