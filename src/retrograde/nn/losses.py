"""Cross entropies and other losses."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from retrograde.core.apply import apply
from retrograde.core.tensor import Tensor
from retrograde.math._inputs import axis_of, check_dtype, dtype_name
from retrograde.ops import arithmetic as ar
from retrograde.ops import elementary as el
from retrograde.ops import normalization, reduction
from retrograde.ops.casting import ones_like, to_dtype, zeros_like
from retrograde.ops.conversion import as_tensor, one_dtype
from retrograde.ops.shaping import broadcast_to, reshape, transpose
from retrograde.values import dtypes
from retrograde.values.arguments import as_text
from retrograde.values.composites import dispatched
from retrograde.values.errors import invalid


def softmax_cross_entropy_with_logits(
    labels: Any, logits: Any, axis: Any = -1, name: str | None = None
) -> Tensor:
    """Computes the cross entropy of `labels`, a distribution along `axis`, and `softmax(logits)`.

    Gradients also flow to the labels; use `tf.stop_gradient` to prevent this. Labels are cast to
    the dtype of the logits, and a single row of labels broadcasts to all rows of logits. A label of
    0 contributes 0 even if its logit is -Inf.

    >>> tf.nn.softmax_cross_entropy_with_logits([[0.0, 1.0]], [[2.0, 2.0]]).numpy()
    array([0.6931472], dtype=float32)
    """
    x = as_tensor(logits)
    y = to_dtype(as_tensor(labels), x._spec.dtype)
    axis = axis_of(-1 if axis is None else axis, x, "softmax_cross_entropy_with_logits")
    x, y = _move_to_last(x, axis), _move_to_last(y, axis if y.ndim == x.ndim else -1)
    if y._spec.shape != x._spec.shape:
        y = _broadcast_labels(y, x)
    return apply(normalization.softmax_cross_entropy, (y, x))


def _move_to_last(x: Tensor, axis: int) -> Tensor:
    """Moves `axis` to the end."""
    if axis in (-1, x.ndim - 1):
        return x
    return transpose(x, perm=(*(i for i in range(x.ndim) if i != axis), axis))


def _broadcast_labels(labels: Tensor, logits: Tensor) -> Tensor:
    """Broadcasts labels to the shape of the logits, both seen as matrices."""
    shape = logits._spec.shape
    target = (math.prod(shape[:-1]), shape[-1])
    current = labels._spec.shape
    current = (math.prod(current[:-1]), current[-1] if current else 0)
    if any(n not in (1, m) for n, m in zip(current, target, strict=True)):
        raise invalid(
            "softmax_cross_entropy_with_logits: logits and labels must be broadcastable. "
            f"Received: logits of shape {shape}, labels of shape {labels._spec.shape}."
        )
    matrix = broadcast_to(reshape(labels, shape=current), shape=target)
    return reshape(matrix, shape=shape)


_LABEL_DTYPES = frozenset({np.dtype(np.int32), np.dtype(np.int64)})


def sparse_softmax_cross_entropy_with_logits(
    labels: Any, logits: Any, name: str | None = None
) -> Tensor:
    """Computes the cross entropy of class `labels` and `softmax(logits)` along the last axis.

    >>> tf.nn.sparse_softmax_cross_entropy_with_logits([1], [[2.0, 2.0]]).numpy()
    array([0.6931472], dtype=float32)
    """
    op_name = "sparse_softmax_cross_entropy_with_logits"
    _check_provided(labels, logits, op_name)
    y, x = as_tensor(labels), as_tensor(logits)
    shape = x._spec.shape
    if not shape:
        raise ValueError(f"{op_name}: `logits` cannot be a scalar. Received: {x}.")
    if y._spec.shape != shape[:-1]:
        raise ValueError(
            f"{op_name}: `labels.shape` must equal `logits.shape` except for the last dimension. "
            f"Received: labels.shape={y._spec.shape} and logits.shape={shape}."
        )
    if y._spec.dtype not in _LABEL_DTYPES or x._spec.dtype not in dtypes.FLOATING:
        check_dtype(y, ("int32", "int64"), "labels", op_name)
        check_dtype(x, ("float16", "bfloat16", "float32", "float64"), "logits", op_name)
    if not shape[-1]:
        raise invalid(f"{op_name}: must have at least one class, but got shape {shape}.")
    return apply(normalization.sparse_softmax_cross_entropy, (y, x))


def _check_provided(labels: Any, logits: Any, op_name: str) -> None:
    if labels is None or logits is None:
        raise ValueError(
            f"{op_name}: both `labels` and `logits` must be provided. Received: "
            f"labels={as_text(labels)} and logits={as_text(logits)}."
        )


def _check_same_shape(labels: Any, logits: Any, op_name: str) -> tuple[Tensor, Tensor]:
    _check_provided(labels, logits, op_name)
    y, x = as_tensor(labels), as_tensor(logits)
    if y._spec.shape != x._spec.shape:
        raise ValueError(
            f"{op_name}: `logits` and `labels` must have the same shape. Received: {x._spec.shape} "
            f"and {y._spec.shape}."
        )
    return y, x


@dispatched
def sigmoid_cross_entropy_with_logits(
    labels: Any = None, logits: Any = None, name: str | None = None
) -> Tensor:
    """Computes the cross entropy of `labels` in [0, 1] and `sigmoid(logits)` without overflow.

    >>> tf.nn.sigmoid_cross_entropy_with_logits([1.0, 0.0], [1000.0, 1000.0]).numpy()
    array([   0., 1000.], dtype=float32)
    """
    y, x = _check_same_shape(labels, logits, "sigmoid_cross_entropy_with_logits")
    positive, tail = _softplus_parts(x)
    # max(x, 0) - x * y as one product, so that only the tail remains in the gradient.
    return x * (to_dtype(positive, x._spec.dtype) - y) + tail


def _softplus_parts(x: Tensor) -> tuple[Tensor, Tensor]:
    """Returns `x >= 0` and `log(1 + exp(-|x|))`, which give softplus(x) together with `max(x, 0)`.

    At 0 both use the derivative for positive x; otherwise the halves of the gradient would not add
    up.
    """
    positive = apply(ar.greater_equal, (x, zeros_like(x)))
    negative_abs = apply(ar.select, (positive, -x, x))
    return positive, apply(el.softplus, (negative_abs,))


def weighted_cross_entropy_with_logits(
    labels: Any, logits: Any, pos_weight: Any, name: str | None = None
) -> Tensor:
    """Computes the sigmoid cross entropy with positive labels weighted by `pos_weight`."""
    y, x = _check_same_shape(labels, logits, "weighted_cross_entropy_with_logits")
    y, weight = one_dtype((y, pos_weight))
    negative, tail = _softplus_parts(-x)
    negative_part = apply(ar.mask, (-x, negative))
    return (1 - y) * x + (1 + (weight - 1) * y) * (tail + negative_part)


def log_poisson_loss(
    targets: Any, log_input: Any, compute_full_loss: bool = False, name: str | None = None
) -> Tensor:
    """Computes the Poisson log loss, `exp(log_input) - log_input * targets`.

    With `compute_full_loss`, Stirling's approximation of log(targets!) is added where targets
    exceed 1.
    """
    y, x = as_tensor(targets), as_tensor(log_input)
    if y._spec.shape != x._spec.shape:
        raise ValueError(
            "log_poisson_loss: `log_input` and `targets` must have the same shape. Received: "
            f"{x._spec.shape} and {y._spec.shape}."
        )
    loss = apply(el.exp, (x,)) - x * y
    if not compute_full_loss:
        return loss
    large = y > 1
    safe = apply(ar.select, (large, y, ones_like(y)))
    stirling = safe * el.log(safe) - safe + el.log(safe * (2 * math.pi)) * 0.5
    return loss + apply(ar.mask, (stirling, large))


def l2_loss(t: Any, name: str | None = None) -> Tensor:
    """Computes half the sum of squares.

    >>> tf.nn.l2_loss([3.0, 4.0]).numpy()
    np.float32(12.5)
    """
    x = as_tensor(t)
    if x._spec.dtype not in dtypes.FLOATING:
        raise invalid(f"l2_loss: dtype {dtype_name(x)} is not supported. Expected a float dtype.")
    all_axes = {"axis": tuple(range(x.ndim)), "keepdims": False}
    return apply(reduction.sum, (apply(ar.square, (x,)),), all_axes) / 2.0
