"""Indexing, sorting, searching, counting and quantiles."""

from __future__ import annotations

import builtins
import math

import numpy as np

import retrograde as tf
from retrograde.core.apply import apply
from retrograde.core.tensor import Tensor
from retrograde.keras_backend.ops._inputs import (
    INT32,
    INT64,
    at_least_float32,
    booleans,
    canonicalize_axis,
    inexact,
    numeric,
    numeric_pair,
    of_dtype,
    pair,
    promote,
    shape_of,
    tensor,
    to_int,
    to_ints,
)
from retrograde.keras_backend.ops.numpy.manipulation import axes_to_end, moveaxis, ravel
from retrograde.keras_backend.ops.numpy.reductions import all, any, max, min, sum
from retrograde.numpy_functions import shaping as shared
from retrograde.ops import arithmetic as ar
from retrograde.ops import indexing, shaping, sorting
from retrograde.ops.casting import to_dtype
from retrograde.ops.elementary import ceil, floor, rint
from retrograde.values.arguments import shown

# Indexing


def _integer(indices):
    """Converts indices to a supported index dtype."""
    i = tensor(indices)
    return i if i._spec.dtype in (INT32, INT64) else to_dtype(i, INT32)


def take(x, indices, axis=None):
    x = tensor(x)
    if axis is None:
        x, axis = ravel(x), 0
    axis = canonicalize_axis(axis, x.ndim, "take")
    indices = indexing.wrap_indices(_integer(indices), size=x._spec.shape[axis])
    return indexing.gather(x, indices, axis=axis)


def take_along_axis(x, indices, axis=None):
    x, i = tensor(x), tensor(indices)
    if axis is None:
        x, axis = ravel(x), 0
    return shared.take_along_axis(x, _integer(i), axis, ValueError)


def unravel_index(indices, shape):
    i, sizes = tensor(indices), to_ints(shape)
    i = apply(indexing.wrap_indices, (i,), {"size": math.prod(sizes)})
    indices = []
    for n in reversed(sizes):
        n = Tensor(i._spec.dtype.type(n))
        indices.append(ar.mod(i, n))
        i = ar.floor_divide(i, n)
    return tuple(reversed(indices))


# Selection by condition


def where(condition, x1=None, x2=None):
    if x1 is None or x2 is None:
        return nonzero(condition)
    x1, x2 = pair(x1, x2)
    return apply(ar.select, (booleans(condition), x1, x2))


def nonzero(x):
    indices = tf.where(booleans(x))
    return tuple(shaping.unstack(to_dtype(indices, INT32), axis=1))


def isin(x1, x2, assume_unique=False, invert=False):
    x1, x2 = pair(x1, x2)
    results = apply(sorting.is_in, (x1, ravel(x2)))
    return ar.logical_not(results) if invert else results


# Sorting and searching


def argsort(x, axis=-1):
    x = numeric(x)
    if axis is None or not x.ndim:
        x, axis = ravel(x), 0
    axis = canonicalize_axis(axis, x.ndim, "argsort")
    return apply(indexing.argsort, (x,), {"axis": axis, "descending": False})


def sort(x, axis=-1):
    x, axis = (ravel(x), 0) if axis is None else (tensor(x), axis)
    return take_along_axis(x, argsort(x, axis), axis)


def argpartition(x, kth, axis=-1):
    """Returns a full argsort, which is a partition at every `kth`."""
    return argsort(x, axis)


def searchsorted(sorted_sequence, values, side="left"):
    sequence, values = numeric_pair(sorted_sequence, values)
    if sequence.ndim != 1:
        raise ValueError(
            "`searchsorted` only supports 1-D sorted sequences. You can use "
            "`keras.ops.vectorized_map` to extend it to N-D sequences. Received: "
            f"sorted_sequence.shape={shape_of(sequence)}"
        )
    return apply(sorting.search_sorted, (sequence, values), {"side": side, "dtype": INT32})


def digitize(x, bins):
    """Returns the index of the bin of each element. `bins` may ascend or descend."""
    x, bins = numeric_pair(x, bins)
    count = bins._spec.shape[0]
    ascending = searchsorted(bins, x, side="right")
    if count < 2:
        return ascending
    above = searchsorted(shaping.reverse(bins, axis=(0,)), x, side="right")
    descending = Tensor(np.int32(count)) - above
    return ar.select(bins[0] <= bins[-1], ascending, descending)


def unique(
    x,
    sorted=True,
    return_index=False,
    return_inverse=False,
    return_counts=False,
    axis=None,
    size=None,
    fill_value=None,
):
    """Returns the sorted unique elements, or slices along `axis`.

    If `size` is given, the result is padded with `fill_value` or truncated to that length.
    """
    x = tensor(x)
    along = 0 if axis is None else canonicalize_axis(axis, x.ndim, "unique")
    values, first, inverse, counts = np.unique(
        np.asarray(x),
        return_index=True,
        return_inverse=True,
        return_counts=True,
        axis=axis,
        equal_nan=False,
    )
    if size is not None:
        fill = 0 if fill_value is None else fill_value
        values = _fit_length(values, size, along, fill)
        first, counts = _fit_length(first, size, 0, 1), _fit_length(counts, size, 0, 0)
    results = [Tensor(values)]
    outputs = ((return_index, first), (return_inverse, inverse), (return_counts, counts))
    results += [Tensor(part.astype(np.int32)) for requested, part in outputs if requested]
    return results[0] if len(results) == 1 else tuple(results)


