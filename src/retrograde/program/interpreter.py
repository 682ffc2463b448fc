"""A recording played through `apply`, so that whoever listens hears every call."""

from __future__ import annotations

from collections.abc import Callable
from types import FrameType
from typing import Any, NamedTuple

import numpy as np

from retrograde.core.apply import apply
from retrograde.core.custom_gradient import record_custom
from retrograde.core.host_callbacks import Host, wrapped
from retrograde.core.indexed_slices import whole
from retrograde.core.program import Call, CustomGradient, Guard, ReadVariable, Write
from retrograde.core.recorders import alone
from retrograde.core.source_location import Place, Retold, locals_of, tell_again
from retrograde.core.tensor import Tensor
from retrograde.program.tracing import Log, Recording, key_of, may_look_around, to_variable


class Divergence(NamedTuple):
    """The guard, by its place among them, at which a replay met something else: `key`."""

    place: int
    key: Any


class Played(NamedTuple):
    """What playing a recording gave: tensors by their numbers, and new values of variables."""

    values: dict[int, Tensor]
    writes: dict[int, Tensor]


def play_entries(
    recording: Recording,
    entries: list,
    values: dict[int, Tensor],
    log: Log,
    heard: Callable[[Call, tuple], None] | None = None,
) -> Played | Divergence:
    """Does again what `entries` say, from `values` on; variables are left as they are.

    `heard` is told what Python code gave.
    """
    writes: dict[int, Tensor] = {}
    guards = 0
    for entry in entries:
        kind = type(entry)
        if kind is Call:
            inputs = tuple([values[n] for n in entry.inputs])
            if type(entry.primitive) is Host:
                if may_look_around(entry.primitive):
                    for place, tensor in writes.items():
                        log.show(recording.variables[place], tensor._array)
                    writes = {}
                y = _host(entry.primitive, inputs, log)
                if heard is not None:
                    heard(entry, y if type(y) is tuple else (y,))
            else:
                y = apply(entry.primitive, inputs, entry.attrs)
            values.update(zip(entry.outputs, y if type(y) is tuple else (y,), strict=True))
        elif kind is Guard:
            array = values[entry.value]._array
            key = bool(array) if entry.truth else key_of(array)
            if key != entry.key:
                return Divergence(guards, key)
            guards += 1
        elif kind is Write:
            writes[entry.variable] = values[entry.value]
        elif kind is ReadVariable:
            values[entry.value] = recording.variables[entry.variable]._read()
        else:
            play_tie(recording, entry, values, log)
    return Played(values, writes)


def _place_of_entry(frame: FrameType) -> Place | None:
    """The place where the entry was recorded that is being played in `frame`."""
    recording, entry = locals_of(frame, "recording", "entry")
    origin = recording.origins.get(entry.outputs[0]) if type(entry) is Call else None
    return None if origin is None else origin.place


def _derived_by_entry(frame: FrameType) -> tuple[Any, tuple, tuple] | None:
    """The call whose rule the entry is a part of that is being played in `frame`."""
    recording, entries, values, entry = locals_of(frame, "recording", "entries", "values", "entry")
    origin = recording.origins.get(entry.outputs[0])
    of = None if origin is None else origin.of
    call = next((e for e in entries if type(e) is Call and e.outputs[0] == of), None)
    if call is None:
        return None
    inputs, outputs = ([values[n] for n in numbers] for numbers in (call.inputs, call.outputs))
    return call.primitive, tuple(inputs), tuple(outputs)


tell_again(Retold(play_entries.__code__, _place_of_entry, _derived_by_entry))


def _host(host: Host, inputs: tuple, log: Log) -> Any:
    arrays = [np.asarray(x._array) for x in inputs]
    if not host.pure:
        return wrapped(host, log.ask(host, arrays))
    with alone():
        return wrapped(host, host.f(*arrays))


def play_tie(
    recording: Recording, tie: CustomGradient, values: dict[int, Tensor], log: Log
) -> None:
    """Makes the outputs of a `custom_gradient` lead back by the user's rule.

    That rule holds tensors of the call that was recorded. So it is recorded itself, as a function
    of the cotangents and of what the call computed, and played with what this one computes.
    """

    def rule(needed: tuple[bool, ...], g: Any) -> list:
        several = g if type(g) is tuple else (g,)
        backward, first, results = rule_of(recording, tie)
        given = dict(zip(range(first, first + len(several)), several, strict=True))
        known = values | backward.constants | given
        played = play_entries(backward, backward.steps, known, log)
        return [
            played.values[n] if n is not None and wanted else None
            for n, wanted in zip(results, needed, strict=True)
        ]

    inputs = [values[n] for n in tie.sources]
    again = to_variable if tie.rule is to_variable else rule  # the former holds no tensors
    outputs = record_custom(tie.name, again, inputs, [values[n] for n in tie.values])
    values.update(zip(tie.outputs, outputs, strict=True))


def rule_of(recording: Recording, tie: CustomGradient) -> tuple[Recording, int, list]:
    """The user's rule of a `custom_gradient` as a recording that goes on where the call ended.

    With it come the number of the first cotangent, and those of the results.
    """
    key = tie.outputs
    if key not in recording.rules:
        backward = recording.branched()
        specs = [recording.specs[n] for n in tie.outputs]
        cotangents = [Tensor(np.ones(spec.shape, spec.dtype)[()]) for spec in specs]
        first = backward.begin(cotangents)
        with alone(backward):
            g = tuple(cotangents) if len(cotangents) > 1 else cotangents[0]
            found = [whole(x) for x in tie.rule((True,) * len(tie.sources), g)]
        results = [None if x is None else backward.number(x) for x in found]
        recording.rules[key] = (backward, first, results)
    return recording.rules[key]
