"""Checkpointing: a tape with a memory limit frees values, and rematerializes them when needed.

Kernels are functions of their inputs only. Values that come from outside, such as random numbers
and the values of variables, are kept. So a rematerialized value is bit-for-bit identical, and
only arithmetic is repeated.
"""

from __future__ import annotations

import re
import time
from collections import ChainMap
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from retrograde.core.lazy import LazyTensor, Materializer
from retrograde.core.program import Call, evaluate, needed
from retrograde.core.recorders import quiet_context
from retrograde.core.rules import Outputs, Spec
from retrograde.core.tensor import Tensor
from retrograde.values.arguments import as_text, shown
from retrograde.values.errors import ResourceExhaustedError
from retrograde.values.source_location import SourceLocation, first_output

_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_UNITS |= {"KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30, "TIB": 1 << 40}


def parse_bytes(limit: Any) -> int:
    """Converts a number of bytes, or a string like "2GB", to an integer."""
    match = re.fullmatch(r"\s*(\d+\.?\d*)\s*([A-Za-z]*)\s*", as_text(limit))
    unit = _UNITS.get(match[2].upper()) if match else None
    if unit is None or isinstance(limit, bool) or float(match[1]) * unit >= 2**63:
        raise ValueError(
            "GradientTape: expected a number of bytes for `memory_limit`, or a string like "
            f"'2GB' or '500MiB'. Received: {shown(limit)}."
        )
    return int(float(match[1]) * unit)


@dataclass
class HeldArray:
    """An array that is kept: its bytes, the values in its memory, and the calls that keep it."""

    nbytes: int
    values: dict[int, Tensor] = field(default_factory=dict)
    calls: set[int] = field(default_factory=set)
    fixed: bool = False  # an input from outside, or one of several outputs that a rule reads


class Rematerialized(Materializer):
    """The materializer of a value that a tape with a memory limit freed: it is recomputed on use.

    The array is not kept here: the ledger keeps it while the limit allows.
    """

    __slots__ = ("_ledger", "dtype", "shape")

    def __init__(self, ledger: Ledger, spec: Spec) -> None:
        self._ledger = ledger
        self.shape, self.dtype = spec

    def materialize(self, tensor: LazyTensor) -> Any:
        """Rematerializes the array, unless the ledger has it."""
        return self._ledger.value(tensor._id)


def is_freed(x: Any) -> bool:
    """Returns whether `x` is a tensor whose array a tape with a memory limit freed."""
    return type(x) is LazyTensor and type(x._spec) is Rematerialized


class _Details(NamedTuple):
    """The entry of a step, its work, and the number of values from outside before it."""

    entry: int
    work: float
    given: int


class Ledger:
    """Tracks the arrays that a tape holds or has freed to meet the `limit`.

    `held` are the bytes of all arrays that it keeps, without the values of `variables`. `dropped`
    are the bytes that it freed, `recomputed` is the number of calls that ran again, and `seconds`
    is how long they took. Calls are the steps of a program. A value has the id of its tensor, or a
    negative number if it came from outside, because all values of a variable have the same id.
    """

    def __init__(self, limit: int, variables: Mapping[int, Any]) -> None:
        self.limit = limit
        self._variables = variables
        self.held = self.dropped = self.recomputed = 0
        self.seconds = 0.0
        self.locations: dict[int, SourceLocation] = {}  # by the number of the entry
        self._steps: list[Call] = []
        self._details: list[_Details] = []  # of each step
        self._producers: dict[int, int] = {}  # the index of the step that computes a value
        self._given: dict[int, Tensor] = {}  # values from outside
        self._numbers: dict[int, int] = {}  # of values from outside, by the id of the object
        self._holdings: dict[int, HeldArray] = {}  # by the id of the array that owns the memory
        self._live: dict[int, Tensor] = {}
        self._sizes: dict[int, int] = {}  # bytes of values that were dropped
        self._rematerialized: dict[int, Any] = {}  # kept while there is room

    # While the tape records

    def add_call(self, number: int, plan: Any, values: tuple, attrs: dict) -> None:
        """Adds the call of entry `number`, and the arrays that it keeps."""
        y, *inputs = values
        outputs = y if isinstance(y, tuple) else (y,)
        self._details.append(
            _Details(number, _estimate_work(plan.name, inputs, outputs), len(self._given))
        )
        sources = tuple([x._id if x._id in self._producers else self._number(x) for x in inputs])
        output_ids = tuple([t._id for t in outputs])
        self._producers.update(dict.fromkeys(output_ids, len(self._steps)))
        self._steps.append(Call(plan.primitive, sources, attrs, output_ids))
        given = [self._given[n] for n in sources if n < 0]
        for value in (*plan.save(values), *given):
            if type(value) is Outputs:
                for part in value:
                    self._keep(part, number, fixed=True)
            elif isinstance(value, Tensor) and value._id not in self._variables:
                self._keep(value, number, fixed=value._id not in self._producers)

    def _number(self, x: Tensor) -> int:
        """Returns the number of a value from outside."""
        number = self._numbers.setdefault(id(x), -1 - len(self._given))
        self._given[number] = x  # keeps it alive, so that its id is not reused
        return number

    def _keep(self, tensor: Tensor, number: int, fixed: bool) -> None:
        owner = owner_of(tensor._array)
        holding = self._holdings.get(id(owner))
        if holding is None:
            holding = self._holdings[id(owner)] = HeldArray(owner.nbytes)
            self.held += owner.nbytes
        holding.values[tensor._id] = tensor
        holding.calls.add(number)
        holding.fixed |= fixed
        self._live[tensor._id] = tensor

    def shrink(self, entries: list[tuple]) -> None:
        """Frees the arrays that are cheapest to rematerialize per byte, until the limit is met."""
        while self.held > self.limit:
            work = self._rematerialization_work()
            candidates = [
                (sum(work[key] for key in holding.values) / max(holding.nbytes, 1), owner)
                for owner, holding in self._holdings.items()
                if not holding.fixed and holding.nbytes
            ]
            if not candidates:
                raise ResourceExhaustedError(None, None, self._limit_error())
            self._drop(self._holdings.pop(min(candidates)[1]), entries)

    def _rematerialization_work(self) -> dict[int, float]:
        """Returns the work of computing each value from the values that are held."""
        work: dict[int, float] = {}
        for step, details in zip(self._steps, self._details, strict=True):
            before = [n for n in step.inputs if n >= 0 and n not in self._live]
            total = details.work + sum(work[n] for n in before)
            work.update(dict.fromkeys(step.outputs, total))
        return work

    def _drop(self, holding: HeldArray, entries: list[tuple]) -> None:
        replacements = {
            key: LazyTensor(Rematerialized(self, Spec.of(tensor)), tensor._id)
            for key, tensor in holding.values.items()
        }
        for number in holding.calls:
            plan, ids, out, saved, attrs = entries[number]
            saved = tuple([replacements.get(getattr(x, "_id", None), x) for x in saved])
            entries[number] = (plan, ids, out, saved, attrs)
        for key, tensor in holding.values.items():
            self._sizes[key] = tensor._array.nbytes
            del self._live[key]
        self.held -= holding.nbytes
        self.dropped += holding.nbytes

    def _limit_error(self) -> str:
        lines = []
        for holding in sorted(self._holdings.values(), key=lambda h: -h.nbytes)[:5]:
            key, tensor = next(iter(holding.values.items()))
            step = self._producers.get(key)
            producer = "" if step is None else self._steps[step].primitive.name
            origin = f"computed by {producer}" if producer else "an input"
            location = self.locations.get(min(holding.calls))
            at = "" if location is None else f", at {location}"
            shape = list(tensor._spec.shape)
            lines.append(f"  {holding.nbytes} bytes: {tensor.dtype.name}{shape}, {origin}{at}")
        return (
            f"GradientTape: the memory_limit of {self.limit} bytes cannot be met. The tape holds "
            f"{self.held} bytes that cannot be rematerialized. The largest arrays are:\n"
            + "\n".join(lines)
        )

    # In the backward pass

    def value(self, key: int) -> Any:
        """Returns the array of a value, rematerialized if it was freed."""
        known = ChainMap(self._live, self._rematerialized)
        if key in known:
            return self._lookup(key)
        start = time.perf_counter()
        known = ChainMap(self._live, self._rematerialized, self._given)
        calls = needed(self._steps, {key}, known, end=self._producers[key] + 1)
        chosen = self._values_to_keep(calls)
        given = {n: self._lookup(n) for call in calls for n in call.inputs if n in known}
        # The backward pass may run in the quiet context of the thread already.
        values = quiet_context().run(evaluate, calls, given, {key, *chosen})
        for n in chosen:
            self._rematerialized[n] = values[n]
            self.held += owner_of(values[n]).nbytes
        self.recomputed += len(calls)
        self.seconds += time.perf_counter() - start
        return values[key]

    def _values_to_keep(self, calls: list[Call]) -> list[int]:
        """Chooses which rematerialized values to keep for other entries.

        The backward pass reads freed values in reverse order. If there is no room for all of them,
        every second, third or n-th value is kept, to recompute the others from.
        """
        candidates = [n for call in calls for n in call.outputs if n in self._sizes]
        room, total = self.limit - self.held, sum(self._sizes[n] for n in candidates)
        if room <= 0:
            return []
        chosen = []
        for n in candidates[:: -max(1, -(-total // room))]:
            if self._sizes[n] <= room:
                chosen.append(n)
                room -= self._sizes[n]
        return chosen

    def _lookup(self, n: int) -> Any:
        """Returns the array of a value that is held or came from outside."""
        if n in self._rematerialized:
            return self._rematerialized[n]
        return (self._live[n] if n in self._live else self._given[n])._array

    def free_rematerialized(self, number: int) -> None:
        """Frees rematerialized values that no entry before `number` reads."""
        for n in [
            n for n in self._rematerialized if self._details[self._producers[n]].entry >= number
        ]:
            self.held -= owner_of(self._rematerialized.pop(n)).nbytes

    def free_entry(self, number: int) -> None:
        """Frees rematerialized values and the arrays kept for entry `number`, which was removed."""
        self.free_rematerialized(number)
        while self._details and self._details[-1].entry >= number:
            for n in self._steps.pop().outputs:
                del self._producers[n]
            given = self._details.pop().given
            while len(self._given) > given:
                _, x = self._given.popitem()
                del self._numbers[id(x)]
        for owner in [o for o, h in self._holdings.items() if min(h.calls) >= number]:
            holding = self._holdings.pop(owner)
            self.held -= holding.nbytes
            for key in holding.values:
                del self._live[key]


class LimitedEntries(list):
    """The entries of a tape with a memory limit. `pop` rematerializes the values of an entry."""

    __slots__ = ("_copied", "ledger")

    def __init__(self, ledger: Ledger, copied: bool = False) -> None:
        super().__init__()
        self.ledger = ledger
        self._copied = copied

    @property
    def locations(self) -> dict[int, SourceLocation]:
        """The location of each call, by its first output."""
        return {
            first_output(self[i][2]): p for i, p in self.ledger.locations.items() if i < len(self)
        }

    def copy(self) -> LimitedEntries:
        """Returns the same entries, for a backward pass that does not change the tape."""
        copied = LimitedEntries(self.ledger, copied=True)
        copied.extend(self)
        return copied

    def limit_last(self, values: tuple, location: SourceLocation | None) -> None:
        """Adds the last entry, whose outputs and inputs are `values`, to the ledger."""
        number = len(self) - 1
        plan, _, _, _, attrs = self[number]
        if plan.primitive is None:
            return
        if location is not None:
            self.ledger.locations[number] = location
        self.ledger.add_call(number, plan, values, attrs)
        if self.ledger.held > self.ledger.limit:
            self.ledger.shrink(self)

    def pop(self) -> tuple:
        """Removes and returns the last entry, with its freed values rematerialized."""
        plan, ids, out, saved, attrs = super().pop()
        saved = tuple([Tensor(x._array, x._id) if is_freed(x) else x for x in saved])
        if self._copied:
            self.ledger.free_rematerialized(len(self))
        else:
            self.ledger.free_entry(len(self))
        return plan, ids, out, saved, attrs


def owner_of(array: Any) -> Any:
    """Returns the array that owns the memory of `array`, which may be a view."""
    while isinstance(array, np.ndarray) and isinstance(array.base, np.ndarray):
        array = array.base
    return array


_PRODUCTS = frozenset(("matmul", "convolve", "convolve_transposed", "convolve_filter"))


def _estimate_work(name: str, inputs: list, outputs: tuple) -> float:
    """Estimates the number of operations: one per element, or per term of a product."""
    sizes = [x._spec.size for x in (*inputs, *outputs)]
    if name in _PRODUCTS:
        return float(np.prod([max(size, 1) for size in sizes], dtype=float) ** 0.5)
    return float(sum(sizes))
