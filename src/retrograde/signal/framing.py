"""Splitting signals into frames and adding frames up again."""

from __future__ import annotations

import math
from typing import Any

from retrograde.core.apply import apply
from retrograde.core.tensor import Tensor
from retrograde.ops import framing
from retrograde.ops.conversion import as_tensor
from retrograde.ops.shaping import reshape
from retrograde.signal._arguments import as_integer, at_least, check_rank
from retrograde.toplevel.shaping import pad


def frame(
    signal: Any,
    frame_length: Any,
    frame_step: Any,
    pad_end: bool = False,
    pad_value: Any = 0,
    axis: Any = -1,
    name: str | None = None,
) -> Tensor:
    """Splits `axis` into frames of `frame_length` samples, one every `frame_step` samples.

    Samples at the end that do not fill a frame are dropped. With `pad_end` there is a frame for
    each step, padded with `pad_value`.

    >>> tf.signal.frame([1, 2, 3, 4, 5, 6], 3, 2).numpy()
    array([[1, 2, 3],
           [3, 4, 5]], dtype=int32)
    """
    x = as_tensor(signal)
    check_rank(x, 1, "frame")
    length = at_least(0, frame_length, "frame_length", "frame")
    step = at_least(1, frame_step, "frame_step", "frame")
    axis = _axis(as_integer(axis, "axis", "frame"), x)
    size = x._spec.shape[axis]
    if pad_end:
        count = math.ceil(size / step)
        x = _pad_end(x, axis, max(0, length + step * (count - 1) - size), pad_value)
    else:
        count = max(0, 1 + (size - length) // step)
    return apply(
        framing.frame, (x,), {"axis": axis, "count": count, "length": length, "step": step}
    )


def _axis(axis: int, x: Tensor) -> int:
    if not -x.ndim <= axis < x.ndim:
        raise IndexError(
            f"frame: axis {axis} is out of range for shape {x._spec.shape}. Expected "
            f"{-x.ndim} to {x.ndim - 1}."
        )
    return axis % x.ndim


def _pad_end(x: Tensor, axis: int, missing: int, pad_value: Any) -> Tensor:
    value = as_tensor(pad_value, x._spec.dtype)
    if value.ndim:
        raise ValueError(
            f"frame: `pad_value` must be a scalar. Received: shape {value._spec.shape}."
        )
    return pad(x, [[0, missing if i == axis else 0] for i in range(x.ndim)], "CONSTANT", value)


def overlap_and_add(signal: Any, frame_step: Any, name: str | None = None) -> Tensor:
    """Adds overlapping frames, in the last two axes, to a signal; one every `frame_step` samples.

    >>> tf.signal.overlap_and_add([[1.0, 1.0, 1.0], [2.0, 2.0, 2.0]], 2).numpy()
    array([1., 1., 3., 2., 2.], dtype=float32)
    """
    x = as_tensor(signal)
    check_rank(x, 2, "overlap_and_add")
    step = as_integer(frame_step, "frame_step", "overlap_and_add", ValueError)
    *outer, count, length = x._spec.shape
    if step == length:  # nothing overlaps
        return reshape(x, shape=(*outer, count * length))
    at_least(1, step, "frame_step", "overlap_and_add")
    attrs = {"axis": x.ndim - 2, "size": max(0, length + step * (count - 1)), "step": step}
    return apply(framing.overlap_add, (x,), attrs)
