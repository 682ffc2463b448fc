"""Reductions: sums, means, extremes and cumulative sums."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import retrograde as tf
from retrograde import linalg, math
from retrograde.core.tensor import Tensor
from retrograde.experimental.numpy._inputs import inexact, tensor_of, unsupported_argument
from retrograde.experimental.numpy.creation import diagonal
from retrograde.experimental.numpy.dtypes import common_dtype, parse_dtype
from retrograde.experimental.numpy.shaping import atleast_1d, ravel
from retrograde.numpy_functions.elementwise import replace_nan
from retrograde.ops.casting import to_dtype
from retrograde.values import dtypes
from retrograde.values.arguments import as_text
from retrograde.values.errors import invalid
from retrograde.values.shapes import normalize_axes

_BOOL = np.dtype(bool)
_WIDE = {"b": np.dtype(np.int64), "i": np.dtype(np.int64), "u": np.dtype(np.uint64)}


def _widen(x: Tensor) -> Tensor:
    """Converts integers and booleans to 64 bits, in which sums rarely overflow."""
    dtype = x._spec.dtype
    return to_dtype(x, _WIDE.get(dtype.kind, dtype))


def _reduce_wide(
    reduce: Callable, reduce_bools: Callable, a: Any, axis: Any, dtype: Any, keepdims: bool | None
) -> Tensor:
    numpy_type = parse_dtype(dtype)
    x = tensor_of(a, numpy_type)
    if numpy_type == _BOOL:
        return reduce_bools(x, axis, bool(keepdims))
    return reduce(_widen(x) if numpy_type is None else x, axis, bool(keepdims))


def sum(a: Any, axis: Any = None, dtype: Any = None, keepdims: bool | None = None) -> Tensor:
    """Computes the sum over `axis`; integers and booleans are summed in 64 bits.

    >>> tf.experimental.numpy.sum([True, True, False])
    <tf.Tensor: shape=(), dtype=int64, numpy=2>
    """
    return _reduce_wide(math.reduce_sum, math.reduce_any, a, axis, dtype, keepdims)


def prod(a: Any, axis: Any = None, dtype: Any = None, keepdims: bool | None = None) -> Tensor:
    """Computes the product over `axis`; integers and booleans are multiplied in 64 bits."""
    return _reduce_wide(math.reduce_prod, math.reduce_all, a, axis, dtype, keepdims)


def mean(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool | None = None
) -> Tensor:
    """Computes the mean over `axis`; integers and booleans give float64."""
    if out is not None:
        raise unsupported_argument("out", "mean")
    x = inexact(a) if dtype is None else tensor_of(a, parse_dtype(dtype))
    return math.reduce_mean(x, axis, bool(keepdims))


def average(
    a: Any, axis: int | None = None, weights: Any = None, returned: bool = False
) -> Tensor | tuple[Tensor, Tensor]:
    """Computes the weighted mean over `axis`; with `returned`, the sum of the weights too.

    `weights` has the shape of `a`, or is a vector along `axis`.

    >>> tf.experimental.numpy.average([1.0, 2.0, 4.0], weights=[1, 1, 2]).numpy()
    np.float64(2.75)
    """
    if axis is not None and not isinstance(axis, int):
        raise ValueError(f"average: `axis` must be an integer or None. Received: {as_text(axis)}.")
    x = inexact(a)
    if weights is None:
        y = math.reduce_mean(x, axis)
        total = tensor_of(x._spec.size // (y._spec.size or 1), x._spec.dtype)
    else:
        y, total = _weighted_mean(x, axis, weights)
    return (y, tf.broadcast_to(total, y._spec.shape)) if returned else y


def _weighted_mean(x: Tensor, axis: int | None, weights: Any) -> tuple[Tensor, Tensor]:
    """Computes the weighted mean and the sum of the weights."""
    dtype = common_dtype(x, weights)
    x, w = tensor_of(x, dtype), tensor_of(weights, dtype)
    if axis is not None and w.ndim == 1 and x.ndim != 1:
        total = math.reduce_sum(w)
        return linalg.tensordot(x, w, [[axis], [0]]) / total, total
    if x._spec.shape != w._spec.shape:
        raise invalid(
            f"average: the weights have shape {w._spec.shape}, the array {x._spec.shape}. Expected "
            "equal shapes, or a vector of weights and an axis."
        )
    total = math.reduce_sum(w, axis)
    return math.reduce_sum(x * w, axis) / total, total


def var(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: int = 0,
    keepdims: bool | None = None,
) -> Tensor:
    """Computes the variance over `axis`; `ddof` is subtracted from the divisor.

    >>> tf.experimental.numpy.var([1, 2, 6], ddof=1).numpy()
    np.float64(7.0)
    """
    if out is not None:
        raise unsupported_argument("out", "var")
    x = (
        inexact(a)
        if dtype is None
        else inexact(tensor_of(a, common_dtype(tensor_of(a), parse_dtype(dtype))))
    )
    y = math.reduce_variance(x, axis, bool(keepdims))
    if ddof:
        sizes = [x._spec.shape[i] for i in normalize_axes(axis, x.ndim, "var")]
        count = int(np.prod(sizes))
        y = y * tensor_of(count, y._spec.dtype) / tensor_of(count - ddof, y._spec.dtype)
    return y if dtype is None else to_dtype(y, parse_dtype(dtype))


def std(a: Any, axis: Any = None, keepdims: bool | None = None) -> Tensor:
    """Computes the standard deviation over `axis`."""
    return math.reduce_std(inexact(a), axis, bool(keepdims))


def _reduce_extreme(
    reduce: Callable, reduce_bools: Callable, a: Any, axis: Any, keepdims: bool | None
) -> Tensor:
    x = tensor_of(a)
    return (reduce_bools if x._spec.dtype == _BOOL else reduce)(x, axis, bool(keepdims))


def amax(a: Any, axis: Any = None, out: Any = None, keepdims: bool | None = None) -> Tensor:
    """Computes the maximum over `axis`."""
    if out is not None:
        raise unsupported_argument("out", "amax")
    return _reduce_extreme(math.reduce_max, math.reduce_any, a, axis, keepdims)


def amin(a: Any, axis: Any = None, out: Any = None, keepdims: bool | None = None) -> Tensor:
    """Computes the minimum over `axis`."""
    if out is not None:
        raise unsupported_argument("out", "amin")
    return _reduce_extreme(math.reduce_min, math.reduce_all, a, axis, keepdims)


def max(a: Any, axis: Any = None, keepdims: bool | None = None) -> Tensor:
    """Computes the maximum over `axis`."""
    return amax(a, axis, keepdims=keepdims)


def min(a: Any, axis: Any = None, keepdims: bool | None = None) -> Tensor:
    """Computes the minimum over `axis`."""
    return amin(a, axis, keepdims=keepdims)


def ptp(a: Any, axis: Any = None, keepdims: bool | None = None) -> Tensor:
    """Computes the difference between maximum and minimum over `axis`."""
    return amax(a, axis, keepdims=keepdims) - amin(a, axis, keepdims=keepdims)


def argmax(a: Any, axis: int | None = None) -> Tensor:
    """Returns the index of the maximum along `axis`, or of the flattened array."""
    return math.argmax(ravel(a), 0) if axis is None else math.argmax(atleast_1d(a), axis)


def argmin(a: Any, axis: int | None = None) -> Tensor:
    """Returns the index of the minimum along `axis`, or of the flattened array."""
    return math.argmin(ravel(a), 0) if axis is None else math.argmin(atleast_1d(a), axis)


def all(a: Any, axis: Any = None, keepdims: bool | None = None) -> Tensor:
    """Returns whether all elements over `axis` are true; nonzero numbers are true."""
    return math.reduce_all(tensor_of(a, _BOOL), axis, bool(keepdims))


def any(a: Any, axis: Any = None, keepdims: bool | None = None) -> Tensor:
    """Returns whether any element over `axis` is true; nonzero numbers are true."""
    return math.reduce_any(tensor_of(a, _BOOL), axis, bool(keepdims))


def count_nonzero(a: Any, axis: Any = None) -> Tensor:
    """Counts the nonzero elements over `axis`."""
    return math.count_nonzero(tensor_of(a), axis)


def _cumulative(accumulate: Callable, a: Any, axis: int | None, dtype: Any) -> Tensor:
    x = tensor_of(a, parse_dtype(dtype))
    if dtype is None and x._spec.dtype.kind in "iu":
        x = to_dtype(x, common_dtype(x, np.int64))
    return accumulate(ravel(x), 0) if axis is None else accumulate(x, axis)


def cumsum(a: Any, axis: int | None = None, dtype: Any = None) -> Tensor:
    """Computes the cumulative sum along `axis`, or of the flattened array."""
    return _cumulative(math.cumsum, a, axis, dtype)


def cumprod(a: Any, axis: int | None = None, dtype: Any = None) -> Tensor:
    """Computes the cumulative product along `axis`, or of the flattened array."""
    return _cumulative(math.cumprod, a, axis, dtype)


def nansum(a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """Computes the sum over `axis`, ignoring NaNs."""
    return sum(replace_nan(tensor_of(a), 0)[0], axis, dtype, keepdims)


def nanprod(a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """Computes the product over `axis`, ignoring NaNs."""
    return prod(replace_nan(tensor_of(a), 1)[0], axis, dtype, keepdims)


def nanmean(a: Any, axis: Any = None, dtype: Any = None, keepdims: bool | None = None) -> Tensor:
    """Computes the mean over `axis`, ignoring NaNs.

    >>> tf.experimental.numpy.nanmean([1.0, np.nan, 3.0]).numpy()
    np.float64(2.0)
    """
    x = tensor_of(a)
    if x._spec.dtype not in dtypes.INEXACT:
        return mean(x, axis, dtype, keepdims=keepdims)
    numpy_type = parse_dtype(dtype) or x._spec.dtype
    count = sum(math.logical_not(math.is_nan(x)), axis, numpy_type, keepdims)
    return nansum(x, axis, numpy_type, bool(keepdims)) / count


def trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None) -> Tensor:
    """Computes the sum of diagonal `offset` of the matrices in two axes."""
    x = tensor_of(a, parse_dtype(dtype))
    last_two = axis1 in (-2, x.ndim - 2) and axis2 in (-1, x.ndim - 1)
    if x.ndim > 1 and offset == 0 and last_two:
        return linalg.trace(x)  # keeps the dtype of small integers, as in TensorFlow
    return sum(diagonal(x, offset, axis1, axis2), -1, dtype)
