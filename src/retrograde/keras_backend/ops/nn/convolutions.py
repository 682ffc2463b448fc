"""Convolutions and transposed convolutions."""

from keras.src.backend.common import backend_utils

from retrograde.core.apply import apply
from retrograde.keras_backend.ops._inputs import pair
from retrograde.keras_backend.ops.nn._windows import SpatialInput
from retrograde.ops import convolution
from retrograde.ops._windows import Windows
from retrograde.ops.shaping import put_slice, reshape


def conv(inputs, kernel, strides=1, padding="valid", data_format=None, dilation_rate=1):
    """Convolves `inputs` with a kernel `(*kernel_size, in_channels, out_channels)`.

    If `kernel` has fewer channels than `inputs`, this is a grouped convolution.
    """
    x, w = pair(inputs, kernel)
    space = SpatialInput(x, data_format)
    return _convolve(space, w, strides, padding, dilation_rate, _groups(space.channels, w))


def _check_channels(name, x, w, data_format):
    """Checks the channels with Keras's function, which exists since Keras 3.15."""
    check = getattr(backend_utils, name, None)
    if check is not None:
        check(x, w, data_format)


def _groups(channels, w):
    in_channels = w._spec.shape[-2]
    if channels % in_channels:
        raise ValueError(
            "The number of input channels must be evenly divisible by kernel's in_channels. "
            f"Received input channels {channels} and kernel in_channels {in_channels}."
        )
    return channels // in_channels


def _convolve(space, w, strides, padding, dilation_rate, groups):
    x = space.channels_last()
    size = w._spec.shape[:-2]
    windows = space.windows(size, strides, padding, dilation_rate)
    if x._spec.size and 0 in windows.positions(space.sizes):
        raise ValueError(
            "The convolution operation resulted in an empty output. This can happen if the input "
            "is too small for the given kernel size, strides, dilation rate, and padding mode. "
            f"Received: inputs.shape={space.shape}, kernel.shape={tuple(w.shape)}, "
            f"strides={strides}, padding={padding}, dilation_rate={dilation_rate}."
        )
    y = apply(convolution.convolve, (x, w), {"windows": windows, "groups": groups})
    return space.restore_format(y)


def depthwise_conv(inputs, kernel, strides=1, padding="valid", data_format=None, dilation_rate=1):
    """Convolves each channel with a kernel `(*kernel_size, in_channels, channel_multiplier)`."""
    x, w = pair(inputs, kernel)
    space = SpatialInput(x, data_format)
    _check_channels("check_conv_input_channels", x, w, space.data_format)
    *kernel_size, channels, multiplier = w._spec.shape
    w = reshape(w, shape=(*kernel_size, 1, channels * multiplier))
    return _convolve(space, w, strides, padding, dilation_rate, channels)


def separable_conv(
    inputs,
    depthwise_kernel,
    pointwise_kernel,
    strides=1,
    padding="valid",
    data_format=None,
    dilation_rate=1,
):
    """Applies a depthwise convolution, then a pointwise convolution."""
    y = depthwise_conv(inputs, depthwise_kernel, strides, padding, data_format, dilation_rate)
    return conv(y, pointwise_kernel, 1, "valid", data_format)


def conv_transpose(
    inputs,
    kernel,
    strides=1,
    padding="valid",
    output_padding=None,
    data_format=None,
    dilation_rate=1,
):
    """Applies the transpose of `conv` with a kernel `(*kernel_size, out_channels, in_channels)`."""
    x, w = pair(inputs, kernel)
    space = SpatialInput(x, data_format)
    _check_channels("check_conv_transpose_input_channels", x, w, space.data_format)
    kernel_size, strides = w._spec.shape[:-2], space.per_axis(strides)
    dilations = space.per_axis(dilation_rate)
    jax_padding = backend_utils.compute_conv_transpose_padding_args_for_jax(
        x._spec.shape, w._spec.shape, strides, padding, output_padding, dilations
    )
    # Each input contributes to `extent` output cells. The full output is cropped on both sides,
    # or zero-padded at the end.
    extents = [(k - 1) * d + 1 for k, d in zip(kernel_size, dilations, strict=True)]
    crops = [
        (extent - 1 - low, max(0, extent - 1 - high))
        for extent, (low, high) in zip(extents, jax_padding, strict=True)
    ]
    sizes = tuple(
        max(0, (n - 1) * stride + extent - sum(crop))
        for n, stride, extent, crop in zip(space.sizes, strides, extents, crops, strict=True)
    )
    extra = [
        max(0, high - extent + 1) for extent, (_, high) in zip(extents, jax_padding, strict=True)
    ]
    windows = Windows(kernel_size, strides, tuple(crops), dilations)
    attrs = {"windows": windows, "groups": 1, "space": sizes}
    y = apply(convolution.convolve_transposed, (space.channels_last(), w), attrs)
    return space.restore_format(_pad_end(y, extra))


def _pad_end(y, counts):
    if not any(counts):
        return y
    shape = y._spec.shape
    padded_shape = (shape[0], *map(sum, zip(shape[1:-1], counts, strict=True)), shape[-1])
    return put_slice(y, shape=padded_shape, where=tuple((0, n, 1) for n in shape))
