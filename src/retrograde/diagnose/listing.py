"""`print(tape)`: lists the calls with shapes, dtypes, saved bytes and lines."""

from __future__ import annotations

from typing import Any

from retrograde.derivatives.checkpointing import owner_of
from retrograde.diagnose.calls import RecordedCall, calls_of
from retrograde.diagnose.rendering import (
    Table,
    format_bytes,
    format_location,
    format_spec,
    to_html,
)

_SHOWN = 40  # calls that are listed, half of them from the start and half from the end


_TITLES = ("", "call", "inputs", "outputs", "saves", "line")


def __str__(tape: Any) -> str:
    head, rows = _list_calls(tape)
    return f"{head}\n{Table(rows, _TITLES, indent=2)}" if rows else head


def _repr_html_(tape: Any) -> str:
    head, rows = _list_calls(tape)
    table = f'<div style="overflow-x:auto">{Table(rows, _TITLES).html()}</div>' if rows else ""
    return f"<div>{to_html(head)}</div>{table}"


def _list_calls(tape: Any) -> tuple[str, list[tuple[str, ...]]]:
    """Returns a headline and a row for each call."""
    kind = "persistent GradientTape" if tape._persistent else "GradientTape"
    entries, last = tape._entries, tape._last_gradient
    if entries is None and last is not None and last.nonfinite is None:
        entries = last.entries
    watched = f"{len(tape._roots)} watched"
    if entries is None:
        where = ":".join(map(str, tape._used_at))
        return f"<{kind}, {watched}, used by gradient() at {where}>", []
    calls = calls_of(entries)
    shapes = _shapes(calls, tape)
    rows, counted = [], set()
    for call in calls:
        rows.append(_row(call, shapes, tape, _saved_bytes(call, counted)))
    state = "recording" if tape._recording else "recorded"
    if len(rows) > _SHOWN:
        half = _SHOWN // 2
        gap = ("...", f"{len(rows) - _SHOWN} more", "", "", "", "")
        rows = [*rows[:half], gap, *rows[-half:]]
    return f"<{kind}, {watched}, {len(calls)} calls {state}>", rows


def _shapes(calls: list[RecordedCall], tape: Any) -> dict[int, str]:
    """Returns shapes and dtypes of tensors, and names of variables, by id."""
    labels = {}
    for call in calls:
        for key, value in (*call.specs.items(), *call.saved.items()):
            labels[key] = format_spec(value._spec)
    for key, variable in tape._variables.items():
        labels[key] = variable.name
    return labels


def _row(call: RecordedCall, shapes: dict[int, str], tape: Any, saved: int) -> tuple[str, ...]:
    inputs, outputs = (
        ", ".join(shapes.get(i, "?") for i in ids) for ids in (call.inputs, call.outputs)
    )
    location = (tape._locations or {}).get(call.outputs[0])
    line = (
        ""
        if location is None
        else f"{format_location(location)}: {location.layer or location.expression}"
    )
    size = format_bytes(saved) if saved else ""
    return str(call.number), call.name, inputs, outputs, size, line


def _saved_bytes(call: RecordedCall, counted: set[int]) -> int:
    """Returns the bytes that this call saves and no earlier call has saved."""
    total = 0
    for tensor in call.saved.values():
        owner = owner_of(tensor._array)
        if id(owner) not in counted:
            counted.add(id(owner))
            total += owner.nbytes
    return total
