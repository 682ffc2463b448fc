"""The n-dimensional Fourier transforms with the signatures of TensorFlow's top level."""

from __future__ import annotations

from typing import Any

from retrograde.core.tensor import Tensor
from retrograde.ops.casting import to_dtype
from retrograde.ops.conversion import numpy_dtype
from retrograde.signal import fourier
from retrograde.values import dtypes


def fftnd(input: Any, fft_length: Any, axes: Any, name: str | None = None) -> Tensor:
    """Computes `tf.signal.fftnd`; all arguments are required."""
    return fourier.fftnd(input, fft_length, axes)


def ifftnd(input: Any, fft_length: Any, axes: Any, name: str | None = None) -> Tensor:
    """Computes `tf.signal.ifftnd`; all arguments are required."""
    return fourier.ifftnd(input, fft_length, axes)


def rfftnd(
    input: Any,
    fft_length: Any,
    axes: Any,
    Tcomplex: Any = dtypes.complex64,
    name: str | None = None,
) -> Tensor:
    """Computes `tf.signal.rfftnd`; `Tcomplex` is the dtype of the result."""
    return to_dtype(fourier.rfftnd(input, fft_length, axes), numpy_dtype(Tcomplex))


def irfftnd(
    input: Any, fft_length: Any, axes: Any, Treal: Any = dtypes.float32, name: str | None = None
) -> Tensor:
    """Computes `tf.signal.irfftnd`; `Treal` is the dtype of the result."""
    return to_dtype(fourier.irfftnd(input, fft_length, axes), numpy_dtype(Treal))
