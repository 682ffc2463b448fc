"""Boxes and arrows as SVG, and as text for Graphviz."""

from __future__ import annotations

import html
import math
from collections.abc import Hashable, Mapping
from typing import Any

from retrograde.diagnose.graph.layout import place

_LETTER = 6.65  # the width of a letter, in a font of equal widths of size 11
_ROW = 15.0
_LONGEST = 58  # letters of a row
_MARGIN = 16.0

# Fill, border and text of each kind of box.
_COLOURS = {
    "variable": ("#e6f4ea", "#2e7d32", "#1b5e20"),
    "source": ("#e6f4ea", "#2e7d32", "#1b5e20"),
    "calls": ("#ffffff", "#5f6b7a", "#1f2933"),
    "dead end": ("#f4f4f4", "#9a9a9a", "#555555"),
    "exit": ("#fdecea", "#c62828", "#8e1b1b"),
    "target": ("#e3edfb", "#1a5fb4", "#123f7a"),
}

_ASIDE = ("dead end", "exit")  # kinds that do not lead to the target


def svg(boxes: Mapping[Hashable, Any], arrows: Mapping[tuple, int]) -> str:
    """The picture."""
    rows = {key: [_cut(row) for row in box.rows] for key, box in boxes.items()}
    sizes = {key: _size(lines) for key, lines in rows.items()}
    placed = place(sizes, list(arrows))
    width, height = placed.width + 2 * _MARGIN, placed.height + 2 * _MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="ui-monospace, Menlo, Consolas, '
        'DejaVu Sans Mono, monospace" font-size="11" style="max-width: 100%; height: auto">',
        f'<rect width="{width:.0f}" height="{height:.0f}" fill="#fbfbfc"/>',
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="11" '
        'markerHeight="11" markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0L8 4L0 8z" '
        'fill="#8592a3"/></marker></defs>',
        f'<g transform="translate({_MARGIN:.0f} {_MARGIN:.0f})">',
    ]
    for edge, points in placed.arrows.items():
        parts.append(_curve(points, arrows[edge], boxes[edge[1]].kind in _ASIDE))
    for key, box in boxes.items():
        parts.append(_drawn(box, rows[key], placed.boxes[key]))
    return "\n".join([*parts, "</g>", "</svg>"])


def _cut(row: str) -> str:
    return row if len(row) <= _LONGEST else f"{row[: _LONGEST - 1]}…"


def _size(rows: list[str]) -> tuple[float, float]:
    return max(map(len, rows)) * _LETTER + 20, len(rows) * _ROW + 12


def thickness(nbytes: int) -> float:
    """How thick an arrow is: a little more for each doubling."""
    return 1.0 + 0.3 * max(0.0, math.log2(nbytes / 64)) if nbytes > 64 else 1.0


def _curve(points: list[tuple[float, float]], nbytes: int, faint: bool) -> str:
    """A smooth line through `points`, which goes straight down at each of them."""
    (x, y), *rest = points
    path = [f"M{x:.1f} {y:.1f}"]
    for to_x, to_y in rest:
        middle = (y + to_y) / 2
        path.append(f"C{x:.1f} {middle:.1f} {to_x:.1f} {middle:.1f} {to_x:.1f} {to_y:.1f}")
        x, y = to_x, to_y
    dashes = ' stroke-dasharray="4 3"' if faint else ""
    return (
        f'<path d="{"".join(path)}" fill="none" stroke="#8592a3" stroke-opacity="0.75" '
        f'stroke-width="{thickness(nbytes):.1f}"{dashes} marker-end="url(#tip)"/>'
    )


def _drawn(box: Any, rows: list[str], corner: tuple[float, float, float, float]) -> str:
    x, y, width, height = corner
    fill, border, text = _COLOURS[box.kind]
    dashes = ' stroke-dasharray="4 3"' if box.kind in _ASIDE else ""
    rounding = 12 if box.kind in ("variable", "source", "target") else 4
    parts = [
        f'<g><title>{html.escape(chr(10).join(box.rows))}</title><rect x="{x:.1f}" y="{y:.1f}" '
        f'width="{width:.1f}" height="{height:.1f}" rx="{rounding}" fill="{fill}" '
        f'stroke="{border}"{dashes}/>'
    ]
    for i, row in enumerate(rows):
        weight = ' font-weight="600"' if i == 0 else ' fill-opacity="0.85"'
        parts.append(
            f'<text x="{x + 10:.1f}" y="{y + 17 + i * _ROW:.1f}" fill="{text}"{weight} '
            f'xml:space="preserve">{html.escape(row)}</text>'
        )
    return "".join([*parts, "</g>"])


def dot(boxes: Mapping[Hashable, Any], arrows: Mapping[tuple, int]) -> str:
    """The same for Graphviz, which places it in its own way."""
    lines = ["digraph tape {", '  node [shape=box, fontname="monospace", fontsize=10];']
    for key, box in boxes.items():
        fill, border, text = _COLOURS[box.kind]
        style = "filled,dashed" if box.kind in _ASIDE else "filled"
        label = _quoted("\n".join(box.rows))
        lines.append(
            f'  {_quoted(_id(key))} [label={label}, style="{style}", fillcolor="{fill}", '
            f'color="{border}", fontcolor="{text}"];'
        )
    for (start, end), nbytes in arrows.items():
        lines.append(
            f"  {_quoted(_id(start))} -> {_quoted(_id(end))} [penwidth={thickness(nbytes):.1f}];"
        )
    return "\n".join([*lines, "}"])


def _id(key: Hashable) -> str:
    return " ".join(map(str, key)) if isinstance(key, tuple) else str(key)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\l")
    return f'"{escaped}\\l"' if "\n" in text else f'"{escaped}"'
