"""Reductions and cumulative sums and products."""

from __future__ import annotations

import math as python_math

import numpy as np

from retrograde import math
from retrograde.core.apply import apply
from retrograde.core.tensor import Tensor
from retrograde.keras_backend.ops._inputs import (
    INT32,
    at_least_float32,
    booleans,
    canonicalize_axes,
    canonicalize_axis,
    inexact,
    numeric,
    numpy_dtype,
    of_dtype,
    pair,
    shape_of,
    sum_dtype,
    tensor,
)
from retrograde.keras_backend.ops.numpy.elementwise import isclose, maximum, minimum
from retrograde.keras_backend.ops.numpy.manipulation import (
    broadcast_to,
    expand_dims,
    ravel,
    reshape,
)
from retrograde.numpy_functions.elementwise import BOOL_PRIMITIVES, is_bool, replace_nan
from retrograde.ops import arithmetic as ar
from retrograde.ops import reduction, scan
from retrograde.ops.casting import to_dtype
from retrograde.ops.elementary import sqrt
from retrograde.values import dtypes

# Attributes of reductions over all axes, the most common case.
_ALL_AXES = [{"axis": tuple(range(ndim)), "keepdims": False} for ndim in range(8)]


def _reduce(primitive, x, axis, keepdims):
    ndim = x._spec.ndim
    if axis is None and not keepdims and ndim < len(_ALL_AXES):
        return apply(primitive, (x,), _ALL_AXES[ndim])
    attrs = {"axis": canonicalize_axes(axis, ndim, primitive.name), "keepdims": bool(keepdims)}
    return apply(primitive, (x,), attrs)


def _reduction(primitive, convert):
    """Returns a function that converts its argument and reduces it."""
    return lambda x, axis=None, keepdims=False: _reduce(primitive, convert(x), axis, keepdims)


# Sums and products


def _for_sum(x):
    x = tensor(x)
    return to_dtype(x, sum_dtype(x._spec.dtype))


sum = _reduction(reduction.sum, _for_sum)
mean = _reduction(reduction.mean, inexact)
any = _reduction(reduction.any, booleans)
all = _reduction(reduction.all, booleans)


def prod(x, axis=None, keepdims=False, dtype=None):
    x = _for_sum(x) if dtype is None else of_dtype(x, numpy_dtype(dtype))
    return _reduce(reduction.prod, x, axis, keepdims)


def count_nonzero(x, axis=None):
    return sum(to_dtype(booleans(x), INT32), axis)


def allclose(x1, x2, rtol=1e-5, atol=1e-8, equal_nan=False):
    return all(isclose(x1, x2, rtol, atol, equal_nan))


# Means


def var(x, axis=None, keepdims=False):
    x = inexact(x)
    return to_dtype(math.reduce_variance(at_least_float32(x), _axes(axis), keepdims), x._spec.dtype)


def std(x, axis=None, keepdims=False):
    x = inexact(x)
    return to_dtype(math.reduce_std(at_least_float32(x), _axes(axis), keepdims), x._spec.dtype)


def _axes(axis):
    return list(axis) if isinstance(axis, tuple) else axis


def average(x, axis=None, weights=None):
    if weights is None:
        return mean(x, axis)
    x, w = (inexact(v) for v in pair(x, weights))
    if w.ndim == 1 != x.ndim:
        axis = canonicalize_axis(axis, x.ndim, "average")
        w = reshape(w, tuple(-1 if i == axis else 1 for i in range(x.ndim)))
    w = broadcast_to(w, shape_of(x))
    return sum(x * w, axis) / sum(w, axis)


def ptp(x, axis=None, keepdims=False):
    return max(x, axis, keepdims) - min(x, axis, keepdims)


# Extremes


def max(x, axis=None, keepdims=False, initial=None):
    return _extreme(reduction.max, maximum, x, axis, keepdims, initial)


def min(x, axis=None, keepdims=False, initial=None):
    return _extreme(reduction.min, minimum, x, axis, keepdims, initial)


def _extreme(primitive, binary, x, axis, keepdims, initial):
    x = tensor(x)
    axes = canonicalize_axes(axis, x.ndim, primitive.name)
    if initial is None and not python_math.prod(x._spec.shape[a] for a in axes):
        raise ValueError(
            f"{primitive.name}: cannot reduce zero elements, shape {shape_of(x)}, without an "
            "`initial` value."
        )
    y = _reduce(BOOL_PRIMITIVES[primitive] if is_bool(x) else primitive, x, axes, keepdims)
    return y if initial is None else binary(y, of_dtype(initial, y._spec.dtype))


