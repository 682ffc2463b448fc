"""Formats the signatures of functions as TensorFlow does."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from retrograde.core.variable import Variable
from retrograde.program.traces import Trace
from retrograde.values import nest
from retrograde.values.composites import CompositeTensor
from retrograde.values.conversion import tensor_or_variable
from retrograde.values.specs import TypeSpec, spec_of


def format_signature(
    signature: inspect.Signature, args: tuple, kwargs: dict, returned: Any, trace: Trace
) -> str:
    """Returns the arguments, results and captured variables of a trace as text.

    `args`, `kwargs` and `returned` have specs in place of tensors.
    """
    parameters = [
        f"{name} ({kind}): {_type_string(value)}"
        for name, kind, value in _bind_positional(signature, args)
    ]
    parameters += [
        f"{name} (KEYWORD_ONLY): {_type_string(value)}" for name, value in kwargs.items()
    ]
    resource = "TensorSpec(shape=(), dtype=tf.resource, name=None)"
    captured = [f"{variable._id}: {resource}" for variable in trace.captured_variables()]
    parts = {
        "Input Parameters": parameters,
        "Output Type": [_type_string(returned)],
        "Captures": captured,
    }
    lines = []
    for title, items in parts.items():
        lines += [f"{title}:", *[f"  {item}" for item in items or ["None"]]]
    return "\n".join(lines)


def _bind_positional(signature: inspect.Signature, args: tuple) -> list[tuple[str, str, Any]]:
    """Returns (name, kind, value) for each positional argument.

    Parameters before `*args` are positional-only.
    """
    positional = [p for p in signature.parameters.values() if p.kind <= p.POSITIONAL_OR_KEYWORD]
    rest = [p.name for p in signature.parameters.values() if p.kind is p.VAR_POSITIONAL]
    kinds = [p.POSITIONAL_ONLY.name if rest else p.kind.name for p in positional]
    named = [(p.name, kind, x) for p, kind, x in zip(positional, kinds, args, strict=False)]
    more = enumerate(args[len(positional) :])
    return named + [(f"{rest[0]}_{i}", "POSITIONAL_ONLY", value) for i, value in more]


def _type_string(value: Any) -> str:
    held = tensor_or_variable(value)
    if isinstance(held, Variable):
        fields = f"shape={held.shape}, dtype={held.dtype!r}, trainable={held.trainable}"
        return f"VariableSpec({fields})"
    if held is not None or isinstance(value, CompositeTensor):
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
