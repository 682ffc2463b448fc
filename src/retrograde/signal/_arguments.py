"""What the functions of signals make of their arguments before they compute."""

from __future__ import annotations

from typing import Any

import numpy as np

from retrograde.core.tensor import Tensor
from retrograde.ops.arguments import integer_array
from retrograde.values.errors import invalid


def whole_number(value: Any, argument: str, op_name: str, wrong: Any = invalid) -> int:
    """The integer that `value` is; `wrong` makes the error for what is none."""
    if type(value) is int:
        return value
    array = integer_array(value, f"{op_name}: `{argument}`", wrong)
    if array.ndim:
        raise ValueError(
            f"{op_name}: `{argument}` must be one integer. Received: shape {array.shape}."
        )
    return int(array)


def at_least(least: int, value: Any, argument: str, op_name: str, wrong: Any = invalid) -> int:
    """The integer that `value` is, if it is not less than `least`."""
    number = whole_number(value, argument, op_name, wrong)
    if number < least:
        raise invalid(f"{op_name}: `{argument}` must be at least {least}. Received: {number}.")
    return number


def check_rank(x: Tensor, least: int, op_name: str, wrong: Any = ValueError) -> None:
    """Refuses an `x` of fewer than `least` axes."""
    if x._spec.ndim < least:
        axes = "1 axis" if least == 1 else f"{least} axes"
        raise wrong(
            f"{op_name}: the input must have at least {axes}. Received: shape {x._spec.shape}."
        )


def along(x: Tensor, factors: Any) -> Tensor:
    """`x` times `factors`, an array or a number, in the dtype of `x`."""
    return x * Tensor(np.asarray(factors, x._spec.dtype))
