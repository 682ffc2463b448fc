"""Sums of floats on NumPy, computed as BLAS products with ones where that is faster.

The choice depends on shape and dtype only, so a replay adds in the same order as the traced call.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from retrograde.values.thresholds import ONES as _MANY
from retrograde.values.thresholds import PAIRWISE_SUM as _LONG


class Product(NamedTuple):
    """A sum as a matrix product with a vector of ones, which comes first or last.

    `matrix` is the shape to reshape the array to, and `shape` is the shape of the result. They are
    `None` if no reshape is needed.
    """

    ones: np.ndarray
    ones_first: bool
    matrix: tuple[int, ...] | None
    shape: tuple[int, ...] | None


def sum_floats(x: np.ndarray, dtype: np.dtype, axis: tuple[int, ...], keepdims: bool) -> np.ndarray:
    """Returns the sum over `axis` of numbers of `dtype`, which is float32 or float64."""
    product = as_product(x.shape, dtype, axis, keepdims)
    if product is None:
        return np.add.reduce(x, axis=axis, keepdims=keepdims)
    ones, ones_first, matrix, shape = product
    if matrix is not None:
        x = x.reshape(matrix)
    y = ones.dot(x) if ones_first else x.dot(ones)
    return y if shape is None else y.reshape(shape)


@lru_cache(maxsize=1024)
def as_product(
    shape: tuple[int, ...], dtype: np.dtype, axis: tuple[int, ...], keepdims: bool
) -> Product | None:
    """Returns the sum of such an array as a `Product`, or `None` if `add.reduce` is faster."""
    ndim, count = len(shape), len(axis)
    size = math.prod([shape[a] for a in axis])
    ones_first = count < ndim and axis == tuple(range(count))
    ones_last = axis == tuple(range(ndim - count, ndim))
    if not (count and (ones_first or ones_last)) or size > (_MANY if ones_first else _LONG):
        return None
    others = shape[count:] if ones_first else shape[: ndim - count]
    rest = [math.prod(others)] if others else []
    matrix = (size, *rest) if ones_first else (*rest, size)
    kept = [1] * count if keepdims else []
    result = (*kept, *others) if ones_first else (*others, *kept)
    return Product(
        ones(size, dtype.char),
        ones_first,
        None if matrix == shape else matrix,
        None if result == tuple(rest) else result,
    )


_shared_ones: dict[str, np.ndarray] = {}


@lru_cache(maxsize=1024)
def ones(count: int, kind: str) -> np.ndarray:
    """Returns `count` ones of the dtype with the character `kind`, a slice of a shared array."""
    row = _shared_ones.get(kind)
    if row is None or row.size < count:
        row = np.ones(max(count, _LONG), kind)
        row.flags.writeable = False
        _shared_ones[kind] = row
    return row[:count]
