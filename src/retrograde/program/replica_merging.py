"""Merges the calls of several replicas in a trace into one program, which every device runs.

`MirroredStrategy` traces the work of all replicas: each one runs up to the next collective, and the
calling thread computes the collective on the values of all of them. If all replicas made the same
calls on values of the same shapes, one call represents the calls of all replicas. A value is either
*common*, the same on all devices, or *varying*, with one value for each replica. Collectives turn
varying values into common ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from retrograde.core.program import Call, CustomGradient, Guard, Program, Write, hashable, needed
from retrograde.core.rules import Spec
from retrograde.ops import collectives
from retrograde.ops.host_callbacks import HostCallback
from retrograde.ops.shaping import concat
from retrograde.program.simplification import merge
from retrograde.program.tracing import Tracer


class ReplicaRounds:
    """The parts of a trace that replicas recorded.

    A round lasts until the next collective. For each replica, it has the start and end of the
    replica's steps in the list of all steps. `devices()` returns the JAX devices of the replicas.
    """

    def __init__(self, devices: Callable[[], Sequence[Any]]) -> None:
        self.devices = devices
        self.rounds: list[list[tuple[int, int]]] = []


class Location(NamedTuple):
    """The number of a value, and the replica if the value varies."""

    number: int
    replica: int | None


class ReplicaProgram(NamedTuple):
    """One program for all replicas.

    `program` has the locations of its results and of the new values of variables as numbers, given
    by `results` and `writes`. `groups` are the arguments that vary: the numbers of the values of
    all replicas. `varying` are the values that vary.
    """

    program: Program
    results: list[Location]
    writes: dict[int, Location]
    groups: dict[int, tuple[int, ...]]
    varying: set[int]
    devices: Sequence[Any]


class _Different(Exception):
    """Raised if replicas made different calls, or did something that one program cannot do."""


def merge_replicas(tracer: Tracer, results: list[int]) -> ReplicaProgram | None:
    """Returns the traced steps as one program for all replicas, or `None` if replicas differ."""
    rounds = tracer.replica_rounds
    if rounds is None or not rounds.rounds or len({len(part) for part in rounds.rounds}) > 1:
        return None
    try:
        return _Merger(tracer, len(rounds.rounds[0])).merge_rounds(rounds, results)
    except _Different:
        return None


class _SelectReplica:
    """A primitive that copies the value of one replica to all devices."""

    name = "select_replica"
    outputs = False
    pure = True

    def kernel(self, xp: Any, x: Any, *, replica: int) -> Any:
        return collectives.select_replica(xp, x, replica)


_SELECT_REPLICA = _SelectReplica()


class _Merger:
    """Merges the steps of all replicas."""

    def __init__(self, tracer: Tracer, count: int) -> None:
        self._tracer, self._count = tracer, count
        self._specs = list(tracer.specs)
        self._steps: list[Any] = []
        self._writes: dict[int, int] = {}
        self._same: dict[int, int] = {}  # outputs of custom gradients, which equal other values
        self._varying: dict[tuple[int, ...], int] = {}  # values of all replicas -> their number
        self._members: dict[int, Location] = {}  # values that a replica computed
        self._groups: dict[int, tuple[int, ...]] = {}
        self._selected: dict[Location, int] = {}
        # Values that are known before the program runs
        self._sources = {*tracer.arguments, *tracer.constants}

    def merge_rounds(self, rounds: Any, results: list[int]) -> ReplicaProgram:
        """Returns one program for the rounds and the common steps between them."""
        steps, position = self._tracer.steps, 0
        for parts in rounds.rounds:
            self._add_common(steps[position : parts[0][0]])
            self._add_round([steps[start:stop] for start, stop in parts])
            position = parts[-1][1]
        self._add_common(steps[position:])
        locations = [self._location(n) for n in results]
        writes = {variable: self._location(n) for variable, n in self._writes.items()}
        return self._simplify(rounds, locations, writes)

    def _simplify(
        self, rounds: Any, results: list[Location], writes: dict[int, Location]
    ) -> ReplicaProgram:
        merged = merge(self._tracer.constants, self._steps)

        def rename(location: Location) -> Location:
            return location._replace(number=merged.same.get(location.number, location.number))

        results = [rename(location) for location in results]
        writes = {variable: rename(location) for variable, location in writes.items()}
        numbers = dict.fromkeys(location.number for location in (*results, *writes.values()))
        groups = {
            n: tuple([merged.same.get(m, m) for m in parts]) for n, parts in self._groups.items()
        }
        steps = needed(merged.steps, {*numbers, *(m for parts in groups.values() for m in parts)})
        arguments = [*self._tracer.arguments, *groups]
        program = Program(steps, self._specs, merged.constants, arguments, list(numbers), {})
        varying = {*self._varying.values()} - set(merged.constants)
        return ReplicaProgram(program, results, writes, groups, varying, rounds.devices())

    # Values

    def _new_value(self, spec: Spec) -> int:
        self._specs.append(spec)
        return len(self._specs) - 1

    def _resolve(self, number: int) -> int:
        while number in self._same:
            number = self._same[number]
        return number

    def _location(self, number: int) -> Location:
        number = self._resolve(number)
        return self._members.get(number) or Location(number, None)

    def _common_value(self, number: int) -> int:
        """Returns a value for all devices. The value of one replica is sent to the others."""
        location = self._location(number)
        if location.replica is None:
            return location.number
        if location not in self._selected:
            output = self._selected[location] = self._new_value(self._specs[location.number])
            attrs = {"replica": location.replica}
            self._steps.append(Call(_SELECT_REPLICA, (location.number,), attrs, (output,)))
        return self._selected[location]

    def _merge_values(self, numbers: tuple[int, ...]) -> int:
        """Returns the number of one value that represents the values of all replicas."""
        numbers = tuple(map(self._resolve, numbers))
        if len(set(numbers)) == 1:
            return self._common_value(numbers[0])
        if numbers in self._varying:
            return self._varying[numbers]
        if not self._sources.issuperset(numbers) or not self._have_one_spec(numbers):
            raise _Different
        if self._are_equal_constants(numbers):
            return numbers[0]
        number = self._varying[numbers] = self._new_value(self._specs[numbers[0]])
        self._groups[number] = numbers
        return number

    def _have_one_spec(self, numbers: Sequence[int]) -> bool:
        return all(self._specs[n] == self._specs[numbers[0]] for n in numbers)

    def _are_equal_constants(self, numbers: tuple[int, ...]) -> bool:
        constants = self._tracer.constants
        if not all(n in constants for n in numbers):
            return False
        first, *other_arrays = [np.asarray(constants[n]._array) for n in numbers]
        return first.dtype.kind == "O" or all(x.tobytes() == first.tobytes() for x in other_arrays)

    # Steps

    def _add_round(self, parts: list[list[Any]]) -> None:
        calls = [self._device_calls(part) for part in parts]
        if len({len(part) for part in calls}) > 1:
            raise _Different
        for equal_calls in zip(*calls, strict=True):
            self._add_calls(equal_calls)

    def _device_calls(self, steps: list[Any]) -> list[Call]:
        """Returns the calls that run on devices."""
        return [step for step in steps if self._is_on_device(step)]

    def _is_on_device(self, step: Any) -> bool:
        """Returns whether a step is a call that runs on devices; handles the others."""
        kind = type(step)
        if kind is CustomGradient:
            self._same.update(zip(step.outputs, step.values, strict=True))
        elif kind is Write:
            (self._writes[step.variable],) = step.inputs
        elif kind is Call and type(step.primitive) is not HostCallback:
            return True
        elif kind not in (Call, Guard) or not self._sources.issuperset(
            map(self._resolve, step.inputs)
        ):
            raise _Different
        else:  # Python code that runs before the program
            self._steps.append(step._replace(inputs=tuple(map(self._resolve, step.inputs))))
            self._sources.update(step.outputs)
        return False

    def _add_calls(self, calls: tuple[Call, ...]) -> None:
        """Adds one call that represents the calls of all replicas."""
        first, *other_calls = calls
        for call in other_calls:
            if call.primitive is not first.primitive or not _same_attrs(call.attrs, first.attrs):
                raise _Different
        inputs = zip(*[call.inputs for call in calls], strict=True)
        merged = first._replace(inputs=tuple(map(self._merge_values, inputs)))
        for numbers in zip(*[call.outputs for call in calls], strict=True):
            if not self._have_one_spec(numbers):
                raise _Different
            self._varying[numbers] = numbers[0]
            self._members |= {n: Location(numbers[0], i) for i, n in enumerate(numbers)}
        self._steps.append(merged)

    def _add_common(self, steps: list[Any]) -> None:
        """Adds steps of the cross-replica context, which all devices compute."""
        for step in steps:
            if self._is_on_device(step) and not self._add_collective(step):
                self._steps.append(
                    step._replace(inputs=tuple(map(self._common_value, step.inputs)))
                )

    def _add_collective(self, call: Call) -> bool:
        """Adds a call on the values of all replicas as a collective, if it is one."""
        count, inputs = self._count, tuple(map(self._resolve, call.inputs))
        groups = [inputs[i : i + count] for i in range(0, len(inputs), count)]
        if not all(group in self._varying for group in groups):
            return False
        numbers = tuple([self._varying[group] for group in groups])
        if call.primitive is collectives.sum_replicas:
            self._steps.append(Call(collectives.all_reduce, numbers, {}, call.outputs))
            return True
        if call.primitive is concat and len(groups) == 1:
            self._steps.append(Call(collectives.all_gather, numbers, call.attrs, call.outputs))
            return True
        return False


def _same_attrs(a: dict, b: dict) -> bool:
    if a is b:
        return True
    if a.keys() != b.keys():
        return False
    for name, x in a.items():
        if x is not b[name]:
            key = hashable(x)
            if key is None or key != hashable(b[name]):
                return False
    return True
