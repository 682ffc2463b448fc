"""Initializers: objects that create the initial value of a variable of a given shape."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from retrograde import random
from retrograde.core.tensor import Tensor
from retrograde.toplevel.creation import constant, ones, zeros
from retrograde.values import dtypes
from retrograde.values.arguments import expect

_PARTITION_OPTIONS = ("partition_shape", "partition_offset")


class _Initializer:
    """Base class of initializers, which can be rebuilt from their configuration."""

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments of this initializer."""
        return {}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """Creates an initializer from its configuration; a dtype in it is dropped."""
        expect(config, Mapping, "from_config", "a dict")
        return cls(**{key: value for key, value in config.items() if key != "dtype"})


def _shape(shape: Any, options: dict[str, Any]) -> Any:
    """Returns the shape to create: `shape`, or `partition_shape` for a part of a variable."""
    for option in options:
        if option not in _PARTITION_OPTIONS:
            raise TypeError(
                f"initializer: unexpected keyword argument {option!r}. Expected one of "
                f"{', '.join(map(repr, _PARTITION_OPTIONS))}."
            )
    return options.get("partition_shape", shape)


def _check_dtype(dtype: Any, allowed: frozenset, expected: str) -> dtypes.DType:
    checked = dtypes.as_dtype(dtype)
    if checked.numpy_dtype not in allowed:
        raise ValueError(f"initializer: expected {expected}. Received: {checked.name}.")
    return checked


_NUMERIC_OR_BOOL = dtypes.NUMERIC | dtypes.BOOL


class zeros_initializer(_Initializer):
    """Creates zeros.

    >>> tf.zeros_initializer()([2]).numpy()
    array([0., 0.], dtype=float32)
    """

    def __call__(self, shape: Any, dtype: Any = dtypes.float32, **kwargs: Any) -> Tensor:
        """Returns zeros of this shape."""
        checked = _check_dtype(dtype, _NUMERIC_OR_BOOL, "a numeric or bool dtype")
        return zeros(_shape(shape, kwargs), checked)


class ones_initializer(_Initializer):
    """Creates ones.

    >>> tf.ones_initializer()([2], tf.int32).numpy()
    array([1, 1], dtype=int32)
    """

    def __call__(self, shape: Any, dtype: Any = dtypes.float32, **kwargs: Any) -> Tensor:
        """Returns ones of this shape."""
        checked = _check_dtype(dtype, _NUMERIC_OR_BOOL, "a numeric or bool dtype")
        return ones(_shape(shape, kwargs), checked)


class constant_initializer(_Initializer):
    """Creates a constant: one value repeated, or the elements of a list in the shape.

    >>> tf.constant_initializer([1.0, 2.0, 3.0, 4.0])([2, 2]).numpy()
    array([[1., 2.],
           [3., 4.]], dtype=float32)
    """

    def __init__(self, value: Any = 0, support_partition: bool = False) -> None:
        if not (np.isscalar(value) or isinstance(value, (list, tuple, np.ndarray))):
            raise TypeError(
                "constant_initializer: expected a Python scalar, a list or tuple of values, or an "
                f"array. Received: a {type(value).__name__}."
            )
        self.value = value
        self.support_partition = support_partition

    def __call__(self, shape: Any, dtype: Any = None, **kwargs: Any) -> Tensor:
        """Returns the value in this shape, in its own dtype unless `dtype` is given."""
        _shape(shape, kwargs)
        if kwargs and not self.support_partition:
            raise ValueError(
                "constant_initializer: partitioned variables require support_partition=True. "
                f"Received: {', '.join(kwargs)}."
            )
        return constant(self.value, dtype, shape)

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments of this initializer."""
        return {"value": self.value}


class _RandomInitializer(_Initializer):
    """Base class of random initializers; with a seed, every call draws the same numbers."""

    def __init__(self, seed: int | None) -> None:
        self.seed = seed

    def _draw(self, name: str, *args: Any, dtype: dtypes.DType) -> Tensor:
        shape, *parameters = args
        if self.seed is None:
            return getattr(random, name)(shape, *parameters, dtype=dtype)
        return getattr(random, f"stateless_{name}")(shape, [self.seed, 0], *parameters, dtype=dtype)


class random_normal_initializer(_RandomInitializer):
    """Creates normal random numbers. With a `seed`, every call returns the same numbers.

    >>> tf.random_normal_initializer(stddev=0.1, seed=1)([2, 3]).shape
    TensorShape([2, 3])
    """

    def __init__(self, mean: Any = 0.0, stddev: Any = 0.05, seed: int | None = None) -> None:
        super().__init__(seed)
        self.mean = mean
        self.stddev = stddev

    def __call__(self, shape: Any, dtype: Any = dtypes.float32, **kwargs: Any) -> Tensor:
        """Returns normal random numbers of this shape."""
        checked = _check_dtype(dtype, dtypes.FLOATING, "a floating point dtype")
        return self._draw("normal", _shape(shape, kwargs), self.mean, self.stddev, dtype=checked)

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments of this initializer."""
        return {"mean": self.mean, "stddev": self.stddev, "seed": self.seed}


class random_uniform_initializer(_RandomInitializer):
    """Creates uniform random numbers in [`minval`, `maxval`).

    With a `seed`, every call returns the same numbers.

    >>> tf.random_uniform_initializer(1, 5, seed=1)([2, 3], tf.int32).shape
    TensorShape([2, 3])
    """

    def __init__(self, minval: Any = -0.05, maxval: Any = 0.05, seed: int | None = None) -> None:
        super().__init__(seed)
        self.minval = minval
        self.maxval = maxval

    def __call__(self, shape: Any, dtype: Any = dtypes.float32, **kwargs: Any) -> Tensor:
        """Returns uniform random numbers of this shape."""
        allowed = dtypes.FLOATING | dtypes.INTEGER
        checked = _check_dtype(dtype, allowed, "a floating point or integer dtype")
        shape = _shape(shape, kwargs)
        return self._draw("uniform", shape, self.minval, self.maxval, dtype=checked)

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments of this initializer."""
        return {"minval": self.minval, "maxval": self.maxval, "seed": self.seed}
