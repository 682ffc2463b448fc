"""tf.types.experimental: tensor-like types, types of functions, and of their arguments."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import Any

import numpy as np

from retrograde._api.lazy import from_all
from retrograde.core.tensor import Tensor
from retrograde.core.variable import Variable
from retrograde.program.concrete_function import ConcreteFunction
from retrograde.program.function import Function
from retrograde.program.signature_text import FunctionType

__all__ = [
    "Callable",
    "ConcreteFunction",
    "FunctionType",
    "GenericFunction",
    "PolymorphicFunction",
    "TensorLike",
    "TraceType",
]

__getattr__, __dir__ = from_all(__name__)

Callable = Function | ConcreteFunction
GenericFunction = PolymorphicFunction = Function

TensorLike = (
    Tensor
    | Variable
    | int
    | float
    | bool
    | str
    | bytes
    | complex
    | tuple
    | list
    | np.ndarray
    | np.generic
)


class TraceType(abc.ABC):
    """The result of a method `__tf_tracing_type__`, which decides when to retrace.

    When a `tf.function` is called with an object whose class has such a method, it is retraced only
    if the returned type differs from the types of earlier calls, by `__eq__` and `__hash__`. The
    other methods exist for compatibility with TensorFlow.
    """

    @abc.abstractmethod
    def is_subtype_of(self, other: TraceType) -> bool:
        """Returns whether a trace for `other` can be used for this type."""

    @abc.abstractmethod
    def most_specific_common_supertype(self, others: Sequence[TraceType]) -> TraceType | None:
        """Returns the narrowest common supertype of this type and `others`, if there is one."""

    def placeholder_value(self, placeholder_context: Any) -> Any:
        """TensorFlow traces with this value; retrograde traces with the real arguments."""
        raise NotImplementedError

    @abc.abstractmethod
    def __hash__(self) -> int:
        """Returns a hash, equal for equal types."""

    @abc.abstractmethod
    def __eq__(self, other: object) -> bool:
        """Returns whether both types share their traces."""
