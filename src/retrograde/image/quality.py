"""Image quality metrics (PSNR, SSIM, total variation), image gradients and edges."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from retrograde.core.tensor import Tensor
from retrograde.image._inputs import check_image_rank
from retrograde.image._resampling_weights import gaussian_weights, halving_weights, sobel_weights
from retrograde.image.color_spaces import convert_image_dtype
from retrograde.math import (
    abs as absolute,
)
from retrograde.math import (
    log,
    reduce_mean,
    reduce_prod,
    reduce_sum,
    squared_difference,
)
from retrograde.math._inputs import check_dtype
from retrograde.ops.casting import to_dtype
from retrograde.ops.conversion import as_tensor
from retrograde.ops.elementary import relu
from retrograde.ops.resampling import resample
from retrograde.ops.shaping import put_slice, stack, take_slice
from retrograde.values import dtypes
from retrograde.values.arguments import as_float
from retrograde.values.errors import invalid, to_list
from retrograde.values.shapes import broadcast

_FLOAT32 = dtypes.float32.numpy_dtype
_HEIGHT, _WIDTH = -3, -2
_NUMBERS = tuple(d.name for d in dtypes.ALL if d.numpy_dtype in dtypes.NUMERIC)
_SIGNED = tuple(d.name for d in dtypes.ALL if d.numpy_dtype in dtypes.SIGNED)


def _filter_axes(x: Tensor, weights: Callable) -> Tensor:
    """Applies the filter `weights(size)` along the height and the width of `x`."""
    shape = x._spec.shape
    for axis in (len(shape) + _HEIGHT, len(shape) + _WIDTH):
        x = resample(x, axis=axis, weights=weights(shape[axis]))
    return x


# Two images


def psnr(a: Any, b: Any, max_val: Any, name: str | None = None) -> Tensor:
    """Computes the peak signal-to-noise ratio of images, in decibels.

    `max_val` is the difference between the largest and the smallest possible value.

    >>> tf.image.psnr(tf.zeros([1, 2, 3]), tf.fill([1, 2, 3], 0.1), max_val=1.0).numpy().round(3)
    np.float32(20.0)
    """
    x1, x2 = as_tensor(a), as_tensor(b)
    max_value = _max_value(max_val, x1)
    x1, x2 = (convert_image_dtype(x, _FLOAT32) for x in (x1, x2))
    error = reduce_mean(squared_difference(x1, x2), [-3, -2, -1])
    _check_same_size(x1, x2, "psnr")
    return log(max_value) * (20 / math.log(10)) - log(error) * (10 / math.log(10))


def _max_value(max_val: Any, like: Tensor) -> Tensor:
    if like.dtype.name == "string":
        raise TypeError("Expected images with a numeric dtype. Received: dtype string.")
    return convert_image_dtype(to_dtype(as_tensor(max_val), like._spec.dtype), _FLOAT32)


def _check_same_size(x1: Tensor, x2: Tensor, op_name: str) -> None:
    """Raises if two images differ in size or their batch axes do not broadcast."""
    a, b = x1._spec.shape, x2._spec.shape
    if min(len(a), len(b)) < 3:
        raise ValueError(
            f"{op_name}: images have shapes {a} and {b}. Expected at least three axes: height, "
            "width, channels."
        )
    if a[-3:] != b[-3:]:
        raise ValueError(
            f"{op_name}: images have shapes {a} and {b}. Expected the same height, width and "
            "channels."
        )
    if broadcast(a[:-3], b[:-3]) is None:
        raise ValueError(
            f"{op_name}: images have shapes {a} and {b}. Expected batches that broadcast."
        )


def ssim(
    img1: Any,
    img2: Any,
    max_val: Any,
    filter_size: int = 11,
    filter_sigma: float = 1.5,
    k1: float = 0.01,
    k2: float = 0.03,
    return_index_map: bool = False,
) -> Tensor:
    """Computes the structural similarity of images in Gaussian windows; it is at most 1.

    `max_val` is the difference between the largest and the smallest possible value. With
    `return_index_map`, the result has one value per window instead of their mean.

    >>> image = tf.random.uniform([16, 16, 3])
    >>> tf.image.ssim(image, image, max_val=1.0).numpy()
    np.float32(1.0)
    """
    x1, x2, max_value = _image_pair(img1, img2, max_val, "ssim")
    size, sigma = _filter_options(filter_size, filter_sigma)
    luminance, contrast = _similarity(x1, x2, max_value, size, sigma, k1, k2)
    index = luminance * contrast
    if not return_index_map:
        index = reduce_mean(index, [_HEIGHT, _WIDTH])
    return reduce_mean(index, -1)


def _image_pair(img1: Any, img2: Any, max_val: Any, op_name: str) -> tuple[Tensor, Tensor, Tensor]:
    x1, x2 = as_tensor(img1), as_tensor(img2)
    _check_same_size(x1, x2, op_name)
    if x1.dtype is not x2.dtype:
        raise invalid(
            f"{op_name}: images have dtypes {x1.dtype.name} and {x2.dtype.name}. Expected the same."
        )
    max_value = _max_value(max_val, x1)
    return convert_image_dtype(x1, _FLOAT32), convert_image_dtype(x2, _FLOAT32), max_value


def _filter_options(size: Any, sigma: Any) -> tuple[int, float]:
    pixels = int(as_tensor(size, dtypes.int32.numpy_dtype))
    if pixels < 1:
        raise invalid(f"ssim: filter_size must be at least 1. Received: {pixels}.")
    return pixels, as_float(sigma, "ssim: filter_sigma")


def _similarity(
    x1: Tensor, x2: Tensor, max_value: Tensor, size: int, sigma: float, k1: float, k2: float
) -> tuple[Tensor, Tensor]:
    """Computes the luminance term and the contrast-structure term of SSIM in each window."""
    if min(x1._spec.shape[_HEIGHT], x1._spec.shape[_WIDTH]) < size:
        raise invalid(
            f"ssim: images have shape {x1._spec.shape}. Expected at least filter_size={size} "
            "pixels along height and width."
        )
    window = functools.partial(gaussian_weights, size=size, sigma=sigma)
    c1, c2 = (max_value * k1) ** 2, (max_value * k2) ** 2
    mean1, mean2 = _filter_axes(x1, window), _filter_axes(x2, window)
    product, squares = mean1 * mean2 * 2.0, mean1 * mean1 + mean2 * mean2
    luminance = (product + c1) / (squares + c1)
    mean_product = _filter_axes(x1 * x2, window) * 2.0
    mean_squares = _filter_axes(x1 * x1 + x2 * x2, window)
    contrast = (mean_product - product + c2) / (mean_squares - squares + c2)
    return luminance, contrast


def ssim_multiscale(
    img1: Any,
    img2: Any,
    max_val: Any,
    power_factors: Sequence[float] = (0.0448, 0.2856, 0.3001, 0.2363, 0.1333),
    filter_size: int = 11,
    filter_sigma: float = 1.5,
    k1: float = 0.01,
    k2: float = 0.03,
) -> Tensor:
    """Computes the structural similarity of images at several scales, halving the size each time.

    The result is the product of the contrast terms at all scales and the luminance term at the last
    scale, raised to the powers `power_factors`. Negative terms count as 0.
    """
    x1, x2, max_value = _image_pair(img1, img2, max_val, "ssim_multiscale")
    size, sigma = _filter_options(filter_size, filter_sigma)
    label = "ssim_multiscale: power_factors"
    powers = [as_float(power, label) for power in to_list(label, power_factors)]
    if not powers:
        raise IndexError("ssim_multiscale: power_factors is empty. Expected one factor per scale.")
    factors = []
    for scale in range(len(powers)):
        if scale:
            x1, x2 = _filter_axes(x1, halving_weights), _filter_axes(x2, halving_weights)
        luminance, contrast = _similarity(x1, x2, max_value, size, sigma, k1, k2)
        last = scale == len(powers) - 1
        index = luminance * contrast if last else contrast
        factors.append(relu(reduce_mean(index, [_HEIGHT, _WIDTH])))
    scales = stack(*factors, axis=x1._spec.ndim - 2)
    return reduce_mean(reduce_prod(scales ** np.array(powers, np.float32), -1), -1)


# One image


def total_variation(images: Any, name: str | None = None) -> Tensor:
    """Computes the sum of the absolute differences between neighboring pixels of each image.

    >>> tf.image.total_variation([[[1.0], [3.0]], [[1.0], [4.0]]]).numpy()
    np.float32(6.0)
    """
    x = as_tensor(images)
    check_image_rank(x, "total_variation", "images")
    check_dtype(x, _SIGNED, "images", "total_variation")
    down, across = (absolute(_differences(x, axis)) for axis in (_HEIGHT, _WIDTH))
    return reduce_sum(down, [-3, -2, -1]) + reduce_sum(across, [-3, -2, -1])


def _differences(x: Tensor, axis: int) -> Tensor:
    """Computes the difference of each pixel and the previous one along `axis`."""
    shape = x._spec.shape
    full = [(0, size, 1) for size in shape]
    after, before = list(full), list(full)
    after[axis], before[axis] = (1, shape[axis], 1), (0, shape[axis] - 1, 1)
    return take_slice(x, where=tuple(after)) - take_slice(x, where=tuple(before))


def image_gradients(image: Any) -> tuple[Tensor, Tensor]:
    """Computes the differences to the next pixel below and to the right; 0 at the last pixel.

    >>> dy, dx = tf.image.image_gradients([[[[1], [3]], [[7], [9]]]])
    >>> dy[0, :, :, 0].numpy(), dx[0, :, :, 0].numpy()
    (array([[6, 6], [0, 0]], dtype=int32), array([[2, 0], [2, 0]], dtype=int32))
    """
    x = as_tensor(image)
    shape = x._spec.shape
    if len(shape) != 4:
        raise ValueError(
            f"image_gradients: `image` has shape {shape}. Expected four axes: batch, height, "
            "width, channels."
        )
    check_dtype(x, _NUMBERS, "image", "image_gradients")
    differences = (_differences(x, axis) for axis in (_HEIGHT, _WIDTH))
    return tuple(
        put_slice(d, shape=shape, where=tuple((0, size, 1) for size in d._spec.shape))
        for d in differences
    )


def sobel_edges(image: Any) -> Tensor:
    """Computes Sobel edge maps; the last axis of the result holds dy and dx.

    >>> image = tf.reshape([0.0, 0.0, 1.0, 1.0] * 3, [1, 3, 4, 1])
    >>> tf.image.sobel_edges(image)[0, 1, :, 0, 1].numpy()
    array([0., 4., 4., 0.], dtype=float32)
    """
    x = as_tensor(image)
    check_dtype(x, ("float16", "bfloat16", "float32", "float64"), "image", "sobel_edges")
    shape = x._spec.shape
    if len(shape) != 4 or min(shape[1:3]) < 2 or not shape[0]:
        raise invalid(
            f"sobel_edges: `image` has shape {shape}. Expected four axes (batch, height, width, "
            "channels), with at least two pixels along height and width."
        )
    height, width = shape[1:3]
    down = resample(x, axis=1, weights=sobel_weights(height, (-1, 0, 1)))
    down = resample(down, axis=2, weights=sobel_weights(width, (1, 2, 1)))
    across = resample(x, axis=2, weights=sobel_weights(width, (-1, 0, 1)))
    across = resample(across, axis=1, weights=sobel_weights(height, (1, 2, 1)))
    return stack(down, across, axis=4)
