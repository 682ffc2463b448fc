"""Patch extraction, and reordering between space and depth."""

from keras.src.backend.config import standardize_data_format

from retrograde.core.apply import apply
from retrograde.keras_backend.conversion import convert_to_tensor
from retrograde.ops import patches
from retrograde.ops._windows import Windows
from retrograde.ops.shaping import reshape, transpose


def _pair(value):
    return (value, value) if isinstance(value, int) else tuple(value)


def _windows(kernel_size, dilation, padding, stride):
    size, dilations, margins, strides = map(_pair, (kernel_size, dilation, padding, stride))
    return Windows(size, strides, tuple((n, n) for n in margins), dilations)


def unfold(x, kernel_size, dilation=1, padding=0, stride=1):
    """Extracts the sliding windows of images `(batch, channels, height, width)`.

    The result has shape `(batch, channels * kernel_height * kernel_width, windows)`.
    """
    x = convert_to_tensor(x)
    windows = _windows(kernel_size, dilation, padding, stride)
    channels_last = transpose(x, perm=(0, 2, 3, 1))
    y = apply(patches.take_patches, (channels_last,), {"windows": windows})
    batch, rows, columns, kernel_height, kernel_width, channels = y._spec.shape
    y = transpose(y, perm=(0, 5, 3, 4, 1, 2))
    depth = channels * kernel_height * kernel_width
    return reshape(y, shape=(batch, depth, rows * columns))


def fold(x, output_size, kernel_size, dilation=1, padding=0, stride=1):
    """Sums windows into an image at their positions; the transpose of `unfold`."""
    x = convert_to_tensor(x)
    spatial_shape = _pair(output_size)
    windows = _windows(kernel_size, dilation, padding, stride)
    batch, depth, _ = x._spec.shape
    kernel_height, kernel_width = windows.size
    channels = depth // (kernel_height * kernel_width)
    positions = windows.positions(spatial_shape)
    shape = (batch, channels, kernel_height, kernel_width, *positions)
    y = transpose(reshape(x, shape=shape), perm=(0, 4, 5, 2, 3, 1))
    y = apply(patches.sum_patches, (y,), {"windows": windows, "space": spatial_shape})
    return transpose(y, perm=(0, 3, 1, 2))


def space_to_depth(x, block_size, data_format="channels_last"):
    """Moves each block of pixels into the channels of one pixel."""
    x, n = convert_to_tensor(x), block_size
    if standardize_data_format(data_format) == "channels_first":
        batch, channels, height, width = x._spec.shape
        rows, columns = height // n, width // n
        y = reshape(x, shape=(batch, channels, rows, n, columns, n))
        y = transpose(y, perm=(0, 1, 3, 5, 2, 4))
        return reshape(y, shape=(batch, channels * n * n, rows, columns))
    batch, height, width, channels = x._spec.shape
    rows, columns = height // n, width // n
    y = transpose(reshape(x, shape=(batch, rows, n, columns, n, channels)), perm=(0, 1, 3, 2, 4, 5))
    return reshape(y, shape=(batch, rows, columns, n * n * channels))


def depth_to_space(x, block_size, data_format="channels_last"):
    """Computes the inverse of `space_to_depth`."""
    x, n = convert_to_tensor(x), block_size
    if standardize_data_format(data_format) == "channels_first":
        batch, depth, rows, columns = x._spec.shape
        channels = depth // (n * n)
        y = reshape(x, shape=(batch, channels, n, n, rows, columns))
        y = transpose(y, perm=(0, 1, 4, 2, 5, 3))
        return reshape(y, shape=(batch, channels, rows * n, columns * n))
    batch, rows, columns, depth = x._spec.shape
    channels = depth // (n * n)
    y = transpose(reshape(x, shape=(batch, rows, columns, n, n, channels)), perm=(0, 1, 3, 2, 4, 5))
    return reshape(y, shape=(batch, rows * n, columns * n, channels))
