"""The base class of tables, and lookups of dense, sparse and ragged keys."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from retrograde.core.tensor import Tensor
from retrograde.ops.conversion import as_tensor
from retrograde.ragged.tensor import RaggedTensor
from retrograde.sparse.tensor import SparseTensor
from retrograde.values import dtypes
from retrograde.values.dtypes import DType
from retrograde.values.errors import NotFoundError

_KEYS = ("string", "int32", "int64")


class LookupInterface:
    """The base class of tables."""

    def __init__(self, key_dtype: Any, value_dtype: Any, name: str) -> None:
        self._key_dtype = dtypes.as_dtype(key_dtype)
        self._value_dtype = dtypes.as_dtype(value_dtype)
        self._name = name

    @property
    def key_dtype(self) -> DType:
        """The dtype of keys."""
        return self._key_dtype

    @property
    def value_dtype(self) -> DType:
        """The dtype of values."""
        return self._value_dtype

    @property
    def name(self) -> str:
        """The name of the table."""
        return self._name

    @property
    def resource_handle(self) -> Any:
        """The table itself, which has no handle."""
        return self

    def lookup(self, keys: Any, name: str | None = None) -> Any:
        """Returns the values of keys."""
        raise NotImplementedError

    def __getitem__(self, keys: Any) -> Any:
        return self.lookup(keys)

    def _trackable_children(self) -> dict[str, Any]:
        return {}


def map_keys(
    keys: Any,
    dtype: DType,
    lookup: Callable[[Tensor], Tensor],
    error: type[Exception] = TypeError,
) -> Any:
    """Applies `lookup` to a tensor of keys, or to the values of a sparse or ragged tensor."""
    if isinstance(keys, SparseTensor):
        return SparseTensor(
            keys.indices, map_keys(keys.values, dtype, lookup, error), keys.dense_shape
        )
    if isinstance(keys, RaggedTensor):
        return keys.with_flat_values(map_keys(keys.flat_values, dtype, lookup, error))
    return lookup(typed_tensor(keys, dtype, "keys", error))


def typed_tensor(
    values: Any, dtype: DType, argument: str, error: type[Exception] = TypeError
) -> Tensor:
    """Converts values to a tensor of `dtype`. Tensors of another dtype raise `error`."""
    actual = getattr(values, "dtype", None)
    if actual is not None and dtypes.as_dtype(actual) != dtype:
        raise error(
            f"Dtype of argument `{argument}` must be {dtype.name}, received: "
            f"{dtypes.as_dtype(actual).name}."
        )
    return as_tensor(values, dtype.numpy_dtype)


def as_keys(keys: Any) -> np.ndarray:
    """Returns keys as an array. A single string becomes an object array of rank 0."""
    return np.asarray(keys, object if isinstance(keys, bytes) else None)


def look_up(
    entries: Mapping[Any, Any], keys: np.ndarray, default: np.ndarray, dtype: np.dtype
) -> np.ndarray:
    """Returns the values of `keys`, in their shape followed by the shape of `default`."""
    values = np.empty((keys.size, *default.shape), dtype)
    if default.ndim:
        for index, key in enumerate(keys.ravel().tolist()):
            values[index] = entries.get(key, default)
    else:
        missing = default.item()
        values[:] = [entries.get(key, missing) for key in keys.ravel().tolist()]
    return values.reshape((*keys.shape, *default.shape))


def check_dtypes(key: DType, value: DType, kind: str) -> None:
    """Raises `NotFoundError` unless a table can have these dtypes."""
    if key.name not in _KEYS:
        raise NotFoundError(
            None,
            None,
            f"{kind}: keys of dtype {key.name} are not supported. Expected string, int32 or int64.",
        )
    if value.name not in ("bool", "float32", "float64", "int32", "int64", "string"):
        raise NotFoundError(None, None, f"{kind}: values of dtype {value.name} are not supported.")
