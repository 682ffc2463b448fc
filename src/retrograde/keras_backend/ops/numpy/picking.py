"""Picking elements by place, by order or by truth; counting; quantiles."""

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
    axis_of,
    booleans,
    inexact,
    number_pair,
    numbers,
    of_dtype,
    pair,
    promoted,
    shape_of,
    single,
    tensor,
    whole,
    wholes,
)
from retrograde.keras_backend.ops.numpy.reductions import all, any, max, min, sum
from retrograde.keras_backend.ops.numpy.shaping import axes_to_end, moveaxis, ravel
from retrograde.numpy_functions import shaping as shared
from retrograde.ops import arithmetic as ar
from retrograde.ops import indexing, shaping, sorting
from retrograde.ops.casting import to_dtype
from retrograde.ops.elementary import ceil, floor, rint
from retrograde.values.arguments import shown

# By place


def _integer(indices):
    """Indices of a dtype that can index."""
    i = tensor(indices)
    return i if i._spec.dtype in (INT32, INT64) else to_dtype(i, INT32)


def take(x, indices, axis=None):
    x = tensor(x)
    if axis is None:
        x, axis = ravel(x), 0
    at = axis_of(axis, x.ndim, "take")
    places = indexing.from_front(_integer(indices), size=x._spec.shape[at])
    return indexing.gather(x, places, axis=at)


def take_along_axis(x, indices, axis=None):
    x, i = tensor(x), tensor(indices)
    if axis is None:
        x, axis = ravel(x), 0
    return shared.take_along_axis(x, _integer(i), axis, ValueError)


def unravel_index(indices, shape):
    i, sizes = tensor(indices), wholes(shape)
    i = apply(indexing.from_front, (i,), {"size": math.prod(sizes)})
    places = []
    for n in reversed(sizes):
        n = Tensor(i._spec.dtype.type(n))
        places.append(ar.mod(i, n))
        i = ar.floor_divide(i, n)
    return tuple(reversed(places))


# By truth


def where(condition, x1=None, x2=None):
    if x1 is None or x2 is None:
        return nonzero(condition)
    x1, x2 = pair(x1, x2)
    return apply(ar.select, (booleans(condition), x1, x2))


def nonzero(x):
    places = tf.where(booleans(x))
    return tuple(shaping.unstack(to_dtype(places, INT32), axis=1))


def isin(x1, x2, assume_unique=False, invert=False):
    x1, x2 = pair(x1, x2)
    found = apply(sorting.is_in, (x1, ravel(x2)))
    return ar.logical_not(found) if invert else found


# By order


def argsort(x, axis=-1):
    x = numbers(x)
    if axis is None or not x.ndim:
        x, axis = ravel(x), 0
    at = axis_of(axis, x.ndim, "argsort")
    return apply(indexing.argsort, (x,), {"axis": at, "descending": False})


def sort(x, axis=-1):
    x, axis = (ravel(x), 0) if axis is None else (tensor(x), axis)
    return take_along_axis(x, argsort(x, axis), axis)


def argpartition(x, kth, axis=-1):
    """The places in order: what has no order left to find is parted at any place."""
    return argsort(x, axis)


def searchsorted(sorted_sequence, values, side="left"):
    sequence, values = number_pair(sorted_sequence, values)
    if sequence.ndim != 1:
        raise ValueError(
            "`searchsorted` only supports 1-D sorted sequences. You can use "
            "`keras.ops.vectorized_map` to extend it to N-D sequences. Received: "
            f"sorted_sequence.shape={shape_of(sequence)}"
        )
    return apply(sorting.insertion_places, (sequence, values), {"side": side, "dtype": INT32})


def digitize(x, bins):
    """Which of the intervals between `bins`, which ascend or descend, each element is in."""
    x, bins = number_pair(x, bins)
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
    """The distinct elements, or slices along `axis`, in order; their number is not known before.

    With `size` there are so many: what is missing is filled up, what is too much is left out.
    """
    x = tensor(x)
    along = 0 if axis is None else axis_of(axis, x.ndim, "unique")
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
        values = _of_length(values, size, along, fill)
        first, counts = _of_length(first, size, 0, 1), _of_length(counts, size, 0, 0)
    found = [Tensor(values)]
    wanted = ((return_index, first), (return_inverse, inverse), (return_counts, counts))
    found += [Tensor(part.astype(np.int32)) for asked, part in wanted if asked]
    return found[0] if len(found) == 1 else tuple(found)


def _of_length(array, length, axis, fill):
    array = array.take(np.arange(builtins.min(length, array.shape[axis])), axis)
    missing = [(0, 0)] * array.ndim
    missing[axis] = (0, length - array.shape[axis])
    return np.pad(array, missing, constant_values=fill)


# Counting


