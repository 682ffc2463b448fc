"""JPEG: discrete cosine transforms of 8 by 8 blocks, in libjpeg's integer arithmetic.

All blocks are transformed at once. `blocks` has shape `(number of blocks, 64)`.
"""

from __future__ import annotations

import numpy as np


def samples(blocks: np.ndarray, steps: np.ndarray, side: int, accurate: bool) -> np.ndarray:
    """Dequantizes coefficients and computes samples in [0, 255]: `(blocks, side, side)`.

    A `side` of 4, 2 or 1 computes a downscaled block from fewer coefficients.
    """
    if side == 8:
        x = _accurate_samples(blocks, steps) if accurate else _fast_samples(blocks, steps)
    else:
        x = (blocks * steps).reshape(-1, 8, 8).astype(np.int64)
        if side == 1:
            x = (x[:, :1, :1] + 4) >> 3
        else:
            x = _reduce(x.swapaxes(1, 2), side, 11).swapaxes(1, 2)
            x = _reduce(x, side, 18)
    return (x + 128).clip(0, 255)


# Fast: the inverse DCT of Arai, Agui and Nakajima, with its factors folded into the quantization.

_FACTORS = np.array([1.0, *(np.cos(k * np.pi / 16) * np.sqrt(2) for k in range(1, 8))])
_SCALES = np.round(np.outer(_FACTORS, _FACTORS) * (1 << 14)).astype(np.int32).ravel()


def _fast_samples(blocks: np.ndarray, steps: np.ndarray) -> np.ndarray:
    factors = (steps * _SCALES + (1 << 11)) >> 12
    x = (blocks * factors).reshape(-1, 8, 8)
    x = _fast(x.swapaxes(1, 2)).swapaxes(1, 2)
    return _fast(x) >> 5


def _fast(x: np.ndarray) -> np.ndarray:
    """Transforms the last axis."""
    x0, x1, x2, x3, x4, x5, x6, x7 = np.moveaxis(x, -1, 0)
    sum_even, difference_even = x0 + x4, x0 - x4
    sum_outer = x2 + x6
    rotated = (((x2 - x6) * 362) >> 8) - sum_outer
    even = (
        sum_even + sum_outer,
        difference_even + rotated,
        difference_even - rotated,
        sum_even - sum_outer,
    )
    a, b, c, d = x5 + x3, x5 - x3, x1 + x7, x1 - x7
    odd0 = c + a
    middle = ((c - a) * 362) >> 8
    both = ((b + d) * 473) >> 8
    odd1 = ((b * -669) >> 8) + both - odd0
    odd2 = middle - odd1
    odd3 = ((d * 277) >> 8) - both + odd2
    odd = odd0, odd1, odd2, -odd3
    front = [e + o for e, o in zip(even, odd, strict=True)]
    second_half = [e - o for e, o in zip(even, odd, strict=True)]
    return np.stack([*front, *second_half[::-1]], axis=-1)


# Accurate: the inverse DCT of Loeffler, Ligtenberg and Moschytz, with 13 fractional bits.


def _fixed_point(x: float) -> int:
    return round(x * (1 << 13))


def _accurate_samples(blocks: np.ndarray, steps: np.ndarray) -> np.ndarray:
    x = (blocks * steps).reshape(-1, 8, 8)
    x = _accurate(x.swapaxes(1, 2), 11).swapaxes(1, 2)
    return _accurate(x, 18)


def _accurate(x: np.ndarray, bits: int) -> np.ndarray:
    """Transforms the last axis and removes `bits` fractional bits."""
    x0, x1, x2, x3, x4, x5, x6, x7 = np.moveaxis(x.astype(np.int64), -1, 0)
    z = (x2 + x6) * _fixed_point(0.541196100)
    inner, outer = z - x6 * _fixed_point(1.847759065), z + x2 * _fixed_point(0.765366865)
    plus, minus = (x0 + x4) << 13, (x0 - x4) << 13
    even = plus + outer, minus + inner, minus - inner, plus - outer
    z1, z2, z3, z4 = x7 + x1, x5 + x3, x7 + x3, x5 + x1
    z5 = (z3 + z4) * _fixed_point(1.175875602)
    z1, z2 = z1 * -_fixed_point(0.899976223), z2 * -_fixed_point(2.562915447)
    z3, z4 = z3 * -_fixed_point(1.961570560) + z5, z4 * -_fixed_point(0.390180644) + z5
    odd = (
        x1 * _fixed_point(1.501321110) + z1 + z4,
        x3 * _fixed_point(3.072711026) + z2 + z3,
        x5 * _fixed_point(2.053119869) + z2 + z4,
        x7 * _fixed_point(0.298631336) + z1 + z3,
    )
    half = 1 << (bits - 1)
    front = [(e + o + half) >> bits for e, o in zip(even, odd, strict=True)]
    second_half = [(e - o + half) >> bits for e, o in zip(even, odd, strict=True)]
    return np.stack([*front, *second_half[::-1]], axis=-1)


