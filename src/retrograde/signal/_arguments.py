"""Conversion and checks of the arguments of tf.signal."""

from __future__ import annotations

from typing import Any

import numpy as np

from retrograde.core.tensor import Tensor
from retrograde.ops.arguments import integer_array
from retrograde.values.errors import invalid


def as_integer(value: Any, argument: str, op_name: str, error: Any = invalid) -> int:
    """Converts `value` to an integer; `error` creates the exception if it is not one."""
    if type(value) is int:
        return value
    array = integer_array(value, f"{op_name}: `{argument}`", error)
    if array.ndim:
        raise ValueError(
            f"{op_name}: `{argument}` must be one integer. Received: shape {array.shape}."
        )
    return int(array)


def at_least(minimum: int, value: Any, argument: str, op_name: str, error: Any = invalid) -> int:
    """Converts `value` to an integer and checks that it is at least `minimum`."""
    number = as_integer(value, argument, op_name, error)
    if number < minimum:
        raise invalid(f"{op_name}: `{argument}` must be at least {minimum}. Received: {number}.")
    return number


def check_rank(x: Tensor, minimum: int, op_name: str, error: Any = ValueError) -> None:
    """Raises an error if `x` has fewer than `minimum` axes."""
    if x._spec.ndim < minimum:
        axes = "1 axis" if minimum == 1 else f"{minimum} axes"
        raise error(
            f"{op_name}: the input must have at least {axes}. Received: shape {x._spec.shape}."
        )


def scale(x: Tensor, factors: Any) -> Tensor:
    """Multiplies `x` by `factors`, an array or a number, in the dtype of `x`."""
    return x * Tensor(np.asarray(factors, x._spec.dtype))
