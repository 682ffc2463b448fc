"""Conversion of arguments: to tensors, of the dtype to which NumPy promotes them."""

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
    """`value` as a tensor to compute with, cast to `dtype` if that is given.

    Numbers of Python become int64, float64 and complex128. A Variable gives the tensor it holds,
    which goes by the variable's own name on tapes: never hand that out.
    """
    if tensor_or_variable(value) is not None:
        tensor = as_tensor(value)
    elif isinstance(value, (list, tuple)) and holds_tensor(value):
        own = common_dtype(value) if dtype is None else dtype
        tensor = stack(*(tensor_of(element, own) for element in value), axis=0)
    else:
        tensor = _constant(value)
    if dtype is None:
        return tensor
    if (tensor._spec.dtype.kind == "O") != (dtype.kind == "O"):
        raise TypeError(
            f"Strings and numbers cannot meet: a value of dtype {tensor.dtype.name} was to become "
            f"{dtypes.of(dtype).name}. Use tf.strings.to_number or tf.strings.as_string."
        )
    return to_dtype(tensor, dtype)


def array_of(value: Any, dtype: np.dtype | None = None) -> Tensor:
    """`value` as a tensor that may be handed out."""
    tensor = tensor_of(value, dtype)
    return (
        identity(tensor)
        if tensor_or_variable(value) is not None and type(value) is not Tensor
        else tensor
    )


def _constant(value: Any) -> Tensor:
    if _is_text(value):
        return as_tensor(value)
    own = common_dtype(value)
    if own.kind != "b" and isinstance(value, (list, tuple)):
        value = _with_numbers(value)
    return as_tensor(value, hint=own)


def _is_text(value: Any) -> bool:
    """Whether `value` is, or starts with, a string; NumPy would read the name of a dtype."""
    while isinstance(value, (list, tuple)) and value:
        value = value[0]
    return isinstance(value, (str, bytes)) or value is None


def _with_numbers(value: Any) -> Any:
    """Nested lists where booleans are numbers, so that they can stand beside numbers."""
    if isinstance(value, (list, tuple)):
        return [_with_numbers(element) for element in value]
    return int(value) if isinstance(value, bool) else value


def promoted(*values: Any) -> list[Tensor]:
    """Tensors of `values`, all of the dtype in which they meet."""
    if {*map(type, values)} == {Tensor} and len({x._spec.dtype for x in values}) == 1:
        return [*values]  # as they nearly always are, without a question to NumPy
    dtype = common_dtype(*values)
    return [tensor_of(value, dtype) for value in values]


def inexact(value: Any) -> Tensor:
    """`value` as a tensor of floats or complex numbers; integers and booleans as float64."""
    x = tensor_of(value)
    return x if x._spec.dtype in dtypes.INEXACT else to_dtype(x, FLOAT)


def promoted_inexact(*values: Any) -> list[Tensor]:
    """Tensors of `values`, all of one dtype, which is one of floats or complex numbers."""
    return [inexact(x) for x in promoted(*values)]


def refuse(argument: str, op_name: str) -> ValueError:
    """The error for an argument that is in the signature only because it is in NumPy's."""
    return ValueError(f"{op_name}: the argument `{argument}` is not supported. Leave it out.")