# Reduced: downscaled blocks from the accurate transform. Factors of the odd coefficients.

_ODD = {
    4: ((1.061594337, -2.172734803, 1.451774981, -0.211164243),
        (2.562915447, 0.899976223, -0.601344887, -0.509795579)),
    2: ((3.624509785, -1.272758580, 0.850430095, -0.720959822),),
}  # fmt: skip


def _reduce(x: np.ndarray, side: int, bits: int) -> np.ndarray:
    """Transforms the last axis to `side` samples and removes `bits` fractional bits."""
    odd = [
        sum(x[..., 2 * k + 1] * _fixed_point(f) for k, f in enumerate(row)) for row in _ODD[side]
    ]
    if side == 2:
        mean, bits = x[..., 0] << 15, bits + 2
        parts = mean + odd[0], mean - odd[0]
    else:
        mean, bits = x[..., 0] << 14, bits + 1
        even = x[..., 2] * _fixed_point(1.847759065) - x[..., 6] * _fixed_point(0.765366865)
        outer, inner = mean + even, mean - even
        parts = outer + odd[1], inner + odd[0], inner - odd[0], outer - odd[1]
    return (np.stack(parts, axis=-1) + (1 << (bits - 1))) >> bits


def accurate_coefficients(samples: np.ndarray) -> np.ndarray:
    """Computes the coefficients of samples in [-128, 127], times 8."""
    x = samples.reshape(-1, 8, 8)
    x = _forward(_forward(x, -2).swapaxes(1, 2), 2).swapaxes(1, 2)
    return x.reshape(-1, 64)


def _forward(x: np.ndarray, bits: int) -> np.ndarray:
    """Transforms the last axis and removes `bits` fractional bits, or adds them if negative."""
    x = np.moveaxis(x.astype(np.int64), -1, 0)
    sums, differences = x[:4] + x[:3:-1], x[:4] - x[:3:-1]
    outer, outer_difference = sums[0] + sums[3], sums[0] - sums[3]
    inner, inner_difference = sums[1] + sums[2], sums[1] - sums[2]
    z = (inner_difference + outer_difference) * _fixed_point(0.541196100)
    y2 = z + outer_difference * _fixed_point(0.765366865)
    y6 = z - inner_difference * _fixed_point(1.847759065)
    d0, d1, d2, d3 = differences
    z1, z2, z3, z4 = d3 + d0, d2 + d1, d3 + d1, d2 + d0
    z5 = (z3 + z4) * _fixed_point(1.175875602)
    z1, z2 = z1 * -_fixed_point(0.899976223), z2 * -_fixed_point(2.562915447)
    z3, z4 = z3 * -_fixed_point(1.961570560) + z5, z4 * -_fixed_point(0.390180644) + z5
    y1 = d0 * _fixed_point(1.501321110) + z1 + z4
    y3 = d1 * _fixed_point(3.072711026) + z2 + z3
    y5 = d2 * _fixed_point(2.053119869) + z2 + z4
    y7 = d3 * _fixed_point(0.298631336) + z1 + z3
    y0, y4 = [_descale(part, bits) for part in (outer + inner, outer - inner)]
    rest = [_descale(part, 13 + bits) for part in (y1, y2, y3, y5, y6, y7)]
    return np.stack([y0, *rest[:3], y4, *rest[3:]], axis=-1)


def _descale(x: np.ndarray, bits: int) -> np.ndarray:
    return x << -bits if bits <= 0 else (x + (1 << (bits - 1))) >> bits
