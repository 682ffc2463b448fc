"""Clipping of values, norms and gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from retrograde.core.indexed_slices import IndexedSlices
from retrograde.core.tensor import Tensor
from retrograde.math._inputs import axes_of
from retrograde.ops import arithmetic, reduction
from retrograde.ops.casting import identity, ones_like, to_dtype, zeros_like
from retrograde.ops.conversion import as_tensor
from retrograde.ops.elementary import sqrt
from retrograde.values.composites import dispatched
from retrograde.values.conversion import tensor_or_variable


@dispatched
def clip_by_value(
    t: Any, clip_value_min: Any, clip_value_max: Any, name: Any = None
) -> Tensor | IndexedSlices:
    """Clips elements to the range from `clip_value_min` to `clip_value_max`.

    The gradient flows to `t` within the bounds (inclusive), and to the bound outside.

    >>> tf.clip_by_value([-5, 1, 5], 0, 2).numpy()
    array([0, 1, 2], dtype=int32)
    """
    x, pack = _values(t)
    low, high = (_like(x, bound) for bound in (clip_value_min, clip_value_max))
    y = arithmetic.maximum(arithmetic.minimum(x, high), low)
    if y._spec.shape != x._spec.shape:
        raise ValueError(
            f"clip_by_value: shapes {x.shape} of the tensor and {y.shape} of the result are "
            "incompatible. Expected bounds that broadcast to the shape of the tensor."
        )
    return pack(y)


def _values(t: Any) -> tuple[Tensor, Any]:
    """Returns the tensor to clip, and a function that rebuilds IndexedSlices from the result."""
    if isinstance(t, IndexedSlices):
        return as_tensor(t.values), lambda y: IndexedSlices(y, t.indices, t.dense_shape)
    return as_tensor(t), lambda y: y


def _like(x: Tensor, value: Any) -> Tensor:
    """Converts `value` to a tensor; Python numbers take the dtype of `x`."""
    return as_tensor(value, None if tensor_or_variable(value) is not None else x._spec.dtype)


def clip_by_norm(
    t: Any, clip_norm: Any, axes: Any = None, name: Any = None
) -> Tensor | IndexedSlices:
    """Scales `t` down to an L2 norm of at most `clip_norm`, over all axes or over `axes`.

    >>> tf.clip_by_norm([3.0, 4.0], 1.0).numpy()
    array([0.6, 0.8], dtype=float32)
    """
    x, pack = _values(t)
    limit = to_dtype(_like(x, clip_norm), x._spec.dtype)
    limit = arithmetic.maximum(limit, zeros_like(limit))
    reduced = axes_of(axes, x, "clip_by_norm")
    square = reduction.sum(x * x, axis=reduced, keepdims=True)
    nonzero = arithmetic.greater(square, zeros_like(square))
    # Take the root of 1 where the norm is zero, to avoid an infinite derivative.
    root = sqrt(arithmetic.select(nonzero, square, ones_like(square)))
    norm = arithmetic.select(nonzero, root, square)
    y = x * limit / arithmetic.maximum(norm, limit)
    if y._spec.shape != x._spec.shape:
        raise ValueError(
            f"clip_by_norm: a tensor of shape {x._spec.shape} and a clip_norm of shape "
            f"{limit._spec.shape} are incompatible: the result has shape {y._spec.shape}."
        )
    return pack(y)


def global_norm(t_list: Sequence[Any], name: Any = None) -> Tensor:
    """Computes the L2 norm of several tensors as one; `None` is ignored.

    >>> tf.linalg.global_norm([[3.0], None, [4.0]]).numpy()
    np.float32(5.0)
    """
    xs = [_values(t)[0] for t in _as_list(t_list, "global_norm") if t is not None]
    if not xs:
        return Tensor(np.float32(0))
    total = None
    for x in xs:
        square = reduction.sum(x * x, axis=tuple(range(x._spec.ndim)), keepdims=False)
        total = square if total is None else total + square
    return sqrt(total)


def _as_list(t_list: Any, op_name: str) -> list:
    if not isinstance(t_list, (list, tuple)):
        raise TypeError(
            f"{op_name}: `t_list` should be a sequence of tensors. Received {type(t_list)}."
        )
    return list(t_list)


def clip_by_global_norm(
    t_list: Sequence[Any], clip_norm: Any, use_norm: Any = None, name: Any = None
) -> tuple[list, Tensor]:
    """Scales tensors down by a common factor to a global norm of at most `clip_norm`.

    Returns the scaled tensors and the norm before clipping. `use_norm` is that norm, if already
    computed. If the norm is not finite, all results are NaN.

    >>> clipped, norm = tf.clip_by_global_norm([[3.0], [4.0]], 1.0)
    >>> [x.numpy().tolist() for x in clipped], norm.numpy()
    ([[0.6000000238418579], [0.800000011920929]], np.float32(5.0))
    """
    tensors = _as_list(t_list, "clip_by_global_norm")
    norm = global_norm(tensors) if use_norm is None else identity(as_tensor(use_norm))
    limit = _like(norm, clip_norm)
    scale = limit * arithmetic.minimum(1.0 / norm, 1.0 / limit)
    scale = scale + (norm - norm)  # NaN if the norm is not finite
    return [None if t is None else _scale(t, scale) for t in tensors], norm


def _scale(t: Any, scale: Tensor) -> Tensor | IndexedSlices:
    x, pack = _values(t)
    return pack(x * to_dtype(scale, x._spec.dtype))
