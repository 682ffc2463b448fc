"""Resizing of images, with interpolation and optional padding."""

from __future__ import annotations

from typing import Any

import numpy as np

from retrograde.core.tensor import Tensor
from retrograde.image._inputs import as_image_or_batch, check_image_rank
from retrograde.image._resampling_weights import METHODS, resize_weights
from retrograde.image.crop_pad import check_positive, pad_to_bounding_box
from retrograde.math._inputs import check_dtype
from retrograde.ops.arguments import integer
from retrograde.ops.casting import to_dtype
from retrograde.ops.conversion import as_tensor
from retrograde.ops.resampling import resample
from retrograde.values import dtypes
from retrograde.values.arguments import shown
from retrograde.values.composites import NotOneTensor, dispatch_to_composite
from retrograde.values.errors import invalid

_IMAGE_DTYPES = (
    "int8", "uint8", "int16", "uint16", "int32", "int64",
    "float16", "bfloat16", "float32", "float64",
)  # fmt: skip
_FLOAT32 = dtypes.float32.numpy_dtype


class ResizeMethod:
    """The names of the methods of `tf.image.resize`."""

    BILINEAR = "bilinear"
    NEAREST_NEIGHBOR = "nearest"
    BICUBIC = "bicubic"
    AREA = "area"
    LANCZOS3 = "lanczos3"
    LANCZOS5 = "lanczos5"
    GAUSSIAN = "gaussian"
    MITCHELLCUBIC = "mitchellcubic"


def resize(
    images: Any,
    size: Any,
    method: str = ResizeMethod.BILINEAR,
    preserve_aspect_ratio: bool = False,
    antialias: bool = False,
    name: str | None = None,
) -> Tensor:
    """Resizes images to `size = [new_height, new_width]`.

    The result is float32; the method "nearest" keeps the dtype. `images` is one image or a batch.
    Pixel centers are at half-integer coordinates. With `antialias`, downscaling averages over all
    pixels instead of skipping some. With `preserve_aspect_ratio`, the result has the largest size
    that fits into `size`.

    >>> image = tf.reshape([0.0, 1.0, 2.0, 3.0], [1, 4, 1])
    >>> tf.reshape(tf.image.resize(image, [1, 8]), [-1]).numpy()
    array([0.  , 0.25, 0.75, 1.25, 1.75, 2.25, 2.75, 3.  ], dtype=float32)
    """
    try:
        x = as_tensor(images)
    except NotOneTensor as refusal:
        return dispatch_to_composite(
            refusal,
            resize,
            images,
            size,
            method=method,
            preserve_aspect_ratio=preserve_aspect_ratio,
            antialias=antialias,
        )
    check_image_rank(x, "resize", "images")
    height, width = _new_size(size, x._spec.shape[-3:-1], preserve_aspect_ratio)
    if method not in METHODS:
        raise ValueError(
            f"resize: method {shown(method)} is not supported. Expected one of "
            f"{', '.join(METHODS)}."
        )
    check_dtype(x, _IMAGE_DTYPES, "images", "resize")
    _check_sizes(x._spec.shape, height, width)
    y = x if method == "nearest" else to_dtype(x, _FLOAT32)
    sizes = [(-3, height), (-2, width)]
    if height > x._spec.shape[-3]:  # resizing the width costs more: do it while there are few rows
        sizes.reverse()
    for axis, new in sizes:
        weights = resize_weights(x._spec.shape[axis], new, method, bool(antialias))
        y = resample(y, axis=x._spec.ndim + axis, weights=weights)
    return y


def _new_size(size: Any, old: tuple[int, int], preserve_aspect_ratio: bool) -> tuple[int, int]:
    try:
        new = np.asarray(as_tensor(size, dtypes.int32.numpy_dtype))
    except (TypeError, ValueError):
        raise ValueError(
            f"resize: `size` must be two int32 numbers. Received: {shown(size)}."
        ) from None
    if new.shape != (2,):
        raise ValueError(
            "resize: `size` must be two numbers, new_height and new_width. Received: "
            f"{shown(size)}."
        )
    if preserve_aspect_ratio and min(old):
        pixels = np.array(old, np.float32)
        new = np.rint(np.min(new.astype(np.float32) / pixels) * pixels)
    return int(new[0]), int(new[1])


def _check_sizes(shape: tuple[int, ...], height: int, width: int) -> None:
    if height <= 0 or width <= 0:
        raise invalid(
            f"resize: output dimensions must be positive. Received: {height} and {width}."
        )
    if 0 in shape[-3:]:
        raise invalid(
            f"resize: images have shape {shape}. Expected a height, width and number of channels "
            "above 0."
        )


def resize_with_pad(
    image: Any,
    target_height: Any,
    target_width: Any,
    method: str = ResizeMethod.BILINEAR,
    antialias: bool = False,
) -> Tensor:
    """Resizes images to fit the target size, keeping the aspect ratio, and pads with zeros.

    >>> tf.image.resize_with_pad(tf.ones([2, 4, 1]), 4, 4)[..., 0].numpy()
    array([[0., 0., 0., 0.],
           [1., 1., 1., 1.],
           [1., 1., 1., 1.],
           [0., 0., 0., 0.]], dtype=float32)
    """
    op_name = "resize_with_pad"
    x = as_image_or_batch(image, op_name)
    check_positive(op_name, target_width=target_width, target_height=target_height)
    target = np.array([integer(target_height, op_name), integer(target_width, op_name)], np.float32)
    old = np.array(x._spec.shape[-3:-1], np.float32)
    new = old / np.max(old / target)
    offset = np.maximum(np.floor((target - new) / 2), 0).astype(int).tolist()
    y = resize(x, np.floor(new).astype(np.int32), method, antialias=antialias)
    return pad_to_bounding_box(y, *offset, *target.astype(int).tolist())
