"""Functions that were loaded: they have recordings, and no Python code."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from retrograde.core import dtypes, nest
from retrograde.core.spec import TensorSpec
from retrograde.core.tensor import Tensor
from retrograde.core.variable import Variable
from retrograde.functions.concrete import VariableSpec, made_up, specs_in
from retrograde.functions.encoding import decoded
from retrograde.functions.opening import Recorded, Unlike, filled_in, made_constant, sizes_in
from retrograde.functions.paths import Path, Paths
from retrograde.functions.polymorphic import Function
from retrograde.functions.signature import describe
from retrograde.functions.unpacking import unpacked_path


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
            paths.add(unpacked_path(path, variables, tensors, handed_in))
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
        return unpacked_path(path, self.variables, constants, [])


def _parameter(data: list) -> inspect.Parameter:
    name, kind, default = data
    value = inspect.Parameter.empty if default is None else decoded(default[0])
    return inspect.Parameter(name, inspect._ParameterKind[kind], default=value)


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
