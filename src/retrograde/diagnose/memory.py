"""`tape.memory()`: what a tape holds, by whom it was made, and what the walk back will take."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from retrograde.core.backward import Cotangents, depending_on
from retrograde.core.recorders import alone
from retrograde.core.tape_arguments import flat, seed
from retrograde.derivatives.checkpointing import owner_of
from retrograde.diagnose.array_owners import held_alone
from retrograde.diagnose.backward_steps import raw, step_by_step
from retrograde.diagnose.calls import RecordedCall, calls_of
from retrograde.diagnose.rendering import Told, bytes_in_words, line_of, table

_SHOWN = 10  # rows of each table


def memory(tape: Any, target: Any = None, sources: Any = None) -> Memory:
    """What the tape holds, by primitive and by line, and what the walk back will take.

    With a `target`, the peak of the walk back from there to `sources`, or to all that is watched,
    is found by walking once. Temporary arrays inside of rules do not count.

    >>> x = tf.Variable(tf.ones([1000]))
    >>> with tf.GradientTape() as tape:
    ...     y = tf.reduce_sum(tf.exp(tf.sin(x)))
    >>> report = tape.memory(y)
    >>> report.held, report.variables, report.freed
    (8000, 4000, 4000)
    >>> report.by_primitive
    {'exp': 4000}
    """
    asked = tape._last_gradient
    entries = list(tape._entries or (() if asked is None else asked.entries))
    holders = [] if asked is None else [*asked.targets, *asked.sources, *asked.read]
    unshared = held_alone(entries, holders)
    calls = calls_of(entries)
    items = _items(calls, unshared, tape._variables)
    keeps = tape._persistent or tape._places is not None
    peak = None
    if target is not None:
        held, _ = flat(sources, "source") if sources is not None else ([], None)
        wanted = {x._id for x in held} or tape._roots
        peak = _peak(entries, items, flat(target, "target")[0], wanted, keeps)
    places = tape._places or getattr(tape._entries, "places", {})
    report = _report(calls, items, places, peak, keeps)
    limited = tape._ledger
    if limited is None:
        return report
    return replace(
        report,
        limit=limited.limit,
        dropped=limited.dropped,
        recomputed=limited.recomputed,
        seconds=limited.seconds,
    )


@dataclass
class Item:
    """One array that a tape holds.

    `maker` is the call that made it, if that is on the tape; `first`, the number of the first call
    that keeps it, with which a walk back lets it go; `alone` says that nobody else holds it.
    """

    nbytes: int
    first: int
    alone: bool
    maker: RecordedCall | None = None
    variable: bool = False


def _items(calls: list[RecordedCall], unshared: set[int], variables: dict) -> list[Item]:
    """The distinct arrays that are kept. A view counts as the whole that it is a part of."""
    makers = {i: call for call in calls for i in call.outputs}
    items: dict[int, Item] = {}
    for call in calls:
        for key, tensor in call.saved.items():
            owner = owner_of(tensor._array)
            item = items.get(id(owner))
            if item is None:
                item = Item(owner.nbytes, call.number, id(owner) in unshared)
                items[id(owner)] = item
            item.maker = item.maker or makers.get(key)
            item.variable |= key in variables
    return list(items.values())


def _peak(
    entries: list[tuple], items: list[Item], targets: list, wanted: set[int], keeps: bool
) -> int:
    """The most that the tape and the cotangents hold at a time, while a walk goes back.

    It lets go of an array after the first call that keeps it, unless the tape `keeps` all.
    """
    still = np.zeros(len(entries) + 1, int)  # what the tape holds while each call is undone
    for item in items:
        if item.alone:
            still[0 if keeps else item.first] += item.nbytes
    still = np.cumsum(still)
    number = {id(entry): i for i, entry in enumerate(entries)}
    most = int(still[-1])

    def look(entry: tuple, gs: tuple, cotangents: Cotangents) -> None:
        nonlocal most
        here = int(still[number[id(entry)]])
        most = max(most, here + _nbytes([*gs, *cotangents.values()]))

    cotangents = Cotangents(on_tensors=False)
    for x in targets:
        cotangents.deposit(x._id, seed(x, None, on_tensors=False))
    with alone():
        step_by_step(list(entries), cotangents, wanted, depending_on(wanted, entries), look)
    return most


def _nbytes(values: Iterable[Any]) -> int:
    """The bytes of all cotangents, those that share memory counted once."""
    owners = {}
    for value in values:
        array = raw(value)
        if array is not None:
            owners[id(owner_of(array))] = owner_of(array).nbytes
    return sum(owners.values())


@dataclass(frozen=True)
class Memory(Told):
    """What `tape.memory()` found, in bytes.

    `held` is all that the tape holds: values that its calls `made`, values of `variables`, and
    what was `given` otherwise. `alone` is what nobody else holds, and `freed` is what `gradient()`
    lets go of that: nothing, if the tape is persistent or keeps lines. `peak` is the most that the
    tape alone and the cotangents hold at a time in the walk back; `None` if no target was named.
    `by_primitive` and `by_line` say who made what was made.

    Of a tape with a `limit`, `dropped` are the bytes that it let go; `recomputed` is how many calls
    it has run again so far, in `seconds`.
    """

    calls: int
    held: int
    made: int
    variables: int
    given: int
    alone: int
    freed: int
    peak: int | None = None
    by_primitive: dict[str, int] = field(default_factory=dict)
    by_line: dict[str, int] = field(default_factory=dict)
    limit: int | None = None
    dropped: int = 0
    recomputed: int = 0
    seconds: float = 0.0

    def _lines(self) -> list[tuple[str, str]]:
        words = bytes_in_words
        lines = [
            ("head", f"{self.calls} calls, which hold {words(self.held)}."),
            ("row", f"made by the calls    {words(self.made)}"),
            ("row", f"values of variables  {words(self.variables)}"),
            ("row", f"given otherwise      {words(self.given)}"),
            ("row", f"held by it alone     {words(self.alone)}"),
            ("row", f"freed by gradient()  {words(self.freed)}"),
        ]
        if self.peak is not None:
            lines.append(("row", f"peak of the walk     {words(self.peak)}"))
        if self.limit is not None:
            lines += [
                ("row", f"memory_limit         {words(self.limit)}"),
                ("row", f"dropped              {words(self.dropped)}"),
                ("row", f"computed again       {self.recomputed} calls, {self.seconds:.3f} s"),
            ]
        for title, found in (("By primitive:", self.by_primitive), ("By line:", self.by_line)):
            if found:
                lines.append(("fact", title))
                rows = [(words(count), name) for name, count in found.items()]
                lines += [("step", row) for row in table(rows, _SHOWN)]
        return lines


def _report(
    calls: list[RecordedCall], items: list[Item], places: dict, peak: int | None, keeps: bool
) -> Memory:
    made = [item for item in items if item.maker is not None]
    variables = sum(item.nbytes for item in items if item.variable and item.maker is None)
    by_primitive: Counter = Counter()
    by_line: Counter = Counter()
    for item in made:
        by_primitive[item.maker.name] += item.nbytes
        place = places.get(item.maker.outputs[0])
        if place is not None:
            by_line[line_of(place)] += item.nbytes
    total, of_calls = (sum(item.nbytes for item in part) for part in (items, made))
    alone = sum(item.nbytes for item in items if item.alone)
    return Memory(
        calls=len(calls),
        held=total,
        made=of_calls,
        variables=variables,
        given=total - of_calls - variables,
        alone=alone,
        freed=0 if keeps else alone,
        peak=peak,
        by_primitive=dict(by_primitive.most_common()),
        by_line=dict(by_line.most_common()),
    )
