"""Functions that a program registers for others to call."""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter
from typing import Any

import numpy as np

from retrograde.values.arguments import shown
from retrograde.values.conversion import CONVERSIONS

_NUMBERS = (bool, int, float, complex, np.generic, np.ndarray)

_gradients: dict[str, Callable | None] = {}


def register_tensor_conversion_function(
    base_type: type | tuple[type, ...], conversion_func: Callable, priority: int = 100
) -> None:
    """Makes objects of `base_type` acceptable wherever a tensor is.

    `conversion_func(value, dtype=None, name=None, as_ref=False)` returns a Tensor, which tapes
    follow, or `NotImplemented`. Of several functions for one type, that of the lowest priority is
    asked first.

    >>> class Metres:
    ...     def __init__(self, value):
    ...         self.value = value
    >>> def convert(x, dtype=None, name=None, as_ref=False):
    ...     return tf.constant(x.value, dtype)
    >>> tf.register_tensor_conversion_function(Metres, convert)
    >>> (tf.constant(1.0) + Metres(2.0)).numpy()
    np.float32(3.0)
    """
    types = base_type if isinstance(base_type, tuple) else (base_type,)
    if not types or not all(isinstance(t, type) for t in types):
        raise TypeError(
            f"Argument `base_type` must be a type or a tuple of types. Obtained: {shown(base_type)}"
        )
    if any(issubclass(t, _NUMBERS) for t in types):
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
    """Decorates the gradient function of an operation of a graph, of which there are none.

    It is kept, so that programs that register one can be imported; nothing calls it. Write a
    gradient of your own with `tf.custom_gradient`.
    """

    def __init__(self, op_type: str) -> None:
        self._op_type = _checked(op_type)

    def __call__(self, f: Callable) -> Callable:
        """Registers `f`, and returns it."""
        _register(self._op_type, f)
        return f


def no_gradient(op_type: str) -> None:
    """Registers that an operation of a graph has no gradient."""
    _register(_checked(op_type), None)


def _checked(op_type: Any) -> str:
    if not isinstance(op_type, str):
        raise TypeError(f"op_type must be a string. Received: {shown(op_type)}.")
    return op_type


def _register(op_type: str, f: Callable | None) -> None:
    if op_type in _gradients:
        raise KeyError(f"Registering two gradient with name '{op_type}'!")
    _gradients[op_type] = f
