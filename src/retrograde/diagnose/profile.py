"""`tape.profile()`: measures the forward and backward time of each call."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from retrograde.core.backward import Cotangents, backward_pass, depending_on
from retrograde.core.recorders import isolate, thread
from retrograde.core.tape_arguments import flatten_arguments, seed
from retrograde.diagnose.calls import RecordedCall, Values, calls_between, values_of
from retrograde.diagnose.rendering import Report, Table, format_source_line
from retrograde.values import dtypes
from retrograde.values.source_location import SourceLocation
from retrograde.values.thresholds import LARGE_ARRAY_SIZE

_SHOWN = 12  # rows of each table


def profile(tape: Any, target: Any, sources: Any = None, repeats: int = 3) -> Profile:
    """Measures the forward and backward time of the calls between `sources` and `target`.

    It runs each kernel again on the values that the tape holds, and then the gradients in a
    backward pass. Each is run `repeats` times, and the shortest time counts. The times contain
    neither the Python code between calls nor recording. The forward time is unknown for calls whose
    inputs the tape did not save, and for functions with a custom gradient.

    >>> x = tf.Variable(tf.ones([100, 100]))
    >>> with tf.GradientTape(persistent=True) as tape:
    ...     y = tf.reduce_sum(tf.exp(x @ x))
    >>> report = tape.profile(y)
    >>> [call.name for call in report.calls]
    ['matmul', 'exp', 'sum']
    """
    calls, targets = calls_between(tape, "profile", target, sources)
    values = values_of(tape, calls, targets)
    source_ids = (
        tape._roots if sources is None else {x._id for x in flatten_arguments(sources, "source")[0]}
    )
    locations = tape._locations or {}
    with isolate():
        forward = [_forward_time(call, values, repeats) for call in calls]
        backward = _backward_times(calls, targets, source_ids, repeats)
    return Profile(
        tuple(
            TimedCall(call.name, locations.get(call.outputs[0]), *times)
            for call, *times in zip(calls, forward, backward, strict=True)
        )
    )


def _forward_time(call: RecordedCall, values: Values, repeats: int) -> float | None:
    inputs = values.inputs(call)
    if call.primitive is None or not all(isinstance(x, (np.ndarray, np.generic)) for x in inputs):
        return None
    kernel = (
        call.primitive.on_numpy if inputs[0].size < LARGE_ARRAY_SIZE else call.primitive.on_many
    )
    quietly = thread.recorders.quietly
    return _shortest_time(lambda: quietly(kernel, *inputs, **call.attrs), repeats)


def _backward_times(
    calls: list[RecordedCall], targets: list, source_ids: set[int], repeats: int
) -> list[float]:
    """Returns the time of each call in a backward pass, in the order of the calls."""
    entries = [call.entry for call in calls]
    needed = depending_on(source_ids, entries)
    cotangents = Cotangents(on_tensors=False)
    for x in targets:
        if x._spec.dtype in dtypes.INEXACT:
            cotangents.deposit(x._id, seed(x, None, on_tensors=False))
    times = []
    for entry in reversed(entries):
        tries = []
        for last in [False] * (repeats - 1) + [True]:
            # A step modifies the cotangents: all but the last try work on a copy.
            own = cotangents if last else _copy(cotangents)
            start = time.perf_counter()
            backward_pass([entry], own, source_ids, needed)
            tries.append(time.perf_counter() - start)
        times.append(min(tries))
    return times[::-1]


def _copy(cotangents: Cotangents) -> Cotangents:
    """Returns a copy; `backward_pass` does not write into its arrays."""
    copied = Cotangents(on_tensors=False)
    copied.update(cotangents)
    return copied


def _shortest_time(f: Callable, repeats: int) -> float:
    tries = []
    for _ in range(repeats):
        start = time.perf_counter()
        f()
        tries.append(time.perf_counter() - start)
    return min(tries)


@dataclass(frozen=True)
class TimedCall:
    """A call and its forward and backward time in seconds; `None` if unknown."""

    name: str
    location: SourceLocation | None
    forward: float | None
    backward: float


@dataclass(frozen=True)
class Profile(Report):
    """The result of `tape.profile()`: the calls in order, with their times in seconds."""

    calls: tuple[TimedCall, ...]

    @property
    def forward(self) -> float:
        """The total forward time."""
        return sum(call.forward or 0.0 for call in self.calls)

    @property
    def backward(self) -> float:
        """The total backward time."""
        return sum(call.backward for call in self.calls)

    @property
    def by_primitive(self) -> dict[str, tuple[float, float]]:
        """Forward and backward times by primitive, the longest first."""
        return self._sum_times(lambda call: call.name)

    @property
    def by_line(self) -> dict[str, tuple[float, float]]:
        """Forward and backward times by source line, the longest first."""
        return self._sum_times(lambda call: call.location and format_source_line(call.location))

    def _sum_times(self, key_of: Callable) -> dict[str, tuple[float, float]]:
        forward: Counter = Counter()
        backward: Counter = Counter()
        for call in self.calls:
            key = key_of(call)
            if key is not None:
                forward[key] += call.forward or 0.0
                backward[key] += call.backward
        order = (forward + backward).most_common()
        return {key: (forward[key], backward[key]) for key, _ in order}

    def _lines(self) -> list[tuple[str, str] | Table]:
        lines: list[tuple[str, str] | Table] = [
            (
                "head",
                f"{len(self.calls)} calls: {_format_time(self.forward)} forward, "
                f"{_format_time(self.backward)} backward.",
            )
        ]
        for title, times in (("primitive", self.by_primitive), ("line", self.by_line)):
            if times:
                rows = [(_format_time(a), _format_time(b), name) for name, (a, b) in times.items()]
                titles = ("forward", "backward", title)
                lines.append(Table(rows, titles, _SHOWN, sizes=list(times.values())))
        unknown = sum(call.forward is None for call in self.calls)
        if unknown:
            lines.append(
                (
                    "why",
                    f"The forward time of {unknown} calls is unknown. A tape with lines=True saves "
                    "all inputs.",
                )
            )
        return lines


def _format_time(seconds: float) -> str:
    return f"{seconds * 1e3:.3f} ms"
