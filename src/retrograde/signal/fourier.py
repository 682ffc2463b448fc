"""Discrete Fourier transforms over one or more axes."""

from __future__ import annotations

from typing import Any

import numpy as np

from retrograde.core.apply import Primitive, apply
from retrograde.core.tensor import Tensor
from retrograde.math._inputs import axes_of, dtype_name
from retrograde.ops import fourier as ft
from retrograde.ops.arguments import integers
from retrograde.ops.casting import identity
from retrograde.ops.conversion import as_tensor
from retrograde.signal._arguments import check_rank
from retrograde.toplevel.shaping import roll
from retrograde.values import dtypes
from retrograde.values.arguments import shown
from retrograde.values.conversion import tensor_or_variable
from retrograde.values.errors import invalid
from retrograde.values.shapes import normalize_axis

_COMPLEX64 = np.dtype(np.complex64)
_FLOAT32 = np.dtype(np.float32)
_NORMS = ("backward", "forward", "ortho")


def fft(input: Any, name: str | None = None) -> Tensor:
    """Computes the discrete Fourier transform of complex numbers along the last axis.

    >>> tf.signal.fft([1.0, 2.0, 3.0, 4.0]).numpy()
    array([10.+0.j, -2.+2.j, -2.+0.j, -2.-2.j], dtype=complex64)
    """
    return _complex_transform(ft.fft, input, 1, "fft")


def ifft(input: Any, name: str | None = None) -> Tensor:
    """Computes the inverse of `fft`."""
    return _complex_transform(ft.ifft, input, 1, "ifft")


def fft2d(input: Any, name: str | None = None) -> Tensor:
    """Computes the discrete Fourier transform of complex numbers along the last two axes."""
    return _complex_transform(ft.fft, input, 2, "fft2d")


def ifft2d(input: Any, name: str | None = None) -> Tensor:
    """Computes the inverse of `fft2d`."""
    return _complex_transform(ft.ifft, input, 2, "ifft2d")


def fft3d(input: Any, name: str | None = None) -> Tensor:
    """Computes the discrete Fourier transform of complex numbers along the last three axes."""
    return _complex_transform(ft.fft, input, 3, "fft3d")


def ifft3d(input: Any, name: str | None = None) -> Tensor:
    """Computes the inverse of `fft3d`."""
    return _complex_transform(ft.ifft, input, 3, "ifft3d")


def rfft(input_tensor: Any, fft_length: Any = None, name: str | None = None) -> Tensor:
    """Computes the discrete Fourier transform of real numbers along the last axis.

    Only the first `n // 2 + 1` of n frequencies are returned; the others are their complex
    conjugates. With `fft_length`, a list of one integer, the axis is first truncated or padded to
    that length.

    >>> tf.signal.rfft([1.0, 2.0, 3.0, 4.0]).numpy()
    array([10.+0.j, -2.+2.j, -2.+0.j], dtype=complex64)
    """
    return _from_real(input_tensor, fft_length, 1, "rfft")


def irfft(input_tensor: Any, fft_length: Any = None, name: str | None = None) -> Tensor:
    """Computes the inverse of `rfft`; the result's length is even unless `fft_length` is given.

    >>> tf.signal.irfft(tf.signal.rfft([1.0, 2.0, 3.0]), [3]).numpy()
    array([1., 2., 3.], dtype=float32)
    """
    return _to_real(input_tensor, fft_length, 1, "irfft")


def rfft2d(input_tensor: Any, fft_length: Any = None, name: str | None = None) -> Tensor:
    """Computes the discrete Fourier transform of real numbers along the last two axes.

    Along the last axis only the first `n // 2 + 1` frequencies are returned. `fft_length` holds two
    sizes to which the axes are first truncated or padded.
    """
    return _from_real(input_tensor, fft_length, 2, "rfft2d")


def irfft2d(input_tensor: Any, fft_length: Any = None, name: str | None = None) -> Tensor:
    """Computes the inverse of `rfft2d`; the last axis is even unless `fft_length` is given."""
    return _to_real(input_tensor, fft_length, 2, "irfft2d")


