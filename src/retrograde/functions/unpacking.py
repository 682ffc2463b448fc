"""Recordings from plain data. Anybody may have written it, so it names only what is known here."""

from __future__ import annotations

import functools
import importlib.util
import inspect
import keyword
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from retrograde.core import dtypes
from retrograde.core.calls import Call
from retrograde.core.dispatch import PRIMITIVES, Primitive
from retrograde.core.effects import KNOWN, MAKERS
from retrograde.core.rules import Spec
from retrograde.core.tensor import Tensor
from retrograde.core.variable import Variable
from retrograde.functions.encoding import decoded
from retrograde.functions.paths import Path, Results
from retrograde.functions.recording import Guard, Log, Recording, Tie


def unpacked_path(
    data: Mapping, variables: list, tensors: Mapping[str, Any], handed_in: list[Variable]
) -> Path:
    """A recording as `packed_function` wrote it down, for variables that are `handed_in`."""
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