def bincount(x, weights=None, minlength=0, sparse=False):
    """How often each number is there, in each row if there are several; or its weights, summed.

    The result is as long as the largest number asks for, but at least `minlength`.
    """
    if sparse:
        raise ValueError("Unsupported value `sparse=True` with the retrograde backend.")
    x = tensor(x)
    shape = shape_of(x)
    w = Tensor(np.ones(shape, INT32)) if weights is None else promoted(x, weights)[1]
    x = to_dtype(x, INT64)
    largest = int(max(x)) if x._spec.size else -1
    length = builtins.max(whole(minlength), largest + 1)
    count = math.prod(shape[:-1])
    starts = Tensor((np.arange(count) * length).reshape((*shape[:-1], 1)))
    y = indexing.scatter_add(ravel(w), ravel(x + starts), shape=(count * length,))
    return shaping.reshape(y, shape=(*shape[:-1], length))


def histogram(x, bins=10, range=None):
    """How many elements are in each of `bins` intervals, and the ends of these."""
    x = ravel(inexact(x))
    own = x._spec.dtype
    if range is None:
        low, high = (min(x), max(x)) if x._spec.size else (tensor(0.0), tensor(1.0))
        low, high = to_dtype(low, own), to_dtype(high, own)
        same = ar.equal(low, high)
        half = Tensor(own.type(0.5))
        low, high = ar.select(same, low - half, low), ar.select(same, high + half, high)
    else:
        low, high = (Tensor(own.type(end)) for end in range)
    steps = Tensor(np.linspace(0, 1, bins + 1).astype(own))
    edges = low + (high - low) * steps
    place = searchsorted(edges, x, side="right") - 1
    place = ar.select(ar.equal(x, high), Tensor(np.int32(bins - 1)), place)
    inside = ar.logical_and(x >= low, x <= high)
    place = ar.select(inside, place, Tensor(np.int32(bins)))
    ones = Tensor(np.ones(shape_of(x), INT32))
    counts = indexing.scatter_add(ones, place, shape=(bins + 1,))
    return shaping.take_slice(counts, where=((0, bins, 1),)), edges


# Quantiles


def _quantiles(past_nan, of):
    return lambda x, q, axis=None, method="linear", keepdims=False: _quantile(
        x, q, axis, method, keepdims, past_nan, of
    )


quantile = _quantiles(past_nan=False, of=1)
percentile = _quantiles(past_nan=False, of=100)
nanquantile = _quantiles(past_nan=True, of=1)
nanpercentile = _quantiles(past_nan=True, of=100)


def median(x, axis=None, keepdims=False):
    return quantile(x, 0.5, axis, "linear", keepdims)


def nanmedian(x, axis=None, keepdims=False):
    return nanquantile(x, 0.5, axis, "linear", keepdims)


def _quantile(x, q, axis, method, keepdims, past_nan, of):
    """The elements at the shares `q / of` of the way from the least to the greatest.

    A NaN is the greatest of all; it makes all else NaN too, unless `past_nan` leaves it out.
    """
    own = inexact(x)
    x, over = axes_to_end(single(own), axis, "quantile")
    shares = of_dtype(q, x._spec.dtype)
    shares = shares / float(of) if of != 1 else shares
    shape = shape_of(shares)
    missing = ar.is_nan(x)
    last = x.ndim - 1
    present = to_dtype(ar.logical_not(missing), x._spec.dtype)
    count = sum(present, -1, True) if past_nan else Tensor(x._spec.dtype.type(x.shape[-1]))
    top = ar.maximum(count - 1, tf.zeros_like(count))
    y = _between(sort(x, -1), top * ravel(shares), method)
    nan = Tensor(x._spec.dtype.type(np.nan))
    spoiled = (all if past_nan else any)(missing, -1, True)
    y = ar.select(spoiled, nan, y)
    y = shaping.reshape(y, shape=(*y._spec.shape[:-1], *shape))
    y = moveaxis(y, tuple(range(last, y.ndim)), tuple(range(len(shape))))
    if keepdims:
        sizes = [1 if i in over else n for i, n in enumerate(own._spec.shape)]
        y = shaping.reshape(y, shape=(*shape, *sizes))
    return to_dtype(y, own._spec.dtype)


def _between(x, position, method):
    """What lies at `position`, which need not be whole, along the last axis."""
    low, high = floor(position), ceil(position)
    if method == "nearest":
        return _at(x, rint(position))
    if method == "lower":
        return _at(x, low)
    if method == "higher":
        return _at(x, high)
    below, above = _at(x, low), _at(x, high)
    if method == "midpoint":
        return (below + above) * 0.5
    if method != "linear":
        raise ValueError(
            "quantile: `method` must be 'linear', 'lower', 'higher', 'midpoint' or 'nearest'. "
            f"Received: {shown(method)}."
        )
    mixed = below + (above - below) * (position - low)
    return ar.select(ar.equal(position, low), below, mixed)  # also where it is infinite


def _at(x, position):
    place = to_dtype(position, INT32)
    if place.ndim < x.ndim:
        place = shaping.reshape(place, shape=(1,) * (x.ndim - place.ndim) + shape_of(place))
    return shared.take_along_last(x, place)
