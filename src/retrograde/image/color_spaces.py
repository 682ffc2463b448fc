"""Conversion between image dtypes and color spaces: grayscale, HSV, YIQ and YUV."""

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
    """Converts images to another dtype and scales intensities to its range.

    The range is [0, 1] for floating dtypes and [0, dtype.max] for integer dtypes. With `saturate`,
    values outside the range of an integer dtype are clipped; otherwise they wrap around.

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


_GRAY_WEIGHTS = np.array([0.2989, 0.5870, 0.1140], np.float32)


def rgb_to_grayscale(images: Any, name: str | None = None) -> Tensor:
    """Converts RGB images to grayscale (one channel) in the same dtype.

    >>> tf.image.rgb_to_grayscale([[[1.0, 1.0, 0.0]]]).numpy()
    array([[[0.8859]]], dtype=float32)
    """
    x = as_tensor(images)
    gray = tensordot(convert_image_dtype(x, _FLOAT32), _GRAY_WEIGHTS, [-1, -1])
    return convert_image_dtype(reshape(gray, shape=(*gray._spec.shape, 1)), x.dtype)


def grayscale_to_rgb(images: Any, name: str | None = None) -> Tensor:
    """Converts grayscale images to RGB by repeating the channel three times."""
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


# Linear color spaces. The constants are rounded as in TensorFlow.

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


def _multiply_channels(images: Any, matrix: tuple) -> Tensor:
    x = as_tensor(images)
    return tensordot(x, as_tensor(matrix, x._spec.dtype), [[x._spec.ndim - 1], [0]])


def rgb_to_yiq(images: Any) -> Tensor:
    """Converts RGB to YIQ: luma and two chrominance channels."""
    return _multiply_channels(images, _RGB_TO_YIQ)


def yiq_to_rgb(images: Any) -> Tensor:
    """Converts YIQ to RGB."""
    return _multiply_channels(images, _YIQ_TO_RGB)


def rgb_to_yuv(images: Any) -> Tensor:
    """Converts RGB to YUV: luma and two chrominance channels."""
    return _multiply_channels(images, _RGB_TO_YUV)


def yuv_to_rgb(images: Any) -> Tensor:
    """Converts YUV to RGB."""
    return _multiply_channels(images, _YUV_TO_RGB)


# Hue, saturation, value


def rgb_to_hsv(images: Any, name: str | None = None) -> Tensor:
    """Converts RGB to hue, saturation and value, each in [0, 1].

    >>> tf.image.rgb_to_hsv([0.0, 0.5, 0.0]).numpy()
    array([0.33333334, 1.        , 0.5       ], dtype=float32)
    """
    x = _float_rgb(images, "rgb_to_hsv")
    hue, smallest, largest = hue_and_extremes(x)
    channels = hue, compute_saturation(smallest, largest), largest
    return to_dtype(stack(*channels, axis=hue._spec.ndim), x._spec.dtype)


def hsv_to_rgb(images: Any, name: str | None = None) -> Tensor:
    """Converts hue, saturation and value to RGB.

    >>> tf.image.hsv_to_rgb([0.0, 1.0, 0.5]).numpy()
    array([0.5, 0. , 0. ], dtype=float32)
    """
    x = _float_rgb(images, "hsv_to_rgb")
    hue, saturation, value = unstack(at_least_float32(x), axis=x._spec.ndim - 1)
    return to_dtype(from_hsv(hue, saturation, value), x._spec.dtype)


def _float_rgb(images: Any, op_name: str) -> Tensor:
    x = as_tensor(images)
    check_dtype(x, ("float16", "bfloat16", "float32", "float64"), "images", op_name)
    shape = x._spec.shape
    if not shape:
        raise invalid(f"{op_name}: `images` is a scalar. Expected at least one axis, the channels.")
    if shape[-1] != 3:
        message = f"{op_name}: `images` has shape {shape}. Expected 3 channels."
        raise FailedPreconditionError(None, None, message)
    return x


def at_least_float32(x: Tensor) -> Tensor:
    """Casts `x` to float32 if it has half precision."""
    return to_dtype(x, _FLOAT32) if x._spec.dtype in HALF else x


def hue_and_extremes(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Returns the hue of RGB colors and the minimum and maximum of their channels.

    Ties go to the first channel for the maximum and to the last channel for the minimum.
    """
    red, green, blue = unstack(at_least_float32(x), axis=x._spec.ndim - 1)
    is_red, is_green = (red >= green) & (red >= blue), green >= blue
    largest = _choose(is_red, red, is_green, green, blue)
    not_red, not_green = (red < green) & (red < blue), (green <= red) & (green < blue)
    smallest = _choose(not_red, red, not_green, green, blue)
    difference = _choose(is_red, green - blue, is_green, blue - red, red - green)
    red_offset = ar.select(green < blue, *_constants(red, 1.0, 0.0))
    offset = _choose(is_red, red_offset, is_green, *_constants(red, 1 / 3, 2 / 3))
    hue = ar.divide_no_nan(difference, (largest - smallest) * 6.0) + offset
    return hue, smallest, largest


def _choose(first: Tensor, a: Tensor, second: Tensor, b: Tensor, c: Tensor) -> Tensor:
    return ar.select(first, a, ar.select(second, b, c))


def _constants(like: Tensor, *values: float) -> tuple[Tensor, ...]:
    return tuple(Tensor(like._spec.dtype.type(value)) for value in values)


def compute_saturation(smallest: Tensor, largest: Tensor) -> Tensor:
    """Computes the saturation of colors from their smallest and largest channels.

    As in TensorFlow, no gradient flows to a smallest channel that is 0.
    """
    lowest = ar.select(smallest > 0.0, smallest, stop_gradient(smallest))
    return ar.mask(ar.divide_no_nan(largest - lowest, largest), largest > 0.0)


def pure_color(hue: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Returns the red, green and blue channels of the fully saturated color of a hue."""
    sixths = hue * 6.0
    red = ar.absolute(sixths - 3.0) - 1.0
    green, blue = (2.0 - ar.absolute(sixths - center) for center in (2.0, 4.0))
    zero, one = _constants(hue, 0.0, 1.0)
    return tuple(ar.minimum(ar.maximum(channel, zero), one) for channel in (red, green, blue))


def from_hsv(hue: Tensor, saturation: Tensor, value: Tensor) -> Tensor:
    """Computes RGB colors from their hue, saturation and value."""
    white = 1.0 - saturation
    channels = ((white + saturation * channel) * value for channel in pure_color(hue))
    return stack(*channels, axis=hue._spec.ndim)
