"""Pooling."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from retrograde.core.apply import Primitive, apply
from retrograde.core.tensor import Tensor
from retrograde.nn._windows import Layout
from retrograde.ops import pooling as ops
from retrograde.ops._windows import Windows
from retrograde.ops.arguments import integers
from retrograde.ops.casting import to_dtype
from retrograde.ops.conversion import as_tensor
from retrograde.ops.shaping import reshape
from retrograde.values import dtypes
from retrograde.values.arguments import shown
from retrograde.values.errors import invalid


def max_pool1d(
    input: Any,
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = "NWC",
    name: str | None = None,
) -> Tensor:
    """Computes the maximum of each window over `input`, `(batch, width, channels)`.

    >>> tf.nn.max_pool1d([[[1.0], [3.0], [2.0], [0.0]]], 2, 2, "VALID").numpy().ravel()
    array([3., 2.], dtype=float32)
    """
    layout = Layout.from_data_format(data_format, 1, "max_pool1d")
    return _pool(ops.max_pool, input, ksize, strides, padding, layout, explicit=True)


def max_pool2d(
    input: Any,
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = "NHWC",
    name: str | None = None,
) -> Tensor:
    """Computes the maximum of each window over `input`, `(batch, height, width, channels)`.

    In a tie the gradient goes to the first maximum. `padding` is "SAME", "VALID" or a list with one
    pair per axis; padding is never the maximum. Windows can span channels instead of pixels, with
    `ksize` and `strides` of `[1, 1, 1, depth]`.

    >>> x = tf.reshape(tf.range(16.0), [1, 4, 4, 1])
    >>> tf.nn.max_pool2d(x, ksize=2, strides=2, padding="VALID").numpy().squeeze()
    array([[ 5.,  7.],
           [13., 15.]], dtype=float32)
    """
    layout = Layout.from_data_format(data_format, 2, "max_pool2d")
    return _pool(ops.max_pool, input, ksize, strides, padding, layout, explicit=True)


def max_pool3d(
    input: Any,
    ksize: Any,
    strides: Any,
    padding: str,
    data_format: str | None = "NDHWC",
    name: str | None = None,
) -> Tensor:
    """Computes the maximum of each window over 3-D `input`.

    `input` has the shape `(batch, depth, height, width, channels)`.
    """
    layout = Layout.from_data_format(data_format, 3, "max_pool3d")
    return _pool(ops.max_pool, input, ksize, strides, padding, layout)


def max_pool(
    input: Any,
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = None,
    name: str | None = None,
) -> Tensor:
    """Calls `max_pool1d`, `max_pool2d` or `max_pool3d`, depending on the rank of `input`."""
    x = as_tensor(input)
    layout = Layout.from_data_format(data_format, _num_spatial_axes(x, "max_pool"), "max_pool")
    return _pool(ops.max_pool, x, ksize, strides, padding, layout, explicit=layout.ndim < 3)


def avg_pool1d(
    input: Any,
    ksize: Any,
    strides: Any,
    padding: str,
    data_format: str | None = "NWC",
    name: str | None = None,
) -> Tensor:
    """Computes the average of each window over `input`, `(batch, width, channels)`.

    Padding counts neither in the sum nor in the number of elements.

    >>> tf.nn.avg_pool1d([[[1.0], [2.0], [6.0]]], 2, 2, "SAME").numpy().ravel()
    array([1.5, 6. ], dtype=float32)
    """
    layout = Layout.from_data_format(data_format, 1, "avg_pool1d")
    return _pool(ops.average_pool, input, ksize, strides, padding, layout)


def avg_pool2d(
    input: Any,
    ksize: Any,
    strides: Any,
    padding: str,
    data_format: str | None = "NHWC",
    name: str | None = None,
) -> Tensor:
    """Computes the average of each window over `input`, `(batch, height, width, channels)`.

    Padding counts neither in the sum nor in the number of elements.
    """
    layout = Layout.from_data_format(data_format, 2, "avg_pool2d")
    return _pool(ops.average_pool, input, ksize, strides, padding, layout)


def avg_pool3d(
    input: Any,
    ksize: Any,
    strides: Any,
    padding: str,
    data_format: str | None = "NDHWC",
    name: str | None = None,
) -> Tensor:
    """Computes the average of each window over 3-D `input`.

    `input` has the shape `(batch, depth, height, width, channels)`. Padding does not count.
    """
    layout = Layout.from_data_format(data_format, 3, "avg_pool3d")
    return _pool(ops.average_pool, input, ksize, strides, padding, layout)


def avg_pool(
    input: Any,
    ksize: Any,
    strides: Any,
    padding: str,
    data_format: str | None = None,
    name: str | None = None,
) -> Tensor:
    """Calls `avg_pool1d`, `avg_pool2d` or `avg_pool3d`, depending on the rank of `input`."""
    x = as_tensor(input)
    layout = Layout.from_data_format(data_format, _num_spatial_axes(x, "avg_pool"), "avg_pool")
    return _pool(ops.average_pool, x, ksize, strides, padding, layout)


def _num_spatial_axes(x: Tensor, op_name: str) -> int:
    if x.ndim not in (3, 4, 5):
        raise ValueError(
            f"{op_name}: the input must have 3, 4 or 5 axes. Received: shape {x._spec.shape}."
        )
    return x.ndim - 2


def pool(
    input: Any,
    window_shape: Any,
    pooling_type: str,
    strides: Any = None,
    padding: Any = "VALID",
    data_format: str | None = None,
    dilations: Any = None,
    name: str | None = None,
) -> Tensor:
    """Computes the maximum ("MAX") or average ("AVG") of each window over one to three axes.

    The elements of a window are `dilations` apart.
    """
    primitives = {"MAX": ops.max_pool, "AVG": ops.average_pool}
    if pooling_type not in primitives:
        raise ValueError(f'pool: pooling_type is {shown(pooling_type)}. Expected "MAX" or "AVG".')
    size = integers(window_shape, "pool: window_shape", TypeError)
    x = as_tensor(input)
    if len(size) not in (1, 2, 3) or x.ndim != len(size) + 2:
        raise ValueError(
            f"pool: the window has {len(size)} axes and the input has shape {x._spec.shape}. "
            "Expected 1, 2 or 3 window axes, and two more axes in the input."
        )
    layout = Layout.from_data_format(data_format, len(size), "pool")
    explicit = pooling_type == "MAX" and layout.ndim < 3
    return _pool(primitives[pooling_type], x, size, strides, padding, layout, explicit, dilations)


def _pool(
    primitive: Primitive,
    input: Any,
    ksize: Any,
    strides: Any,
    padding: Any,
    layout: Layout,
    explicit: bool = False,
    dilations: Any = None,
) -> Tensor:
    x = layout.to_channels_last(_check_input(input, layout))
    depth = _channels_per_window(ksize, strides, layout) if primitive is ops.max_pool else 1
    if depth > 1 and x._spec.shape[-1] % depth == 0 and padding in ("SAME", "VALID"):
        return layout.from_channels_last(_max_over_channels(x, depth))
    windows = _windows(x, ksize, strides, padding, layout, explicit, dilations)
    return layout.from_channels_last(apply(primitive, (x,), {"windows": windows}))


def _channels_per_window(ksize: Any, strides: Any, layout: Layout) -> int:
    """Returns the depth of windows that span channels only and do not overlap, else 1."""
    lists = [list(value) if isinstance(value, (list, tuple)) else [] for value in (ksize, strides)]
    if any(len(value) != layout.ndim + 2 for value in lists):
        return 1
    size, steps = lists
    depth = size.pop(1 if layout.channels_first else -1)
    non_overlapping = steps[1 if layout.channels_first else -1] == depth
    return depth if non_overlapping and all(k == 1 for k in size) else 1


def _max_over_channels(x: Tensor, depth: int) -> Tensor:
    *leading, channels = x._spec.shape
    windows = Windows((depth,), (depth,), ((0, 0),), (1,))
    flat = reshape(x, shape=(math.prod(leading), channels, 1))
    y = apply(ops.max_pool, (flat,), {"windows": windows})
    return reshape(y, shape=(*leading, channels // depth))


def _check_input(input: Any, layout: Layout) -> Tensor:
    x = as_tensor(input)
    if x.ndim != layout.ndim + 2:
        raise invalid(
            f"{layout.op_name}: the input must have {layout.ndim + 2} axes. Received: shape "
            f"{x._spec.shape}."
        )
    return x


def _windows(
    x: Tensor,
    ksize: Any,
    strides: Any,
    padding: Any,
    layout: Layout,
    explicit: bool = False,
    dilations: Any = None,
) -> Windows:
    size = layout.per_spatial_axis(ksize, "ksize")
    strides = layout.per_spatial_axis(strides, "strides")
    dilations = layout.per_spatial_axis(dilations, "dilations")
    windows = layout.windows(padding, x._spec.shape[1:-1], size, strides, dilations, explicit)
    extents = [(k - 1) * d + 1 for k, d in zip(size, dilations, strict=True)]
    if any(max(pair) >= n for pair, n in zip(windows.padding, extents, strict=True) if any(pair)):
        raise invalid(
            f"{layout.op_name}: padding must be smaller than the window. Received: "
            f"{list(windows.padding)} for {shown(list(size))}."
        )
    return windows


class MaxPoolWithArgmax(NamedTuple):
    """The maximums and their indices."""

    output: Tensor
    argmax: Tensor


def max_pool_with_argmax(
    input: Any,
    ksize: Any,
    strides: Any,
    padding: str,
    data_format: str = "NHWC",
    output_dtype: Any = dtypes.int64,
    include_batch_in_index: bool = False,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """Computes `max_pool2d` and the index of each maximum in its flattened image.

    With `include_batch_in_index`, the index is into the flattened input.

    >>> y, indices = tf.nn.max_pool_with_argmax(tf.reshape([4.0, 7.0], [1, 1, 2, 1]), 2, 2, "SAME")
    >>> y.numpy().item(), indices.numpy().item()
    (7.0, 1)
    """
    if data_format != "NHWC":
        raise ValueError(
            f'max_pool_with_argmax: data_format is {shown(data_format)}. Expected "NHWC".'
        )
    dtype = dtypes.as_dtype(output_dtype)
    if dtype not in (dtypes.int32, dtypes.int64):
        raise invalid(
            f"max_pool_with_argmax: output_dtype is {dtype.name}. Expected int32 or int64."
        )
    layout = Layout.from_data_format("NHWC", 2, "max_pool_with_argmax")
    x = _check_input(input, layout)
    attrs = {"windows": _windows(x, ksize, strides, padding, layout)}
    count, height, width, channels = x._spec.shape
    indices = apply(ops.max_pool_index, (x,), attrs) * channels + Tensor(np.arange(channels))
    if include_batch_in_index:
        image = height * width * channels
        indices = indices + Tensor((np.arange(count) * image).reshape(count, 1, 1, 1))
    return MaxPoolWithArgmax(apply(ops.max_pool, (x,), attrs), to_dtype(indices, dtype.numpy_dtype))
