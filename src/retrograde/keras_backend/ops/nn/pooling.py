"""Pooling over windows, or to a given size."""

import functools

import numpy as np

from retrograde.core.apply import apply
from retrograde.core.tensor import Tensor
from retrograde.keras_backend.conversion import convert_to_tensor
from retrograde.keras_backend.ops._inputs import inexact
from retrograde.keras_backend.ops.nn._windows import Space
from retrograde.ops import pooling, reduction
from retrograde.ops.indexing import gather
from retrograde.ops.resampling import Weights, resample


def max_pool(inputs, pool_size, strides=None, padding="valid", data_format=None):
    """The largest cell of each window."""
    return _pooled(
        pooling.max_pool, convert_to_tensor(inputs), pool_size, strides, padding, data_format
    )


def average_pool(inputs, pool_size, strides=None, padding="valid", data_format=None):
    """The average of the cells in each window; padding does not count."""
    return _pooled(pooling.average_pool, inexact(inputs), pool_size, strides, padding, data_format)


def _pooled(primitive, x, size, strides, padding, data_format):
    space = Space(x, data_format)
    windows = space.windows(size, size if strides is None else strides, padding)
    return space.from_last(apply(primitive, (space.to_last(),), {"windows": windows}))


def adaptive_average_pool(inputs, output_size, data_format=None):
    """Averages over windows such that there are `output_size` of them along the axes of space."""
    return _adapted(_average_along, inexact(inputs), output_size, data_format)


def adaptive_max_pool(inputs, output_size, data_format=None):
    """The largest cells of windows such that there are `output_size` of them."""
    return _adapted(_max_along, convert_to_tensor(inputs), output_size, data_format)


def _adapted(along, x, output_size, data_format):
    space = Space(x, data_format)
    first = 2 if space.channels_first else 1
    sizes = zip(space.sizes, space.along_axes(output_size), strict=True)
    for axis, (old, new) in enumerate(sizes, first):
        x = along(x, axis, old, new)
    return x


def _average_along(x, axis, old, new):
    return resample(x, axis=axis, weights=_averages(old, new))


def _max_along(x, axis, old, new):
    places = Tensor(_cells(old, new)[0])
    seen = gather(x, places, axis=axis)
    return apply(reduction.max, (seen,), {"axis": (axis + 1,), "keepdims": False})


@functools.lru_cache(maxsize=64)
def _cells(old, new):
    """The cells in each of `new` windows over `old`, and which count.

    Windows differ in size, by one at most. Where one is smaller, its last cell stands twice.
    """
    index = np.arange(new)
    starts, stops = index * old // new, -(-(index + 1) * old // new)
    places = starts[:, None] + np.arange((stops - starts).max())
    return np.minimum(places, stops[:, None] - 1), places < stops[:, None]


@functools.lru_cache(maxsize=64)
def _averages(old, new):
    places, counted = _cells(old, new)
    return Weights(places, counted / counted.sum(1, keepdims=True), old)
