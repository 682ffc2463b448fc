"""Implements `tf.gradients`: derivatives of the steps that a function has traced so far."""

from __future__ import annotations

from retrograde.core.apply import PRIMITIVES, apply
from retrograde.core.program import CustomGradient, needed
from retrograde.core.tape import GradientTape
from retrograde.core.tensor import Tensor
from retrograde.program.interpreter import interpret_custom_gradient, is_repeatable
from retrograde.program.tracing import Tracer


def tape_of_trace(
    tracer: Tracer, targets: list[Tensor], sources: list[Tensor], stops: list[Tensor]
) -> tuple[GradientTape, list[Tensor], list[Tensor]]:
    """Repeats the steps from `sources` to `targets` on a tape. Returns the tape and both tensors.

    The steps are traced again, and merged with the earlier ones. `stops` count as constants.
    """
    ends = [tracer.number(x) for x in targets]
    starts = [tracer.number(x) for x in sources]
    stopped = {tracer.number(x) for x in stops}
    values = tracer.source_tensors()
    steps = [step for step in tracer.steps if is_repeatable(step)]
    steps = needed(steps, {*ends, *starts}.difference(values), known=values)
    tape = GradientTape(persistent=True, watch_accessed_variables=False)

    def enter(number: int) -> None:
        if number in stopped:
            values[number] = apply(PRIMITIVES["stop_gradient"], (values[number],))
        if number in starts:
            tape.watch(values[number])

    with tape:
        for number in [n for n in (*starts, *stopped) if n in values]:
            enter(number)
        for step in steps:
            if type(step) is CustomGradient:
                interpret_custom_gradient(tracer, step, values, tracer.log)
            else:
                y = apply(step.primitive, tuple([values[n] for n in step.inputs]), step.attrs)
                values.update(zip(step.outputs, y if type(y) is tuple else (y,), strict=True))
            for number in step.outputs:
                enter(number)
    return tape, [values[n] for n in ends], [values[n] for n in starts]
