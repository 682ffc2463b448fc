"""Reduction of per-example losses to one number, for one or more replicas."""

from __future__ import annotations

from typing import Any

import numpy as np

from retrograde.core.apply import apply
from retrograde.core.tensor import Tensor
from retrograde.distribute.context import context
from retrograde.math._inputs import dtype_name
from retrograde.ops import arithmetic as ar
from retrograde.ops import reduction
from retrograde.ops.casting import to_dtype
from retrograde.ops.conversion import as_tensor
from retrograde.ops.shaping import reshape
from retrograde.values import dtypes
from retrograde.values.errors import invalid


def compute_average_loss(
    per_example_loss: Any, sample_weight: Any = None, global_batch_size: Any = None
) -> Tensor:
    """Sums `per_example_loss`, weighted by `sample_weight`, and divides by the batch size.

    The batch size is the number of rows, times the number of replicas, unless `global_batch_size`
    is given. A weight may apply to a whole row of losses.

    >>> tf.nn.compute_average_loss([1.0, 2.0], sample_weight=[1.0, 3.0]).numpy()
    np.float32(3.5)
    """
    losses = _as_floats(per_example_loss)
    if not losses.ndim:
        raise ValueError(
            f"compute_average_loss: expected per-example losses of rank >= 1. Received: {losses}."
        )
    dtype = losses._spec.dtype
    if sample_weight is not None:
        losses = losses * _match_rank(to_dtype(as_tensor(sample_weight), dtype), losses)
    size = global_batch_size
    if size is None:
        size = losses._spec.shape[0] * _num_replicas("compute_average_loss")
    return apply(ar.divide_no_nan, (_sum(losses), to_dtype(_batch_size(size), dtype)))


def _match_rank(weights: Tensor, losses: Tensor) -> Tensor:
    """Adds or removes a last axis of size 1 if the weights need it to match the losses."""
    shape = weights._spec.shape
    if weights.ndim == losses.ndim + 1 and shape[-1] == 1:
        return reshape(weights, shape=shape[:-1])
    if weights.ndim and weights.ndim == losses.ndim - 1:
        return reshape(weights, shape=(*shape, 1))
    return weights


def _batch_size(value: Any) -> Tensor:
    size = as_tensor(value)
    if size._spec.dtype not in dtypes.INTEGER:
        raise TypeError(
            "compute_average_loss: global_batch_size must be an integer. Received: dtype "
            f"{dtype_name(size)}."
        )
    if size.ndim:
        raise ValueError(
            "compute_average_loss: global_batch_size must be a scalar. Received: shape "
            f"{size._spec.shape}."
        )
    if size < 0:
        raise invalid(
            "compute_average_loss: global_batch_size must not be negative. Received: "
            f"{size._array}."
        )
    return size


def scale_regularization_loss(regularization_loss: Any) -> Tensor:
    """Sums `regularization_loss` and divides by the number of replicas.

    >>> tf.nn.scale_regularization_loss([1.0, 2.0]).numpy()
    np.float32(3.0)
    """
    total, count = _sum(_as_floats(regularization_loss)), _num_replicas("scale_regularization_loss")
    return total if count == 1 else total / count


def _num_replicas(name: str) -> int:
    """Returns the number of replicas of the strategy of this thread."""
    strategy = context.strategy
    count = 1 if strategy is None else strategy.num_replicas_in_sync
    if count > 1 and not context.in_replica:
        raise RuntimeError(
            f"You are calling `{name}` in cross replica context, while it was expected to be "
            "called in replica context."
        )
    return count


def _as_floats(value: Any) -> Tensor:
    """Converts `value` to a tensor; integers become float64, as in division."""
    x = as_tensor(value)
    return to_dtype(x, np.dtype(np.float64)) if x._spec.dtype in dtypes.INTEGER else x


def _sum(x: Tensor) -> Tensor:
    return apply(reduction.sum, (x,), {"axis": tuple(range(x.ndim)), "keepdims": False})
