"""Losses of single examples made into one number. There is one replica."""

from __future__ import annotations

from typing import Any

import numpy as np

from retrograde.core.apply import apply
from retrograde.core.tensor import Tensor
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
    """The sum of `per_example_loss`, weighed by `sample_weight`, over the size of the batch.

    That is the number of rows unless `global_batch_size` is given. A weight may stand for a whole
    row of losses.

    >>> tf.nn.compute_average_loss([1.0, 2.0], sample_weight=[1.0, 3.0]).numpy()
    np.float32(3.5)
    """
    losses = _floats(per_example_loss)
    if not losses.ndim:
        raise ValueError(
            "compute_average_loss: expected a loss for each example, with at least one axis. "
            f"Received: {losses}."
        )
    dtype = losses._spec.dtype
    if sample_weight is not None:
        losses = losses * _aligned(to_dtype(as_tensor(sample_weight), dtype), losses)
    size = losses._spec.shape[0] if global_batch_size is None else global_batch_size
    return apply(ar.divide_no_nan, (_sum(losses), to_dtype(_batch_size(size), dtype)))


def _aligned(weights: Tensor, losses: Tensor) -> Tensor:
    """Weights with one axis more or less at the end, if it takes that to fit."""
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
    """The sum of `regularization_loss`, over the number of replicas.

    >>> tf.nn.scale_regularization_loss([1.0, 2.0]).numpy()
    np.float32(3.0)
    """
    return _sum(_floats(regularization_loss))


def _floats(value: Any) -> Tensor:
    """`value` as a tensor; integers become float64, as when they are divided."""
    x = as_tensor(value)
    return to_dtype(x, np.dtype(np.float64)) if x._spec.dtype in dtypes.INTEGER else x


def _sum(x: Tensor) -> Tensor:
    return apply(reduction.sum, (x,), {"axis": tuple(range(x.ndim)), "keepdims": False})
