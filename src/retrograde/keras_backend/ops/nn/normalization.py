"""Moments and batch normalization."""

import numpy as np
from keras.src.backend.common.symbolic_scope import in_symbolic_scope

from retrograde.core.apply import apply
from retrograde.distribute.context import context
from retrograde.distribute.strategy import get_replica_context
from retrograde.keras_backend.conversion import cast, convert_to_tensor
from retrograde.keras_backend.ops._inputs import (
    at_least_float32,
    canonicalize_axes,
    canonicalize_axis,
    inexact,
)
from retrograde.ops import arithmetic as ar
from retrograde.ops import elementary as el
from retrograde.ops import reduction
from retrograde.ops.shaping import reshape


def moments(x, axes, keepdims=False, synchronized=False):
    """Computes the mean and variance over `axes`, in float32 for half-precision inputs.

    If they are `synchronized`, they are computed over the batches of all replicas.
    """
    x_in = inexact(x)
    dtype, x = x_in.dtype.name, at_least_float32(x_in)
    axis = canonicalize_axes(axes, x.ndim, "moments")
    attrs = {"axis": axis, "keepdims": True}
    average = _average_over_replicas if synchronized and _is_in_replica() else _average
    mean = average(x, attrs)
    variance = average(apply(ar.squared_difference, (x, mean)), attrs)
    if not keepdims:
        shape = tuple(n for i, n in enumerate(x._spec.shape) if i not in axis)
        mean, variance = reshape(mean, shape=shape), reshape(variance, shape=shape)
    if dtype == "float16":  # avoid overflow to Inf
        mean, variance = _clip_to_float16(mean), _clip_to_float16(variance)
    return cast(mean, dtype), cast(variance, dtype)


def _is_in_replica():
    """Returns whether this is a replica of a strategy, and not the construction of a model."""
    return context.strategy is not None and context.in_replica and not in_symbolic_scope()


def _average(x, attrs):
    return apply(reduction.mean, (x,), attrs)


def _average_over_replicas(x, attrs):
    """Returns the mean over all replicas, which may have different numbers of rows."""
    total = apply(reduction.sum, (x,), attrs)
    rows = x._spec.size // total._spec.size
    if context.fraction == 0:  # this replica got one row in place of none
        total, rows = total * 0.0, 0
    count = convert_to_tensor(float(rows), total.dtype.name)
    total, count = get_replica_context().all_reduce("SUM", [total, count])
    return total / count


def _clip_to_float16(x):
    limit = convert_to_tensor(float(np.finfo(np.float16).max), "float32")
    return apply(ar.minimum, (apply(ar.maximum, (x, -limit)), limit))


def batch_normalization(x, mean, variance, axis, offset=None, scale=None, epsilon=1e-3):
    """Computes `(x - mean) / sqrt(variance + epsilon) * scale + offset`."""
    x = convert_to_tensor(x)
    axis = canonicalize_axis(axis, x.ndim, "batch_normalization")
    shape = tuple(n if i == axis else 1 for i, n in enumerate(x._spec.shape))

    def along_axis(value):
        return reshape(convert_to_tensor(value), shape=shape)

    factor = apply(el.rsqrt, (along_axis(variance) + epsilon,))
    if scale is not None:
        factor = factor * along_axis(scale)
    shift = -along_axis(mean) * factor
    if offset is not None:
        shift = shift + along_axis(offset)
    return x * factor + shift
