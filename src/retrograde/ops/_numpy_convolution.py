"""Convolutions on NumPy: few copies, few and large matrix products.

If each window is copied to a row of a matrix (im2col), a convolution is one matrix product. But
that copies each element once per tap. Here, taps along the last axis need no copies: a *line* holds
the elements that the other taps read, one position after the other along that axis. A window is
then a contiguous part of a line, and the next window begins `stride` positions later. Windows
overlap, and BLAS needs rows that do not; but every `k`-th of them do not, so `k` products read
the windows in place. Lines follow each other without a gap, so a few windows extend across the
end of a line. Their results are dropped.

Lines are laid out for a few images at a time, to stay in cache. If there is enough work, our own
threads share the images, each with products on one BLAS thread. OpenBLAS threads would wait for
each other at every product.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np

from retrograde.fusion import blas_threads, blocks
from retrograde.ops._windows import Windows
from retrograde.values.thresholds import (
    MAX_LINES_BYTES,
    MAX_PARTIAL_SUMS_BYTES,
    MAX_SHARED_LINES_BYTES,
    MAX_TAPS_BYTES,
    MIN_CONVOLUTION_SHARE_WORK,
    MIN_PRODUCT_ROWS,
    MIN_SHARED_CONVOLUTION_WORK,
    MIN_SHARES,
)


class _Lines:
    """The lines of a few images, and the windows in them.

    With `all_taps`, taps along the last axis are copied as well, and no window crosses a line.
    """

    def __init__(self, x, windows, all_taps):
        self.x, self.windows = x, windows
        space, self.channels = x.shape[1:-1], x.shape[-1]
        *self.outer, self.inner = windows.positions(space)
        size, stride, (before, _), dilation = (part[-1] for part in windows)
        self.all_taps = all_taps or (dilation > 1 and size > 1)
        self.reach, self.stride = (1, 1) if self.all_taps else (size, stride)
        self.inner_padded = self.inner + -(-self.reach // self.stride) - 1
        self.cells = self.inner_padded * self.stride
        self.taps = math.prod(windows.size) // self.reach
        self.before = before
        self.is_x = self.taps == 1 and (len(x), *self.outer, self.cells) == x.shape[:-1]

    def parts(self, channels, max_parts=1 << 20):
        """Returns slices of images for products with `channels` columns, and whether to share.

        Both depend on shapes only, so the number of threads does not change a result. There are at
        most `max_parts` parts if they are shared.
        """
        count = len(self.x)
        width = self.reach * self.taps * self.channels
        work = count * math.prod(self.outer) * self.inner * width * channels
        line_bytes = self.cells * self.taps * self.channels * self.x.itemsize
        image_bytes = max(1, line_bytes * math.prod(self.outer))
        least = max(1, -(-count // max_parts), MIN_CONVOLUTION_SHARE_WORK * count // work)
        block = max(least, min(MAX_SHARED_LINES_BYTES // image_bytes, count // MIN_SHARES))
        rows = block * math.prod(self.outer) * self.inner // self.reach
        is_shared = (
            work >= MIN_SHARED_CONVOLUTION_WORK and block < count and rows >= MIN_PRODUCT_ROWS
        )
        if not is_shared:
            block = max(1, min(count, MAX_LINES_BYTES // image_bytes))
        return [slice(i, i + block) for i in range(0, count, block)], is_shared

    def begin(self, parts):
        """Allocates memory for the lines of any one of `parts`."""
        self.block = parts[0].stop - parts[0].start
        if not self.is_x:
            shape = (self.block, *self.outer, self.cells, self.taps, self.channels)
            self.lines = np.zeros(shape, self.x.dtype)

    def fill(self, images):
        """Lays out the lines of `images`. Padding is 0 from the allocation on."""
        x = self.x[images]
        if self.is_x:
            self.lines = x
            return
        # With the channels of a cell as one item, NumPy copies them together.
        item = np.dtype((np.void, self.channels * x.itemsize))
        cells, lines = (np.squeeze(a.view(item), -1) for a in (x, self.lines[: len(x)]))
        space, windows = x.shape[1:-1], self.windows
        if self.all_taps:
            for tap, (_, positions, read) in enumerate(windows.tap_slices(space)):
                lines[slice(None), *positions, tap] = cells[slice(None), *read]
            return
        outer = Windows(*(part[:-1] for part in windows))
        first, shift = max(0, -self.before), max(0, self.before)
        length = min(space[-1] - first, self.cells - shift)
        source, target = slice(first, first + length), slice(shift, shift + length)
        for tap, (_, positions, read) in enumerate(outer.tap_slices(space[:-1])):
            lines[slice(None), *positions, target, tap] = cells[slice(None), *read, source]

    def matrices(self, count):
        """Yields, for each product, its windows in the first `count` images, and their indices."""
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
    def crosses_lines(self):
        """Whether windows cross the end of a line, so that their results are dropped."""
        return self.inner != self.inner_padded

    def allocate_results(self, channels):
        """Returns zeros for the results of all windows of a block, and a view of the valid ones."""
        results = np.zeros((self.block, *self.outer, self.inner_padded, channels), self.x.dtype)
        return results.reshape(-1, channels), results[..., : self.inner, :]

    def filter_matrix(self, w):
        """Returns the filter as a matrix with its rows in the order of the taps in a window."""
        return self._last_tap_first(w).reshape(-1, w.shape[-1])

    def _last_tap_first(self, w):
        return w if self.all_taps else np.moveaxis(w, self.windows.ndim - 1, 0)

    def filter_of(self, matrix):
        """Returns the inverse of `filter_matrix`."""
        size = self.windows.size
        if not self.all_taps:
            size = (size[-1], *size[:-1])
        w = matrix.reshape(*size, self.channels, matrix.shape[-1])
        return w if self.all_taps else np.moveaxis(w, 0, self.windows.ndim - 1)


def _run(work, parts, is_shared):
    """Calls `work(parts, dot)`, in one thread or in several that share the parts."""
    if not is_shared:
        work(iter(parts), blas_threads.dot)
        return
    with blas_threads.ONE_THREAD:
        blocks.run_shared(lambda parts: work(parts, np.matmul), parts, blocks.threads() - 1)


def convolve(x, w, windows):
    """Convolves `x` with the filter `w`."""
    y = np.zeros((len(x), *windows.positions(x.shape[1:-1]), w.shape[-1]), x.dtype)
    if not (x.size and w.size and y.size):
        return y
    x = np.ascontiguousarray(x)
    parts, is_shared = _Lines(x, windows, all_taps=False).parts(w.shape[-1])

    def work(own_parts: Iterator, dot):
        lines = _Lines(x, windows, all_taps=False)
        lines.begin(parts)
        matrix = lines.filter_matrix(w)
        if lines.crosses_lines:
            results, valid = lines.allocate_results(w.shape[-1])
        for images in own_parts:
            lines.fill(images)
            part = y[images]
            if not lines.crosses_lines:
                results = part.reshape(-1, w.shape[-1])
            for rows, indices in lines.matrices(len(part)):
                dot(rows, matrix, out=results[indices])
            if lines.crosses_lines:
                part[...] = valid[: len(part)]

    _run(work, parts, is_shared)
    return y


def convolve_transposed(g, w, windows, space):
    """Computes the transpose of `convolve` with respect to x, which has spatial shape `space`."""
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
    block = max(1, MAX_TAPS_BYTES // (g[0].size // g.shape[-1] * matrix.shape[-1] * g.itemsize))
    for start in range(0, len(g), block):
        part = g[start : start + block]
        seen = blas_threads.dot(part.reshape(-1, part.shape[-1]), matrix)
        seen = seen.reshape(*part.shape[:-1], *windows.size, -1)
        target = y[start : start + block]
        for tap, positions, cells in windows.tap_slices(space):
            target[slice(None), *cells] += seen[slice(None), *positions, *tap]
    return y


def convolve_filter(x, g, windows, all_taps=False):
    """Computes the transpose of `convolve` with respect to the filter."""
    shape = (*windows.size, x.shape[-1], g.shape[-1])
    if not (x.size and g.size and math.prod(shape)):
        return np.zeros(shape, x.dtype)
    x = np.ascontiguousarray(x)
    lines = _Lines(x, windows, all_taps)
    max_parts = max(1, MAX_PARTIAL_SUMS_BYTES // (math.prod(shape) * x.itemsize))
    parts, is_shared = lines.parts(shape[-1], max_parts)
    sums = {}

    def work(own_parts: Iterator, dot):
        lines = _Lines(x, windows, all_taps)
        lines.begin(parts)
        if lines.crosses_lines:
            results, valid = lines.allocate_results(shape[-1])
        for images in own_parts:
            lines.fill(images)
            part = g[images]
            if lines.crosses_lines:
                valid[: len(part)] = part
            else:
                results = part.reshape(-1, shape[-1])
            for rows, indices in lines.matrices(len(part)):
                product = dot(rows.T, results[indices])
                key = images.start if is_shared else 0
                if key in sums:
                    sums[key] += product
                else:
                    sums[key] = product

    _run(work, parts, is_shared)
    total = sums.pop(0)
    for start in sorted(sums):  # in a fixed order, regardless of the order of threads
        total += sums[start]
    if lines.crosses_lines and not np.isfinite(total).all():
        # An infinite value may have been multiplied by a zero of the padding.
        return convolve_filter(x, g, windows, all_taps=True)
    return lines.filter_of(total)


# Depthwise convolutions have one channel in each group, so there are no matrix products. Here each
# channel has one result, and w is `(*taps, channels)`.


def depthwise(x, w, windows):
    """Convolves each channel of `x` separately."""
    y = np.zeros((len(x), *windows.positions(x.shape[1:-1]), x.shape[-1]), x.dtype)
    for images, tap, positions, cells in _blocks_and_taps(x, y, windows):
        seen = x[images, *cells]
        y[images, *positions] += seen * _row(w[tap], seen)
    return y


def depthwise_transposed(g, w, windows, space):
    """Computes the transpose of `depthwise` with respect to x."""
    y = np.zeros((len(g), *space, g.shape[-1]), g.dtype)
    for images, tap, positions, cells in _blocks_and_taps(y, g, windows):
        part = g[images, *positions]
        y[images, *cells] += part * _row(w[tap], part)
    return y


def depthwise_filter(x, g, windows):
    """Computes the transpose of `depthwise` with respect to the filter."""
    y = np.zeros((*windows.size, x.shape[-1]), x.dtype)
    for images, tap, positions, cells in _blocks_and_taps(x, g, windows):
        product = (x[images, *cells] * g[images, *positions]).reshape(-1, x.shape[-1])
        y[tap] += np.ones(len(product), x.dtype).dot(product)
    return y


def _row(w, x):
    """Repeats `w`, one number per channel, along the last spatial axis.

    Then NumPy can process an entire row of `x` at a time.
    """
    return np.ascontiguousarray(np.broadcast_to(w, x.shape[-2:]))


def _blocks_and_taps(x, y, windows):
    """Yields blocks of images, with each tap and its slices."""
    if not x.size or not y.size:
        return
    space = x.shape[1:-1]
    block = max(1, MAX_TAPS_BYTES // (y[0].nbytes + x[0].nbytes))
    starts, taps = range(0, len(x), block), windows.tap_slices(space)
    for start, (tap, positions, cells) in itertools.product(starts, taps):
        yield slice(start, start + block), tap, positions, cells
