"""Convolutions and transposed convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from retrograde.core.apply import apply
from retrograde.core.tensor import Tensor
from retrograde.nn._windows import Layout
from retrograde.ops import convolution as ops
from retrograde.ops.arguments import integers
from retrograde.ops.conversion import one_dtype
from retrograde.ops.shaping import reshape
from retrograde.values.arguments import as_text, shown
from retrograde.values.errors import invalid


def conv1d(
    input: Any,
    filters: Any,
    stride: Any,
    padding: str,
    data_format: str | None = "NWC",
    dilations: Any = None,
    name: str | None = None,
) -> Tensor:
    """Computes the 1-D convolution of `input`, `(*batch, width, channels)`, with `filters`.

    `filters` has the shape `(width, channels, output channels)`. There may be several batch axes.
    If `filters` has fewer channels than `input`, the convolution is grouped.

    >>> x = tf.reshape([1.0, 2.0, 3.0, 4.0], [1, 4, 1])
    >>> tf.nn.conv1d(x, tf.reshape([1.0, 10.0], [2, 1, 1]), 1, "VALID").numpy().ravel()
    array([21., 32., 43.], dtype=float32)
    """
    data_format = {"NHWC": "NWC", "NCHW": "NCW"}.get(data_format, data_format)
    layout = Layout.from_data_format(data_format, 1, "conv1d")
    return _convolve(input, filters, stride, padding, layout, dilations)


def conv2d(
    input: Any,
    filters: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = "NHWC",
    dilations: Any = None,
    name: str | None = None,
) -> Tensor:
    """Computes the 2-D convolution of `input` with `filters`.

    `input` has the shape `(*batch, height, width, channels)`, with any number of batch axes, and
    `filters` has the shape `(height, width, channels, output channels)`. If `filters` has fewer
    channels than `input`, the convolution is grouped. `padding` is "SAME", "VALID" or a list with
    one pair of sizes per axis of `input`.

    >>> x = tf.reshape(tf.range(9.0), [1, 3, 3, 1])
    >>> tf.nn.conv2d(x, tf.ones([2, 2, 1, 1]), strides=1, padding="VALID").numpy().squeeze()
    array([[ 8., 12.],
           [20., 24.]], dtype=float32)
    """
    layout = Layout.from_data_format(data_format, 2, "conv2d")
    return _convolve(input, filters, strides, padding, layout, dilations, explicit=True)


def conv3d(
    input: Any,
    filters: Any,
    strides: Any,
    padding: str,
    data_format: str | None = "NDHWC",
    dilations: Any = None,
    name: str | None = None,
) -> Tensor:
    """Computes the 3-D convolution of `(*batch, depth, height, width, channels)`; see `conv2d`."""
    layout = Layout.from_data_format(data_format, 3, "conv3d")
    return _convolve(input, filters, strides, padding, layout, dilations)


def convolution(
    input: Any,
    filters: Any,
    strides: Any = None,
    padding: str = "VALID",
    data_format: str | None = None,
    dilations: Any = None,
    name: str | None = None,
) -> Tensor:
    """Calls `conv1d`, `conv2d` or `conv3d`, depending on the rank of `filters`."""
    filters = one_dtype((filters,))[0]
    layout = Layout.from_data_format(
        data_format, _num_spatial_axes(filters, "convolution"), "convolution"
    )
    return _convolve(input, filters, strides, padding, layout, dilations)


def _num_spatial_axes(filters: Tensor, op_name: str) -> int:
    if filters.ndim not in (3, 4, 5):
        raise ValueError(
            f"{op_name}: filters must have 3, 4 or 5 axes. Received: shape {filters._spec.shape}."
        )
    return filters.ndim - 2


def _convolve(
    input: Any,
    filters: Any,
    strides: Any,
    padding: Any,
    layout: Layout,
    dilations: Any,
    explicit: bool = False,
) -> Tensor:
    x, w = one_dtype((input, filters))
    strides = layout.per_spatial_axis(strides, "strides")
    dilations = layout.per_spatial_axis(dilations, "dilations")
    taps = check_filters(w, layout)

    def convolve(x: Tensor) -> Tensor:
        space, channels = x._spec.shape[1:-1], x._spec.shape[-1]
        windows = layout.windows(padding, space, taps, strides, dilations, explicit)
        groups = _groups(channels, w, layout.op_name)
        return apply(ops.convolve, (x, w), {"windows": windows, "groups": groups})

    return layout.apply_channels_last(convolve, x)


def check_filters(w: Tensor, layout: Layout) -> tuple[int, ...]:
    """Checks the shape of the filters `w` and returns the window size."""
    shape = w._spec.shape
    if w.ndim != layout.ndim + 2:
        raise invalid(
            f"{layout.op_name}: filters must have {layout.ndim + 2} axes. Received: shape {shape}."
        )
    if 0 in shape[:-1]:
        raise invalid(f"{layout.op_name}: filters must not be empty. Received: shape {shape}.")
    return shape[: layout.ndim]


def _groups(channels: int, w: Tensor, op_name: str) -> int:
    filter_channels, outputs = w._spec.shape[-2:]
    if channels % filter_channels or not channels:
        raise invalid(
            f"{op_name}: the input has {channels} channels, the filters have {filter_channels}. "
            "The number of input channels must be a multiple of the filters' channels."
        )
    groups = channels // filter_channels
    if outputs % groups:
        raise invalid(
            f"{op_name}: {outputs} output channels cannot be divided into {groups} groups. "
            f"Expected a multiple of {groups}."
        )
    return groups


def conv1d_transpose(
    input: Any,
    filters: Any,
    output_shape: Any,
    strides: Any,
    padding: str = "SAME",
    data_format: str | None = "NWC",
    dilations: Any = None,
    name: str | None = None,
) -> Tensor:
    """Computes the transpose of `conv1d`; `filters` is `(width, output channels, channels)`."""
    layout = Layout.from_data_format(data_format, 1, "conv1d_transpose")
    return _transpose(input, filters, output_shape, strides, padding, layout, dilations)


def conv2d_transpose(
    input: Any,
    filters: Any,
    output_shape: Any,
    strides: Any,
    padding: Any = "SAME",
    data_format: str | None = "NHWC",
    dilations: Any = None,
    name: str | None = None,
) -> Tensor:
    """Computes the transpose of `conv2d`: the gradient with respect to its input.

    `output_shape` is the shape of that input; it may omit the batch and the channels. `filters` has
    the shape `(height, width, output channels, channels)`.

    >>> x = tf.reshape([1.0, 2.0], [1, 1, 2, 1])
    >>> y = tf.nn.conv2d_transpose(x, tf.ones([2, 2, 1, 1]), [1, 2, 4, 1], strides=2)
    >>> y.numpy().squeeze()
    array([[1., 1., 2., 2.],
           [1., 1., 2., 2.]], dtype=float32)
    """
    layout = Layout.from_data_format(data_format, 2, "conv2d_transpose")
    return _transpose(
        input, filters, output_shape, strides, padding, layout, dilations, explicit=True
    )


def conv3d_transpose(
    input: Any,
    filters: Any,
    output_shape: Any,
    strides: Any,
    padding: str = "SAME",
    data_format: str | None = "NDHWC",
    dilations: Any = None,
    name: str | None = None,
) -> Tensor:
    """Computes the transpose of `conv3d`.

    `filters` has the shape `(depth, height, width, output channels, channels)`.
    """
    layout = Layout.from_data_format(data_format, 3, "conv3d_transpose")
    return _transpose(input, filters, output_shape, strides, padding, layout, dilations)


def conv_transpose(
    input: Any,
    filters: Any,
    output_shape: Any,
    strides: Any,
    padding: str = "SAME",
    data_format: str | None = None,
    dilations: Any = None,
    name: str | None = None,
) -> Tensor:
    """Calls `conv1d_transpose` to `conv3d_transpose`, depending on the length of `output_shape`."""
    if isinstance(output_shape, (int, float)):
        raise ValueError(
            f"conv_transpose: expected a list or a tensor for output_shape. "
            f"Received: {as_text(output_shape)}."
        )
    shape = integers(output_shape, "conv_transpose: output_shape", TypeError)
    if len(shape) not in (3, 4, 5):
        raise ValueError(
            "conv_transpose: output_shape must be of length 3, 4 or 5. Received: "
            f"{shown(list(shape))}."
        )
    layout = Layout.from_data_format(data_format, len(shape) - 2, "conv_transpose")
    return _transpose(input, filters, shape, strides, padding, layout, dilations)


def _transpose(
    input: Any,
    filters: Any,
    output_shape: Any,
    strides: Any,
    padding: Any,
    layout: Layout,
    dilations: Any,
    explicit: bool = False,
) -> Tensor:
    g, w = one_dtype((input, filters))
    taps = check_filters(w, layout)
    sizes = integers(output_shape, f"{layout.op_name}: output_shape", TypeError)
    shape = _output_shape(sizes, g, w, layout)
    strides = layout.per_spatial_axis(strides, "strides")
    dilations = layout.per_spatial_axis(dilations, "dilations")
    space, channels = layout.spatial_part(shape), shape[1 if layout.channels_first else -1]
    windows = layout.windows(padding, space, taps, strides, dilations, explicit)
    groups = _groups(channels, w, layout.op_name)
    g = layout.to_channels_last(g)
    expected = (shape[0], *windows.positions(space), w._spec.shape[-1])
    if g._spec.shape != expected:
        raise invalid(
            f"{layout.op_name}: with channels last, an output of {shown(list(shape))} requires an "
            f"input of shape {expected}. Received: {g._spec.shape}."
        )
    attrs = {"windows": windows, "groups": groups, "space": tuple(space)}
    return layout.from_channels_last(apply(ops.convolve_transposed, (g, w), attrs))


def _output_shape(sizes: Sequence[int], g: Tensor, w: Tensor, layout: Layout) -> Sequence[int]:
    """Returns the full output shape; `sizes` may omit the batch and the channels."""
    if g.ndim != layout.ndim + 2:
        raise invalid(
            f"{layout.op_name}: the input must have {layout.ndim + 2} axes. Received: shape "
            f"{g._spec.shape}."
        )
    if any(n < 0 for n in sizes):
        raise invalid(f"{layout.op_name}: dimensions must be >= 0. Received: {shown(list(sizes))}.")
    if len(sizes) == layout.ndim + 2:
        return sizes
    if len(sizes) != layout.ndim or layout.ndim != 2:
        raise invalid(
            f"{layout.op_name}: output_shape must have {layout.ndim + 2} elements. Received: "
            f"{shown(list(sizes))}."
        )
    batch, channels = g._spec.shape[0], w._spec.shape[-2]
    return (batch, channels, *sizes) if layout.channels_first else (batch, *sizes, channels)


def atrous_conv2d(
    value: Any, filters: Any, rate: Any, padding: str, name: str | None = None
) -> Tensor:
    """Computes a dilated `conv2d`: the taps of a window are `rate` pixels apart."""
    return convolution(value, filters, padding=padding, dilations=rate)


def atrous_conv2d_transpose(
    value: Any, filters: Any, output_shape: Any, rate: int, padding: str, name: str | None = None
) -> Tensor:
    """Computes the transpose of `atrous_conv2d`."""
    return conv2d_transpose(value, filters, output_shape, 1, padding, dilations=rate)


def conv(
    input: Any,
    filter: Any,
    strides: Sequence[int],
    padding: str,
    explicit_paddings: Sequence[int] = [],
    data_format: str = "CHANNELS_LAST",
    dilations: Sequence[int] = [],
    batch_dims: int = 1,
    groups: int = 1,
    name: str | None = None,
) -> Tensor:
    """Computes a convolution over two or three axes after `batch_dims` batch axes.

    If `padding` is "EXPLICIT", `explicit_paddings` holds two numbers per axis.
    """
    x, w = one_dtype((input, filter))
    if data_format not in ("CHANNELS_LAST", "CHANNELS_FIRST"):
        raise invalid(
            f'conv: data_format is {shown(data_format)}. Expected "CHANNELS_LAST" or '
            '"CHANNELS_FIRST".'
        )
    ndim = x.ndim - batch_dims - 1
    if ndim not in (2, 3):
        raise invalid(
            f"conv: expected 2 or 3 axes between batch and channels. Received: shape "
            f"{x._spec.shape} with batch_dims={as_text(batch_dims)}."
        )
    layout = Layout(ndim, data_format == "CHANNELS_FIRST", "conv")
    channels = x._spec.shape[batch_dims if layout.channels_first else -1]
    if w.ndim == ndim + 2 and w._spec.shape[-2] * groups != channels:
        raise invalid(
            f"conv: the filter has {w._spec.shape[-2]} channels in {as_text(groups)} groups, but "
            f"the input has {channels}. Expected the same number."
        )
    if padding == "EXPLICIT":
        padding = to_pairs(explicit_paddings)
    if batch_dims == 0:
        y = _convolve(
            reshape(x, shape=(1, *x._spec.shape)),
            w, strides, padding, layout, dilations or None, explicit=True,
        )  # fmt: skip
        return reshape(y, shape=y._spec.shape[1:])
    return _convolve(x, w, strides, padding, layout, dilations or None, explicit=True)


def to_pairs(numbers: Sequence[int]) -> list[list[int]]:
    """Converts a flat list of paddings, two numbers per axis, to pairs."""
    return [list(numbers[i : i + 2]) for i in range(0, len(numbers), 2)]
