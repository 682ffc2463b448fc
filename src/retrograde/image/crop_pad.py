"""Cropping and padding at given or central positions."""

from __future__ import annotations

from typing import Any

import numpy as np

from retrograde.core.tensor import Tensor
from retrograde.image._inputs import image_or_batch, require
from retrograde.ops.arguments import integer
from retrograde.ops.casting import identity
from retrograde.ops.conversion import as_tensor
from retrograde.ops.shaping import put_slice, take_slice
from retrograde.values import dtypes
from retrograde.values.arguments import as_float, as_int
from retrograde.values.conversion import tensor_or_variable

_HEIGHT, _WIDTH = -3, -2


def central_crop(image: Any, central_fraction: Any) -> Tensor:
    """The middle of images: `central_fraction` of their height and width.

    >>> tf.image.central_crop(tf.ones([8, 4, 3]), 0.5).shape
    TensorShape([4, 2, 3])
    """
    x = as_tensor(image)
    fraction, held = (
        as_float(central_fraction, "central_fraction"),
        tensor_or_variable(central_fraction),
    )
    dtype = getattr(central_fraction if held is None else held._array, "dtype", None)
    if dtype in dtypes.FLOATING:  # whose precision decides about half pixels
        fraction = dtype.type(fraction)
    if not 0 < fraction <= 1:
        raise ValueError(f"central_fraction must be within (0, 1]. Received: {fraction}.")
    if fraction == 1:
        return identity(x)
    x = image_or_batch(x, "central_crop")
    height, width = x._spec.shape[-3:-1]
    top, left = (int((size - size * fraction) / 2) for size in (height, width))
    return _cut(x, top, left, height - 2 * top, width - 2 * left)


def _window(x: Tensor, top: int, left: int, height: int, width: int) -> tuple:
    """The triples, for `take_slice` and `put_slice`, of a window within images."""
    *lead, channels = ((0, size, 1) for size in (*x._spec.shape[:-3], x._spec.shape[-1]))
    return (*lead, (top, top + height, 1), (left, left + width, 1), channels)


def _cut(x: Tensor, top: int, left: int, height: int, width: int) -> Tensor:
    return take_slice(x, where=_window(x, top, left, height, width))


def crop_to_bounding_box(
    image: Any, offset_height: Any, offset_width: Any, target_height: Any, target_width: Any
) -> Tensor:
    """The part of images that starts at the offsets and has the target's height and width."""
    what = "crop_to_bounding_box"
    arguments = (offset_height, offset_width, target_height, target_width)
    x = image_or_batch(image, what)
    top, left, height, width = (integer(value, what) for value in arguments)
    refuse_negative(what, offset_width=offset_width, offset_height=offset_height)
    refuse_nothing(what, target_width=target_width, target_height=target_height)
    for size, offset, target, kind, given in (
        (x._spec.shape[_WIDTH], left, width, "width", (offset_width, target_width)),
        (x._spec.shape[_HEIGHT], top, height, "height", (offset_height, target_height)),
    ):
        require(
            offset + target <= size,
            f"{what}: {kind} must be >= target + offset. Received: {kind} {size}, target {target}, "
            f"offset {offset}.",
            *given,
        )
    return _cut(x, top, left, height, width)


def pad_to_bounding_box(
    image: Any, offset_height: Any, offset_width: Any, target_height: Any, target_width: Any
) -> Tensor:
    """Images put into zeros of the target's height and width, at the offsets.

    >>> tf.image.pad_to_bounding_box([[[7]]], 0, 1, 2, 2)[..., 0].numpy()
    array([[0, 7], [0, 0]], dtype=int32)
    """
    what = "pad_to_bounding_box"
    arguments = (offset_height, offset_width, target_height, target_width)
    x = image_or_batch(image, what)
    top, left, height, width = (integer(value, what) for value in arguments)
    refuse_negative(what, offset_height=offset_height, offset_width=offset_width)
    old_height, old_width = x._spec.shape[-3:-1]
    for size, offset, target, kind, given in (
        (old_width, left, width, "width", (offset_width, target_width)),
        (old_height, top, height, "height", (offset_height, target_height)),
    ):
        require(
            size <= target - offset,
            f"{what}: {kind} must be <= target - offset. Received: {kind} {size}, target {target}, "
            f"offset {offset}.",
            *given,
        )
    shape = (*x._spec.shape[:-3], height, width, x._spec.shape[-1])
    return put_slice(x, shape=shape, where=_window(x, top, left, old_height, old_width))


def refuse_negative(what: str, **arguments: Any) -> None:
    """Refuses arguments below 0."""
    for name, value in arguments.items():
        number = as_int(value, f"{what}: {name}")
        require(number >= 0, f"{what}: {name} must be >= 0. Received: {number}.", value)


def refuse_nothing(what: str, **arguments: Any) -> None:
    """Refuses arguments that are not above 0."""
    for name, value in arguments.items():
        number = as_int(value, f"{what}: {name}")
        require(number > 0, f"{what}: {name} must be > 0. Received: {number}.", value)


def resize_with_crop_or_pad(image: Any, target_height: Any, target_width: Any) -> Tensor:
    """Images of the target's height and width: cut about the middle, or with zeros around.

    >>> tf.image.resize_with_crop_or_pad([[[1], [2], [3]]], 2, 1)[..., 0].numpy()
    array([[2], [0]], dtype=int32)
    """
    what = "resize_with_crop_or_pad"
    x = image_or_batch(image, what)
    refuse_nothing(what, target_width=target_width, target_height=target_height)
    target = np.array([integer(target_height, what), integer(target_width, what)])
    old = np.array(x._spec.shape[-3:-1])
    cut = np.maximum((old - target) // 2, 0).tolist()
    margin = np.maximum((target - old) // 2, 0).tolist()
    part = _cut(x, *cut, *np.minimum(old, target).tolist())
    return pad_to_bounding_box(part, *margin, *target.tolist())
