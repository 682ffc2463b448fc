"""Fourier and cosine transforms: linear primitives, each the transpose of another."""

from __future__ import annotations

import math

import numpy as np

from retrograde.core.apply import Primitive
from retrograde.ops._arrays import fft_module, numpy_dtype_of
from retrograde.ops.shaping import put_slice, take_slice
from retrograde.values import dtypes

REAL = frozenset({np.dtype(np.float32), np.dtype(np.float64)})


def crop_or_pad(x, shape):
    """Truncates or zero-pads the end of each axis of `x` so that it has `shape`."""
    kept = tuple((0, min(sizes), 1) for sizes in zip(x.shape, shape, strict=True))
    if any(stop < size for (_, stop, _), size in zip(kept, x.shape, strict=True)):
        x = take_slice(x, where=kept)
    if x.shape != shape:
        x = put_slice(x, shape=shape, where=kept)
    return x


# Fourier transforms
#
# A transform runs along `axes`, which are first resized to `lengths`. `norm` says whether the
# "backward" or the "forward" transform is divided by the number of points, or both by its square
# root ("ortho"). The transpose is the transform in the other direction with the same factor.

_TRANSPOSED = {"backward": "forward", "forward": "backward", "ortho": "ortho"}


def bins(length):
    """Returns the number of frequencies of a real transform of `length` numbers."""
    return length // 2 + 1 if length else 0


def _kernel(name, last_size, result_dtype):
    def kernel(xp, x, *, axes, lengths, norm):
        if x.size and math.prod(lengths):
            return getattr(fft_module(xp), name)(x, s=lengths, axes=axes, norm=norm)
        shape = list(x.shape)
        for axis, length in zip(axes, lengths, strict=True):
            shape[axis] = length
        if axes:
            shape[axes[-1]] = last_size(lengths[-1])
        return xp.zeros(shape, result_dtype(x.dtype))

    return kernel


def _complex_of(dtype):
    return np.dtype(np.complex64 if dtype.itemsize == 4 else np.complex128)


def _real_of(dtype):
    return np.dtype(np.float32 if dtype.itemsize == 8 else np.float64)


def _transform(name, kernel, rule, accepts):
    def batch(_, x, *, axes, lengths, norm):
        return primitive(x, axes=tuple(a + 1 for a in axes), lengths=lengths, norm=norm)

    primitive = Primitive(
        name, kernel, vjps=(rule,), batch=batch, linear=True, accepts=frozenset(accepts)
    )
    return primitive


def _transpose_rule(transposed):
    def rule(g, _y, _x, *, norm, **attrs):
        return crop_or_pad(transposed(g, norm=_TRANSPOSED[norm], **attrs), tuple(_x.shape))

    return rule


fft = _transform(
    "fft",
    _kernel("fftn", lambda n: n, lambda dtype: dtype),
    _transpose_rule(lambda g, **attrs: ifft(g, **attrs)),
    dtypes.COMPLEX,
)
ifft = _transform(
    "ifft",
    _kernel("ifftn", lambda n: n, lambda dtype: dtype),
    _transpose_rule(lambda g, **attrs: fft(g, **attrs)),
    dtypes.COMPLEX,
)


def _factors(n, rest, first, last, like):
    """Returns `n` factors in the dtype of `like`: `first`, then `rest`, then `last`."""
    factors = np.full(n, rest, numpy_dtype_of(like))
    factors[-1:] = last
    factors[:1] = first
    return factors


def _scale_mirrored(g, axis, length, weight):
    """Multiplies `g` by `weight` at frequencies whose mirror image a real transform omits.

    The first has none. Nor has the last if `length` is even.
    """
    weights = _factors(bins(length), weight, 1, weight if length % 2 else 1, g)
    return g * weights.reshape(-1, *(1,) * (g.ndim - 1 - axis))


def _rfft_transpose(g, *, axes, lengths, norm):
    return irfft(
        _scale_mirrored(g, axes[-1], lengths[-1], 0.5), axes=axes, lengths=lengths, norm=norm
    )


def _irfft_transpose(g, *, axes, lengths, norm):
    return _scale_mirrored(rfft(g, axes=axes, lengths=lengths, norm=norm), axes[-1], lengths[-1], 2)


rfft = _transform(
    "rfft",
    _kernel("rfftn", bins, _complex_of),
    _transpose_rule(_rfft_transpose),
    REAL,
)
irfft = _transform(
    "irfft",
    _kernel("irfftn", lambda n: n, _real_of),
    _transpose_rule(_irfft_transpose),
    dtypes.COMPLEX,
)


# Cosine transforms of the last axis. Types 2 and 3 are each other's transpose, up to factors.


def _dct_kernel(xp, x, *, kind, ortho):
    if not x.size:
        return x
    if xp is np:
        return fft_module(np).dct(x, kind, norm="ortho" if ortho else None)
    if not ortho:
        return _DCT_BY_FFT[kind](xp, x)
    n = x.shape[-1]
    scale, root = math.sqrt(0.5 / n), math.sqrt(2)
    if kind == 3:
        return _dct3(xp, x * _factors(n, scale, scale * root, scale, x))
    first = scale / root if kind == 2 else scale
    return _DCT_BY_FFT[kind](xp, x) * _factors(n, scale, first, scale, x)


# XLA has only the Fourier transform.


def _twiddles(n, sign, dtype):
    return np.exp(sign * 0.5j * np.pi / n * np.arange(n)).astype(_complex_of(dtype))


def _dct1(xp, x):
    return xp.fft.rfft(xp.concatenate([x, x[..., -2:0:-1]], -1)).real


def _dct2(xp, x):
    n = x.shape[-1]
    return 2 * (xp.fft.rfft(x, 2 * n)[..., :n] * _twiddles(n, -1, x.dtype)).real


def _dct3(xp, x):
    n = x.shape[-1]
    return xp.fft.irfft(x * _twiddles(n, 1, x.dtype), 2 * n, norm="forward")[..., :n]


def _dct4(xp, x):
    padded = xp.concatenate([x, xp.zeros_like(x)], -1)
    return _dct2(xp, padded)[..., 1::2]


_DCT_BY_FFT = {1: _dct1, 2: _dct2, 3: _dct3, 4: _dct4}


def _dct_vjp(g, _y, _x, *, kind, ortho):
    n = _x.shape[-1]
    transpose_attrs = {"kind": {2: 3, 3: 2}.get(kind, kind), "ortho": ortho}
    if ortho or kind == 4:
        return dct(g, **transpose_attrs)
    if kind == 1:
        inside = _factors(n, 2, 1, 1, g)
        return dct(g / inside, **transpose_attrs) * inside
    if kind == 2:
        return dct(g * _factors(n, 1, 2, 1, g), **transpose_attrs)
    return dct(g, **transpose_attrs) * _factors(n, 1, 0.5, 1, g)


dct = Primitive(
    "dct",
    _dct_kernel,
    vjps=(_dct_vjp,),
    batch=lambda _, x, **attrs: dct(x, **attrs),
    linear=True,
    accepts=REAL,
)
