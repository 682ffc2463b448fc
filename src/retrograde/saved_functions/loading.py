"""Creates traces from untrusted data, which can name only primitives and registered functions."""

from __future__ import annotations

import functools
import importlib.util
import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from retrograde.core.apply import PRIMITIVES, Primitive
from retrograde.core.program import Call, CustomGradient, Guard
from retrograde.core.rules import Spec
from retrograde.core.tensor import Tensor
from retrograde.core.variable import Variable
from retrograde.ops.host_functions import CALLBACK_BUILDERS, REGISTERED_FUNCTIONS
from retrograde.program.traces import ResultStructure, Trace
from retrograde.program.tracing import CallbackLog, Tracer
from retrograde.saved_functions.encoding import (
    boolean,
    decode,
    dtype_of,
    integer,
    item,
    shape_of,
    text,
)
from retrograde.values.errors import DataLossError
from retrograde.values.source import is_name

# Limits how many numbers have no spec, so that one large number does not allocate a long list.
_MAX_UNUSED = 1 << 20


def load_trace(
    data: Mapping, variables: list, tensors: Mapping[str, Any], argument_variables: list[Variable]
) -> Trace:
    """Returns the trace that `save_function` saved. `argument_variables` are arguments.

    Every number, name and shape is checked, and no kernel runs. Raises a `TypeError`, `ValueError`
    or `LookupError` if the data is corrupt.
    """
    tracer = Tracer([], CallbackLog(), argument_variables)
    tracer.start = 0  # no tensor is captured
    tracer.count = integer(data["inputs"])
    specs = {integer(n): Spec(shape_of(shape), dtype_of(name)) for n, shape, name in data["specs"]}
    size = 1 + max(specs, default=-1)
    _check(size <= len(specs) + _MAX_UNUSED, "numbers of values are too large")
    _check(tracer.count <= len(specs), "inputs have no specs")
    tracer.specs = [specs.get(n, _NO_SPEC) for n in range(size)]
    tracer._changing = [True] * size
    tracer.variables += [item(variables, index) for index in data["variables"]]
    tracer.constants = _load_constants(data["constants"], tensors)
    tracer.first_values = [-1 if n == -1 else integer(n) for n in data["first values"]]
    values = _Values(specs)
    values.make(range(tracer.count))
    values.make(tracer.constants)
    values.make([n for n in tracer.first_values if n >= 0])
    _check_arrays(tracer, specs)
    tracer.steps = [_load_step(step, values) for step in data["steps"]]
    _load_rules(tracer, data["rules"], values, tensors)
    writes = {index: number for index, number in data["writes"]}
    for index, number in writes.items():
        _check_variable(item(tracer.variables, index), specs[values.use([number])[0]])
    tracer.add_writes(writes)
    results = ResultStructure.of(decode(data["structure"]), list(values.use(data["results"])))
    _check(
        sum(results._are_tensors) == len(results.numbers),
        "the results do not match their structure",
    )
    trace = Trace(tracer, results, compiles=False, fold=False)
    tracer.variables[: len(argument_variables)] = [None] * len(argument_variables)
    return trace


_NO_SPEC = Spec((), np.dtype(np.float32))


class _Values:
    """Checks that each value of a trace is computed once, and before it is used.

    The values of a gradient function have no specs.
    """

    def __init__(self, specs: Mapping[int, Spec] | None, made: Iterable[int] = ()) -> None:
        self._specs = specs
        self._made = set(made)

    def make(self, numbers: Iterable[Any]) -> tuple[int, ...]:
        """Checks the numbers of new values."""
        made = tuple([integer(n) for n in numbers])
        for n in made:
            _check(n not in self._made, f"value {n} is computed twice")
            _check(self._specs is None or n in self._specs, f"value {n} has no spec")
            self._made.add(n)
        return made

    def use(self, numbers: Iterable[Any]) -> tuple[int, ...]:
        """Checks the numbers of values that are read."""
        used = tuple([integer(n) for n in numbers])
        for n in used:
            _check(n in self._made, f"value {n} is used before it is computed")
        return used

    def branch(self) -> _Values:
        """Returns a copy for a gradient function, which may use all values so far."""
        return _Values(None, self._made)


def _check(holds: bool, problem: str) -> None:
    if not holds:
        raise ValueError(problem)


def _check_arrays(tracer: Tracer, specs: Mapping[int, Spec]) -> None:
    """Checks the shapes and dtypes of constants and variables."""
    for n, tensor in tracer.constants.items():
        _check(Spec.of(tensor) == specs[n], f"constant {n} has a wrong shape or dtype")
    pairs = zip(tracer.variables, tracer.first_values, strict=True)
    for variable, n in pairs:
        if n >= 0:
            _check_variable(variable, specs[n])


def _check_variable(variable: Variable, spec: Spec) -> None:
    expected = spec if variable._shape is None else Spec(variable._spec.shape, spec.dtype)
    _check(Spec.of(variable) == expected, f"variable {variable.name} has a wrong shape or dtype")


