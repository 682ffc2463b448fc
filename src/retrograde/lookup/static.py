"""Tables that do not change."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from retrograde.core.tensor import Tensor
from retrograde.lookup._tables import LookupInterface, as_keys, check_dtypes, look_up, map_keys
from retrograde.lookup.initializers import TableInitializerBase
from retrograde.ops._hashes import fingerprint64
from retrograde.ops.conversion import as_tensor
from retrograde.ops.host_callbacks import CallbackDescription, HostCallback, call_host
from retrograde.ops.host_functions import CALLBACK_BUILDERS, register_function, registered_name
from retrograde.strings._elementwise import array_of
from retrograde.values import dtypes
from retrograde.values.arguments import expect, shown
from retrograde.values.errors import FailedPreconditionError, invalid


class StaticHashTable(LookupInterface):
    """A table that an initializer fills once.

    Missing keys have the value `default_value`. Keys can be dense, sparse or ragged tensors.

    >>> initializer = tf.lookup.KeyValueTensorInitializer(["red", "blue"], [10, 20])
    >>> table = tf.lookup.StaticHashTable(initializer, default_value=-1)
    >>> table.lookup(tf.constant([["red", "green"]])).numpy()
    array([[10, -1]], dtype=int32)
    """

    def __init__(
        self,
        initializer: Any,
        default_value: Any,
        name: str | None = None,
        experimental_is_anonymous: bool = False,
    ) -> None:
        expect(initializer, TableInitializerBase, "StaticHashTable", "a table initializer")
        super().__init__(initializer.key_dtype, initializer.value_dtype, name or "hash_table")
        check_dtypes(self._key_dtype, self._value_dtype, "StaticHashTable")
        default = as_tensor(default_value, self._value_dtype.numpy_dtype)
        if default.ndim:
            raise ValueError(
                f"`default_value` must be a scalar of {self._value_dtype.name}. Received: "
                f"{shown(default_value)}."
            )
        self._default_value = default
        self._entries: dict[Any, Any] = {}
        self._initializer = initializer
        initializer.initialize(self)

    @property
    def default_value(self) -> Tensor:
        """The value of missing keys."""
        return self._default_value

    def _initialize(self, keys: np.ndarray, values: np.ndarray) -> None:
        if keys.shape != values.shape:
            raise invalid(
                f"Keys and values must have the same shape. Received: keys of shape "
                f"{keys.shape} and values of shape {values.shape}."
            )
        for key, value in zip(keys.ravel().tolist(), values.ravel().tolist(), strict=True):
            if self._entries.setdefault(key, value) != value:
                raise FailedPreconditionError(
                    None,
                    None,
                    f"HashTable has different value for same key. Key {shown(key)} has "
                    f"{shown(self._entries[key])} and trying to add value {shown(value)}",
                )

    def size(self, name: str | None = None) -> Tensor:
        """Returns the number of keys."""
        return Tensor(np.int64(len(self._entries)))

    def lookup(self, keys: Any, name: str | None = None) -> Any:
        """Returns the value of each key, in the shape of `keys`."""
        return map_keys(keys, self._key_dtype, lambda x: call_host(self._callback, (x,)))

    @functools.cached_property
    def _callback(self) -> HostCallback:
        default = np.asarray(self._default_value)
        return _make_callback(self._entries, default.item(), self._value_dtype.name, 0)

    def export(self, name: str | None = None) -> tuple[Tensor, Tensor]:
        """Returns all keys and values as two vectors.

        >>> initializer = tf.lookup.KeyValueTensorInitializer([1, 2], ["x", "y"])
        >>> keys, values = tf.lookup.StaticHashTable(initializer, "?").export()
        >>> keys.numpy(), values.numpy()
        (array([1, 2], dtype=int32), array([b'x', b'y'], dtype=object))
        """
        keys = array_of([*self._entries], self._key_dtype.numpy_dtype)
        return Tensor(keys), Tensor(
            array_of([*self._entries.values()], self._value_dtype.numpy_dtype)
        )


class StaticVocabularyTable(LookupInterface):
    """A table of ids. Keys that are not in the vocabulary are hashed to the ids after it.

    The values of the initializer are int64 ids, usually 0 to the number of words minus 1. Without
    an initializer, all keys are hashed.

    >>> words = tf.lookup.KeyValueTensorInitializer(["a", "b"], tf.constant([0, 1], tf.int64))
    >>> table = tf.lookup.StaticVocabularyTable(words, num_oov_buckets=1)
    >>> table.lookup(tf.constant(["b", "z"])).numpy(), table.size().numpy()
    (array([1, 2]), np.int64(3))
    """

    def __init__(
        self,
        initializer: Any,
        num_oov_buckets: int,
        lookup_key_dtype: Any = None,
        name: str | None = None,
        experimental_is_anonymous: bool = False,
    ) -> None:
        if num_oov_buckets <= 0:
            raise ValueError(
                "The `num_oov_buckets` argument must be greater than zero. Received "
                f"num_oov_buckets={num_oov_buckets}."
            )
        self._table = None
        key_dtype = dtypes.string if lookup_key_dtype is None else dtypes.as_dtype(lookup_key_dtype)
        if initializer is not None:
            expect(
                initializer, TableInitializerBase, "StaticVocabularyTable", "a table initializer"
            )
            if initializer.value_dtype != dtypes.int64:
                raise TypeError(
                    f"Invalid `value_dtype`, expected int64 but got {initializer.value_dtype!r}."
                )
            if lookup_key_dtype is None:
                key_dtype = initializer.key_dtype
            elif key_dtype.is_integer != initializer.key_dtype.is_integer:
                raise TypeError(
                    f"Invalid key dtype, expected {initializer.key_dtype!r} but got {key_dtype!r}."
                )
            self._table = StaticHashTable(initializer, -1)
        super().__init__(key_dtype, dtypes.int64, name or "string_to_index")
        self._num_oov_buckets = num_oov_buckets

    def size(self, name: str | None = None) -> Tensor:
        """Returns the size of the vocabulary plus the number of buckets."""
        return Tensor(np.int64(len(self._entries) + self._num_oov_buckets))

    @property
    def _entries(self) -> dict[Any, int]:
        return {} if self._table is None else self._table._entries

    def lookup(self, keys: Any, name: str | None = None) -> Any:
        """Returns the id of each key, in the shape of `keys`."""
        return map_keys(keys, self._key_dtype, lambda x: call_host(self._callback, (x,)))

    @functools.cached_property
    def _callback(self) -> HostCallback:
        return _make_callback(self._entries, -1, "int64", self._num_oov_buckets)


# Lookups in functions are host callbacks. A saved model contains the table.


def _make_callback(entries: dict, default: Any, dtype: str, buckets: int) -> HostCallback:
    numpy_dtype = dtypes.as_dtype(dtype).numpy_dtype
    missing = np.empty((), numpy_dtype)
    missing[()] = default

    def find(keys: np.ndarray) -> np.ndarray:
        if buckets:
            return _find_ids(entries, as_keys(keys), buckets)
        return look_up(entries, as_keys(keys), missing, numpy_dtype)

    values = (tuple(entries), tuple(entries.values()), default, dtype, buckets)
    description = CallbackDescription("lookup", registered_name(_find_ids), values)
    return HostCallback("lookup", find, pure=True, description=description)


def _rebuild_callback(function: Any, values: tuple) -> HostCallback:
    keys, results, default, dtype, buckets = values
    scalars = {type(value) for value in (*keys, *results, default)}
    if not scalars <= {bool, int, float, bytes} or type(buckets) is not int or buckets < 0:
        raise ValueError("A saved model contains a corrupt lookup table.")
    return _make_callback(dict(zip(keys, results, strict=True)), default, dtype, buckets)


CALLBACK_BUILDERS["lookup"] = _rebuild_callback


@register_function
def _find_ids(entries: dict[Any, int], keys: np.ndarray, buckets: int) -> np.ndarray:
    """Returns the ids of keys. Keys that are missing are hashed to buckets."""
    size, ids = len(entries), []
    for key in keys.ravel().tolist():
        index = entries.get(key, -1)
        if index == -1:
            text = key if isinstance(key, bytes) else str(key).encode()
            index = size + fingerprint64(text) % buckets
        ids.append(index)
    return np.array(ids, np.int64).reshape(keys.shape)
