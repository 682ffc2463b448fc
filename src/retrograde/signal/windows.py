"""Window functions: weights for the samples of a frame."""

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
    """Computes a Hann window.

    Use `periodic` windows for spectral analysis and symmetric ones for filter design. As in
    TensorFlow, a periodic window of odd length is symmetric.

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
    """Computes a Hamming window.

    Use `periodic` windows for spectral analysis and symmetric ones for filter design. As in
    TensorFlow, a periodic window of odd length is symmetric.
    """
    return _raised_cosine(window_length, periodic, dtype, 0.54, "hamming_window")


def _raised_cosine(length: Any, periodic: Any, dtype: Any, center: float, op_name: str) -> Tensor:
    length, dtype = _arguments(length, dtype, op_name)
    if length == 1:
        return Tensor(np.ones(1, dtype))
    period = length if periodic and length % 2 == 0 else length - 1
    angles = 2 * np.pi * allocate(op_name, np.arange, length) / (period or 1)
    return Tensor((center - (1 - center) * np.cos(angles)).astype(dtype))


def vorbis_window(
    window_length: Any, dtype: Any = dtypes.float32, name: str | None = None
) -> Tensor:
    """Computes the Vorbis power complementary window.

    The squares of two windows that overlap by half add up to 1.

    >>> tf.signal.vorbis_window(4).numpy().round(4)
    array([0.228 , 0.9737, 0.9737, 0.228 ], dtype=float32)
    """
    length, dtype = _arguments(window_length, dtype, "vorbis_window")
    positions = allocate("vorbis_window", np.arange, length) + 0.5
    rising = np.sin(np.pi / max(length, 1) * positions)
    return Tensor(np.sin(np.pi / 2 * rising**2).astype(dtype))


def kaiser_window(
    window_length: Any, beta: Any = 12.0, dtype: Any = dtypes.float32, name: str | None = None
) -> Tensor:
    """Computes a Kaiser window, which is symmetric; its main lobe widens with `beta`.

    >>> tf.signal.kaiser_window(5, beta=2.0).numpy().round(4)
    array([0.4387, 0.8348, 1.    , 0.8348, 0.4387], dtype=float32)
    """
    length, dtype = _arguments(window_length, dtype, "kaiser_window", minimum=1)
    return to_dtype(_kaiser(length, beta), dtype)


def kaiser_bessel_derived_window(
    window_length: Any, beta: Any = 12.0, dtype: Any = dtypes.float32, name: str | None = None
) -> Tensor:
    """Computes a Kaiser-Bessel derived window, a cumulative sum of Kaiser windows, for `mdct`.

    The length is even. The squares of two windows that overlap by half add up to 1.
    """
    length, dtype = _arguments(window_length, dtype, "kaiser_bessel_derived_window")
    sums = cumsum(_kaiser(length // 2 + 1, beta))
    half = sqrt(sums[:-1] / sums[-1])
    return to_dtype(concat(half, reverse(half, axis=(0,)), axis=0), dtype)


def _kaiser(length: int, beta: Any) -> Tensor:
    """Computes a Kaiser window in double precision; gradients flow to `beta`."""
    if length == 1:
        return Tensor(np.ones(1))
    beta = to_dtype(as_tensor(beta), np.dtype(np.float64))
    positions = allocate("kaiser_window", np.linspace, -1.0, 1.0, length)
    width = beta * Tensor(np.sqrt(1 - positions**2))
    return exp(width - beta) * bessel_i0e(width) / bessel_i0e(beta)


def call_window_fn(window_fn: Callable, frames: Tensor) -> Any:
    """Calls `window_fn` for `frames`, whose samples are along the last axis."""
    length = frames._spec.shape[-1]
    kind = np.int32 if length < 2**31 else np.int64
    return window_fn(Tensor(kind(length)), dtype=frames.dtype)


def _arguments(
    window_length: Any, dtype: Any, op_name: str, minimum: int = 0
) -> tuple[int, np.dtype]:
    dtype = dtypes.as_dtype(dtype)
    if not dtype.is_floating:
        raise ValueError(f"{op_name}: `dtype` must be a float dtype. Received: {dtype.name}.")
    length = at_least(minimum, window_length, "window_length", op_name, TypeError)
    return length, dtype.numpy_dtype
