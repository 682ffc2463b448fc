"""Convolution and its two transposes: bilinear primitives that are each other's derivatives.

x is `(batch, *space, channels)`, w is `(*taps, channels per group, results)`, and y is
`(batch, *positions, results)`. Channels and results are divided into `groups` of consecutive ones,
which are convolved separately.
"""

from __future__ import annotations

import numpy as np

from retrograde.core.apply import Primitive
from retrograde.ops import _numpy_convolution, _xla_convolution
from retrograde.ops._arrays import widen
from retrograde.ops._windows import merge_batch, split_batch
from retrograde.ops.shaping import reshape, transpose
from retrograde.values import dtypes


def _split_groups(x, groups):
    return np.split(x, groups, axis=-1)


def _run_groups(kernel, a, b, groups, axis=-1):
    """Runs `kernel` on each group and concatenates the results along `axis`."""
    if groups == 1:
        return kernel(a, b)
    pairs = zip(_split_groups(a, groups), _split_groups(b, groups), strict=True)
    return np.concatenate([kernel(*pair) for pair in pairs], axis)


def _is_depthwise(w, groups):
    return groups > 1 and w.shape[-2] == 1


def _repeat_channels(x, w):
    """Repeats each channel of `x`, once for each of its results."""
    times = w.shape[-1] // x.shape[-1]
    return x if times == 1 else np.repeat(x, times, axis=-1)


def _convolve_kernel(xp, x, w, *, windows, groups):
    if xp is not np:
        return _xla_convolution.convolve(x, w, windows, groups)
    dtype, x, w = x.dtype, widen(x), widen(w)
    if _is_depthwise(w, groups):
        y = _numpy_convolution.depthwise(_repeat_channels(x, w), w[..., 0, :], windows)
    else:
        y = _run_groups(lambda x, w: _numpy_convolution.convolve(x, w, windows), x, w, groups)
    return y.astype(dtype, copy=False)


