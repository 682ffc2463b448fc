"""Registration of tensor conversions and gradients."""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter
from typing import Any

import numpy as np

from retrograde.values.arguments import shown
from retrograde.values.conversion import CONVERSIONS

_NUMERIC_TYPES = (bool, int, float, complex, np.generic, np.ndarray)

_gradients: dict[str, Callable | None] = {}


def register_tensor_conversion_function(
    base_type: type | tuple[type, ...], conversion_func: Callable, priority: int = 100
) -> None:
    """Registers a function that converts objects of `base_type` to tensors.

    `conversion_func(value, dtype=None, name=None, as_ref=False)` returns a Tensor, whose
    computation tapes record, or `NotImplemented`. If several functions apply, the one with the
    lowest priority value is tried first.

    >>> class Meters:
    ...     def __init__(self, value):
    ...         self.value = value
    >>> def convert(x, dtype=None, name=None, as_ref=False):
    ...     return tf.constant(x.value, dtype)
    >>> tf.register_tensor_conversion_function(Meters, convert)
    >>> (tf.constant(1.0) + Meters(2.0)).numpy()
    np.float32(3.0)
    """
    types = base_type if isinstance(base_type, tuple) else (base_type,)
    if not types or not all(isinstance(t, type) for t in types):
        raise TypeError(
            f"Argument `base_type` must be a type or a tuple of types. Obtained: {shown(base_type)}"
        )
    if any(issubclass(t, _NUMERIC_TYPES) for t in types):
        raise TypeError(
            "Cannot register conversions for Python numeric types and NumPy scalars and arrays."
        )
    if not callable(conversion_func):
        raise TypeError(
            f"Argument `conversion_func` must be callable. Received {shown(conversion_func)}."
        )
    CONVERSIONS.append((priority, types, conversion_func))
    CONVERSIONS.sort(key=itemgetter(0))


class RegisterGradient:
    """Registers a gradient function for a graph operation; accepted for compatibility.

    There are no graph operations, so the function is never called. Use `tf.custom_gradient` for
    custom gradients.
    """

    def __init__(self, op_type: str) -> None:
        self._op_type = _check_op_type(op_type)

    def __call__(self, f: Callable) -> Callable:
        """Registers `f` and returns it."""
        _register(self._op_type, f)
        return f


def no_gradient(op_type: str) -> None:
    """Registers that a graph operation has no gradient."""
    _register(_check_op_type(op_type), None)


def _check_op_type(op_type: Any) -> str:
    if not isinstance(op_type, str):
        raise TypeError(f"op_type must be a string. Received: {shown(op_type)}.")
    return op_type


def _register(op_type: str, f: Callable | None) -> None:
    if op_type in _gradients:
        raise KeyError(f"Registering two gradient with name '{op_type}'!")
    _gradients[op_type] = f
