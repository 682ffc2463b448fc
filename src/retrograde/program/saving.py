"""Functions as plain data: their recordings in what JSON and a file of tensors can hold."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

from retrograde.core.host_callbacks import HostCallback
from retrograde.core.program import Call, CustomGradient, Guard, Write
from retrograde.core.rules import Spec
from retrograde.core.variable import Variable
from retrograde.program.concrete_function import VariableSpec
from retrograde.program.function import Function
from retrograde.program.interpreter import traced_rule
from retrograde.program.saving_values import encoded
from retrograde.program.symbolic_sizes import (
    Sample,
    SizedTrace,
    Unlike,
    common_form,
    traces_with_sizes,
    unknown_axes,
    with_sizes,
)
from retrograde.program.traces import Trace
from retrograde.program.tracing import Tracer
from retrograde.values import dtypes, nest
from retrograde.values.conversion import tensor_or_variable


class Packing:
    """Gathers the variables and constants of what is saved, and gives them names."""

    def __init__(self, rules: bool = True) -> None:
        """`rules` tells whether those of `custom_gradient`s are saved."""
        self.rules = rules
        self.variables: list[Any] = []
        self.tensors: dict[str, np.ndarray] = {}

    def variable(self, variable: Any) -> int:
        """The place of a variable among all."""
        for place, known in enumerate(self.variables):
            if known is variable:
                return place
        self.variables.append(variable)
        return len(self.variables) - 1

    def constant(self, array: Any) -> str:
        """The name of a constant."""
        name = f"constant {len(self.tensors)}"
        self.tensors[name] = np.asarray(array)
        return name


_NOT_CALLED = "it was never called, so nothing is recorded."
_NOT_ALIKE = "what it does is not the same for all sizes of its input_signature."


def packed_function(function: Function, packing: Packing) -> dict:
    """All recordings of a function, and those for the sizes that its signatures leave open."""
    name = function._name
    opened = [_opened(function, *arguments, packing) for arguments in function._unknown]
    if function._input_signature is not None:
        if unknown_axes(function._input_signature):
            opened.append(_opened(function, function._input_signature, {}, packing))
        else:
            function.get_concrete_function()
    signatures = []
    for traces in function._signatures.values():
        if not traces.all:
            continue
        args, kwargs = _with_specs(traces.arguments, [])
        what = f"The function {name}"
        signatures.append(
            {
                "args": [encoded(value, what) for value in args],
                "kwargs": encoded(kwargs, what),
                "paths": [_packed_trace(trace, packing, what) for trace in traces.all],
            }
        )
    opened = [data for i, data in enumerate(opened) if data is not None and data not in opened[:i]]
    if not signatures and not opened:
        raise ValueError(
            f"The function {name} cannot be saved: "
            + (_NOT_CALLED if function._input_signature is None else _NOT_ALIKE)
            + " Call it, or get_concrete_function, with the shapes that are to be saved."
        )
    parameters = [
        [p.name, p.kind.name, _default(p)]
        for p in inspect.signature(function.python_function).parameters.values()
    ]
    signature = function._input_signature
    return {
        "name": name,
        "parameters": parameters,
        "signatures": signatures,
        "opened": opened,
        "input signature": None if signature is None else encoded(signature, name),
    }


class _Aside(Packing):
    """Gathers constants that are not to be saved as they are."""

    def __init__(self, packing: Packing) -> None:
        super().__init__(packing.rules)
        self.variables = packing.variables


def _opened(function: Function, args: tuple, kwargs: dict, packing: Packing) -> dict | None:
    """A form of the function for all sizes that its arguments leave open, if it has one."""
    what = f"The function {function._name}"
    arguments = (args, kwargs)

    def record(sizes: tuple) -> SizedTrace:
        given, named = with_sizes(arguments, sizes)
        fresh = Function(function.python_function, function._name)
        return SizedTrace(sizes, fresh._recorded(given, named))

    def sample(recorded: SizedTrace) -> Sample:
        aside = _Aside(packing)
        return Sample(recorded.sizes, _packed_trace(recorded.trace, aside, what), aside.tensors)

    try:
        count = len(unknown_axes(arguments))
        recorded, tied = traces_with_sizes(function.python_function, count, record)
        samples = [sample(one) for one in recorded]
        form = common_form(samples, tied)
    except Unlike:
        return None
    for name, description in form["constants"].items():
        if description is None:
            form["constants"][name] = packing.constant(samples[0].constants[name])
    return {"args": encoded(list(args), what), "kwargs": encoded(kwargs, what), **form}


def _default(parameter: inspect.Parameter) -> Any:
    if parameter.default is parameter.empty:
        return None
    return [encoded(parameter.default, f"The default of {parameter.name}")]


def _packed_trace(trace: Trace, packing: Packing, what: str) -> dict:
    tracer, program = trace._tracer, trace.executable.program
    if trace.results.has_composites():
        raise ValueError(f"{what} cannot be saved: it returns sparse or ragged tensors.")
    entries, constants, results = program.steps, program.constants, program.results
    ties = any(type(entry) is CustomGradient for entry in tracer.steps)
    if ties and packing.rules:  # which needs all of what was done
        entries = [entry for entry in tracer.steps if type(entry) is not Write]
        constants = {n: x._array for n, x in tracer.constants.items()}
        results = trace.results.numbers
    used = {*program.arguments, *results, *program.writes.values()}.union(*map(_numbers, entries))
    rules = [_packed_rule(tracer, e, packing, what) for e in entries if type(e) is CustomGradient]
    used |= {n for rule in rules for n in rule["used"]} & constants.keys()
    return {
        "entries": [_packed_entry(entry, what) for entry in entries],
        "rules": rules,
        "specs": [[n, list(tracer.specs[n].shape), _name(tracer.specs[n])] for n in sorted(used)],
        "constants": [[n, packing.constant(constants[n])] for n in constants if n in used],
        "inputs": tracer.count,
        "handed in": tracer.variable_argument_count,
        "variables": [
            packing.variable(v) for v in tracer.variables[tracer.variable_argument_count :]
        ],
        "first values": tracer.first_values,
        "writes": list(program.writes.items()),
        "results": results,
        "structure": encoded(trace.results.template(), what),
    }


def _numbers(step: Any) -> tuple[int, ...]:
    """Returns the values that a step reads or makes."""
    return *step.inputs, *step.outputs


def _packed_rule(tracer: Tracer, tie: CustomGradient, packing: Packing, what: str) -> dict:
    """The user's rule of a `custom_gradient`, as it is recorded for replays; or what it lacks."""
    try:
        backward, first, results = traced_rule(tracer, tie)
        if not all(type(entry) is Call for entry in backward.steps):
            raise ValueError("it looks at values, or has a gradient of its own in it")
        entries = [_packed_entry(entry, what) for entry in backward.steps]
    except Exception as error:
        return {"missing": f"{type(error).__name__}: {error}", "used": []}
    used = {n for n in results if n is not None}.union(*map(_numbers, backward.steps))
    constants = backward.constants.items()
    return {
        "entries": entries,
        "first": first,
        "results": results,
        "constants": [[n, packing.constant(x._array)] for n, x in constants if n in used],
        "used": sorted(used),
    }


