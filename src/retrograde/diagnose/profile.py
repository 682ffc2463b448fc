"""`tape.profile()`: how long each call takes, forwards and backwards."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from retrograde.core.backward import Cotangents, backward_pass, depending_on
from retrograde.core.recorders import alone, thread
from retrograde.core.tape_arguments import flat, seed
from retrograde.diagnose.calls import RecordedCall, Values, calls_between, values_of
from retrograde.diagnose.rendering import Told, line_of, table
from retrograde.values import dtypes
from retrograde.values.source_location import Place
from retrograde.values.thresholds import MANY

_SHOWN = 12  # rows of each table


def profile(tape: Any, target: Any, sources: Any = None, repeats: int = 3) -> Profile:
    """How long the calls between `sources` and `target` take, forwards and backwards.

    It is measured now, on the values that the tape holds: each kernel is run again, and then each
    rule in a walk back, `repeats` times, of which the shortest counts. So nothing has to be
    switched on before, and nothing else is in the numbers: neither the time that Python takes
    between the calls, nor that of recording. Of calls whose inputs the tape let go, and of
    functions with a gradient of their own, only the way back is known.

    >>> x = tf.Variable(tf.ones([100, 100]))
    >>> with tf.GradientTape(persistent=True) as tape:
    ...     y = tf.reduce_sum(tf.exp(x @ x))
    >>> report = tape.profile(y)
    >>> [call.name for call in report.calls]
    ['matmul', 'exp', 'sum']
    """
    calls, targets = calls_between(tape, "profile", target, sources)
    values = values_of(tape, calls, targets)
    wanted = tape._roots if sources is None else {x._id for x in flat(sources, "source")[0]}
    places = tape._places or {}
    with alone():
        forwards = [_forwards(call, values, repeats) for call in calls]
        backwards = _backwards(calls, targets, wanted, repeats)
    return Profile(
        tuple(
            Timed(call.name, places.get(call.outputs[0]), ahead, back)
            for call, ahead, back in zip(calls, forwards, backwards, strict=True)
        )
    )


def _forwards(call: RecordedCall, values: Values, repeats: int) -> float | None:
    inputs = values.inputs(call)
    if call.primitive is None or not all(isinstance(x, (np.ndarray, np.generic)) for x in inputs):
        return None
    kernel = call.primitive.on_numpy if inputs[0].size < MANY else call.primitive.on_many
    quietly = thread.recorders.quietly
    return _shortest(lambda: quietly(kernel, *inputs, **call.attrs), repeats)


def _backwards(
    calls: list[RecordedCall], targets: list, wanted: set[int], repeats: int
) -> list[float]:
    """The time that each call takes in a walk back, in the order of the calls."""
    entries = [call.entry for call in calls]
    needed = depending_on(wanted, entries)
    cotangents = Cotangents(on_tensors=False)
    for x in targets:
        if x._spec.dtype in dtypes.INEXACT:
            cotangents.deposit(x._id, seed(x, None, on_tensors=False))
    times = []
    for entry in reversed(entries):
        tries = []
        for last in [False] * (repeats - 1) + [True]:
            # A step takes cotangents away and adds to others: all but the last try do it elsewhere.
            here = cotangents if last else _copied(cotangents)
            start = time.perf_counter()
            backward_pass([entry], here, wanted, needed)
            tries.append(time.perf_counter() - start)
        times.append(min(tries))
    return times[::-1]


def _copied(cotangents: Cotangents) -> Cotangents:
    """The same cotangents, of which none may be written into."""
    copied = Cotangents(on_tensors=False)
    copied.update(cotangents)
    return copied


def _shortest(f: Callable, repeats: int) -> float:
    tries = []
    for _ in range(repeats):
        start = time.perf_counter()
        f()
        tries.append(time.perf_counter() - start)
    return min(tries)


@dataclass(frozen=True)
class Timed:
    """A call, and the seconds it takes; `None` if that cannot be known."""

    name: str
    place: Place | None
    forwards: float | None
    backwards: float


@dataclass(frozen=True)
class Profile(Told):
    """What `tape.profile()` measured: `calls` in order, with their seconds."""

    calls: tuple[Timed, ...]

    @property
    def forwards(self) -> float:
        """The seconds of all kernels."""
        return sum(call.forwards or 0.0 for call in self.calls)

    @property
    def backwards(self) -> float:
        """The seconds of all rules."""
        return sum(call.backwards for call in self.calls)

    @property
    def by_primitive(self) -> dict[str, tuple[float, float]]:
        """Seconds forwards and backwards, by primitive; those that take longest first."""
        return self._sums(lambda call: call.name)

    @property
    def by_line(self) -> dict[str, tuple[float, float]]:
        """Seconds forwards and backwards, by line."""
        return self._sums(lambda call: call.place and line_of(call.place))

    def _sums(self, key_of: Callable) -> dict[str, tuple[float, float]]:
        ahead: Counter = Counter()
        back: Counter = Counter()
        for call in self.calls:
            key = key_of(call)
            if key is not None:
                ahead[key] += call.forwards or 0.0
                back[key] += call.backwards
        order = (ahead + back).most_common()
        return {key: (ahead[key], back[key]) for key, _ in order}

    def _lines(self) -> list[tuple[str, str]]:
        lines = [
            (
                "head",
                f"{len(self.calls)} calls: {_words(self.forwards)} forwards, "
                f"{_words(self.backwards)} backwards.",
            )
        ]
        for title, found in (("primitive", self.by_primitive), ("line", self.by_line)):
            if found:
                rows = [(_words(a), _words(b), name) for name, (a, b) in found.items()]
                titles = ("forwards", "backwards", title)
                lines += [("step", row) for row in table([titles, *rows], _SHOWN + 1)]
        unknown = sum(call.forwards is None for call in self.calls)
        if unknown:
            lines.append(
                (
                    "why",
                    f"Of {unknown} calls only the way back is known. A tape with lines=True "
                    "keeps all inputs.",
                )
            )
        return lines


def _words(seconds: float) -> str:
    return f"{seconds * 1e3:.3f} ms"
