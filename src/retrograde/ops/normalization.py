"""Softmax and the cross entropies that take logits."""

from __future__ import annotations

import functools

import numpy as np

from retrograde.core.apply import Primitive
from retrograde.ops import reduction
from retrograde.ops._arrays import (
    HALF,
    SINGLE_AND_DOUBLE,
    SMALL_ARRAY_SIZE,
    array_max,
    array_sum,
    numpy_dtype_of,
    one,
    widen,
    zero,
)
from retrograde.ops.arithmetic import mask
from retrograde.ops.casting import cast
from retrograde.ops.elementary import exp
from retrograde.ops.shaping import broadcast_batched, reshape
from retrograde.values import dtypes
from retrograde.values.errors import invalid


def _axis_primitive(name, kernel, rule):
    """Creates a primitive `(x, *, axis)` that works along one axis and keeps the shape."""

    def batch(_, x, *, axis):
        return primitive(x, axis=axis + 1)

    primitive = Primitive(name, kernel, vjps=(rule,), batch=batch, accepts=dtypes.FLOATING)
    return primitive


def _sum_keepdims(x, axis):
    return reduction.sum(x, axis=(axis,), keepdims=True)


def _subtract_max(xp, x, axis):
    return x - array_max(xp, x, axis, keepdims=True) if x.size else x


def _needs_no_shift(xp, x):
    """Returns whether exp(x1 - x2) and sums of it are finite for all pairs of elements.

    No element is larger than the root of the sum of squares. For many elements that bound is too
    weak to be useful.
    """
    return (
        xp is np
        and x.dtype in SINGLE_AND_DOUBLE
        and x.size <= SMALL_ARRAY_SIZE
        and np.vdot(x, x) < 40**2
    )


def _softmax_kernel(xp, x, *, axis):
    e = xp.exp(x if _needs_no_shift(xp, x) else _subtract_max(xp, x, axis))
    return e / array_sum(xp, e, (axis,), keepdims=True)


def _log_softmax_kernel(xp, x, *, axis):
    s = _subtract_max(xp, x, axis)
    return s - xp.log(array_sum(xp, xp.exp(s), (axis,), keepdims=True))


softmax = _axis_primitive(
    "softmax", _softmax_kernel, lambda g, y, _x, *, axis: (g - _sum_keepdims(g * y, axis)) * y
)
log_softmax = _axis_primitive(
    "log_softmax",
    _log_softmax_kernel,
    lambda g, y, _x, *, axis: g - exp(y) * _sum_keepdims(g, axis),
)


def _sparsemax_kernel(xp, x, *, axis):
    """Computes `max(x - t, 0)`, with t such that the result sums to 1.

    The support consists of the largest elements, as long as each is above the t of those before it.
    """
    if not x.shape[axis]:
        return x
    wide = widen(x)
    falling = -xp.sort(-wide, axis=axis)
    sums = xp.cumsum(falling, axis=axis) - 1
    ranks = xp.arange(1, x.shape[axis] + 1, dtype=wide.dtype)
    ranks = ranks.reshape([-1 if i == axis else 1 for i in range(x.ndim)])
    count = xp.sum(falling * ranks > sums, axis=axis, keepdims=True)
    t = xp.take_along_axis(sums, count - 1, axis=axis) / count.astype(wide.dtype)
    return xp.maximum(wide - t, zero(wide.dtype)).astype(x.dtype)


def _sparsemax_vjp(g, y, _x, *, axis):
    """Subtracts the mean of g over the support, where y > 0, from g."""
    above = y > 0
    count = _sum_keepdims(cast(above, dtype=numpy_dtype_of(y)), axis)
    return mask(g - _sum_keepdims(mask(g, above), axis) / count, above)


sparsemax = _axis_primitive("sparsemax", _sparsemax_kernel, _sparsemax_vjp)


def _expand_last(g):
    """Appends an axis to `g`, so that it broadcasts against the classes."""
    return reshape(g, shape=(*g.shape, 1))


def _cross_entropy_kernel(xp, labels, logits):
    logs = _log_softmax_kernel(xp, widen(logits), axis=logits.ndim - 1)
    # A label of 0 contributes 0, even if log(p) is -Inf.
    terms = xp.where(labels == 0, xp.zeros((), logs.dtype), widen(labels) * logs)
    return -xp.sum(terms, axis=-1).astype(logits.dtype)


