"""The values of repeated fields and of maps in messages."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, MutableMapping, MutableSequence
from typing import Any

import numpy as np

from retrograde.protobuf.scalars import Scalar


class _Container:
    """A base class of containers. The first change sets the message that owns the container."""

    __slots__ = ("_owner",)
    __hash__ = None

    _items: Any

    def __init__(self, owner: Any) -> None:
        self._owner = owner  # the message, while it is not set in its parent

    def _set_in_parent(self) -> None:
        if self._owner is not None:
            self._owner._set_in_parent()
            self._owner = None

    def __len__(self) -> int:
        return len(self._items)

    def clear(self) -> None:
        """Removes all items."""
        self._set_in_parent()
        self._items.clear()

    def __repr__(self) -> str:
        return repr(self._items)


class _Repeated(_Container, MutableSequence):
    """A list that checks its items."""

    __slots__ = ("_items",)

    def __init__(self, owner: Any) -> None:
        super().__init__(owner)
        self._items: list = []

    def _check(self, value: Any) -> Any:
        raise NotImplementedError

    def __getitem__(self, index: Any) -> Any:
        return self._items[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        self._set_in_parent()
        is_slice = isinstance(index, slice)
        self._items[index] = [*map(self._check, value)] if is_slice else self._check(value)

    def __delitem__(self, index: Any) -> None:
        self._set_in_parent()
        del self._items[index]

    def insert(self, index: int, value: Any) -> None:
        """Inserts an item."""
        self._set_in_parent()
        self._items.insert(index, self._check(value))

    def extend(self, values: Iterable) -> None:
        """Appends all items of an iterable."""
        try:
            items = iter(values)
        except TypeError:
            raise TypeError("must assign iterable") from None
        checked = [self._check(item) for item in items]
        if checked:
            self._set_in_parent()
            self._items.extend(checked)

    def MergeFrom(self, other: Iterable) -> None:
        """Appends all items of another container."""
        self.extend(other)

    def sort(self, *, key: Callable | None = None, reverse: bool = False) -> None:
        """Sorts the items."""
        self._set_in_parent()
        self._items.sort(key=key, reverse=reverse)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, _Repeated):
            return self._items == other._items
        return self._items == other


class RepeatedScalars(_Repeated):
    """The numbers or strings of a repeated field."""

    __slots__ = ("_field_name", "_scalar")

    def __init__(self, scalar: Scalar, field_name: str, owner: Any) -> None:
        super().__init__(owner)
        self._scalar, self._field_name = scalar, field_name

    def _check(self, value: Any) -> Any:
        return self._scalar.check(value, self._field_name)

    def extend(self, values: Iterable) -> None:
        """Appends all items of an iterable."""
        dtype = self._scalar.dtype
        if isinstance(values, np.ndarray) and values.ndim == 1 and values.dtype == dtype:
            if values.size:
                self._set_in_parent()
                self._items.extend(values.tolist())
        else:
            super().extend(values)

    def _merge_items(self, other: RepeatedScalars) -> None:
        self._items.extend(other._items)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self._items, self._scalar.dtype if dtype is None else dtype)

    def __deepcopy__(self, memo: Any) -> list:
        return list(self._items)


class RepeatedMessages(_Repeated):
    """The messages of a repeated field."""

    __slots__ = ("_message_class",)

    def __init__(self, message_class: type, owner: Any) -> None:
        super().__init__(owner)
        self._message_class = message_class

    def _check(self, value: Any) -> Any:
        if isinstance(value, dict):
            return self._message_class(**value)
        message = self._message_class()
        message.CopyFrom(value)
        return message

    def add(self, **values: Any) -> Any:
        """Appends a new message and returns it."""
        self._set_in_parent()
        self._items.append(self._message_class(**values))
        return self._items[-1]

    def _merge_items(self, other: RepeatedMessages) -> None:
        self._items.extend(map(copy.deepcopy, other._items))

    def __setitem__(self, index: Any, value: Any) -> None:
        raise TypeError("Messages cannot be assigned. Use CopyFrom.")


class MessageMap(_Container, MutableMapping):
    """A map from strings to messages. Reading a missing key adds a message."""

    __slots__ = ("_items", "_message_class")

    def __init__(self, message_class: type, owner: Any) -> None:
        super().__init__(owner)
        self._items: dict[str, Any] = {}
        self._message_class = message_class

    def __getitem__(self, key: str) -> Any:
        key = _check_key(key)
        if key not in self._items:
            self._set_in_parent()
            self._items[key] = self._message_class()
        return self._items[key]

    def get_or_create(self, key: str) -> Any:
        """Returns the message of a key. Adds it if the key is missing."""
        return self[key]

    def get(self, key: str, default: Any = None) -> Any:
        """Returns the message of a key, or `default`."""
        return self._items.get(_check_key(key), default)

    def __setitem__(self, key: str, value: Any) -> None:
        raise ValueError("Message objects may not be assigned")

    def __delitem__(self, key: str) -> None:
        if _check_key(key) not in self._items:
            raise KeyError("Key not present in map")
        self._set_in_parent()
        del self._items[key]

    def pop(self, key: str, *default: Any) -> Any:
        """Removes a key and returns its message."""
        self._set_in_parent()
        return self._items.pop(_check_key(key), *default)

    def __contains__(self, key: object) -> bool:
        return _check_key(key) in self._items

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __eq__(self, other: object) -> bool:
        return self._items == (other._items if isinstance(other, MessageMap) else other)

    def MergeFrom(self, other: MessageMap) -> None:
        """Copies all messages of another map."""
        self._set_in_parent()
        self._merge_items(other)

    def _merge_items(self, other: MessageMap) -> None:
        self._items.update((key, copy.deepcopy(item)) for key, item in list(other._items.items()))


def _check_key(key: Any) -> str:
    if isinstance(key, bytes):
        return key.decode()
    if not isinstance(key, str):
        raise TypeError(f"The keys of a map are strings. Received: {key!r}.")
    return key
