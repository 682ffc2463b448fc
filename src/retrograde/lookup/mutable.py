"""Tables that can be changed, in eager code and in functions."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from retrograde.core.tensor import Tensor
from retrograde.lookup._tables import (
    LookupInterface,
    as_keys,
    check_dtypes,
    look_up,
    map_keys,
    typed_tensor,
)
from retrograde.ops.conversion import as_tensor
from retrograde.ops.host_callbacks import HostCallback, call_host
from retrograde.ops.host_functions import CallbackResult, call_on_each_replay
from retrograde.strings._elementwise import array_of
from retrograde.values import dtypes
from retrograde.values.errors import DataLossError, invalid
from retrograde.values.locks import fork_safe_lock


class MutableHashTable(LookupInterface):
    """A table whose keys can be inserted and removed.

    A value is a scalar or, if `default_value` is a vector, a vector. In a `tf.function`, each call
    changes and reads the current table. Tables are part of checkpoints.

    >>> table = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, default_value=-1)
    >>> table.insert(tf.constant(["a", "b"]), tf.constant([1, 2], tf.int64))
    >>> table.lookup(tf.constant(["b", "c"])).numpy(), table.size().numpy()
    (array([ 2, -1]), np.int64(2))
    """

    _checkpoint_name = "table"
    _reserved: Mapping[Any, str] = MappingProxyType({})  # the names of keys that are not allowed

    def __init__(
        self,
        key_dtype: Any,
        value_dtype: Any,
        default_value: Any,
        name: str = "MutableHashTable",
        checkpoint: bool = True,
        experimental_is_anonymous: bool = False,
    ) -> None:
        super().__init__(key_dtype, value_dtype, name)
        check_dtypes(self._key_dtype, self._value_dtype, type(self).__name__)
        default = as_tensor(default_value, self._value_dtype.numpy_dtype)
        self._default_value = np.asarray(default)
        if self._default_value.ndim > 1:
            raise invalid(
                "default_value must be a scalar or a vector. Received: shape "
                f"{self._default_value.shape}."
            )
        self._entries: dict[Any, Any] = {}
        self._lock = fork_safe_lock()

    def lookup(self, keys: Any, dynamic_default_values: Any = None, name: str | None = None) -> Any:
        """Returns the value of each key.

        `dynamic_default_values` contains one value for each key, or a single value. It replaces
        `default_value` for missing keys.
        """
        if dynamic_default_values is None:
            return map_keys(keys, self._key_dtype, self._find, ValueError)
        defaults = typed_tensor(dynamic_default_values, self._value_dtype, "dynamic_default_values")
        return map_keys(keys, self._key_dtype, lambda x: self._find(x, defaults), ValueError)

    def _find(self, keys: Tensor, *defaults: Tensor) -> Tensor:
        callback = HostCallback("lookup", self._read, pure=False)
        return call_host(callback, (keys, *defaults))

    def _read(self, keys: Any, defaults: Any = None) -> np.ndarray:
        keys, default = as_keys(keys), self._default_value
        self._check_keys(keys)
        with self._lock:
            values = look_up(self._entries, keys, default, default.dtype)
            if defaults is not None and keys.size:
                missing = [key not in self._entries for key in keys.ravel().tolist()]
                choices = np.asarray(defaults)
                if choices.shape != values.shape and choices.shape != default.shape:
                    raise invalid(
                        f"Expected dynamic default values of shape {values.shape} or "
                        f"{default.shape}. Received: shape {choices.shape}."
                    )
                mask = np.array(missing).reshape(keys.shape)
                values[mask] = np.broadcast_to(choices, values.shape)[mask]
        return values

    def _check_keys(self, keys: np.ndarray) -> None:
        """Raises an error if keys are reserved."""

    def size(self, name: str | None = None) -> Tensor:
        """Returns the number of keys."""
        callback = HostCallback(
            "size", lambda: np.asarray(len(self._entries), np.int64), pure=False
        )
        return call_host(callback)

    def insert(self, keys: Any, values: Any, name: str | None = None) -> None:
        """Inserts keys, or replaces the values of existing ones."""
        x1 = typed_tensor(keys, self._key_dtype, "keys", ValueError)
        x2 = typed_tensor(values, self._value_dtype, "values", ValueError)
        expected = (*x1._spec.shape, *self._default_value.shape)
        if x2._spec.shape != expected:
            raise invalid(f"Expected shape {list(expected)} for value, got {list(x2._spec.shape)}")
        call_host(HostCallback("insert", self._insert, pure=False), (x1, x2))

    def _insert(self, keys: Any, values: Any) -> np.ndarray:
        keys, default = as_keys(keys), self._default_value
        self._check_keys(keys)
        rows = np.asarray(values).reshape((keys.size, *default.shape))
        items = list(rows.copy()) if default.ndim else rows.tolist()
        with self._lock:
            self._entries.update(zip(keys.ravel().tolist(), items, strict=True))
        return np.zeros((), np.bool_)

    def remove(self, keys: Any, name: str | None = None) -> None:
        """Removes keys. Keys that are missing are ignored."""
        x = typed_tensor(keys, self._key_dtype, "keys", ValueError)
        call_host(HostCallback("remove", self._remove, pure=False), (x,))

    def _remove(self, keys: Any) -> np.ndarray:
        keys = as_keys(keys)
        self._check_keys(keys)
        with self._lock:
            for key in keys.ravel().tolist():
                self._entries.pop(key, None)
        return np.zeros((), np.bool_)

    def export(self, name: str | None = None) -> tuple[Tensor, Tensor]:
        """Returns all keys and values.

        >>> table = tf.lookup.experimental.MutableHashTable(tf.int64, tf.float32, 0.0)
        >>> table.insert(tf.constant([7], tf.int64), [0.5])
        >>> [x.numpy() for x in table.export()]
        [array([7]), array([0.5], dtype=float32)]
        """
        parts, _ = call_on_each_replay("export", lambda: CallbackResult([*self._arrays()]))
        return parts[0], parts[1]

    def _arrays(self) -> tuple[np.ndarray, np.ndarray]:
        with self._lock:
            keys = array_of([*self._entries], self._key_dtype.numpy_dtype)
            values = np.empty((len(keys), *self._default_value.shape), self._default_value.dtype)
            for index, value in enumerate(self._entries.values()):
                values[index] = value
        return keys, values

    # Checkpoints

    def _checkpoint_bytes(self) -> bytes:
        return encode_table(*self._arrays())

    def _restore_function(self, value: bytes) -> Any:
        keys, values = decode_table(value)
        if values.shape[1:] == (1,) and not self._default_value.ndim:
            values = values.reshape(len(values))  # TensorFlow's dense tables have two axes
        expected = (self._key_dtype.numpy_dtype, self._value_dtype.numpy_dtype)
        if (keys.dtype, values.dtype) != expected or values.shape[1:] != self._default_value.shape:
            raise invalid(
                f"The table in the checkpoint has keys of {dtypes.of(keys.dtype).name} and values "
                f"of {dtypes.of(values.dtype).name}, shape {values.shape[1:]}. Expected "
                f"{self._key_dtype.name} and {self._value_dtype.name}, shape "
                f"{self._default_value.shape}."
            )
        return lambda: self._replace(keys, values)

    def _replace(self, keys: np.ndarray, values: np.ndarray) -> None:
        used = np.array([key not in self._reserved for key in keys.tolist()], bool)
        with self._lock:
            self._entries.clear()
            self._insert(keys[used], values[used])


class DenseHashTable(MutableHashTable):
    """A `MutableHashTable` with two reserved keys, `empty_key` and `deleted_key`.

    TensorFlow marks free buckets with these keys. Here they only raise an error.

    >>> table = tf.lookup.experimental.DenseHashTable(
    ...     tf.int64, tf.int64, default_value=-1, empty_key=0, deleted_key=-1
    ... )
    >>> table.insert(tf.constant([1, 2], tf.int64), tf.constant([10, 20], tf.int64))
    >>> table.erase(tf.constant([1], tf.int64))
    >>> table.lookup(tf.constant([1, 2], tf.int64)).numpy()
    array([-1, 20])
    """

    def __init__(
        self,
        key_dtype: Any,
        value_dtype: Any,
        default_value: Any,
        empty_key: Any,
        deleted_key: Any,
        initial_num_buckets: int | None = None,
        name: str = "MutableDenseHashTable",
        checkpoint: bool = True,
        experimental_is_anonymous: bool = False,
    ) -> None:
        super().__init__(key_dtype, value_dtype, default_value, name, checkpoint)
        keys = [
            np.asarray(as_tensor(key, self._key_dtype.numpy_dtype)).tolist()
            for key in (empty_key, deleted_key)
        ]
        if keys[0] == keys[1]:
            raise invalid("Empty and deleted keys must not be equal.")
        buckets = initial_num_buckets
        if buckets is not None and (buckets < 1 or buckets & buckets - 1):
            raise invalid(f"The number of buckets must be a power of 2. Received: {buckets}.")
        self._reserved = dict(zip(keys, ("empty_key", "deleted_key"), strict=True))

    def _check_keys(self, keys: np.ndarray) -> None:
        for key in keys.ravel().tolist():
            if key in self._reserved:
                raise invalid(f"Using the {self._reserved[key]} as a table key is not allowed")

    def insert_or_assign(self, keys: Any, values: Any, name: str | None = None) -> None:
        """Inserts keys, or replaces the values of existing ones."""
        self.insert(keys, values)

    def erase(self, keys: Any, name: str | None = None) -> None:
        """Removes keys. Keys that are missing are ignored."""
        self.remove(keys)


# The value of a table in a checkpoint: a line of JSON that describes both arrays, and their bytes.


def encode_table(keys: np.ndarray, values: np.ndarray) -> bytes:
    """Returns the keys and values of a table as bytes."""
    parts = [_encode_array(array) for array in (keys, values)]
    return b"".join(
        [json.dumps([part[0] for part in parts]).encode(), b"\n", *(p[1] for p in parts)]
    )


def _encode_array(array: np.ndarray) -> tuple[dict, bytes]:
    name = dtypes.of(array.dtype).name
    if name != "string":
        return {"dtype": name, "shape": array.shape, "size": array.nbytes}, array.tobytes()
    strings = array.ravel().tolist()
    data = b"".join(strings)
    lengths = [len(string) for string in strings]
    return {"dtype": name, "shape": array.shape, "size": len(data), "lengths": lengths}, data


def decode_table(data: bytes) -> tuple[np.ndarray, np.ndarray]:
    """Returns the keys and values that were passed to `encode_table`."""
    try:
        header, _, content = data.partition(b"\n")
        keys, values = json.loads(header)
        middle = _check_size(keys["size"])
        arrays = _decode_array(keys, content[:middle]), _decode_array(values, content[middle:])
        if len(arrays[0].shape) != 1 or len(arrays[0]) != len(arrays[1]):
            raise ValueError("keys and values differ in number")
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
        message = f"A lookup table in a checkpoint is corrupt: {error}."
        raise DataLossError(None, None, message) from None
    return arrays


def _check_size(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(f"{value!r} is not a size")
    return value


def _decode_array(description: dict, data: bytes) -> np.ndarray:
    dtype = dtypes.as_dtype(description["dtype"])
    shape = [_check_size(size) for size in description["shape"]]
    if len(data) != description["size"]:
        raise ValueError("data is missing")
    if dtype != dtypes.string:
        return np.frombuffer(data, dtype.numpy_dtype).reshape(shape)
    lengths = [_check_size(length) for length in description["lengths"]]
    if sum(lengths) != len(data):
        raise ValueError("strings are missing")
    ends = np.cumsum([0, *lengths]).tolist()
    strings = [data[start:end] for start, end in itertools.pairwise(ends)]
    return array_of(strings, dtype.numpy_dtype).reshape(shape)
