"""Derivatives inside a function of what it did before anyone asked for them."""

from __future__ import annotations

from retrograde.core.apply import PRIMITIVES, apply
from retrograde.core.calls import Call
from retrograde.core.host_callbacks import Host
from retrograde.core.tape import GradientTape
from retrograde.core.tensor import Tensor
from retrograde.program.interpreter import play_tie
from retrograde.program.tracing import Recording, Tie


def traced_back(
    recording: Recording, targets: list[Tensor], sources: list[Tensor], stops: list[Tensor]
) -> tuple[GradientTape, list[Tensor], list[Tensor]]:
    """A tape on which the way from `sources` to `targets` is gone once more.

    What is done again is recorded again as well, and merged with what was there. `stops` are
    constants on that way.
    """
    ends = [recording.number(x) for x in targets]
    starts = [recording.number(x) for x in sources]
    stopped = {recording.number(x) for x in stops}
    values = recording.known_tensors()
    entries = _leading_to(set(ends) | set(starts), list(recording.entries), set(values))
    tape = GradientTape(persistent=True, watch_accessed_variables=False)

    def enter(number: int) -> None:
        if number in stopped:
            values[number] = apply(PRIMITIVES["stop_gradient"], (values[number],))
        if number in starts:
            tape.watch(values[number])

    with tape:
        for number in [n for n in (*starts, *stopped) if n in values]:
            enter(number)
        for entry in entries:
            if type(entry) is Tie:
                play_tie(recording, entry, values, recording.log)
            else:
                y = apply(entry.primitive, tuple([values[n] for n in entry.inputs]), entry.attrs)
                values.update(zip(entry.outputs, y if type(y) is tuple else (y,), strict=True))
            for number in entry.outputs:
                enter(number)
    return tape, [values[n] for n in ends], [values[n] for n in starts]


def _leading_to(wanted: set[int], entries: list, known: set[int]) -> list:
    """The calls that lead to `wanted` from what is `known`."""
    found = []
    for entry in reversed(entries):
        is_call = type(entry) is Call and type(entry.primitive) is not Host
        if (is_call or type(entry) is Tie) and not wanted.isdisjoint(entry.outputs):
            found.append(entry)
            inputs = entry.inputs if is_call else (*entry.inputs, *entry.values)
            wanted.update(n for n in inputs if n not in known)
    return found[::-1]
