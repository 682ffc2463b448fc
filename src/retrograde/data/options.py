"""Options of datasets."""

from __future__ import annotations

import enum
from typing import Any, ClassVar

from retrograde.values.arguments import expect, shown


class _Settings:
    """A set of typed attributes, initially `None`."""

    _types: ClassVar[dict[str, type]] = {}

    def __init__(self) -> None:
        for name, kind in self._types.items():
            settings = issubclass(kind, _Settings)
            object.__setattr__(self, name, kind() if settings else None)

    def __setattr__(self, name: str, value: Any) -> None:
        kind = self._types.get(name)
        if kind is None:
            raise AttributeError(f"Cannot set the property {name} on {type(self).__name__}.")
        if value is not None and not isinstance(value, kind):
            raise TypeError(
                f'Property "{name}" must be of type {kind}, got: {shown(value)} (type: '
                f"{type(value)})"
            )
        object.__setattr__(self, name, value)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and vars(self) == vars(other)

    __hash__ = None

    def merge(self, options: Any) -> Any:
        """Returns these settings updated with the settings in `options` that are not `None`."""
        expect(options, type(self), "merge", f"tf.data.{type(self).__name__}")
        result = type(self)()
        for name, kind in self._types.items():
            value, other = getattr(self, name), getattr(options, name)
            nested = issubclass(kind, _Settings)
            merged = value.merge(other) if nested else value if other is None else other
            object.__setattr__(result, name, merged)
        return result


class ThreadingOptions(_Settings):
    """Threading options. They are accepted but have no effect."""

    _types: ClassVar = {"max_intra_op_parallelism": int, "private_threadpool_size": int}


class AutoShardPolicy(enum.IntEnum):
    """Policies for sharding a dataset across the workers of a strategy."""

    OFF = -1
    AUTO = 0
    FILE = 1
    DATA = 2
    HINT = 3


class DistributeOptions(_Settings):
    """Options for splitting a dataset over workers. `num_devices` has no effect."""

    _types: ClassVar = {"auto_shard_policy": AutoShardPolicy, "num_devices": int}


class Options(_Settings):
    """Options of datasets. `deterministic = False` lets parallel maps change the order.

    >>> options = tf.data.Options()
    >>> options.deterministic = False
    >>> tf.data.Dataset.range(3).with_options(options).options().deterministic
    False
    """

    _types: ClassVar = {
        "deterministic": bool,
        "experimental_distribute": DistributeOptions,
        "threading": ThreadingOptions,
    }

    # Legacy names

    @property
    def experimental_deterministic(self) -> bool | None:
        """The legacy name of `deterministic`."""
        return self.deterministic

    @property
    def experimental_threading(self) -> ThreadingOptions:
        """The legacy name of `threading`."""
        return self.threading

    def __setattr__(self, name: str, value: Any) -> None:
        is_legacy_name = name in ("experimental_deterministic", "experimental_threading")
        super().__setattr__(name.removeprefix("experimental_") if is_legacy_name else name, value)
