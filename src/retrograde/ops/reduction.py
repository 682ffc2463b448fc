"""Reductions over a tuple of axes."""

from __future__ import annotations

import math

import numpy as np

from retrograde.core.apply import Primitive
from retrograde.fusion import blocks
from retrograde.fusion.lazy_calls import allow_lazy_reduction
from retrograde.ops._arrays import array_sum, compute_dtype, numpy_dtype_of, scalar, widen
from retrograde.ops._families import broadcast_cotangent, conj, reduction, restore_reduced_axes
from retrograde.ops.arithmetic import equal, is_finite, mask
from retrograde.ops.casting import cast, ones_like, stop_gradient
from retrograde.ops.elementary import exp
from retrograde.ops.shaping import concat, reshape, take_slice, transpose
from retrograde.values import dtypes
from retrograde.values.dtypes import SINGLE_AND_DOUBLE
from retrograde.values.errors import invalid

sum = reduction(
    "sum",
    lambda xp, x, *, axis, keepdims: array_sum(xp, x, axis, keepdims),
    lambda g, _y, _x, *, axis, keepdims: broadcast_cotangent(g, _x, axis, keepdims),
    linear=True,
)


def count(x, axis):
    """Returns how many elements of `x` are reduced to one."""
    return math.prod(x.shape if len(axis) == x.ndim else [x.shape[a] for a in axis])


