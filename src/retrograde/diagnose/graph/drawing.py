"""Renders boxes and arrows as SVG and as Graphviz DOT."""

from __future__ import annotations

import html
import math
from collections.abc import Hashable, Mapping
from typing import Any

from retrograde.diagnose.graph.layout import compute_layout

_CHARACTER_WIDTH = 6.65  # of a monospace font of size 11
_ROW_HEIGHT = 15.0
_MAX_CHARACTERS = 58  # of a row
_MARGIN = 16.0

# The border of each kind of box. The same color fills it, almost transparent, and text has the
# color of its surroundings, so that a graph can be read on light and on dark pages.
_COLORS = {
    "variable": "#3f9d54",
    "source": "#3f9d54",
    "calls": "#7d8a9a",
    "unused": "#9a9a9a",
    "escape": "#d0473f",
    "target": "#3d7fcc",
}
_OPACITY = 0.14

# The colors of a file. They follow the color scheme of the system.
_FILE_STYLE = (
    "<style>.tape-graph{color:#1f2933;background:#fbfbfc}@media (prefers-color-scheme:dark)"
    "{.tape-graph{color:#e4e8ed;background:#1b1f24}}</style>"
)

_OFF_PATH = ("unused", "escape")  # kinds that do not lead to the target


def svg(boxes: Mapping[Hashable, Any], arrows: Mapping[tuple, int], inline: bool = False) -> str:
    """Returns the graph as SVG: for a file, or `inline` for an HTML page."""
    rows = {key: [_truncate(row) for row in box.rows] for key, box in boxes.items()}
    sizes = {key: _size(lines) for key, lines in rows.items()}
    layout = compute_layout(sizes, list(arrows))
    width, height = layout.width + 2 * _MARGIN, layout.height + 2 * _MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="tape-graph" width="{width:.0f}" '
        f'height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}" font-size="11" '
        'font-family="ui-monospace, Menlo, Consolas, DejaVu Sans Mono, monospace" '
        'style="max-width: 100%; height: auto">',
        "" if inline else _FILE_STYLE,
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="11" '
        'markerHeight="11" markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0L8 4L0 8z" '
        'fill="#8592a3"/></marker></defs>',
        f'<g transform="translate({_MARGIN:.0f} {_MARGIN:.0f})">',
    ]
    for edge, points in layout.arrows.items():
        parts.append(_curve(points, arrows[edge], boxes[edge[1]].kind in _OFF_PATH))
    for key, box in boxes.items():
        parts.append(_draw_box(box, rows[key], layout.boxes[key]))
    return "\n".join([*parts, "</g>", "</svg>"])


def _truncate(row: str) -> str:
    return row if len(row) <= _MAX_CHARACTERS else f"{row[: _MAX_CHARACTERS - 1]}…"


def _size(rows: list[str]) -> tuple[float, float]:
    return max(map(len, rows)) * _CHARACTER_WIDTH + 20, len(rows) * _ROW_HEIGHT + 12


def thickness(nbytes: int) -> float:
    """Returns the thickness of an arrow, which grows with the logarithm of the bytes."""
    return 1.0 + 0.3 * max(0.0, math.log2(nbytes / 64)) if nbytes > 64 else 1.0


def _curve(points: list[tuple[float, float]], nbytes: int, dashed: bool) -> str:
    """Returns a smooth curve through `points` that is vertical at each of them."""
    (x, y), *rest = points
    path = [f"M{x:.1f} {y:.1f}"]
    for to_x, to_y in rest:
        middle = (y + to_y) / 2
        path.append(f"C{x:.1f} {middle:.1f} {to_x:.1f} {middle:.1f} {to_x:.1f} {to_y:.1f}")
        x, y = to_x, to_y
    dashes = ' stroke-dasharray="4 3"' if dashed else ""
    return (
        f'<path d="{"".join(path)}" fill="none" stroke="#8592a3" stroke-opacity="0.75" '
        f'stroke-width="{thickness(nbytes):.1f}"{dashes} marker-end="url(#tip)"/>'
    )


def _draw_box(box: Any, rows: list[str], corner: tuple[float, float, float, float]) -> str:
    x, y, width, height = corner
    color = _COLORS[box.kind]
    dashes = ' stroke-dasharray="4 3"' if box.kind in _OFF_PATH else ""
    rounding = 12 if box.kind in ("variable", "source", "target") else 4
    parts = [
        f'<g><title>{html.escape(chr(10).join(box.rows))}</title><rect x="{x:.1f}" y="{y:.1f}" '
        f'width="{width:.1f}" height="{height:.1f}" rx="{rounding}" fill="{color}" '
        f'fill-opacity="{_OPACITY}" stroke="{color}"{dashes}/>'
    ]
    for i, row in enumerate(rows):
        weight = ' font-weight="600"' if i == 0 else ' fill-opacity="0.85"'
        parts.append(
            f'<text x="{x + 10:.1f}" y="{y + 17 + i * _ROW_HEIGHT:.1f}" fill="currentColor"'
            f'{weight} xml:space="preserve">{html.escape(row)}</text>'
        )
    return "".join([*parts, "</g>"])


def dot(boxes: Mapping[Hashable, Any], arrows: Mapping[tuple, int]) -> str:
    """Returns the graph in the DOT language of Graphviz, which has its own layout."""
    lines = ["digraph tape {", '  node [shape=box, fontname="monospace", fontsize=10];']
    for key, box in boxes.items():
        color = _COLORS[box.kind]
        style = "filled,dashed" if box.kind in _OFF_PATH else "filled"
        label = _quote("\n".join(box.rows))
        lines.append(
            f'  {_quote(_id(key))} [label={label}, style="{style}", fillcolor="{color}24", '
            f'color="{color}"];'
        )
    for (start, end), nbytes in arrows.items():
        lines.append(
            f"  {_quote(_id(start))} -> {_quote(_id(end))} [penwidth={thickness(nbytes):.1f}];"
        )
    return "\n".join([*lines, "}"])


def _id(key: Hashable) -> str:
    return " ".join(map(str, key)) if isinstance(key, tuple) else str(key)


def _quote(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\l")
    return f'"{escaped}\\l"' if "\n" in text else f'"{escaped}"'
