"""Implements `keras.ops.math`. Keras documents the functions."""

from __future__ import annotations

import numpy as np

from retrograde.core.apply import apply
from retrograde.core.tensor import Tensor
from retrograde.keras_backend.ops._functions import unary
from retrograde.keras_backend.ops._inputs import (
    FLOAT32,
    FLOAT64,
    INT32,
    INT64,
    canonicalize_axes,
    inexact,
    inexact_pair,
    numeric,
    of_dtype,
    shape_of,
    tensor,
    to_int,
)
from retrograde.keras_backend.ops.numpy import (
    expand_dims,
    pad,
    reshape,
    slogdet,
    sum,
    take_along_axis,
    tile,
)
from retrograde.ops import (
    arithmetic as ar,
)
from retrograde.ops import (
    elementary as el,
)
from retrograde.ops import (
    fourier,
    framing,
    reduction,
    segments,
    shaping,
    sorting,
    special,
)
from retrograde.ops.casting import ones_like, to_dtype
from retrograde.ops.complex_numbers import imag, make_complex, real
from retrograde.ops.indexing import scatter_add
from retrograde.values import dtypes

# Segments


def _prepare_segments(data, segment_ids, num_segments):
    """Returns the data, the ids and the segment count. Ids out of range become the count."""
    x, ids = numeric(data), tensor(segment_ids)
    if ids._spec.dtype not in (INT32, INT64):
        ids = to_dtype(ids, INT32)
    if num_segments is None:
        last = int(np.asarray(ids).max(initial=-1))
        count = last + 1
    else:
        count = to_int(num_segments)
    out_of_range_id = Tensor(ids._spec.dtype.type(count))
    in_range = ar.logical_and(ids >= 0, ids < out_of_range_id)
    return x, ar.select(in_range, ids, out_of_range_id), count


def _first_rows(y, count):
    rest = tuple((0, n, 1) for n in y._spec.shape[1:])
    return shaping.take_slice(y, where=((0, count, 1), *rest))


def segment_sum(data, segment_ids, num_segments=None, sorted=False):
    x, ids, count = _prepare_segments(data, segment_ids, num_segments)
    y = scatter_add(x, ids, shape=(count + 1, *x._spec.shape[1:]))
    return _first_rows(y, count)


def segment_prod(data, segment_ids, num_segments=None, sorted=False):
    x, ids, count = _prepare_segments(data, segment_ids, num_segments)
    return _first_rows(segments.segment_prod(x, ids, num_segments=count + 1), count)


def segment_max(data, segment_ids, num_segments=None, sorted=False):
    return _segment_extreme(segments.segment_max, -np.inf, data, segment_ids, num_segments)


def segment_min(data, segment_ids, num_segments=None, sorted=False):
    return _segment_extreme(segments.segment_min, np.inf, data, segment_ids, num_segments)


def _segment_extreme(primitive, empty_value, data, segment_ids, num_segments):
    x, ids, count = _prepare_segments(data, segment_ids, num_segments)
    dtype = x._spec.dtype
    if dtype in dtypes.INTEGER:
        limits = np.iinfo(dtype)
        empty_value = limits.min if empty_value < 0 else limits.max
    return _first_rows(primitive(x, ids, num_segments=count + 1, empty=empty_value), count)


# Top k


def top_k(x, k, sorted=True):
    x = numeric(x)
    indices = apply(sorting.top_k_indices, (x,), {"k": to_int(k), "dtype": INT32})
    return take_along_axis(x, indices, -1), indices


def in_top_k(targets, predictions, k):
    """Returns whether fewer than `k` classes score higher than the target; NaN counts as -Inf."""
    targets, predictions = tensor(targets), inexact(predictions)
    target_score = take_along_axis(predictions, expand_dims(targets, -1), -1)
    target_score = ar.select(
        ar.is_nan(target_score), Tensor(target_score._spec.dtype.type(-np.inf)), target_score
    )
    larger = sum(to_dtype(predictions > target_score, INT32), -1)
    return larger < Tensor(np.int32(to_int(k)))


def logsumexp(x, axis=None, keepdims=False):
    x = inexact(x)
    attrs = {"axis": canonicalize_axes(axis, x.ndim, "logsumexp"), "keepdims": bool(keepdims)}
    return apply(reduction.logsumexp, (x,), attrs)


# Elementwise functions and distances

rsqrt = unary(el.rsqrt)
erf = unary(el.erf)
erfc = unary(el.erfc)
erfinv = unary(special.erfinv)


def cdist(x, y):
    """Computes the pairwise distances of rows. The gradient of a zero distance is 0."""
    x, y = inexact_pair(x, y)
    if x.ndim < 2 or y.ndim < 2:
        raise ValueError("`cdist` inputs must have rank >= 2")
    if x._spec.shape[-1] != y._spec.shape[-1]:
        raise ValueError("Last dimension of inputs to `cdist` must match")
    difference = expand_dims(x, -2) - expand_dims(y, -3)
    squares = sum(difference * difference, -1)
    is_positive = squares > 0
    return ar.mask(el.sqrt(ar.select(is_positive, squares, ones_like(squares))), is_positive)


def logdet(x):
    return slogdet(x)[1]


# Fourier transforms of (real, imaginary) pairs


