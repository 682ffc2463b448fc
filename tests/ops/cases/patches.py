"""Patches and their transpose."""

from __future__ import annotations

import numpy as np

from retrograde.ops._windows import Windows
from tests.ops.cases._table import COMPLEXES, FLOATS, INTEGERS, between, case, complexes

WINDOWS = {
    "same": ((2, 4, 5, 2), Windows((3, 2), (1, 2), ((1, 1), (0, 1)), (1, 1))),
    "dilated": ((1, 6, 5, 1), Windows((2, 3), (2, 1), ((1, 0), (2, 2)), (3, 2))),
    "empty_batch": ((0, 3, 3, 2), Windows((2, 2), (1, 1), ((0, 0), (0, 0)), (1, 1))),
}


def window_taps(space: tuple, windows: Windows):
    """Yields each position and tap with the cell that it reads, if it is inside."""
    for position in np.ndindex(*windows.positions(space)):
        for tap in np.ndindex(*windows.size):
            cell = tuple(
                o * s + j * d - p[0]
                for o, j, s, p, d in zip(position, tap, *windows[1:], strict=True)
            )
            if all(0 <= c < n for c, n in zip(cell, space, strict=True)):
                yield position, tap, cell


def take(x, *, windows):
    space = x.shape[1:-1]
    y = np.zeros((len(x), *windows.positions(space), *windows.size, x.shape[-1]), x.dtype)
    for position, tap, cell in window_taps(space, windows):
        y[:, *position, *tap] = x[:, *cell]
    return y


def put(x, *, windows, space):
    y = np.zeros((len(x), *space, x.shape[-1]), x.dtype)
    for position, tap, cell in window_taps(space, windows):
        y[:, *cell] += x[:, *position, *tap]
    return y


NUMBERS = FLOATS + COMPLEXES + INTEGERS
for label, (shape, windows) in WINDOWS.items():
    x = between(-1, 1, *shape)
    case("take_patches", x, label, take, attrs={"windows": windows}, dtypes=NUMBERS)
    case("sum_patches", between(-1, 1, *take(x, windows=windows).shape), label, put,
         attrs={"windows": windows, "space": shape[1:-1]}, dtypes=NUMBERS)  # fmt: skip
case("take_patches", complexes(1, 3, 2), "complex", take,
     attrs={"windows": Windows((2,), (1,), ((1, 0),), (1,))})  # fmt: skip
