"""Colours: ranges of intensities, grey, and the spaces HSV, YIQ and YUV."""

from __future__ import annotations

from typing import Any

import numpy as np

from retrograde.core.tensor import Tensor
from retrograde.linalg import tensordot
from retrograde.math import floordiv
from retrograde.math._inputs import check_dtype
from retrograde.ops import arithmetic as ar
from retrograde.ops._arrays import HALF
from retrograde.ops.casting import identity, stop_gradient, to_dtype
from retrograde.ops.conversion import as_tensor
from retrograde.ops.shaping import broadcast_to, reshape, stack, unstack
from retrograde.toplevel.shaping import cast, saturate_cast
from retrograde.values import dtypes
from retrograde.values.errors import FailedPreconditionError, invalid

_FLOAT32 = dtypes.float32.numpy_dtype


def convert_image_dtype(
    image: Any, dtype: Any, saturate: bool = False, name: str | None = None
) -> Tensor:
    """Images in another dtype, with intensities scaled to its range.

    That is 0 to 1 for floats, 0 to the largest number for integers. With `saturate`, what lies
    beyond the range of an integer dtype becomes its end; else it wraps around.

    >>> tf.image.convert_image_dtype(tf.constant([0.0, 0.5, 1.0]), tf.uint8).numpy()
    array([  0, 127, 255], dtype=uint8)
    """
    x, new = as_tensor(image), dtypes.as_dtype(dtype)
    old = x.dtype
    for argument, kind in (("dtype", new), ("image dtype", old)):
        if not (kind.is_floating or kind.is_integer):
            raise AttributeError(
                f"{argument} must be either floating point or integer. Received: {kind.name}."
            )
    to_new = saturate_cast if saturate else cast
    if old is new:
        return identity(x)
    if old.is_floating:
        return cast(x, new) if new.is_floating else to_new(x * (new.max + 0.5), new)
    if new.is_floating:
        return cast(x, new) * (1.0 / old.max)
    if old.max > new.max:
        return to_new(floordiv(x, (old.max + 1) // (new.max + 1)), new)
    return to_new(x, new) * ((new.max + 1) // (old.max + 1))


_GREY_WEIGHTS = np.array([0.2989, 0.5870, 0.1140], np.float32)


def rgb_to_grayscale(images: Any, name: str | None = None) -> Tensor:
    """Images with one channel, how bright the three were, in the same dtype.

    >>> tf.image.rgb_to_grayscale([[[1.0, 1.0, 0.0]]]).numpy()
    array([[[0.8859]]], dtype=float32)
    """
    x = as_tensor(images)
    grey = tensordot(convert_image_dtype(x, _FLOAT32), _GREY_WEIGHTS, [-1, -1])
    return convert_image_dtype(reshape(grey, shape=(*grey._spec.shape, 1)), x.dtype)


def grayscale_to_rgb(images: Any, name: str | None = None) -> Tensor:
    """Images whose one channel stands in all of three."""
    x = as_tensor(images)
    shape = x._spec.shape
    if len(shape) < 2:
        raise ValueError(
            f"grayscale_to_rgb: `images` has shape {shape}. Expected at least two axes."
        )
    if shape[-1] != 1:
        raise ValueError(
            f"grayscale_to_rgb: `images` has shape {shape}. Expected a last axis of size 1."
        )
    return broadcast_to(x, shape=(*shape[:-1], 3))


# Linear spaces. Each matrix has the constants to which TensorFlow rounds it.

_RGB_TO_YIQ = (
    (0.299, 0.59590059, 0.2115),
    (0.587, -0.27455667, -0.52273617),
    (0.114, -0.32134392, 0.31119955),
)
_YIQ_TO_RGB = (
    (1.0, 1.0, 1.0),
    (0.95598634, -0.27201283, -1.10674021),
    (0.6208248, -0.64720424, 1.70423049),
)
_RGB_TO_YUV = (
    (0.299, -0.14714119, 0.61497538),
    (0.587, -0.28886916, -0.51496512),
    (0.114, 0.43601035, -0.10001026),
)
_YUV_TO_RGB = (
    (1.0, 1.0, 1.0),
    (0.0, -0.394642334, 2.03206185),
    (1.13988303, -0.58062185, 0.0),
)


def _by_matrix(images: Any, matrix: tuple) -> Tensor:
    x = as_tensor(images)
    return tensordot(x, as_tensor(matrix, x._spec.dtype), [[x._spec.ndim - 1], [0]])


def rgb_to_yiq(images: Any) -> Tensor:
    """Colours in YIQ: luma, and two differences of colours."""
    return _by_matrix(images, _RGB_TO_YIQ)


def yiq_to_rgb(images: Any) -> Tensor:
    """Colours in RGB, of those in YIQ."""
    return _by_matrix(images, _YIQ_TO_RGB)


def rgb_to_yuv(images: Any) -> Tensor:
    """Colours in YUV: luma, and two differences of colours."""
    return _by_matrix(images, _RGB_TO_YUV)


def yuv_to_rgb(images: Any) -> Tensor:
    """Colours in RGB, of those in YUV."""
    return _by_matrix(images, _YUV_TO_RGB)


# Hue, saturation, value


def rgb_to_hsv(images: Any, name: str | None = None) -> Tensor:
    """Colours as hue, saturation and value, each from 0 to 1.

    >>> tf.image.rgb_to_hsv([0.0, 0.5, 0.0]).numpy()
    array([0.33333334, 1.        , 0.5       ], dtype=float32)
    """
    x = _colours(images, "rgb_to_hsv")
    hue, smallest, largest = hue_of(x)
    channels = hue, saturation_of(smallest, largest), largest
    return to_dtype(stack(*channels, axis=hue._spec.ndim), x._spec.dtype)


def hsv_to_rgb(images: Any, name: str | None = None) -> Tensor:
    """Colours in RGB, of those given by hue, saturation and value.

    >>> tf.image.hsv_to_rgb([0.0, 1.0, 0.5]).numpy()
    array([0.5, 0. , 0. ], dtype=float32)
    """
    x = _colours(images, "hsv_to_rgb")
    hue, saturation, value = unstack(at_least_float32(x), axis=x._spec.ndim - 1)
    return to_dtype(from_hsv(hue, saturation, value), x._spec.dtype)


def _colours(images: Any, what: str) -> Tensor:
    x = as_tensor(images)
    check_dtype(x, ("float16", "bfloat16", "float32", "float64"), "images", what)
    shape = x._spec.shape
    if not shape:
        raise invalid(f"{what}: `images` is a scalar. Expected at least one axis, the channels.")
    if shape[-1] != 3:
        message = f"{what}: `images` has shape {shape}. Expected 3 channels."
        raise FailedPreconditionError(None, None, message)
    return x


def at_least_float32(x: Tensor) -> Tensor:
    """`x`, in float32 if it is in half precision."""
    return to_dtype(x, _FLOAT32) if x._spec.dtype in HALF else x


def hue_of(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The hue of colours in RGB, and the smallest and the largest of their channels.

    Of channels that are equally large the first counts as the largest, the last as the smallest.
    """
    red, green, blue = unstack(at_least_float32(x), axis=x._spec.ndim - 1)
    is_red, is_green = (red >= green) & (red >= blue), green >= blue
    largest = _choose(is_red, red, is_green, green, blue)
    not_red, not_green = (red < green) & (red < blue), (green <= red) & (green < blue)
    smallest = _choose(not_red, red, not_green, green, blue)
    difference = _choose(is_red, green - blue, is_green, blue - red, red - green)
    above_blue = ar.select(green < blue, *_numbers(red, 1.0, 0.0))
    start = _choose(is_red, above_blue, is_green, *_numbers(red, 1 / 3, 2 / 3))
    hue = ar.divide_no_nan(difference, (largest - smallest) * 6.0) + start
    return hue, smallest, largest


def _choose(first: Tensor, a: Tensor, second: Tensor, b: Tensor, c: Tensor) -> Tensor:
    return ar.select(first, a, ar.select(second, b, c))


def _numbers(like: Tensor, *values: float) -> tuple[Tensor, ...]:
    return tuple(Tensor(like._spec.dtype.type(value)) for value in values)


def saturation_of(smallest: Tensor, largest: Tensor) -> Tensor:
    """The saturation of colours with these channels.

    As in TensorFlow, no gradient flows to a channel that is 0 already.
    """
    lowest = ar.select(smallest > 0.0, smallest, stop_gradient(smallest))
    return ar.mask(ar.divide_no_nan(largest - lowest, largest), largest > 0.0)


def shades_of(hue: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """How much red, green and blue is in the pure colour of a hue."""
    sixths = hue * 6.0
    red = ar.absolute(sixths - 3.0) - 1.0
    green, blue = (2.0 - ar.absolute(sixths - middle) for middle in (2.0, 4.0))
    zero, one = _numbers(hue, 0.0, 1.0)
    return tuple(ar.minimum(ar.maximum(shade, zero), one) for shade in (red, green, blue))


def from_hsv(hue: Tensor, saturation: Tensor, value: Tensor) -> Tensor:
    """Colours in RGB."""
    white = 1.0 - saturation
    channels = ((white + saturation * shade) * value for shade in shades_of(hue))
    return stack(*channels, axis=hue._spec.ndim)
