"""Convolution filters for images."""

import numpy as np

from retrograde.core.apply import apply
from retrograde.core.tensor import Tensor
from retrograde.image._resampling_weights import sobel_weights
from retrograde.keras_backend.conversion import cast, convert_to_tensor
from retrograde.keras_backend.ops._inputs import at_least_float32, inexact
from retrograde.keras_backend.ops.image._inputs import Images
from retrograde.ops import convolution, reduction
from retrograde.ops import elementary as el
from retrograde.ops._windows import Windows
from retrograde.ops.resampling import resample
from retrograde.ops.shaping import broadcast_to, reshape, stack


def gaussian_blur(images, kernel_size=(3, 3), sigma=(1.0, 1.0), data_format=None):
    """Blurs images with a Gaussian of `kernel_size`, (width, height), and zero padding."""
    images = Images(images, data_format)
    dtype = images.x.dtype.name
    x = at_least_float32(inexact(images.batch()))
    size = [int(n) for n in np.asarray(kernel_size)]
    sigma = convert_to_tensor(sigma, x.dtype.name)
    for axis, position in ((0, 1), (1, 0)):
        x = _blur(x, axis, size[position], sigma[position])
    return images.restore_format(cast(x, dtype))


def _blur(x, axis, size, sigma):
    """Blurs `x` along one spatial axis."""
    distance = Tensor((np.arange(size) - (size - 1) / 2).astype(x._spec.dtype)) / sigma
    weights = apply(el.exp, (distance * distance * -0.5,))
    weights = weights / apply(reduction.sum, (weights,), {"axis": (0,), "keepdims": False})
    channels = x.shape[-1]
    shape = [1, 1, 1, 1]
    shape[axis] = size
    w = reshape(weights, shape=tuple(shape))
    w = broadcast_to(w, shape=(*shape[:2], 1, channels))
    before = (size - 1) // 2
    padding = [(0, 0), (0, 0)]
    padding[axis] = (before, size - 1 - before)
    windows = Windows(tuple(shape[:2]), (1, 1), tuple(padding), (1, 1))
    return apply(convolution.convolve, (x, w), {"windows": windows, "groups": channels})


def sobel_edges(images, data_format=None):
    """Computes the vertical and horizontal Sobel gradients, stacked on a new last axis."""
    images = Images(images, data_format)
    height, width = images.axes
    edges = []
    for along, across in ((height, width), (width, height)):
        y = resample(images.x, axis=along, weights=sobel_weights(images.shape[along], (-1, 0, 1)))
        edges.append(
            resample(y, axis=across, weights=sobel_weights(images.shape[across], (1, 2, 1)))
        )
    return stack(*edges, axis=len(images.shape))
