"""Convolutions, and convolutions transposed."""

from keras.src.backend.common import backend_utils

from retrograde.core.apply import apply
from retrograde.keras_backend.ops._inputs import pair
from retrograde.keras_backend.ops.nn._windows import Space
from retrograde.ops import convolution
from retrograde.ops._windows import Windows
from retrograde.ops.shaping import put_slice, reshape


def conv(inputs, kernel, strides=1, padding="valid", data_format=None, dilation_rate=1):
    """Sums of what each window sees, weighed by `kernel`, `(*taps, channels, results)`.

    If `kernel` has fewer channels than `inputs`, these are in groups convolved each by itself.
    """
    x, w = pair(inputs, kernel)
    space = Space(x, data_format)
    return _convolved(space, w, strides, padding, dilation_rate, _groups(space.channels, w))


def _check(name, x, w, data_format):
    """Refuses other numbers of channels, in the words of Keras where it has some: from 3.15 on."""
    check = getattr(backend_utils, name, None)
    if check is not None:
        check(x, w, data_format)


def _groups(channels, w):
    inner = w._spec.shape[-2]
    if channels % inner:
        raise ValueError(
            "The number of input channels must be evenly divisible by kernel's in_channels. "
            f"Received input channels {channels} and kernel in_channels {inner}."
        )
    return channels // inner


def _convolved(space, w, strides, padding, dilation_rate, groups):
    x = space.to_last()
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
    return space.from_last(y)


def depthwise_conv(inputs, kernel, strides=1, padding="valid", data_format=None, dilation_rate=1):
    """Each channel convolved by itself, with `kernel` of `(*taps, channels, results of each)`."""
    x, w = pair(inputs, kernel)
    space = Space(x, data_format)
    _check("check_conv_input_channels", x, w, space.data_format)
    *taps, channels, results = w._spec.shape
    w = reshape(w, shape=(*taps, 1, channels * results))
    return _convolved(space, w, strides, padding, dilation_rate, channels)


def separable_conv(
    inputs,
    depthwise_kernel,
    pointwise_kernel,
    strides=1,
    padding="valid",
    data_format=None,
    dilation_rate=1,
):
    """Each channel convolved by itself, then the channels of each cell mixed."""
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
    """The transpose of `conv`, with `kernel` of `(*taps, results, channels)`."""
    x, w = pair(inputs, kernel)
    space = Space(x, data_format)
    _check("check_conv_transpose_input_channels", x, w, space.data_format)
    taps, strides = w._spec.shape[:-2], space.along_axes(strides)
    dilations = space.along_axes(dilation_rate)
    widened = backend_utils.compute_conv_transpose_padding_args_for_jax(
        x._spec.shape, w._spec.shape, strides, padding, output_padding, dilations
    )
    # Each input reaches `extent` cells. Of all cells reached, some are cut off on both sides; or
    # on the right, some that are not reached are added.
    extents = [(k - 1) * d + 1 for k, d in zip(taps, dilations, strict=True)]
    cuts = [
        (extent - 1 - low, max(0, extent - 1 - high))
        for extent, (low, high) in zip(extents, widened, strict=True)
    ]
    sizes = tuple(
        max(0, (n - 1) * stride + extent - sum(cut))
        for n, stride, extent, cut in zip(space.sizes, strides, extents, cuts, strict=True)
    )
    beyond = [max(0, high - extent + 1) for extent, (_, high) in zip(extents, widened, strict=True)]
    windows = Windows(taps, strides, tuple(cuts), dilations)
    attrs = {"windows": windows, "groups": 1, "space": sizes}
    y = apply(convolution.convolve_transposed, (space.to_last(), w), attrs)
    return space.from_last(_with_zeros_behind(y, beyond))


def _with_zeros_behind(y, counts):
    if not any(counts):
        return y
    shape = y._spec.shape
    whole = (shape[0], *map(sum, zip(shape[1:-1], counts, strict=True)), shape[-1])
    return put_slice(y, shape=whole, where=tuple((0, n, 1) for n in shape))
