"""Drawing and random sampling of bounding boxes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from retrograde.core.tensor import Tensor
from retrograde.image._inputs import as_tensor_of
from retrograde.math._inputs import check_dtype
from retrograde.ops.arithmetic import select
from retrograde.ops.casting import stop_gradient, to_dtype
from retrograde.ops.conversion import as_tensor
from retrograde.ops.host_functions import host_function
from retrograde.random import stateless_uniform, uniform
from retrograde.values import dtypes
from retrograde.values.arguments import as_float, as_int, shown
from retrograde.values.errors import invalid, to_list

_FLOAT32 = dtypes.float32.numpy_dtype

_COLORS = np.array(  # RGBA; boxes cycle through these
    [
        [1, 1, 0, 1],
        [0, 0, 1, 1],
        [1, 0, 0, 1],
        [0, 1, 0, 1],
        [0.5, 0, 0.5, 1],
        [0.5, 0.5, 0, 1],
        [0.5, 0, 0, 1],
        [0, 0, 0.5, 1],
        [0, 1, 1, 1],
        [1, 0, 1, 1],
    ],
    np.float32,
)


def draw_bounding_boxes(images: Any, boxes: Any, colors: Any, name: str | None = None) -> Tensor:
    """Draws boxes on images, with lines one pixel wide. No gradient flows.

    `boxes[i]` are the boxes of image i, each `[y1, x1, y2, x2]` with coordinates in [0, 1]. Boxes
    cycle through the rows of `colors`, by default ten distinct colors.

    >>> y = tf.image.draw_bounding_boxes(tf.zeros([1, 3, 4, 1]), [[[0.0, 0.0, 1.0, 1.0]]], [[7.0]])
    >>> y[0, :, :, 0].numpy()
    array([[7., 7., 7., 7.],
           [7., 0., 0., 7.],
           [7., 7., 7., 7.]], dtype=float32)
    """
    x = as_tensor_of(images, _FLOAT32)
    check_dtype(x, ("float16", "float32"), "images", "draw_bounding_boxes")
    box_tensor = as_tensor(boxes, _FLOAT32)
    _check_drawing(x._spec.shape, box_tensor._spec.shape)
    line_colors, on_line = _draw_lines(box_tensor, colors, x._spec.shape)
    return select(on_line, to_dtype(line_colors, x._spec.dtype), stop_gradient(x))


@host_function
def _draw_lines(boxes: Tensor, colors: Any, shape: tuple) -> tuple[Tensor, Tensor]:
    """Returns the colors of the pixels on the sides of boxes, and the mask of these pixels."""
    coordinates, table = np.asarray(boxes), _color_table(colors, shape[3])
    line_colors, on_line = np.zeros(shape, np.float32), np.zeros((*shape[:3], 1), bool)
    for i, k in np.ndindex(coordinates.shape[:2]):
        for line in _lines(coordinates[i, k], shape[1:3]):
            line_colors[i][line] = table[k % len(table)]
            on_line[i][line] = True
    return Tensor(line_colors), Tensor(on_line)


def _check_drawing(images: tuple, boxes: tuple) -> None:
    op_name = "draw_bounding_boxes"
    if len(images) != 4 or images[3] not in (1, 3, 4):
        raise invalid(
            f"{op_name}: `images` has shape {images}. Expected batch, height, width, and 1, 3 or 4 "
            "channels."
        )
    if len(boxes) != 3 or boxes[0] != images[0] or boxes[2] != 4:
        raise invalid(
            f"{op_name}: `boxes` has shape {boxes}. Expected ({images[0]}, number of boxes, 4)."
        )


def _color_table(colors: Any, channels: int) -> np.ndarray:
    if colors is not None:
        table = np.asarray(as_tensor(colors, _FLOAT32))
        if table.ndim != 2 or (len(table) and table.shape[1] < channels):
            raise invalid(
                f"draw_bounding_boxes: `colors` has shape {table.shape}. Expected (number of "
                f"colors, {channels}): one value for each channel of the images."
            )
        if len(table):
            return table[:, :channels]
    return np.ones((1, 1), np.float32) if channels == 1 else _COLORS[:, :channels]


def _lines(box: np.ndarray, size: tuple[int, int]) -> Iterator[tuple]:
    """Yields the indices of the four sides of a box, without the parts outside the image."""
    height, width = size
    scale = np.array([height - 1, width - 1] * 2, np.float32)
    if not np.isfinite(box).all():
        return
    top, left, bottom, right = map(int, box * scale)
    if top > bottom or left > right or top >= height or left >= width or bottom < 0 or right < 0:
        return
    rows, columns = slice(max(top, 0), bottom + 1), slice(max(left, 0), right + 1)
    yield from ((row, columns) for row in (top, bottom) if 0 <= row < height)
    yield from ((rows, column) for column in (left, right) if 0 <= column < width)


_OP_NAME = "sample_distorted_bounding_box"


class DistortedBoundingBox(NamedTuple):
    """A part of an image: its first pixel, its size, and its bounding box."""

    begin: Tensor
    size: Tensor
    bboxes: Tensor


def sample_distorted_bounding_box(
    image_size: Any,
    bounding_boxes: Any,
    seed: int = 0,
    min_object_covered: Any = 0.1,
    aspect_ratio_range: Sequence[float] | None = None,
    area_range: Sequence[float] | None = None,
    max_attempts: int | None = None,
    use_image_if_no_bounding_boxes: bool | None = None,
    name: str | None = None,
) -> DistortedBoundingBox:
    """Samples a random crop of an image of `image_size = [height, width, channels]`.

    The aspect ratio (width / height) of the crop is in `aspect_ratio_range`, by default
    (0.75, 1.33). Its fraction of the image area is in `area_range`, by default (0.05, 1). It covers
    at least the fraction `min_object_covered` of one of the `bounding_boxes`, which have shape
    `[batch, boxes, 4]`. If `max_attempts` (by default 100) samples fail, the crop is the whole
    image. Pass `begin` and `size` of the result to `tf.slice`, and `bboxes` to
    `tf.image.draw_bounding_boxes`.
    """
    ranges = _ranges(aspect_ratio_range, area_range, min_object_covered)
    boxes = as_tensor(bounding_boxes, _FLOAT32)
    draws = uniform(_attempts(max_attempts), dtype=dtypes.float64, seed=seed or None)
    return _sample_crop(image_size, boxes, use_image_if_no_bounding_boxes, ranges, draws)


def stateless_sample_distorted_bounding_box(
    image_size: Any,
    bounding_boxes: Any,
    seed: Any,
    min_object_covered: Any = 0.1,
    aspect_ratio_range: Sequence[float] | None = None,
    area_range: Sequence[float] | None = None,
    max_attempts: int | None = None,
    use_image_if_no_bounding_boxes: bool | None = None,
    name: str | None = None,
) -> DistortedBoundingBox:
    """Computes `tf.image.sample_distorted_bounding_box` as a function of `seed`."""
    ranges = _ranges(aspect_ratio_range, area_range, min_object_covered)
    boxes = as_tensor(bounding_boxes, _FLOAT32)
    draws = stateless_uniform(_attempts(max_attempts), seed, dtype=dtypes.float64)
    return _sample_crop(image_size, boxes, use_image_if_no_bounding_boxes, ranges, draws)


class _Ranges(NamedTuple):
    """The constraints on a sampled crop."""

    aspect_ratio: tuple[float, float]
    area: tuple[float, float]
    covered: float


def _ranges(aspect_ratio_range: Any, area_range: Any, min_object_covered: Any) -> _Ranges:
    ratios = (0.75, 1.33) if aspect_ratio_range is None else to_list(_OP_NAME, aspect_ratio_range)
    areas = (0.05, 1.0) if area_range is None else to_list(_OP_NAME, area_range)
    for pair, argument in ((ratios, "aspect_ratio_range"), (areas, "area_range")):
        if len(pair) != 2 or min(pair) <= 0:
            raise invalid(
                f"{_OP_NAME}: {argument} must be two numbers > 0. Received: {shown(list(pair))}."
            )
    if max(areas) > 1:
        raise invalid(f"{_OP_NAME}: area_range must not exceed 1. Received: {shown(list(areas))}.")
    covered = as_float(min_object_covered, f"{_OP_NAME}: min_object_covered")
    if covered < 0:
        raise invalid(f"{_OP_NAME}: min_object_covered must be >= 0. Received: {covered}.")
    low, high = (as_float(ratio, f"{_OP_NAME}: aspect_ratio_range") for ratio in ratios)
    return _Ranges((low, high), tuple(areas), covered)


def _objects(boxes: np.ndarray, use_image: bool | None) -> np.ndarray:
    """Returns the boxes; the crop must cover one. Without boxes, returns the entire image."""
    if boxes.ndim != 3 or boxes.shape[2] != 4:
        raise invalid(
            f"{_OP_NAME}: `bounding_boxes` has shape {boxes.shape}. Expected (batch, boxes, 4)."
        )
    if not boxes.size and not use_image:
        raise invalid(
            f"{_OP_NAME}: `bounding_boxes` has shape {boxes.shape}, which has no boxes. Set "
            "use_image_if_no_bounding_boxes=True to use the whole image as the box."
        )
    if ((boxes < 0) | (boxes > 1)).any():
        raise invalid(f"{_OP_NAME}: coordinates of boxes must be in [0, 1]. Received: {boxes}.")
    return boxes.reshape(-1, 4) if boxes.size else np.array([[0, 0, 1, 1]], np.float32)


def _attempts(max_attempts: int | None) -> tuple[int, int]:
    """Returns the shape of the random numbers to draw: four per attempt."""
    attempts = 100 if max_attempts is None else as_int(max_attempts, f"{_OP_NAME}: max_attempts")
    if attempts <= 0:
        raise invalid(f"{_OP_NAME}: max_attempts must be > 0. Received: {attempts}.")
    return attempts, 4


@host_function
def _sample_crop(
    image_size: Any, boxes: Tensor, use_image: bool | None, ranges: _Ranges, draws: Tensor
) -> DistortedBoundingBox:
    objects, size = _objects(np.asarray(boxes), use_image), as_tensor(image_size)
    check_dtype(size, ("uint8", "int8", "int16", "int32", "int64"), "image_size", _OP_NAME)
    if size._spec.shape != (3,):
        raise invalid(
            f"{_OP_NAME}: `image_size` has shape {size._spec.shape}. Expected (3,): height, width, "
            "channels."
        )
    dtype, (height, width, _) = size._spec.dtype, np.asarray(size).tolist()
    pixels = objects * np.array([height, width] * 2, np.float32)
    candidates = (_candidate(height, width, ranges, numbers) for numbers in np.asarray(draws))
    valid = (crop for crop in candidates if crop and _covers(crop, pixels, ranges.covered))
    top, left, rows, columns = next(valid, (0, 0, height, width))
    with np.errstate(all="ignore"):
        box = np.array([top, left, top + rows, left + columns], np.float32)
        box /= np.array([height, width] * 2, np.float32)
    begin = np.array([top, left, 0]).astype(dtype)
    extent = np.array([rows, columns, -1]).astype(dtype)
    return DistortedBoundingBox(Tensor(begin), Tensor(extent), Tensor(box.reshape(1, 1, 4)))


def _candidate(height: int, width: int, ranges: _Ranges, numbers: np.ndarray) -> tuple | None:
    """Computes a crop from random `numbers` in [0, 1); `None` if it violates a constraint."""
    low, high = ranges.aspect_ratio
    ratio = low + (high - low) * numbers[0]
    min_area, max_area = (fraction * height * width for fraction in ranges.area)
    min_rows, max_rows = (round(np.sqrt(area / ratio)) for area in (min_area, max_area))
    if round(max_rows * ratio) > width:
        max_rows = int((width + 0.5 - 1e-7) / ratio)
    max_rows = min(max_rows, height)
    rows = min(min_rows, max_rows) + int(numbers[1] * (max(max_rows - min_rows, 0) + 1))
    columns = round(rows * ratio)
    if not min_area <= rows * columns <= max_area or columns > width or rows <= 0 or columns <= 0:
        return None
    return int(numbers[2] * (height - rows)), int(numbers[3] * (width - columns)), rows, columns


def _covers(crop: tuple, objects: np.ndarray, min_covered: float) -> bool:
    """Returns whether a crop covers at least `min_covered` of one of the objects."""
    corner = np.array(crop[:2])
    overlap = np.minimum(corner + crop[2:], objects[:, 2:]) - np.maximum(corner, objects[:, :2])
    area = (objects[:, 2:] - objects[:, :2]).prod(1)
    not_empty = (objects[:, 2:] > objects[:, :2]).all(1)
    return bool((not_empty & (overlap.clip(0).prod(1) >= min_covered * area)).any())
