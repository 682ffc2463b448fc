"""Morphological dilation and erosion: convolutions with a maximum instead of a sum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from retrograde.core.apply import apply
from retrograde.core.tensor import Tensor
from retrograde.nn._windows import Layout
from retrograde.ops import arithmetic as ar
from retrograde.ops._windows import Windows
from retrograde.ops.conversion import one_dtype
from retrograde.ops.patches import take_patches
from retrograde.ops.pooling import max_pool
from retrograde.ops.shaping import reshape, reverse
from retrograde.values import dtypes
from retrograde.values.arguments import shown
from retrograde.values.errors import invalid


def dilation2d(
    input: Any,
    filters: Any,
    strides: Sequence[int],
    padding: str,
    data_format: str,
    dilations: Sequence[int],
    name: str | None = None,
) -> Tensor:
    """Computes the maximum over each window of the input plus `filters`.

    `filters` has the shape `(height, width, channels)`. In a tie the gradient goes to the first
    maximum.

    >>> x = tf.reshape([1.0, 5.0, 2.0], [1, 1, 3, 1])
    >>> w = tf.reshape([0.0, 1.0], [1, 2, 1])
    >>> y = tf.nn.dilation2d(x, w, [1, 1, 1, 1], "VALID", "NHWC", [1, 1, 1, 1])
    >>> y.numpy().ravel()
    array([6., 5.], dtype=float32)
    """
    return _dilation(input, filters, strides, padding, data_format, dilations, "dilation2d")


def erosion2d(
    value: Any,
    filters: Any,
    strides: Sequence[int],
    padding: str,
    data_format: str,
    dilations: Sequence[int],
    name: str | None = None,
) -> Tensor:
    """Computes the minimum over each window of the input minus the flipped `filters`.

    `filters` has the shape `(height, width, channels)`.
    """
    x, w = one_dtype((value, filters))
    w = reverse(w, axis=(0, 1)) if w.ndim == 3 else w
    negative = apply(ar.negative, (x,))
    y = _dilation(negative, w, strides, padding, data_format, dilations, "erosion2d")
    return apply(ar.negative, (y,))


def _dilation(
    input: Any,
    filters: Any,
    strides: Any,
    padding: str,
    data_format: str,
    dilations: Any,
    op_name: str,
) -> Tensor:
    if data_format != "NHWC":
        raise ValueError(f'{op_name}: data_format is {shown(data_format)}. Expected "NHWC".')
    layout = Layout.from_data_format(data_format, 2, op_name)
    x, w = one_dtype((input, filters))
    _check(x, w, op_name)
    strides = layout.per_spatial_axis(strides, "strides")
    dilations = layout.per_spatial_axis(dilations, "dilations")
    space, taps = x._spec.shape[1:3], w._spec.shape[:2]
    windows = layout.windows(padding, space, taps, strides, dilations)
    patches = apply(take_patches, (x,), {"windows": windows})
    batch, rows, columns, height, width, channels = patches._spec.shape
    shape = (batch, rows * columns, height * width, channels)
    patches = reshape(patches + w, shape=shape)
    if any(map(any, windows.padding)):
        inside, lowest = _inside(windows, space), Tensor(_lowest(patches._spec.dtype))
        inside = inside.reshape(1, rows * columns, height * width, 1)
        patches = apply(ar.select, (Tensor(inside), patches, lowest))
    one_window = Windows((1, height * width), (1, height * width), ((0, 0), (0, 0)), (1, 1))
    y = apply(max_pool, (patches,), {"windows": one_window})
    return reshape(y, shape=(batch, rows, columns, channels))


def _check(x: Tensor, w: Tensor, op_name: str) -> None:
    if x.ndim != 4:
        raise invalid(f"{op_name}: the input must have 4 axes. Received: shape {x._spec.shape}.")
    if w.ndim != 3 or 0 in w._spec.shape[:2]:
        raise invalid(
            f"{op_name}: filters must have 3 axes and must not be empty. Received: shape "
            f"{w._spec.shape}."
        )
    if x._spec.shape[-1] != w._spec.shape[-1]:
        raise invalid(
            f"{op_name}: the input has {x._spec.shape[-1]} channels, but the filters have "
            f"{w._spec.shape[-1]}. Expected the same number."
        )


def _inside(windows: Windows, space: tuple[int, ...]) -> np.ndarray:
    """Returns, for each window, which taps lie on the input and not on padding."""
    ones = np.ones((1, *space, 1), np.float32)
    return take_patches(ones, windows=windows) > 0


def _lowest(dtype: np.dtype) -> np.generic:
    return dtype.type(-np.inf) if dtype in dtypes.FLOATING else np.iinfo(dtype).min
