"""Recordings from plain data. It is untrusted, so it names only what is known here."""

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
from retrograde.ops.host_functions import HOST_BUILDERS, REGISTERED_FUNCTIONS
from retrograde.program.saving_values import (
    boolean,
    decoded,
    dtype_of,
    integer,
    item,
    shape_of,
    text,
)
from retrograde.program.traces import ResultStructure, Trace
from retrograde.program.tracing import CallbackLog, Tracer
from retrograde.values.errors import DataLossError
from retrograde.values.source import is_name

# A file cannot make a long list by one large number: so many values may have no spec.
_MOST_UNUSED = 1 << 20


def unpacked_trace(
    data: Mapping, variables: list, tensors: Mapping[str, Any], argument_variables: list[Variable]
) -> Trace:
    """Returns the trace that `packed_function` saved. `argument_variables` are arguments.

    Every number, name and shape is checked, and no kernel runs. Raises a `TypeError`, `ValueError`
    or `LookupError` if the data is damaged.
    """
    tracer = Tracer([], CallbackLog(), argument_variables)
    tracer.start = 0  # nothing is from outside
    tracer.count = integer(data["inputs"])
    specs = {integer(n): Spec(shape_of(shape), dtype_of(name)) for n, shape, name in data["specs"]}
    size = 1 + max(specs, default=-1)
    _check(size <= len(specs) + _MOST_UNUSED, "numbers of values are too large")
    _check(tracer.count <= len(specs), "inputs have no specs")
    tracer.specs = [specs.get(n, _NO_SPEC) for n in range(size)]
    tracer._changing = [True] * size
    tracer.variables += [item(variables, place) for place in data["variables"]]
    tracer.constants = _unpacked_constants(data["constants"], tensors)
    tracer.first_values = [-1 if n == -1 else integer(n) for n in data["first values"]]
    values = _Values(specs)
    values.make(range(tracer.count))
    values.make(tracer.constants)
    values.make([n for n in tracer.first_values if n >= 0])
    _check_arrays(tracer, specs)
    tracer.steps = [_unpacked_entry(entry, values) for entry in data["entries"]]
    _unpack_rules(tracer, data["rules"], values, tensors)
    writes = {place: number for place, number in data["writes"]}
    for place, number in writes.items():
        _check_variable(item(tracer.variables, place), specs[values.use([number])[0]])
    tracer.add_writes(writes)
    results = ResultStructure.of(decoded(data["structure"]), list(values.use(data["results"])))
    _check(sum(results._places) == len(results.numbers), "results do not fit their structure")
    trace = Trace(tracer, results, compiles=False, fold=False)
    tracer.variables[: len(argument_variables)] = [None] * len(argument_variables)
    return trace


_NO_SPEC = Spec((), np.dtype(np.float32))


class _Values:
    """The values of a path, in the order in which they are made: each once, and before its use.

    Values without a spec are those of a gradient function.
    """

    def __init__(self, specs: Mapping[int, Spec] | None, made: Iterable[int] = ()) -> None:
        self._specs = specs
        self._made = set(made)

    def make(self, numbers: Iterable[Any]) -> tuple[int, ...]:
        """Checks the numbers of new values."""
        made = tuple([integer(n) for n in numbers])
        for n in made:
            _check(n not in self._made, f"value {n} is made twice")
            _check(self._specs is None or n in self._specs, f"value {n} has no spec")
            self._made.add(n)
        return made

    def use(self, numbers: Iterable[Any]) -> tuple[int, ...]:
        """Checks the numbers of values that are read."""
        used = tuple([integer(n) for n in numbers])
        for n in used:
            _check(n in self._made, f"value {n} is used before it is made")
        return used

    def continued(self) -> _Values:
        """The values that a gradient function may use, to which it adds its own."""
        return _Values(None, self._made)


def _check(holds: bool, problem: str) -> None:
    if not holds:
        raise ValueError(problem)


def _check_arrays(tracer: Tracer, specs: Mapping[int, Spec]) -> None:
    """Checks that constants and variables have the shapes and dtypes that calls expect."""
    for n, tensor in tracer.constants.items():
        _check(Spec.of(tensor) == specs[n], f"constant {n} has another shape or dtype")
    pairs = zip(tracer.variables, tracer.first_values, strict=True)
    for variable, n in pairs:
        if n >= 0:
            _check_variable(variable, specs[n])


def _check_variable(variable: Variable, spec: Spec) -> None:
    expected = spec if variable._shape is None else Spec(variable._spec.shape, spec.dtype)
    _check(Spec.of(variable) == expected, f"variable {variable.name} has another shape or dtype")


def _unpacked_constants(data: list, tensors: Mapping[str, Any]) -> dict[int, Tensor]:
    return {integer(n): tensor_of(tensors[name]) for n, name in data}


