"""Renders reports as text, and as HTML in notebooks."""

from __future__ import annotations

import html
import os
import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from retrograde.values import dtypes
from retrograde.values.source_location import SourceLocation

_INDENT = {"head": 0, "line": 2, "fact": 2, "element": 4, "step": 4, "why": 2, "fix": 2}
# Notebooks have light and dark themes: text inherits its color, and bars have medium colors. Lines
# of code scroll instead of breaking within a name.
_CODE = "font-family:monospace;white-space:pre-wrap;overflow-wrap:normal"
_STYLE = {
    "head": "font-weight:600",
    "line": f"{_CODE};margin-left:1em",
    "fact": "margin-left:1em",
    "element": f"{_CODE};margin-left:2em",
    "step": f"{_CODE};margin-left:2em",
    "why": "margin-left:1em",
    "fix": "margin-left:1em;font-weight:600",
}
_CELL = "vertical-align:top;padding:0.1em 0.6em"
_MAX_CELL = 40  # characters of a cell that is not wrapped
_BAR_COLORS = ("#4c8fbd", "#d98032")
_LONG_WORD = 20  # characters

_SENTENCES = frozenset(("head", "why", "fix"))
_WIDTH = 96


class Report:
    """The base class of reports. Subclasses implement `_lines`: (role, text) pairs and tables."""

    def _lines(self) -> Sequence[tuple[str, str] | Table]:
        raise NotImplementedError

    def __str__(self) -> str:
        lines = self._lines()
        return "\n".join(
            str(line) if isinstance(line, Table) else _wrap_line(*line) for line in lines
        )

    def _repr_html_(self) -> str:
        parts = [
            line.html()
            if isinstance(line, Table)
            else f'<div style="{_STYLE[line[0]]}">{to_html(line[1])}</div>'
            for line in self._lines()
        ]
        return f'<div style="overflow-x:auto">{"".join(parts)}</div>'


@dataclass(frozen=True)
class Table:
    """A table in a report.

    Attributes:
        rows: The cells of each row.
        titles: The titles of the columns, if any.
        limit: The number of rows that are shown.
        sizes: For each row, one or more numbers that notebooks show as a bar.
        indent: The number of spaces before each line of text.
        align: The alignment of the first column.
    """

    rows: Sequence[tuple[str, ...]]
    titles: tuple[str, ...] = ()
    limit: int = 100
    sizes: Sequence[tuple[float, ...]] = ()
    indent: int = 4
    align: str = "right"

    def __str__(self) -> str:
        rows = [self.titles, *self.rows] if self.titles else list(self.rows)
        lines = format_table(rows, self.limit + bool(self.titles), self.align)
        return "\n".join(" " * self.indent + line for line in lines)

    def html(self) -> str:
        """Returns the table as HTML."""
        lines = [self._html_row("th", self.titles, "" if self.sizes else None)]
        scale = max((sum(size) for size in self.sizes), default=0.0)
        for i, row in enumerate(self.rows[: self.limit]):
            bar = _bar(self.sizes[i], scale) if self.sizes else None
            lines.append(self._html_row("td", row, bar))
        if len(self.rows) > self.limit:
            lines.append(self._html_row("td", (f"... {len(self.rows) - self.limit} more",), None))
        return f'<table style="font-family:monospace">{"".join(lines)}</table>'

    def _html_row(self, tag: str, row: tuple[str, ...], bar: str | None) -> str:
        if not row:
            return ""
        cells = [] if bar is None else [f'<{tag} style="{_CELL}">{bar}</{tag}>']
        for i, text in enumerate(row):
            wrap = "min-width:20em" if len(text) > _MAX_CELL else "white-space:nowrap"
            style = f"text-align:{'left' if i else self.align};{_CELL};{wrap}"
            cells.append(f'<{tag} style="{style}">{to_html(text)}</{tag}>')
        return f"<tr>{''.join(cells)}</tr>"


def _bar(sizes: tuple[float, ...], scale: float) -> str:
    """Returns a horizontal bar; several numbers are stacked."""
    parts = [
        f'<span style="display:inline-block;height:0.7em;width:{6 * size / (scale or 1.0):.2f}em;'
        f'background:{color}"></span>'
        for size, color in zip(sizes, _BAR_COLORS, strict=False)
    ]
    return f'<div style="width:6.5em;text-align:left">{"".join(parts)}</div>'


def to_html(text: str) -> str:
    """Escapes text. Long words may be broken after dots, underscores and slashes, if at all."""
    return re.sub(rf"[^\s<>]{{{_LONG_WORD},}}", _allow_breaks, html.escape(text, quote=False))


def _allow_breaks(word: re.Match[str]) -> str:
    return re.sub(r"(?<=\w)[._/](?=[A-Za-z_])", r"\g<0><wbr>", word[0])


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


def format_table(rows: Sequence[tuple[str, ...]], limit: int, align: str = "right") -> list[str]:
    """Returns the first `limit` rows in aligned columns, followed by a count of the omitted rows.

    `align` is the alignment of the first column.
    """
    shown = rows[:limit]
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    lines = []
    for first, *rest in shown:
        cells = [first.rjust(widths[0]) if align == "right" else first.ljust(widths[0])]
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
