"""Sums of floats on NumPy, computed as BLAS products with ones where that is faster.

The choice depends on shape and dtype only, so a replay adds in the same order as the traced call.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from retrograde.values.thresholds import MAX_ONES, MIN_PAIRWISE_SUM_SIZE


class Product(NamedTuple):
    """A sum as a matrix product with a vector of ones, which comes first or last.

    The array is reshaped to `matrix_shape`, and the product to `result_shape`. They are `None` if
    no reshape is needed.
    """

    ones: np.ndarray
    ones_first: bool
    matrix_shape: tuple[int, ...] | None
    result_shape: tuple[int, ...] | None


def sum_floats(x: np.ndarray, dtype: np.dtype, axis: tuple[int, ...], keepdims: bool) -> np.ndarray:
    """Returns the sum over `axis` of numbers of `dtype`, which is float32 or float64."""
    product = as_product(x.shape, dtype, axis, keepdims)
    if product is None:
        return np.add.reduce(x, axis=axis, keepdims=keepdims)
    ones, ones_first, matrix_shape, result_shape = product
    if matrix_shape is not None:
        x = x.reshape(matrix_shape)
    y = ones.dot(x) if ones_first else x.dot(ones)
    return y if result_shape is None else y.reshape(result_shape)


@lru_cache(maxsize=1024)
def as_product(
    shape: tuple[int, ...], dtype: np.dtype, axis: tuple[int, ...], keepdims: bool
) -> Product | None:
    """Returns the `Product` that computes a sum, or `None` if `np.add.reduce` has to compute it."""
    ndim, count = len(shape), len(axis)
    size = math.prod([shape[a] for a in axis])
    ones_first = count < ndim and axis == tuple(range(count))
    ones_last = axis == tuple(range(ndim - count, ndim))
    if not (count and (ones_first or ones_last)) or size > (
        MAX_ONES if ones_first else MIN_PAIRWISE_SUM_SIZE
    ):
        return None
    remaining_shape = shape[count:] if ones_first else shape[: ndim - count]
    remaining_size = (math.prod(remaining_shape),) if remaining_shape else ()
    matrix_shape = (size, *remaining_size) if ones_first else (*remaining_size, size)
    keepdims_axes = (1,) * count if keepdims else ()
    if ones_first:
        result_shape = (*keepdims_axes, *remaining_shape)
    else:
        result_shape = (*remaining_shape, *keepdims_axes)
    return Product(
        ones(size, dtype.char),
        ones_first,
        None if matrix_shape == shape else matrix_shape,
        None if result_shape == remaining_size else result_shape,
    )


_shared_ones: dict[str, np.ndarray] = {}


@lru_cache(maxsize=1024)
def ones(count: int, dtype_char: str) -> np.ndarray:
    """Returns `count` ones of the dtype `dtype_char`, a slice of a shared array."""
    row = _shared_ones.get(dtype_char)
    if row is None or row.size < count:
        row = np.ones(max(count, MIN_PAIRWISE_SUM_SIZE), dtype_char)
        row.flags.writeable = False
        _shared_ones[dtype_char] = row
    return row[:count]