def _transposed_kernel(xp, g, w, *, windows, groups, space):
    if xp is not np:
        return _xla_convolution.convolve_transposed(xp, g, w, windows, groups, space)
    dtype, g, w = g.dtype, widen(g), widen(w)
    if _is_depthwise(w, groups):
        y = _numpy_convolution.depthwise_transposed(g, w[..., 0, :], windows, space)
        y = y.reshape(*y.shape[:-1], groups, w.shape[-1] // groups).sum(-1, dtype=y.dtype)
    else:
        y = _run_groups(
            lambda g, w: _numpy_convolution.convolve_transposed(g, w, windows, space), g, w, groups
        )
    return y.astype(dtype, copy=False)


def _filter_kernel(xp, x, g, *, windows, groups):
    if xp is not np:
        return _xla_convolution.convolve_filter(x, g, windows, groups)
    dtype, x, g = x.dtype, widen(x), widen(g)
    if groups > 1 and x.shape[-1] == groups:
        y = _numpy_convolution.depthwise_filter(_repeat_channels(x, g), g, windows)[..., None, :]
    else:
        y = _run_groups(
            lambda x, g: _numpy_convolution.convolve_filter(x, g, windows), x, g, groups
        )
    return y.astype(dtype, copy=False)


# Batch rules. A batch of images is merged with the batch axis. If both factors are batched, the
# batch elements become groups. If only the other factor is, they become more channels or results of
# each group.


def _batch_into_groups(x, groups):
    """Moves the batch axis of `x` into its last axis, inside the groups."""
    shape = (*x.shape[:-1], groups, x.shape[-1] // groups)
    ndim = x.ndim
    x = transpose(reshape(x, shape=shape), perm=(*range(1, ndim), 0, ndim))
    return reshape(x, shape=(*shape[1:-2], groups * shape[0] * shape[-1]))


def _batch_out_of_groups(y, size, groups, width):
    """Inverts `_batch_into_groups`; the result has `width` elements along the last axis."""
    shape = (*y.shape[:-1], groups, size, width // groups)
    ndim = len(shape)
    y = transpose(reshape(y, shape=shape), perm=(ndim - 2, *range(ndim - 2), ndim - 1))
    return reshape(y, shape=(*y.shape[:-2], y.shape[-2] * y.shape[-1]))


def _batch_into_channels(w):
    """Moves the batch axis of a filter into the channels of a group."""
    ndim = w.ndim
    w = transpose(w, perm=(*range(1, ndim - 2), 0, ndim - 2, ndim - 1))
    return reshape(w, shape=(*w.shape[:-3], w.shape[-3] * w.shape[-2], w.shape[-1]))


def _convolve_batch(batched, x, w, *, windows, groups):
    if batched == (True, False):
        return split_batch(convolve(merge_batch(x), w, windows=windows, groups=groups), x)
    size, width = w.shape[0], w.shape[-1]
    if batched == (False, True):
        y = convolve(x, _batch_into_groups(w, groups), windows=windows, groups=groups)
        return _batch_out_of_groups(y, size, groups, width)
    x, w = _batch_into_groups(x, 1), _batch_into_groups(w, 1)
    return _batch_out_of_groups(
        convolve(x, w, windows=windows, groups=groups * size or 1), size, 1, width
    )


def _transposed_batch(batched, g, w, *, windows, groups, space):
    attrs = {"windows": windows, "space": space}
    if batched == (True, False):
        return split_batch(convolve_transposed(merge_batch(g), w, groups=groups, **attrs), g)
    size, width = w.shape[0], w.shape[-2] * groups
    if batched == (False, True):
        y = convolve_transposed(g, _batch_into_channels(w), groups=groups, **attrs)
        return _batch_out_of_groups(y, size, groups, width)
    g, w = _batch_into_groups(g, 1), _batch_into_groups(w, 1)
    return _batch_out_of_groups(
        convolve_transposed(g, w, groups=groups * size or 1, **attrs), size, 1, width
    )


def _filter_batch(batched, x, g, *, windows, groups):
    width = g.shape[-1]
    if batched == (True, True):
        size, x, g = x.shape[0], _batch_into_groups(x, 1), _batch_into_groups(g, 1)
        y = convolve_filter(x, g, windows=windows, groups=groups * size or 1)
        return _batch_out_of_groups(y, size, 1, width)
    if batched == (False, True):
        y = convolve_filter(x, _batch_into_groups(g, groups), windows=windows, groups=groups)
        return _batch_out_of_groups(y, g.shape[0], groups, width)
    y = convolve_filter(_batch_into_groups(x, groups), g, windows=windows, groups=groups)
    ndim = y.ndim
    y = reshape(y, shape=(*y.shape[:-2], x.shape[0], x.shape[-1] // groups, width))
    return transpose(y, perm=(ndim - 2, *range(ndim - 2), ndim - 1, ndim))


_ACCEPTED = dtypes.FLOATING | {dtypes.int32.numpy_dtype}

convolve = Primitive(
    "convolve",
    _convolve_kernel,
    vjps=(
        lambda g, _y, _x, w, *, windows, groups: convolve_transposed(
            g, w, windows=windows, groups=groups, space=tuple(_x.shape[1:-1])
        ),
        lambda g, _y, x, _w, *, windows, groups: convolve_filter(
            x, g, windows=windows, groups=groups
        ),
    ),
    batch=_convolve_batch,
    accepts=_ACCEPTED,
)

convolve_transposed = Primitive(  # (g, w) -> x
    "convolve_transposed",
    _transposed_kernel,
    vjps=(
        lambda h, _y, _g, w, *, windows, groups, space: convolve(  # noqa: ARG005
            h, w, windows=windows, groups=groups
        ),
        lambda h, _y, g, _w, *, windows, groups, space: convolve_filter(  # noqa: ARG005
            h, g, windows=windows, groups=groups
        ),
    ),
    batch=_transposed_batch,
    accepts=_ACCEPTED,
)

convolve_filter = Primitive(  # (x, g) -> w
    "convolve_filter",
    _filter_kernel,
    vjps=(
        lambda h, _y, _x, g, *, windows, groups: convolve_transposed(
            g, h, windows=windows, groups=groups, space=tuple(_x.shape[1:-1])
        ),
        lambda h, _y, x, _g, *, windows, groups: convolve(x, h, windows=windows, groups=groups),
    ),
    batch=_filter_batch,
    accepts=_ACCEPTED,
)
