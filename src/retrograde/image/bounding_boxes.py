"""Boxes in images: drawn, and sampled."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from retrograde.core.tensor import Tensor
from retrograde.image._inputs import taken
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

_COLOURS = np.array(  # red, green, blue and opacity, for boxes one after the other
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
    """Images with boxes drawn on them, one pixel wide. No gradient flows.

    `boxes[i]` are those of image i, each `[y1, x1, y2, x2]` from 0 to 1. They take the rows of
    `colors` in turn; `None` stands for ten colours that are easy to tell apart.

    >>> y = tf.image.draw_bounding_boxes(tf.zeros([1, 3, 4, 1]), [[[0.0, 0.0, 1.0, 1.0]]], [[7.0]])
    >>> y[0, :, :, 0].numpy()
    array([[7., 7., 7., 7.],
           [7., 0., 0., 7.],
           [7., 7., 7., 7.]], dtype=float32)
    """
    x = taken(images, _FLOAT32)
    check_dtype(x, ("float16", "float32"), "images", "draw_bounding_boxes")
    where = as_tensor(boxes, _FLOAT32)
    _check_drawing(x._spec.shape, where._spec.shape)
    paint, drawn = _painted(where, colors, x._spec.shape)
    return select(drawn, to_dtype(paint, x._spec.dtype), stop_gradient(x))


@host_function
def _painted(boxes: Tensor, colors: Any, shape: tuple) -> tuple[Tensor, Tensor]:
    """The colours of the pixels on the sides of boxes, and which pixels these are."""
    where, table = np.asarray(boxes), _colours(colors, shape[3])
    paint, drawn = np.zeros(shape, np.float32), np.zeros((*shape[:3], 1), bool)
    for i, k in np.ndindex(where.shape[:2]):
        for line in _lines(where[i, k], shape[1:3]):
            paint[i][line] = table[k % len(table)]
            drawn[i][line] = True
    return Tensor(paint), Tensor(drawn)


def _check_drawing(images: tuple, boxes: tuple) -> None:
    what = "draw_bounding_boxes"
    if len(images) != 4 or images[3] not in (1, 3, 4):
        raise invalid(
            f"{what}: `images` has shape {images}. Expected batch, height, width, and 1, 3 or 4 "
            "channels."
        )
    if len(boxes) != 3 or boxes[0] != images[0] or boxes[2] != 4:
        raise invalid(
            f"{what}: `boxes` has shape {boxes}. Expected ({images[0]}, number of boxes, 4)."
        )


def _colours(colors: Any, channels: int) -> np.ndarray:
    if colors is not None:
        table = np.asarray(as_tensor(colors, _FLOAT32))
        if table.ndim != 2 or (len(table) and table.shape[1] < channels):
            raise invalid(
                f"draw_bounding_boxes: `colors` has shape {table.shape}. Expected (number of "
                f"colours, {channels}): one value for each channel of the images."
            )
        if len(table):
            return table[:, :channels]
    return np.ones((1, 1), np.float32) if channels == 1 else _COLOURS[:, :channels]


def _lines(box: np.ndarray, size: tuple[int, int]) -> Iterator[tuple]:
    """Where the four sides of a box lie in an image; those beyond its edge are not drawn."""
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


_WHAT = "sample_distorted_bounding_box"


class DistortedBoundingBox(NamedTuple):
    """A part of an image: where it begins, its size, and the box that it is."""

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
    """A random part of an image of `image_size = [height, width, channels]`, to be cut out.

    Its width by its height lies in `aspect_ratio_range` ((0.75, 1.33) if `None`), its share of the
    image in `area_range` ((0.05, 1)), and it covers at least `min_object_covered` of one of the
    `bounding_boxes`, of shape `[batch, boxes, 4]`. If none is found in `max_attempts` (100), it is
    the whole image. `begin` and `size` of the result are for `tf.slice`; `bboxes` is the same part
    for `tf.image.draw_bounding_boxes`.
    """
    ranges = _ranges(aspect_ratio_range, area_range, min_object_covered)
    boxes = as_tensor(bounding_boxes, _FLOAT32)
    draws = uniform(_attempts(max_attempts), dtype=dtypes.float64, seed=seed or None)
    return _sampled(image_size, boxes, use_image_if_no_bounding_boxes, ranges, draws)


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
    """As `tf.image.sample_distorted_bounding_box`; the same `seed` gives the same part."""
    ranges = _ranges(aspect_ratio_range, area_range, min_object_covered)
    boxes = as_tensor(bounding_boxes, _FLOAT32)
    draws = stateless_uniform(_attempts(max_attempts), seed, dtype=dtypes.float64)
    return _sampled(image_size, boxes, use_image_if_no_bounding_boxes, ranges, draws)


class _Ranges(NamedTuple):
    """What a part of an image has to keep to."""

    aspect_ratio: tuple[float, float]
    area: tuple[float, float]
    covered: float


def _ranges(aspect_ratio_range: Any, area_range: Any, min_object_covered: Any) -> _Ranges:
    ratios = (0.75, 1.33) if aspect_ratio_range is None else to_list(_WHAT, aspect_ratio_range)
    areas = (0.05, 1.0) if area_range is None else to_list(_WHAT, area_range)
    for pair, argument in ((ratios, "aspect_ratio_range"), (areas, "area_range")):
        if len(pair) != 2 or min(pair) <= 0:
            raise invalid(
                f"{_WHAT}: {argument} must be two numbers > 0. Received: {shown(list(pair))}."
            )
    if max(areas) > 1:
        raise invalid(f"{_WHAT}: area_range must not exceed 1. Received: {shown(list(areas))}.")
    covered = as_float(min_object_covered, f"{_WHAT}: min_object_covered")
    if covered < 0:
        raise invalid(f"{_WHAT}: min_object_covered must be >= 0. Received: {covered}.")
    low, high = (as_float(ratio, f"{_WHAT}: aspect_ratio_range") for ratio in ratios)
    return _Ranges((low, high), tuple(areas), covered)


def _objects(boxes: np.ndarray, use_image: bool | None) -> np.ndarray:
    """The boxes, one of which is to be covered; all of the image if there are none."""
    if boxes.ndim != 3 or boxes.shape[2] != 4:
        raise invalid(
            f"{_WHAT}: `bounding_boxes` has shape {boxes.shape}. Expected (batch, boxes, 4)."
        )
    if not boxes.size and not use_image:
        raise invalid(
            f"{_WHAT}: `bounding_boxes` has shape {boxes.shape}, without any box. Set "
            "use_image_if_no_bounding_boxes to take the whole image for one."
        )
    if ((boxes < 0) | (boxes > 1)).any():
        raise invalid(f"{_WHAT}: coordinates of boxes must be in [0, 1]. Received: {boxes}.")
    return boxes.reshape(-1, 4) if boxes.size else np.array([[0, 0, 1, 1]], np.float32)


def _attempts(max_attempts: int | None) -> tuple[int, int]:
    """The shape of the random numbers to draw: four for each attempt."""
    attempts = 100 if max_attempts is None else as_int(max_attempts, f"{_WHAT}: max_attempts")
    if attempts <= 0:
        raise invalid(f"{_WHAT}: max_attempts must be > 0. Received: {attempts}.")
    return attempts, 4


@host_function
def _sampled(
    image_size: Any, boxes: Tensor, use_image: bool | None, ranges: _Ranges, draws: Tensor
) -> DistortedBoundingBox:
    objects, size = _objects(np.asarray(boxes), use_image), as_tensor(image_size)
    check_dtype(size, ("uint8", "int8", "int16", "int32", "int64"), "image_size", _WHAT)
    if size._spec.shape != (3,):
        raise invalid(
            f"{_WHAT}: `image_size` has shape {size._spec.shape}. Expected (3,): height, width, "
            "channels."
        )
    dtype, (height, width, _) = size._spec.dtype, np.asarray(size).tolist()
    pixels = objects * np.array([height, width] * 2, np.float32)
    candidates = (_candidate(height, width, ranges, numbers) for numbers in np.asarray(draws))
    fitting = (part for part in candidates if part and _covers(part, pixels, ranges.covered))
    top, left, rows, columns = next(fitting, (0, 0, height, width))
    with np.errstate(all="ignore"):
        box = np.array([top, left, top + rows, left + columns], np.float32)
        box /= np.array([height, width] * 2, np.float32)
    begin = np.array([top, left, 0]).astype(dtype)
    extent = np.array([rows, columns, -1]).astype(dtype)
    return DistortedBoundingBox(Tensor(begin), Tensor(extent), Tensor(box.reshape(1, 1, 4)))


def _candidate(height: int, width: int, ranges: _Ranges, numbers: np.ndarray) -> tuple | None:
    """A part of an image as `numbers` from 0 to 1 give it; `None` if it does not fit."""
    low, high = ranges.aspect_ratio
    ratio = low + (high - low) * numbers[0]
    least, most = (share * height * width for share in ranges.area)
    smallest, tallest = (round(np.sqrt(area / ratio)) for area in (least, most))
    if round(tallest * ratio) > width:
        tallest = int((width + 0.5 - 1e-7) / ratio)
    tallest = min(tallest, height)
    rows = min(smallest, tallest) + int(numbers[1] * (max(tallest - smallest, 0) + 1))
    columns = round(rows * ratio)
    if not least <= rows * columns <= most or columns > width or rows <= 0 or columns <= 0:
        return None
    return int(numbers[2] * (height - rows)), int(numbers[3] * (width - columns)), rows, columns


def _covers(part: tuple, objects: np.ndarray, least: float) -> bool:
    """Whether a part of an image covers enough of one of the objects."""
    corner = np.array(part[:2])
    shared = np.minimum(corner + part[2:], objects[:, 2:]) - np.maximum(corner, objects[:, :2])
    area = (objects[:, 2:] - objects[:, :2]).prod(1)
    real = (objects[:, 2:] > objects[:, :2]).all(1)
    return bool((real & (shared.clip(0).prod(1) >= least * area)).any())
