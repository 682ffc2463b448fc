"""Recordings as plain data: what JSON and a file of tensors can hold, and back."""

from __future__ import annotations

import functools
import importlib.util
import inspect
import keyword
import re
import sys
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from retrograde.core import dtypes, nest
from retrograde.core.conversion import held_by
from retrograde.core.dispatch import PRIMITIVES, Primitive
from retrograde.core.effects import KNOWN, MAKERS, Host
from retrograde.core.rules import Spec
from retrograde.core.spec import TensorSpec
from retrograde.core.tensor import Tensor
from retrograde.core.variable import Variable
from retrograde.functions.concrete import VariableSpec, made_up, specs_in
from retrograde.functions.opening import (
    Recorded,
    Sample,
    Unlike,
    common_form,
    filled_in,
    made_constant,
    open_axes,
    recorded_with,
    sizes_in,
    with_sizes,
)
from retrograde.functions.paths import Path, Paths, Results
from retrograde.functions.playing import rule_of
from retrograde.functions.polymorphic import Function
from retrograde.functions.recording import Call, Guard, Log, Reading, Recording, Tie, Write
from retrograde.functions.signature import describe

_OPS = "retrograde.ops."

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
        shape = None if value.shape.rank is None else value.shape.as_list()
        return {"spec": [shape, value.dtype.name, value.name]}
    if isinstance(value, VariableSpec):
        return {"variable": [value.place, value.shape, value.dtype, value.trainable]}
    if hasattr(value, "_fields") and type(value).__module__.startswith(_OPS):
        name = f"{type(value).__module__}.{type(value).__name__}"
        return {"named tuple": [encoded(part, what) for part in value], "type": name}
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
        case "variable":
            return VariableSpec(*value)
        case "list":
            return [decoded(part) for part in value]
        case "tuple":
            return tuple([decoded(part) for part in value])
        case "named tuple":
            return _named_tuple(data["type"])(*map(decoded, value))
        case "dict":
            return {decoded(k): decoded(v) for k, v in value}
    raise ValueError(f"A saved model contains an unknown value: {kind!r}.")


def _named_tuple(name: str) -> type:
    """A class of tuples that operations use for their attributes; no other class will do."""
    module, _, last = name.rpartition(".")
    found = getattr(sys.modules.get(module), last, None) if module.startswith(_OPS) else None
    if not (isinstance(found, type) and issubclass(found, tuple)):
        raise ValueError(f"A saved model contains an unknown kind of attribute: {name!r}.")
    return found