def _vjp_logits(g, _y, labels, logits):
    axis, dtype = logits.ndim - 1, numpy_dtype_of(logits)
    if dtype in HALF:  # the difference of two numbers close to 1 loses digits
        labels, logits = (cast(x, dtype=np.dtype(np.float32)) for x in (labels, logits))
    residual = softmax(logits, axis=axis) * _sum_keepdims(labels, axis) - labels
    return _expand_last(g) * (cast(residual, dtype=dtype) if dtype in HALF else residual)


softmax_cross_entropy = Primitive(
    "softmax_cross_entropy",
    _cross_entropy_kernel,
    vjps=(
        lambda g, _y, _labels, logits: -_expand_last(g) * log_softmax(logits, axis=logits.ndim - 1),
        _vjp_logits,
    ),
    batch=lambda batched, *xs: softmax_cross_entropy(*broadcast_batched(batched, xs)),
    accepts=dtypes.FLOATING,
)


@functools.lru_cache(maxsize=16)
def _row_starts(num_rows, num_classes):
    """Returns the index of the first element of each row in a flattened matrix."""
    return np.arange(num_rows) * num_classes


def _sparse_kernel(xp, labels, logits):
    if logits.dtype in HALF:
        return _sparse_kernel(xp, labels, widen(logits)).astype(logits.dtype)
    last = (logits.ndim - 1,)
    if xp is not np:
        s = _subtract_max(xp, logits, *last)
        picked = xp.take_along_axis(s, labels[..., None], axis=-1)[..., 0]
        return xp.log(array_sum(xp, xp.exp(s), last)) - picked
    indices = _flat_indices(labels, logits.shape[-1])
    if _needs_no_shift(np, logits):
        picked = logits.take(indices)
        return np.log(array_sum(np, np.exp(logits - picked[..., None]), last))
    s = _subtract_max(np, logits, *last)
    return np.log(array_sum(np, np.exp(s), last)) - s.take(indices)


def _flat_indices(labels, num_classes):
    """Returns the indices of the labeled classes in the flattened logits."""
    _check_labels(labels, num_classes)
    return (_row_starts(labels.size, num_classes) + labels.reshape(-1)).reshape(labels.shape)


_UNSIGNED = {np.dtype(f"i{n}"): np.dtype(f"u{n}") for n in (1, 2, 4, 8)}


def _check_labels(labels, num_classes):
    # As an unsigned integer, a negative label is larger than any class.
    labels = np.asarray(labels)
    unsigned = labels.view(_UNSIGNED.get(labels.dtype, labels.dtype))
    if labels.size and np.maximum.reduce(unsigned, axis=None) >= num_classes:
        wrong = labels[(labels < 0) | (labels >= num_classes)].ravel()[0]
        raise invalid(
            f"Received a label value of {wrong} which is outside the valid range of [0, "
            f"{num_classes}): the logits have {num_classes} classes."
        )


def _residual_kernel(xp, labels, logits):
    if logits.dtype in HALF:
        return _residual_kernel(xp, labels, widen(logits)).astype(logits.dtype)
    p = _softmax_kernel(xp, logits, axis=logits.ndim - 1)
    if xp is not np:
        return p - (labels[..., None] == xp.arange(p.shape[-1])).astype(p.dtype)
    p = np.ascontiguousarray(p)
    indices = _row_starts(labels.size, p.shape[-1]) + labels.reshape(-1)
    p.put(indices, p.take(indices) - one(p.dtype))
    return p


def _residual_vjp(g, _y, _labels, logits):
    axis = logits.ndim - 1
    p = softmax(logits, axis=axis)
    return (g - _sum_keepdims(g * p, axis)) * p


softmax_residual = Primitive(  # softmax(logits) - one_hot(labels)
    "softmax_residual",
    _residual_kernel,
    vjps=(None, _residual_vjp),
    batch=lambda batched, *xs: softmax_residual(*broadcast_batched(batched, xs)),
)

sparse_softmax_cross_entropy = Primitive(
    "sparse_softmax_cross_entropy",
    _sparse_kernel,
    vjps=(
        None,
        lambda g, _y, labels, logits: _expand_last(g) * softmax_residual(labels, logits),
    ),
    batch=lambda batched, *xs: sparse_softmax_cross_entropy(*broadcast_batched(batched, xs)),
)