def tensor_of(array: np.ndarray) -> Tensor:
    """An array as a tensor holds it: a scalar without axes, unless it is a string."""
    return Tensor(array if array.dtype.kind == "O" else array[()])


def _refuse(name: str, reason: str, *_: Any) -> Any:
    raise ValueError(
        f"The gradient function of {name} is not in this saved model, as it could not be recorded "
        f"when the model was saved ({reason})."
    )


def _unpack_rules(tracer: Tracer, data: list, values: _Values, tensors: Mapping[str, Any]) -> None:
    """Gives each `custom_gradient` its gradient function."""
    ties = [i for i, entry in enumerate(tracer.steps) if type(entry) is CustomGradient]
    for i, rule in zip(ties, data, strict=True):
        tie = tracer.steps[i]
        if "missing" in rule:
            refuse = functools.partial(_refuse, tie.name, str(rule["missing"]))
            tracer.steps[i] = tie._replace(rule=refuse)
        else:
            tracer.rules[tie.outputs] = _unpacked_rule(tracer, tie, rule, values, tensors)


def _unpacked_rule(
    tracer: Tracer,
    tie: CustomGradient,
    data: Mapping,
    values: _Values,
    tensors: Mapping[str, Any],
) -> tuple[Tracer, int, list]:
    """What `rule_of` recorded."""
    backward, inside = tracer.branched(), values.continued()
    first = integer(data["first"])
    backward.constants = _unpacked_constants(data["constants"], tensors)
    inside.make(n for n in backward.constants if n not in tracer.constants)
    inside.make(range(first, first + len(tie.outputs)))
    backward.steps = [_unpacked_entry(entry, inside) for entry in data["entries"]]
    results = [None if n is None else inside.use([n])[0] for n in data["results"]]
    _check(len(results) == len(tie.sources), f"{tie.name} has another number of gradients")
    return backward, first, results


def _unpacked_entry(data: Mapping, values: _Values) -> Any:
    if "tie" in data:
        inputs, used = values.use(data["inputs"]), values.use(data["values"])
        outputs = values.make(data["outputs"])
        _check(len(used) == len(outputs), "a gradient function has other outputs")
        return CustomGradient(text(data["tie"]), _refuse, inputs, used, outputs)
    if "guard" in data:
        (value,) = values.use([data["guard"]])
        truth, key = boolean(data["truth"]), decoded(data["key"])
        _check(type(key) in ((bool,) if truth else (bytes, tuple)), "a guard has no key")
        return Guard(value, truth, key, text(data["how"]), None)
    inputs = values.use(data["inputs"])
    if "host" in data:
        host = HOST_BUILDERS[data["host"]](_known(text(data["function"])), decoded(data["given"]))
        return Call(host, inputs, {}, values.make(data["outputs"]))
    primitive = PRIMITIVES.get(data["call"])
    if primitive is None:
        raise _unknown("an operation", data["call"])
    attrs, outputs = decoded(data["attrs"]), values.make(data["outputs"])
    _check_call(primitive, inputs, attrs, outputs)
    return Call(primitive, inputs, attrs, outputs)


def _check_call(primitive: Primitive, inputs: tuple, attrs: Any, outputs: tuple) -> None:
    """Checks that a kernel can be called so. The types of attributes are checked by its first call.

    See `LoadedFunction`.
    """
    if type(attrs) is not dict or not all(map(is_name, attrs)):
        raise TypeError(f"{primitive.name} takes no {attrs!r}")
    _check(bool(outputs) if primitive.outputs else len(outputs) == 1, "a call has other outputs")
    signature = _signature(primitive.kernel)
    if signature is not None:
        signature.bind(np, *inputs, **attrs)


@functools.cache
def _signature(kernel: Callable) -> inspect.Signature | None:
    try:
        return inspect.signature(kernel)
    except (TypeError, ValueError):  # of a function that is not Python's
        return None


def _known(name: str) -> Callable:
    """Returns the registered function of this library that a description names."""
    home = name.rpartition(".")[0]
    if (
        name not in REGISTERED_FUNCTIONS
        and _HOMES.fullmatch(home)
        and importlib.util.find_spec(home)
    ):
        importlib.import_module(home)
    if name not in REGISTERED_FUNCTIONS:
        raise _unknown("a function", name)
    return REGISTERED_FUNCTIONS[name]


_HOMES = re.compile(
    r"retrograde\.(core|image|io|math|nn|ops|random|sparse|strings|toplevel)(\.\w+)?"
)


def _unknown(what: str, name: Any) -> DataLossError:
    return DataLossError(
        None,
        None,
        f"This saved model uses {what} {name!r} that this version of retrograde does not have. "
        "Load it with the version that saved it.",
    )
