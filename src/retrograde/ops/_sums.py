"""Sums on NumPy. Many are quickest as a product with ones, which BLAS computes.

Whether one is depends on its shape and dtype alone, so that a replay adds in the same order as the
call that it repeats.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from retrograde.values.thresholds import ONES as _MANY
from retrograde.values.thresholds import PAIRWISE_SUM as _LONG


class Product(NamedTuple):
    """A sum as a product: the array as a `matrix`, with the ones in front of it or behind.

    `matrix` and `shape`, that of the result, are `None` where they are so already.
    """

    ones: np.ndarray
    in_front: bool
    matrix: tuple[int, ...] | None
    shape: tuple[int, ...] | None


def total(x: np.ndarray, dtype: np.dtype, axis: tuple[int, ...], keepdims: bool) -> np.ndarray:
    """The sum over `axis` of numbers of `dtype`, which is float32 or float64."""
    product = as_product(x.shape, dtype, axis, keepdims)
    if product is None:
        return np.add.reduce(x, axis=axis, keepdims=keepdims)
    ones, in_front, matrix, shape = product
    if matrix is not None:
        x = x.reshape(matrix)
    y = ones.dot(x) if in_front else x.dot(ones)
    return y if shape is None else y.reshape(shape)


@lru_cache(maxsize=1024)
def as_product(
    shape: tuple[int, ...], dtype: np.dtype, axis: tuple[int, ...], keepdims: bool
) -> Product | None:
    """The sum of an array of this shape as a product; `None` if it is better added up."""
    ndim, count = len(shape), len(axis)
    size = math.prod([shape[a] for a in axis])
    in_front = count < ndim and axis == tuple(range(count))
    behind = axis == tuple(range(ndim - count, ndim))
    if not (count and (in_front or behind)) or size > (_MANY if in_front else _LONG):
        return None
    others = shape[count:] if in_front else shape[: ndim - count]
    rest = [math.prod(others)] if others else []
    matrix = (size, *rest) if in_front else (*rest, size)
    kept = [1] * count if keepdims else []
    result = (*kept, *others) if in_front else (*others, *kept)
    return Product(
        ones(size, dtype.char),
        in_front,
        None if matrix == shape else matrix,
        None if result == tuple(rest) else result,
    )


_rows: dict[str, np.ndarray] = {}


@lru_cache(maxsize=1024)
def ones(count: int, kind: str) -> np.ndarray:
    """So many ones of the dtype with the character `kind`: a part of one row that all share."""
    row = _rows.get(kind)
    if row is None or row.size < count:
        row = np.ones(max(count, _LONG), kind)
        row.flags.writeable = False
        _rows[kind] = row
    return row[:count]
