"""tf.types.experimental: what may stand where a tensor is expected, and what is alike in calls."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import Any

import numpy as np

from retrograde._api.lazy import from_all
from retrograde.core.tensor import Tensor
from retrograde.core.variable import Variable

__all__ = ["TensorLike", "TraceType"]

__getattr__, __dir__ = from_all(__name__)

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
    """What a method `__tf_tracing_type__` returns: which objects one recording serves.

    A `tf.function` that is called with an object whose class has such a method is recorded anew
    only if the type that the method returns is not equal to that of an earlier call. `__eq__` and
    `__hash__` decide; the other methods are those that TensorFlow asks for.
    """

    @abc.abstractmethod
    def is_subtype_of(self, other: TraceType) -> bool:
        """Whether what serves `other` serves this, too."""

    @abc.abstractmethod
    def most_specific_common_supertype(self, others: Sequence[TraceType]) -> TraceType | None:
        """The narrowest type that holds for this and for `others`, if there is one."""

    def placeholder_value(self, placeholder_context: Any) -> Any:
        """TensorFlow traces with this; here a function is recorded with its real arguments."""
        raise NotImplementedError

    @abc.abstractmethod
    def __hash__(self) -> int:
        """As in Python."""

    @abc.abstractmethod
    def __eq__(self, other: object) -> bool:
        """As in Python."""
