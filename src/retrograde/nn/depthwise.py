"""Depthwise and separable convolutions, and gradients of convolutions as functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from retrograde.core.apply import apply
from retrograde.core.tensor import Tensor
from retrograde.nn._windows import Layout
from retrograde.nn.convolutions import check_filters, conv2d, conv2d_transpose, to_pairs
from retrograde.ops import convolution as ops
from retrograde.ops._windows import Windows
from retrograde.ops.arguments import shape_from
from retrograde.ops.conversion import as_tensor, one_dtype
from retrograde.ops.shaping import reshape
from retrograde.values.arguments import shown
from retrograde.values.errors import invalid


def depthwise_conv2d(
    input: Any,
    filter: Any,
    strides: Sequence[int],
    padding: Any,
    data_format: str | None = None,
    dilations: Any = None,
    name: str | None = None,
) -> Tensor:
    """Convolves each channel separately.

    `filter` has the shape `(height, width, channels, multiplier)`; each channel has `multiplier`
    output channels.

    >>> x = tf.constant([[[[1.0, 2.0], [3.0, 4.0]]]])
    >>> w = tf.reshape([1.0, 10.0, 1.0, 10.0], [1, 2, 2, 1])
    >>> tf.nn.depthwise_conv2d(x, w, [1, 1, 1, 1], "VALID").numpy().ravel()
    array([ 4., 60.], dtype=float32)
    """
    layout = Layout.from_data_format(data_format, 2, "depthwise_conv2d")
    x, w = one_dtype((input, filter))
    taps = check_filters(w, layout)
    _check_axes(x, layout)
    x = layout.to_channels_last(x)
    space, channels = x._spec.shape[1:-1], x._spec.shape[-1]
    windows = _windows(layout, padding, space, taps, strides, dilations)
    if channels != w._spec.shape[2]:
        raise invalid(
            f"depthwise_conv2d: the input has {channels} channels, but the filter has "
            f"{w._spec.shape[2]}. Expected the same number."
        )
    attrs = {"windows": windows, "groups": channels}
    return layout.from_channels_last(apply(ops.convolve, (x, _as_grouped(w)), attrs))


def _check_axes(x: Tensor, layout: Layout) -> None:
    if x.ndim != 4:
        raise invalid(f"{layout.op_name}: expected 4 axes. Received: shape {x._spec.shape}.")


def _windows(
    layout: Layout, padding: Any, space: Any, taps: Any, strides: Any, dilations: Any
) -> Windows:
    strides = layout.per_spatial_axis(strides, "strides")
    dilations = layout.per_spatial_axis(dilations, "dilations")
    return layout.windows(padding, space, taps, strides, dilations, explicit=True)


def _as_grouped(w: Tensor) -> Tensor:
    """Reshapes `(height, width, channels, multiplier)` to a filter with one group per channel."""
    height, width, channels, multiplier = w._spec.shape
    return reshape(w, shape=(height, width, 1, channels * multiplier))


def depthwise_conv2d_backprop_input(
    input_sizes: Any,
    filter: Any,
    out_backprop: Any,
    strides: Sequence[int],
    padding: Any,
    data_format: str = "NHWC",
    dilations: Any = [1, 1, 1, 1],  # noqa: B006 (TensorFlow's default)
    name: str | None = None,
) -> Tensor:
    """Computes the gradient of `depthwise_conv2d` with respect to its input.

    `input_sizes` is the shape of the input.
    """
    layout = Layout.from_data_format(data_format, 2, "depthwise_conv2d_backprop_input")
    w, g = one_dtype((filter, out_backprop))
    taps = check_filters(w, layout)
    _check_axes(g, layout)
    shape = shape_from(input_sizes, f"{layout.op_name}: input_sizes")
    if len(shape) != 4:
        raise invalid(
            f"{layout.op_name}: input_sizes must have 4 elements. Received: {shown(list(shape))}."
        )
    space, channels = layout.spatial_part(shape), shape[1 if layout.channels_first else -1]
    windows = _windows(layout, padding, space, taps, strides, dilations)
    g = layout.to_channels_last(g)
    outputs = w._spec.shape[2] * w._spec.shape[3]
    _check_gradient_shape(g, (shape[0], *windows.positions(space), outputs), layout)
    if channels != w._spec.shape[2]:
        raise invalid(
            f"{layout.op_name}: the input has {channels} channels, but the filter has "
            f"{w._spec.shape[2]}. Expected the same number."
        )
    attrs = {"windows": windows, "groups": channels, "space": tuple(space)}
    return layout.from_channels_last(apply(ops.convolve_transposed, (g, _as_grouped(w)), attrs))


def depthwise_conv2d_backprop_filter(
    input: Any,
    filter_sizes: Any,
    out_backprop: Any,
    strides: Sequence[int],
    padding: Any,
    data_format: str = "NHWC",
    dilations: Any = [1, 1, 1, 1],  # noqa: B006 (TensorFlow's default)
    name: str | None = None,
) -> Tensor:
    """Computes the gradient of `depthwise_conv2d` with respect to its filter.

    `filter_sizes` is the shape of the filter.
    """
    layout = Layout.from_data_format(data_format, 2, "depthwise_conv2d_backprop_filter")
    x, g = one_dtype((input, out_backprop))
    shape = shape_from(filter_sizes, f"{layout.op_name}: filter_sizes")
    if len(shape) != 4:
        raise invalid(
            f"{layout.op_name}: filter_sizes must have 4 elements. Received: {shown(list(shape))}."
        )
    y = _filter_gradient(x, g, shape[:2], shape[2], strides, padding, layout, dilations)
    return reshape(y, shape=shape)


def _filter_gradient(
    x: Tensor,
    g: Tensor,
    taps: Sequence[int],
    groups: int,
    strides: Any,
    padding: Any,
    layout: Layout,
    dilations: Any,
) -> Tensor:
    _check_axes(x, layout)
    _check_axes(g, layout)
    x, g = layout.to_channels_last(x), layout.to_channels_last(g)
    space = x._spec.shape[1:-1]
    windows = _windows(layout, padding, space, taps, strides, dilations)
    _check_gradient_shape(g, (len(x), *windows.positions(space), g._spec.shape[-1]), layout)
    return apply(ops.convolve_filter, (x, g), {"windows": windows, "groups": groups})


def _check_gradient_shape(g: Tensor, expected: tuple[int, ...], layout: Layout) -> None:
    if g._spec.shape != expected:
        raise invalid(
            f"{layout.op_name}: with channels last, out_backprop has shape {g._spec.shape}. "
            f"Expected {expected}, the shape of the convolution's output."
        )


def separable_conv2d(
    input: Any,
    depthwise_filter: Any,
    pointwise_filter: Any,
    strides: Sequence[int],
    padding: Any,
    data_format: str | None = None,
    dilations: Any = None,
    name: str | None = None,
) -> Tensor:
    """Computes a `depthwise_conv2d` followed by a 1x1 `conv2d` that mixes the channels.

    `pointwise_filter` has the shape `(1, 1, channels * multiplier, output channels)`.
    """
    pointwise = as_tensor(pointwise_filter)
    if pointwise.ndim != 4 or pointwise._spec.shape[:2] != (1, 1):
        raise ValueError(
            "separable_conv2d: pointwise_filter must have shape (1, 1, channels, outputs). "
            f"Received: shape {pointwise._spec.shape}."
        )
    y = depthwise_conv2d(input, depthwise_filter, strides, padding, data_format, dilations)
    return conv2d(y, pointwise, 1, "VALID", data_format or "NHWC")


def conv2d_backprop_input_v2(
    input: Any,
    filter: Any,
    out_backprop: Any,
    strides: Sequence[int],
    padding: str,
    use_cudnn_on_gpu: bool = True,
    explicit_paddings: Sequence[int] = [],
    data_format: str = "NHWC",
    dilations: Sequence[int] = [1, 1, 1, 1],
    name: str | None = None,
) -> Tensor:
    """Computes the gradient of `conv2d` with respect to its input; only its shape is used."""
    shape = as_tensor(input)._spec.shape
    padding = to_pairs(explicit_paddings) if padding == "EXPLICIT" else padding
    return conv2d_transpose(out_backprop, filter, shape, strides, padding, data_format, dilations)


def conv2d_backprop_filter_v2(
    input: Any,
    filter: Any,
    out_backprop: Any,
    strides: Sequence[int],
    padding: str,
    use_cudnn_on_gpu: bool = True,
    explicit_paddings: Sequence[int] = [],
    data_format: str = "NHWC",
    dilations: Sequence[int] = [1, 1, 1, 1],
    name: str | None = None,
) -> Tensor:
    """Computes the gradient of `conv2d` with respect to its filter; only its shape is used."""
    layout = Layout.from_data_format(data_format, 2, "conv2d_backprop_filter_v2")
    x, g = one_dtype((input, out_backprop))
    w = as_tensor(filter)
    taps = check_filters(w, layout)
    channels = x._spec.shape[1 if layout.channels_first else -1] if x.ndim == 4 else 0
    padding = to_pairs(explicit_paddings) if padding == "EXPLICIT" else padding
    groups = max(1, channels // w._spec.shape[2])
    y = _filter_gradient(x, g, taps, groups, strides, padding, layout, dilations)
    if y._spec.shape != w._spec.shape:
        raise invalid(
            f"{layout.op_name}: the gradient has shape {y._spec.shape}, but the filter has shape "
            f"{w._spec.shape}. Expected equal shapes."
        )
    return y
