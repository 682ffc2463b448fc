"""The tensors among the parameters of a linear operator, which is a composite tensor."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from retrograde.core.tensor import Tensor
from retrograde.ops.conversion import as_tensor
from retrograde.values import nest
from retrograde.values.composites import CompositeTensor
from retrograde.values.conversion import tensor_or_variable
from retrograde.values.specs import TypeSpec


class LinearOperatorSpec(TypeSpec):
    """Describes an operator: its class, the parameters that are not tensors, and its tensors."""

    __slots__ = ("_parts",)

    def __init__(self, *parts: Any) -> None:
        self._parts = parts

    @property
    def value_type(self) -> type:
        """The class of the operator."""
        return self._parts[0]

    def _serialize(self) -> tuple:
        return self._parts


def find_tensors(value: Any) -> Iterator[Tensor]:
    """Yields the tensors in parameters, which may be operators or nested structures."""
    for leaf in nest.leaves(value):
        if isinstance(leaf, CompositeTensor):
            yield from leaf._components()
        elif isinstance(leaf, np.ndarray):
            yield as_tensor(leaf)
        else:
            tensor = tensor_or_variable(leaf)
            if tensor is not None:
                yield tensor._read()


def replace_tensors(value: Any, components: Iterator[Any]) -> Any:
    """Replaces the tensors in parameters by `components`, in order."""

    def replace(leaf: Any) -> Any:
        if isinstance(leaf, CompositeTensor):
            return leaf._with_components(components)
        is_tensor = isinstance(leaf, np.ndarray) or tensor_or_variable(leaf) is not None
        return next(components) if is_tensor else leaf

    return nest.pack(value, (replace(leaf) for leaf in list(nest.leaves(value))))


def describe_static_values(value: Any) -> tuple:
    """Returns the values other than tensors, as a hashable key."""
    parts: list[Any] = []
    for leaf in nest.leaves(value):
        if isinstance(leaf, CompositeTensor):
            parts.append((type(leaf), leaf._static_key()))
        elif isinstance(leaf, np.ndarray) or tensor_or_variable(leaf) is not None:
            parts.append(None)
        else:
            parts.append(leaf if isinstance(leaf, (bool, int, float, str)) else repr(leaf))
    return tuple(parts)
