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
        argument_numbers = set(arguments)
        self.constants = {n: x for n, x in tracer.constants.items() if n not in argument_numbers}
        # Other steps depend on the arguments and on random numbers only.
        reads = any([type(step) is ReadVariable for step in tracer.steps])
        self._is_one_call = not (reads or may_read_variables(tracer.steps))
        self._derivatives: dict[tuple[bool, ...], Derivative] = {}

    def __call__(self, tensors: list[Tensor], log: CallbackLog | None) -> Any:
        """Returns results and new values of variables as tensors, or the guard that failed."""
        recorders = thread.recorders
        is_one_call = self._is_one_call and all(isinstance(r, GradientTape) for r in recorders)
        if not is_one_call or _has_batch(tensors):
            return self.run_interpreted(tensors, log)
        connected = tuple([_is_connected(x, recorders) for x in tensors])
        derivative = self._derivatives.get(connected)
        if derivative is None:
            outcome = _trace_derivative(self, connected, tensors, log)
            if type(outcome) is Divergence:
                return outcome
            derivative = self._derivatives[connected] = outcome
            if log is not None:
                log.rewind()
        return derivative.call(tensors, recorders, log)

    def run_interpreted(self, tensors: list[Tensor], log: CallbackLog | None) -> Any:
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


# If XLA compiles both programs, each iteration of a loop has separate residuals. Each of them is an
# output of the forward program and an argument of the backward program. If there are many, it is
# faster to rematerialize them.


def _are_from_loops(numbers: list[int], steps: list, specs: list) -> bool:
    """Returns whether many of these values are computed in the iterations of loops."""
    if len(numbers) <= MAX_LOOP_RESIDUALS:
        return False
    loops = [s for s in reroll(_primitive_calls(steps), specs, set(numbers)) if type(s) is Loop]
    loop_outputs = {
        n for loop in loops for calls in loop.numbers for outputs in calls for n in outputs
    }
    return len(loop_outputs.intersection(numbers)) > MAX_LOOP_RESIDUALS


class Slices(NamedTuple):
    """The numbers of the values and indices of an `IndexedSlices` gradient, and its dense shape."""

    values: int
    indices: int
    dense_shape: Any


class CallDetails(NamedTuple):
    """The operations inside one call of a function, for diagnostics.

    `program` has the calls of the forward and the backward pass. Its constants include the arrays
    of the arguments and cotangents. `origins` are the source locations of calls, by first output.
    `gradients` are the numbers of the cotangents of the arguments.
    """

    program: Program
    origins: dict[int, Origin]
    gradients: list[int | None]


