"""Discrete cosine transforms (DCT) and modified discrete cosine transforms (MDCT)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from retrograde.core.apply import apply
from retrograde.core.tensor import Tensor
from retrograde.math._inputs import dtype_name
from retrograde.ops import fourier as ft
from retrograde.ops.casting import identity
from retrograde.ops.conversion import as_tensor
from retrograde.ops.shaping import concat, reverse, split
from retrograde.signal._arguments import as_integer, at_least, check_rank, scale
from retrograde.signal.framing import frame, overlap_and_add
from retrograde.signal.windows import call_window_fn, vorbis_window
from retrograde.values.arguments import shown
from retrograde.values.errors import invalid

_INVERSE = {1: 1, 2: 3, 3: 2, 4: 4}


def dct(
    input: Any,
    type: int = 2,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = None,
    name: str | None = None,
) -> Tensor:
    """Computes the discrete cosine transform of type 1 to 4 along the last axis.

    With `n` the axis is first truncated or padded to that length. With `norm="ortho"`, which type 1
    does not support, the transform is orthonormal.

    >>> tf.signal.dct([1.0, 2.0, 4.0], norm="ortho").numpy().round(4)
    array([ 4.0415, -2.1213,  0.4082], dtype=float32)
    """
    return _dct(input, type, n, axis, norm, "dct")


def idct(
    input: Any,
    type: int = 2,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = None,
    name: str | None = None,
) -> Tensor:
    """Inverts `dct` of the same type, up to a factor of `2 * n` without `norm`.

    >>> x = tf.constant([1.0, 2.0, 3.0])
    >>> tf.signal.idct(tf.signal.dct(x, norm="ortho"), norm="ortho").numpy().round(4)
    array([1., 2., 3.], dtype=float32)
    """
    if type not in _INVERSE:
        raise _type_error(type, "idct")
    return _dct(input, _INVERSE[int(type)], n, axis, norm, "idct")


def _type_error(kind: Any, op_name: str) -> ValueError:
    return ValueError(f"{op_name}: `type` must be 1, 2, 3 or 4. Received: {kind}.")


def _dct(value: Any, kind: Any, n: Any, axis: int, norm: str | None, op_name: str) -> Tensor:
    x = as_tensor(value)
    if axis != -1:
        raise NotImplementedError(
            f"{op_name}: `axis` must be -1, the last axis. Received: {axis}. Use tf.transpose for "
            "other axes."
        )
    if kind not in _INVERSE:
        raise _type_error(kind, op_name)
    if norm not in (None, "ortho"):
        raise ValueError(f"{op_name}: `norm` must be None or 'ortho'. Received: {shown(norm)}.")
    if x._spec.dtype not in ft.REAL:
        raise TypeError(
            f"{op_name}: the input has dtype {dtype_name(x)}. Expected float32 or float64."
        )
    check_rank(x, 1, op_name, IndexError)
    if kind == 1 and norm:
        raise ValueError(f"{op_name}: type 1 does not support norm='ortho'. Use norm=None.")
    if kind == 1 and x._spec.shape[-1] < 2:
        raise ValueError(
            f"{op_name}: type 1 requires at least 2 elements along the last axis. Received: shape "
            f"{x._spec.shape}."
        )
    if n is not None:
        x = _resize(x, n, op_name)
    if kind == 1 and x._spec.shape[-1] == 1:
        return identity(x)
    return apply(ft.dct, (x,), {"kind": int(kind), "ortho": norm == "ortho"})


def _resize(x: Tensor, n: Any, op_name: str) -> Tensor:
    size = as_integer(n, "n", op_name, TypeError)
    if size < 1:
        raise ValueError(f"{op_name}: `n` must be None or at least 1. Received: {size}.")
    return ft.crop_or_pad(x, (*x._spec.shape[:-1], size))


def mdct(
    signals: Any,
    frame_length: Any,
    window_fn: Callable | None = vorbis_window,
    pad_end: bool = False,
    norm: str | None = None,
    name: str | None = None,
) -> Tensor:
    """Computes the modified discrete cosine transform: a type 4 `dct` of half-overlapping frames.

    Each frame of `frame_length` samples, a multiple of 4, gives half as many numbers.
    `window_fn(length, dtype=...)` creates the window; `None` means a constant window.
    """
    x = as_tensor(signals)
    check_rank(x, 1, "mdct")
    length = at_least(4, frame_length, "frame_length", "mdct")
    if length % 4:
        raise ValueError(f"mdct: `frame_length` must be a multiple of 4. Received: {length}.")
    frames = _apply_window(frame(x, length, length // 2, pad_end), window_fn)
    a, b, c, d = split(frames, sizes=(length // 4,) * 4, axis=frames.ndim - 1)
    last = (a.ndim - 1,)
    folded = (-reverse(c, axis=last) - d, a - reverse(b, axis=last))
    return dct(concat(*folded, axis=a.ndim - 1), type=4, norm=norm)


def inverse_mdct(
    mdcts: Any,
    window_fn: Callable | None = vorbis_window,
    norm: str | None = None,
    name: str | None = None,
) -> Tensor:
    """Inverts `mdct` with the same window, except for the first and last half frame."""
    x = as_tensor(mdcts)
    check_rank(x, 2, "inverse_mdct")
    half = x._spec.shape[-1]
    if half % 2:
        raise invalid(
            f"inverse_mdct: the last axis must have an even size. Received: shape {x._spec.shape}."
        )
    y = dct(x, type=4, norm=norm)
    if norm is None and half:
        y = scale(y, 0.5 / half)
    axis = y.ndim - 1
    a, b = split(y, sizes=(half // 2,) * 2, axis=axis)
    unfolded = (b, -reverse(b, axis=(axis,)), -reverse(a, axis=(axis,)), -a)
    frames = _apply_window(concat(*unfolded, axis=axis), window_fn)
    return overlap_and_add(frames, half)


def _apply_window(frames: Tensor, window_fn: Callable | None) -> Tensor:
    if window_fn is None:
        return scale(frames, math.sqrt(0.5))
    return frames * call_window_fn(window_fn, frames)
