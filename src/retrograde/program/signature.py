"""Signatures: computes keys that are equal for arguments that share a trace."""

from __future__ import annotations

import enum
import functools
import inspect
import weakref
from collections.abc import Callable, Iterator, Mapping
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from retrograde.core.lazy import LazyTensor
from retrograde.core.rules import Spec
from retrograde.core.tensor import Tensor
from retrograde.core.variable import Variable
from retrograde.values import nest
from retrograde.values.arguments import shown
from retrograde.values.composites import CompositeTensor
from retrograde.values.conversion import as_array, tensor_or_variable
from retrograde.values.dtypes import DType
from retrograde.values.shapes import TensorShape
from retrograde.values.specs import TensorSpec, TypeSpec

_PLAIN = (bool, int, complex, str, bytes, type(None))
_BY_VALUE = (DType, TensorShape, TypeSpec, enum.Enum, np.dtype, type, slice)


class Arguments(NamedTuple):
    """The arguments of a call, ordered and with defaults.

    `key` is their signature. `inputs` are the tensors in them, and `variables` the variables.
    """

    args: tuple
    kwargs: dict
    key: Any
    inputs: list[Tensor]
    variables: list[Any]


class Identity:
    """A dictionary key for an object. It equals another key only if both refer to that object.

    It does not keep the object alive if weak references are possible.
    """

    __slots__ = ("_hash", "_reference")

    def __init__(self, value: Any) -> None:
        self._hash = id(value)
        try:
            self._reference: Callable = weakref.ref(value)
        except TypeError:
            self._reference = lambda: value

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Identity):
            return NotImplemented
        value = self._reference()
        return value is not None and value is other._reference()

    def __repr__(self) -> str:
        return f"{type(self._reference()).__name__} object"


def describe(value: Any, inputs: list[Tensor], variables: list[Variable]) -> Any:
    """Returns a key that is equal for all values that share a trace.

    Appends the tensors in `value` to `inputs`, and each variable once to `variables`.
    """
    kind = type(value)
    if kind is Tensor or kind is LazyTensor:
        inputs.append(value)
        spec = value._spec
        return spec.shape, spec.dtype
    if kind in _PLAIN:
        return kind, value
    if kind is float:
        return kind, repr(value)  # This distinguishes 0.0 from -0.0, and NaN equals NaN.
    if isinstance(value, (np.ndarray, np.generic)):
        inputs.append(Tensor(as_array(value)))
        return inputs[-1]._spec.shape, inputs[-1]._spec.dtype
    tensor = tensor_or_variable(value)
    if tensor is not None:
        if isinstance(tensor, Variable):
            index = next((i for i, v in enumerate(variables) if v is tensor), len(variables))
            if index == len(variables):
                variables.append(tensor)
            return Variable, index, tensor._spec.shape, tensor._spec.dtype, tensor._trainable
        inputs.append(tensor)
        return tensor._spec.shape, tensor._spec.dtype
    components = value._components() if isinstance(value, CompositeTensor) else ()
    if components:
        inputs.extend(components)
        specs = tuple([(x._spec.shape, x._spec.dtype) for x in components])
        return kind, value._static_key(), specs
    if nest.is_nested(value):
        try:
            parts = [describe(child, inputs, variables) for child in nest.children(value)]
        except RecursionError:
            nest.flatten(value)  # This raises a clear error if the nesting is too deep.
            raise
        if hasattr(kind, "__tf_flatten__"):
            return kind, describe(value.__tf_flatten__()[0], [], []), *parts
        return kind, tuple(sorted(value)) if isinstance(value, Mapping) else len(parts), *parts
    if isinstance(value, _BY_VALUE):
        return kind, repr(value) if isinstance(value, (slice, TensorShape)) else value
    if hasattr(kind, "__tf_tracing_type__"):  # TensorFlow defines this method for such keys.
        return kind, value.__tf_tracing_type__(None)
    return Identity(value)