class Derivative:
    """A forward program, and the backward passes to the arguments that tapes watch.

    The forward program returns the results of the function, the results of host callbacks, and the
    residuals of the backward pass unless they are rematerialized. While recorders are active, the
    backward pass is a differentiable program of the arguments and the cotangents.
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
        equal_values, (_, _, start) = merged.same, merged.starts
        self.tracer = tracer
        self.constants = merged.constants
        self.compiles = program.compiles
        self.arguments = program.arguments
        self.cotangents = cotangents
        self.calls = _primitive_calls(merged.steps)
        # Higher derivatives need the custom gradients, which merging removes.
        self.unmerged = _with_custom_gradients(unmerged)
        self.unmerged_numbers = {equal_values.get(n, n): n for g in gradients for n in _numbers(g)}
        self._gradients = [_renumber(g, equal_values) for g in gradients]
        self.outputs = list(dict.fromkeys(n for g in self._gradients for n in _numbers(g)))
        self._reached = reached
        self._results = [equal_values.get(n, n) for n in program.results]
        self._find_host_results(host_results, equal_values)
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
            if origin.of in equal_values:
                tracer.origins[n] = origin._replace(of=equal_values[origin.of])
        self._primitive = _FunctionPrimitive(self)

    def _find_host_results(self, host_results: set[int], equal_values: dict[int, int]) -> None:
        """Finds the outputs of host callbacks that the backward pass may read."""
        constants = {n: self.constants.get(equal_values.get(n, n)) for n in host_results}
        self.folded = {n: Tensor(x) for n, x in constants.items() if x is not None}
        if not self.unmerged:
            read_numbers = {n for call in self.calls for n in call.inputs}
            host_results = host_results & (read_numbers | set(self._results) | set(self.outputs))
        self.host_results = sorted(host_results - self.folded.keys())

    def _partition(self, merged: Merged, start: int) -> None:
        """Finds the steps of the backward pass, and the residuals that it reads."""
        self.backward_steps = needed(merged.steps[start:], self.outputs)
        used_numbers = {n for s in self.backward_steps for n in s.inputs} | set(self.outputs)
        computed_numbers = {n for s in self.backward_steps for n in s.outputs}
        self._residuals = sorted(
            used_numbers - computed_numbers - self.constants.keys() - set(self.cotangents)
        )
        self.backward_inputs = self._residuals
        specs = self.tracer.specs
        if self.compiles and _are_from_loops(self._residuals, merged.steps[:start], specs):
            self._residuals, self.backward_inputs = [], [*self.arguments, *self.host_results]
            self.backward_steps = needed(self.calls, self.outputs)

    def call(self, tensors: list[Tensor], tapes: list[Recorder], log: CallbackLog | None) -> Any:
        """Returns results and new values of variables, and records one call on `tapes`."""
        outcome = self._forward.run(tensors, log)
        if type(outcome) is Divergence:
            return outcome
        arrays, writes = outcome
        outputs = [on_device(x) for x in arrays]
        count = len(self._results)
        results = outputs[:count]
        y = tuple([x for x, reached in zip(results, self._reached, strict=True) if reached])
        if y:
            saved_tensors = dict(
                zip((*self._residuals, *self.host_results), outputs[count:], strict=True)
            )
            saved_tensors |= zip(self.arguments, tensors, strict=True)
            notify(
                list(tapes), self._primitive, tuple(tensors), {"saved_tensors": saved_tensors}, y
            )
        places = self._forward.program.writes
        return results, {p: on_device(x) for p, x in zip(places, writes, strict=True)}

    def pull(self, saved_tensors: dict[int, Tensor], cotangents: list[Tensor | None]) -> list:
        """Returns the cotangents of the arguments. Unused results have the cotangent `None`."""
        has_cotangent = tuple([g is not None for g in cotangents])
        backward = self._backwards.get(has_cotangent)
        if backward is None:
            backward = self._backwards[has_cotangent] = _Backward(self, has_cotangent)
        gradients = backward.pull(saved_tensors, [g for g in cotangents if g is not None])
        return [_pack_gradient(g, gradients) for g in self._gradients]

    def inside(self, saved_tensors: dict[int, Tensor], cotangents: tuple) -> CallDetails:
        """Returns the operations of the call that saved these tensors, and its backward pass."""
        specs = self.tracer.specs
        known_values = dict(self.constants) | {
            n: np.asarray(x._array) for n, x in saved_tensors.items()
        }
        for n, g in zip(self.cotangents, cotangents, strict=False):
            known_values[n] = np.zeros(*specs[n]) if g is None else g
        results = [n for n, r in zip(self._results, self._reached, strict=True) if r]
        program = Program(self.calls, specs, known_values, self.arguments, results, {})
        gradients = [g.values if type(g) is Slices else g for g in self._gradients]
        return CallDetails(program, self.tracer.origins, gradients)


class _Backward:
    """The backward pass from the results that have cotangents."""

    def __init__(self, derivative: Derivative, has_cotangent: tuple[bool, ...]) -> None:
        self._derivative = derivative
        pairs = list(zip(derivative.cotangents, has_cotangent, strict=True))
        self._cotangents = [n for n, is_used in pairs if is_used]
        self._missing = {n for n, is_used in pairs if not is_used}
        reduced = self._remove_missing_cotangents(derivative.backward_steps)
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
            [*derivative.backward_inputs, *self._cotangents],
            results,
            {},
        )
        self._executable = Executable(program, [], derivative.compiles)
        self._differentiable: DifferentiableProgram | None = None

    def _remove_missing_cotangents(self, steps: list) -> Reduced:
        derivative = self._derivative
        return without_cotangents(
            steps, derivative.tracer.specs, derivative.cotangents, self._missing
        )

    def pull(self, saved_tensors: dict[int, Tensor], cotangents: list[Tensor]) -> dict[int, Tensor]:
        """Returns the cotangents of the arguments, by their numbers."""
        derivative = self._derivative
        if thread.recorders:
            arguments = [*derivative.arguments, *derivative.host_results]
            if self._differentiable is None:
                self._differentiable = self._as_differentiable([*arguments, *self._cotangents])
            gradients, _ = self._differentiable(
                [*[saved_tensors[n] for n in arguments], *cotangents], None
            )
        elif _has_batch(cotangents):
            program = self._executable.program
            values = {n: Tensor(x) for n, x in program.constants.items()} | saved_tensors
            values |= zip(self._cotangents, cotangents, strict=True)
            interpreted: Any = interpret(derivative.tracer, program.steps, values, None)
            gradients = [interpreted.values[n] for n in program.results]
        else:
            program_inputs = [*[saved_tensors[n] for n in derivative.backward_inputs], *cotangents]
            arrays, _ = self._executable.run(program_inputs, None)
            if compiles_all():
                gradients = list(map(on_device, arrays))
            else:
                gradients = [wrap(np.asarray(x)) for x in arrays]
                if derivative.compiles:
                    _set_flag_if_nonfinite(gradients)
        specs = derivative.tracer.specs
        zeros = {n: Tensor(np.zeros(specs[n].shape, specs[n].dtype)[()]) for n in self._zeros}
        return zeros | dict(zip(self._outputs, gradients, strict=True))

    def _as_differentiable(self, arguments: list[int]) -> DifferentiableProgram:
        """Returns the backward pass as a function of arguments and cotangents, for recorders."""
        derivative = self._derivative
        tracer = derivative.tracer
        if derivative.unmerged:
            backward, constants = tracer.branched(), tracer.constants | derivative.folded
            reduced = self._remove_missing_cotangents(derivative.unmerged)
            outputs = [derivative.unmerged_numbers[n] for n in self._outputs]
        else:
            backward = tracer.continued({})
            constants = {n: Tensor(x) for n, x in derivative.constants.items()}
            reduced = self._remove_missing_cotangents(derivative.calls)
            outputs = list(self._outputs)
        outputs = [reduced.same.get(n, n) for n in outputs]
        backward.constants = constants | {n: Tensor(x) for n, x in reduced.zeros.items()}
        backward.steps = reduced.steps if derivative.unmerged else needed(reduced.steps, outputs)
        return DifferentiableProgram(backward, arguments, outputs, derivative.compiles)


def _primitive_calls(steps: list) -> list[Call]:
    """Returns the calls of primitives among `steps`."""
    return [s for s in steps if type(s) is Call and is_repeatable(s)]


def _with_custom_gradients(steps: list) -> list:
    """Returns the repeatable steps if there are custom gradients among them, or else no steps."""
    has_custom_gradients = any([type(s) is CustomGradient for s in steps])
    return [s for s in steps if is_repeatable(s)] if has_custom_gradients else []


def _set_flag_if_nonfinite(tensors: list[Tensor]) -> None:
    """Sets the floating-point flag for a NaN or Inf, which XLA does not report."""
    for x in tensors:
        if x._spec.dtype in dtypes.INEXACT and not np.isfinite(np.add.reduce(x._array, axis=None)):
            floating_point_flags.set_flag()


def _numbers(g: Any) -> list[int]:
    if g is None:
        return []
    return [g.values, g.indices] if type(g) is Slices else [g]


def _renumber(g: Any, equal_values: dict[int, int]) -> Any:
    if type(g) is Slices:
        values, indices = (equal_values.get(n, n) for n in (g.values, g.indices))
        return Slices(values, indices, g.dense_shape)
    return equal_values.get(g, g)


def _pack_gradient(g: Any, tensors: dict[int, Tensor]) -> Any:
    if type(g) is Slices:
        return IndexedSlices(tensors[g.values], tensors[g.indices], g.dense_shape)
    return None if g is None else tensors[g]


def _trace_derivative(
    program: DifferentiableProgram,
    connected: tuple[bool, ...],
    tensors: list[Tensor],
    log: CallbackLog | None,
) -> Derivative | Divergence:
    """Traces the forward pass under a tape, and the backward pass.

    The numbers of the new trace continue the numbers of `program`. The second trace of the forward
    pass is merged with the first one afterwards.
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
        sources = [x for x, w in zip(handles, connected, strict=True) if w]
        steps = program.tracer.steps
        with tape:
            tape.watch(sources)
            known_values = program.constants | values
            interpreted = interpret(program.tracer, steps, known_values, log, on_host_call)
        if type(interpreted) is Divergence:
            return interpreted
        targets = [interpreted.values[n] for n in program.results]
        reached = [_is_connected(y, [tape]) and y._spec.dtype in dtypes.INEXACT for y in targets]
        targets = [y for y, r in zip(targets, reached, strict=True) if r]
        forward, tracer.steps = tracer.steps, []
        ones = [Tensor(np.ones(y._spec.shape, y._spec.dtype)[()]) for y in targets]
        first_cotangent = tracer.begin(ones)
        source_gradients = iter(tape.gradient(targets, sources, ones) if targets else ())
        gradients = [
            _number_of(next(source_gradients, None), tracer) if w else None for w in connected
        ]
    merged = merge(tracer.constants, steps, forward, tracer.steps)
    cotangents = list(range(first_cotangent, first_cotangent + len(ones)))
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

    def inside(self, saved_tensors: dict[int, Tensor], cotangents: tuple = ()) -> CallDetails:
        """Returns the operations of a call."""
        return self._derivative.inside(saved_tensors, cotangents)

    def _pull(self, needed: tuple[bool, ...], g: Any, *, saved_tensors: dict) -> list:
        gradients = self._derivative.pull(saved_tensors, list(g) if type(g) is tuple else [g])
        return [x if is_needed else None for x, is_needed in zip(gradients, needed, strict=True)]
