"""tf.experimental.numpy.random: NumPy's random functions, as float64 and int64."""

from __future__ import annotations

from typing import Any

import numpy as np

from retrograde._api.lazy import from_all
from retrograde.core.tensor import Tensor
from retrograde.experimental.numpy._inputs import FLOAT, tensor_of
from retrograde.experimental.numpy.dtypes import common_dtype
from retrograde.ops.arguments import shape_from
from retrograde.random import stateful
from retrograde.values.arguments import as_int, shown
from retrograde.values.shapes import broadcast

__all__ = [
    "poisson",
    "rand",
    "randint",
    "randn",
    "random",
    "seed",
    "standard_normal",
    "uniform",
]

__getattr__, __dir__ = from_all(__name__)


def seed(s: int) -> None:
    """Restarts the random numbers, like `tf.random.set_seed`."""
    try:
        number = as_int(s, "seed: `s`")
    except TypeError:
        raise ValueError(f"seed: expected an integer. Received: {shown(s)}.") from None
    stateful.set_seed(number)


def _sizes(size: Any, op_name: str) -> tuple[int, ...]:
    return () if size is None else shape_from(size, op_name)


def standard_normal(size: Any = None) -> Tensor:
    """Draws standard normal random numbers."""
    return stateful.normal(_sizes(size, "standard_normal"), dtype=FLOAT)


def randn(*args: int) -> Tensor:
    """Draws standard normal random numbers.

    >>> tf.experimental.numpy.random.randn(2, 3).shape
    TensorShape([2, 3])
    """
    return standard_normal(args)


def uniform(low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Tensor:
    """Draws uniform random numbers in [`low`, `high`)."""
    first, last = tensor_of(low, FLOAT), tensor_of(high, FLOAT)
    common = broadcast(first._spec.shape, last._spec.shape)
    if common is None:
        raise ValueError(
            f"uniform: the shapes of low and high must broadcast. Received: {first._spec.shape} "
            f"and {last._spec.shape}."
        )
    shape = common if size is None else _sizes(size, "uniform")
    return stateful.uniform(shape, first, last, FLOAT)


def random(size: Any = None) -> Tensor:
    """Draws uniform random numbers in [0, 1)."""
    return uniform(size=() if size is None else size)


def rand(*size: int) -> Tensor:
    """Draws uniform random numbers in [0, 1)."""
    return uniform(size=size)


def poisson(lam: Any = 1.0, size: Any = None) -> Tensor:
    """Draws `size` random numbers from the Poisson distribution of each rate `lam`."""
    return stateful.poisson(_sizes(size, "poisson"), tensor_of(lam), np.dtype(np.int64))


def randint(low: Any, high: Any = None, size: Any = None, dtype: Any = np.int64) -> Tensor:
    """Draws uniform random integers in [`low`, `high`), or in [0, `low`)."""
    end = as_int(low, "randint: `low`")
    first, last = (0, end) if high is None else (end, high)
    numpy_type = common_dtype(dtype)
    if numpy_type not in (np.dtype(np.int32), np.dtype(np.int64)):
        raise ValueError(f"randint: `dtype` must be int32 or int64. Received: {numpy_type.name}.")
    return stateful.uniform(_sizes(size, "randint"), first, last, numpy_type)
