"""Convolutions on NumPy: few copies, few and large matrix products.

A convolution is a product of two matrices if each window is written out as a row. That copies
every cell as often as there are taps. Here it is copied once for each tap but those along the last
axis: a *line* holds, cell after cell along that axis, what the other taps see. A window is then
one contiguous stretch of a line, and the next window begins `stride` cells further on. Windows
overlap, and BLAS wants rows that do not; but every `k`-th of them do not, so `k` products read
the windows where they are. Lines follow each other without a gap, so a few windows lie across the
end of a line. Their results are dropped.

Lines are made for a few images at a time, to stay in cache. If there is enough to multiply, threads
of our own share the images, each with products on one BLAS thread: OpenBLAS threads would wait for
each other at every product.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np

from retrograde.fusion import blas_threads, blocks
from retrograde.ops._windows import Windows
from retrograde.values.thresholds import CONVOLUTION_SHARE as _SHARE
from retrograde.values.thresholds import LINES as _LINES
from retrograde.values.thresholds import PARTIAL_SUMS as _SUMS
from retrograde.values.thresholds import PRODUCT_ROWS as _ROWS
from retrograde.values.thresholds import SHARED_CONVOLUTION as _SHARED
from retrograde.values.thresholds import SHARED_LINES as _SHARED_LINES
from retrograde.values.thresholds import SHARES as _SHARES
from retrograde.values.thresholds import TAPS as _BLOCK


class _Lines:
    """The lines of a few images, and the windows in them.

    With `whole`, the taps of the last axis are copied, too: then no window crosses a line.
    """

    def __init__(self, x, windows, whole):
        self.x, self.windows = x, windows
        space, self.channels = x.shape[1:-1], x.shape[-1]
        *self.outer, self.inner = windows.positions(space)
        size, stride, (before, _), dilation = (part[-1] for part in windows)
        self.whole = whole or (dilation > 1 and size > 1)
        self.reach, self.stride = (1, 1) if self.whole else (size, stride)
        self.inner_padded = self.inner + -(-self.reach // self.stride) - 1
        self.cells = self.inner_padded * self.stride
        self.taps = math.prod(windows.size) // self.reach
        self.before = before
        self.is_x = self.taps == 1 and (len(x), *self.outer, self.cells) == x.shape[:-1]

    def parts(self, channels, most=1 << 20):
        """Returns slices of images, for a product with `channels` results, and whether to share.

        This follows from shapes alone, so that the number of threads does not change a result.
        There are at most `most` parts if they are shared.
        """
        count = len(self.x)
        width = self.reach * self.taps * self.channels
        work = count * math.prod(self.outer) * self.inner * width * channels
        line_bytes = self.cells * self.taps * self.channels * self.x.itemsize
        image_bytes = max(1, line_bytes * math.prod(self.outer))
        least = max(1, -(-count // most), _SHARE * count // work)
        block = max(least, min(_SHARED_LINES // image_bytes, count // _SHARES))
        rows = block * math.prod(self.outer) * self.inner // self.reach
        is_shared = work >= _SHARED and block < count and rows >= _ROWS
        if not is_shared:
            block = max(1, min(count, _LINES // image_bytes))
        return [slice(i, i + block) for i in range(0, count, block)], is_shared

    def begin(self, parts):
        """Allocates memory for the lines of any one of `parts`."""
        self.block = parts[0].stop - parts[0].start
        if not self.is_x:
            shape = (self.block, *self.outer, self.cells, self.taps, self.channels)
            self.lines = np.zeros(shape, self.x.dtype)

    def fill(self, images):
        """Lays out the lines of `images`. What is padding was 0 and stays 0."""
        x = self.x[images]
        if self.is_x:
            self.lines = x
            return
        # One item for all the channels of a cell makes one copy of many.
        item = np.dtype((np.void, self.channels * x.itemsize))
        cells, lines = (np.squeeze(a.view(item), -1) for a in (x, self.lines[: len(x)]))
        space, windows = x.shape[1:-1], self.windows
        if self.whole:
            for place, (_, positions, seen) in enumerate(windows.meetings(space)):
                lines[slice(None), *positions, place] = cells[slice(None), *seen]
            return
        outer = Windows(*(part[:-1] for part in windows))
        first, shift = max(0, -self.before), max(0, self.before)
        length = min(space[-1] - first, self.cells - shift)
        along, there = slice(first, first + length), slice(shift, shift + length)
        for place, (_, positions, seen) in enumerate(outer.meetings(space[:-1])):
            lines[slice(None), *positions, there, place] = cells[slice(None), *seen, along]

    def matrices(self, count):
        """For each of the products: its windows in the first `count` images, and their places."""
        flat = self.lines.reshape(-1)
        step = self.stride * self.taps * self.channels
        width = self.reach * self.taps * self.channels
        windows = count * math.prod(self.outer) * self.inner_padded
        complete = min(windows, (flat.size - width) // step + 1)
        apart = -(-self.reach // self.stride)
        itemsize = flat.itemsize
        for start in range(min(apart, complete)):
            shape = (-(-(complete - start) // apart), width)
            strides = (apart * step * itemsize, itemsize)
            rows = np.ndarray(shape, flat.dtype, flat, start * step * itemsize, strides)
            yield rows, slice(start, complete, apart)

    @property
    def crossed(self):
        """Whether windows cross the end of a line, with results that do not count."""
        return self.inner != self.inner_padded

    def room(self, channels):
        """Zeros for the results at all windows of a block; and the part of it that counts."""
        room = np.zeros((self.block, *self.outer, self.inner_padded, channels), self.x.dtype)
        return room.reshape(-1, channels), room[..., : self.inner, :]

    def filter_matrix(self, w):
        """The filter as a matrix, its rows in the order of the taps in a window."""
        return self._last_tap_first(w).reshape(-1, w.shape[-1])

    def _last_tap_first(self, w):
        return w if self.whole else np.moveaxis(w, self.windows.ndim - 1, 0)

    def filter_of(self, matrix):
        """The filter that `matrix` is the `filter_matrix` of."""
        size = self.windows.size
        if not self.whole:
            size = (size[-1], *size[:-1])
        w = matrix.reshape(*size, self.channels, matrix.shape[-1])
        return w if self.whole else np.moveaxis(w, 0, self.windows.ndim - 1)


def _run(work, parts, is_shared):
    """Calls `work(parts, dot)` with all parts, in one thread or in several that share them."""
    if not is_shared:
        work(iter(parts), blas_threads.dot)
        return
    with blas_threads.ONE_THREAD:
        blocks.shared(lambda parts: work(parts, np.matmul), parts, blocks.threads() - 1)


def convolve(x, w, windows):
    """What windows over `x` see, weighed by `w` and summed."""
    y = np.zeros((len(x), *windows.positions(x.shape[1:-1]), w.shape[-1]), x.dtype)
    if not (x.size and w.size and y.size):
        return y
    x = np.ascontiguousarray(x)
    parts, is_shared = _Lines(x, windows, whole=False).parts(w.shape[-1])

    def work(mine: Iterator, dot):
        lines = _Lines(x, windows, whole=False)
        lines.begin(parts)
        matrix = lines.filter_matrix(w)
        if lines.crossed:
            room, kept = lines.room(w.shape[-1])
        for images in mine:
            lines.fill(images)
            part = y[images]
            if not lines.crossed:
                room = part.reshape(-1, w.shape[-1])
            for rows, places in lines.matrices(len(part)):
                dot(rows, matrix, out=room[places])
            if lines.crossed:
                part[...] = kept[: len(part)]

    _run(work, parts, is_shared)
    return y


def convolve_transposed(g, w, windows, space):
    """The transpose of `convolve` in x, whose axes of space have the sizes `space`."""
    if all(s == 1 for s in windows.strides):
        backwards = tuple(
            ((k - 1) * d - low, n - 1 + low - (o - 1))
            for k, (low, _), d, n, o in zip(
                *windows[::2], windows.dilations, space, g.shape[1:-1], strict=True
            )
        )
        flipped = np.flip(w, tuple(range(windows.ndim))).swapaxes(-1, -2)
        return convolve(g, flipped, windows._replace(padding=backwards))
    y = np.zeros((len(g), *space, w.shape[-2]), g.dtype)
    if not (g.size and w.size and y.size):
        return y
    matrix = w.reshape(-1, w.shape[-1]).T
    block = max(1, _BLOCK // (g[0].size // g.shape[-1] * matrix.shape[-1] * g.itemsize))
    for start in range(0, len(g), block):
        part = g[start : start + block]
        seen = blas_threads.dot(part.reshape(-1, part.shape[-1]), matrix)
        seen = seen.reshape(*part.shape[:-1], *windows.size, -1)
        into = y[start : start + block]
        for tap, positions, cells in windows.meetings(space):
            into[slice(None), *cells] += seen[slice(None), *positions, *tap]
    return y


def convolve_filter(x, g, windows, whole=False):
    """The transpose of `convolve` in the filter."""
    shape = (*windows.size, x.shape[-1], g.shape[-1])
    if not (x.size and g.size and math.prod(shape)):
        return np.zeros(shape, x.dtype)
    x = np.ascontiguousarray(x)
    lines = _Lines(x, windows, whole)
    most = max(1, _SUMS // (math.prod(shape) * x.itemsize))
    parts, is_shared = lines.parts(shape[-1], most)
    sums = {}

    def work(mine: Iterator, dot):
        lines = _Lines(x, windows, whole)
        lines.begin(parts)
        if lines.crossed:
            room, counted = lines.room(shape[-1])
        for images in mine:
            lines.fill(images)
            part = g[images]
            if lines.crossed:
                counted[: len(part)] = part
            else:
                room = part.reshape(-1, shape[-1])
            for rows, places in lines.matrices(len(part)):
                product = dot(rows.T, room[places])
                key = images.start if is_shared else 0
                if key in sums:
                    sums[key] += product
                else:
                    sums[key] = product

    _run(work, parts, is_shared)
    total = sums.pop(0)
    for start in sorted(sums):  # in this order, whichever thread was first
        total += sums[start]
    if lines.crossed and not np.isfinite(total).all():
        # Perhaps something infinite met one of the zeros that do not count.
        return convolve_filter(x, g, windows, whole=True)
    return lines.filter_of(total)


# With one channel in each group there is nothing to multiply matrices with. Here each channel has
# one result; w is `(*taps, channels)`.


def depthwise(x, w, windows):
    """As `convolve`, of each channel by itself."""
    y = np.zeros((len(x), *windows.positions(x.shape[1:-1]), x.shape[-1]), x.dtype)
    for images, tap, positions, cells in _steps(x, y, windows):
        seen = x[images, *cells]
        y[images, *positions] += seen * _row(w[tap], seen)
    return y


def depthwise_transposed(g, w, windows, space):
    """The transpose of `depthwise` in x."""
    y = np.zeros((len(g), *space, g.shape[-1]), g.dtype)
    for images, tap, positions, cells in _steps(y, g, windows):
        part = g[images, *positions]
        y[images, *cells] += part * _row(w[tap], part)
    return y


def depthwise_filter(x, g, windows):
    """The transpose of `depthwise` in the filter."""
    y = np.zeros((*windows.size, x.shape[-1]), x.dtype)
    for images, tap, positions, cells in _steps(x, g, windows):
        product = (x[images, *cells] * g[images, *positions]).reshape(-1, x.shape[-1])
        y[tap] += np.ones(len(product), x.dtype).dot(product)
    return y


def _row(w, x):
    """`w`, one number for each channel, written out along the last axis of space.

    So NumPy can go through a whole row of `x` at a time.
    """
    return np.ascontiguousarray(np.broadcast_to(w, x.shape[-2:]))


def _steps(x, y, windows):
    """Blocks of images, and the taps for each block."""
    if not x.size or not y.size:
        return
    space = x.shape[1:-1]
    block = max(1, _BLOCK // (y[0].nbytes + x[0].nbytes))
    starts, meetings = range(0, len(x), block), windows.meetings(space)
    for start, (tap, positions, cells) in itertools.product(starts, meetings):
        yield slice(start, start + block), tap, positions, cells
