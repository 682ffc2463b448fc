"""Sums, means, extremes and their relatives, over some axes or over all; running sums."""

from __future__ import annotations

import math as numbers_math

import numpy as np

from retrograde import math
from retrograde.core.apply import apply
from retrograde.core.tensor import Tensor
from retrograde.keras_backend.ops._inputs import (
    INT32,
    axes_of,
    axis_of,
    booleans,
    inexact,
    numbers,
    numpy_dtype,
    of_dtype,
    pair,
    shape_of,
    single,
    summed_dtype,
    tensor,
)
from retrograde.keras_backend.ops.numpy.elementwise import isclose, maximum, minimum
from retrograde.keras_backend.ops.numpy.shaping import broadcast_to, expand_dims, ravel, reshape
from retrograde.numpy_functions.elementwise import OF_BOOLEANS, is_bool, without_nan
from retrograde.ops import arithmetic as ar
from retrograde.ops import reduction, scan
from retrograde.ops.casting import to_dtype
from retrograde.ops.elementary import sqrt
from retrograde.values import dtypes

# The most common attributes, for all axes, are made once.
_ALL_AXES = [{"axis": tuple(range(ndim)), "keepdims": False} for ndim in range(8)]


def _reduced(primitive, x, axis, keepdims):
    ndim = x._spec.ndim
    if axis is None and not keepdims and ndim < len(_ALL_AXES):
        return apply(primitive, (x,), _ALL_AXES[ndim])
    attrs = {"axis": axes_of(axis, ndim, primitive.name), "keepdims": bool(keepdims)}
    return apply(primitive, (x,), attrs)


def _reduction(primitive, convert):
    """Returns the function that reduces its argument, converted."""
    return lambda x, axis=None, keepdims=False: _reduced(primitive, convert(x), axis, keepdims)


# Sums and products


def _to_add_up(x):
    x = tensor(x)
    return to_dtype(x, summed_dtype(x._spec.dtype))


sum = _reduction(reduction.sum, _to_add_up)
mean = _reduction(reduction.mean, inexact)
any = _reduction(reduction.any, booleans)
all = _reduction(reduction.all, booleans)


def prod(x, axis=None, keepdims=False, dtype=None):
    x = _to_add_up(x) if dtype is None else of_dtype(x, numpy_dtype(dtype))
    return _reduced(reduction.prod, x, axis, keepdims)


def count_nonzero(x, axis=None):
    return sum(to_dtype(booleans(x), INT32), axis)


def allclose(x1, x2, rtol=1e-5, atol=1e-8, equal_nan=False):
    return all(isclose(x1, x2, rtol, atol, equal_nan))


# Means


def var(x, axis=None, keepdims=False):
    x = inexact(x)
    return to_dtype(math.reduce_variance(single(x), _axes(axis), keepdims), x._spec.dtype)


def std(x, axis=None, keepdims=False):
    x = inexact(x)
    return to_dtype(math.reduce_std(single(x), _axes(axis), keepdims), x._spec.dtype)


def _axes(axis):
    return list(axis) if isinstance(axis, tuple) else axis


def average(x, axis=None, weights=None):
    if weights is None:
        return mean(x, axis)
    x, w = (inexact(v) for v in pair(x, weights))
    if w.ndim == 1 != x.ndim:
        at = axis_of(axis, x.ndim, "average")
        w = reshape(w, tuple(-1 if i == at else 1 for i in range(x.ndim)))
    w = broadcast_to(w, shape_of(x))
    return sum(x * w, axis) / sum(w, axis)


def ptp(x, axis=None, keepdims=False):
    return max(x, axis, keepdims) - min(x, axis, keepdims)


# Extremes


def max(x, axis=None, keepdims=False, initial=None):
    return _extreme(reduction.max, maximum, x, axis, keepdims, initial)


def min(x, axis=None, keepdims=False, initial=None):
    return _extreme(reduction.min, minimum, x, axis, keepdims, initial)


def _extreme(primitive, of_two, x, axis, keepdims, initial):
    x = tensor(x)
    over = axes_of(axis, x.ndim, primitive.name)
    if initial is None and not numbers_math.prod(x._spec.shape[a] for a in over):
        raise ValueError(
            f"{primitive.name}: there are no elements to choose from in shape {shape_of(x)}, and "
            "no `initial` value."
        )
    y = _reduced(OF_BOOLEANS[primitive] if is_bool(x) else primitive, x, over, keepdims)
    return y if initial is None else of_two(y, of_dtype(initial, y._spec.dtype))


