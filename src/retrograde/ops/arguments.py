"""Converts arguments such as shapes, axes, sizes and indices to Python integers.

If an argument is a tensor, recorders observe that its value is converted to Python.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from retrograde.core import namespaces
from retrograde.core.tensor import Tensor
from retrograde.ops.conversion import as_tensor
from retrograde.shape_inference.abstract_array import is_abstract
from retrograde.values import dtypes
from retrograde.values.arguments import shown
from retrograde.values.errors import invalid
from retrograde.values.shapes import TensorShape

MAX_ELEMENTS = 2**58  # so that the number of bytes does not overflow
_INDEX_DTYPES = frozenset(map(np.dtype, (np.int16, np.int32, np.int64)))


def shape_from(value: Any, name: str, make_error: Any = invalid) -> tuple[int, ...]:
    """Returns `value`, one integer, several or a TensorShape, as a tuple of sizes >= 0."""
    sizes = integers(value, name, make_error)
    for size in sizes:
        if size < 0:
            raise invalid(f"{name}: dimension {size} must be >= 0. Received: shape {sizes}.")
    if math.prod(filter(None, sizes)) > MAX_ELEMENTS:
        raise invalid(f"{name}: shape {sizes} has too many elements.")
    return sizes


def integers(value: Any, name: str, make_error: Any = invalid, ndim: int | None = None) -> tuple:
    """Returns the integers in `value` as a tuple. A single integer is accepted unless `ndim` is 1.

    `make_error` creates the error for values that are not integers.
    """
    if type(value) in (list, tuple) and all(type(v) is int for v in value):
        return tuple(map(_in_range, value))
    if type(value) is int and ndim is None:
        return (_in_range(value),)
    if namespaces.foreign and namespaces.evaluator() and is_abstract(x := as_tensor(value)):
        return tuple(x._spec.integers())
    array = integer_array(value, name, make_error)
    if array.ndim > 1 or (ndim == 1 and not array.ndim):
        raise invalid(f"{name}: expected a list of integers. Received: shape {array.shape}.")
    return tuple(array.reshape(-1).tolist())


def _in_range(value: int) -> int:
    if not -(2**63) <= value < 2**63:
        raise ValueError(f"The integer {value} is out of range for int64.")
    return value


def integer_array(value: Any, name: str, make_error: Any = invalid) -> np.ndarray:
    """Returns `value` as an int64 array."""
    if isinstance(value, TensorShape):
        value.assert_is_fully_defined()
    array = np.asarray(as_tensor(value))
    if array.dtype.kind not in "iu" and array.size:
        dtype_name = dtypes.of(array.dtype).name
        raise make_error(
            f"{name}: expected integers. Received: {shown(value)} of dtype {dtype_name}."
        )
    return array.astype(np.int64)


def integer(value: Any, name: str, make_error: Any = invalid) -> int:
    """Returns the single integer in `value`. `make_error` creates the error for other dtypes."""
    if type(value) is int:
        return _in_range(value)
    if namespaces.foreign and namespaces.evaluator() and is_abstract(x := as_tensor(value)):
        return x._spec.item()
    array = integer_array(value, name, make_error)
    if array.size != 1:
        raise invalid(f"{name}: expected a single integer. Received: shape {array.shape}.")
    return int(array.item())


def indices_from(value: Any, name: str) -> Tensor:
    """Returns `value` as a tensor of indices."""
    indices = as_tensor(value)
    if indices._spec.dtype not in _INDEX_DTYPES:
        raise invalid(
            f"{name}: expected indices of dtype int32 or int64. Received: {indices.dtype.name}."
        )
    return indices
