"""Mel-scale spectrograms and cepstral coefficients."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from retrograde.core.tensor import Tensor
from retrograde.ops.conversion import as_tensor
from retrograde.signal._arguments import as_integer, check_rank, scale
from retrograde.signal.cosine import dct
from retrograde.values import dtypes
from retrograde.values.arguments import as_float
from retrograde.values.errors import reports_out_of_memory


@reports_out_of_memory("linear_to_mel_weight_matrix")
def linear_to_mel_weight_matrix(
    num_mel_bins: Any = 20,
    num_spectrogram_bins: Any = 129,
    sample_rate: Any = 8000,
    lower_edge_hertz: Any = 125.0,
    upper_edge_hertz: Any = 3800.0,
    dtype: Any = dtypes.float32,
    name: str | None = None,
) -> Tensor:
    """Returns the matrix that converts linear-frequency spectrograms to mel-scale ones.

    It has `num_mel_bins` triangular bands, evenly spaced on the mel scale, `1127 * log(1 + f /
    700)`, from `lower_edge_hertz` to `upper_edge_hertz`. Multiply a spectrogram by it from the
    right.

    >>> tf.signal.linear_to_mel_weight_matrix(2, 5).numpy().round(2)
    array([[0.  , 0.  ],
           [0.72, 0.28],
           [0.  , 0.9 ],
           [0.  , 0.35],
           [0.  , 0.  ]], dtype=float32)
    """
    op_name = "linear_to_mel_weight_matrix"
    num_bands = as_integer(num_mel_bins, "num_mel_bins", op_name)
    rate = as_float(sample_rate, f"{op_name}: sample_rate")
    low = as_float(lower_edge_hertz, f"{op_name}: lower_edge_hertz")
    high = as_float(upper_edge_hertz, f"{op_name}: upper_edge_hertz")
    dtype = dtypes.as_dtype(dtype)
    if num_bands < 1:
        raise ValueError(f"{op_name}: `num_mel_bins` must be at least 1. Received: {num_bands}.")
    if low < 0 or low >= high:
        raise ValueError(
            f"{op_name}: expected 0 <= `lower_edge_hertz` < `upper_edge_hertz`. Received: {low} "
            f"and {high}."
        )
    if rate <= 0 or high > rate / 2:
        raise ValueError(
            f"{op_name}: `upper_edge_hertz` must not exceed half of `sample_rate`. Received: "
            f"{high} and {rate}."
        )
    if not dtype.is_floating:
        raise ValueError(f"{op_name}: `dtype` must be a float dtype. Received: {dtype.name}.")
    num_bins = as_integer(num_spectrogram_bins, "num_spectrogram_bins", op_name)
    if num_bins < 1:
        raise ValueError(
            f"{op_name}: `num_spectrogram_bins` must be at least 1. Received: {num_bins}."
        )
    mels = _mel(np.linspace(0.0, rate / 2, num_bins))[:, None]
    edges = np.linspace(_mel(low), _mel(high), num_bands + 2)
    lower, center, upper = edges[:-2], edges[1:-1], edges[2:]
    rising, falling = (mels - lower) / (center - lower), (upper - mels) / (upper - center)
    weights = np.maximum(0, np.minimum(rising, falling))
    weights[0] = 0  # the DC component is excluded
    return Tensor(weights.astype(dtype.numpy_dtype))


def _mel(hertz: Any) -> Any:
    return 1127.0 * np.log1p(hertz / 700.0)


def mfccs_from_log_mel_spectrograms(log_mel_spectrograms: Any, name: str | None = None) -> Tensor:
    """Computes mel-frequency cepstral coefficients: a scaled type 2 `dct` of the bands."""
    op_name = "mfccs_from_log_mel_spectrograms"
    x = as_tensor(log_mel_spectrograms)
    check_rank(x, 1, op_name, IndexError)
    size = x._spec.shape[-1]
    if not size:
        raise ValueError(f"{op_name}: expected at least 1 band. Received: shape {x._spec.shape}.")
    return scale(dct(x), 1 / math.sqrt(2 * size))