def spec_of_argument(x: Any) -> Spec | None:
    """Returns the shape and dtype of a tensor, or `None` for other values."""
    kind = type(x)
    if kind is not Tensor and kind is not LazyTensor:
        return None
    spec = x._spec
    return Spec(spec.shape, spec.dtype)


def with_inputs(value: Any, inputs: Iterator[Tensor]) -> Any:
    """Replaces the tensors in `value` by `inputs`, in the order of `describe`."""
    kind = type(value)
    if kind is Tensor or isinstance(value, (np.ndarray, np.generic)):
        return next(inputs)
    if kind in _PLAIN or kind is float:
        return value
    tensor = tensor_or_variable(value)
    if tensor is not None:
        return value if isinstance(tensor, Variable) else next(inputs)
    if isinstance(value, CompositeTensor):
        return value._with_components(inputs)
    if nest.is_nested(value):
        children = [with_inputs(child, inputs) for child in nest.children(value)]
        return value if kind is range else nest.rebuild(value, children)
    return value


def argument_names(signature: inspect.Signature, args: tuple, kwargs: dict) -> list[str]:
    """Returns a name for each tensor in the arguments, as TensorFlow prints them."""
    parameters = signature.parameters.values()
    positional = [
        p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    var_positional = next((p.name for p in parameters if p.kind is p.VAR_POSITIONAL), "args")
    extra_names = [f"{var_positional}_{i}" for i in range(len(args) - len(positional))]
    named_values = [*zip([*positional, *extra_names], args, strict=False)]
    named_values += [(name, kwargs[name]) for name in sorted(kwargs)]
    names: list[str] = []
    for name, value in named_values:
        tensors: list[Tensor] = []
        describe(value, tensors, [])
        names += [f"{name}_{i}" if i else name for i in range(len(tensors))]
    return names


_MAX_SEARCHED = 5000
_TOO_MANY = object()


def reaches(function: Callable, variable: Variable) -> bool:
    """Returns whether `function` can access `variable` other than by its arguments.

    Searches the closure of the function, the globals that it names, its defaults, and the objects
    that these refer to. Returns `True` if there are too many objects to search.
    """
    return any(value is variable or value is _TOO_MANY for value in _references(function))


def tensors_reached(function: Callable) -> list[Any]:
    """Returns the tensors and variables that `function` refers to, unless the search ends early."""
    references = [value for value in _references(function) if value is not _TOO_MANY]
    return [x for x in map(tensor_or_variable, references) if x is not None]


def _references(function: Callable) -> Iterator[Any]:
    """Yields all objects that a function refers to, directly or not.

    Ends with `_TOO_MANY` if there are too many.
    """
    seen: set[int] = set()
    pending: list[Any] = [function]
    while pending:
        value = pending.pop()
        if id(value) in seen or isinstance(value, (*_PLAIN, float, type, ModuleType, np.ndarray)):
            continue
        yield value
        seen.add(id(value))
        if len(seen) > _MAX_SEARCHED:
            yield _TOO_MANY
            return
        pending.extend(_direct_references(value))


def _direct_references(value: Any) -> list:
    if isinstance(value, FunctionType):
        cells = [_cell_contents(cell) for cell in value.__closure__ or ()]
        names = _names_in(value.__code__)
        global_values = [value.__globals__[name] for name in names if name in value.__globals__]
        keyword_defaults = (value.__kwdefaults__ or {}).values()
        return [*cells, *global_values, *(value.__defaults__ or ()), *keyword_defaults]
    if isinstance(value, Mapping):
        return list(value.values())
    if isinstance(value, (list, tuple, set, frozenset)):
        return list(value)
    if isinstance(value, functools.partial):
        return [value.func, *value.args, *value.keywords.values()]
    if isinstance(value, MethodType):
        return [value.__func__, value.__self__]
    if isinstance(value, weakref.ref):
        return [value()]
    return list(getattr(value, "__dict__", {}).values())


def _cell_contents(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # the cell is empty
        return None


def _names_in(code: CodeType) -> set[str]:
    inner_codes = [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    return set(code.co_names).union(*map(_names_in, inner_codes))


class Parameters:
    """The parameters of a Python function."""

    def __init__(self, python_function: Callable) -> None:
        # `inspect.signature` raises a RecursionError for deeply nested values.
        if not callable(python_function):
            raise TypeError(f"{shown(python_function)} is not a callable object")
        self.signature = inspect.signature(python_function)
        parameters = list(self.signature.parameters.values())
        self._all_positional = all(p.kind is p.POSITIONAL_OR_KEYWORD for p in parameters)
        self._count = len(parameters)
        self._defaults = [p.default for p in parameters]
        self.names = [p.name for p in parameters]

    def ordered(self, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
        """Adds the defaults to the arguments. All are positional if possible."""
        if self._all_positional and not kwargs:
            defaults = self._defaults[len(args) :]
            has_all = all([x is not inspect.Parameter.empty for x in defaults])
            if len(args) <= self._count and has_all:
                return (*args, *defaults), kwargs
        bound = self.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return bound.args, bound.kwargs

    def defaults(self, start: int, end: int) -> list:
        """Returns the defaults of a range of parameters, up to the first without a default."""
        values = self._defaults[start:end]
        return values[
            : next((i for i, x in enumerate(values) if x is inspect.Parameter.empty), None)
        ]

    def by_position(self, args: tuple, kwargs: dict) -> tuple:
        """Returns all arguments by position, as in an `input_signature`."""
        bound = self.signature.bind_partial(*args, **kwargs)
        if bound.kwargs:  # An earlier parameter has no value, or these are keyword-only.
            raise TypeError(
                "An input_signature lists the first parameters, in order. Received: "
                f"{len(bound.args)} of them and {', '.join(map(repr, bound.kwargs))}. "
                f"Parameters: {self.signature}."
            )
        return bound.args


def convert_arguments(args: tuple, kwargs: dict, specs: Any, parameters: Parameters) -> tuple:
    """Converts arguments to the tensors of an `input_signature`."""
    if kwargs:
        args = parameters.by_position(args, kwargs)
    if len(args) < len(specs):
        args = (*args, *parameters.defaults(len(args), len(specs)))
    if len(args) != len(specs):
        raise TypeError(
            f"The function has an input_signature of {len(specs)} arguments. Received: {len(args)}."
        )
    names = parameters.names
    if len(names) < len(args):  # The last parameter is *args.
        names = [*names, *names[-1:] * (len(args) - len(names))]
    # There may be more names, because parameters with defaults need no spec.
    triples = zip(args, specs, names, strict=False)
    return tuple([_convert(value, spec, name) for value, spec, name in triples])


def _convert(value: Any, spec: Any, name: str) -> Any:
    if not isinstance(spec, TypeSpec):
        values, specs = nest.flatten(value), nest.flatten(spec)
        if len(values) != len(specs):
            raise TypeError(
                f"Argument {name!r} has {len(values)} leaves. Expected {len(specs)}, as in the "
                "input_signature."
            )
        leaves = [_convert(x, s, name) for x, s in zip(values, specs, strict=True)]
        return nest.pack(spec, iter(leaves))
    if not isinstance(spec, TensorSpec):
        if not spec.is_compatible_with(value):
            raise _incompatible_error(value, spec, name)
        return value
    source = tensor_or_variable(value)
    try:
        tensor = (
            Tensor(as_array(value, spec.dtype.numpy_dtype)) if source is None else source._read()
        )
    except (TypeError, ValueError):
        raise _incompatible_error(value, spec, name) from None
    if tensor.dtype is not spec.dtype or not spec.shape.is_compatible_with(tensor._spec.shape):
        raise _incompatible_error(tensor, spec, name)
    return tensor


def _incompatible_error(value: Any, spec: TypeSpec, name: str) -> TypeError:
    received = TensorSpec.from_tensor(value) if isinstance(value, Tensor) else shown(value)
    return TypeError(
        f"Argument {name!r} is not compatible with the input_signature. Received: {received}. "
        f"Expected: {spec}."
    )