def amax(x, axis=None, keepdims=False):
    return max(x, axis, keepdims)


def amin(x, axis=None, keepdims=False):
    return min(x, axis, keepdims)


def argmax(x, axis=None, keepdims=False):
    return _arg_extreme(reduction.argmax, x, axis, keepdims)


def argmin(x, axis=None, keepdims=False):
    return _arg_extreme(reduction.argmin, x, axis, keepdims)


def _arg_extreme(primitive, x, axis, keepdims):
    x = tensor(x)
    ndim = x.ndim
    if axis is None:
        x, axis = ravel(x), 0
    y = apply(
        primitive, (x,), {"axis": canonicalize_axis(axis, x.ndim, primitive.name), "dtype": INT32}
    )
    if not keepdims:
        return y
    return expand_dims(y, axis) if y.ndim else reshape(y, (1,) * ndim)


# Reductions that ignore NaN


def nansum(x, axis=None, keepdims=False):
    return sum(replace_nan(tensor(x), 0)[0], axis, keepdims)


def nanprod(x, axis=None, keepdims=False):
    return prod(replace_nan(tensor(x), 1)[0], axis, keepdims)


def nanmean(x, axis=None, keepdims=False):
    y, is_nan = replace_nan(tensor(x), 0)
    if is_nan is None:
        return mean(y, axis, keepdims)
    return sum(y, axis, keepdims) / _count(y, is_nan, axis, keepdims)


def _count(x, is_nan, axis, keepdims):
    """Counts the elements that are not NaN, in the dtype of `x`."""
    present = to_dtype(ar.logical_not(is_nan), x._spec.dtype)
    return sum(present, axis, keepdims)


def nanvar(x, axis=None, keepdims=False):
    x = inexact(x)
    y, is_nan = replace_nan(at_least_float32(x), 0)
    count = _count(y, is_nan, axis, True)
    distance = y - sum(y, axis, True) / count
    squares = ar.mask(distance * distance, ar.logical_not(is_nan))
    if not keepdims:
        count = reshape(count, shape_of(sum(y, axis)))
    return to_dtype(sum(squares, axis, keepdims) / count, x._spec.dtype)


def nanstd(x, axis=None, keepdims=False):
    x = inexact(x)
    return to_dtype(sqrt(nanvar(at_least_float32(x), axis, keepdims)), x._spec.dtype)


def nanmax(x, axis=None, keepdims=False):
    return _nan_extreme(max, -np.inf, x, axis, keepdims)


def nanmin(x, axis=None, keepdims=False):
    return _nan_extreme(min, np.inf, x, axis, keepdims)


def _nan_extreme(extreme, fill, x, axis, keepdims):
    y, is_nan = replace_nan(tensor(x), fill)
    result = extreme(y, axis, keepdims)
    if is_nan is None:
        return result
    nan = Tensor(y._spec.dtype.type(np.nan))
    return ar.select(all(is_nan, axis, keepdims), nan, result)


def nanargmax(x, axis=None, keepdims=False):
    return _nan_arg_extreme(argmax, x, axis, keepdims)


def nanargmin(x, axis=None, keepdims=False):
    return _nan_arg_extreme(argmin, x, axis, keepdims)


def _nan_arg_extreme(arg_extreme, x, axis, keepdims):
    """Returns the index of an extreme, ignoring NaN, or -1 if all elements are NaN."""
    x = tensor(x)
    y = arg_extreme(x, axis, keepdims)
    if x._spec.dtype not in dtypes.INEXACT:
        return y
    return ar.select(all(ar.is_nan(x), axis, keepdims), Tensor(np.int32(-1)), y)


# Cumulative reductions


def _cumulative(primitive, x, axis, dtype, **attrs):
    x = numeric(x) if dtype is None else of_dtype(x, numpy_dtype(dtype))
    if axis is None:
        x, axis = ravel(x), 0
    return apply(
        primitive, (x,), {"axis": canonicalize_axis(axis, x.ndim, primitive.name), **attrs}
    )


def cumsum(x, axis=None, dtype=None):
    return _cumulative(scan.cumsum, x, axis, dtype, exclusive=False, reverse=False)


def cumprod(x, axis=None, dtype=None):
    return _cumulative(scan.cumprod, x, axis, dtype)


def nancumsum(x, axis=None, dtype=None):
    return cumsum(replace_nan(tensor(x), 0)[0], axis, dtype)


def nancumprod(x, axis=None, dtype=None):
    return cumprod(replace_nan(tensor(x), 1)[0], axis, dtype)
