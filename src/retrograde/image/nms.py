"""Non-maximum suppression: of boxes that overlap, the one with the highest score is kept.

Boxes are `[y1, x1, y2, x2]`, two corners that lie opposite. No gradient flows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from retrograde.core.tensor import Tensor
from retrograde.image._inputs import taken
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
    """The indices of the boxes to keep, those with the highest scores first.

    A box is left out if its score is not above `score_threshold`, or if its overlap with one that
    is kept, the area of both by that of either, is above `iou_threshold`.

    >>> boxes = [[0.0, 0.0, 1.0, 1.0], [0.0, 0.1, 1.0, 1.0], [0.0, 2.0, 1.0, 3.0]]
    >>> tf.image.non_max_suppression(boxes, [0.8, 0.9, 0.5], max_output_size=3).numpy()
    array([1, 2], dtype=int32)
    """
    what = "non_max_suppression"
    where, values = _boxes_and_scores(boxes, scores, what)
    most, overlap, least = _limits(max_output_size, iou_threshold, score_threshold, what)
    return Tensor(_greedy(values, _overlap_of(where), most, overlap, least))


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
    """The indices of the boxes to keep, and their scores.

    With `soft_nms_sigma` above 0, boxes that overlap others are not left out, but their scores are
    lowered: by `exp(-overlap ** 2 / (2 * soft_nms_sigma))` for each box that is kept before them.
    """
    what = "non_max_suppression_with_scores"
    where, values = _boxes_and_scores(boxes, scores, what)
    most, overlap, least = _limits(max_output_size, iou_threshold, score_threshold, what)
    sigma = _scalar(soft_nms_sigma, "soft_nms_sigma", what)
    if sigma < 0:
        raise invalid(f"{what}: soft_nms_sigma must be >= 0. Received: {sigma}.")
    if sigma:
        chosen, values = _soft(values, _overlap_of(where), most, sigma, least)
        return Tensor(chosen), Tensor(values)
    chosen = _greedy(values, _overlap_of(where), most, overlap, least)
    return Tensor(chosen), Tensor(values[chosen])


@host_function(dynamic_shapes=True)
def non_max_suppression_overlaps(
    overlaps: Any,
    scores: Any,
    max_output_size: Any,
    overlap_threshold: Any = 0.5,
    score_threshold: Any = float("-inf"),
    name: str | None = None,
) -> Tensor:
    """The indices of the boxes to keep, where `overlaps[i, j]` is the overlap of boxes i and j."""
    what = "non_max_suppression_overlaps"
    matrix, values = taken(overlaps, _FLOAT32), taken(scores, _FLOAT32)
    for x, argument in ((matrix, "overlaps"), (values, "scores")):
        check_dtype(x, ("float32",), argument, what)
    matrix, values = np.asarray(matrix), np.asarray(values)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise invalid(f"{what}: `overlaps` has shape {matrix.shape}. Expected a square matrix.")
    if values.shape != matrix.shape[:1]:
        raise invalid(
            f"{what}: `scores` has shape {values.shape}. Expected {matrix.shape[:1]}: one for each "
            "box."
        )
    most = _most(max_output_size, "max_output_size", what)
    overlap = _scalar(overlap_threshold, "overlap_threshold", what)
    least = _scalar(score_threshold, "score_threshold", what)
    return Tensor(_greedy(values, lambda i, others: matrix[others, i], most, overlap, least))


def _boxes_and_scores(boxes: Any, scores: Any, what: str) -> tuple[np.ndarray, np.ndarray]:
    given = [held for held in map(tensor_or_variable, (boxes, scores)) if held is not None]
    dtype = given[0]._spec.dtype if given else _FLOAT32
    where, values = taken(boxes, dtype), taken(scores, dtype)
    check_dtype(where, ("float16", "float32"), "boxes", what)
    check_dtype(values, (where.dtype.name,), "scores", what)
    where, values = np.asarray(where), np.asarray(values)
    if where.ndim != 2 or where.shape[1] != 4:
        raise invalid(f"{what}: `boxes` has shape {where.shape}. Expected (number of boxes, 4).")
    if values.shape != where.shape[:1]:
        raise invalid(
            f"{what}: `scores` has shape {values.shape}. Expected {where.shape[:1]}: one for each "
            "box."
        )
    return where, values


def _limits(
    max_output_size: Any, iou_threshold: Any, score_threshold: Any, what: str
) -> tuple[int, float, float]:
    most = _most(max_output_size, "max_output_size", what)
    overlap = _scalar(iou_threshold, "iou_threshold", what)
    if not 0 <= overlap <= 1:
        raise invalid(f"{what}: iou_threshold must be in [0, 1]. Received: {overlap}.")
    return most, overlap, _scalar(score_threshold, "score_threshold", what)


def _most(value: Any, argument: str, what: str, least: int = 0) -> int:
    number = taken(value, _INT32)
    check_dtype(number, ("int32",), argument, what)
    if number._spec.ndim or int(number) < least:
        raise invalid(
            f"{what}: {argument} must be one number >= {least}. Received: {as_text(value)}."
        )
    return int(number)


def _scalar(value: Any, argument: str, what: str) -> float:
    number = taken(value, _FLOAT32)
    if number._spec.ndim:
        raise invalid(f"{what}: {argument} must be one number. Received: {as_text(value)}.")
    return float(number)


def _overlap_of(boxes: np.ndarray) -> Callable:
    """A function of box i and others: the area that is in both, by that which is in either."""
    boxes = boxes.astype(np.float32)
    low, high = np.minimum(boxes[:, :2], boxes[:, 2:]), np.maximum(boxes[:, :2], boxes[:, 2:])
    with np.errstate(invalid="ignore"):  # boxes may be infinite
        area = (high - low).prod(1)

    @np.errstate(invalid="ignore")
    def overlap(i: int, others: np.ndarray) -> np.ndarray:
        shared = np.minimum(high[others], high[i]) - np.maximum(low[others], low[i])
        both = shared.clip(0).prod(1)
        either = area[others] + area[i] - both
        real = (area[others] > 0) & (area[i] > 0)
        return np.divide(both, either, out=np.zeros_like(both), where=real)

    return overlap


def _candidates(scores: np.ndarray, least: float) -> np.ndarray:
    """The boxes with a score above `least`, the best first; of equal ones, the first."""
    order = np.argsort(-scores.astype(np.float32), kind="stable").astype(np.int32)
    return order[scores[order] > least]


def _greedy(
    scores: np.ndarray, overlap: Callable, most: int, limit: float, least: float
) -> np.ndarray:
    """The best box, then the best of those that it does not overlap too much, and so on."""
    rest, chosen = _candidates(scores, least), []
    while len(rest) and len(chosen) < most:
        best, rest = rest[0], rest[1:]
        chosen.append(best)
        rest = rest[~(overlap(best, rest) > np.float32(limit))]
    return np.array(chosen, np.int32)


def _soft(
    scores: np.ndarray, overlap: Callable, most: int, sigma: float, least: float
) -> tuple[np.ndarray, np.ndarray]:
    """The best box, then the best after the scores of those that it overlaps were lowered."""
    rest, chosen, values = _candidates(scores, least), [], []
    remaining = scores[rest]
    while len(rest) and len(chosen) < most:
        top = np.flatnonzero(remaining == remaining.max())
        top = top[np.argmin(rest[top])]
        chosen.append(rest[top])
        values.append(remaining[top])
        others = np.delete(rest, top)
        share = np.exp(np.float32(-0.5 / sigma) * overlap(rest[top], others) ** 2)
        remaining = (np.delete(remaining, top) * share).astype(scores.dtype)
        kept = remaining > least
        rest, remaining = others[kept], remaining[kept]
    return np.array(chosen, np.int32), np.array(values, scores.dtype)


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
    """The indices of the boxes to keep, and how many they are.

    With `pad_to_max_output_size`, zeros follow up to `max_output_size`, and `boxes` and `scores`
    may have leading batch axes. Boxes overlap too much from `iou_threshold` on. Unless
    `canonicalized_coordinates`, all boxes have the corners in the order in which the first has
    them. `sorted_input` says that the best come first. `tile_size` is accepted and ignored.
    """
    what = "non_max_suppression_padded"
    where, values = np.asarray(as_tensor(boxes)), np.asarray(as_tensor(scores))
    if where.ndim > 2 and not pad_to_max_output_size:
        raise ValueError(f"{what}: pad_to_max_output_size must be True for boxes in batches.")
    if where.ndim < 2 or where.shape[-1] != 4 or values.shape != where.shape[:-1]:
        raise ValueError(
            f"{what}: `boxes` has shape {where.shape}, `scores` {values.shape}. Expected (..., "
            "number of boxes, 4) and (..., number of boxes)."
        )
    most = _most(max_output_size, "max_output_size", what)
    overlap = _scalar(iou_threshold, "iou_threshold", what)
    least = _scalar(score_threshold, "score_threshold", what)
    batch, number = where.shape[:-2], where.shape[-2]
    if {where.dtype, values.dtype} - dtypes.REAL:
        raise invalid(f"{what}: expected real numbers. Received: {where.dtype}, {values.dtype}.")
    where = where.reshape(math.prod(batch), number, 4).astype(np.float32)
    values = values.reshape(math.prod(batch), number).astype(np.float32)
    if not canonicalized_coordinates:
        where = _in_order(where)
    rows = [
        _padded_row(*row, most, overlap, least, sorted_input)
        for row in zip(where, values, strict=True)
    ]
    counts = np.array([len(row) for row in rows], np.int32).reshape(batch)
    if not pad_to_max_output_size:
        return Tensor(rows[0]), Tensor(counts)
    indices = np.zeros((len(rows), most), np.int32)
    for padded, row in zip(indices, rows, strict=True):
        padded[: len(row)] = row
    return Tensor(indices.reshape(*batch, most)), Tensor(counts)


def _in_order(boxes: np.ndarray) -> np.ndarray:
    """Boxes with the smaller coordinates first, if the first box of all says that they are not."""
    if not boxes.size:
        return boxes
    y1, x1, y2, x2 = boxes[0, 0]
    rows, columns = (0, 2) if y1 <= y2 else (2, 0), (1, 3) if x1 <= x2 else (3, 1)
    return boxes[..., [rows[0], columns[0], rows[1], columns[1]]]


@np.errstate(invalid="ignore")  # boxes may be infinite
def _padded_row(
    boxes: np.ndarray, scores: np.ndarray, most: int, limit: float, least: float, ordered: bool
) -> np.ndarray:
    """The boxes of one image to keep. Those without a coordinate above 0 do not count."""
    above = scores > least
    scores = np.where(above | (least == -np.inf), scores, 0)
    order = np.arange(len(scores)) if ordered else np.argsort(-scores, kind="stable")
    real = (boxes > 0).any(1) & (above | (least == -np.inf))
    low, high = boxes[:, :2], boxes[:, 2:]
    area = (high - low).prod(1)
    rest, chosen = order[real[order]], []
    while len(rest) and len(chosen) < most:
        best, rest = rest[0], rest[1:]
        chosen.append(best)
        both = (np.minimum(high[rest], high[best]) - np.maximum(low[rest], low[best])).clip(0)
        both = both.prod(1)
        either = area[rest] + area[best] - both + np.float32(1e-8)
        rest = rest[both / either < np.float32(limit)]
    return np.array(chosen, np.int32)


class CombinedNonMaxSuppression(NamedTuple):
    """What `tf.image.combined_non_max_suppression` returns."""

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
    """The boxes to keep in each image, of each class, with their scores and classes.

    `boxes` has shape `[batch, boxes, q, 4]`, with q either 1 or the number of classes, `scores` has
    `[batch, boxes, classes]`. Of each class `max_output_size_per_class` are kept, of all
    `max_total_size`, and zeros follow up to that; with `pad_per_class`, no more zeros than there
    could be boxes of all classes. `clip_boxes` says that coordinates are to be brought into 0 to 1.
    """
    what = "combined_non_max_suppression"
    where, values = taken(boxes, _FLOAT32), taken(scores, _FLOAT32)
    for x, argument in ((where, "boxes"), (values, "scores")):
        check_dtype(x, ("float32",), argument, what)
    where, values = np.asarray(where), np.asarray(values)
    _check_classes(where.shape, values.shape, what)
    per_class = _most(max_output_size_per_class, "max_output_size_per_class", what, least=1)
    total = _most(max_total_size, "max_total_size", what, least=1)
    _, overlap, least = _limits(total, iou_threshold, score_threshold, what)
    if pad_per_class:
        total = min(total, per_class * values.shape[2])
    kept = (len(values), total)
    results = (
        np.zeros((*kept, 4), np.float32),
        np.zeros(kept, np.float32),
        np.zeros(kept, np.float32),
    )
    counts = np.zeros(len(values), np.int32)
    for i, (image, value) in enumerate(zip(where, values, strict=True)):
        found = _of_all_classes(image, value, per_class, total, overlap, least)
        counts[i] = len(found[0])
        for result, part in zip(results, found, strict=True):
            result[i, : counts[i]] = part
    if clip_boxes:
        results[0].clip(0, 1, out=results[0])
    return CombinedNonMaxSuppression(*map(Tensor, results), Tensor(counts))


def _check_classes(boxes: tuple, scores: tuple, what: str) -> None:
    fits = len(boxes) == 4 and len(scores) == 3 and boxes[:2] == scores[:2] and boxes[3] == 4
    if not fits or not scores[2] or boxes[2] not in (1, scores[2]):
        raise invalid(
            f"{what}: `boxes` has shape {boxes}, `scores` {scores}. Expected (batch, boxes, 1 or "
            "classes, 4) and (batch, boxes, classes)."
        )


def _of_all_classes(
    boxes: np.ndarray, scores: np.ndarray, per_class: int, total: int, limit: float, least: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The boxes of one image, with their scores and classes, the best first."""
    found = []
    for kind in range(scores.shape[1]):
        where = boxes[:, kind if boxes.shape[1] > 1 else 0]
        chosen = _greedy(scores[:, kind], _overlap_of(where), per_class, limit, least)
        found.append((where[chosen], scores[chosen, kind], np.full(len(chosen), kind, np.float32)))
    where, values, kinds = (np.concatenate(parts) for parts in zip(*found, strict=True))
    order = np.argsort(-values, kind="stable")[:total]
    return where[order], values[order], kinds[order]
