"""Windows that slide over the axes between the batch and the channels."""

from __future__ import annotations

import functools
import itertools
from typing import NamedTuple

from retrograde.ops.shaping import reshape


class Windows(NamedTuple):
    """Which cells of an array `(batch, *space, channels)` each window sees, axis by axis of space.

    Position `o` and tap `j` meet at the cell `o * stride + j * dilation - padding[0]`; where there
    is none, the tap sees padding.
    """

    size: tuple[int, ...]
    strides: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]
    dilations: tuple[int, ...]

    @property
    def ndim(self):
        """How many axes the windows slide over."""
        return len(self.size)

    def positions(self, space):
        """How many windows there are along each axis of `space`."""
        return tuple(
            max(0, (n + low + high - (k - 1) * d - 1) // s + 1)
            for n, k, s, (low, high), d in zip(space, *self, strict=True)
        )

    def taps(self):
        """The taps of a window, one tuple each, in row-major order."""
        return itertools.product(*map(range, self.size))

    def meetings(self, space):
        """Each tap, with two keys for space: the positions at which it sees a cell, these cells."""
        return _meetings(self, space)

    def along(self, axis, n):
        """For each tap along one axis of space, of size `n`: keys for positions and for cells.

        The keys are for arrays `(batch, *space, channels)`.
        """
        one = Windows(*(part[axis : axis + 1] for part in self))
        before = (slice(None),) * (axis + 1)
        return [((*before, *at), (*before, *seen)) for _, at, seen in one.meetings((n,))]

    def cover(self, axis, n):
        """Whether each of `n` cells along one axis of space is seen, and by one window only."""
        size, stride, padding, dilation = (part[axis] for part in self)
        return size == stride and dilation == 1 and padding == (0, 0) and n % stride == 0


@functools.lru_cache(maxsize=1024)  # a small convolution takes no longer than this
def _meetings(windows, space):
    positions = windows.positions(space)
    meetings = []
    for tap in windows.taps():
        axes = zip(space, positions, tap, *windows[1:], strict=True)
        at, seen = zip(*(_meeting(*axis) for axis in axes), strict=True) if tap else ((), ())
        meetings.append((tap, at, seen))
    return tuple(meetings)


def _meeting(n, positions, tap, stride, padding, dilation):
    offset = tap * dilation - padding[0]
    first = max(0, -(offset // stride))
    last = min(positions - 1, (n - 1 - offset) // stride)
    if last < first:
        return slice(0, 0), slice(0, 0)
    cells = slice(first * stride + offset, last * stride + offset + 1, stride)
    return slice(first, last + 1), cells


def folded(x):
    """`x` with its first two axes made one: a batch of batches is a longer batch."""
    return reshape(x, shape=(x.shape[0] * x.shape[1], *x.shape[2:]))


def unfolded(y, like):
    """`y` with its first axis cut in two again, as they were in `like`."""
    return reshape(y, shape=(*like.shape[:2], *y.shape[1:]))
