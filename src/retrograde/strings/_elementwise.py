"""Helpers of tf.strings: conversion to string tensors and element-by-element functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from retrograde.core.tensor import Tensor
from retrograde.ops.conversion import as_tensor
from retrograde.ops.host_functions import host_function
from retrograde.ragged.partition import RowPartition
from retrograde.ragged.tensor import RaggedTensor
from retrograde.values import dtypes
from retrograde.values.arguments import shown
from retrograde.values.conversion import tensor_or_variable
from retrograde.values.errors import invalid

STRING = dtypes.string.numpy_dtype


def as_string_tensor(value: Any) -> Any:
    """Converts `value` to a string tensor; a RaggedTensor is returned unchanged."""
    tensor = value if isinstance(value, RaggedTensor) else as_tensor(value, _dtype_hint(value))
    if tensor.dtype is not dtypes.string:
        raise invalid(f"Expected strings. Received: dtype {tensor.dtype.name}.")
    return tensor


def _dtype_hint(value: Any) -> np.dtype | None:
    return None if tensor_or_variable(value) is not None else STRING


@host_function
def map_strings(f: Callable, value: Any, dtype: np.dtype = STRING) -> Any:
    """Applies `f` to each string."""
    x = as_string_tensor(value)
    if isinstance(x, RaggedTensor):
        return x.with_flat_values(map_strings(f, x.flat_values, dtype))
    array = np.asarray(x)
    results = [f(s) for s in array.ravel().tolist()]
    return Tensor(array_of(results, dtype).reshape(array.shape))


def array_of(values: Sequence[Any], dtype: np.dtype) -> np.ndarray:
    """Returns a one-dimensional array; `np.array` would convert bytes to fixed-width strings."""
    array = np.empty(len(values), dtype)
    array[:] = values
    return array


@host_function(dynamic_shapes=True)
def map_to_ragged(f: Callable, value: Any, dtype: np.dtype = STRING) -> Any:
    """Applies `f`, which returns a list, to each string; the new last axis is ragged."""
    x = as_string_tensor(value)
    if isinstance(x, RaggedTensor):
        return x.with_flat_values(map_to_ragged(f, x.flat_values, dtype))
    array = np.asarray(x)
    parts = [f(s) for s in array.ravel().tolist()]
    flat = Tensor(array_of([part for row in parts for part in row], dtype))
    if not array.ndim:
        return flat
    lengths = np.array([len(row) for row in parts], np.int64)
    rows = RaggedTensor(flat, RowPartition.from_lengths(lengths), internal=True)
    for axis in reversed(range(1, array.ndim)):
        count = int(np.prod(array.shape[:axis]))
        part = RowPartition.uniform(array.shape[axis], rows._partition.nrows, count)
        rows = RaggedTensor(rows, part, internal=True)
    return rows


def scalar_string(value: Any, label: str) -> bytes:
    """Returns the string in a scalar `value`."""
    array = np.asarray(as_string_tensor(value))
    if array.ndim:
        raise invalid(f"{label} must be a scalar. Received: shape {array.shape}.")
    return array.item()


def decode_utf8(data: bytes) -> str:
    """Decodes UTF-8; `encode_utf8` restores bytes that are not valid UTF-8."""
    return data.decode(errors="surrogateescape")


def encode_utf8(string: str) -> bytes:
    """Encodes to UTF-8, the inverse of `decode_utf8`."""
    return string.encode(errors="surrogateescape")


def check_one_of(value: Any, allowed: tuple, label: str) -> Any:
    """Returns `value` if it is among `allowed` and raises otherwise."""
    if value not in allowed:
        expected = ", ".join(map(repr, allowed))
        raise invalid(f"{label} must be one of {expected}. Received: {shown(value)}.")
    return value
