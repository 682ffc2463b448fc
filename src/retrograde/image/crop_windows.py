"""Crops at computed positions: `crop_and_resize` and `extract_glimpse`."""

from __future__ import annotations

from typing import Any

import numpy as np

from retrograde.core.tensor import Tensor
from retrograde.math import reduce_max, reduce_mean, reduce_min, reduce_std
from retrograde.math._inputs import check_dtype
from retrograde.ops import arithmetic as ar
from retrograde.ops.casting import cast_discrete, stop_gradient, to_dtype
from retrograde.ops.conversion import as_tensor
from retrograde.ops.elementary import ceil, floor
from retrograde.ops.indexing import gather, gather_nd
from retrograde.ops.shaping import broadcast_to, reshape, stack, unstack
from retrograde.random import normal, uniform
from retrograde.values import dtypes
from retrograde.values.arguments import as_float, shown
from retrograde.values.errors import OutOfRangeError, invalid, reports_out_of_memory

_FLOAT32 = dtypes.float32.numpy_dtype
_INT32 = dtypes.int32.numpy_dtype
_INT64 = dtypes.int64.numpy_dtype
_CROPPED_DTYPES = (
    "uint8", "uint16", "int8", "int16", "int32", "int64", "float16", "float32", "float64",
)  # fmt: skip


def crop_and_resize(
    image: Any,
    boxes: Any,
    box_indices: Any,
    crop_size: Any,
    method: str = "bilinear",
    extrapolation_value: float = 0.0,
    name: str | None = None,
) -> Tensor:
    """Crops boxes from a batch of images and resizes them to `crop_size`, as float32.

    Box i, `[y1, x1, y2, x2]` with 0 for the first pixel and 1 for the last one, is cropped from
    image `box_indices[i]`. Pixels outside the image get `extrapolation_value`. Gradients flow to
    the images and to the boxes; the gradient with respect to the boxes is always computed as for
    "bilinear".

    >>> image = tf.reshape(tf.range(9.0), [1, 3, 3, 1])
    >>> tf.image.crop_and_resize(image, [[0.0, 0.0, 0.5, 1.0]], [0], [2, 2])[0, :, :, 0].numpy()
    array([[0., 2.],
           [3., 5.]], dtype=float32)
    """
    x = as_tensor(image)
    check_dtype(x, _CROPPED_DTYPES, "image", "crop_and_resize")
    box_tensor, image_ids = as_tensor(boxes, _FLOAT32), as_tensor(box_indices, _INT32)
    size = np.asarray(as_tensor(crop_size, _INT32))
    _check_crops(x._spec.shape, box_tensor._spec.shape, image_ids._array, size)
    if method not in ("bilinear", "nearest"):
        raise invalid(
            f"crop_and_resize: method {shown(method)} is not supported. Expected 'bilinear' or "
            "'nearest'."
        )
    outside = as_float(extrapolation_value, "crop_and_resize: extrapolation_value")
    crops = _Crops(box_tensor, image_ids, x._spec.shape[1:3], size.tolist(), outside)
    batch, height, width, channels = x._spec.shape
    x = reshape(to_dtype(x, _FLOAT32), shape=(batch * height * width, channels))
    if method == "bilinear":
        return crops.bilinear(x)
    smooth = crops.bilinear(stop_gradient(x))
    return crops.nearest(x) + (smooth - stop_gradient(smooth))


def _check_crops(image: tuple, boxes: tuple, image_ids: Any, size: np.ndarray) -> None:
    op_name = "crop_and_resize"
    if len(image) != 4 or 0 in image[1:3]:
        raise invalid(
            f"{op_name}: `image` has shape {image}. Expected four axes (batch, height, width, "
            "channels) with at least one pixel."
        )
    if len(boxes) != 2 or boxes[1] != 4:
        raise invalid(f"{op_name}: `boxes` has shape {boxes}. Expected (number of boxes, 4).")
    if image_ids.shape != boxes[:1]:
        raise invalid(
            f"{op_name}: `box_indices` has shape {image_ids.shape}. Expected {boxes[:1]}: one for "
            "each box."
        )
    if size.shape != (2,) or min(size) <= 0:
        raise invalid(
            f"{op_name}: `crop_size` is {size.tolist()}. Expected two integers > 0, height and "
            "width."
        )
    if image_ids.size and not (image_ids.min() >= 0 and image_ids.max() < image[0]):
        message = f"{op_name}: box_indices has values outside [0, {image[0]}), the batch size."
        raise OutOfRangeError(None, None, message)


