"""tf.experimental.numpy.random: random numbers under NumPy's names, as float64 and int64."""

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
    """Starts the random numbers anew, as `tf.random.set_seed` does."""
    try:
        number = as_int(s, "seed: `s`")
    except TypeError:
        raise ValueError(f"seed: expected an integer. Received: {shown(s)}.") from None
    stateful.set_seed(number)


def _sizes(size: Any, op_name: str) -> tuple[int, ...]:
    return () if size is None else shape_from(size, op_name)


def standard_normal(size: Any = None) -> Tensor:
    """Random numbers from a normal distribution with mean 0 and variance 1."""
    return stateful.normal(_sizes(size, "standard_normal"), dtype=FLOAT)


def randn(*args: int) -> Tensor:
    """Random numbers from a normal distribution with mean 0 and variance 1.

    >>> tf.experimental.numpy.random.randn(2, 3).shape
    TensorShape([2, 3])
    """
    return standard_normal(args)


def uniform(low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Tensor:
    """Random numbers from `low` up to but without `high`, all equally likely."""
    first, last = tensor_of(low, FLOAT), tensor_of(high, FLOAT)
    ends = broadcast(first._spec.shape, last._spec.shape)
    if ends is None:
        raise ValueError(
            f"uniform: the ends have shapes {first._spec.shape} and {last._spec.shape}, which "
            "cannot be broadcast to one."
        )
    shape = ends if size is None else _sizes(size, "uniform")
    return stateful.uniform(shape, first, last, FLOAT)


def random(size: Any = None) -> Tensor:
    """Random numbers from 0 up to but without 1, all equally likely."""
    return uniform(size=() if size is None else size)


def rand(*size: int) -> Tensor:
    """Random numbers from 0 up to but without 1, all equally likely."""
    return uniform(size=size)


def poisson(lam: Any = 1.0, size: Any = None) -> Tensor:
    """Random numbers of events, `size` of them for each rate `lam`."""
    return stateful.poisson(_sizes(size, "poisson"), tensor_of(lam), np.dtype(np.int64))


def randint(low: Any, high: Any = None, size: Any = None, dtype: Any = np.int64) -> Tensor:
    """Random integers from `low`, or from 0, up to but without the end, all equally likely."""
    end = as_int(low, "randint: `low`")
    first, last = (0, end) if high is None else (end, high)
    wanted = common_dtype(dtype)
    if wanted not in (np.dtype(np.int32), np.dtype(np.int64)):
        raise ValueError(f"randint: `dtype` must be int32 or int64. Received: {wanted.name}.")
    return stateful.uniform(_sizes(size, "randint"), first, last, wanted)
