"""Adjustment of brightness, contrast, gamma, hue and saturation; the image dtype is preserved."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from retrograde.core.tensor import Tensor
from retrograde.image._inputs import as_image, require
from retrograde.image.color_spaces import (
    at_least_float32,
    compute_saturation,
    convert_image_dtype,
    from_hsv,
    hue_and_extremes,
    pure_color,
)
from retrograde.math import reduce_mean, reduce_std
from retrograde.ops import arithmetic as ar
from retrograde.ops.casting import to_dtype
from retrograde.ops.conversion import as_tensor
from retrograde.ops.shaping import broadcast_to, reshape, stack
from retrograde.toplevel.shaping import cast
from retrograde.values import dtypes
from retrograde.values.arguments import as_text
from retrograde.values.conversion import tensor_or_variable
from retrograde.values.errors import invalid

_FLOAT32 = dtypes.float32.numpy_dtype
_FLOATS = frozenset({dtypes.float16, dtypes.float32})


def _adjust(image: Any, adjust: Callable, saturate: bool = True) -> Tensor:
    """Computes `adjust(image)` in floating point and converts it to the dtype of `image`."""
    x = as_tensor(image)
    y = adjust(x if x.dtype in _FLOATS else convert_image_dtype(x, _FLOAT32))
    return convert_image_dtype(y, x.dtype, saturate)


def adjust_brightness(image: Any, delta: Any) -> Tensor:
    """Adds `delta` to images, with integer images scaled to the range [0, 1].

    >>> tf.image.adjust_brightness(tf.constant([[[100, 250]]], tf.uint8), 0.2).numpy()
    array([[[151, 255]]], dtype=uint8)
    """
    return _adjust(image, lambda x: x + cast(delta, x.dtype))


def adjust_contrast(images: Any, contrast_factor: Any) -> Tensor:
    """Multiplies the deviation from the mean of each channel by `contrast_factor`.

    >>> tf.image.adjust_contrast([[[1.0], [2.0]], [[3.0], [6.0]]], 2.0)[..., 0].numpy()
    array([[-1.,  1.],
           [ 3.,  9.]], dtype=float32)
    """
    op_name = "adjust_contrast"
    factor = _float32_scalar(contrast_factor, "contrast_factor", op_name)

    def adjust(x: Tensor) -> Tensor:
        _check_rank(x, op_name)
        x = at_least_float32(x)
        rows = reduce_mean(x, axis=-3, keepdims=True)  # reducing over rows first is much faster
        mean = reduce_mean(rows, axis=-2, keepdims=True)
        # Columns and channels share one axis, because NumPy is slow along short axes.
        shape, mean = x._spec.shape, broadcast_to(mean, shape=rows._spec.shape)
        line = shape[-2] * shape[-1]
        x, mean = (reshape(a, shape=(*a._spec.shape[:-2], line)) for a in (x, mean))
        return reshape((x - mean) * factor + mean, shape=shape)

    return _adjust(images, adjust)


def adjust_gamma(image: Any, gamma: Any = 1, gain: Any = 1) -> Tensor:
    """Computes `gain * image ** gamma`, with integer images scaled to the range [0, 1]."""
    require(
        bool(gamma >= 0),
        f"adjust_gamma: gamma should be a non-negative real number. Received: {gamma}.",
        gamma,
    )
    return _adjust(image, lambda x: gain * x**gamma)


def adjust_hue(image: Any, delta: Any, name: str | None = None) -> Tensor:
    """Shifts the hue of RGB images by `delta`, a fraction of a full turn in [-1, 1].

    >>> tf.image.adjust_hue([[[1.0, 0.0, 0.0]]], 1 / 3).numpy().round(3)
    array([[[0., 1., 0.]]], dtype=float32)
    """
    op_name = "adjust_hue"
    if delta < -1 or delta > 1:
        raise ValueError(
            f"{op_name}: delta must be in the interval [-1, 1]. Received: {as_text(delta)}."
        )
    shift = _float32_scalar(delta, "delta", op_name)

    def adjust(x: Tensor) -> Tensor:
        _check_rank(x, op_name)
        _check_rgb(x, op_name)
        hue, smallest, largest = hue_and_extremes(x)
        hue = ar.mod(hue + shift, Tensor(np.float32(1)))
        channels = (smallest + (largest - smallest) * pure for pure in pure_color(hue))
        return stack(*channels, axis=hue._spec.ndim)

    return _adjust(image, adjust, saturate=False)


def adjust_saturation(image: Any, saturation_factor: Any, name: str | None = None) -> Tensor:
    """Multiplies the saturation of RGB images by `saturation_factor`, clipped to [0, 1].

    >>> tf.image.adjust_saturation([[[1.0, 0.5, 0.5]]], 2.0).numpy()
    array([[[1., 0., 0.]]], dtype=float32)
    """
    op_name = "adjust_saturation"
    factor = _float32_scalar(saturation_factor, "saturation_factor", op_name)

    def adjust(x: Tensor) -> Tensor:
        _check_rank(x, op_name)
        _check_rgb(x, op_name)
        hue, smallest, largest = hue_and_extremes(x)
        scaled = compute_saturation(smallest, largest) * factor
        zero, one = Tensor(np.float32(0)), Tensor(np.float32(1))
        return from_hsv(hue, ar.minimum(ar.maximum(scaled, zero), one), largest)

    return _adjust(image, adjust, saturate=False)


def _float32_scalar(value: Any, argument: str, op_name: str) -> Tensor:
    x = as_tensor(value, None if tensor_or_variable(value) is not None else _FLOAT32)
    if x._spec.dtype != _FLOAT32 or x._spec.ndim:
        raise invalid(
            f"{op_name}: {argument} must be a scalar of dtype float32. Received: shape "
            f"{x._spec.shape}, {x.dtype.name}."
        )
    return x


def _check_rank(x: Tensor, op_name: str) -> None:
    if x._spec.ndim < 3:
        raise invalid(
            f"{op_name}: images have shape {x._spec.shape}. Expected at least three axes: height, "
            "width, channels."
        )


def _check_rgb(x: Tensor, op_name: str) -> None:
    if x._spec.shape[-1] != 3:
        raise invalid(f"{op_name}: images have shape {x._spec.shape}. Expected 3 channels.")


def per_image_standardization(image: Any) -> Tensor:
    """Scales each image to mean 0 and variance 1, as float32.

    The standard deviation is bounded below by `1 / sqrt(number of elements)`.
    """
    x = to_dtype(as_image(image, "per_image_standardization"), _FLOAT32)
    axes = [-3, -2, -1]
    lower_bound = np.float32(1) / np.sqrt(np.float32(np.prod(x._spec.shape[-3:])))
    deviation = ar.maximum(reduce_std(x, axes, keepdims=True), Tensor(lower_bound))
    return (x - reduce_mean(x, axes, keepdims=True)) / deviation
