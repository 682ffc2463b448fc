"""Options of datasets."""

from __future__ import annotations

import enum
from typing import Any, ClassVar

from retrograde.values.arguments import expect, shown


class _Settings:
    """A set of typed attributes, initially `None`."""

    _types: ClassVar[dict[str, type]] = {}
    _is_frozen = False

    def __init__(self) -> None:
        for name, kind in self._types.items():
            settings = issubclass(kind, _Settings)
            object.__setattr__(self, name, kind() if settings else None)

    def __setattr__(self, name: str, value: Any) -> None:
        kind = self._types.get(name)
        if kind is None:
            raise AttributeError(f"Cannot set the property {name} on {type(self).__name__}.")
        if self._is_frozen:
            raise ValueError(
                f"Cannot set {name}: the options of a dataset cannot be changed. Pass new options "
                "to `with_options`."
            )
        if value is not None and not isinstance(value, kind):
            raise TypeError(
                f'Property "{name}" must be of type {kind}, got: {shown(value)} (type: '
                f"{type(value)})"
            )
        object.__setattr__(self, name, value)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and all(
            getattr(self, name) == getattr(other, name) for name in self._types
        )

    __hash__ = None

    def merge(self, options: Any) -> Any:
        """Returns these settings updated with the settings in `options` that are not `None`."""
        expect(options, type(self), "merge", f"tf.data.{type(self).__name__}")
        result = type(self)()
        for name, kind in self._types.items():
            value, other = getattr(self, name), getattr(options, name)
            nested = issubclass(kind, _Settings)
            if nested:
                merged = value.merge(other)
            elif kind is list and value and other:
                merged = value + other
            else:
                merged = value if other is None else other
            object.__setattr__(result, name, merged)
        return result

    def freeze(self) -> Any:
        """Returns a copy that cannot be changed."""
        result = type(self)()
        for name, kind in self._types.items():
            value = getattr(self, name)
            nested = issubclass(kind, _Settings)
            object.__setattr__(result, name, value.freeze() if nested else value)
        object.__setattr__(result, "_is_frozen", True)
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


class AutotuneAlgorithm(enum.Enum):
    """Algorithms by which TensorFlow tunes the parallelism of datasets."""

    DEFAULT = 0
    HILL_CLIMB = 1
    GRADIENT_DESCENT = 2
    MAX_PARALLELISM = 3
    STAGE_BASED = 4


class AutotuneOptions(_Settings):
    """Options for tuning the parallelism of a dataset. They are accepted but have no effect."""

    _types: ClassVar = {
        "autotune_algorithm": AutotuneAlgorithm,
        "cpu_budget": int,
        "enabled": bool,
        "initial_parallelism": int,
        "min_parallelism": int,
        "ram_budget": int,
    }


class ExternalStatePolicy(enum.Enum):
    """Policies for saving a dataset whose functions have a state outside it."""

    WARN = 0
    IGNORE = 1
    FAIL = 2


class OptimizationOptions(_Settings):
    """Options for rewriting a dataset. They are accepted but have no effect."""

    _types: ClassVar = {
        "apply_default_optimizations": bool,
        "filter_fusion": bool,
        "filter_parallelization": bool,
        "inject_prefetch": bool,
        "map_and_batch_fusion": bool,
        "map_and_filter_fusion": bool,
        "map_fusion": bool,
        "map_parallelization": bool,
        "noop_elimination": bool,
        "parallel_batch": bool,
        "seq_interleave_prefetch": bool,
        "shuffle_and_repeat_fusion": bool,
    }


class ServiceOptions(_Settings):
    """Options for TensorFlow's data service. They are accepted but have no effect."""

    _types: ClassVar = {"pinned": bool}


class DistributeOptions(_Settings):
    """Options for splitting a dataset over workers. `num_devices` has no effect."""

    _types: ClassVar = {"auto_shard_policy": AutoShardPolicy, "num_devices": int}


class Options(_Settings):
    """Options of datasets. `deterministic = False` lets parallel maps change the order.

    `experimental_distribute` determines how strategies split a dataset. The other options are
    accepted but have no effect.

    >>> options = tf.data.Options()
    >>> options.deterministic = False
    >>> tf.data.Dataset.range(3).with_options(options).options().deterministic
    False
    """

    _types: ClassVar = {
        "autotune": AutotuneOptions,
        "dataset_name": str,
        "deterministic": bool,
        "experimental_distribute": DistributeOptions,
        "experimental_external_state_policy": ExternalStatePolicy,
        "experimental_optimization": OptimizationOptions,
        "experimental_service": ServiceOptions,
        "experimental_slack": bool,
        "experimental_symbolic_checkpoint": bool,
        "experimental_warm_start": bool,
        "framework_type": list,
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