def _name(spec: Spec) -> str:
    return dtypes.of(spec.dtype).name


def _packed_entry(entry: Any, what: str) -> dict:
    if type(entry) is Guard:
        key = encoded(entry.key, what)
        return {"guard": entry.value, "truth": entry.truth, "key": key, "how": entry.how}
    if type(entry) is CustomGradient:
        parts = {"inputs": entry.sources, "values": entry.values, "outputs": entry.outputs}
        return {"tie": entry.name, **parts}
    description = entry.primitive.description if type(entry) is Call and _is_host(entry) else None
    if description is not None:
        return {
            "host": description.builder,
            "function": description.function,
            "given": encoded(description.values, what),
            "inputs": entry.inputs,
            "outputs": entry.outputs,
        }
    if type(entry) is not Call or _is_host(entry):
        name = entry.primitive.name if type(entry) is Call else "a variable that changes outside"
        raise ValueError(f"{what} cannot be saved: it runs Python code on its way ({name}).")
    return {
        "call": entry.primitive.name,
        "inputs": entry.inputs,
        "attrs": encoded(dict(entry.attrs), what),
        "outputs": entry.outputs,
    }


def _is_host(call: Call) -> bool:
    return type(call.primitive) is HostCallback


def _with_specs(value: Any, found: list[Variable]) -> Any:
    """`value` with specs in place of variables, which are counted in `found`."""
    held = tensor_or_variable(value)
    if isinstance(held, Variable):
        place = next((i for i, v in enumerate(found) if v is held), len(found))
        found += [held] if place == len(found) else []
        return VariableSpec(place, list(held._spec.shape), held.dtype.name, held.trainable)
    if nest.is_nested(value):
        return nest.rebuild(value, [_with_specs(child, found) for child in nest.children(value)])
    return value
