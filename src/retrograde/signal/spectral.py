"""Short-time Fourier transforms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from retrograde.core.tensor import Tensor
from retrograde.math import equal, reduce_sum, square
from retrograde.ops import fourier as ft
from retrograde.ops.conversion import as_tensor
from retrograde.ops.shaping import reshape
from retrograde.signal._arguments import as_integer, at_least, check_rank
from retrograde.signal.fourier import irfft, rfft
from retrograde.signal.framing import frame, overlap_and_add
from retrograde.signal.windows import call_window_fn, hann_window
from retrograde.toplevel.creation import zeros_like
from retrograde.toplevel.indexing import where
from retrograde.toplevel.shaping import pad, tile


def stft(
    signals: Any,
    frame_length: Any,
    frame_step: Any,
    fft_length: Any = None,
    window_fn: Callable | None = hann_window,
    pad_end: bool = False,
    name: str | None = None,
) -> Tensor:
    """Computes the short-time Fourier transform: `rfft` of windowed frames of the signal.

    The transform of each frame has `fft_length` points, by default the next power of two.
    `window_fn(frame_length, dtype=...)` creates the window; `None` means no window.

    >>> tf.signal.stft(tf.range(8.0), frame_length=4, frame_step=2, window_fn=None).numpy()
    array([[ 6.+0.j, -2.+2.j, -2.+0.j],
           [14.+0.j, -2.+2.j, -2.+0.j],
           [22.+0.j, -2.+2.j, -2.+0.j]], dtype=complex64)
    """
    x = as_tensor(signals)
    check_rank(x, 1, "stft")
    length = at_least(1, frame_length, "frame_length", "stft")
    points = _fft_points(fft_length, length, "stft")
    frames = frame(x, length, frame_step, pad_end)
    if window_fn is not None:
        frames = frames * call_window_fn(window_fn, frames)
    return rfft(frames, [points])


def inverse_stft(
    stfts: Any,
    frame_length: Any,
    frame_step: Any,
    fft_length: Any = None,
    window_fn: Callable | None = hann_window,
    name: str | None = None,
) -> Tensor:
    """Computes the inverse short-time Fourier transform: windowed `irfft` frames, added up.

    To reconstruct a signal from its `stft`, use the window of `inverse_stft_window_fn`.

    >>> x = tf.range(8.0)
    >>> window = tf.signal.inverse_stft_window_fn(frame_step=2)
    >>> y = tf.signal.inverse_stft(tf.signal.stft(x, 4, 2), 4, 2, window_fn=window)
    >>> y.numpy().round(3)[2:6]
    array([2., 3., 4., 5.], dtype=float32)
    """
    x = as_tensor(stfts)
    check_rank(x, 2, "inverse_stft")
    length = at_least(1, frame_length, "frame_length", "inverse_stft")
    points = _fft_points(fft_length, length, "inverse_stft")
    frames = irfft(x, [points])
    frames = ft.crop_or_pad(frames, (*frames._spec.shape[:-1], length))
    if window_fn is not None:
        frames = frames * call_window_fn(window_fn, frames)
    return overlap_and_add(frames, frame_step)


def _fft_points(fft_length: Any, frame_length: int, op_name: str) -> int:
    """Returns the length of the Fourier transform."""
    if fft_length is None:
        return 1 << (frame_length - 1).bit_length()
    return as_integer(fft_length, "fft_length", op_name)


def inverse_stft_window_fn(
    frame_step: Any, forward_window_fn: Callable = hann_window, name: str | None = None
) -> Callable[..., Tensor]:
    """Returns the window function for `inverse_stft` that inverts `forward_window_fn`.

    It divides the forward window by the sum of squares of all windows that overlap at a sample.

    >>> tf.signal.inverse_stft_window_fn(2)(4, dtype=tf.float64).numpy().round(3)
    array([0., 1., 1., 1.])
    """

    def window(frame_length: Any, dtype: Any) -> Tensor:
        op_name = "inverse_stft_window_fn"
        length = at_least(0, frame_length, "frame_length", op_name)
        step = at_least(1, frame_step, "frame_step", op_name)
        forward = as_tensor(forward_window_fn(frame_length, dtype=dtype))
        overlaps = -(-length // step)
        squares = pad(square(forward), [[0, overlaps * step - length]])
        total = reduce_sum(reshape(squares, shape=(overlaps, step)), 0)
        total = tile(total, [overlaps])[:length]
        return where(equal(total, 0), zeros_like(forward), forward / total)

    return window
