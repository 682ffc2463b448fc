"""Functions in the ears of tapes: one call, whose way back is a recording too."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from retrograde.core import floating_point_flags, namespaces
from retrograde.core.batching import innermost
from retrograde.core.host_callbacks import Host
from retrograde.core.indexed_slices import IndexedSlices
from retrograde.core.plans import Plan
from retrograde.core.program import Call, CustomGradient, Program, ReadVariable, needed
from retrograde.core.recorders import Recorder, alone, notify, thread
from retrograde.core.tape import GradientTape
from retrograde.core.tensor import Tensor, wrap
from retrograde.program.device_tensors import on_device
from retrograde.program.interpreter import Divergence, play_entries
from retrograde.program.loop_rerolling import Loop, rolled
from retrograde.program.replay import Replay
from retrograde.program.simplification import Merging, Reduced, merged, without_cotangents
from retrograde.program.tracing import Log, Origin, Recording, may_look_around
from retrograde.values import dtypes


class Piece:
    """A recording with what goes in and what comes out, to be called on tensors.

    Tapes hear of it as of one call. Other recorders hear everything that it does.
    """

    def __init__(
        self, recording: Recording, arguments: list[int], results: list[int], compiles: bool
    ) -> None:
        self._recording = recording
        self._arguments = arguments
        self._results = results
        self._compiles = compiles
        given = set(arguments)
        self._constants = {n: x for n, x in recording.constants.items() if n not in given}
        self._one_call = not any(map(_is_for_play_only, recording.steps))
        self._derivatives: dict[tuple[bool, ...], Derivative] = {}

    def __call__(self, tensors: list[Tensor], log: Log | None) -> Any:
        """The results and the new values of variables, as tensors; or where the call diverged."""
        recorders = thread.recorders
        one_call = self._one_call and all(isinstance(r, GradientTape) for r in recorders)
        if not one_call or _has_batch(tensors):
            return self.played(tensors, log)
        wanted = tuple([_is_followed(x, recorders) for x in tensors])
        derivative = self._derivatives.get(wanted)
        if derivative is None:
            outcome = _retraced(self, wanted, tensors, log)
            if type(outcome) is Divergence:
                return outcome
            derivative = self._derivatives[wanted] = outcome
            if log is not None:
                log.rewind()
        return derivative.call(tensors, recorders, log)

    def played(self, tensors: list[Tensor], log: Log | None) -> Any:
        """As a call, in which every recorder observes every operation."""
        values = self._constants | dict(zip(self._arguments, tensors, strict=True))
        played = play_entries(self._recording, self._recording.steps, values, log)
        if type(played) is Divergence:
            return played
        return [played.values[n] for n in self._results], played.writes


def _is_for_play_only(entry: Any) -> bool:
    """Whether an entry depends on more than the arguments and random numbers."""
    host = entry.primitive if type(entry) is Call else None
    return type(entry) is ReadVariable or may_look_around(host)


def _has_batch(tensors: list[Tensor]) -> bool:
    return bool(namespaces.foreign) and innermost([x._array for x in tensors]) is not None


def _is_followed(x: Tensor, tapes: list[GradientTape]) -> bool:
    return any(x._id in tape._connected for tape in tapes)


# How many values of loops the way back is handed, if XLA compiles both. Each one of each turn would
# leave one program and enter the other by itself: beyond this it is quicker to compute them again.
_MOST_HANDED_OVER = 64


def _are_from_loops(numbers: list[int], entries: list, specs: list) -> bool:
    """Whether many of these values are made in loops, a few in each turn."""
    if len(numbers) <= _MOST_HANDED_OVER:
        return False
    calls = [entry for entry in entries if type(entry) is Call and not _is_host(entry)]
    loops = [e for e in rolled(calls, specs, set(numbers)) if type(e) is Loop]
    made = {n for loop in loops for turn in loop.numbers for outputs in turn for n in outputs}
    return len(made.intersection(numbers)) > _MOST_HANDED_OVER


class Slices(NamedTuple):
    """A gradient that is made of rows: the numbers of its values and indices, and its shape."""

    values: int
    indices: int
    dense_shape: Any


class Inside(NamedTuple):
    """What happened in one call of a function, to look for something in it.

    `calls` are all of them, on the way there and back; `given`, the arrays that they began with,
    and `origins`, where they come from, by number. `arguments`, `results` and `gradients` are the
    numbers of what tapes saw.
    """

    calls: list[Call]
    given: dict[int, np.ndarray]
    origins: dict[int, Origin]
    arguments: list[int]
    results: list[int]
    gradients: list[int | None]


class Derivative:
    """A function and the way back, to those of its arguments that are wanted.

    `forward` gives the results of the function and, behind them, what `backward` needs of the way
    unless it computes that again, and what Python code gave. Where someone listens to the walk
    back, `again` is called in its place, which takes the arguments and the cotangents: its own way
    back is found like that of any other piece.
    """

    def __init__(
        self,
        piece: Piece,
        derived: Recording,
        whole: Merging,
        reached: list[bool],
        cotangents: list[int],
        gradients: list[Any],
        hosted: set[int],
        steps: list[Any],
    ) -> None:
        same, (_, _, mark) = whole.same, whole.ends
        self._steps = _with_ties(steps)
        self._unmerged = {same.get(n, n): n for g in gradients for n in _numbers(g)}
        self._gradients = [_renumbered(g, same) for g in gradients]
        self._outputs = list(dict.fromkeys(n for g in self._gradients for n in _numbers(g)))
        self._reached = reached
        self._cotangents = cotangents
        self._arguments = piece._arguments
        self._results = [same.get(n, n) for n in piece._results]
        self._whole = [e for e in whole.steps if type(e) is Call and not _is_host(e)]
        folded = {n: whole.known[same.get(n, n)] for n in hosted if same.get(n, n) in whole.known}
        self._folded = {n: Tensor(x) for n, x in folded.items()}
        if not self._steps:
            read = {n for e in self._whole for n in e.inputs}
            hosted = hosted & (read | set(self._results) | set(self._outputs))
        self._hosted = sorted(hosted - folded.keys())
        after = needed(whole.steps[mark:], set(self._outputs))
        used = {n for e in after for n in e.inputs} | set(self._outputs)
        made = {n for e in after for n in e.outputs} | whole.known.keys() | set(cotangents)
        self._residuals = sorted(used - made)
        given = self._residuals
        specs, there = derived.specs, whole.steps[:mark]
        if piece._compiles and _are_from_loops(self._residuals, there, specs):
            self._residuals, given = [], [*self._arguments, *self._hosted]
            after = needed(self._whole, set(self._outputs))
        self._given = given
        out = [*self._results, *self._residuals, *self._hosted]
        before = needed(there, {*out, *whole.writes.values()})
        self._forward = Replay(
            Program(before, specs, whole.known, self._arguments, out, whole.writes),
            piece._recording.variables,
            piece._compiles,
        )
        self._after = after
        self._backwards: dict[tuple[bool, ...], _Backward] = {}
        self._compiles = piece._compiles
        self._derived = derived
        for n, origin in derived.origins.items():
            derived.origins[n] = origin._replace(of=same.get(origin.of, origin.of))
        self._known = whole.known
        self._primitive = _OneCall(self)

    def call(self, tensors: list[Tensor], tapes: list[Recorder], log: Log | None) -> Any:
        """The results and the new values of variables, of which `tapes` are told."""
        outcome = self._forward.run(tensors, log)
        if type(outcome) is Divergence:
            return outcome
        arrays, writes = outcome
        made = [on_device(x) for x in arrays]
        count = len(self._results)
        results = made[:count]
        y = tuple([x for x, reached in zip(results, self._reached, strict=True) if reached])
        if y:
            kept = dict(zip((*self._residuals, *self._hosted), made[count:], strict=True))
            kept |= zip(self._arguments, tensors, strict=True)
            notify(list(tapes), self._primitive, tuple(tensors), {"kept": kept}, y)
        places = self._forward.plain.writes
        return results, {p: on_device(x) for p, x in zip(places, writes, strict=True)}

    def pull(self, kept: dict[int, Tensor], cotangents: list[Tensor | None]) -> list:
        """Returns the cotangents of the arguments; `None` stands for those of unused results."""
        used = tuple([g is not None for g in cotangents])
        backward = self._backwards.get(used)
        if backward is None:
            backward = self._backwards[used] = _Backward(self, used)
        found = backward.pull(kept, [g for g in cotangents if g is not None])
        return [_packed(g, found) for g in self._gradients]

    def inside(self, kept: dict[int, Tensor], cotangents: tuple) -> Inside:
        """What happened in the call that kept this, and in the walk back from `cotangents`."""
        given = dict(self._known) | {n: np.asarray(x._array) for n, x in kept.items()}
        for n, g in zip(self._cotangents, cotangents, strict=False):
            given[n] = np.zeros(*self._derived.specs[n]) if g is None else g
        results = [n for n, r in zip(self._results, self._reached, strict=True) if r]
        gradients = [g.values if type(g) is Slices else g for g in self._gradients]
        origins = self._derived.origins
        return Inside(self._whole, given, origins, self._arguments, results, gradients)


class _Backward:
    """The backward pass of a derivative from those results that were used."""

    def __init__(self, derivative: Derivative, used: tuple[bool, ...]) -> None:
        self._derivative = derivative
        pairs = list(zip(derivative._cotangents, used, strict=True))
        self._cotangents = [n for n, is_used in pairs if is_used]
        self._missing = {n for n, is_used in pairs if not is_used}
        reduced = self._reduced(derivative._after)
        # Where a result is not used, a source that only it depends on has a gradient of zeros.
        self._zeros = [n for n in derivative._outputs if n in reduced.absent]
        self._outputs = {
            n: reduced.same.get(n, n) for n in derivative._outputs if n not in reduced.absent
        }
        specs, given = derivative._derived.specs, derivative._given
        entries = needed(reduced.steps, set(self._outputs.values()))
        constants = derivative._known | reduced.zeros
        arguments = [*given, *self._cotangents]
        results = list(self._outputs.values())
        plain = Program(entries, specs, constants, arguments, results, {})
        self._replay = Replay(plain, [], derivative._compiles)
        self._again: Piece | None = None

    def _reduced(self, entries: list) -> Reduced:
        derivative = self._derivative
        return without_cotangents(
            entries, derivative._derived.specs, derivative._cotangents, self._missing
        )

    def pull(self, kept: dict[int, Tensor], cotangents: list[Tensor]) -> dict[int, Tensor]:
        """Returns the cotangents of the arguments, by their numbers."""
        derivative = self._derivative
        if thread.recorders:
            arguments = [*derivative._arguments, *derivative._hosted]
            if self._again is None:
                self._again = self._piece([*arguments, *self._cotangents])
            found, _ = self._again([*[kept[n] for n in arguments], *cotangents], None)
        elif _has_batch(cotangents):
            plain = self._replay.plain
            values = {n: Tensor(x) for n, x in plain.constants.items()} | kept
            values |= zip(self._cotangents, cotangents, strict=True)
            played = play_entries(derivative._derived, plain.steps, values, None)
            found = [played.values[n] for n in plain.results]
        else:
            given = [*[kept[n] for n in derivative._given], *cotangents]
            arrays, _ = self._replay.run(given, None)
            found = [wrap(np.asarray(x)) for x in arrays]
            if derivative._compiles:
                _sound_alarm(found)
        specs = derivative._derived.specs
        zeros = {n: Tensor(np.zeros(specs[n].shape, specs[n].dtype)[()]) for n in self._zeros}
        return zeros | dict(zip(self._outputs, found, strict=True))

    def _piece(self, arguments: list[int]) -> Piece:
        """The same as a piece, which other recorders observe."""
        derivative = self._derivative
        derived = derivative._derived
        if derivative._steps:
            recording = derived.branched()
            reduced = self._reduced(derivative._steps)
            constants = derived.constants | derivative._folded
            outputs = [derivative._unmerged[n] for n in self._outputs]
        else:
            recording = derived.continued({})
            reduced = self._reduced(derivative._whole)
            constants = {n: Tensor(x) for n, x in derivative._known.items()}
            outputs = list(self._outputs)
        outputs = [reduced.same.get(n, n) for n in outputs]
        recording.constants = constants | {n: Tensor(x) for n, x in reduced.zeros.items()}
        recording.steps = reduced.steps
        if not derivative._steps:
            recording.steps = needed(reduced.steps, set(outputs))
        return Piece(recording, arguments, outputs, derivative._compiles)


def _with_ties(entries: list) -> list:
    """The calls and ties among `entries`, if there are ties: what is merged has lost them.

    Higher derivatives follow the rules of custom gradients, too.
    """
    if not any(type(e) is CustomGradient for e in entries):
        return []
    return [
        e for e in entries if type(e) is CustomGradient or (type(e) is Call and not _is_host(e))
    ]


def _sound_alarm(tensors: list[Tensor]) -> None:
    """Tells a walk back what XLA does not tell: that something is not finite."""
    for x in tensors:
        if x._array.dtype in dtypes.INEXACT and not np.isfinite(np.add.reduce(x._array, axis=None)):
            floating_point_flags.set_flag()


def _is_host(entry: Any) -> bool:
    return type(entry) is Call and type(entry.primitive) is Host


def _numbers(g: Any) -> list[int]:
    if g is None:
        return []
    return [g.values, g.indices] if type(g) is Slices else [g]


def _renumbered(g: Any, same: dict[int, int]) -> Any:
    if type(g) is Slices:
        values, indices = (same.get(n, n) for n in (g.values, g.indices))
        return Slices(values, indices, g.dense_shape)
    return same.get(g, g)


def _packed(g: Any, found: dict[int, Tensor]) -> Any:
    if type(g) is Slices:
        return IndexedSlices(found[g.values], found[g.indices], g.dense_shape)
    return None if g is None else found[g]


def _retraced(
    piece: Piece, wanted: tuple[bool, ...], tensors: list[Tensor], log: Log | None
) -> Derivative | Divergence:
    """Goes the way once more under a tape, and back, and records both.

    The new recording numbers on where the old one ended. What is done a second time on the way
    there is the same as in the old one, and is merged with it afterwards.
    """
    recording, arguments = piece._recording, piece._arguments
    handles = [wrap(x._array) for x in tensors]
    values = dict(zip(arguments, handles, strict=True))
    derived = recording.continued(values)
    derived.constants = dict(piece._constants)
    hosted: set[int] = set()

    def heard(call: Call, outputs: tuple) -> None:
        derived.know(dict(zip(call.outputs, outputs, strict=True)))
        hosted.update(call.outputs)

    tape = GradientTape(persistent=True, watch_accessed_variables=False)
    with alone(derived):
        sources = [x for x, w in zip(handles, wanted, strict=True) if w]
        with tape:
            tape.watch(sources)
            known = piece._constants | values
            played = play_entries(recording, recording.steps, known, log, heard)
        if type(played) is Divergence:
            return played
        targets = [played.values[n] for n in piece._results]
        reached = [_is_followed(y, [tape]) and y._array.dtype in dtypes.INEXACT for y in targets]
        targets = [y for y, r in zip(targets, reached, strict=True) if r]
        there = derived.steps
        derived.steps = []
        ones = [Tensor(np.ones(y._array.shape, y._array.dtype)[()]) for y in targets]
        first = derived.begin(ones)
        found = iter(tape.gradient(targets, sources, ones) if targets else ())
        gradients = [_number_of(next(found, None), derived) if w else None for w in wanted]
    whole = merged(derived.constants, recording.steps, there, derived.steps)
    cotangents = list(range(first, first + len(ones)))
    steps = [*there, *derived.steps]
    return Derivative(piece, derived, whole, reached, cotangents, gradients, hosted, steps)


def _number_of(g: Any, derived: Recording) -> Any:
    if isinstance(g, IndexedSlices):
        shape = np.asarray(getattr(g._dense_shape, "_array", g._dense_shape))
        return Slices(derived.number(g.values), derived.number(g.indices), Tensor(shape))
    return None if g is None else derived.number(g)


class _OneCall:
    """Stands where tapes expect a primitive: one call of a piece."""

    name = "function"
    partials = None
    linear = False

    def __init__(self, derivative: Derivative) -> None:
        self._derivative = derivative
        self.plans: dict = {}

    def plan(self, key: tuple[int, ...]) -> Plan:
        """A plan whose rule is the derivative."""
        connected = tuple(map(bool, key))
        return Plan(_save_nothing, (), self._pull, connected, True, self.name, takes_none=True)

    def inside(self, kept: dict[int, Tensor], cotangents: tuple = ()) -> Inside:
        """What happened in this call."""
        return self._derivative.inside(kept, cotangents)

    def _pull(self, needed: tuple[bool, ...], g: Any, *, kept: dict[int, Tensor]) -> list:
        found = self._derivative.pull(kept, list(g) if type(g) is tuple else [g])
        return [x if wanted else None for x, wanted in zip(found, needed, strict=True)]


def _save_nothing(_: tuple) -> tuple:
    return ()