def _get_complex_tensor_from_tuple(x):
    if not isinstance(x, (tuple, list)) or len(x) != 2:
        raise ValueError(
            f"Input `x` should be a tuple of two tensors - real and imaginary. Received: x={x}"
        )
    parts = [tensor(part) for part in x]
    shapes = [shape_of(part) for part in parts]
    if shapes[0] != shapes[1]:
        raise ValueError(
            "Input `x` should be a tuple of two tensors - real and imaginary. Both the real and "
            "imaginary parts should have the same shape. Received: "
            f"x[0].shape = {shapes[0]}, x[1].shape = {shapes[1]}"
        )
    if any(part._spec.dtype not in dtypes.FLOATING for part in parts):
        raise ValueError(f"At least one tensor in input `x` is not of type float. Received: x={x}.")
    dtype = FLOAT64 if any(part._spec.dtype == FLOAT64 for part in parts) else FLOAT32
    return make_complex(*(to_dtype(part, dtype) for part in parts))


def _parts(y, dtype=None):
    """Returns the real and imaginary parts, cast to `dtype` if it is given."""
    parts = real(y), imag(y)
    return parts if dtype is None else tuple(to_dtype(part, dtype) for part in parts)


def _transform(primitive, x, rank, length=None):
    """Transforms the last `rank` axes. `length` replaces the size of the axis."""
    axes = tuple(range(x.ndim - rank, x.ndim))
    lengths = tuple(x._spec.shape[axis] for axis in axes) if length is None else (length,)
    return apply(primitive, (x,), {"axes": axes, "lengths": lengths, "norm": "backward"})


def fft(x):
    return _parts(_transform(fourier.fft, _get_complex_tensor_from_tuple(x), 1))


def fft2(x):
    return _parts(_transform(fourier.fft, _get_complex_tensor_from_tuple(x), 2))


def ifft2(x):
    return _parts(_transform(fourier.ifft, _get_complex_tensor_from_tuple(x), 2))


def rfft(x, fft_length=None):
    x = inexact(x)
    length = None if fft_length is None else to_int(fft_length)
    wide = x if x._spec.dtype in fourier.REAL else to_dtype(x, FLOAT32)
    return _parts(_transform(fourier.rfft, wide, 1, length), x._spec.dtype)


def irfft(x, fft_length=None):
    spectrum = _get_complex_tensor_from_tuple(x)
    length = 2 * (spectrum._spec.shape[-1] - 1) if fft_length is None else to_int(fft_length)
    return to_dtype(_transform(fourier.irfft, spectrum, 1, length), tensor(x[0])._spec.dtype)


# Sequences


def extract_sequences(x, sequence_length, sequence_stride):
    x = tensor(x)
    count = (x._spec.shape[-1] - sequence_length) // sequence_stride + 1
    attrs = {"count": max(count, 0), "length": sequence_length, "step": sequence_stride}
    return apply(framing.frame, (x,), {"axis": x.ndim - 1, **attrs})


def _window(window, sequence_length, fft_length, dtype):
    """Returns the window zero-padded to `fft_length`."""
    if window is None:
        return Tensor(np.ones(fft_length, dtype))
    if isinstance(window, str):
        if window not in ("hann", "hamming"):
            raise ValueError(
                'If a string is passed to `window`, it must be one of `"hann"`, `"hamming"`. '
                f"Received: window={window}"
            )
        offset, amplitude = (0.5, 0.5) if window == "hann" else (0.54, 0.46)
        angles = 2 * np.pi * np.arange(sequence_length) / sequence_length
        window = offset - amplitude * np.cos(angles) if sequence_length > 1 else np.ones(1)
    w = of_dtype(window, dtype)
    if shape_of(w) != (sequence_length,):
        raise ValueError(
            "The shape of `window` must be equal to [sequence_length]. "
            f"Received: window shape={shape_of(w)}"
        )
    before = (fft_length - sequence_length) // 2
    return pad(w, [(before, fft_length - sequence_length - before)])


def stft(x, sequence_length, sequence_stride, fft_length, window="hann", center=True):
    x = tensor(x)
    dtype = x._spec.dtype
    if dtype not in fourier.REAL:
        raise TypeError(
            "Invalid input type. Expected `float32` or `float64`. "
            f"Received: input type={x.dtype.name}"
        )
    if fft_length < sequence_length:
        raise ValueError(
            "`fft_length` must equal or larger than `sequence_length`. Received: "
            f"sequence_length={sequence_length}, fft_length={fft_length}"
        )
    w = _window(window, sequence_length, fft_length, dtype)
    if center:
        margin = fft_length // 2
        x = pad(x, [(0, 0)] * (x.ndim - 1) + [(margin, margin)], mode="reflect")
    frames = extract_sequences(x, fft_length, sequence_stride)
    return _parts(_transform(fourier.rfft, frames * w, 1))


def istft(x, sequence_length, sequence_stride, fft_length, length=None, window="hann", center=True):
    """Reconstructs a signal from its STFT. The ends fade where fewer frames overlap."""
    spectrum = _get_complex_tensor_from_tuple(x)
    if spectrum.ndim < 2:
        raise ValueError(
            f"Input `x` must have at least 2 dimensions. Received shape: {shape_of(spectrum)}"
        )
    frames = _transform(fourier.irfft, spectrum, 1, fft_length)
    if window is not None:
        w = _window(window, sequence_length, fft_length, frames._spec.dtype)
        frames = frames * ar.divide_no_nan(w, _overlapping_squares(w, sequence_stride))
    size = fft_length + sequence_stride * (frames._spec.shape[-2] - 1)
    y = framing.overlap_add(frames, axis=frames.ndim - 2, size=size, step=sequence_stride)
    start = fft_length // 2 if center else 0
    stop = size - start if length is None else min(start + length, size)
    return y[..., start:stop]


def _overlapping_squares(window, step):
    """Sums the squared window and the squared windows that overlap it."""
    n = window._spec.shape[0]
    count = -(-n // step)
    squares = reshape(pad(window * window, [(0, count * step - n)]), (count, step))
    return tile(sum(squares, 0), count)[:n]