def rfft3d(input_tensor: Any, fft_length: Any = None, name: str | None = None) -> Tensor:
    """Computes the discrete Fourier transform of real numbers along the last three axes.

    Along the last axis only the first `n // 2 + 1` frequencies are returned. `fft_length` holds
    three sizes to which the axes are first truncated or padded. Unlike TensorFlow's, it has a
    gradient.
    """
    return _from_real(input_tensor, fft_length, 3, "rfft3d")


def irfft3d(input_tensor: Any, fft_length: Any = None, name: str | None = None) -> Tensor:
    """Computes the inverse of `rfft3d`; the last axis is even unless `fft_length` is given."""
    return _to_real(input_tensor, fft_length, 3, "irfft3d")


def fftnd(
    input_tensor: Any,
    fft_length: Any = None,
    axes: Any = None,
    norm: str | None = None,
    name: str | None = None,
) -> Tensor:
    """Computes the discrete Fourier transform of complex numbers along `axes`, by default all.

    `fft_length` holds one size per axis, to which the axis is first truncated or padded. `norm`
    selects where to divide by the number of points: in the inverse ("backward", the default), in
    this transform ("forward"), or by its square root in both ("ortho").
    """
    x = _as_complex(input_tensor)
    return _transform(ft.fft, x, fft_length, _axes(axes, x, "fftnd"), norm, "fftnd")


def ifftnd(
    input_tensor: Any,
    fft_length: Any = None,
    axes: Any = None,
    norm: str | None = None,
    name: str | None = None,
) -> Tensor:
    """Computes the inverse of `fftnd`."""
    x = _as_complex(input_tensor)
    return _transform(ft.ifft, x, fft_length, _axes(axes, x, "ifftnd"), norm, "ifftnd")


def rfftnd(
    input_tensor: Any,
    fft_length: Any = None,
    axes: Any = None,
    norm: str | None = None,
    name: str | None = None,
) -> Tensor:
    """Computes the discrete Fourier transform of real numbers along `axes`, by default all.

    Along the last of `axes` only the first `n // 2 + 1` frequencies are returned. The other
    arguments are the same as for `fftnd`.
    """
    x = _as_real(input_tensor, "rfftnd")
    return _transform(ft.rfft, x, fft_length, _axes(axes, x, "rfftnd", 1), norm, "rfftnd")


def irfftnd(
    input_tensor: Any,
    fft_length: Any = None,
    axes: Any = None,
    norm: str | None = None,
    name: str | None = None,
) -> Tensor:
    """Computes the inverse of `rfftnd`; the last axis is even unless `fft_length` is given."""
    x = _as_spectrum(input_tensor, "irfftnd")
    return _transform(ft.irfft, x, fft_length, _axes(axes, x, "irfftnd", 1), norm, "irfftnd")


# Shifts


