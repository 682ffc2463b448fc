"""The transforms of any number of axes as TensorFlow has them at its top level."""

from __future__ import annotations

from typing import Any

from retrograde.core.tensor import Tensor
from retrograde.ops.casting import to_dtype
from retrograde.ops.conversion import numpy_dtype
from retrograde.signal import fourier
from retrograde.values import dtypes


def fftnd(input: Any, fft_length: Any, axes: Any, name: str | None = None) -> Tensor:
    """`tf.signal.fftnd`, with all its arguments given."""
    return fourier.fftnd(input, fft_length, axes)


def ifftnd(input: Any, fft_length: Any, axes: Any, name: str | None = None) -> Tensor:
    """`tf.signal.ifftnd`, with all its arguments given."""
    return fourier.ifftnd(input, fft_length, axes)


def rfftnd(
    input: Any,
    fft_length: Any,
    axes: Any,
    Tcomplex: Any = dtypes.complex64,
    name: str | None = None,
) -> Tensor:
    """`tf.signal.rfftnd`, with all its arguments given; `Tcomplex` is the dtype of the result."""
    return to_dtype(fourier.rfftnd(input, fft_length, axes), numpy_dtype(Tcomplex))


def irfftnd(
    input: Any, fft_length: Any, axes: Any, Treal: Any = dtypes.float32, name: str | None = None
) -> Tensor:
    """`tf.signal.irfftnd`, with all its arguments given; `Treal` is the dtype of the result."""
    return to_dtype(fourier.irfftnd(input, fft_length, axes), numpy_dtype(Treal))
