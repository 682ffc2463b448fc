"""tf.autograph.experimental: options of TensorFlow's code conversion, without effect here."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

from retrograde._api.lazy import from_all

__all__ = ["Feature", "do_not_convert", "set_loop_options"]

__getattr__, __dir__ = from_all(__name__)


class Feature(enum.Enum):
    """TensorFlow's conversion features, without effect here."""

    ALL = "ALL"
    AUTO_CONTROL_DEPS = "AUTO_CONTROL_DEPS"
    ASSERT_STATEMENTS = "ASSERT_STATEMENTS"
    BUILTIN_FUNCTIONS = "BUILTIN_FUNCTIONS"
    EQUALITY_OPERATORS = "EQUALITY_OPERATORS"
    LISTS = "LISTS"
    NAME_SCOPES = "NAME_SCOPES"


def do_not_convert(func: Callable | None = None) -> Callable:
    """Returns the function unchanged: functions are traced, never rewritten.

    >>> @tf.autograph.experimental.do_not_convert
    ... def double(x):
    ...     return 2 * x
    >>> double(3)
    6
    """
    return (lambda function: function) if func is None else func


def set_loop_options(
    parallel_iterations: Any = None,
    swap_memory: Any = None,
    maximum_iterations: Any = None,
    shape_invariants: Any = None,
) -> None:
    """Does nothing: Python loops run as usual."""
