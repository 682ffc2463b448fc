"""Formats the signatures of functions as TensorFlow does."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from retrograde.core.variable import Variable
from retrograde.program.traces import Trace
from retrograde.values import dtypes, nest
from retrograde.values.composites import CompositeTensor
from retrograde.values.conversion import tensor_or_variable
from retrograde.values.specs import TensorSpec, TypeSpec, spec_of


class FunctionParameter(inspect.Parameter):
    """A parameter of a traced function; its annotation is a spec or a fixed Python value."""

    @property
    def type_constraint(self) -> Any:
        """The spec of the tensors that are passed, or a Python value that cannot change."""
        return self.annotation


class FunctionType(inspect.Signature):
    """The parameters, results and captured variables of a `ConcreteFunction`.

    >>> double = tf.function(lambda x: 2 * x).get_concrete_function(tf.TensorSpec([]))
    >>> double.function_type.parameters["x"].type_constraint
    TensorSpec(shape=(), dtype=tf.float32, name=None)
    """

    captures: dict[int, TensorSpec]

    @classmethod
    def _of(
        cls, signature: inspect.Signature, args: tuple, kwargs: dict, returned: Any, trace: Trace
    ) -> FunctionType:
        """Describes a trace. The arguments and `returned` have specs in place of tensors."""
        bound = _bind_positional(signature, args)
        bound += [(name, inspect.Parameter.KEYWORD_ONLY, value) for name, value in kwargs.items()]
        parameters = [FunctionParameter(n, kind, annotation=value) for n, kind, value in bound]
        function_type = cls(parameters, return_annotation=returned)
        resource = TensorSpec([], dtypes.resource)
        function_type.captures = {v._id: resource for v in trace.captured_variables()}
        return function_type

    @property
    def output(self) -> Any:
        """The results, with specs in place of tensors."""
        return self.return_annotation

    def __str__(self) -> str:
        parameter_texts: list[str] = []
        has_keywords = False
        for p in self.parameters.values():
            if p.kind is p.KEYWORD_ONLY and not has_keywords:
                parameter_texts, has_keywords = [*parameter_texts, "*"], True
            parameter_texts.append(f"{p.name}: {_type_string(p.annotation)}")
        return f"({', '.join(parameter_texts)}) -> {_type_string(self.output)}"

    def __repr__(self) -> str:
        parts = {
            "Input Parameters": [
                f"{p.name} ({p.kind.name}): {_type_string(p.annotation)}"
                for p in self.parameters.values()
            ],
            "Output Type": [_type_string(self.output)],
            "Captures": [f"{key}: {spec}" for key, spec in self.captures.items()],
        }
        lines = []
        for title, items in parts.items():
            lines += [f"{title}:", *[f"  {item}" for item in items or ["None"]]]
        return "\n".join(lines)


def _bind_positional(signature: inspect.Signature, args: tuple) -> list[tuple[str, Any, Any]]:
    """Returns (name, kind, value) for each positional argument.

    Parameters before `*args` are positional-only.
    """
    positional = [p for p in signature.parameters.values() if p.kind <= p.POSITIONAL_OR_KEYWORD]
    var_positional = [p.name for p in signature.parameters.values() if p.kind is p.VAR_POSITIONAL]
    kinds = [p.POSITIONAL_ONLY if var_positional else p.kind for p in positional]
    named_values = [(p.name, kind, x) for p, kind, x in zip(positional, kinds, args, strict=False)]
    extra_values = enumerate(args[len(positional) :])
    return named_values + [
        (f"{var_positional[0]}_{i}", inspect.Parameter.POSITIONAL_ONLY, value)
        for i, value in extra_values
    ]


def _type_string(value: Any) -> str:
    tensor = tensor_or_variable(value)
    if isinstance(tensor, Variable):
        fields = f"shape={tensor.shape}, dtype={tensor.dtype!r}, trainable={tensor.trainable}"
        return f"VariableSpec({fields})"
    if tensor is not None or isinstance(value, CompositeTensor):
        return repr(spec_of(value))
    if isinstance(value, TypeSpec):
        return repr(value)
    if isinstance(value, Mapping):
        items = [f"[{key!r}, {_type_string(child)}]" for key, child in value.items()]
        return f"Dict[{', '.join(items)}]"
    if nest.is_nested(value):
        title = "List" if isinstance(value, list) else "Tuple"
        return f"{title}[{', '.join(map(_type_string, nest.children(value)))}]"
    if value is None or isinstance(value, (bool, int, float, complex, str, bytes)):
        return f"Literal[{value!r}]"
    return type(value).__name__
