"""Brightness, contrast, gamma, hue and saturation. The dtype of images stays what it was."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from retrograde.core.tensor import Tensor
from retrograde.image._inputs import image_of, require
from retrograde.image.color_spaces import (
    at_least_float32,
    convert_image_dtype,
    from_hsv,
    hue_of,
    saturation_of,
    shades_of,
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


def _adjusted(image: Any, adjust: Callable, saturate: bool = True) -> Tensor:
    """`adjust(image)`, computed with floats and brought back to the dtype of `image`."""
    x = as_tensor(image)
    y = adjust(x if x.dtype in _FLOATS else convert_image_dtype(x, _FLOAT32))
    return convert_image_dtype(y, x.dtype, saturate)


def adjust_brightness(image: Any, delta: Any) -> Tensor:
    """Images with `delta` added; integers count as if they were scaled to the range 0 to 1.

    >>> tf.image.adjust_brightness(tf.constant([[[100, 250]]], tf.uint8), 0.2).numpy()
    array([[[151, 255]]], dtype=uint8)
    """
    return _adjusted(image, lambda x: x + cast(delta, x.dtype))


def adjust_contrast(images: Any, contrast_factor: Any) -> Tensor:
    """Images with the distance from the mean of each channel times `contrast_factor`.

    >>> tf.image.adjust_contrast([[[1.0], [2.0]], [[3.0], [6.0]]], 2.0)[..., 0].numpy()
    array([[-1.,  1.],
           [ 3.,  9.]], dtype=float32)
    """
    what = "adjust_contrast"
    factor = _factor(contrast_factor, "contrast_factor", what)

    def adjust(x: Tensor) -> Tensor:
        _refuse_flat(x, what)
        x = at_least_float32(x)
        rows = reduce_mean(x, axis=-3, keepdims=True)  # whole rows first, which is far quicker
        mean = reduce_mean(rows, axis=-2, keepdims=True)
        # Rows laid flat, with a row of means: NumPy is slow at loops as short as the channels.
        shape, mean = x._spec.shape, broadcast_to(mean, shape=rows._spec.shape)
        line = shape[-2] * shape[-1]
        x, mean = (reshape(a, shape=(*a._spec.shape[:-2], line)) for a in (x, mean))
        return reshape((x - mean) * factor + mean, shape=shape)

    return _adjusted(images, adjust)


def adjust_gamma(image: Any, gamma: Any = 1, gain: Any = 1) -> Tensor:
    """`gain * image ** gamma`; integers count as if they were scaled to the range 0 to 1."""
    require(
        bool(gamma >= 0),
        f"adjust_gamma: gamma should be a non-negative real number. Received: {gamma}.",
        gamma,
    )
    return _adjusted(image, lambda x: gain * x**gamma)


def adjust_hue(image: Any, delta: Any, name: str | None = None) -> Tensor:
    """Images in RGB with the hue of each pixel turned by `delta`, from -1 to 1 for once around.

    >>> tf.image.adjust_hue([[[1.0, 0.0, 0.0]]], 1 / 3).numpy().round(3)
    array([[[0., 1., 0.]]], dtype=float32)
    """
    what = "adjust_hue"
    if delta < -1 or delta > 1:
        raise ValueError(
            f"{what}: delta must be in the interval [-1, 1]. Received: {as_text(delta)}."
        )
    turn = _factor(delta, "delta", what)

    def adjust(x: Tensor) -> Tensor:
        _refuse_flat(x, what)
        _refuse_other_channels(x, what)
        hue, smallest, largest = hue_of(x)
        hue = ar.mod(hue + turn, Tensor(np.float32(1)))
        channels = (smallest + (largest - smallest) * shade for shade in shades_of(hue))
        return stack(*channels, axis=hue._spec.ndim)

    return _adjusted(image, adjust, saturate=False)


def adjust_saturation(image: Any, saturation_factor: Any, name: str | None = None) -> Tensor:
    """Images in RGB with the saturation of each pixel times `saturation_factor`, 1 at most.

    >>> tf.image.adjust_saturation([[[1.0, 0.5, 0.5]]], 2.0).numpy()
    array([[[1., 0., 0.]]], dtype=float32)
    """
    what = "adjust_saturation"
    factor = _factor(saturation_factor, "saturation_factor", what)

    def adjust(x: Tensor) -> Tensor:
        _refuse_flat(x, what)
        _refuse_other_channels(x, what)
        hue, smallest, largest = hue_of(x)
        saturation = saturation_of(smallest, largest) * factor
        zero, one = Tensor(np.float32(0)), Tensor(np.float32(1))
        return from_hsv(hue, ar.minimum(ar.maximum(saturation, zero), one), largest)

    return _adjusted(image, adjust, saturate=False)


def _factor(value: Any, argument: str, what: str) -> Tensor:
    x = as_tensor(value, None if tensor_or_variable(value) is not None else _FLOAT32)
    if x._spec.dtype != _FLOAT32 or x._spec.ndim:
        raise invalid(
            f"{what}: {argument} must be a scalar of dtype float32. Received: shape "
            f"{x._spec.shape}, {x.dtype.name}."
        )
    return x


def _refuse_flat(x: Tensor, what: str) -> None:
    if x._spec.ndim < 3:
        raise invalid(
            f"{what}: images have shape {x._spec.shape}. Expected at least three axes: height, "
            "width, channels."
        )


def _refuse_other_channels(x: Tensor, what: str) -> None:
    if x._spec.shape[-1] != 3:
        raise invalid(f"{what}: images have shape {x._spec.shape}. Expected 3 channels.")


def per_image_standardization(image: Any) -> Tensor:
    """Each image less its mean, by its standard deviation, as float32.

    The deviation counts as at least 1 by the root of the number of elements.
    """
    x = to_dtype(image_of(image, "per_image_standardization"), _FLOAT32)
    axes = [-3, -2, -1]
    least = np.float32(1) / np.sqrt(np.float32(np.prod(x._spec.shape[-3:])))
    deviation = ar.maximum(reduce_std(x, axes, keepdims=True), Tensor(least))
    return (x - reduce_mean(x, axes, keepdims=True)) / deviation
