"""Pooling over windows, and adaptive pooling."""

import functools

import numpy as np

from retrograde.core.apply import apply
from retrograde.core.tensor import Tensor
from retrograde.keras_backend.conversion import convert_to_tensor
from retrograde.keras_backend.ops._inputs import inexact
from retrograde.keras_backend.ops.nn._windows import SpatialInput
from retrograde.ops import pooling, reduction
from retrograde.ops.indexing import gather
from retrograde.ops.resampling import Weights, resample


def max_pool(inputs, pool_size, strides=None, padding="valid", data_format=None):
    """Computes the maximum of each window."""
    return _pool(
        pooling.max_pool, convert_to_tensor(inputs), pool_size, strides, padding, data_format
    )


def average_pool(inputs, pool_size, strides=None, padding="valid", data_format=None):
    """Computes the average of each window; padding does not count."""
    return _pool(pooling.average_pool, inexact(inputs), pool_size, strides, padding, data_format)


def _pool(primitive, x, size, strides, padding, data_format):
    space = SpatialInput(x, data_format)
    windows = space.windows(size, size if strides is None else strides, padding)
    return space.restore_format(apply(primitive, (space.channels_last(),), {"windows": windows}))


def adaptive_average_pool(inputs, output_size, data_format=None):
    """Averages over `output_size` windows that cover the spatial axes."""
    return _adaptive_pool(_average_along, inexact(inputs), output_size, data_format)


def adaptive_max_pool(inputs, output_size, data_format=None):
    """Takes the maximum over `output_size` windows that cover the spatial axes."""
    return _adaptive_pool(_max_along, convert_to_tensor(inputs), output_size, data_format)


def _adaptive_pool(pool_along, x, output_size, data_format):
    space = SpatialInput(x, data_format)
    first = 2 if space.channels_first else 1
    sizes = zip(space.sizes, space.per_axis(output_size), strict=True)
    for axis, (old_size, new_size) in enumerate(sizes, first):
        x = pool_along(x, axis, old_size, new_size)
    return x


def _average_along(x, axis, old_size, new_size):
    return resample(x, axis=axis, weights=_averages(old_size, new_size))


def _max_along(x, axis, old_size, new_size):
    indices = Tensor(_window_indices(old_size, new_size)[0])
    windows = gather(x, indices, axis=axis)
    return apply(reduction.max, (windows,), {"axis": (axis + 1,), "keepdims": False})


@functools.lru_cache(maxsize=64)
def _window_indices(old_size, new_size):
    """Returns the indices of the cells in each window, and which of them are valid.

    Window sizes differ by at most one. Smaller windows repeat their last cell.
    """
    index = np.arange(new_size)
    starts, stops = index * old_size // new_size, -(-(index + 1) * old_size // new_size)
    indices = starts[:, None] + np.arange((stops - starts).max())
    return np.minimum(indices, stops[:, None] - 1), indices < stops[:, None]


@functools.lru_cache(maxsize=64)
def _averages(old_size, new_size):
    indices, valid = _window_indices(old_size, new_size)
    return Weights(indices, valid / valid.sum(1, keepdims=True), old_size)
