"""Options: how datasets are to be run."""

from __future__ import annotations

from typing import Any, ClassVar

from retrograde.values.arguments import expect, shown


class _Settings:
    """Attributes of fixed names and types, all `None` at first."""

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
        """These settings, with those that `options` sets in their place."""
        expect(options, type(self), "merge", f"tf.data.{type(self).__name__}")
        result = type(self)()
        for name, kind in self._types.items():
            mine, other = getattr(self, name), getattr(options, name)
            nested = issubclass(kind, _Settings)
            chosen = mine.merge(other) if nested else mine if other is None else other
            object.__setattr__(result, name, chosen)
        return result


class ThreadingOptions(_Settings):
    """How many threads may be used. Accepted; each dataset decides by itself."""

    _types: ClassVar = {"max_intra_op_parallelism": int, "private_threadpool_size": int}


class Options(_Settings):
    """How datasets are to be run: `deterministic = False` lets parallel maps change the order.

    >>> options = tf.data.Options()
    >>> options.deterministic = False
    >>> tf.data.Dataset.range(3).with_options(options).options().deterministic
    False
    """

    _types: ClassVar = {"deterministic": bool, "threading": ThreadingOptions}

    # Older names, which programs still set.

    @property
    def experimental_deterministic(self) -> bool | None:
        """`deterministic`."""
        return self.deterministic

    @property
    def experimental_threading(self) -> ThreadingOptions:
        """`threading`."""
        return self.threading

    def __setattr__(self, name: str, value: Any) -> None:
        older = name in ("experimental_deterministic", "experimental_threading")
        super().__setattr__(name.removeprefix("experimental_") if older else name, value)
