"""A recording made shorter: constants folded, repeated work merged, unused work left out."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from retrograde.core import required
from retrograde.core.apply import MANY
from retrograde.core.host_callbacks import Host
from retrograde.core.recorders import alone, thread
from retrograde.core.rules import Spec
from retrograde.program.tracing import Call, Guard, Reading, Recording, Tie, Write, may_look_around

_LARGEST_FOLDED = 1 << 20  # bytes: more than that is quicker computed than carried along
_LARGEST_COMPARED = 64  # bytes: numbers that Python code spells out, once for each variable


class Plain(NamedTuple):
    """What is left of a recording.

    `entries` are calls, guards and readings in order, and writes that Python code may look at;
    `specs`, shapes and dtypes of all values; `constants`, arrays by number. `arguments` are the
    values that are handed in, `results` those that are returned, and `writes` those that variables
    are given at the end.
    """

    entries: list[Any]
    specs: list[Spec]
    constants: dict[int, Any]
    arguments: list[int]
    results: list[int]
    writes: dict[int, int]


def simplified(recording: Recording, results: list[int], fold: bool = True) -> Plain:
    """`recording` with all that need not be done again left out.

    With `fold`, calls on constants are computed now.
    """
    merging = merged(recording.constants, recording.entries, fold=fold)
    results = [merging.same.get(n, n) for n in results]
    entries = needed(merging.entries, {*results, *merging.writes.values()})
    arguments = recording.arguments
    return Plain(entries, recording.specs, merging.known, arguments, results, merging.writes)


def merged(constants: dict[int, Any], *parts: list[Any], fold: bool = True) -> Merging:
    """Several lists of entries, one after the other, with what they share done once."""
    merging = Merging(constants, fold)
    for part in parts:
        merging.ends.append(len(merging.entries))
        for entry in part:
            merging.take(entry)
    return merging


class Merging:
    """One walk over the entries, which are kept unless their values are known already.

    `same` tells which values are those of earlier ones; `ends`, where each part begins.
    """

    def __init__(self, constants: dict[int, Any], fold: bool) -> None:
        self._fold = fold
        self.entries: list[Any] = []
        self.ends: list[int] = []
        self.known: dict[int, Any] = {}
        self.same: dict[int, int] = {}
        self.writes: dict[int, int] = {}
        self._seen: dict[Any, tuple[int, ...]] = {}
        self._small: dict[Any, int] = {}
        for n, x in constants.items():
            self._know(n, x._array)

    def take(self, entry: Any) -> None:
        same = self.same
        kind = type(entry)
        if kind is Call:
            inputs = tuple([same.get(n, n) for n in entry.inputs])
            if may_look_around(entry.primitive):
                self.entries += [Write(*pair) for pair in self.writes.items()]
                self.writes = {}
            self._call(entry._replace(inputs=inputs))
        elif kind is Tie:
            same.update(
                (y, same.get(x, x)) for y, x in zip(entry.outputs, entry.values, strict=True)
            )
        elif kind is Write:
            self.writes[entry.variable] = same.get(entry.value, entry.value)
        elif kind is Guard:
            self.entries.append(entry._replace(value=same.get(entry.value, entry.value)))
        else:
            self.entries.append(entry)

    def _know(self, number: int, array: Any) -> None:
        """Takes a constant in. A small one that is there already is the same."""
        if array.nbytes <= _LARGEST_COMPARED and array.dtype.kind != "O":
            key = (type(array), array.dtype, array.shape, array.tobytes())
            first = self._small.setdefault(key, number)
            if first != number:
                self.same[number] = first
                return
        self.known[number] = array

    def _call(self, call: Call) -> None:
        hosted = type(call.primitive) is Host
        pure = not hosted or call.primitive.pure
        if self._fold and pure and all([n in self.known for n in call.inputs]):
            values = self._computed(call)
            if sum(v.nbytes for v in values) <= _LARGEST_FOLDED:
                for number, value in zip(call.outputs, values, strict=True):
                    self._know(number, value)
                return
        key = None if hosted else (call.primitive.name, call.inputs, hashable(call.attrs))
        if key is not None and key[2] is not None:
            before = self._seen.setdefault(key, call.outputs)
            if before is not call.outputs:
                self.same.update(zip(call.outputs, before, strict=True))
                return
        self.entries.append(call)

    def _computed(self, call: Call) -> tuple:
        arrays = [self.known[n] for n in call.inputs]
        if type(call.primitive) is Host:
            with alone():
                value = call.primitive.f(*arrays)
            return tuple(value) if call.primitive.outputs else (value,)
        kernel = call.primitive.on_numpy if arrays[0].size < MANY else call.primitive.on_many
        value = thread.recorders.quietly(kernel, *arrays, **call.attrs)
        return tuple(value) if call.primitive.outputs else (value,)


def hashable(value: Any) -> Any:
    """Something that tells attributes apart; `None` if they cannot be told."""
    if isinstance(value, dict):
        parts = [(k, hashable(v)) for k, v in value.items()]
        return None if any(p is None for _, p in parts) else tuple(sorted(parts))
    if isinstance(value, (list, tuple)):
        parts = [hashable(v) for v in value]
        return None if any(p is None for p in parts) else (type(value).__name__, *parts)
    if isinstance(value, slice):
        return hashable((value.start, value.stop, value.step))
    if value is None or isinstance(value, (bool, int, float, complex, str, bytes, np.dtype)):
        return type(value).__name__, repr(value)
    return None


def needed(entries: list[Any], wanted: set[int]) -> list[Any]:
    """The entries that lead to `wanted`, or to a guard, or do something outside."""
    kept = []
    for entry in reversed(entries):
        kind = type(entry)
        if kind is Call:
            effect = type(entry.primitive) is Host and not entry.primitive.pure
            if not effect and wanted.isdisjoint(entry.outputs):
                continue
            wanted.update(entry.inputs)
        elif kind is Guard or kind is Write:
            wanted.add(entry.value)
        elif kind is Reading and entry.value not in wanted:
            continue
        kept.append(entry)
    return kept[::-1]


class Reduced(NamedTuple):
    """A backward pass without some of its cotangents.

    `absent` are the values that depend on missing cotangents only, and `zeros` those of them that
    calls still read. `same` has the values that are equal to others now.
    """

    entries: list[Any]
    zeros: dict[int, np.ndarray]
    absent: set[int]
    same: dict[int, int]


def without_cotangents(
    entries: list[Any], specs: list[Spec], cotangents: list[int], missing: set[int]
) -> Reduced:
    """Removes the calls from a backward pass that depend on `missing` cotangents only.

    Eager code does not make these calls. Passing zeros instead is different: 0 * NaN is NaN.
    """
    dependent = set(cotangents)
    reduced = Reduced([], {}, set(missing), {})
    same, absent = reduced.same, reduced.absent
    for entry in entries:
        kind = type(entry)
        if kind is Guard:
            if entry.value not in absent:
                reduced.entries.append(entry._replace(value=same.get(entry.value, entry.value)))
            continue
        if kind is not Call and kind is not Tie:
            reduced.entries.append(entry)
            continue
        entry = _renamed(entry, same)
        read = dependent.intersection(entry.inputs if kind is Call else entry.values)
        if read:
            dependent.update(entry.outputs)
        if read and read <= absent:
            absent.update(entry.outputs)
            continue
        if kind is Call and entry.primitive is required.add and not absent.isdisjoint(read):
            (term,) = read - absent
            if specs[term] == specs[entry.outputs[0]]:
                same[entry.outputs[0]] = term
                continue
        for n in absent.intersection(
            entry.inputs if kind is Call else (*entry.inputs, *entry.values)
        ):
            reduced.zeros[n] = np.zeros(specs[n].shape, specs[n].dtype)[()]
        reduced.entries.append(entry)
    return reduced


def _renamed(entry: Any, same: dict[int, int]) -> Any:
    """Returns a call or tie that reads other values in place of those in `same`."""
    fields = ("inputs",) if type(entry) is Call else ("inputs", "values")
    return entry._replace(**{f: tuple([same.get(n, n) for n in getattr(entry, f)]) for f in fields})
