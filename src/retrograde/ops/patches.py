"""Patches: what each of many windows sees, and the transpose, which adds it up again."""

from __future__ import annotations

import numpy as np

from retrograde.core.apply import Primitive
from retrograde.ops._arrays import add_part, placed, wide
from retrograde.ops._windows import folded, unfolded
from retrograde.values import dtypes


def _take_patches_kernel(xp, x, *, windows):
    space, channels = x.shape[1:-1], x.shape[-1]
    shape = (len(x), *windows.positions(space))
    if xp is not np:
        seen = [
            placed(xp, x[slice(None), *cells], (*shape, channels), (slice(None), *positions), 0)
            for _, positions, cells in windows.meetings(space)
        ]
        return xp.stack(seen, -2).reshape(*shape, *windows.size, channels)
    y = np.zeros((*shape, *windows.size, channels), x.dtype)
    for tap, positions, cells in windows.meetings(space):
        y[slice(None), *positions, *tap] = x[slice(None), *cells]
    return y


take_patches = Primitive(  # (batch, *space, channels) -> (batch, *positions, *taps, channels)
    "take_patches",
    _take_patches_kernel,
    vjps=(
        lambda g, _y, _x, *, windows: put_patches(g, windows=windows, space=tuple(_x.shape[1:-1])),
    ),
    batch=lambda _, x, *, windows: unfolded(take_patches(folded(x), windows=windows), x),
    linear=True,
    accepts=dtypes.NUMERIC,
)


def _put_patches_kernel(xp, x, *, windows, space):
    y = xp.zeros((len(x), *space, x.shape[-1]), wide(x.dtype))
    for tap, positions, cells in windows.meetings(space):
        seen = x[slice(None), *positions, *tap].astype(y.dtype)
        y = add_part(xp, y, (slice(None), *cells), seen)
    return y.astype(x.dtype)


put_patches = Primitive(
    "put_patches",
    _put_patches_kernel,
    vjps=(lambda g, _y, _x, *, windows, space: take_patches(g, windows=windows),),  # noqa: ARG005
    batch=lambda _, x, *, windows, space: unfolded(
        put_patches(folded(x), windows=windows, space=space), x
    ),
    linear=True,
    accepts=dtypes.NUMERIC,
)
