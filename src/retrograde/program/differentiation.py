"""Derivatives of traced functions: a tape records one call, whose gradient is a program, too."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from retrograde.core import floating_point_flags, namespaces
from retrograde.core.batching import innermost
from retrograde.core.indexed_slices import IndexedSlices
from retrograde.core.lazy import alias
from retrograde.core.plans import Plan, save_nothing
from retrograde.core.program import Call, CustomGradient, Program, ReadVariable, needed
from retrograde.core.recorders import Recorder, isolate, notify, thread
from retrograde.core.tape import GradientTape
from retrograde.core.tensor import Tensor, wrap
from retrograde.devices.device_tensors import on_device
from retrograde.devices.scopes import compiles_all
from retrograde.program.executable import Executable
from retrograde.program.interpreter import Divergence, interpret, is_repeatable
from retrograde.program.loop_rerolling import Loop, reroll
from retrograde.program.simplification import Merged, Reduced, merge, without_cotangents
from retrograde.program.tracing import CallbackLog, Origin, Tracer, may_read_variables
from retrograde.values import dtypes
from retrograde.values.thresholds import MAX_LOOP_RESIDUALS


class DifferentiableProgram:
    """A traced program, as a function of tensors that recorders observe.

    Tapes record one call. Other recorders observe every operation.
    """

    def __init__(
        self, tracer: Tracer, arguments: list[int], results: list[int], compiles: bool
    ) -> None:
        self.tracer = tracer
        self.arguments = arguments
        self.results = results
        self.compiles = compiles
        given = set(arguments)
        self.constants = {n: x for n, x in tracer.constants.items() if n not in given}
        # Other steps depend on the arguments and on random numbers only.
        reads = any([type(step) is ReadVariable for step in tracer.steps])
        self._is_one_call = not (reads or may_read_variables(tracer.steps))
        self._derivatives: dict[tuple[bool, ...], Derivative] = {}

    def __call__(self, tensors: list[Tensor], log: CallbackLog | None) -> Any:
        """Returns results and new values of variables as tensors; or the guard that failed."""
        recorders = thread.recorders
        is_one_call = self._is_one_call and all(isinstance(r, GradientTape) for r in recorders)
        if not is_one_call or _has_batch(tensors):
            return self.interpreted(tensors, log)
        wanted = tuple([_is_connected(x, recorders) for x in tensors])
        derivative = self._derivatives.get(wanted)
        if derivative is None:
            outcome = _trace_derivative(self, wanted, tensors, log)
            if type(outcome) is Divergence:
                return outcome
            derivative = self._derivatives[wanted] = outcome
            if log is not None:
                log.rewind()
        return derivative.call(tensors, recorders, log)

    def interpreted(self, tensors: list[Tensor], log: CallbackLog | None) -> Any:
        """Does the same as a call in which every recorder observes every operation."""
        values = self.constants | dict(zip(self.arguments, tensors, strict=True))
        interpreted = interpret(self.tracer, self.tracer.steps, values, log)
        if type(interpreted) is Divergence:
            return interpreted
        return [interpreted.values[n] for n in self.results], interpreted.writes


def _has_batch(tensors: list[Tensor]) -> bool:
    return bool(namespaces.foreign) and innermost([x._spec for x in tensors]) is not None


def _is_connected(x: Tensor, tapes: list[GradientTape]) -> bool:
    return any(x._id in tape._connected for tape in tapes)


# Residuals from loops, if XLA compiles both programs. Each iteration has its own, which leaves one
# program and enters the other separately: rematerializing more than this is faster.


def _are_from_loops(numbers: list[int], steps: list, specs: list) -> bool:
    """Returns whether many of these values are computed in the iterations of loops."""
    if len(numbers) <= MAX_LOOP_RESIDUALS:
        return False
    loops = [s for s in reroll(_primitive_calls(steps), specs, set(numbers)) if type(s) is Loop]
    made = {n for loop in loops for calls in loop.numbers for outputs in calls for n in outputs}
    return len(made.intersection(numbers)) > MAX_LOOP_RESIDUALS


class Slices(NamedTuple):
    """Gradients as IndexedSlices: the numbers of values and indices, and the dense shape."""

    values: int
    indices: int
    dense_shape: Any


class CallDetails(NamedTuple):
    """The operations inside one call of a function, for diagnostics.

    `program` has the calls of the forward and the backward pass, and among its constants all arrays
    that they start from. `origins` are the places of calls, by first output, and `gradients` the
    numbers of the cotangents of its arguments.
    """

    program: Program
    origins: dict[int, Origin]
    gradients: list[int | None]


class Derivative:
    """A forward program and the backward passes to those arguments that are wanted.

    The forward program returns the results of the function, the residuals that the backward pass
    reads unless it rematerializes them, and what host callbacks returned. While recorders are
    active, the backward pass is a differentiable program of the arguments and the cotangents.
    """

    def __init__(
        self,
        program: DifferentiableProgram,
        tracer: Tracer,
        merged: Merged,
        reached: list[bool],
        cotangents: list[int],
        gradients: list[Any],
        host_results: set[int],
        unmerged: list[Any],
    ) -> None:
        same, (_, _, start) = merged.same, merged.starts
        self.tracer = tracer
        self.constants = merged.constants
        self.compiles = program.compiles
        self.arguments = program.arguments
        self.cotangents = cotangents
        self.calls = _primitive_calls(merged.steps)
        # Merged steps have lost the custom gradients, which higher derivatives need.
        self.unmerged = _with_custom_gradients(unmerged)
        self.unmerged_numbers = {same.get(n, n): n for g in gradients for n in _numbers(g)}
        self._gradients = [_renumbered(g, same) for g in gradients]
        self.outputs = list(dict.fromkeys(n for g in self._gradients for n in _numbers(g)))
        self._reached = reached
        self._results = [same.get(n, n) for n in program.results]
        self._find_host_results(host_results, same)
        self._partition(merged, start)
        out = [*self._results, *self._residuals, *self.host_results]
        steps = needed(merged.steps[:start], {*out, *merged.writes.values()})
        self._forward = Executable(
            Program(steps, tracer.specs, self.constants, self.arguments, out, merged.writes),
            program.tracer.variables,
            self.compiles,
        )
        self._backwards: dict[tuple[bool, ...], _Backward] = {}
        for n, origin in tracer.origins.items():
            if origin.of in same:
                tracer.origins[n] = origin._replace(of=same[origin.of])
        self._primitive = _FunctionPrimitive(self)

    def _find_host_results(self, host_results: set[int], same: dict[int, int]) -> None:
        """Finds the outputs of host callbacks that the backward pass may read."""
        constants = {n: self.constants.get(same.get(n, n)) for n in host_results}
        self.folded = {n: Tensor(x) for n, x in constants.items() if x is not None}
        if not self.unmerged:
            read = {n for call in self.calls for n in call.inputs}
            host_results = host_results & (read | set(self._results) | set(self.outputs))
        self.host_results = sorted(host_results - self.folded.keys())

    def _partition(self, merged: Merged, start: int) -> None:
        """Finds the steps of the backward pass, and the residuals that it reads."""
        self.backward_steps = needed(merged.steps[start:], self.outputs)
        used = {n for s in self.backward_steps for n in s.inputs} | set(self.outputs)
        made = {n for s in self.backward_steps for n in s.outputs}
        self._residuals = sorted(used - made - self.constants.keys() - set(self.cotangents))
        self.given = self._residuals
        specs = self.tracer.specs
        if self.compiles and _are_from_loops(self._residuals, merged.steps[:start], specs):
            self._residuals, self.given = [], [*self.arguments, *self.host_results]
            self.backward_steps = needed(self.calls, self.outputs)

    def call(self, tensors: list[Tensor], tapes: list[Recorder], log: CallbackLog | None) -> Any:
        """Returns results and new values of variables, and records one call on `tapes`."""
        outcome = self._forward.run(tensors, log)
        if type(outcome) is Divergence:
            return outcome
        arrays, writes = outcome
        made = [on_device(x) for x in arrays]
        count = len(self._results)
        results = made[:count]
        y = tuple([x for x, reached in zip(results, self._reached, strict=True) if reached])
        if y:
            kept = dict(zip((*self._residuals, *self.host_results), made[count:], strict=True))
            kept |= zip(self.arguments, tensors, strict=True)
            notify(list(tapes), self._primitive, tuple(tensors), {"kept": kept}, y)
        places = self._forward.program.writes
        return results, {p: on_device(x) for p, x in zip(places, writes, strict=True)}

    def pull(self, kept: dict[int, Tensor], cotangents: list[Tensor | None]) -> list:
        """Returns the cotangents of the arguments; `None` is the cotangent of an unused result."""
        used = tuple([g is not None for g in cotangents])
        backward = self._backwards.get(used)
        if backward is None:
            backward = self._backwards[used] = _Backward(self, used)
        found = backward.pull(kept, [g for g in cotangents if g is not None])
        return [_packed(g, found) for g in self._gradients]

    def inside(self, kept: dict[int, Tensor], cotangents: tuple) -> CallDetails:
        """Returns the operations of the call that kept this, and of its backward pass."""
        specs = self.tracer.specs
        given = dict(self.constants) | {n: np.asarray(x._array) for n, x in kept.items()}
        for n, g in zip(self.cotangents, cotangents, strict=False):
            given[n] = np.zeros(*specs[n]) if g is None else g
        results = [n for n, r in zip(self._results, self._reached, strict=True) if r]
        program = Program(self.calls, specs, given, self.arguments, results, {})
        gradients = [g.values if type(g) is Slices else g for g in self._gradients]
        return CallDetails(program, self.tracer.origins, gradients)


class _Backward:
    """The backward pass of a derivative from those results that were used."""

    def __init__(self, derivative: Derivative, used: tuple[bool, ...]) -> None:
        self._derivative = derivative
        pairs = list(zip(derivative.cotangents, used, strict=True))
        self._cotangents = [n for n, is_used in pairs if is_used]
        self._missing = {n for n, is_used in pairs if not is_used}
        reduced = self._reduced(derivative.backward_steps)
        # A source that only unused results depend on has a gradient of zeros, as in TensorFlow.
        self._zeros = [n for n in derivative.outputs if n in reduced.absent]
        self._outputs = {
            n: reduced.same.get(n, n) for n in derivative.outputs if n not in reduced.absent
        }
        results = list(self._outputs.values())
        program = Program(
            needed(reduced.steps, results),
            derivative.tracer.specs,
            derivative.constants | reduced.zeros,
            [*derivative.given, *self._cotangents],
            results,
            {},
        )
        self._executable = Executable(program, [], derivative.compiles)
        self._differentiable: DifferentiableProgram | None = None

    def _reduced(self, steps: list) -> Reduced:
        derivative = self._derivative
        return without_cotangents(
            steps, derivative.tracer.specs, derivative.cotangents, self._missing
        )

    def pull(self, kept: dict[int, Tensor], cotangents: list[Tensor]) -> dict[int, Tensor]:
        """Returns the cotangents of the arguments, by their numbers."""
        derivative = self._derivative
        if thread.recorders:
            arguments = [*derivative.arguments, *derivative.host_results]
            if self._differentiable is None:
                self._differentiable = self._as_differentiable([*arguments, *self._cotangents])
            found, _ = self._differentiable([*[kept[n] for n in arguments], *cotangents], None)
        elif _has_batch(cotangents):
            program = self._executable.program
            values = {n: Tensor(x) for n, x in program.constants.items()} | kept
            values |= zip(self._cotangents, cotangents, strict=True)
            interpreted: Any = interpret(derivative.tracer, program.steps, values, None)
            found = [interpreted.values[n] for n in program.results]
        else:
            given = [*[kept[n] for n in derivative.given], *cotangents]
            arrays, _ = self._executable.run(given, None)
            if compiles_all():
                found = list(map(on_device, arrays))
            else:
                found = [wrap(np.asarray(x)) for x in arrays]
                if derivative.compiles:
                    _set_flag_if_nonfinite(found)
        specs = derivative.tracer.specs
        zeros = {n: Tensor(np.zeros(specs[n].shape, specs[n].dtype)[()]) for n in self._zeros}
        return zeros | dict(zip(self._outputs, found, strict=True))

    def _as_differentiable(self, arguments: list[int]) -> DifferentiableProgram:
        """Returns the backward pass, from the arguments of the function on, for recorders."""
        derivative = self._derivative
        tracer = derivative.tracer
        if derivative.unmerged:
            backward, constants = tracer.branched(), tracer.constants | derivative.folded
            reduced = self._reduced(derivative.unmerged)
            outputs = [derivative.unmerged_numbers[n] for n in self._outputs]
        else:
            backward = tracer.continued({})
            constants = {n: Tensor(x) for n, x in derivative.constants.items()}
            reduced = self._reduced(derivative.calls)
            outputs = list(self._outputs)
        outputs = [reduced.same.get(n, n) for n in outputs]
        backward.constants = constants | {n: Tensor(x) for n, x in reduced.zeros.items()}
        backward.steps = reduced.steps if derivative.unmerged else needed(reduced.steps, outputs)
        return DifferentiableProgram(backward, arguments, outputs, derivative.compiles)


def _primitive_calls(steps: list) -> list[Call]:
    """Returns the calls of primitives among `steps`."""
    return [s for s in steps if type(s) is Call and is_repeatable(s)]


def _with_custom_gradients(steps: list) -> list:
    """Returns the calls of primitives and the custom gradients, if there are any of the latter."""
    customs = any([type(s) is CustomGradient for s in steps])
    return [s for s in steps if is_repeatable(s)] if customs else []


def _set_flag_if_nonfinite(tensors: list[Tensor]) -> None:
    """Sets the floating-point flag for a NaN or Inf, which XLA does not report."""
    for x in tensors:
        if x._spec.dtype in dtypes.INEXACT and not np.isfinite(np.add.reduce(x._array, axis=None)):
            floating_point_flags.set_flag()


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


def _trace_derivative(
    program: DifferentiableProgram,
    wanted: tuple[bool, ...],
    tensors: list[Tensor],
    log: CallbackLog | None,
) -> Derivative | Divergence:
    """Interprets a program under a tape, and traces that and the backward pass.

    The new trace numbers its values from the end of the old one. The forward pass is traced a
    second time, and merged with the first one afterwards.
    """
    handles = list(map(alias, tensors))
    values = dict(zip(program.arguments, handles, strict=True))
    tracer = program.tracer.continued(values)
    tracer.constants = dict(program.constants)
    host_results: set[int] = set()

    def on_host_call(call: Call, outputs: tuple) -> None:
        tracer.identify(dict(zip(call.outputs, outputs, strict=True)))
        host_results.update(call.outputs)

    tape = GradientTape(persistent=True, watch_accessed_variables=False)
    with isolate(tracer):
        sources = [x for x, w in zip(handles, wanted, strict=True) if w]
        steps = program.tracer.steps
        with tape:
            tape.watch(sources)
            known = program.constants | values
            interpreted = interpret(program.tracer, steps, known, log, on_host_call)
        if type(interpreted) is Divergence:
            return interpreted
        targets = [interpreted.values[n] for n in program.results]
        reached = [_is_connected(y, [tape]) and y._spec.dtype in dtypes.INEXACT for y in targets]
        targets = [y for y, r in zip(targets, reached, strict=True) if r]
        forward, tracer.steps = tracer.steps, []
        ones = [Tensor(np.ones(y._spec.shape, y._spec.dtype)[()]) for y in targets]
        first = tracer.begin(ones)
        found = iter(tape.gradient(targets, sources, ones) if targets else ())
        gradients = [_number_of(next(found, None), tracer) if w else None for w in wanted]
    merged = merge(tracer.constants, steps, forward, tracer.steps)
    cotangents = list(range(first, first + len(ones)))
    unmerged = [*forward, *tracer.steps]
    return Derivative(
        program, tracer, merged, reached, cotangents, gradients, host_results, unmerged
    )


def _number_of(g: Any, tracer: Tracer) -> Any:
    if isinstance(g, IndexedSlices):
        shape = np.asarray(getattr(g._dense_shape, "_array", g._dense_shape))
        return Slices(tracer.number(g.values), tracer.number(g.indices), Tensor(shape))
    return None if g is None else tracer.number(g)


class _FunctionPrimitive:
    """A call of a function as tapes record it. The derivative computes its gradient."""

    name = "function"
    partials = None
    linear = False

    def __init__(self, derivative: Derivative) -> None:
        self._derivative = derivative
        self.plans: dict = {}

    def plan(self, key: tuple[int, ...]) -> Plan:
        """Returns a plan whose rule is the backward pass of the derivative."""
        connected = tuple(map(bool, key))
        return Plan(save_nothing, (), self._pull, connected, True, self.name, takes_none=True)

    def inside(self, kept: dict[int, Tensor], cotangents: tuple = ()) -> CallDetails:
        """Returns the operations of a call."""
        return self._derivative.inside(kept, cotangents)

    def _pull(self, needed: tuple[bool, ...], g: Any, *, kept: dict[int, Tensor]) -> list:
        found = self._derivative.pull(kept, list(g) if type(g) is tuple else [g])
        return [x if wanted else None for x, wanted in zip(found, needed, strict=True)]
