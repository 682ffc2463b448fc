"""Pooling, its transposes, and the index of the largest cell."""

from __future__ import annotations

import numpy as np

from retrograde.ops._windows import Windows
from tests.ops.cases._table import FLOATS, between, case
from tests.ops.cases.patches import window_taps


def _cells(space, windows):
    """Returns the cells of the window at each position, in row-major order."""
    cells = {position: [] for position in np.ndindex(*windows.positions(space))}
    for position, _, cell in window_taps(space, windows):
        cells[position].append(cell)
    return cells


def _largest(x, windows):
    """Yields, for each image, position and channel, the largest cell."""
    for position, cells in _cells(x.shape[1:-1], windows).items():
        for n, c in np.ndindex(len(x), x.shape[-1]):
            yield (n, *position, c), max(cells, key=lambda cell: x[n, *cell, c])


def _results(x, windows, dtype):
    return np.zeros((len(x), *windows.positions(x.shape[1:-1]), x.shape[-1]), dtype)


def max_pool_gather(t, x, *, windows):
    y = _results(x, windows, t.dtype)
    for index, cell in _largest(x, windows):
        y[index] = t[index[0], *cell, index[-1]]
    return y


def max_pool_scatter(g, x, *, windows):
    y = np.zeros_like(x)
    for index, cell in _largest(x, windows):
        y[index[0], *cell, index[-1]] += g[index]
    return y


def max_pool_index(x, *, windows):
    y = _results(x, windows, np.int64)
    for index, cell in _largest(x, windows):
        y[index] = np.ravel_multi_index(cell, x.shape[1:-1])
    return y


def average_pool(x, *, windows):
    y = _results(x, windows, x.dtype)
    for position, cells in _cells(x.shape[1:-1], windows).items():
        y[:, *position] = np.mean([x[:, *cell] for cell in cells], axis=0)
    return y


def average_pool_transpose(g, *, windows, space):
    y = np.zeros((len(g), *space, g.shape[-1]))
    for position, cells in _cells(space, windows).items():
        for cell in cells:
            y[:, *cell] += g[:, *position] / len(cells)
    return y


CALLS = {
    "disjoint": ((2, 4, 5, 2), Windows((2, 2), (2, 2), ((0, 0), (0, 1)), (1, 1))),
    "overlapping": ((1, 5, 4, 2), Windows((3, 2), (1, 1), ((1, 1), (0, 1)), (1, 1))),
    "line_dilated": ((2, 7, 2), Windows((3,), (1,), ((0, 0),), (2,))),
    "empty_batch": ((0, 4, 4, 1), Windows((2, 2), (2, 2), ((0, 0), (0, 0)), (1, 1))),
}
for label, (shape, windows) in CALLS.items():
    x, attrs = between(-1, 1, *shape), {"windows": windows}
    g = between(-1, 1, *_results(x, windows, x.dtype).shape)
    case("max_pool", x, label, lambda x, *, windows: max_pool_gather(x, x, windows=windows),
         attrs=attrs)  # fmt: skip
    case("max_pool_scatter", [g, x], label, max_pool_scatter, attrs=attrs)
    case("max_pool_gather", [between(-1, 1, *shape), x], label, max_pool_gather, attrs=attrs)
    case("average_pool", x, label, average_pool, attrs=attrs)
    case("average_pool_transpose", g, label, average_pool_transpose,
         attrs=attrs | {"space": shape[1:-1]})  # fmt: skip
case("max_pool_index", between(-1, 1, 2, 4, 4, 2), "same", max_pool_index, dtypes=FLOATS,
     attrs={"windows": Windows((3, 2), (2, 1), ((0, 1), (0, 1)), (1, 1))})  # fmt: skip
