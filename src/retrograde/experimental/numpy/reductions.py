"""Sums, means, extremes and their relatives, over some axes or over all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import retrograde as tf
from retrograde import linalg, math
from retrograde.core.tensor import Tensor
from retrograde.experimental.numpy._inputs import inexact, refuse, tensor_of
from retrograde.experimental.numpy.creation import diagonal
from retrograde.experimental.numpy.dtypes import common_dtype, wanted_dtype
from retrograde.experimental.numpy.shaping import atleast_1d, ravel
from retrograde.numpy_functions.elementwise import without_nan
from retrograde.ops.casting import to_dtype
from retrograde.values import dtypes
from retrograde.values.arguments import as_text
from retrograde.values.errors import invalid
from retrograde.values.shapes import normalize_axes

_BOOL = np.dtype(bool)
_WIDE = {"b": np.dtype(np.int64), "i": np.dtype(np.int64), "u": np.dtype(np.uint64)}


def _widened(x: Tensor) -> Tensor:
    """`x`; integers and booleans in 64 bits, where sums of them rarely overflow."""
    dtype = x._spec.dtype
    return to_dtype(x, _WIDE.get(dtype.kind, dtype))


def _combined(
    reduce: Callable, of_booleans: Callable, a: Any, axis: Any, dtype: Any, keepdims: bool | None
) -> Tensor:
    wanted = wanted_dtype(dtype)
    x = tensor_of(a, wanted)
    if wanted == _BOOL:
        return of_booleans(x, axis, bool(keepdims))
    return reduce(_widened(x) if wanted is None else x, axis, bool(keepdims))


def sum(a: Any, axis: Any = None, dtype: Any = None, keepdims: bool | None = None) -> Tensor:
    """The sum over `axis`; of integers and booleans in 64 bits.

    >>> tf.experimental.numpy.sum([True, True, False])
    <tf.Tensor: shape=(), dtype=int64, numpy=2>
    """
    return _combined(math.reduce_sum, math.reduce_any, a, axis, dtype, keepdims)


def prod(a: Any, axis: Any = None, dtype: Any = None, keepdims: bool | None = None) -> Tensor:
    """The product over `axis`; of integers and booleans in 64 bits."""
    return _combined(math.reduce_prod, math.reduce_all, a, axis, dtype, keepdims)


def mean(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool | None = None
) -> Tensor:
    """The mean over `axis`; of integers and booleans as float64."""
    if out is not None:
        raise refuse("out", "mean")
    x = inexact(a) if dtype is None else tensor_of(a, wanted_dtype(dtype))
    return math.reduce_mean(x, axis, bool(keepdims))


def average(
    a: Any, axis: int | None = None, weights: Any = None, returned: bool = False
) -> Tensor | tuple[Tensor, Tensor]:
    """The mean over `axis`, weighed; with `returned`, the sum of the weights too.

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
        y, total = _weighed(x, axis, weights)
    return (y, tf.broadcast_to(total, y._spec.shape)) if returned else y


