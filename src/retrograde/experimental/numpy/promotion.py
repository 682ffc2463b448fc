"""The promotion modes "safe" and "all" of operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from retrograde.core.tensor import Tensor
from retrograde.experimental.numpy._inputs import tensor_of
from retrograde.ops.conversion import as_tensor
from retrograde.values import dtypes
from retrograde.values.conversion import tensor_or_variable
from retrograde.values.dtypes import DType

# The number of binary digits that a dtype represents exactly, for each component.
_DIGITS = {
    "bool": 1, "int8": 7, "int16": 15, "int32": 31, "int64": 63,
    "uint8": 8, "uint16": 16, "uint32": 32, "uint64": 64,
    "float16": 11, "bfloat16": 8, "float32": 24, "float64": 53, "complex64": 24, "complex128": 53,
}  # fmt: skip
_PYTHON_NUMBERS = {bool: dtypes.bool_, int: dtypes.int32, float: dtypes.float64}


def promoter(mode: str) -> Callable[[Any, Any], list[Tensor]]:
    """Returns a function that converts two operands to tensors of one dtype.

    The mode "safe" allows only conversions that keep all values; "all" allows others. A Python
    number takes the dtype of the other operand if that is of the same kind or a wider one.
    """

    def promote(x1: Any, x2: Any) -> list[Tensor]:
        (first, weak1), (second, weak2) = _dtype(x1), _dtype(x2)
        if not {first.name, second.name} <= {*_DIGITS}:  # strings
            return [as_tensor(x1), as_tensor(x2)]
        if weak1 != weak2:
            number, tensor = (first, second) if weak1 else (second, first)
            common = _with_python_number(tensor, number, mode)
        else:
            common = _common(first, second, mode)
        if common is None:
            raise TypeError(
                f"The promotion mode {mode!r} does not convert {first.name} and {second.name} to "
                "one dtype, because values could change. Use tf.cast, or the mode 'all'."
            )
        return [tensor_of(x, common.numpy_dtype) for x in (x1, x2)]

    return promote


def _dtype(x: Any) -> tuple[DType, bool]:
    """Returns the dtype of an operand, and whether it is a Python number."""
    holder = tensor_or_variable(x)
    if holder is not None:
        return holder.dtype, False
    if type(x) is complex:
        return dtypes.complex128, True
    if type(x) in _PYTHON_NUMBERS:
        return _PYTHON_NUMBERS[type(x)], True
    return dtypes.of(np.asarray(as_tensor(x)._array).dtype), False


def _kind(dtype: DType) -> int:
    """Returns the rank of bool, integers, floating-point and complex numbers."""
    return 3 if dtype.is_complex else 2 if dtype.is_floating else 1 if dtype.is_integer else 0


def _with_python_number(tensor: DType, number: DType, mode: str) -> DType | None:
    if _kind(tensor) >= _kind(number):
        return tensor
    if number is dtypes.complex128 and tensor.is_floating and tensor is not dtypes.float64:
        return None if mode == "safe" else dtypes.complex64
    if number is dtypes.float64 and mode == "safe" and tensor.is_integer:
        return None
    return _common(tensor, number, mode)


def _common(first: DType, second: DType, mode: str) -> DType | None:
    """Returns the common dtype, or `None` if the mode forbids it."""
    if first is second:
        return first
    if mode == "safe":
        return next(
            (wide for narrow, wide in ((first, second), (second, first)) if _fits(narrow, wide)),
            None,
        )
    low, high = sorted((first, second), key=_kind)
    if _kind(low) == _kind(high) or low is dtypes.float64:
        bfloat = dtypes.bfloat16 in (low, high)
        return dtypes.float32 if bfloat and low.size == high.size else _wider(low, high)
    return high


def _wider(first: DType, second: DType) -> DType:
    if dtypes.bfloat16 in (first, second):
        return max(first, second, key=lambda dtype: dtype.size)
    return dtypes.of(np.promote_types(first.numpy_dtype, second.numpy_dtype))


def _fits(narrow: DType, wide: DType) -> bool:
    """Returns whether `wide` represents all values of `narrow`."""
    if _kind(narrow) > _kind(wide) or _DIGITS[narrow.name] > _DIGITS[wide.name]:
        return False
    if narrow.is_integer and wide.is_integer:
        return narrow.is_unsigned or not wide.is_unsigned
    return not (narrow.is_floating and wide.is_floating and narrow.size == wide.size)
