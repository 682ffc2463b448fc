"""Weights of the input pixels along one axis for each output pixel, for resizing and filtering.

Positions are computed in float32, as in TensorFlow: halfway between two pixels, rounding decides
which one is nearest.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

from retrograde.ops.resampling import Weights
from retrograde.values.errors import reports_out_of_memory

# Weights with a smaller sum are not normalized.
_MIN_SUM = np.float32(1000 * np.finfo(np.float32).tiny)


def _centers(new: int, scale: np.float32) -> np.ndarray:
    """Returns the center of each new pixel, in old pixels from the edge."""
    return (np.arange(new, dtype=np.float32) + np.float32(0.5)) * scale


def _scale(old: int, new: int) -> np.float32:
    return np.float32(old) / np.float32(new)


def _nearest(old: int, new: int) -> Weights:
    indices = np.minimum(np.floor(_centers(new, _scale(old, new))).astype(np.int64), old - 1)
    return Weights(indices[:, None], np.ones((new, 1), np.float32), old)


def _bilinear(old: int, new: int) -> Weights:
    position = _centers(new, _scale(old, new)) - np.float32(0.5)
    below = np.floor(position)
    fraction = position - below
    indices = np.stack([below, below + 1], axis=1).astype(np.int64).clip(0, old - 1)
    return Weights(indices, np.stack([1 - fraction, fraction], axis=1), old)


_TABLE = 1024  # TensorFlow tabulates the cubic kernel at this many positions per pixel


def _bicubic(old: int, new: int) -> Weights:
    position = _centers(new, _scale(old, new)) - np.float32(0.5)
    below = np.floor(position)
    fraction = np.rint((position - below) * _TABLE).astype(np.float32) / _TABLE
    indices = below[:, None].astype(np.int64) + np.arange(-1, 3)
    distance = np.abs(np.arange(-1, 3, dtype=np.float32) - fraction[:, None])
    inside = (indices >= 0) & (indices < old)
    weights = _normalize(_keys_cubic(distance) * inside)
    return Weights(indices.clip(0, old - 1), weights, old)


def _area(old: int, new: int) -> Weights:
    scale = _scale(old, new)
    start = np.arange(new, dtype=np.float32) * scale
    stop = np.arange(1, new + 1, dtype=np.float32) * scale
    first = np.floor(start).astype(np.int64)
    taps = int((np.ceil(stop) - first).max())
    indices = first[:, None] + np.arange(taps)
    overlap = np.minimum(indices + 1, stop[:, None]) - np.maximum(indices, start[:, None])
    weights = (overlap.clip(0) / scale).astype(np.float32)
    return Weights(indices.clip(0, old - 1), weights, old)


def _lanczos(radius: float) -> Callable:
    def kernel(x: np.ndarray) -> np.ndarray:
        angle = np.float32(np.pi) * np.maximum(x, np.float32(1e-3))
        wave = radius * np.sin(angle) * np.sin(angle / radius) / (angle * angle)
        return np.where(x > radius, 0, np.where(x <= 1e-3, 1, wave))

    return kernel


def _gaussian(x: np.ndarray) -> np.ndarray:
    return np.where(x >= 1.5, 0, np.exp(-2 * x * x))  # its standard deviation is radius / 3


def _triangle(x: np.ndarray) -> np.ndarray:
    return np.maximum(1 - x, 0)


def _keys_cubic(x: np.ndarray) -> np.ndarray:
    inner = (1.5 * x - 2.5) * x * x + 1
    outer = ((2.5 - 0.5 * x) * x - 4) * x + 2
    return np.where(x >= 2, 0, np.where(x >= 1, outer, inner))


def _mitchell_cubic(x: np.ndarray) -> np.ndarray:
    inner = (7 / 6 * x - 2) * x * x + 8 / 9
    outer = ((2 - 7 / 18 * x) * x - 10 / 3) * x + 16 / 9
    return np.where(x >= 2, 0, np.where(x >= 1, outer, inner))


def _kernel_weights(kernel: Callable, radius: float, antialias: bool) -> Callable:
    """Returns a function that samples a kernel around each pixel center.

    With `antialias`, the kernel is stretched when the image shrinks.
    """

    def compute(old: int, new: int) -> Weights:
        scale = 1 / (np.float32(new) / np.float32(old))
        stretch = max(scale, np.float32(1)) if antialias else np.float32(1)
        center = _centers(new, scale)
        extent = np.float32(radius) * stretch
        first = np.ceil(center - extent - np.float32(0.5)).astype(np.int64).clip(0, old - 1)
        last = np.floor(center + extent - np.float32(0.5)).astype(np.int64).clip(0, old - 1)
        indices = first[:, None] + np.arange(int((last - first).max()) + 1)
        pixel_center = indices.astype(np.float32) + np.float32(0.5)
        weights = kernel(np.abs((pixel_center - center[:, None]) / stretch))
        weights = _normalize(weights * (indices <= last[:, None]))
        return Weights(indices.clip(0, old - 1), weights, old)

    return compute


def _normalize(weights: np.ndarray) -> np.ndarray:
    weights = weights.astype(np.float32)
    total = weights.sum(1, keepdims=True)
    return np.where(np.abs(total) >= _MIN_SUM, weights / total, weights)


def _method(name: str, antialias: bool) -> Callable | None:
    match name:
        case "nearest":
            return _nearest
        case "bilinear":
            return _kernel_weights(_triangle, 1, True) if antialias else _bilinear
        case "bicubic":
            return _kernel_weights(_keys_cubic, 2, True) if antialias else _bicubic
        case "area":
            return _area
        case "lanczos3" | "lanczos5":
            radius = int(name[-1])
            return _kernel_weights(_lanczos(np.float32(radius)), radius, antialias)
        case "gaussian":
            return _kernel_weights(_gaussian, 1.5, antialias)
        case "mitchellcubic":
            return _kernel_weights(_mitchell_cubic, 2, antialias)
    return None


METHODS = (
    "bilinear",
    "nearest",
    "bicubic",
    "area",
    "lanczos3",
    "lanczos5",
    "gaussian",
    "mitchellcubic",
)


@reports_out_of_memory("resize")
@functools.lru_cache(maxsize=64)
def resize_weights(old: int, new: int, method: str, antialias: bool) -> Weights:
    """Returns the weights that resize an axis from `old` to `new` pixels."""
    return _method(method, antialias)(old, new)


@functools.lru_cache(maxsize=64)
def gaussian_weights(pixels: int, size: int, sigma: float) -> Weights:
    """Returns the weights of Gaussian windows of `size` pixels."""
    distance = np.arange(size) - (size - 1) / 2
    weights = np.exp(-0.5 * (distance / sigma) ** 2)
    indices = np.arange(pixels - size + 1)[:, None] + np.arange(size)
    return Weights(indices, np.broadcast_to(_normalize(weights[None]), indices.shape), pixels)


@functools.lru_cache(maxsize=64)
def halving_weights(pixels: int) -> Weights:
    """Returns the weights that average pairs of pixels; an odd last pixel is paired with itself."""
    indices = np.arange(pixels + pixels % 2).reshape(-1, 2).clip(max=pixels - 1)
    return Weights(indices, np.full(indices.shape, 0.5, np.float32), pixels)


@functools.lru_cache(maxsize=64)
def sobel_weights(pixels: int, weights: tuple[int, int, int]) -> Weights:
    """Returns `weights` for each pixel and its two neighbors, reflected at the edges."""
    indices = np.abs(np.arange(pixels)[:, None] + np.arange(-1, 2))
    indices = np.where(indices >= pixels, 2 * pixels - 2 - indices, indices)
    return Weights(indices, np.tile(np.array(weights, np.float32), (pixels, 1)), pixels)