def fftshift(x: Any, axes: Any = None, name: str | None = None) -> Tensor:
    """Moves frequency 0 from the start to the center of `axes`, by default all.

    >>> tf.signal.fftshift([0, 1, 2, -2, -1]).numpy()
    array([-2, -1,  0,  1,  2], dtype=int32)
    """
    x = as_tensor(x)
    axes = axes_of(axes, x, "fftshift")
    return roll(x, [x._spec.shape[a] // 2 for a in axes], axes)


def ifftshift(x: Any, axes: Any = None, name: str | None = None) -> Tensor:
    """Computes the inverse of `fftshift`."""
    x = as_tensor(x)
    axes = axes_of(axes, x, "ifftshift")
    return roll(x, [-(x._spec.shape[a] // 2) for a in axes], axes)


# Arguments


def _as_complex(value: Any) -> Tensor:
    """Converts `value` to complex64, unless it is a tensor or already complex."""
    x = as_tensor(value)
    if tensor_or_variable(value) is not None or (
        x._spec.dtype.kind in "bc" and type(value) is not np.ndarray
    ):
        return x
    return as_tensor(value, hint=_COMPLEX64)


def _as_spectrum(value: Any, op_name: str) -> Tensor:
    x = as_tensor(value, hint=_COMPLEX64)
    if x._spec.dtype not in dtypes.COMPLEX:
        raise ValueError(
            f"{op_name}: the input has dtype {dtype_name(x)}. Expected complex64 or complex128."
        )
    return x


def _as_real(value: Any, op_name: str) -> Tensor:
    x = as_tensor(value, hint=_FLOAT32)
    if x._spec.dtype not in ft.REAL:
        raise ValueError(
            f"{op_name}: the input has dtype {dtype_name(x)}. Expected float32 or float64."
        )
    return x


def _axes(axes: Any, x: Tensor, op_name: str, minimum: int = 0) -> tuple[int, ...]:
    """Returns the axes to transform, in the given order."""
    requested = range(x.ndim) if axes is None else integers(axes, f"{op_name}: `axes`", ndim=1)
    if len(requested) > x.ndim or len(requested) < minimum:
        raise ValueError(
            f"{op_name}: {len(requested)} axes for an input of shape {x._spec.shape}. Expected at "
            f"least {minimum} and at most {x.ndim}."
        )
    axes = tuple(normalize_axis(axis, x.ndim, op_name) for axis in requested)
    if len(set(axes)) < len(axes):
        raise invalid(f"{op_name}: `axes` must be distinct. Received: {shown(list(requested))}.")
    return axes


def _last(x: Tensor, rank: int) -> tuple[int, ...]:
    return tuple(range(x.ndim - rank, x.ndim))


def _complex_transform(primitive: Primitive, value: Any, rank: int, op_name: str) -> Tensor:
    x = _as_complex(value)
    check_rank(x, rank, op_name, invalid)
    return _transform(primitive, x, None, _last(x, rank), None, op_name)


def _from_real(value: Any, fft_length: Any, rank: int, op_name: str) -> Tensor:
    x = _as_real(value, op_name)
    check_rank(x, rank, op_name)
    return _transform(ft.rfft, x, fft_length, _last(x, rank), None, op_name)


def _to_real(value: Any, fft_length: Any, rank: int, op_name: str) -> Tensor:
    x = _as_spectrum(value, op_name)
    check_rank(x, rank, op_name)
    return _transform(ft.irfft, x, fft_length, _last(x, rank), None, op_name)


def _transform(
    primitive: Primitive,
    x: Tensor,
    fft_length: Any,
    axes: tuple[int, ...],
    norm: str | None,
    op_name: str,
) -> Tensor:
    if norm not in (None, *_NORMS):
        raise ValueError(
            f"{op_name}: `norm` must be None or one of {', '.join(_NORMS)}. Received: "
            f"{shown(norm)}."
        )
    if not axes:
        return identity(x)
    attrs = {
        "axes": axes,
        "lengths": _lengths(primitive, x, fft_length, axes, op_name),
        "norm": norm or "backward",
    }
    return apply(primitive, (x,), attrs)


def _lengths(
    primitive: Primitive, x: Tensor, fft_length: Any, axes: tuple[int, ...], op_name: str
) -> tuple[int, ...]:
    """Returns the number of points along each axis."""
    sizes = [x._spec.shape[axis] for axis in axes]
    if fft_length is None:
        if primitive is ft.irfft:
            sizes[-1] = max(0, 2 * (sizes[-1] - 1))
    else:
        sizes = integers(fft_length, f"{op_name}: `fft_length`", TypeError, ndim=1)
    if len(sizes) != len(axes):
        raise invalid(
            f"{op_name}: `fft_length` has {len(sizes)} sizes. Expected {len(axes)}, one for each "
            "axis."
        )
    if min(sizes) < 1 and (x._spec.size or fft_length is not None):
        raise invalid(f"{op_name}: the length must be at least 1. Received: {shown(list(sizes))}.")
    return tuple(sizes)
