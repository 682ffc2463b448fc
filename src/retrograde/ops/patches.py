"""Patch extraction with sliding windows, and its transpose, which sums overlapping patches."""

from __future__ import annotations

import numpy as np

from retrograde.core.apply import Primitive
from retrograde.ops._arrays import add_to_slice, compute_dtype, full_with_slice
from retrograde.ops._windows import merge_batch, split_batch
from retrograde.values import dtypes


def _take_patches_kernel(xp, x, *, windows):
    space, channels = x.shape[1:-1], x.shape[-1]
    shape = (len(x), *windows.positions(space))
    if xp is not np:
        parts = [
            full_with_slice(
                xp, x[slice(None), *cells], (*shape, channels), (slice(None), *positions), 0
            )
            for _, positions, cells in windows.tap_slices(space)
        ]
        return xp.stack(parts, -2).reshape(*shape, *windows.size, channels)
    y = np.zeros((*shape, *windows.size, channels), x.dtype)
    for tap, positions, cells in windows.tap_slices(space):
        y[slice(None), *positions, *tap] = x[slice(None), *cells]
    return y


take_patches = Primitive(  # (batch, *space, channels) -> (batch, *positions, *taps, channels)
    "take_patches",
    _take_patches_kernel,
    vjps=(
        lambda g, _y, _x, *, windows: sum_patches(g, windows=windows, space=tuple(_x.shape[1:-1])),
    ),
    batch=lambda _, x, *, windows: split_batch(take_patches(merge_batch(x), windows=windows), x),
    linear=True,
    accepts=dtypes.NUMERIC,
)


def _sum_patches_kernel(xp, x, *, windows, space):
    y = xp.zeros((len(x), *space, x.shape[-1]), compute_dtype(x.dtype))
    for tap, positions, cells in windows.tap_slices(space):
        part = x[slice(None), *positions, *tap].astype(y.dtype)
        y = add_to_slice(xp, y, (slice(None), *cells), part)
    return y.astype(x.dtype)


sum_patches = Primitive(
    "sum_patches",
    _sum_patches_kernel,
    vjps=(lambda g, _y, _x, *, windows, space: take_patches(g, windows=windows),),  # noqa: ARG005
    batch=lambda _, x, *, windows, space: split_batch(
        sum_patches(merge_batch(x), windows=windows, space=space), x
    ),
    linear=True,
    accepts=dtypes.NUMERIC,
)