class _Crops:
    """The positions of the pixels of crops in their images."""

    def __init__(
        self, boxes: Tensor, image_ids: Tensor, pixels: tuple, size: list[int], outside: float
    ) -> None:
        y1, x1, y2, x2 = unstack(boxes, axis=1)
        self.rows = _positions(y1, y2, pixels[0], size[0])
        self.columns = _positions(x1, x2, pixels[1], size[1])
        # int64, because it becomes an index into the pixels of all images.
        self.image_ids = cast_discrete(image_ids, dtype=_INT64)
        self.pixels = pixels
        self.outside = Tensor(np.float32(outside))

    def bilinear(self, x: Tensor) -> Tensor:
        """Interpolates bilinearly between the pixels of `x` around each position."""
        (top, bottom, down), (left, right, across) = map(_neighbors, (self.rows, self.columns))
        down = reshape(down, shape=(*down._spec.shape, 1))
        across = _repeat_for_channels(across, x._spec.shape[1])
        above, below = self._gather(x, top, left), self._gather(x, bottom, left)
        above = above + (self._gather(x, top, right) - above) * across
        below = below + (self._gather(x, bottom, right) - below) * across
        return self._fill_outside(above + (below - above) * down, x._spec.shape[1])

    def nearest(self, x: Tensor) -> Tensor:
        """Picks the nearest pixel of `x`; halfway positions are rounded up."""
        y = self._gather(x, floor(self.rows + 0.5), floor(self.columns + 0.5))
        return self._fill_outside(y, x._spec.shape[1])

    def _gather(self, x: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
        """Gathers the pixels of `x` at `rows` and `columns`, clipped to the image.

        Columns and channels share the last axis of the result: NumPy is slow along a short axis.
        """
        number, height = rows._spec.shape
        rows = reshape(_clip(rows, self.pixels[0]), shape=(number, height, 1))
        width = columns._spec.shape[1]
        columns = reshape(_clip(columns, self.pixels[1]), shape=(number, 1, width))
        rows = reshape(self.image_ids, shape=(number, 1, 1)) * self.pixels[0] + rows
        y = gather(x, rows * self.pixels[1] + columns, axis=0)
        return reshape(y, shape=(number, height, width * x._spec.shape[1]))

    def _fill_outside(self, y: Tensor, channels: int) -> Tensor:
        """Sets pixels outside the images and separates the columns of `y` from the channels."""
        rows, columns = (
            (position >= 0.0) & (position <= float(last - 1))
            for position, last in zip((self.rows, self.columns), self.pixels, strict=True)
        )
        inside = reshape(rows, shape=(*rows._spec.shape, 1)) & _repeat_for_channels(
            columns, channels
        )
        shape = (*rows._spec.shape, columns._spec.shape[1], channels)
        return reshape(ar.select(inside, y, self.outside), shape=shape)


def _repeat_for_channels(columns: Tensor, channels: int) -> Tensor:
    """Repeats the value of each column for its channels, which share an axis with the columns."""
    number, width = columns._spec.shape
    repeated = broadcast_to(
        reshape(columns, shape=(number, width, 1)), shape=(number, width, channels)
    )
    return reshape(repeated, shape=(number, 1, width * channels))


@reports_out_of_memory("crop_and_resize")
def _positions(start: Tensor, stop: Tensor, pixels: int, count: int) -> Tensor:
    """Returns `count` positions from `start` to `stop`, in pixels from the first pixel center."""
    shape, last = (start._spec.shape[0], 1), float(pixels - 1)
    start, stop = (reshape(end, shape=shape) for end in (start, stop))
    if count == 1:
        return (start + stop) * 0.5 * last
    step = (stop - start) * last / float(count - 1)
    return start * last + step * np.arange(count, dtype=np.float32)


def _neighbors(position: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Returns the pixels before and after each position, and the distance from the first one."""
    before = floor(position)
    return before, ceil(position), position - before


def _clip(position: Tensor, pixels: int) -> Tensor:
    zero, last = Tensor(np.int32(0)), Tensor(np.int32(pixels - 1))
    inside = ar.minimum(ar.maximum(cast_discrete(position, dtype=_INT32), zero), last)
    return cast_discrete(inside, dtype=_INT64)


@reports_out_of_memory("extract_glimpse")
def extract_glimpse(
    input: Any,
    size: Any,
    offsets: Any,
    centered: bool = True,
    normalized: bool = True,
    noise: str = "uniform",
    name: str | None = None,
) -> Tensor:
    """Extracts a window of `size` from each image of a float32 batch, at `offsets = [[y, x], ...]`.

    Offsets are in pixels, or with `normalized` in fractions of the image size. With `centered` and
    `normalized` they are in [-1, 1] and locate the center of the window. Pixels outside the image
    are filled with `noise`: "uniform", "gaussian" or "zero". Gradients flow to the image.

    >>> image = tf.reshape(tf.range(16.0), [1, 4, 4, 1])
    >>> tf.image.extract_glimpse(image, [2, 2], [[0.0, 0.0]])[0, :, :, 0].numpy()
    array([[ 5.,  6.],
           [ 9., 10.]], dtype=float32)
    """
    x, positions = as_tensor(input, _FLOAT32), as_tensor(offsets, _FLOAT32)
    window = np.asarray(as_tensor(size, _INT32))
    _check_glimpses(x._spec.shape, window, positions._spec.shape, noise)
    starts = _starts(positions, np.array(x._spec.shape[1:3]), window, centered, normalized)
    batch, height, width = x._spec.shape[0], *window.tolist()
    rows = reshape(starts[0], shape=(batch, 1, 1)) + np.arange(height, dtype=np.int32)[:, None]
    columns = reshape(starts[1], shape=(batch, 1, 1)) + np.arange(width, dtype=np.int32)
    inside = _is_inside(rows, x._spec.shape[1]) & _is_inside(columns, x._spec.shape[2])
    indices = stack(
        *(
            broadcast_to(_clip(part, pixels), shape=(batch, height, width))
            for part, pixels in zip((rows, columns), x._spec.shape[1:3], strict=True)
        ),
        axis=3,
    )
    y = gather_nd(x, indices, batch_dims=1)
    return ar.select(reshape(inside, shape=(batch, height, width, 1)), y, _noise(x, y, noise))


def _check_glimpses(image: tuple, size: np.ndarray, offsets: tuple, noise: str) -> None:
    op_name = "extract_glimpse"
    if len(image) != 4:
        raise invalid(
            f"{op_name}: `input` has shape {image}. Expected batch, height, width and channels."
        )
    if size.shape != (2,) or min(size) < 0:
        raise invalid(
            f"{op_name}: `size` is {size.tolist()}. Expected two integers >= 0, height and width."
        )
    if offsets != (image[0], 2):
        raise invalid(
            f"{op_name}: `offsets` has shape {offsets}. Expected {(image[0], 2)}: y and x for each "
            "image."
        )
    if noise not in ("uniform", "gaussian", "zero"):
        raise invalid(
            f"{op_name}: noise {shown(noise)} is not supported. Expected 'uniform', 'gaussian' or "
            "'zero'."
        )


def _starts(
    offsets: Tensor, pixels: np.ndarray, window: np.ndarray, centered: bool, normalized: bool
) -> tuple[Tensor, Tensor]:
    """Returns the first row and the first column of each window."""
    size = pixels.astype(np.float32)
    if centered and normalized:
        start = offsets * (size / 2) + (size - window.astype(np.float32)) / 2
    elif centered:
        start = offsets + size / 2
    else:
        start = offsets * size if normalized else offsets
    return unstack(cast_discrete(start, dtype=_INT32), axis=1)


def _is_inside(position: Tensor, pixels: int) -> Tensor:
    return (position >= 0) & (position < pixels)


def _noise(x: Tensor, y: Tensor, kind: str) -> Tensor:
    """Returns the fill values for `y` outside the images `x`, in the range of each image."""
    shape = y._spec.shape
    if kind == "zero":
        return Tensor(np.float32(0))
    x = stop_gradient(x)
    axes = [1, 2, 3] if kind == "uniform" else [1, 2]
    low, high = (reduce(x, axes, keepdims=True) for reduce in (reduce_min, reduce_max))
    if kind == "uniform":
        return uniform(shape) * (high - low) + low
    values = normal(shape) * reduce_std(x, axes, keepdims=True)
    return ar.minimum(ar.maximum(values + reduce_mean(x, axes, keepdims=True), low), high)
