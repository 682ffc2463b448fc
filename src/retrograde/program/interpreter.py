"""Interprets a trace: its steps run through `apply`, so that every recorder observes them."""

from __future__ import annotations

from collections.abc import Callable
from types import FrameType
from typing import Any, NamedTuple, final

import numpy as np

from retrograde.core.apply import apply
from retrograde.core.custom_gradient import record_custom
from retrograde.core.indexed_slices import as_dense
from retrograde.core.program import Call, CustomGradient, Guard, ReadVariable, Write
from retrograde.core.recorders import isolate
from retrograde.core.tensor import Tensor
from retrograde.ops.collectives import replay_results_from
from retrograde.ops.host_callbacks import HostCallback, wrap_result
from retrograde.program.tracing import CallbackLog, Tracer, key_of, may_read_variables, to_variable
from retrograde.values.source_location import (
    InterpreterFrames,
    SourceLocation,
    locals_of,
    register_interpreter,
)


@final
class Divergence(NamedTuple):
    """A failed guard: its index among the guards, and the key of the value that was observed."""

    place: int
    key: Any


class Interpreted(NamedTuple):
    """The values of all steps, by number, and the new values of variables, by index."""

    values: dict[int, Tensor]
    writes: dict[int, Tensor]


def interpret(
    tracer: Tracer,
    steps: list,
    values: dict[int, Tensor],
    log: Any,
    on_host_call: Callable[[Call, tuple], None] | None = None,
) -> Interpreted | Divergence:
    """Runs `steps` on `values`, and returns all values or the guard that failed.

    Writes to variables are returned, not applied, except before a host callback that may read
    variables. `_location_of_step` and `_forward_call` read local variables of this function by
    name. `on_host_call` is called with the outputs of each host callback.
    """
    writes: dict[int, Tensor] = {}
    guards = 0
    for step in steps:
        kind = type(step)
        if kind is Call:
            inputs = tuple([values[n] for n in step.inputs])
            if type(step.primitive) is HostCallback:
                if may_read_variables([step]):
                    for place, tensor in writes.items():
                        log.assign_early(tracer.variables[place], tensor)
                    writes = {}
                y = _call_host(step.primitive, inputs, log)
                if on_host_call is not None:
                    on_host_call(step, y if type(y) is tuple else (y,))
            elif step.primitive.pure:
                y = apply(step.primitive, inputs, step.attrs)
            else:
                with replay_results_from(log):
                    y = apply(step.primitive, inputs, step.attrs)
            values.update(zip(step.outputs, y if type(y) is tuple else (y,), strict=True))
        elif kind is Guard:
            key = key_of(values[step.inputs[0]]._array, step.truth)
            if key != step.key:
                return Divergence(guards, key)
            guards += 1
        elif kind is Write:
            writes[step.variable] = values[step.inputs[0]]
        elif kind is ReadVariable:
            values[step.outputs[0]] = tracer.variables[step.variable]._read()
        else:
            interpret_custom_gradient(tracer, step, values, log)
    return Interpreted(values, writes)


def _location_of_step(frame: FrameType) -> SourceLocation | None:
    """Returns the source location of the step that `frame` interprets."""
    tracer, step = locals_of(frame, "tracer", "step")
    origin = tracer.origins.get(step.outputs[0]) if type(step) is Call else None
    return None if origin is None else origin.location


def _forward_call(frame: FrameType) -> tuple[Any, tuple, tuple] | None:
    """Returns the call whose gradient contains the step that `frame` interprets."""
    tracer, steps, values, step = locals_of(frame, "tracer", "steps", "values", "step")
    origin = tracer.origins.get(step.outputs[0])
    of = None if origin is None else origin.of
    call = next((s for s in steps if type(s) is Call and s.outputs[0] == of), None)
    if call is None:
        return None
    inputs, outputs = ([values[n] for n in numbers] for numbers in (call.inputs, call.outputs))
    return call.primitive, tuple(inputs), tuple(outputs)


register_interpreter(InterpreterFrames(interpret.__code__, _location_of_step, _forward_call))


def _call_host(host: HostCallback, inputs: tuple, log: CallbackLog) -> Any:
    arrays = [np.asarray(x._array) for x in inputs]
    if not host.pure:
        return wrap_result(host, log.result_of(host, arrays))
    with isolate():
        return wrap_result(host, host.f(*arrays))


def interpret_custom_gradient(
    tracer: Tracer, step: CustomGradient, values: dict[int, Tensor], log: CallbackLog
) -> None:
    """Records the outputs of a `custom_gradient` with the user's gradient function.

    The gradient function refers to tensors of the traced call. So it is traced as well, with the
    cotangents and the values of the trace as inputs, and interpreted with the values of this call.
    """

    def rule(needed: tuple[bool, ...], g: Any) -> list:
        cotangents = g if type(g) is tuple else (g,)
        backward, first_cotangent, results = trace_gradient_function(tracer, step)
        cotangent_values = dict(
            zip(range(first_cotangent, first_cotangent + len(cotangents)), cotangents, strict=True)
        )
        known_values = values | backward.constants | cotangent_values
        interpreted: Any = interpret(backward, backward.steps, known_values, log)
        return [
            interpreted.values[n] if n is not None and is_needed else None
            for n, is_needed in zip(results, needed, strict=True)
        ]

    sources = [values[n] for n in step.sources]
    # `to_variable` refers to no tensors, so it needs no tracing.
    gradient_function = to_variable if step.rule is to_variable else rule
    outputs = record_custom(step.name, gradient_function, sources, [values[n] for n in step.values])
    values.update(zip(step.outputs, outputs, strict=True))


def is_repeatable(step: Any) -> bool:
    """Returns whether a step can run again without side effects."""
    if type(step) is CustomGradient:
        return True
    return type(step) is Call and type(step.primitive) is not HostCallback


def trace_gradient_function(tracer: Tracer, step: CustomGradient) -> tuple[Tracer, int, list]:
    """Traces the gradient function of a `custom_gradient`, as a continuation of the trace.

    Returns the tracer, the number of the first cotangent, and the numbers of the results.
    """
    key = step.outputs
    if key not in tracer.rules:
        backward = tracer.branched()
        specs = [tracer.specs[n] for n in step.outputs]
        cotangents = [Tensor(np.ones(spec.shape, spec.dtype)[()]) for spec in specs]
        first_cotangent = backward.begin(cotangents)
        with isolate(backward):
            g = tuple(cotangents) if len(cotangents) > 1 else cotangents[0]
            gradients = [as_dense(x) for x in step.rule((True,) * len(step.sources), g)]
        results = [None if x is None else backward.number(x) for x in gradients]
        tracer.rules[key] = (backward, first_cotangent, results)
    return tracer.rules[key]
