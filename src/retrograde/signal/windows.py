"""Windows: weights for the samples of a frame."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from retrograde.core import dtypes
from retrograde.core.tensor import Tensor
from retrograde.signal._arguments import at_least


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


def _raised_cosine(length: Any, periodic: Any, dtype: Any, middle: float, what: str) -> Tensor:
    length, dtype = _arguments(length, dtype, what)
    if length == 1:
        return Tensor(np.ones(1, dtype))
    period = length if periodic and length % 2 == 0 else length - 1
    angles = 2 * np.pi * np.arange(length) / (period or 1)
    return Tensor((middle - (1 - middle) * np.cos(angles)).astype(dtype))


def vorbis_window(
    window_length: Any, dtype: Any = dtypes.float32, name: str | None = None
) -> Tensor:
    """The window of Vorbis; its square and that of its neighbour, half a frame on, add up to 1.

    >>> tf.signal.vorbis_window(4).numpy().round(4)
    array([0.228 , 0.9737, 0.9737, 0.228 ], dtype=float32)
    """
    length, dtype = _arguments(window_length, dtype, "vorbis_window")
    rising = np.sin(np.pi / max(length, 1) * (np.arange(length) + 0.5))
    return Tensor(np.sin(np.pi / 2 * rising**2).astype(dtype))


def window_of(window_fn: Callable, frames: Tensor) -> Any:
    """The window that a function makes for `frames`, which lie along the last axis."""
    length = Tensor(np.int32(frames._array.shape[-1]))
    return window_fn(length, dtype=frames.dtype)


def _arguments(window_length: Any, dtype: Any, what: str, least: int = 0) -> tuple[int, np.dtype]:
    dtype = dtypes.as_dtype(dtype)
    if not dtype.is_floating:
        raise ValueError(f"{what}: `dtype` must be a float dtype. Received: {dtype.name}.")
    length = at_least(least, window_length, "window_length", what, TypeError)
    return length, dtype.numpy_dtype
