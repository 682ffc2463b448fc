"""Non-maximum suppression: of overlapping boxes, the one with the highest score is kept.

Boxes are `[y1, x1, y2, x2]`, two opposite corners. No gradient flows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from retrograde.core.tensor import Tensor
from retrograde.image._inputs import as_tensor_of
from retrograde.math._inputs import check_dtype
from retrograde.ops.conversion import as_tensor
from retrograde.ops.host_functions import host_function
from retrograde.values import dtypes
from retrograde.values.arguments import as_text
from retrograde.values.conversion import tensor_or_variable
from retrograde.values.errors import invalid

_FLOAT32 = dtypes.float32.numpy_dtype
_INT32 = dtypes.int32.numpy_dtype


@host_function(dynamic_shapes=True)
def non_max_suppression(
    boxes: Any,
    scores: Any,
    max_output_size: Any,
    iou_threshold: Any = 0.5,
    score_threshold: Any = float("-inf"),
    name: str | None = None,
) -> Tensor:
    """Returns the indices of the boxes to keep, in descending order of score.

    A box is dropped if its score is not above `score_threshold`, or if its intersection over union
    (IoU) with a kept box is above `iou_threshold`.

    >>> boxes = [[0.0, 0.0, 1.0, 1.0], [0.0, 0.1, 1.0, 1.0], [0.0, 2.0, 1.0, 3.0]]
    >>> tf.image.non_max_suppression(boxes, [0.8, 0.9, 0.5], max_output_size=3).numpy()
    array([1, 2], dtype=int32)
    """
    op_name = "non_max_suppression"
    box_array, score_array = _boxes_and_scores(boxes, scores, op_name)
    max_boxes, max_overlap, min_score = _limits(
        max_output_size, iou_threshold, score_threshold, op_name
    )
    return Tensor(_greedy(score_array, _iou_with(box_array), max_boxes, max_overlap, min_score))


@host_function(dynamic_shapes=True)
def non_max_suppression_with_scores(
    boxes: Any,
    scores: Any,
    max_output_size: Any,
    iou_threshold: Any = 0.5,
    score_threshold: Any = float("-inf"),
    soft_nms_sigma: Any = 0.0,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """Returns the indices of the boxes to keep, and their scores.

    With `soft_nms_sigma` above 0, boxes that overlap others are not dropped. Instead, their scores
    are multiplied by `exp(-overlap ** 2 / (2 * soft_nms_sigma))` for each box kept before them.
    """
    op_name = "non_max_suppression_with_scores"
    box_array, score_array = _boxes_and_scores(boxes, scores, op_name)
    max_boxes, max_overlap, min_score = _limits(
        max_output_size, iou_threshold, score_threshold, op_name
    )
    sigma = _scalar(soft_nms_sigma, "soft_nms_sigma", op_name)
    if sigma < 0:
        raise invalid(f"{op_name}: soft_nms_sigma must be >= 0. Received: {sigma}.")
    if sigma:
        kept, score_array = _soft(score_array, _iou_with(box_array), max_boxes, sigma, min_score)
        return Tensor(kept), Tensor(score_array)
    kept = _greedy(score_array, _iou_with(box_array), max_boxes, max_overlap, min_score)
    return Tensor(kept), Tensor(score_array[kept])


@host_function(dynamic_shapes=True)
def non_max_suppression_overlaps(
    overlaps: Any,
    scores: Any,
    max_output_size: Any,
    overlap_threshold: Any = 0.5,
    score_threshold: Any = float("-inf"),
    name: str | None = None,
) -> Tensor:
    """Returns the indices of the boxes to keep, given the overlaps of all pairs of boxes."""
    op_name = "non_max_suppression_overlaps"
    matrix, score_array = as_tensor_of(overlaps, _FLOAT32), as_tensor_of(scores, _FLOAT32)
    for x, argument in ((matrix, "overlaps"), (score_array, "scores")):
        check_dtype(x, ("float32",), argument, op_name)
    matrix, score_array = np.asarray(matrix), np.asarray(score_array)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise invalid(f"{op_name}: `overlaps` has shape {matrix.shape}. Expected a square matrix.")
    if score_array.shape != matrix.shape[:1]:
        raise invalid(
            f"{op_name}: `scores` has shape {score_array.shape}. Expected {matrix.shape[:1]}: one "
            "for each box."
        )
    max_boxes = _max_boxes(max_output_size, "max_output_size", op_name)
    max_overlap = _scalar(overlap_threshold, "overlap_threshold", op_name)
    min_score = _scalar(score_threshold, "score_threshold", op_name)
    return Tensor(
        _greedy(score_array, lambda i, others: matrix[others, i], max_boxes, max_overlap, min_score)
    )


def _boxes_and_scores(boxes: Any, scores: Any, op_name: str) -> tuple[np.ndarray, np.ndarray]:
    tensors = [tensor for tensor in map(tensor_or_variable, (boxes, scores)) if tensor is not None]
    dtype = tensors[0]._spec.dtype if tensors else _FLOAT32
    box_array, score_array = as_tensor_of(boxes, dtype), as_tensor_of(scores, dtype)
    check_dtype(box_array, ("float16", "float32"), "boxes", op_name)
    check_dtype(score_array, (box_array.dtype.name,), "scores", op_name)
    box_array, score_array = np.asarray(box_array), np.asarray(score_array)
    if box_array.ndim != 2 or box_array.shape[1] != 4:
        raise invalid(
            f"{op_name}: `boxes` has shape {box_array.shape}. Expected (number of boxes, 4)."
        )
    if score_array.shape != box_array.shape[:1]:
        raise invalid(
            f"{op_name}: `scores` has shape {score_array.shape}. Expected {box_array.shape[:1]}: "
            "one for each box."
        )
    return box_array, score_array


def _limits(
    max_output_size: Any, iou_threshold: Any, score_threshold: Any, op_name: str
) -> tuple[int, float, float]:
    max_boxes = _max_boxes(max_output_size, "max_output_size", op_name)
    max_overlap = _scalar(iou_threshold, "iou_threshold", op_name)
    if not 0 <= max_overlap <= 1:
        raise invalid(f"{op_name}: iou_threshold must be in [0, 1]. Received: {max_overlap}.")
    return max_boxes, max_overlap, _scalar(score_threshold, "score_threshold", op_name)


def _max_boxes(value: Any, argument: str, op_name: str, minimum: int = 0) -> int:
    number = as_tensor_of(value, _INT32)
    check_dtype(number, ("int32",), argument, op_name)
    if number._spec.ndim or int(number) < minimum:
        raise invalid(
            f"{op_name}: {argument} must be an integer >= {minimum}. Received: {as_text(value)}."
        )
    return int(number)


def _scalar(value: Any, argument: str, op_name: str) -> float:
    number = as_tensor_of(value, _FLOAT32)
    if number._spec.ndim:
        raise invalid(f"{op_name}: {argument} must be a scalar. Received: {as_text(value)}.")
    return float(number)


def _iou_with(boxes: np.ndarray) -> Callable:
    """Returns a function that computes the IoU of box i with others."""
    boxes = boxes.astype(np.float32)
    low, high = np.minimum(boxes[:, :2], boxes[:, 2:]), np.maximum(boxes[:, :2], boxes[:, 2:])
    with np.errstate(invalid="ignore"):  # boxes may be infinite
        area = (high - low).prod(1)

    @np.errstate(invalid="ignore")
    def iou(i: int, others: np.ndarray) -> np.ndarray:
        sides = np.minimum(high[others], high[i]) - np.maximum(low[others], low[i])
        intersection = sides.clip(0).prod(1)
        union = area[others] + area[i] - intersection
        not_empty = (area[others] > 0) & (area[i] > 0)
        return np.divide(intersection, union, out=np.zeros_like(intersection), where=not_empty)

    return iou


def _candidates(scores: np.ndarray, min_score: float) -> np.ndarray:
    """Returns the boxes with a score above `min_score`, by descending score. The sort is stable."""
    order = np.argsort(-scores.astype(np.float32), kind="stable").astype(np.int32)
    return order[scores[order] > min_score]


def _greedy(
    scores: np.ndarray, iou: Callable, max_boxes: int, max_overlap: float, min_score: float
) -> np.ndarray:
    """Keeps the best box, drops the boxes that overlap it too much, and repeats."""
    rest, kept = _candidates(scores, min_score), []
    while len(rest) and len(kept) < max_boxes:
        best, rest = rest[0], rest[1:]
        kept.append(best)
        rest = rest[~(iou(best, rest) > np.float32(max_overlap))]
    return np.array(kept, np.int32)


def _soft(
    scores: np.ndarray, iou: Callable, max_boxes: int, sigma: float, min_score: float
) -> tuple[np.ndarray, np.ndarray]:
    """Keeps the best box, lowers the scores of the boxes that overlap it, and repeats."""
    rest, kept, kept_scores = _candidates(scores, min_score), [], []
    remaining = scores[rest]
    while len(rest) and len(kept) < max_boxes:
        top = np.flatnonzero(remaining == remaining.max())
        top = top[np.argmin(rest[top])]
        kept.append(rest[top])
        kept_scores.append(remaining[top])
        others = np.delete(rest, top)
        decay = np.exp(np.float32(-0.5 / sigma) * iou(rest[top], others) ** 2)
        remaining = (np.delete(remaining, top) * decay).astype(scores.dtype)
        above = remaining > min_score
        rest, remaining = others[above], remaining[above]
    return np.array(kept, np.int32), np.array(kept_scores, scores.dtype)


@host_function(dynamic_shapes=True)
def non_max_suppression_padded(
    boxes: Any,
    scores: Any,
    max_output_size: Any,
    iou_threshold: Any = 0.5,
    score_threshold: Any = float("-inf"),
    pad_to_max_output_size: bool = False,
    name: str | None = None,
    sorted_input: bool = False,
    canonicalized_coordinates: bool = False,
    tile_size: int = 512,
) -> tuple[Tensor, Tensor]:
    """Returns the indices of the boxes to keep, and their number.

    With `pad_to_max_output_size`, the indices are padded with zeros to `max_output_size`, and
    `boxes` and `scores` may have leading batch axes. A box is dropped if its IoU with a kept box is
    at least `iou_threshold`. Without `canonicalized_coordinates`, all boxes must have their corners
    in the same order as the first box. `sorted_input` asserts that scores are in descending order.
    `tile_size` is accepted and ignored.
    """
    op_name = "non_max_suppression_padded"
    box_array, score_array = np.asarray(as_tensor(boxes)), np.asarray(as_tensor(scores))
    if box_array.ndim > 2 and not pad_to_max_output_size:
        raise ValueError(f"{op_name}: pad_to_max_output_size must be True for boxes in batches.")
    if box_array.ndim < 2 or box_array.shape[-1] != 4 or score_array.shape != box_array.shape[:-1]:
        raise ValueError(
            f"{op_name}: `boxes` has shape {box_array.shape}, `scores` {score_array.shape}. "
            "Expected (..., number of boxes, 4) and (..., number of boxes)."
        )
    max_boxes = _max_boxes(max_output_size, "max_output_size", op_name)
    max_overlap = _scalar(iou_threshold, "iou_threshold", op_name)
    min_score = _scalar(score_threshold, "score_threshold", op_name)
    batch, number = box_array.shape[:-2], box_array.shape[-2]
    if {box_array.dtype, score_array.dtype} - dtypes.REAL:
        raise invalid(
            f"{op_name}: expected real numbers. Received: {box_array.dtype}, {score_array.dtype}."
        )
    box_array = box_array.reshape(math.prod(batch), number, 4).astype(np.float32)
    score_array = score_array.reshape(math.prod(batch), number).astype(np.float32)
    if not canonicalized_coordinates:
        box_array = _canonicalize(box_array)
    rows = [
        _padded_row(*row, max_boxes, max_overlap, min_score, sorted_input)
        for row in zip(box_array, score_array, strict=True)
    ]
    counts = np.array([len(row) for row in rows], np.int32).reshape(batch)
    if not pad_to_max_output_size:
        return Tensor(rows[0]), Tensor(counts)
    indices = np.zeros((len(rows), max_boxes), np.int32)
    for padded, row in zip(indices, rows, strict=True):
        padded[: len(row)] = row
    return Tensor(indices.reshape(*batch, max_boxes)), Tensor(counts)


def _canonicalize(boxes: np.ndarray) -> np.ndarray:
    """Puts the smaller coordinates first in all boxes; the first box decides the order."""
    if not boxes.size:
        return boxes
    y1, x1, y2, x2 = boxes[0, 0]
    rows, columns = (0, 2) if y1 <= y2 else (2, 0), (1, 3) if x1 <= x2 else (3, 1)
    return boxes[..., [rows[0], columns[0], rows[1], columns[1]]]


@np.errstate(invalid="ignore")  # boxes may be infinite
def _padded_row(
    boxes: np.ndarray,
    scores: np.ndarray,
    max_boxes: int,
    max_overlap: float,
    min_score: float,
    is_sorted: bool,
) -> np.ndarray:
    """Returns the boxes of one image to keep. Boxes without a positive coordinate are padding."""
    above = scores > min_score
    scores = np.where(above | (min_score == -np.inf), scores, 0)
    order = np.arange(len(scores)) if is_sorted else np.argsort(-scores, kind="stable")
    valid = (boxes > 0).any(1) & (above | (min_score == -np.inf))
    low, high = boxes[:, :2], boxes[:, 2:]
    area = (high - low).prod(1)
    rest, kept = order[valid[order]], []
    while len(rest) and len(kept) < max_boxes:
        best, rest = rest[0], rest[1:]
        kept.append(best)
        sides = (np.minimum(high[rest], high[best]) - np.maximum(low[rest], low[best])).clip(0)
        intersection = sides.prod(1)
        union = area[rest] + area[best] - intersection + np.float32(1e-8)
        rest = rest[intersection / union < np.float32(max_overlap)]
    return np.array(kept, np.int32)


class CombinedNonMaxSuppression(NamedTuple):
    """The result of `tf.image.combined_non_max_suppression`."""

    nmsed_boxes: Tensor
    nmsed_scores: Tensor
    nmsed_classes: Tensor
    valid_detections: Tensor


@host_function(dynamic_shapes=True)
def combined_non_max_suppression(
    boxes: Any,
    scores: Any,
    max_output_size_per_class: Any,
    max_total_size: Any,
    iou_threshold: Any = 0.5,
    score_threshold: Any = float("-inf"),
    pad_per_class: bool = False,
    clip_boxes: bool = True,
    name: str | None = None,
) -> CombinedNonMaxSuppression:
    """Returns the boxes to keep in each image and class, with their scores and classes.

    `boxes` has shape `[batch, boxes, q, 4]`, where q is 1 or the number of classes, and `scores`
    has shape `[batch, boxes, classes]`. At most `max_output_size_per_class` boxes are kept per
    class and `max_total_size` per image. Results are padded with zeros to `max_total_size`, or with
    `pad_per_class` to at most `max_output_size_per_class * classes`. With `clip_boxes`, coordinates
    are clipped to [0, 1].
    """
    op_name = "combined_non_max_suppression"
    box_array, score_array = as_tensor_of(boxes, _FLOAT32), as_tensor_of(scores, _FLOAT32)
    for x, argument in ((box_array, "boxes"), (score_array, "scores")):
        check_dtype(x, ("float32",), argument, op_name)
    box_array, score_array = np.asarray(box_array), np.asarray(score_array)
    _check_classes(box_array.shape, score_array.shape, op_name)
    per_class = _max_boxes(
        max_output_size_per_class, "max_output_size_per_class", op_name, minimum=1
    )
    total = _max_boxes(max_total_size, "max_total_size", op_name, minimum=1)
    _, max_overlap, min_score = _limits(total, iou_threshold, score_threshold, op_name)
    if pad_per_class:
        total = min(total, per_class * score_array.shape[2])
    shape = (len(score_array), total)
    results = (
        np.zeros((*shape, 4), np.float32),
        np.zeros(shape, np.float32),
        np.zeros(shape, np.float32),
    )
    counts = np.zeros(len(score_array), np.int32)
    for i, (image, value) in enumerate(zip(box_array, score_array, strict=True)):
        selected = _all_classes(image, value, per_class, total, max_overlap, min_score)
        counts[i] = len(selected[0])
        for result, part in zip(results, selected, strict=True):
            result[i, : counts[i]] = part
    if clip_boxes:
        results[0].clip(0, 1, out=results[0])
    return CombinedNonMaxSuppression(*map(Tensor, results), Tensor(counts))


def _check_classes(boxes: tuple, scores: tuple, op_name: str) -> None:
    fits = len(boxes) == 4 and len(scores) == 3 and boxes[:2] == scores[:2] and boxes[3] == 4
    if not fits or not scores[2] or boxes[2] not in (1, scores[2]):
        raise invalid(
            f"{op_name}: `boxes` has shape {boxes}, `scores` {scores}. Expected (batch, boxes, 1 "
            "or classes, 4) and (batch, boxes, classes)."
        )


def _all_classes(
    boxes: np.ndarray,
    scores: np.ndarray,
    per_class: int,
    total: int,
    max_overlap: float,
    min_score: float,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns the boxes of one image, with scores and classes, in descending order of score."""
    selections = []
    for kind in range(scores.shape[1]):
        box_array = boxes[:, kind if boxes.shape[1] > 1 else 0]
        kept = _greedy(scores[:, kind], _iou_with(box_array), per_class, max_overlap, min_score)
        selections.append(
            (box_array[kept], scores[kept, kind], np.full(len(kept), kind, np.float32))
        )
    box_array, score_array, classes = (
        np.concatenate(parts) for parts in zip(*selections, strict=True)
    )
    order = np.argsort(-score_array, kind="stable")[:total]
    return box_array[order], score_array[order], classes[order]