def _load_constants(data: list, tensors: Mapping[str, Any]) -> dict[int, Tensor]:
    return {integer(n): tensor_of(tensors[name]) for n, name in data}


def tensor_of(array: np.ndarray) -> Tensor:
    """Returns a tensor with the values of `array`. A scalar becomes a NumPy scalar."""
    return Tensor(array if array.dtype.kind == "O" else array[()])


def _refuse(name: str, reason: str, *_: Any) -> Any:
    raise ValueError(
        f"The gradient function of {name} is missing in this saved model, because it could not be "
        f"traced when the model was saved ({reason})."
    )


def _load_rules(tracer: Tracer, data: list, values: _Values, tensors: Mapping[str, Any]) -> None:
    """Loads the gradient function of each `custom_gradient`."""
    customs = [i for i, step in enumerate(tracer.steps) if type(step) is CustomGradient]
    for i, rule in zip(customs, data, strict=True):
        custom = tracer.steps[i]
        if "missing" in rule:
            refuse = functools.partial(_refuse, custom.name, str(rule["missing"]))
            tracer.steps[i] = custom._replace(rule=refuse)
        else:
            tracer.rules[custom.outputs] = _load_rule(tracer, custom, rule, values, tensors)


def _load_rule(
    tracer: Tracer,
    custom: CustomGradient,
    data: Mapping,
    values: _Values,
    tensors: Mapping[str, Any],
) -> tuple[Tracer, int, list]:
    """Returns a traced gradient function, as `trace_gradient_function` does."""
    backward, inside = tracer.branched(), values.branch()
    first = integer(data["first"])
    backward.constants = _load_constants(data["constants"], tensors)
    inside.make(n for n in backward.constants if n not in tracer.constants)
    inside.make(range(first, first + len(custom.outputs)))
    backward.steps = [_load_step(step, inside) for step in data["steps"]]
    results = [None if n is None else inside.use([n])[0] for n in data["results"]]
    _check(len(results) == len(custom.sources), f"{custom.name} has a wrong number of gradients")
    return backward, first, results


def _load_step(data: Mapping, values: _Values) -> Any:
    if "custom gradient" in data:
        inputs, used = values.use(data["inputs"]), values.use(data["values"])
        outputs = values.make(data["outputs"])
        _check(len(used) == len(outputs), "a custom gradient has a wrong number of outputs")
        return CustomGradient(text(data["custom gradient"]), _refuse, inputs + used, outputs)
    if "guard" in data:
        inputs = values.use([data["guard"]])
        truth, key = boolean(data["truth"]), decode(data["key"])
        _check(type(key) in ((bool,) if truth else (bytes, tuple)), "a guard has no key")
        return Guard(inputs, truth, key, text(data["how"]), None)
    inputs = values.use(data["inputs"])
    if "host" in data:
        host = CALLBACK_BUILDERS[data["host"]](
            _find_registered(text(data["function"])), decode(data["arguments"])
        )
        return Call(host, inputs, {}, values.make(data["outputs"]))
    primitive = PRIMITIVES.get(data["call"])
    if primitive is None:
        raise _unknown_name_error("an operation", data["call"])
    attrs, outputs = decode(data["attrs"]), values.make(data["outputs"])
    _check_call(primitive, inputs, attrs, outputs)
    return Call(primitive, inputs, attrs, outputs)


def _check_call(primitive: Primitive, inputs: tuple, attrs: Any, outputs: tuple) -> None:
    """Checks the arguments of a kernel. Its first call checks the types of attributes.

    See `LoadedFunction`.
    """
    if type(attrs) is not dict or not all(map(is_name, attrs)):
        raise TypeError(f"{primitive.name} does not accept {attrs!r}")
    _check(
        bool(outputs) if primitive.outputs else len(outputs) == 1,
        "a call has a wrong number of outputs",
    )
    signature = _signature(primitive.kernel)
    if signature is not None:
        signature.bind(np, *inputs, **attrs)


@functools.cache
def _signature(kernel: Callable) -> inspect.Signature | None:
    try:
        return inspect.signature(kernel)
    except (TypeError, ValueError):  # not a Python function
        return None


def _find_registered(name: str) -> Callable:
    """Returns the registered function of this library that a description names."""
    home = name.rpartition(".")[0]
    if (
        name not in REGISTERED_FUNCTIONS
        and _MODULES.fullmatch(home)
        and importlib.util.find_spec(home)
    ):
        importlib.import_module(home)
    if name not in REGISTERED_FUNCTIONS:
        raise _unknown_name_error("a function", name)
    return REGISTERED_FUNCTIONS[name]


_MODULES = re.compile(
    r"retrograde\.(core|image|io|math|nn|ops|random|sparse|strings|toplevel)(\.\w+)?"
)


def _unknown_name_error(kind: str, name: Any) -> DataLossError:
    return DataLossError(
        None,
        None,
        f"This saved model uses {kind} {name!r} that this version of retrograde does not have. "
        "Load it with the version that saved it.",
    )
