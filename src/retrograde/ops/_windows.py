"""Sliding windows over the spatial axes, between the batch and the channels."""

from __future__ import annotations

import functools
import itertools
from typing import NamedTuple

from retrograde.ops.shaping import reshape


class Windows(NamedTuple):
    """Windows over an array `(batch, *space, channels)`, with one entry for each spatial axis.

    Tap `j` of the window at position `o` reads the cell `o * stride + j * dilation - padding[0]`. A
    cell outside the array is padding.
    """

    size: tuple[int, ...]
    strides: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]
    dilations: tuple[int, ...]

    @property
    def ndim(self):
        """The number of spatial axes."""
        return len(self.size)

    def positions(self, space):
        """Returns the number of windows along each axis of `space`."""
        return tuple(
            max(0, (n + low + high - (k - 1) * d - 1) // s + 1)
            for n, k, s, (low, high), d in zip(space, *self, strict=True)
        )

    def taps(self):
        """Returns the taps of a window as tuples, in row-major order."""
        return itertools.product(*map(range, self.size))

    def tap_slices(self, space):
        """Returns each tap with slices of the positions where it reads a cell, and of the cells."""
        return _tap_slices(self, space)

    def tap_slices_along(self, axis, n):
        """Returns slices of positions and cells for each tap along one spatial axis of size `n`.

        They index arrays `(batch, *space, channels)`.
        """
        one = Windows(*(part[axis : axis + 1] for part in self))
        before = (slice(None),) * (axis + 1)
        return [
            ((*before, *positions), (*before, *cells))
            for _, positions, cells in one.tap_slices((n,))
        ]

    def tiles(self, axis, n):
        """Returns whether the windows cover each of `n` cells along a spatial axis exactly once."""
        size, stride, padding, dilation = (part[axis] for part in self)
        return size == stride and dilation == 1 and padding == (0, 0) and n % stride == 0


@functools.lru_cache(maxsize=1024)  # computing the slices takes as long as a small convolution
def _tap_slices(windows, space):
    positions = windows.positions(space)
    result = []
    for tap in windows.taps():
        axes = zip(space, positions, tap, *windows[1:], strict=True)
        slices, cells = (
            zip(*(_axis_slices(*axis) for axis in axes), strict=True) if tap else ((), ())
        )
        result.append((tap, slices, cells))
    return tuple(result)


def _axis_slices(n, positions, tap, stride, padding, dilation):
    offset = tap * dilation - padding[0]
    first = max(0, -(offset // stride))
    last = min(positions - 1, (n - 1 - offset) // stride)
    if last < first:
        return slice(0, 0), slice(0, 0)
    cells = slice(first * stride + offset, last * stride + offset + 1, stride)
    return slice(first, last + 1), cells


def merge_batch(x):
    """Merges the first two axes of `x`: a batch of batches becomes one longer batch."""
    return reshape(x, shape=(x.shape[0] * x.shape[1], *x.shape[2:]))


def split_batch(y, like):
    """Splits the first axis of `y` into the first two axes of `like`."""
    return reshape(y, shape=(*like.shape[:2], *y.shape[1:]))
