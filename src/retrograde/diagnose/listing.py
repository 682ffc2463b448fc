"""`print(tape)`: the calls in order, with shapes, dtypes, what is kept of each, and the line."""

from __future__ import annotations

import html
from typing import Any

from retrograde.derivatives.checkpointing import owner_of
from retrograde.diagnose.calls import RecordedCall, calls_of
from retrograde.diagnose.rendering import bytes_in_words, described, shown, table

_SHOWN = 40  # calls that are listed: half of them from the start, half from the end


def __str__(tape: Any) -> str:
    head, rows = _listing(tape)
    lines = table([_TITLES, *rows], len(rows) + 1) if rows else []
    return "\n".join([head, *(f"  {line}" for line in lines)])


def _repr_html_(tape: Any) -> str:
    head, rows = _listing(tape)
    lines = [_html_row("th", _TITLES), *[_html_row("td", row) for row in rows]] if rows else []
    table = f'<table style="font-family: monospace">{"".join(lines)}</table>'
    return f'<div>{html.escape(head)}</div><div style="overflow-x: auto">{table}</div>'


def _html_row(tag: str, row: tuple[str, ...]) -> str:
    cells = [_cell(tag, words, *style) for words, style in zip(row, _STYLES, strict=True)]
    return f"<tr>{''.join(cells)}</tr>"


def _cell(tag: str, words: str, align: str, breaks: str) -> str:
    style = f"text-align: {align}; vertical-align: top; padding: 0.1em 0.6em; {breaks}"
    return f'<{tag} style="{style}">{html.escape(words)}</{tag}>'


_TITLES = ("", "call", "from", "to", "keeps", "line")
_WHOLE, _BROKEN = "white-space: nowrap", "overflow-wrap: anywhere; min-width: "
_STYLES = (
    ("right", _WHOLE),
    ("left", _WHOLE),
    ("left", f"{_BROKEN}14em"),
    ("left", _WHOLE),
    ("right", _WHOLE),
    ("left", f"{_BROKEN}20em"),
)


def _listing(tape: Any) -> tuple[str, list[tuple[str, ...]]]:
    """A headline, and a row for each call."""
    kind = "persistent GradientTape" if tape._persistent else "GradientTape"
    entries, asked = tape._entries, tape._last_gradient
    if entries is None and asked is not None and asked.nonfinite is None:
        entries = asked.entries
    watched = f"{len(tape._roots)} watched"
    if entries is None:
        where = ":".join(map(str, tape._used_at))
        return f"<{kind}, {watched}, which gave its gradients at {where}>", []
    calls = calls_of(entries)
    shapes = _shapes(calls, tape)
    rows, counted = [], set()
    for call in calls:
        kept = _kept(call, counted)
        rows.append(_row(call, shapes, tape, kept))
    state = "recording" if tape._recording else "recorded"
    if len(rows) > _SHOWN:
        half = _SHOWN // 2
        gap = ("...", f"{len(rows) - _SHOWN} more", "", "", "", "")
        rows = [*rows[:half], gap, *rows[-half:]]
    return f"<{kind}, {watched}, {len(calls)} calls {state}>", rows


def _shapes(calls: list[RecordedCall], tape: Any) -> dict[int, str]:
    """What is known of the values, by id."""
    found = {}
    for call in calls:
        for key, value in (*call.specs.items(), *call.saved.items()):
            found[key] = described(value._spec)
    for key, variable in tape._variables.items():
        found[key] = variable.name
    return found


def _row(call: RecordedCall, shapes: dict[int, str], tape: Any, kept: int) -> tuple[str, ...]:
    inputs, outputs = (
        ", ".join(shapes.get(i, "?") for i in ids) for ids in (call.inputs, call.outputs)
    )
    place = (tape._places or {}).get(call.outputs[0])
    line = "" if place is None else f"{shown(place)}: {place.layer or place.marked}"
    words = bytes_in_words(kept) if kept else ""
    return str(call.number), call.name, inputs, outputs, words, line


def _kept(call: RecordedCall, counted: set[int]) -> int:
    """The bytes that this call keeps and none before it did."""
    total = 0
    for tensor in call.saved.values():
        owner = owner_of(tensor._array)
        if id(owner) not in counted:
            counted.add(id(owner))
            total += owner.nbytes
    return total
