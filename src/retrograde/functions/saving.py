"""Recordings as plain data: what JSON and a file of tensors can hold, and back."""

from __future__ import annotations

import inspect
import keyword
from collections.abc import Mapping
from typing import Any

import numpy as np

from retrograde.core import dtypes
from retrograde.core.dispatch import PRIMITIVES, Primitive
from retrograde.core.rules import Spec
from retrograde.core.spec import TensorSpec
from retrograde.core.tensor import Tensor
from retrograde.functions.concrete import made_up
from retrograde.functions.paths import Path, Paths, Results
from retrograde.functions.polymorphic import Function
from retrograde.functions.recording import Call, Guard, Log, Recording
from retrograde.functions.signature import describe

# Values


def encoded(value: Any, what: str) -> Any:
    """A Python value as JSON can hold it; `what` it belongs to, for the error if it cannot be."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return {"float": value.hex()}
    if isinstance(value, complex):
        return {"complex": [value.real.hex(), value.imag.hex()]}
    if isinstance(value, bytes):
        return {"bytes": value.hex()}
    if isinstance(value, slice):
        return {"slice": [encoded(part, what) for part in (value.start, value.stop, value.step)]}
    if isinstance(value, np.dtype):
        return {"numpy dtype": dtypes.of(value).name}
    if isinstance(value, dtypes.DType):
        return {"dtype": value.name}
    if isinstance(value, np.generic):
        return {"number": encoded(value.item(), what), "dtype": dtypes.of(value.dtype).name}
    if isinstance(value, TensorSpec):
        return {"spec": [value.shape.as_list(), value.dtype.name, value.name]}
    if type(value) in (list, tuple):
        return {type(value).__name__: [encoded(part, what) for part in value]}
    if type(value) is dict:
        pairs = [[encoded(k, what), encoded(v, what)] for k, v in value.items()]
        return {"dict": pairs}
    raise ValueError(
        f"{what} cannot be saved: it contains {value!r} of type {type(value).__name__!r}. Expected "
        "numbers, strings, tensors, and lists, tuples and dicts of these."
    )


def decoded(data: Any) -> Any:
    """The Python value that `encoded` wrote down."""
    if not isinstance(data, dict):
        return data
    kind = next(iter(data))
    value = data[kind]
    match kind:
        case "float":
            return float.fromhex(value)
        case "complex":
            return complex(*map(float.fromhex, value))
        case "bytes":
            return bytes.fromhex(value)
        case "slice":
            return slice(*map(decoded, value))
        case "numpy dtype":
            return dtypes.as_dtype(value).numpy_dtype
        case "dtype":
            return dtypes.as_dtype(value)
        case "number":
            return dtypes.as_dtype(data["dtype"]).numpy_dtype.type(decoded(value))
        case "spec":
            return TensorSpec(*value)
        case "list":
            return [decoded(part) for part in value]
        case "tuple":
            return tuple([decoded(part) for part in value])
        case "dict":
            return {decoded(k): decoded(v) for k, v in value}
    raise ValueError(f"A saved model contains an unknown value: {kind!r}.")


# Functions


class Packing:
    """Gathers the variables and constants of what is saved, and gives them names."""

    def __init__(self) -> None:
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


def packed_function(function: Function, packing: Packing) -> dict:
    """All recordings of a function."""
    name = function._name
    signatures = []
    for paths in function._signatures.values():
        if not paths.all:
            continue
        args, kwargs = paths.arguments
        what = f"The function {name}"
        signatures.append(
            {
                "args": [encoded(value, what) for value in args],
                "kwargs": encoded(kwargs, what),
                "paths": [_packed_path(path, packing, what) for path in paths.all],
            }
        )
    if not signatures:
        raise ValueError(
            f"The function {name} cannot be saved: it was never called, so nothing is recorded. "
            "Call it, or get_concrete_function, with the shapes that are to be saved."
        )
    parameters = [
        [p.name, p.kind.name, _default(p)]
        for p in inspect.signature(function.python_function).parameters.values()
    ]
    return {"name": name, "parameters": parameters, "signatures": signatures}


def _default(parameter: inspect.Parameter) -> Any:
    if parameter.default is parameter.empty:
        return None
    return [encoded(parameter.default, f"The default of {parameter.name}")]


def _packed_path(path: Path, packing: Packing, what: str) -> dict:
    recording, plain = path._recording, path.replay.plain
    if recording.handed_in:
        raise ValueError(f"{what} cannot be saved: it takes variables as arguments.")
    entries = [_packed_entry(entry, what) for entry in plain.entries]
    used = {*plain.arguments, *plain.results, *plain.writes.values()}
    for entry in plain.entries:
        used.update((entry.value,) if type(entry) is Guard else (*entry.inputs, *entry.outputs))
    if path.results.has_composites():
        raise ValueError(f"{what} cannot be saved: it returns sparse or ragged tensors.")
    return {
        "entries": entries,
        "specs": [[n, list(recording.specs[n].shape), _name(recording.specs[n])] for n in used],
        "constants": [
            [n, packing.constant(plain.constants[n])] for n in plain.constants if n in used
        ],
        "inputs": recording.count,
        "variables": [packing.variable(v) for v in recording.variables],
        "first values": recording.first_values,
        "writes": list(plain.writes.items()),
        "results": plain.results,
        "structure": encoded(path.results.template(), what),
    }


def _name(spec: Spec) -> str:
    return dtypes.of(spec.dtype).name


def _packed_entry(entry: Any, what: str) -> dict:
    if type(entry) is Guard:
        key = encoded(entry.key, what)
        return {"guard": entry.value, "truth": entry.truth, "key": key, "how": entry.how}
    if type(entry) is not Call or type(entry.primitive) is not Primitive:
        name = entry.primitive.name if type(entry) is Call else "a variable that changes outside"
        raise ValueError(f"{what} cannot be saved: it runs Python code on its way ({name}).")
    return {
        "call": entry.primitive.name,
        "inputs": entry.inputs,
        "attrs": encoded(dict(entry.attrs), what),
        "outputs": entry.outputs,
    }


def unpacked_function(data: Mapping, variables: list, tensors: Mapping[str, Any]) -> Function:
    """A function that replays what `packed_function` wrote down, and can do nothing else."""
    name = data["name"]
    shown = []

    def missing(*args: Any, **kwargs: Any) -> Any:
        inputs: list[Tensor] = []
        describe(args, inputs, [])
        received = [TensorSpec.from_tensor(x) for x in inputs]
        expected = "\n  ".join(shown)
        raise ValueError(
            f"Could not find matching concrete function to call loaded from the SavedModel. "
            f"{name} got {received} and {kwargs}. Expected one of:\n  {expected}"
        )

    missing.__name__ = name
    missing.__signature__ = inspect.Signature([_parameter(p) for p in data["parameters"]])
    function = Function(missing, name)
    for signature in data["signatures"]:
        args = tuple([decoded(value) for value in signature["args"]])
        kwargs = decoded(signature["kwargs"])
        shown.append(f"{args} {kwargs or ''}".strip())
        *_, key, _, _ = function._arranged(
            tuple(map(made_up, args)), {k: made_up(v) for k, v in kwargs.items()}
        )
        paths = function._signatures[key] = Paths()
        paths.arguments = args, kwargs
        for path in signature["paths"]:
            paths.add(_unpacked_path(path, variables, tensors))
    return function


def _parameter(data: list) -> inspect.Parameter:
    name, kind, default = data
    value = inspect.Parameter.empty if default is None else decoded(default[0])
    return inspect.Parameter(name, inspect._ParameterKind[kind], default=value)


def _unpacked_path(data: Mapping, variables: list, tensors: Mapping[str, Any]) -> Path:
    recording = Recording([], Log())
    recording.start = 0  # nothing is from outside
    recording.count = int(data["inputs"])
    size = 1 + max([n for n, _, _ in data["specs"]], default=-1)
    recording.specs = [Spec((), np.dtype(np.float32))] * size
    for n, shape, dtype in data["specs"]:
        recording.specs[n] = Spec(tuple(shape), dtypes.as_dtype(dtype).numpy_dtype)
    recording._changing = [True] * size
    recording.constants = {int(n): Tensor(tensors[name][()]) for n, name in data["constants"]}
    recording.variables = [variables[place] for place in data["variables"]]
    recording.first_values = _integers(data["first values"])
    recording.entries = [_unpacked_entry(entry) for entry in data["entries"]]
    recording.add_writes(dict(map(_integers, data["writes"])))
    results = Results.of(decoded(data["structure"]), _integers(data["results"]))
    return Path(recording, results, compiles=False)


def _integers(values: Any) -> list[int]:
    """Numbers of values become names in the code of a replay, so nothing else may stand there."""
    if not all(type(value) is int for value in values):
        raise TypeError(f"expected integers, found {values!r}")
    return list(values)


def _unpacked_entry(data: Mapping) -> Any:
    if "guard" in data:
        (value,) = _integers([data["guard"]])
        return Guard(value, bool(data["truth"]), decoded(data["key"]), str(data["how"]), None)
    primitive = PRIMITIVES.get(data["call"])
    if primitive is None:
        raise ValueError(
            f"This saved model uses an operation {data['call']!r} that this version of retrograde "
            "does not have. Load it with the version that saved it."
        )
    attrs = decoded(data["attrs"])
    if not all(name in _keywords(primitive) for name in attrs):  # they become code, too
        raise TypeError(f"{primitive.name} takes no {sorted(attrs)}")
    inputs, outputs = (tuple(_integers(data[which])) for which in ("inputs", "outputs"))
    return Call(primitive, inputs, attrs, outputs)


def _keywords(primitive: Primitive) -> frozenset[str]:
    """The names of all attributes that any primitive takes, as far as they can be told."""
    try:
        parameters = inspect.signature(primitive.kernel).parameters.values()
    except (TypeError, ValueError):
        return frozenset()
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return _ALL_NAMES
    return frozenset(p.name for p in parameters)


class _AnyName(frozenset):
    """Contains every name that can be that of a parameter."""

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name.isidentifier() and not keyword.iskeyword(name)


_ALL_NAMES = _AnyName()
