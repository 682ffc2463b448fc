"""Windows: weights for the samples of a frame."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from retrograde.core.tensor import Tensor
from retrograde.math import bessel_i0e, cumsum, exp, sqrt
from retrograde.ops.casting import to_dtype
from retrograde.ops.conversion import as_tensor
from retrograde.ops.shaping import concat, reverse
from retrograde.signal._arguments import at_least
from retrograde.values import dtypes
from retrograde.values.errors import allocate


def hann_window(
    window_length: Any,
    periodic: Any = True,
    dtype: Any = dtypes.float32,
    name: str | None = None,
) -> Tensor:
    """A raised cosine that falls to 0; `periodic` for spectra, symmetric for filters.

    As in TensorFlow, a periodic window of odd length is symmetric.

    >>> tf.signal.hann_window(4).numpy()
    array([0. , 0.5, 1. , 0.5], dtype=float32)
    """
    return _raised_cosine(window_length, periodic, dtype, 0.5, "hann_window")


def hamming_window(
    window_length: Any,
    periodic: Any = True,
    dtype: Any = dtypes.float32,
    name: str | None = None,
) -> Tensor:
    """A raised cosine that falls to 0.08; `periodic` for spectra, symmetric for filters.

    As in TensorFlow, a periodic window of odd length is symmetric.
    """
    return _raised_cosine(window_length, periodic, dtype, 0.54, "hamming_window")


def _raised_cosine(length: Any, periodic: Any, dtype: Any, middle: float, op_name: str) -> Tensor:
    length, dtype = _arguments(length, dtype, op_name)
    if length == 1:
        return Tensor(np.ones(1, dtype))
    period = length if periodic and length % 2 == 0 else length - 1
    angles = 2 * np.pi * allocate(op_name, np.arange, length) / (period or 1)
    return Tensor((middle - (1 - middle) * np.cos(angles)).astype(dtype))


def vorbis_window(
    window_length: Any, dtype: Any = dtypes.float32, name: str | None = None
) -> Tensor:
    """The window of Vorbis; its square and that of its neighbour, half a frame on, add up to 1.

    >>> tf.signal.vorbis_window(4).numpy().round(4)
    array([0.228 , 0.9737, 0.9737, 0.228 ], dtype=float32)
    """
    length, dtype = _arguments(window_length, dtype, "vorbis_window")
    places = allocate("vorbis_window", np.arange, length) + 0.5
    rising = np.sin(np.pi / max(length, 1) * places)
    return Tensor(np.sin(np.pi / 2 * rising**2).astype(dtype))


def kaiser_window(
    window_length: Any, beta: Any = 12.0, dtype: Any = dtypes.float32, name: str | None = None
) -> Tensor:
    """A window close to the best for its width, which grows with `beta`. It is symmetric.

    >>> tf.signal.kaiser_window(5, beta=2.0).numpy().round(4)
    array([0.4387, 0.8348, 1.    , 0.8348, 0.4387], dtype=float32)
    """
    length, dtype = _arguments(window_length, dtype, "kaiser_window", least=1)
    return to_dtype(_kaiser(length, beta), dtype)


def kaiser_bessel_derived_window(
    window_length: Any, beta: Any = 12.0, dtype: Any = dtypes.float32, name: str | None = None
) -> Tensor:
    """A window made of the running sum of a Kaiser window, for `mdct`. Its length is even.

    Its square and that of its neighbour, half a frame on, add up to 1.
    """
    length, dtype = _arguments(window_length, dtype, "kaiser_bessel_derived_window")
    sums = cumsum(_kaiser(length // 2 + 1, beta))
    half = sqrt(sums[:-1] / sums[-1])
    return to_dtype(concat(half, reverse(half, axis=(0,)), axis=0), dtype)


def _kaiser(length: int, beta: Any) -> Tensor:
    """In double precision; `beta` may be a tensor, and has a gradient."""
    if length == 1:
        return Tensor(np.ones(1))
    beta = to_dtype(as_tensor(beta), np.dtype(np.float64))
    places = allocate("kaiser_window", np.linspace, -1.0, 1.0, length)
    width = beta * Tensor(np.sqrt(1 - places**2))
    return exp(width - beta) * bessel_i0e(width) / bessel_i0e(beta)


def window_of(window_fn: Callable, frames: Tensor) -> Any:
    """The window that a function makes for `frames`, which lie along the last axis."""
    length = frames._spec.shape[-1]
    kind = np.int32 if length < 2**31 else np.int64
    return window_fn(Tensor(kind(length)), dtype=frames.dtype)


def _arguments(
    window_length: Any, dtype: Any, op_name: str, least: int = 0
) -> tuple[int, np.dtype]:
    dtype = dtypes.as_dtype(dtype)
    if not dtype.is_floating:
        raise ValueError(f"{op_name}: `dtype` must be a float dtype. Received: {dtype.name}.")
    length = at_least(least, window_length, "window_length", op_name, TypeError)
    return length, dtype.numpy_dtype