def _weighed(x: Tensor, axis: int | None, weights: Any) -> tuple[Tensor, Tensor]:
    """The weighed mean, and the sum of the weights."""
    dtype = common_dtype(x, weights)
    x, w = tensor_of(x, dtype), tensor_of(weights, dtype)
    if axis is not None and w.ndim == 1 and x.ndim != 1:
        total = math.reduce_sum(w)
        return linalg.tensordot(x, w, [[axis], [0]]) / total, total
    if x._spec.shape != w._spec.shape:
        raise invalid(
            f"average: the weights have shape {w._spec.shape}, the array {x._spec.shape}. "
            "Expected the same, or a vector of weights and an axis."
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
    """The mean squared distance from the mean over `axis`; `ddof` is taken off the divisor.

    >>> tf.experimental.numpy.var([1, 2, 6], ddof=1).numpy()
    np.float64(7.0)
    """
    if out is not None:
        raise refuse("out", "var")
    x = (
        inexact(a)
        if dtype is None
        else inexact(tensor_of(a, common_dtype(tensor_of(a), wanted_dtype(dtype))))
    )
    y = math.reduce_variance(x, axis, bool(keepdims))
    if ddof:
        sizes = [x._spec.shape[i] for i in normalize_axes(axis, x.ndim, "var")]
        count = int(np.prod(sizes))
        y = y * tensor_of(count, y._spec.dtype) / tensor_of(count - ddof, y._spec.dtype)
    return y if dtype is None else to_dtype(y, wanted_dtype(dtype))


def std(a: Any, axis: Any = None, keepdims: bool | None = None) -> Tensor:
    """The square root of the variance over `axis`."""
    return math.reduce_std(inexact(a), axis, bool(keepdims))


def _extreme(
    reduce: Callable, of_booleans: Callable, a: Any, axis: Any, keepdims: bool | None
) -> Tensor:
    x = tensor_of(a)
    return (of_booleans if x._spec.dtype == _BOOL else reduce)(x, axis, bool(keepdims))


def amax(a: Any, axis: Any = None, out: Any = None, keepdims: bool | None = None) -> Tensor:
    """The greatest element over `axis`."""
    if out is not None:
        raise refuse("out", "amax")
    return _extreme(math.reduce_max, math.reduce_any, a, axis, keepdims)


def amin(a: Any, axis: Any = None, out: Any = None, keepdims: bool | None = None) -> Tensor:
    """The least element over `axis`."""
    if out is not None:
        raise refuse("out", "amin")
    return _extreme(math.reduce_min, math.reduce_all, a, axis, keepdims)


def max(a: Any, axis: Any = None, keepdims: bool | None = None) -> Tensor:
    """The greatest element over `axis`."""
    return amax(a, axis, keepdims=keepdims)


def min(a: Any, axis: Any = None, keepdims: bool | None = None) -> Tensor:
    """The least element over `axis`."""
    return amin(a, axis, keepdims=keepdims)


def ptp(a: Any, axis: Any = None, keepdims: bool | None = None) -> Tensor:
    """The distance from the least to the greatest element over `axis`."""
    return amax(a, axis, keepdims=keepdims) - amin(a, axis, keepdims=keepdims)


def argmax(a: Any, axis: int | None = None) -> Tensor:
    """The index of the greatest element along `axis`, or among all."""
    return math.argmax(ravel(a), 0) if axis is None else math.argmax(atleast_1d(a), axis)


def argmin(a: Any, axis: int | None = None) -> Tensor:
    """The index of the least element along `axis`, or among all."""
    return math.argmin(ravel(a), 0) if axis is None else math.argmin(atleast_1d(a), axis)


def all(a: Any, axis: Any = None, keepdims: bool | None = None) -> Tensor:
    """Whether all elements over `axis` are true; numbers are true unless they are zero."""
    return math.reduce_all(tensor_of(a, _BOOL), axis, bool(keepdims))


def any(a: Any, axis: Any = None, keepdims: bool | None = None) -> Tensor:
    """Whether any element over `axis` is true; numbers are true unless they are zero."""
    return math.reduce_any(tensor_of(a, _BOOL), axis, bool(keepdims))


def count_nonzero(a: Any, axis: Any = None) -> Tensor:
    """How many elements over `axis` are not zero."""
    return math.count_nonzero(tensor_of(a), axis)


def _running(accumulate: Callable, a: Any, axis: int | None, dtype: Any) -> Tensor:
    x = tensor_of(a, wanted_dtype(dtype))
    if dtype is None and x._spec.dtype.kind in "iu":
        x = to_dtype(x, common_dtype(x, np.int64))
    return accumulate(ravel(x), 0) if axis is None else accumulate(x, axis)


def cumsum(a: Any, axis: int | None = None, dtype: Any = None) -> Tensor:
    """The running sum along `axis`, or over all elements."""
    return _running(math.cumsum, a, axis, dtype)


def cumprod(a: Any, axis: int | None = None, dtype: Any = None) -> Tensor:
    """The running product along `axis`, or over all elements."""
    return _running(math.cumprod, a, axis, dtype)


def nansum(a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """The sum over `axis` of what is not nan."""
    return sum(without_nan(tensor_of(a), 0)[0], axis, dtype, keepdims)


def nanprod(a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """The product over `axis` of what is not nan."""
    return prod(without_nan(tensor_of(a), 1)[0], axis, dtype, keepdims)


def nanmean(a: Any, axis: Any = None, dtype: Any = None, keepdims: bool | None = None) -> Tensor:
    """The mean over `axis` of what is not nan.

    >>> tf.experimental.numpy.nanmean([1.0, np.nan, 3.0]).numpy()
    np.float64(2.0)
    """
    x = tensor_of(a)
    if x._spec.dtype not in dtypes.INEXACT:
        return mean(x, axis, dtype, keepdims=keepdims)
    wanted = wanted_dtype(dtype) or x._spec.dtype
    count = sum(math.logical_not(math.is_nan(x)), axis, wanted, keepdims)
    return nansum(x, axis, wanted, bool(keepdims)) / count


def trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None) -> Tensor:
    """The sum over diagonal `offset` of the matrices in two axes."""
    x = tensor_of(a, wanted_dtype(dtype))
    last_two = axis1 in (-2, x.ndim - 2) and axis2 in (-1, x.ndim - 1)
    if x.ndim > 1 and offset == 0 and last_two:
        return linalg.trace(x)  # which keeps the dtype of small integers, as in TensorFlow
    return sum(diagonal(x, offset, axis1, axis2), -1, dtype)
