"""Moments, and what is normalised by them."""

import numpy as np

from retrograde.core.apply import apply
from retrograde.keras_backend.conversion import cast, convert_to_tensor
from retrograde.keras_backend.ops._inputs import axes_of, axis_of, inexact, single
from retrograde.ops import arithmetic as ar
from retrograde.ops import elementary as el
from retrograde.ops import reduction
from retrograde.ops.shaping import reshape


def moments(x, axes, keepdims=False, synchronized=False):
    """The mean and the variance over `axes`, computed in float32 for those of half precision."""
    if synchronized:
        raise NotImplementedError(
            "Argument synchronized=True is not supported with the retrograde backend."
        )
    given = inexact(x)
    dtype, x = given.dtype.name, single(given)
    axis = axes_of(axes, x.ndim, "moments")
    over = {"axis": axis, "keepdims": True}
    mean = apply(reduction.mean, (x,), over)
    variance = apply(reduction.mean, (apply(ar.squared_difference, (x, mean)),), over)
    if not keepdims:
        shape = tuple(n for i, n in enumerate(x._spec.shape) if i not in axis)
        mean, variance = reshape(mean, shape=shape), reshape(variance, shape=shape)
    if dtype == "float16":  # rather its largest number than infinity
        mean, variance = _within_float16(mean), _within_float16(variance)
    return cast(mean, dtype), cast(variance, dtype)


def _within_float16(x):
    most = convert_to_tensor(float(np.finfo(np.float16).max), "float32")
    return apply(ar.minimum, (apply(ar.maximum, (x, -most)), most))


def batch_normalization(x, mean, variance, axis, offset=None, scale=None, epsilon=1e-3):
    """`x` less `mean`, over the square root of `variance`; times `scale`, plus `offset`."""
    x = convert_to_tensor(x)
    axis = axis_of(axis, x.ndim, "batch_normalization")
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