def _fit_length(array, length, axis, fill):
    array = array.take(np.arange(builtins.min(length, array.shape[axis])), axis)
    padding = [(0, 0)] * array.ndim
    padding[axis] = (0, length - array.shape[axis])
    return np.pad(array, padding, constant_values=fill)


# Counting


def bincount(x, weights=None, minlength=0, sparse=False):
    """Counts the occurrences of each integer, per row, or sums their weights.

    The length of the result is `max(x) + 1`, but at least `minlength`.
    """
    if sparse:
        raise ValueError("Unsupported value `sparse=True` with the retrograde backend.")
    x = tensor(x)
    shape = shape_of(x)
    w = Tensor(np.ones(shape, INT32)) if weights is None else promote(x, weights)[1]
    x = to_dtype(x, INT64)
    largest = int(max(x)) if x._spec.size else -1
    length = builtins.max(to_int(minlength), largest + 1)
    count = math.prod(shape[:-1])
    starts = Tensor((np.arange(count) * length).reshape((*shape[:-1], 1)))
    y = indexing.scatter_add(ravel(w), ravel(x + starts), shape=(count * length,))
    return shaping.reshape(y, shape=(*shape[:-1], length))


def histogram(x, bins=10, range=None):
    """Returns the counts in `bins` equal intervals, and the bin edges."""
    x = ravel(inexact(x))
    dtype = x._spec.dtype
    if range is None:
        low, high = (min(x), max(x)) if x._spec.size else (tensor(0.0), tensor(1.0))
        low, high = to_dtype(low, dtype), to_dtype(high, dtype)
        is_exact = ar.equal(low, high)
        half = Tensor(dtype.type(0.5))
        low, high = ar.select(is_exact, low - half, low), ar.select(is_exact, high + half, high)
    else:
        low, high = (Tensor(dtype.type(end)) for end in range)
    steps = Tensor(np.linspace(0, 1, bins + 1).astype(dtype))
    edges = low + (high - low) * steps
    index = searchsorted(edges, x, side="right") - 1
    index = ar.select(ar.equal(x, high), Tensor(np.int32(bins - 1)), index)
    inside = ar.logical_and(x >= low, x <= high)
    index = ar.select(inside, index, Tensor(np.int32(bins)))
    ones = Tensor(np.ones(shape_of(x), INT32))
    counts = indexing.scatter_add(ones, index, shape=(bins + 1,))
    return shaping.take_slice(counts, where=((0, bins, 1),)), edges


# Quantiles


def _quantiles(ignore_nan, scale):
    return lambda x, q, axis=None, method="linear", keepdims=False: _quantile(
        x, q, axis, method, keepdims, ignore_nan, scale
    )


quantile = _quantiles(ignore_nan=False, scale=1)
percentile = _quantiles(ignore_nan=False, scale=100)
nanquantile = _quantiles(ignore_nan=True, scale=1)
nanpercentile = _quantiles(ignore_nan=True, scale=100)


def median(x, axis=None, keepdims=False):
    return quantile(x, 0.5, axis, "linear", keepdims)


def nanmedian(x, axis=None, keepdims=False):
    return nanquantile(x, 0.5, axis, "linear", keepdims)


def _quantile(x, q, axis, method, keepdims, ignore_nan, scale):
    """Computes the quantiles `q / scale`.

    NaN sorts last and makes the result NaN, unless `ignore_nan` excludes it.
    """
    x_in = inexact(x)
    x, axes = axes_to_end(at_least_float32(x_in), axis, "quantile")
    fractions = of_dtype(q, x._spec.dtype)
    fractions = fractions / float(scale) if scale != 1 else fractions
    shape = shape_of(fractions)
    is_nan = ar.is_nan(x)
    last = x.ndim - 1
    present = to_dtype(ar.logical_not(is_nan), x._spec.dtype)
    count = sum(present, -1, True) if ignore_nan else Tensor(x._spec.dtype.type(x.shape[-1]))
    top = ar.maximum(count - 1, tf.zeros_like(count))
    y = _interpolate_sorted(sort(x, -1), top * ravel(fractions), method)
    nan = Tensor(x._spec.dtype.type(np.nan))
    is_nan_result = (all if ignore_nan else any)(is_nan, -1, True)
    y = ar.select(is_nan_result, nan, y)
    y = shaping.reshape(y, shape=(*y._spec.shape[:-1], *shape))
    y = moveaxis(y, tuple(range(last, y.ndim)), tuple(range(len(shape))))
    if keepdims:
        sizes = [1 if i in axes else n for i, n in enumerate(x_in._spec.shape)]
        y = shaping.reshape(y, shape=(*shape, *sizes))
    return to_dtype(y, x_in._spec.dtype)


def _interpolate_sorted(x, position, method):
    """Interpolates the sorted `x` at the fractional `position` along the last axis."""
    low, high = floor(position), ceil(position)
    if method == "nearest":
        return _take_at(x, rint(position))
    if method == "lower":
        return _take_at(x, low)
    if method == "higher":
        return _take_at(x, high)
    below, above = _take_at(x, low), _take_at(x, high)
    if method == "midpoint":
        return (below + above) * 0.5
    if method != "linear":
        raise ValueError(
            "quantile: `method` must be 'linear', 'lower', 'higher', 'midpoint' or 'nearest'. "
            f"Received: {shown(method)}."
        )
    mixed = below + (above - below) * (position - low)
    return ar.select(ar.equal(position, low), below, mixed)  # avoids Inf - Inf


def _take_at(x, position):
    index = to_dtype(position, INT32)
    if index.ndim < x.ndim:
        index = shaping.reshape(index, shape=(1,) * (x.ndim - index.ndim) + shape_of(index))
    return shared.take_along_last(x, index)
