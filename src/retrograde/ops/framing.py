"""Splitting a signal into overlapping frames, and its transpose, overlap-add."""

from __future__ import annotations

import math

import numpy as np

from retrograde.core.apply import Primitive
from retrograde.ops._arrays import compute_dtype, take
from retrograde.values import dtypes


def _indices(count, length, step):
    """Returns the indices into the signal of the samples of each frame."""
    return step * np.arange(count)[:, None] + np.arange(length)


def _frame_kernel(xp, x, *, axis, count, length, step):
    if xp is not np:
        return take(xp, x, _indices(count, length, step), axis)
    # Frames share the memory of the signal.
    stride = x.strides[axis]
    return np.lib.stride_tricks.as_strided(
        x,
        (*x.shape[:axis], count, length, *x.shape[axis + 1 :]),
        (*x.strides[:axis], step * stride, stride, *x.strides[axis + 1 :]),
        writeable=False,
    )


frame = Primitive(
    "frame",
    _frame_kernel,
    vjps=(
        lambda g, _y, _x, *, axis, step, **_: overlap_add(
            g, axis=axis, size=_x.shape[axis], step=step
        ),
    ),
    batch=lambda _, x, *, axis, **attrs: frame(x, axis=axis + 1, **attrs),
    linear=True,
)


def _overlap_add_kernel(xp, x, *, axis, size, step):
    count, length = x.shape[axis : axis + 2]
    outer, inner = x.shape[:axis], x.shape[axis + 2 :]
    if xp is not np:
        y = xp.zeros((*outer, size, *inner), compute_dtype(x.dtype))
        key = (*(slice(None),) * axis, _indices(count, length, step))
        return y.at[key].add(x.astype(y.dtype)).astype(x.dtype)
    # The result is divided into rows of one step each. A frame covers several rows: the first rows
    # of all frames are added at once, then the second rows, and so on.
    rows = max(math.ceil(size / step), count + math.ceil(length / step) - 1)
    y = np.zeros((math.prod(outer), rows, step, math.prod(inner)), compute_dtype(x.dtype))
    x = x.reshape(math.prod(outer), count, length, math.prod(inner))
    for row, start in enumerate(range(0, length, step)):
        part = x[:, :, start : start + step]
        y[:, row : row + count, : part.shape[2]] += part
    y = y.reshape(*outer, rows * step, *inner)
    return y[(slice(None),) * axis + (slice(size),)].astype(x.dtype, copy=False)


overlap_add = Primitive(
    "overlap_add",
    _overlap_add_kernel,
    vjps=(
        lambda g, _y, _x, *, axis, step, **_: frame(
            g, axis=axis, count=_x.shape[axis], length=_x.shape[axis + 1], step=step
        ),
    ),
    batch=lambda _, x, *, axis, **attrs: overlap_add(x, axis=axis + 1, **attrs),
    linear=True,
    accepts=dtypes.NUMERIC,
)