# Functions


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
    opened = [_opened(function, *arguments, packing) for arguments in function._open]
    if function._input_signature is not None:
        if open_axes(function._input_signature):
            opened.append(_opened(function, function._input_signature, {}, packing))
        else:
            function.get_concrete_function()
    signatures = []
    for paths in function._signatures.values():
        if not paths.all:
            continue
        args, kwargs = _with_specs(paths.arguments, [])
        what = f"The function {name}"
        signatures.append(
            {
                "args": [encoded(value, what) for value in args],
                "kwargs": encoded(kwargs, what),
                "paths": [_packed_path(path, packing, what) for path in paths.all],
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

    def record(sizes: tuple) -> Recorded:
        given, named = with_sizes(arguments, sizes)
        fresh = Function(function.python_function, function._name)
        return Recorded(sizes, fresh._recorded(given, named))

    def sample(recorded: Recorded) -> Sample:
        aside = _Aside(packing)
        return Sample(recorded.sizes, _packed_path(recorded.path, aside, what), aside.tensors)

    try:
        count = len(open_axes(arguments))
        recorded, tied = recorded_with(function.python_function, count, record)
        samples = [sample(one) for one in recorded]
        form = common_form(samples, tied)
    except Unlike:
        return None
    for name, recipe in form["constants"].items():
        if recipe is None:
            form["constants"][name] = packing.constant(samples[0].constants[name])
    return {"args": encoded(list(args), what), "kwargs": encoded(kwargs, what), **form}


def _default(parameter: inspect.Parameter) -> Any:
    if parameter.default is parameter.empty:
        return None
    return [encoded(parameter.default, f"The default of {parameter.name}")]


def _packed_path(path: Path, packing: Packing, what: str) -> dict:
    recording, plain = path._recording, path.replay.plain
    if path.results.has_composites():
        raise ValueError(f"{what} cannot be saved: it returns sparse or ragged tensors.")
    entries, constants, results = plain.entries, plain.constants, plain.results
    ties = any(type(entry) is Tie for entry in recording.entries)
    if ties and packing.rules:  # which needs all of what was done
        entries = [entry for entry in recording.entries if type(entry) is not Write]
        constants = {n: x._array for n, x in recording.constants.items()}
        results = path.results.numbers
    used = {*plain.arguments, *results, *plain.writes.values()}.union(*map(_numbers, entries))
    rules = [_packed_rule(recording, e, packing, what) for e in entries if type(e) is Tie]
    used |= {n for rule in rules for n in rule["used"]} & constants.keys()
    return {
        "entries": [_packed_entry(entry, what) for entry in entries],
        "rules": rules,
        "specs": [
            [n, list(recording.specs[n].shape), _name(recording.specs[n])] for n in sorted(used)
        ],
        "constants": [[n, packing.constant(constants[n])] for n in constants if n in used],
        "inputs": recording.count,
        "handed in": recording.handed_in,
        "variables": [packing.variable(v) for v in recording.variables[recording.handed_in :]],
        "first values": recording.first_values,
        "writes": list(plain.writes.items()),
        "results": results,
        "structure": encoded(path.results.template(), what),
    }


def _numbers(entry: Any) -> tuple[int, ...]:
    """The values that an entry uses or makes."""
    if type(entry) in (Guard, Reading):
        return (entry.value,)
    return *entry.inputs, *(entry.values if type(entry) is Tie else ()), *entry.outputs


def _packed_rule(recording: Recording, tie: Tie, packing: Packing, what: str) -> dict:
    """The user's rule of a `custom_gradient`, as it is recorded for replays; or what it lacks."""
    try:
        backward, first, results = rule_of(recording, tie)
        if not all(type(entry) is Call for entry in backward.entries):
            raise ValueError("it looks at values, or has a gradient of its own in it")
        entries = [_packed_entry(entry, what) for entry in backward.entries]
    except Exception as error:
        return {"missing": f"{type(error).__name__}: {error}", "used": []}
    used = {n for n in results if n is not None}.union(*map(_numbers, backward.entries))
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
    if type(entry) is Tie:
        parts = {"inputs": entry.inputs, "values": entry.values, "outputs": entry.outputs}
        return {"tie": entry.name, **parts}
    recipe = entry.primitive.recipe if type(entry) is Call and _is_host(entry) else None
    if recipe is not None:
        return {
            "host": recipe.maker,
            "function": recipe.function,
            "given": encoded(recipe.values, what),
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
    return type(call.primitive) is Host


# Variables among the arguments


def _with_specs(value: Any, found: list[Variable]) -> Any:
    """`value` with specs in place of variables, which are counted in `found`."""
    held = held_by(value)
    if isinstance(held, Variable):
        place = next((i for i, v in enumerate(found) if v is held), len(found))
        found += [held] if place == len(found) else []
        return VariableSpec(place, list(held._array.shape), held.dtype.name, held.trainable)
    if nest.is_nested(value):
        return nest.rebuilt(value, [_with_specs(child, found) for child in nest.children(value)])
    return value


def _with_variables(value: Any, made: dict[int, Variable]) -> Any:
    """`value` with variables of zeros in place of their specs."""
    if isinstance(value, VariableSpec):
        if value.place not in made:
            zeros = np.zeros(value.shape, dtypes.as_dtype(value.dtype).numpy_dtype)
            made[value.place] = Variable(Tensor(zeros), trainable=value.trainable)
        return made[value.place]
    if nest.is_nested(value):
        return nest.rebuilt(value, [_with_variables(v, made) for v in nest.children(value)])
    return value


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
    function = LoadedFunction(missing, name, decoded(data["input signature"]))
    for opened in data["opened"]:
        pattern = tuple(decoded(opened["args"])), decoded(opened["kwargs"])
        shown.append(f"{pattern[0]} {pattern[1] or ''}".strip())
        function.opened.append(_Opened(pattern, opened, variables, tensors))
    for signature in data["signatures"]:
        args = tuple([decoded(value) for value in signature["args"]])
        kwargs = decoded(signature["kwargs"])
        shown.append(f"{args} {kwargs or ''}".strip())
        given = made_up(_with_variables((args, kwargs), {}))
        *_, key, _, handed_in = function._arranged(*given)
        paths = function._signatures[key] = Paths()
        paths.arguments = args, kwargs
        for path in signature["paths"]:
            paths.add(_unpacked_path(path, variables, tensors, handed_in))
    return function


class LoadedFunction(Function):
    """A function without the Python code: it has recordings, and forms to make more of."""

    opened: list[_Opened]

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.opened = []

    def _arranged(self, args: tuple, kwargs: dict) -> tuple[tuple, dict, Any, list, list]:
        arranged = super()._arranged(args, kwargs)
        args, kwargs, key, _, _ = arranged
        if key not in self._signatures:
            for opened in self.opened:
                path = opened.path_for(args, kwargs)
                if path is not None:
                    paths = Paths()
                    paths.arguments = (
                        tuple(map(specs_in, args)),
                        {name: specs_in(value) for name, value in kwargs.items()},
                    )
                    paths.add(path)
                    self._signatures[key] = paths
                    break
        return arranged

    def _any_sizes(self, args: tuple, kwargs: dict, count: int, record: Callable) -> Recorded:
        for opened in self.opened:
            if repr(opened.pattern) == repr((args, kwargs)):
                return record(tuple(opened.data["sizes"]))
        return super()._any_sizes(args, kwargs, count, record)


class _Opened(NamedTuple):
    """One form, for arguments that fit a pattern."""

    pattern: tuple[tuple, dict]
    data: Mapping
    variables: list
    tensors: Mapping[str, Any]

    def path_for(self, args: tuple, kwargs: dict) -> Path | None:
        """The recording for the sizes of these arguments, if they fit."""
        sizes = sizes_in(self.pattern, (args, kwargs), self.data)
        if sizes is None:
            return None
        try:
            path = filled_in(self.data["path"], sizes)
            constants = {
                name: self.tensors[made] if isinstance(made, str) else made_constant(made, sizes)
                for name, made in self.data["constants"].items()
            }
        except Unlike:
            return None
        return _unpacked_path(path, self.variables, constants, [])


def _parameter(data: list) -> inspect.Parameter:
    name, kind, default = data
    value = inspect.Parameter.empty if default is None else decoded(default[0])
    return inspect.Parameter(name, inspect._ParameterKind[kind], default=value)


def _unpacked_path(
    data: Mapping, variables: list, tensors: Mapping[str, Any], handed_in: list[Variable]
) -> Path:
    recording = Recording([], Log(), handed_in)
    recording.start = 0  # nothing is from outside
    recording.count = int(data["inputs"])
    size = 1 + max([n for n, _, _ in data["specs"]], default=-1)
    recording.specs = [Spec((), np.dtype(np.float32))] * size
    for n, shape, dtype in data["specs"]:
        recording.specs[n] = Spec(tuple(shape), dtypes.as_dtype(dtype).numpy_dtype)
    recording._changing = [True] * size
    recording.constants = _unpacked_constants(data["constants"], tensors)
    recording.variables += [variables[place] for place in data["variables"]]
    recording.first_values = _integers(data["first values"])
    recording.entries = [_unpacked_entry(entry) for entry in data["entries"]]
    rules = iter(data["rules"])
    for i, entry in enumerate(recording.entries):
        if type(entry) is Tie:
            rule = next(rules)
            if "missing" in rule:
                refuse = functools.partial(_refuse, entry.name, str(rule["missing"]))
                recording.entries[i] = entry._replace(rule=refuse)
            else:
                recording.rules[entry.outputs] = _unpacked_rule(recording, rule, tensors)
    recording.add_writes(dict(map(_integers, data["writes"])))
    results = Results.of(decoded(data["structure"]), _integers(data["results"]))
    path = Path(recording, results, compiles=False)
    recording.variables[: len(handed_in)] = [None] * len(handed_in)
    return path


def _unpacked_constants(data: list, tensors: Mapping[str, Any]) -> dict[int, Tensor]:
    return {int(n): tensor_of(tensors[name]) for n, name in data}


def tensor_of(array: np.ndarray) -> Tensor:
    """An array as a tensor holds it: a scalar without axes, unless it is a string."""
    return Tensor(array if array.dtype.kind == "O" else array[()])


def _refuse(name: str, reason: str, *_: Any) -> Any:
    raise ValueError(
        f"The gradient function of {name} is not in this saved model, as it could not be recorded "
        f"when the model was saved ({reason})."
    )


def _unpacked_rule(
    recording: Recording, data: Mapping, tensors: Mapping[str, Any]
) -> tuple[Recording, int, list]:
    """What `rule_of` recorded."""
    backward = recording.branched()
    backward.entries = [_unpacked_entry(entry) for entry in data["entries"]]
    backward.constants = _unpacked_constants(data["constants"], tensors)
    results = [None if n is None else _integers([n])[0] for n in data["results"]]
    return backward, _integers([data["first"]])[0], results


def _integers(values: Any) -> list[int]:
    """Numbers of values become names in the code of a replay, so nothing else may stand there."""
    if not all(type(value) is int for value in values):
        raise TypeError(f"expected integers, found {values!r}")
    return list(values)


def _unpacked_entry(data: Mapping) -> Any:
    if "tie" in data:
        inputs, values, outputs = (
            tuple(_integers(data[which])) for which in ("inputs", "values", "outputs")
        )
        return Tie(str(data["tie"]), _refuse, inputs, values, outputs)
    if "guard" in data:
        (value,) = _integers([data["guard"]])
        return Guard(value, bool(data["truth"]), decoded(data["key"]), str(data["how"]), None)
    if "host" in data:
        host = MAKERS[data["host"]](_known(data["function"]), decoded(data["given"]))
        inputs, outputs = (tuple(_integers(data[which])) for which in ("inputs", "outputs"))
        return Call(host, inputs, {}, outputs)
    primitive = PRIMITIVES.get(data["call"])
    if primitive is None:
        raise _unknown("an operation", data["call"])
    attrs = decoded(data["attrs"])
    if not all(name in _keywords(primitive) for name in attrs):  # they become code, too
        raise TypeError(f"{primitive.name} takes no {sorted(attrs)}")
    inputs, outputs = (tuple(_integers(data[which])) for which in ("inputs", "outputs"))
    return Call(primitive, inputs, attrs, outputs)


def _known(name: str) -> Callable:
    """The function of this library that a recipe names. Nothing but such functions can be named."""
    home = name.rpartition(".")[0]
    if name not in KNOWN and _HOMES.fullmatch(home) and importlib.util.find_spec(home):
        importlib.import_module(home)
    if name not in KNOWN:
        raise _unknown("a function", name)
    return KNOWN[name]


_HOMES = re.compile(r"retrograde\.(arrays|core|image|io|math|nn|ops|random|sparse|strings)(\.\w+)?")


def _unknown(what: str, name: str) -> ValueError:
    return ValueError(
        f"This saved model uses {what} {name!r} that this version of retrograde does not have. "
        "Load it with the version that saved it."
    )


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
