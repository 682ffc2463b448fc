"""Converts the traces of functions to data for JSON, and their constants to named tensors."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import numpy as np

from retrograde.core.program import Call, CustomGradient, Guard, Write
from retrograde.core.rules import Spec
from retrograde.core.variable import Variable
from retrograde.ops.host_callbacks import HostCallback
from retrograde.program.concrete_function import VariableSpec
from retrograde.program.function import Function
from retrograde.program.interpreter import trace_gradient_function
from retrograde.program.traces import Trace
from retrograde.program.tracing import Tracer
from retrograde.program.unknown_sizes import (
    NoCommonForm,
    SizedTrace,
    traces_with_sizes,
    unknown_axes,
    with_sizes,
)
from retrograde.saved_functions.encoding import encode
from retrograde.saved_functions.size_formulas import Sample, common_form
from retrograde.shape_inference.abstract_array import AbstractArray, NeedsValue
from retrograde.shape_inference.inference import inferring_shapes
from retrograde.values import dtypes, nest
from retrograde.values.conversion import tensor_or_variable


class FunctionWriter:
    """Collects and names the variables and constants of the functions that are saved."""

    def __init__(self, rules: bool = True) -> None:
        """With `rules`, the gradient functions of `custom_gradient`s are saved as well."""
        self.rules = rules
        self.variables: list[Any] = []
        self.tensors: dict[str, np.ndarray] = {}

    def variable(self, variable: Any) -> int:
        """Returns the index of a variable in the list of all variables."""
        for index, added_variable in enumerate(self.variables):
            if added_variable is variable:
                return index
        self.variables.append(variable)
        return len(self.variables) - 1

    def constant(self, array: Any) -> str:
        """Adds a constant and returns its name."""
        name = f"constant {len(self.tensors)}"
        self.tensors[name] = np.asarray(array)
        return name


_NEVER_CALLED = "it was never called, so it has no traces."
_DEPENDS_ON_SIZES = "its operations depend on the unknown sizes of its input_signature."


def save_function(function: Function, writer: FunctionWriter) -> dict:
    """Converts the traces of a function, and adds a common form for each unknown-size signature.

    A common form is one trace whose sizes are formulas in the unknown sizes.
    """
    name = function._name
    common_forms = [
        _save_common_form(function, *arguments, writer)
        for arguments in function._unknown_size_arguments
    ]
    if function._input_signature is not None:
        if unknown_axes(function._input_signature):
            common_forms.append(_save_common_form(function, function._input_signature, {}, writer))
        else:
            function.get_concrete_function()
    signatures = []
    for traces in function._signatures.values():
        if not traces.all:
            continue
        args, kwargs = _with_variable_specs(traces.arguments)
        owner = f"The function {name}"
        signatures.append(
            {
                "args": [encode(value, owner) for value in args],
                "kwargs": encode(kwargs, owner),
                "traces": [_save_trace(trace, writer, owner) for trace in traces.all],
            }
        )
    common_forms = [
        data
        for i, data in enumerate(common_forms)
        if data is not None and data not in common_forms[:i]
    ]
    if not signatures and not common_forms:
        raise ValueError(
            f"The function {name} cannot be saved: "
            + (_NEVER_CALLED if function._input_signature is None else _DEPENDS_ON_SIZES)
            + " Call it, or get_concrete_function, with the shapes to save, or pass an "
            "input_signature with known sizes."
        )
    parameters = [
        [p.name, p.kind.name, _encode_default(p)]
        for p in inspect.signature(function.python_function).parameters.values()
    ]
    signature = function._input_signature
    return {
        "name": name,
        "parameters": parameters,
        "signatures": signatures,
        "common forms": common_forms,
        "input signature": None if signature is None else encode(signature, name),
    }


def _save_common_form(
    function: Function, args: tuple, kwargs: dict, writer: FunctionWriter
) -> dict | None:
    """Returns a common form of the function for all unknown sizes, or `None` if it has none."""
    owner = f"The function {function._name}"
    arguments = (args, kwargs)

    def trace_with(sizes: tuple) -> SizedTrace:
        sized_args, sized_kwargs = with_sizes(arguments, sizes)
        try:
            with inferring_shapes():
                abstract_function = _AbstractFunction(function.python_function, function._name)
                trace = abstract_function._trace_for(sized_args, sized_kwargs)
        except NeedsValue:
            concrete_function = Function(function.python_function, function._name)
            trace = concrete_function._trace_for(sized_args, sized_kwargs)
        return SizedTrace(sizes, trace)

    def create_sample(sized: SizedTrace) -> Sample:
        # The constants of a sample are compared with other samples before they are saved.
        temporary_writer = FunctionWriter(writer.rules)
        temporary_writer.variables = writer.variables
        with inferring_shapes():  # `_save_trace` traces gradient functions.
            data = _save_trace(sized.trace, temporary_writer, owner)
        return Sample(sized.sizes, data, temporary_writer.tensors)

    try:
        count = len(unknown_axes(arguments))
        traces, equal_size_groups = traces_with_sizes(function.python_function, count, trace_with)
        samples = [create_sample(trace) for trace in traces]
        form = common_form(samples, equal_size_groups)
    except NoCommonForm:
        return None
    for name, description in form["constants"].items():
        if description is None:
            form["constants"][name] = writer.constant(samples[0].constants[name])
    return {"args": encode(list(args), owner), "kwargs": encode(kwargs, owner), **form}


class _AbstractFunction(Function):
    """A function that is traced without running kernels."""

    @staticmethod
    def _create_dummy_array(shape: Sequence[int], dtype: np.dtype) -> AbstractArray:
        return AbstractArray(tuple(shape), dtype)


def _encode_default(parameter: inspect.Parameter) -> Any:
    """Returns a list with the encoded default, or `None` if there is no default."""
    if parameter.default is parameter.empty:
        return None
    return [encode(parameter.default, f"The default of {parameter.name}")]


def _save_trace(trace: Trace, writer: FunctionWriter, owner: str) -> dict:
    tracer, program = trace._tracer, trace.executable.program
    if trace.results.has_composites():
        raise ValueError(f"{owner} cannot be saved: it returns sparse or ragged tensors.")
    steps, constants, results = program.steps, program.constants, program.results
    has_custom_gradients = any(type(step) is CustomGradient for step in tracer.steps)
    if has_custom_gradients and writer.rules:
        # Gradient functions may read any value of the trace, so no step can be left out.
        steps = [step for step in tracer.steps if type(step) is not Write]
        constants = {n: x._array for n, x in tracer.constants.items()}
        results = trace.results.numbers
    value_numbers = {*program.arguments, *results, *program.writes.values()}
    value_numbers.update(*map(_value_numbers, steps))
    custom_gradients = [step for step in steps if type(step) is CustomGradient]
    rules = [_save_rule(tracer, step, writer, owner) for step in custom_gradients]
    value_numbers |= {n for rule in rules for n in rule["used"]} & constants.keys()
    return {
        "steps": [_save_step(step, owner) for step in steps],
        "rules": rules,
        "specs": [
            [n, list(tracer.specs[n].shape), _dtype_name(tracer.specs[n])]
            for n in sorted(value_numbers)
        ],
        "constants": [[n, writer.constant(constants[n])] for n in constants if n in value_numbers],
        "inputs": tracer.count,
        "variable arguments": tracer.variable_argument_count,
        "variables": [
            writer.variable(v) for v in tracer.variables[tracer.variable_argument_count :]
        ],
        "first values": tracer.first_values,
        "writes": list(program.writes.items()),
        "results": results,
        "structure": encode(trace.results.template(), owner),
    }


def _value_numbers(step: Any) -> tuple[int, ...]:
    """Returns the numbers of the inputs and outputs of a step."""
    return *step.inputs, *step.outputs


def _save_rule(tracer: Tracer, custom: CustomGradient, writer: FunctionWriter, owner: str) -> dict:
    """Converts the traced gradient function of a `custom_gradient`.

    If it cannot be saved, the result has the reason instead.
    """
    try:
        backward, first_cotangent, results = trace_gradient_function(tracer, custom)
        if not all(type(step) is Call for step in backward.steps):
            raise ValueError("it reads values, or contains another custom gradient")
        steps = [_save_step(step, owner) for step in backward.steps]
    except Exception as error:
        return {"missing": f"{type(error).__name__}: {error}", "used": []}
    value_numbers = {n for n in results if n is not None}
    value_numbers.update(*map(_value_numbers, backward.steps))
    constants = backward.constants.items()
    return {
        "steps": steps,
        "first": first_cotangent,
        "results": results,
        "constants": [[n, writer.constant(x._array)] for n, x in constants if n in value_numbers],
        "used": sorted(value_numbers),
    }


def _dtype_name(spec: Spec) -> str:
    return dtypes.of(spec.dtype).name


def _save_step(step: Any, owner: str) -> dict:
    if type(step) is Guard:
        key = encode(step.key, owner)
        return {"guard": step.inputs[0], "truth": step.truth, "key": key, "how": step.how}
    if type(step) is CustomGradient:
        numbers = {"inputs": step.sources, "values": step.values, "outputs": step.outputs}
        return {"custom gradient": step.name, **numbers}
    is_host_call = type(step) is Call and _is_host_call(step)
    description = step.primitive.description if is_host_call else None
    if description is not None:
        return {
            "host": description.builder,
            "function": description.function,
            "arguments": encode(description.values, owner),
            "inputs": step.inputs,
            "outputs": step.outputs,
        }
    if type(step) is not Call or is_host_call:
        name = step.primitive.name if type(step) is Call else "a variable that host code changes"
        raise ValueError(f"{owner} cannot be saved: it calls Python code ({name}).")
    return {
        "call": step.primitive.name,
        "inputs": step.inputs,
        "attrs": encode(dict(step.attrs), owner),
        "outputs": step.outputs,
    }


def _is_host_call(call: Call) -> bool:
    return type(call.primitive) is HostCallback


def _with_variable_specs(arguments: Any) -> Any:
    """Replaces each variable in `arguments` by a `VariableSpec`."""
    indices: dict[int, int] = {}

    def replace(value: Any) -> Any:
        variable = tensor_or_variable(value)
        if not isinstance(variable, Variable):
            return value
        index = indices.setdefault(variable._id, len(indices))
        return VariableSpec(
            index, list(variable._spec.shape), variable.dtype.name, variable.trainable
        )

    return nest.map_leaves(replace, arguments)
