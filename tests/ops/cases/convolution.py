"""Convolution and its transposes."""

from __future__ import annotations

import numpy as np

from retrograde.ops._windows import Windows
from tests.ops.cases._table import FLOATS, between, case
from tests.ops.cases.patches import window_taps

DTYPES = (*FLOATS, np.dtype("int32"))


def _terms(spatial_shape, windows, groups, channels, out_channels):
    """Yields, for each position, tap and group, the indices into the output, filter and input."""
    c, m = channels // groups, out_channels // groups
    for position, tap, cell in window_taps(spatial_shape, windows):
        for group in range(groups):
            ins, outs = slice(group * c, (group + 1) * c), slice(group * m, (group + 1) * m)
            yield (slice(None), *position, outs), (*tap, slice(None), outs), (..., *cell, ins)


def convolve(x, w, *, windows, groups):
    spatial_shape = x.shape[1:-1]
    y = np.zeros((len(x), *windows.positions(spatial_shape), w.shape[-1]), x.dtype)
    for at_y, at_w, at_x in _terms(spatial_shape, windows, groups, x.shape[-1], w.shape[-1]):
        y[at_y] += x[at_x] @ w[at_w]
    return y


def convolve_transpose(g, w, *, windows, groups, space):
    y = np.zeros((len(g), *space, w.shape[-2] * groups), g.dtype)
    for at_g, at_w, at_y in _terms(space, windows, groups, y.shape[-1], w.shape[-1]):
        y[at_y] += g[at_g] @ w[at_w].T
    return y


def filter_gradient(x, g, *, windows, groups):
    y = np.zeros((*windows.size, x.shape[-1] // groups, g.shape[-1]), x.dtype)
    for at_g, at_y, at_x in _terms(x.shape[1:-1], windows, groups, x.shape[-1], g.shape[-1]):
        y[at_y] += x[at_x].T @ g[at_g]
    return y


# Each entry lists the shape of x, the input channels per group, the output channels, the windows
# and the number of groups.
SAME = ((1, 1), (1, 1))
CALLS = {
    "same": ((2, 4, 5, 2), 2, 3, Windows((3, 3), (1, 1), SAME, (1, 1)), 1),
    "strided_dilated": ((1, 6, 7, 1), 1, 2, Windows((2, 3), (1, 2), ((2, 0), (1, 3)), (3, 2)), 1),
    "volume": ((1, 2, 3, 4, 1), 1, 2, Windows((2, 2, 2), (1, 1, 1), ((0, 0), *SAME), (1, 1, 1)), 1),
    "groups": ((1, 3, 4, 4), 2, 6, Windows((2, 3), (1, 2), ((0, 1), (1, 0)), (1, 1)), 2),
    "depthwise": ((2, 4, 4, 3), 1, 6, Windows((2, 3), (1, 2), SAME, (1, 1)), 3),
    "empty_batch": ((0, 3, 3, 2), 2, 2, Windows((2, 2), (1, 1), SAME, (1, 1)), 1),
}
for label, (shape, channels, out_channels, windows, groups) in CALLS.items():
    x, w = between(-1, 1, *shape), between(-1, 1, *windows.size, channels, out_channels)
    attrs = {"windows": windows, "groups": groups}
    g = between(-1, 1, shape[0], *windows.positions(shape[1:-1]), out_channels)
    case("convolve", [x, w], label, convolve, attrs=attrs, dtypes=DTYPES)
    case("convolve_transposed", [g, w], label, convolve_transpose,
         attrs=attrs | {"space": shape[1:-1]}, dtypes=DTYPES)  # fmt: skip
    case("convolve_filter", [x, g], label, filter_gradient, attrs=attrs, dtypes=DTYPES)
