"""Conversion of arguments to tensors of the dtype to which NumPy promotes them."""

from __future__ import annotations

from typing import Any

import numpy as np

from retrograde.core.tensor import Tensor
from retrograde.experimental.numpy.dtypes import common_dtype
from retrograde.ops.casting import identity, to_dtype
from retrograde.ops.conversion import as_tensor, holds_tensor
from retrograde.ops.shaping import stack
from retrograde.values import dtypes
from retrograde.values.conversion import tensor_or_variable

FLOAT = np.dtype(np.float64)


def tensor_of(value: Any, dtype: np.dtype | None = None) -> Tensor:
    """Converts `value` to a tensor to compute with, cast to `dtype` if given.

    Python numbers become int64, float64 and complex128. A Variable gives the tensor that it holds,
    which tapes identify with the variable: never return that tensor to the user.
    """
    if tensor_or_variable(value) is not None:
        tensor = as_tensor(value)
    elif isinstance(value, (list, tuple)) and holds_tensor(value):
        common = common_dtype(value) if dtype is None else dtype
        tensor = stack(*(tensor_of(element, common) for element in value), axis=0)
    else:
        tensor = _constant(value)
    if dtype is None:
        return tensor
    if (tensor._spec.dtype.kind == "O") != (dtype.kind == "O"):
        raise TypeError(
            f"Cannot convert dtype {tensor.dtype.name} to {dtypes.of(dtype).name}. Use "
            "tf.strings.to_number or tf.strings.as_string."
        )
    return to_dtype(tensor, dtype)


def array_of(value: Any, dtype: np.dtype | None = None) -> Tensor:
    """Converts `value` to a tensor that can be returned to the user."""
    tensor = tensor_of(value, dtype)
    return (
        identity(tensor)
        if tensor_or_variable(value) is not None and type(value) is not Tensor
        else tensor
    )


def _constant(value: Any) -> Tensor:
    if _is_text(value):
        return as_tensor(value)
    common = common_dtype(value)
    if common.kind != "b" and isinstance(value, (list, tuple)):
        value = _bools_to_ints(value)
    return as_tensor(value, hint=common)


def _is_text(value: Any) -> bool:
    """Returns whether `value` is, or starts with, a string, which NumPy would parse as a dtype."""
    while isinstance(value, (list, tuple)) and value:
        value = value[0]
    return isinstance(value, (str, bytes)) or value is None


def _bools_to_ints(value: Any) -> Any:
    """Converts booleans in nested lists to integers, so that they mix with numbers."""
    if isinstance(value, (list, tuple)):
        return [_bools_to_ints(element) for element in value]
    return int(value) if isinstance(value, bool) else value


def promote(*values: Any) -> list[Tensor]:
    """Converts `values` to tensors of their common dtype."""
    if {*map(type, values)} == {Tensor} and len({x._spec.dtype for x in values}) == 1:
        return [*values]  # the common case, without asking NumPy
    dtype = common_dtype(*values)
    return [tensor_of(value, dtype) for value in values]


def inexact(value: Any) -> Tensor:
    """Converts `value` to a float or complex tensor; integers and booleans become float64."""
    x = tensor_of(value)
    return x if x._spec.dtype in dtypes.INEXACT else to_dtype(x, FLOAT)


def promote_inexact(*values: Any) -> list[Tensor]:
    """Converts `values` to tensors of their common float or complex dtype."""
    return [inexact(x) for x in promote(*values)]


def unsupported_argument(argument: str, op_name: str) -> ValueError:
    """Returns the error for an argument of NumPy's signature that is not supported."""
    return ValueError(f"{op_name}: the argument `{argument}` is not supported. Omit it.")