def _mean_kernel(xp, x, *, axis, keepdims):
    n = count(x, axis)
    if x.dtype.kind in "iu":  # summed in 64 bits, rounded towards zero
        y = xp.sum(x, axis=axis, keepdims=keepdims, dtype=np.dtype(x.dtype.kind + "8"))
        return (xp.sign(y) * (xp.abs(y) // (n or 1))).astype(x.dtype)
    y = array_sum(xp, widen(x), axis, keepdims) / (n or math.nan)
    return y if y.dtype == x.dtype else y.astype(x.dtype)


mean = reduction(
    "mean",
    _mean_kernel,
    lambda g, _y, _x, *, axis, keepdims: broadcast_cotangent(
        g / scalar(count(_x, axis) or math.nan, g), _x, axis, keepdims
    ),
    linear=True,
)


def _threaded_kernel(primitive):
    """Returns the kernel of `sum` or `mean` for large arrays; threads share full reductions."""

    def kernel(x, *, axis, keepdims):
        flat = (
            x.size >= blocks.MIN_THREADED_SIZE_IF_CHEAP
            and len(axis) == x.ndim
            and x.flags.c_contiguous
        )
        if not flat or x.dtype not in SINGLE_AND_DOUBLE:
            return primitive.on_numpy(x, axis=axis, keepdims=keepdims)
        y = blocks.threaded_sum(x.reshape(-1))
        y = y / x.size if primitive is mean else y
        return y.reshape((1,) * x.ndim) if keepdims else y

    return kernel


for _primitive in (sum, mean):
    _primitive.on_many = _threaded_kernel(_primitive)
    allow_lazy_reduction(_primitive)


def _products_of_others(x):
    """Returns, for each element of the last axis, the product of all other elements of that axis.

    Elements are paired, and the function calls itself with the products of the pairs. There is no
    division, so zeros are handled exactly.
    """
    n = x.shape[-1]
    if n < 2:
        return ones_like(x)
    half = (n + 1) // 2
    a, b = _slice_last(x, 0, half), _slice_last(x, half, n)
    if n % 2:
        b = concat(b, ones_like(_slice_last(x, 0, 1)), axis=x.ndim - 1)
    others = _products_of_others(a * b)
    return concat(others * b, _slice_last(others * a, 0, n - half), axis=x.ndim - 1)


def _slice_last(x, start, stop):
    return take_slice(x, where=(*((0, n, 1) for n in x.shape[:-1]), (start, stop, 1)))


def _prod_vjp(g, _y, x, *, axis, keepdims):
    free = tuple(i for i in range(x.ndim) if i not in axis)
    perm = (*free, *axis)
    shape = tuple(x.shape[i] for i in perm)
    flat = reshape(transpose(x, perm=perm), shape=(*shape[: len(free)], count(x, axis)))
    others = _products_of_others(flat)
    if flat.shape[-1] < 2:  # ones that are connected to x, with a derivative of zero
        others = concat(_slice_last(flat, 0, 0), others, axis=flat.ndim - 1)
    others = reshape(others, shape=shape)
    inverse_perm = tuple(sorted(range(len(perm)), key=perm.__getitem__))
    return broadcast_cotangent(g, x, axis, keepdims) * transpose(conj(others), perm=inverse_perm)


def _prod_kernel(xp, x, *, axis, keepdims):
    y = xp.prod(x, axis=axis, keepdims=keepdims, dtype=compute_dtype(x.dtype))
    return y.astype(x.dtype, copy=False)


prod = reduction("prod", _prod_kernel, _prod_vjp)


def _extreme_vjp(g, y, x, *, axis, keepdims):
    """Shares the gradient evenly among the elements that tie."""
    hits = equal(x, restore_reduced_axes(y, x, axis, keepdims))
    hits = cast(hits, dtype=numpy_dtype_of(g))
    share = restore_reduced_axes(g, x, axis, keepdims) / sum(hits, axis=axis, keepdims=True)
    return hits * share


def _extreme_kernel(function, identity):
    """Creates the kernel of `max` or `min`. An empty reduction returns the identity."""

    def kernel(xp, x, *, axis, keepdims):
        options = {}
        if not count(x, axis):
            limits = np.iinfo(x.dtype) if x.dtype.kind in "iu" else None
            empty = identity if limits is None else (limits.min if identity < 0 else limits.max)
            options["initial"] = x.dtype.type(empty)
        return getattr(xp, function)(x, axis=axis, keepdims=keepdims, **options)

    return kernel


max = reduction("max", _extreme_kernel("max", -math.inf), _extreme_vjp, accepts=dtypes.REAL)
min = reduction("min", _extreme_kernel("min", math.inf), _extreme_vjp, accepts=dtypes.REAL)

any = reduction(
    "any",
    lambda xp, x, *, axis, keepdims: xp.any(x, axis=axis, keepdims=keepdims),
    None,
    accepts=dtypes.BOOL,
)
all = reduction(
    "all",
    lambda xp, x, *, axis, keepdims: xp.all(x, axis=axis, keepdims=keepdims),
    None,
    accepts=dtypes.BOOL,
)


def _logsumexp_kernel(xp, x, *, axis, keepdims):
    if not count(x, axis):
        return _extreme_kernel("max", -math.inf)(xp, x, axis=axis, keepdims=keepdims)
    top = xp.max(x, axis=axis, keepdims=True)
    top = xp.where(xp.isfinite(top), top, xp.zeros((), x.dtype))
    total = xp.sum(xp.exp(x - top), axis=axis, keepdims=True, dtype=compute_dtype(x.dtype))
    y = xp.log(total).astype(x.dtype, copy=False) + top
    return y if keepdims else y.reshape(tuple(n for i, n in enumerate(x.shape) if i not in axis))


def _logsumexp_vjp(g, _y, x, *, axis, keepdims):
    """Computes g times the softmax of x. exp(x - y) would lose digits if y is large."""
    top = stop_gradient(max(x, axis=axis, keepdims=True))
    e = exp(x - mask(top, is_finite(top)))
    return e * (restore_reduced_axes(g, x, axis, keepdims) / sum(e, axis=axis, keepdims=True))


logsumexp = reduction("logsumexp", _logsumexp_kernel, _logsumexp_vjp, accepts=dtypes.FLOATING)


def _arg_extreme(name, worst):
    """Creates `argmax` or `argmin`: the first such index along one axis, ignoring NaN."""

    def ignore_nan(xp, x, axis, indices):
        if xp is np and (not x.size or not np.isnan(np.maximum.reduce(x, axis=None))):
            return indices
        return getattr(xp, name)(xp.where(xp.isnan(x), scalar(worst, x), x), axis=axis)

    def kernel(xp, x, *, axis, dtype):
        if not x.shape[axis]:
            raise invalid(f"{name}: reduction axis {axis} is empty in shape {x.shape}.")
        indices = getattr(xp, name)(x, axis=axis)
        if x.dtype.kind not in "iub":
            indices = ignore_nan(xp, x, axis, indices)
        return indices.astype(dtype)

    def batch(_, x, *, axis, dtype):
        return primitive(x, axis=axis + 1, dtype=dtype)

    primitive = Primitive(name, kernel, vjps=None, batch=batch, accepts=dtypes.REAL | dtypes.BOOL)
    return primitive


argmax = _arg_extreme("argmax", -math.inf)
argmin = _arg_extreme("argmin", math.inf)