def amax(x, axis=None, keepdims=False):
    return max(x, axis, keepdims)


def amin(x, axis=None, keepdims=False):
    return min(x, axis, keepdims)


def argmax(x, axis=None, keepdims=False):
    return _place(reduction.argmax, x, axis, keepdims)


def argmin(x, axis=None, keepdims=False):
    return _place(reduction.argmin, x, axis, keepdims)


def _place(primitive, x, axis, keepdims):
    x = tensor(x)
    ndim = x.ndim
    if axis is None:
        x, axis = ravel(x), 0
    y = apply(primitive, (x,), {"axis": axis_of(axis, x.ndim, primitive.name), "dtype": INT32})
    if not keepdims:
        return y
    return expand_dims(y, axis) if y.ndim else reshape(y, (1,) * ndim)


# Without NaN


def nansum(x, axis=None, keepdims=False):
    return sum(without_nan(tensor(x), 0)[0], axis, keepdims)


def nanprod(x, axis=None, keepdims=False):
    return prod(without_nan(tensor(x), 1)[0], axis, keepdims)


def nanmean(x, axis=None, keepdims=False):
    y, missing = without_nan(tensor(x), 0)
    if missing is None:
        return mean(y, axis, keepdims)
    return sum(y, axis, keepdims) / _count(y, missing, axis, keepdims)


def _count(x, missing, axis, keepdims):
    """How many are not missing, in the dtype of `x`."""
    present = to_dtype(ar.logical_not(missing), x._spec.dtype)
    return sum(present, axis, keepdims)


def nanvar(x, axis=None, keepdims=False):
    x = inexact(x)
    y, missing = without_nan(single(x), 0)
    count = _count(y, missing, axis, True)
    distance = y - sum(y, axis, True) / count
    squares = ar.mask(distance * distance, ar.logical_not(missing))
    if not keepdims:
        count = reshape(count, shape_of(sum(y, axis)))
    return to_dtype(sum(squares, axis, keepdims) / count, x._spec.dtype)


def nanstd(x, axis=None, keepdims=False):
    x = inexact(x)
    return to_dtype(sqrt(nanvar(single(x), axis, keepdims)), x._spec.dtype)


def nanmax(x, axis=None, keepdims=False):
    return _nan_extreme(max, -np.inf, x, axis, keepdims)


def nanmin(x, axis=None, keepdims=False):
    return _nan_extreme(min, np.inf, x, axis, keepdims)


def _nan_extreme(extreme, worst, x, axis, keepdims):
    y, missing = without_nan(tensor(x), worst)
    result = extreme(y, axis, keepdims)
    if missing is None:
        return result
    nan = Tensor(y._spec.dtype.type(np.nan))
    return ar.select(all(missing, axis, keepdims), nan, result)


def nanargmax(x, axis=None, keepdims=False):
    return _nan_place(argmax, x, axis, keepdims)


def nanargmin(x, axis=None, keepdims=False):
    return _nan_place(argmin, x, axis, keepdims)


def _nan_place(place, x, axis, keepdims):
    """The place of an extreme, for which NaN never counts; -1 where there is nothing else."""
    x = tensor(x)
    y = place(x, axis, keepdims)
    if x._spec.dtype not in dtypes.INEXACT:
        return y
    return ar.select(all(ar.is_nan(x), axis, keepdims), Tensor(np.int32(-1)), y)


# Running along one axis


def _running(primitive, x, axis, dtype, **attrs):
    x = numbers(x) if dtype is None else of_dtype(x, numpy_dtype(dtype))
    if axis is None:
        x, axis = ravel(x), 0
    return apply(primitive, (x,), {"axis": axis_of(axis, x.ndim, primitive.name), **attrs})


def cumsum(x, axis=None, dtype=None):
    return _running(scan.cumsum, x, axis, dtype, exclusive=False, reverse=False)


def cumprod(x, axis=None, dtype=None):
    return _running(scan.cumprod, x, axis, dtype)


def nancumsum(x, axis=None, dtype=None):
    return cumsum(without_nan(tensor(x), 0)[0], axis, dtype)


def nancumprod(x, axis=None, dtype=None):
    return cumprod(without_nan(tensor(x), 1)[0], axis, dtype)
