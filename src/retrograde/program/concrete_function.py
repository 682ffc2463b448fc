"""ConcreteFunction: a `tf.function` restricted to one signature."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from retrograde.core.tensor import Tensor
from retrograde.core.variable import Variable
from retrograde.program.signature_text import FunctionType
from retrograde.values import dtypes, nest
from retrograde.values.arguments import shown
from retrograde.values.composites import CompositeTensor
from retrograde.values.conversion import as_array, tensor_or_variable
from retrograde.values.errors import allocate
from retrograde.values.specs import TensorSpec, TypeSpec, spec_of

_GRAPH_ATTRIBUTES = ("captured_inputs", "function_def", "graph")
_DUMMY_SIZE = 2  # the size of an unknown dimension in a dummy tensor


class ConcreteFunction:
    """A `tf.function` with fixed Python arguments, and with specs for its tensor arguments.

    >>> power = tf.function(lambda x, n: x**n)
    >>> cube = power.get_concrete_function(tf.TensorSpec([None]), 3.0)
    >>> cube(tf.constant([2.0, 3.0])).numpy()
    array([ 8., 27.], dtype=float32)
    """

    def __init__(
        self,
        function: Any,
        args: tuple,
        kwargs: dict,
        trace: Any,
        traces_with_other_sizes: Callable[[], list] = list,
    ) -> None:
        """Stores the trace. `traces_with_other_sizes` creates more if dimensions are unknown."""
        if not hasattr(function, "_name"):
            raise TypeError(
                "Create a ConcreteFunction with tf.function(f).get_concrete_function(...). "
                f"Received a function of type {type(function).__name__}."
            )
        self.function = function
        self._traces_with_other_sizes = traces_with_other_sizes
        self._args = args
        self._kwargs = kwargs
        self._trace = trace
        self.name = function._name

    @property
    def structured_input_signature(self) -> tuple[tuple, dict]:
        """The arguments, with specs in place of tensors."""
        return specs_in((self._args, self._kwargs))

    @property
    def structured_outputs(self) -> Any:
        """The results, with specs in place of tensors."""
        traces = self._traces_with_other_sizes()
        other_leaves = [list(nest.leaves(trace.described_results())) for trace in traces]
        structure = self._trace.described_results()
        # A dimension is unknown if its size differs between the traces.
        leaves = [
            _common_spec(specs) for specs in zip(nest.leaves(structure), *other_leaves, strict=True)
        ]
        return nest.pack(structure, iter(leaves))

    @property
    def inputs(self) -> list[TensorSpec]:
        """The specs of all tensors that are passed, then one for each captured variable."""
        specs = []
        for parameter in self.function_type.parameters.values():
            leaves = nest.leaves(parameter.annotation)
            for i, spec in enumerate([leaf for leaf in leaves if isinstance(leaf, TensorSpec)]):
                name = spec.name or (f"{parameter.name}_{i}" if i else parameter.name)
                specs.append(TensorSpec(spec.shape, spec.dtype, name))
        return specs + [TensorSpec([], dtypes.resource, v.name) for v in self.variables]

    @property
    def outputs(self) -> list[Any]:
        """The specs of all tensors that are returned."""
        return [x for x in nest.leaves(self.structured_outputs) if isinstance(x, TypeSpec)]

    @property
    def function_type(self) -> FunctionType:
        """The types of the parameters and results, as a Python signature."""
        args, kwargs = self.structured_input_signature
        signature = self.function._parameters.signature
        return FunctionType._of(signature, args, kwargs, self.structured_outputs, self._trace)

    @property
    def output_shapes(self) -> Any:
        """The results, with shapes in place of tensors."""
        return nest.map_leaves(lambda leaf: getattr(leaf, "shape", None), self.structured_outputs)

    @property
    def output_dtypes(self) -> Any:
        """The results, with dtypes in place of tensors."""
        return nest.map_leaves(lambda leaf: getattr(leaf, "dtype", None), self.structured_outputs)

    @property
    def variables(self) -> tuple:
        """The variables that the function reads or writes, except its arguments."""
        return tuple(self._trace.captured_variables())

    @property
    def trainable_variables(self) -> tuple:
        """The variables that are trainable."""
        return tuple([v for v in self.variables if v.trainable])

    def __getattr__(self, name: str) -> Any:
        message = f"{type(self).__name__!r} object has no attribute {name!r}"
        if name in _GRAPH_ATTRIBUTES:
            message += ". retrograde does not build graphs. Use source() or program() of the "
            message += "tf.function to see its operations."
        raise AttributeError(message, name=name, obj=self)

    def export(self) -> Any:
        """Returns the function as a `jax.export.Exported`, which contains StableHLO.

        Its `mlir_module()` returns text, and `serialize()` returns bytes that other versions of JAX
        can read. Variables become constants with their current values.
        """
        return self._trace.exported()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        remaining_args, is_positional = iter(args), not (kwargs or self._kwargs)
        parameters = self.function._parameters.names
        names = [*parameters[: len(self._args)], *[""] * (len(self._args) - len(parameters))]
        if any(map(nest.is_nested, args)) and all(names[: len(args)]) and len(args) <= len(names):
            return self(**dict(zip(names, args, strict=False)), **kwargs)
        function_args = [
            self._argument_for(name, value, kwargs, remaining_args)
            for name, value in zip(names, self._args, strict=True)
        ]
        function_kwargs = {
            name: self._argument_for(name, value, kwargs, remaining_args)
            for name, value in self._kwargs.items()
        }
        extra_args = list(remaining_args)
        if extra_args and is_positional and len(args) == len(names) and all(names):
            # The call passes all arguments, including those with fixed Python values.
            return self(**dict(zip(names, args, strict=True)))
        if kwargs or extra_args:
            raise TypeError(
                f"{self.name}: too many arguments for {self.structured_input_signature}."
            )
        return self.function(*function_args, **function_kwargs)

    def _argument_for(
        self, name: str, value: Any, kwargs: dict, remaining_args: Iterator[Any]
    ) -> Any:
        """Returns the argument of this name in `kwargs`, or else the next positional one."""
        if name not in kwargs:
            return _replace_specs(value, remaining_args, self.name)
        argument = kwargs.pop(name)
        result = _replace_specs(value, self._tensor_leaves(value, argument), self.name)
        if result is value and not _is_equal(argument, value):
            raise TypeError(
                f"{self.name}: the argument {name!r} is {shown(value)} in this ConcreteFunction. "
                f"Received: {shown(argument)}. Leave it out, or call the tf.function itself."
            )
        return result

    def _tensor_leaves(self, value: Any, argument: Any) -> Iterator[Any]:
        """Returns the leaves of `argument` that correspond to specs and tensors in `value`."""
        if not nest.is_nested(value):
            return iter([argument])
        expected_leaves, leaves = nest.flatten(value), nest.flatten(argument)
        if len(expected_leaves) != len(leaves):
            return iter(leaves)
        pairs = list(zip(expected_leaves, leaves, strict=True))
        return iter([leaf for x, leaf in pairs if _is_placeholder(x) or not _is_equal(leaf, x)])

    def pretty_printed_signature(self, verbose: bool = True) -> str:  # noqa: ARG002
        """Describes the arguments and results of the function."""
        return repr(self.function_type)

    def __str__(self) -> str:
        return f"ConcreteFunction {self.pretty_printed_signature()}"

    def __repr__(self) -> str:
        args, kwargs = self.structured_input_signature
        texts = [*map(shown, args), *[f"{name}={shown(value)}" for name, value in kwargs.items()]]
        return f"<ConcreteFunction {self.name}({', '.join(texts)})>"


class VariableSpec:
    """A placeholder for a variable argument. Equal indices stand for the same variable."""

    def __init__(self, index: int, shape: list[int], dtype: str, trainable: bool) -> None:
        self.index = index
        self.shape = shape
        self.dtype = dtype
        self.trainable = trainable

    def __repr__(self) -> str:
        return f"Variable(shape={tuple(self.shape)}, dtype={self.dtype})"


def with_dummy_tensors(arguments: Any, zeros: Callable) -> Any:
    """Replaces the specs in `arguments` by tensors, which `zeros(shape, dtype)` creates."""

    def replace(value: Any) -> Any:
        if isinstance(value, TensorSpec):
            sizes = value.shape.as_list() if value.shape.rank is not None else []
            shape = [_DUMMY_SIZE if size is None else size for size in sizes]
            return Tensor(zeros(shape, value.dtype.numpy_dtype))
        if not isinstance(value, TypeSpec):
            return value
        if not hasattr(value, "_dummy"):
            raise TypeError(f"get_concrete_function accepts TensorSpecs. Received: {shown(value)}.")
        return value._dummy()

    return nest.map_leaves(replace, arguments)


def dummy_array(shape: Sequence[int], dtype: np.dtype) -> Any:
    """Returns an array of zeros, or of empty strings."""
    if dtype.kind == "O":
        return allocate("get_concrete_function", np.full, shape, b"", dtype)
    return allocate("get_concrete_function", np.zeros, shape, dtype)[()]


def unallocated(shape: Sequence[int], dtype: np.dtype) -> Any:
    """Returns zeros that take the memory of one element, if only shape and dtype matter."""
    return np.broadcast_to(np.zeros((), dtype), shape)[()]


def _common_spec(specs: tuple) -> Any:
    """Returns one spec for several that differ in sizes."""
    first, *other_specs = specs
    if not other_specs or not isinstance(first, TensorSpec):
        return first
    return first.most_specific_common_supertype(other_specs)


def _is_equal(a: Any, b: Any) -> bool:
    if a is b or isinstance(a, Variable):
        return a is b
    return type(a) is type(b) and bool(a == b)


def specs_in(arguments: Any) -> Any:
    """Replaces the tensors in `arguments` by their specs."""
    return nest.map_leaves(_spec_of_tensor, arguments)


def _spec_of_tensor(value: Any) -> Any:
    """Returns the spec of a tensor, and other values unchanged."""
    tensor = tensor_or_variable(value)
    if tensor is not None and not isinstance(tensor, Variable):
        return TensorSpec.from_tensor(tensor)
    return spec_of(value) if isinstance(value, CompositeTensor) else value


def _is_placeholder(value: Any) -> bool:
    """Returns whether each call passes a tensor in place of this argument."""
    return isinstance(_spec_of_tensor(value), TypeSpec)


def _try_convert(value: Any, spec: TensorSpec) -> Tensor | None:
    """Converts a number or an array to the dtype of a spec, or returns `None` if that fails."""
    try:
        return Tensor(as_array(value, spec.dtype.numpy_dtype))
    except (TypeError, ValueError):
        return None


def _replace_specs(value: Any, arguments: Iterator[Any], name: str) -> Any:
    """Replaces the specs and tensors in `value` by the next `arguments`."""
    if nest.is_nested(value):
        return nest.map_leaves(lambda leaf: _replace_specs(leaf, arguments, name), value)
    spec = _spec_of_tensor(value)
    if not isinstance(spec, TypeSpec):
        return value
    argument = tensor = next(arguments, None)
    if argument is None:
        raise TypeError(f"{name}: an argument is missing. Expected: {spec}.")
    if isinstance(spec, TensorSpec):
        tensor = tensor_or_variable(argument)
        if tensor is None and (tensor := _try_convert(argument, spec)) is not None:
            argument = tensor
    if tensor is None or not spec.is_compatible_with(tensor):
        raise TypeError(f"{name}: expected {spec}. Received: {shown(argument)}.")
    return argument
