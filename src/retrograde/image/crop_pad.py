"""Cropping and padding at fixed or central positions."""

from __future__ import annotations

from typing import Any

import numpy as np

from retrograde.core.tensor import Tensor
from retrograde.image._inputs import as_image_or_batch, require
from retrograde.ops.arguments import integer
from retrograde.ops.casting import identity
from retrograde.ops.conversion import as_tensor
from retrograde.ops.shaping import put_slice, take_slice
from retrograde.values import dtypes
from retrograde.values.arguments import as_float, as_int
from retrograde.values.conversion import tensor_or_variable

_HEIGHT, _WIDTH = -3, -2


def central_crop(image: Any, central_fraction: Any) -> Tensor:
    """Crops images to the central `central_fraction` of their height and width.

    >>> tf.image.central_crop(tf.ones([8, 4, 3]), 0.5).shape
    TensorShape([4, 2, 3])
    """
    x = as_tensor(image)
    fraction = as_float(central_fraction, "central_fraction")
    tensor = tensor_or_variable(central_fraction)
    dtype = getattr(central_fraction if tensor is None else tensor._array, "dtype", None)
    if dtype in dtypes.FLOATING:  # this precision decides how half pixels are rounded
        fraction = dtype.type(fraction)
    if not 0 < fraction <= 1:
        raise ValueError(f"central_fraction must be within (0, 1]. Received: {fraction}.")
    if fraction == 1:
        return identity(x)
    x = as_image_or_batch(x, "central_crop")
    height, width = x._spec.shape[-3:-1]
    top, left = (int((size - size * fraction) / 2) for size in (height, width))
    return _crop(x, top, left, height - 2 * top, width - 2 * left)


def _window(x: Tensor, top: int, left: int, height: int, width: int) -> tuple:
    """Returns the (start, stop, step) triples of a window, for `take_slice` and `put_slice`."""
    *lead, channels = ((0, size, 1) for size in (*x._spec.shape[:-3], x._spec.shape[-1]))
    return (*lead, (top, top + height, 1), (left, left + width, 1), channels)


def _crop(x: Tensor, top: int, left: int, height: int, width: int) -> Tensor:
    return take_slice(x, where=_window(x, top, left, height, width))


def crop_to_bounding_box(
    image: Any, offset_height: Any, offset_width: Any, target_height: Any, target_width: Any
) -> Tensor:
    """Crops images to the target height and width, starting at the offsets."""
    op_name = "crop_to_bounding_box"
    arguments = (offset_height, offset_width, target_height, target_width)
    x = as_image_or_batch(image, op_name)
    top, left, height, width = (integer(value, op_name) for value in arguments)
    check_not_negative(op_name, offset_width=offset_width, offset_height=offset_height)
    check_positive(op_name, target_width=target_width, target_height=target_height)
    for size, offset, target, kind, checked_args in (
        (x._spec.shape[_WIDTH], left, width, "width", (offset_width, target_width)),
        (x._spec.shape[_HEIGHT], top, height, "height", (offset_height, target_height)),
    ):
        require(
            offset + target <= size,
            f"{op_name}: {kind} must be >= target + offset. Received: {kind} {size}, target "
            f"{target}, offset {offset}.",
            *checked_args,
        )
    return _crop(x, top, left, height, width)


def pad_to_bounding_box(
    image: Any, offset_height: Any, offset_width: Any, target_height: Any, target_width: Any
) -> Tensor:
    """Pads images with zeros to the target height and width, placing them at the offsets.

    >>> tf.image.pad_to_bounding_box([[[7]]], 0, 1, 2, 2)[..., 0].numpy()
    array([[0, 7], [0, 0]], dtype=int32)
    """
    op_name = "pad_to_bounding_box"
    arguments = (offset_height, offset_width, target_height, target_width)
    x = as_image_or_batch(image, op_name)
    top, left, height, width = (integer(value, op_name) for value in arguments)
    check_not_negative(op_name, offset_height=offset_height, offset_width=offset_width)
    old_height, old_width = x._spec.shape[-3:-1]
    for size, offset, target, kind, checked_args in (
        (old_width, left, width, "width", (offset_width, target_width)),
        (old_height, top, height, "height", (offset_height, target_height)),
    ):
        require(
            size <= target - offset,
            f"{op_name}: {kind} must be <= target - offset. Received: {kind} {size}, target "
            f"{target}, offset {offset}.",
            *checked_args,
        )
    shape = (*x._spec.shape[:-3], height, width, x._spec.shape[-1])
    return put_slice(x, shape=shape, where=_window(x, top, left, old_height, old_width))


def check_not_negative(op_name: str, **arguments: Any) -> None:
    """Raises if an argument is negative."""
    for name, value in arguments.items():
        number = as_int(value, f"{op_name}: {name}")
        require(number >= 0, f"{op_name}: {name} must be >= 0. Received: {number}.", value)


def check_positive(op_name: str, **arguments: Any) -> None:
    """Raises unless every argument is positive."""
    for name, value in arguments.items():
        number = as_int(value, f"{op_name}: {name}")
        require(number > 0, f"{op_name}: {name} must be > 0. Received: {number}.", value)


def resize_with_crop_or_pad(image: Any, target_height: Any, target_width: Any) -> Tensor:
    """Crops images centrally, or pads them with zeros, to the target height and width.

    >>> tf.image.resize_with_crop_or_pad([[[1], [2], [3]]], 2, 1)[..., 0].numpy()
    array([[2], [0]], dtype=int32)
    """
    op_name = "resize_with_crop_or_pad"
    x = as_image_or_batch(image, op_name)
    check_positive(op_name, target_width=target_width, target_height=target_height)
    target = np.array([integer(target_height, op_name), integer(target_width, op_name)])
    old = np.array(x._spec.shape[-3:-1])
    crop_offset = np.maximum((old - target) // 2, 0).tolist()
    pad_offset = np.maximum((target - old) // 2, 0).tolist()
    cropped = _crop(x, *crop_offset, *np.minimum(old, target).tolist())
    return pad_to_bounding_box(cropped, *pad_offset, *target.tolist())
