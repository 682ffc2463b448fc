"""Fourier and cosine transforms, compared with the sums that define them."""

from __future__ import annotations

import math

import numpy as np

from tests.ops.cases._table import between, case, complexes

DIVISOR = {"backward": (1, 0), "forward": (0, 1), "ortho": (0.5, 0.5)}


def _multiply_along(x, matrix, axis):
    return np.moveaxis(np.tensordot(x, matrix, (axis, 1)), -1, axis)


def _resize(x, axis, size):
    """Truncates or zero-pads `x` to `size` elements along `axis`."""
    x = x.take(range(min(size, x.shape[axis])), axis)
    missing = [(0, size - n if i == axis else 0) for i, n in enumerate(x.shape)]
    return np.pad(x, missing)


def _waves(n, sign):
    return np.exp(sign * 2j * np.pi * np.outer(np.arange(n), np.arange(n)) / n)


def _fourier(sign):
    def reference(x, *, axes, lengths, norm):
        for axis, n in zip(axes, lengths, strict=True):
            x = _multiply_along(_resize(x, axis, n), _waves(n, sign), axis)
        return x / math.prod(lengths) ** DIVISOR[norm][sign < 0]

    return reference


_fft, _ifft = _fourier(-1), _fourier(1)


def _rfft(x, *, axes, lengths, norm):
    y = _fft(x, axes=axes, lengths=lengths, norm=norm)
    return y.take(range(lengths[-1] // 2 + 1), axes[-1])


def _irfft(x, *, axes, lengths, norm):
    """Ignores the imaginary part of frequencies without a mirror image."""
    *others, last = axes
    *sizes, n = lengths
    x = _ifft(x, axes=others, lengths=sizes, norm="backward")
    x = np.moveaxis(_resize(x, last, n // 2 + 1), last, -1)
    angles = 2 * np.pi * np.outer(np.arange(n // 2 + 1), np.arange(n)) / n
    weights = np.array([1 if k in (0, n / 2) else 2 for k in range(n // 2 + 1)])
    y = np.moveaxis(
        (x.real * weights) @ np.cos(angles) - (x.imag * weights) @ np.sin(angles), -1, last
    )
    return y / n * math.prod(lengths) ** (1 - DIVISOR[norm][0])


for label, shape, axes, lengths, norm in [
    ("rows", (2, 6), (1,), (6,), "forward"),
    ("columns", (5, 2), (0,), (5,), "ortho"),
    ("truncated", (2, 7), (1,), (4,), "backward"),
    ("plane_resized", (2, 3, 4), (1, 2), (2, 5), "forward"),
]:
    attrs = {"axes": axes, "lengths": lengths, "norm": norm}
    case("fft", complexes(*shape), label, _fft, attrs=attrs)
    case("ifft", complexes(*shape), label, _ifft, attrs=attrs)

for label, shape, axes, lengths, norm in [
    ("even", (2, 6), (1,), (6,), "backward"),
    ("odd", (5,), (0,), (5,), "backward"),
    ("truncated", (2, 7), (1,), (4,), "ortho"),
    ("padded", (3, 2), (0,), (6,), "backward"),
    ("plane_swapped", (4, 3), (1, 0), (3, 4), "ortho"),
    ("plane_resized", (2, 3, 4), (1, 2), (2, 5), "forward"),
    ("four_axes", (2, 2, 1, 3), (0, 1, 2, 3), (2, 2, 1, 3), "backward"),
    ("one", (2, 1), (1,), (1,), "backward"),
    ("no_rows", (0, 3), (1,), (3,), "backward"),
]:
    attrs = {"axes": axes, "lengths": lengths, "norm": norm}
    case("rfft", between(-1, 1, *shape), label, _rfft, attrs=attrs)
    case("irfft", complexes(*shape), label, _irfft, attrs=attrs)


for name in ("fft", "ifft", "rfft", "irfft"):
    x = between(-1, 1, 2, 0) if name == "rfft" else complexes(2, 0)
    attrs = {"axes": (1,), "lengths": (0,), "norm": "backward"}
    case(name, x, "nothing", lambda x, **_: x.real, attrs=attrs)


def _cosines(n, kind):
    """Returns the matrix of a cosine transform."""
    i, j = np.arange(n), np.arange(n)[:, None]
    if kind == 1:
        matrix = 2 * np.cos(np.pi * i * j / (n - 1))
        matrix[:, [0, -1]] /= 2
    elif kind == 2:
        matrix = 2 * np.cos(np.pi * (2 * i + 1) * j / (2 * n))
    elif kind == 3:
        matrix = 2 * np.cos(np.pi * i * (2 * j + 1) / (2 * n))
        matrix[:, 0] /= 2
    else:
        matrix = 2 * np.cos(np.pi * (2 * i + 1) * (2 * j + 1) / (4 * n))
    return matrix


def _dct(x, *, kind, ortho):
    matrix = _cosines(x.shape[-1], kind)
    if ortho:  # the rows of types 2 and 4 are orthogonal, and so are the columns of type 3
        axis = 0 if kind == 3 else 1
        matrix = matrix / np.sqrt((matrix**2).sum(axis, keepdims=True))
    return x @ matrix.T


for kind in (1, 2, 3, 4):
    attrs = {"kind": kind, "ortho": False}
    case("dct", between(-1, 1, 2, 4), f"even_{kind}", _dct, attrs=attrs)
    case("dct", between(-1, 1, 5), f"odd_{kind}", _dct, attrs=attrs)
    if kind > 1:
        attrs = {"kind": kind, "ortho": True}
        case("dct", between(-1, 1, 2, 3), f"ortho_{kind}", _dct, attrs=attrs)
case("dct", between(-1, 1, 2, 1), "one", _dct, attrs={"kind": 2, "ortho": True})
case("dct", between(-1, 1, 2, 0), "nothing", lambda x, **_: x, attrs={"kind": 2, "ortho": False})
