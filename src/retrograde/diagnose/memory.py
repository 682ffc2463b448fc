"""`tape.memory()`: reports the memory of a tape and the peak of the backward pass."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from retrograde.core.backward import Cotangents, depending_on
from retrograde.core.recorders import isolate
from retrograde.core.tape_arguments import flatten_arguments, seed
from retrograde.derivatives.checkpointing import owner_of
from retrograde.diagnose.array_owners import exclusive_array_ids
from retrograde.diagnose.backward_steps import step_by_step, to_numpy
from retrograde.diagnose.calls import RecordedCall, calls_of
from retrograde.diagnose.rendering import Report, Table, format_bytes, format_source_line

_SHOWN = 10  # rows of each table


def memory(tape: Any, target: Any = None, sources: Any = None) -> Memory:
    """Reports the memory that the tape holds, by primitive and by line.

    With a `target`, it also runs a backward pass to `sources` (default: all watched) and reports
    its peak memory. Temporary arrays inside gradients are not counted.

    >>> x = tf.Variable(tf.ones([1000]))
    >>> with tf.GradientTape() as tape:
    ...     y = tf.reduce_sum(tf.exp(tf.sin(x)))
    >>> report = tape.memory(y)
    >>> report.held, report.variables, report.freed
    (8000, 4000, 4000)
    >>> report.by_primitive
    {'exp': 4000}
    """
    last = tape._last_gradient
    entries = list(tape._entries or (() if last is None else last.entries))
    holders = [] if last is None else [*last.targets, *last.sources, *last.read]
    exclusive = exclusive_array_ids(entries, holders)
    calls = calls_of(entries)
    arrays = _arrays(calls, exclusive, tape._variables)
    keeps = tape._persistent or tape._locations is not None
    peak = None
    if target is not None:
        leaves, _ = flatten_arguments(sources, "source") if sources is not None else ([], None)
        source_ids = {x._id for x in leaves} or tape._roots
        peak = _peak(entries, arrays, flatten_arguments(target, "target")[0], source_ids, keeps)
    locations = tape._locations or getattr(tape._entries, "locations", {})
    report = _report(calls, arrays, locations, peak, keeps)
    ledger = tape._ledger
    if ledger is None:
        return report
    return replace(
        report,
        limit=ledger.limit,
        dropped=ledger.dropped,
        recomputed=ledger.recomputed,
        seconds=ledger.seconds,
    )


@dataclass
class SavedArray:
    """An array that a tape holds.

    `producer` is the call that returned it, if that call is on the tape. `first` is the number of
    the first call that saves it; the backward pass frees it after that call. `exclusive` says that
    only the tape references it.
    """

    nbytes: int
    first: int
    exclusive: bool
    producer: RecordedCall | None = None
    is_variable: bool = False


def _arrays(calls: list[RecordedCall], exclusive: set[int], variables: dict) -> list[SavedArray]:
    """Returns the distinct arrays that are saved. A view counts as its base array."""
    producers = {i: call for call in calls for i in call.outputs}
    arrays: dict[int, SavedArray] = {}
    for call in calls:
        for key, tensor in call.saved.items():
            owner = owner_of(tensor._array)
            array = arrays.get(id(owner))
            if array is None:
                array = SavedArray(owner.nbytes, call.number, id(owner) in exclusive)
                arrays[id(owner)] = array
            array.producer = array.producer or producers.get(key)
            array.is_variable |= key in variables
    return list(arrays.values())


def _peak(
    entries: list[tuple], arrays: list[SavedArray], targets: list, source_ids: set[int], keeps: bool
) -> int:
    """Returns the peak memory of the tape and the cotangents in a backward pass.

    An array is freed after the first call that saves it, unless the tape `keeps` all arrays.
    """
    saved = np.zeros(len(entries) + 1, int)  # bytes of the tape during the step of each call
    for array in arrays:
        if array.exclusive:
            saved[0 if keeps else array.first] += array.nbytes
    saved = np.cumsum(saved)
    number = {id(entry): i for i, entry in enumerate(entries)}
    peak = int(saved[-1])

    def update_peak(entry: tuple, gs: tuple, cotangents: Cotangents) -> None:
        nonlocal peak
        tape_bytes = int(saved[number[id(entry)]])
        peak = max(peak, tape_bytes + _nbytes([*gs, *cotangents.values()]))

    cotangents = Cotangents(on_tensors=False)
    for x in targets:
        cotangents.deposit(x._id, seed(x, None, on_tensors=False))
    with isolate():
        step_by_step(
            list(entries), cotangents, source_ids, depending_on(source_ids, entries), update_peak
        )
    return peak


def _nbytes(values: Iterable[Any]) -> int:
    """Returns the bytes of all cotangents; shared memory is counted once."""
    owners = {}
    for value in values:
        array = to_numpy(value)
        if array is not None:
            owners[id(owner_of(array))] = owner_of(array).nbytes
    return sum(owners.values())


@dataclass(frozen=True)
class Memory(Report):
    """The result of `tape.memory()`, in bytes.

    Attributes:
        calls: The number of recorded calls.
        held: The total memory that the tape holds: `outputs` + `variables` + `inputs`.
        outputs: Outputs of recorded calls.
        variables: Values of variables.
        inputs: Other tensors, from outside the tape.
        exclusive: The part of `held` that only the tape references.
        freed: The part that `gradient()` frees: 0 if the tape is persistent or stores lines.
        peak: The peak of `exclusive` and the cotangents in the backward pass; `None` without a
            target.
        by_primitive: `outputs` by primitive.
        by_line: `outputs` by source line.
        limit: The `memory_limit` of the tape.
        dropped: The bytes that were dropped to meet the limit.
        recomputed: The number of calls that were recomputed so far.
        seconds: The time of recomputation.
    """

    calls: int
    held: int
    outputs: int
    variables: int
    inputs: int
    exclusive: int
    freed: int
    peak: int | None = None
    by_primitive: dict[str, int] = field(default_factory=dict)
    by_line: dict[str, int] = field(default_factory=dict)
    limit: int | None = None
    dropped: int = 0
    recomputed: int = 0
    seconds: float = 0.0

    def _lines(self) -> list[tuple[str, str] | Table]:
        rows = [
            ("outputs of calls", format_bytes(self.outputs)),
            ("values of variables", format_bytes(self.variables)),
            ("other inputs", format_bytes(self.inputs)),
            ("held only by the tape", format_bytes(self.exclusive)),
            ("freed by gradient()", format_bytes(self.freed)),
        ]
        if self.peak is not None:
            rows.append(("backward pass peak", format_bytes(self.peak)))
        if self.limit is not None:
            rows += [
                ("memory_limit", format_bytes(self.limit)),
                ("dropped", format_bytes(self.dropped)),
                ("recomputed", f"{self.recomputed} calls, {self.seconds:.3f} s"),
            ]
        lines = [
            ("head", f"{self.calls} calls hold {format_bytes(self.held)}."),
            Table(rows, indent=2, align="left"),
        ]
        for title, sizes in (("By primitive:", self.by_primitive), ("By line:", self.by_line)):
            if sizes:
                rows = [(format_bytes(count), name) for name, count in sizes.items()]
                bars = [(count,) for count in sizes.values()]
                lines += [("fact", title), Table(rows, limit=_SHOWN, sizes=bars)]
        return lines


def _report(
    calls: list[RecordedCall],
    arrays: list[SavedArray],
    locations: dict,
    peak: int | None,
    keeps: bool,
) -> Memory:
    produced = [a for a in arrays if a.producer is not None]
    variables = sum(a.nbytes for a in arrays if a.is_variable and a.producer is None)
    by_primitive: Counter = Counter()
    by_line: Counter = Counter()
    for array in produced:
        by_primitive[array.producer.name] += array.nbytes
        location = locations.get(array.producer.outputs[0])
        if location is not None:
            by_line[format_source_line(location)] += array.nbytes
    held_bytes, outputs = (sum(a.nbytes for a in part) for part in (arrays, produced))
    exclusive = sum(a.nbytes for a in arrays if a.exclusive)
    return Memory(
        calls=len(calls),
        held=held_bytes,
        outputs=outputs,
        variables=variables,
        inputs=held_bytes - outputs - variables,
        exclusive=exclusive,
        freed=0 if keeps else exclusive,
        peak=peak,
        by_primitive=dict(by_primitive.most_common()),
        by_line=dict(by_line.most_common()),
    )
