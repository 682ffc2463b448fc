"""tf.nn: activations, cross entropies, moments and lookups. `name` is accepted and ignored."""

from __future__ import annotations

import math
import numbers
from typing import Any

import numpy as np

from retrograde.clipping import clip_by_norm
from retrograde.core import dtypes
from retrograde.core.conversion import held_by
from retrograde.core.dispatch import Primitive, apply
from retrograde.core.errors import invalid
from retrograde.core.tensor import Tensor
from retrograde.math import (
    l2_normalize,
    log_softmax,
    sigmoid,
    softmax,
    softplus,
    softsign,
    tanh,
    zero_fraction,
)
from retrograde.math._inputs import axes_of, axis_of, dtype_name, unary
from retrograde.ops import arithmetic as ar
from retrograde.ops import elementary as el
from retrograde.ops import normalising, reduction
from retrograde.ops.casting import identity, ones_like, to_dtype, zeros_like
from retrograde.ops.conversion import as_tensor, one_dtype, same_dtype
from retrograde.ops.indexing import gather
from retrograde.ops.shaping import broadcast_to, concat, reshape, transpose
from retrograde.random import uniform

__all__ = [
    "batch_normalization",
    "bias_add",
    "crelu",
    "dropout",
    "elu",
    "embedding_lookup",
    "gelu",
    "l2_loss",
    "l2_normalize",
    "leaky_relu",
    "log_poisson_loss",
    "log_softmax",
    "moments",
    "normalize_moments",
    "relu",
    "relu6",
    "selu",
    "sigmoid",
    "sigmoid_cross_entropy_with_logits",
    "silu",
    "softmax",
    "softmax_cross_entropy_with_logits",
    "softplus",
    "softsign",
    "sparse_softmax_cross_entropy_with_logits",
    "sufficient_statistics",
    "swish",
    "tanh",
    "weighted_cross_entropy_with_logits",
    "weighted_moments",
    "zero_fraction",
]

_FLOAT32 = np.dtype(np.float32)
_HALF = frozenset({dtypes.float16.numpy_dtype, dtypes.bfloat16.numpy_dtype})


# Activations


def relu(features: Any, name: str | None = None) -> Tensor:
    """`max(x, 0)`; the gradient at 0 is 0.

    >>> tf.nn.relu([-1.0, 0.0, 2.0]).numpy()
    array([0., 0., 2.], dtype=float32)
    """
    return unary(el.relu, features)


def relu6(features: Any, name: str | None = None) -> Tensor:
    """`min(max(x, 0), 6)`; the gradient at both corners is 0."""
    return unary(el.relu6, features)


def leaky_relu(features: Any, alpha: float = 0.2, name: str | None = None) -> Tensor:
    """`x` where it is positive, else `alpha * x`. Integers become float32.

    >>> tf.nn.leaky_relu([-1.0, 2.0], alpha=0.5).numpy()
    array([-0.5,  2. ], dtype=float32)
    """
    if not isinstance(alpha, numbers.Real):
        raise TypeError(f"leaky_relu: alpha must be a Python number. Received: {alpha!r}.")
    x = as_tensor(features)
    if x._array.dtype in dtypes.INTEGER:
        x = to_dtype(x, _FLOAT32)
    return apply(el.leaky_relu, (x,), {"alpha": float(alpha)})


def elu(features: Any, name: str | None = None) -> Tensor:
    """`exp(x) - 1` below 0, `x` above."""
    return unary(el.elu, features)


def selu(features: Any, name: str | None = None) -> Tensor:
    """`elu`, scaled so that it keeps mean 0 and variance 1."""
    return unary(el.selu, features)


def gelu(features: Any, approximate: bool = False, name: str | None = None) -> Tensor:
    """`x` times the probability that a normal variate is below it.

    With `approximate`, that probability is taken from a tanh instead of the error function.

    >>> tf.nn.gelu([-1.0, 0.0, 1.0]).numpy().round(3)
    array([-0.159,  0.   ,  0.841], dtype=float32)
    """
    x = as_tensor(features)
    if x._array.dtype not in dtypes.FLOATING:
        raise ValueError(
            f"gelu: features must be a floating point tensor. Received: dtype {dtype_name(x)}."
        )
    if approximate:
        inner = (x + x * x * x * 0.044715) * math.sqrt(2 / math.pi)
        return x * 0.5 * (apply(el.tanh, (inner,)) + 1.0)
    return x * 0.5 * (apply(el.erf, (x * math.sqrt(0.5),)) + 1.0)


def silu(features: Any, beta: Any = 1.0) -> Tensor:
    """`x * sigmoid(beta * x)`.

    >>> tf.nn.silu([-1.0, 0.0, 1.0]).numpy().round(3)
    array([-0.269,  0.   ,  0.731], dtype=float32)
    """
    x = as_tensor(features)
    dtype = x._array.dtype
    slope = to_dtype(as_tensor(beta, hint=dtype), dtype)
    return x * apply(el.sigmoid, (x * slope,))


swish = silu


def crelu(features: Any, axis: Any = -1, name: str | None = None) -> Tensor:
    """`relu(x)` and `relu(-x)`, joined along `axis`.

    >>> tf.nn.crelu([-1.0, 2.0]).numpy()
    array([0., 2., 1., 0.], dtype=float32)
    """
    x = as_tensor(features)
    parts = (x, apply(ar.negative, (x,)))
    return apply(el.relu, (concat(*parts, axis=axis_of(axis, x, "crelu")),))


# Cross entropies


def softmax_cross_entropy_with_logits(
    labels: Any, logits: Any, axis: Any = -1, name: str | None = None
) -> Tensor:
    """The cross entropy of `labels`, a distribution along `axis`, and `softmax(logits)`.

    Gradients flow to the labels too; use `tf.stop_gradient` where they should not. Labels are cast
    to the dtype of the logits, and a single row of them serves all rows of logits. A label of 0
    counts nothing, even where its logit is minus infinity.

    >>> tf.nn.softmax_cross_entropy_with_logits([[0.0, 1.0]], [[2.0, 2.0]]).numpy()
    array([0.6931472], dtype=float32)
    """
    x = as_tensor(logits)
    y = to_dtype(as_tensor(labels), x._array.dtype)
    axis = axis_of(-1 if axis is None else axis, x, "softmax_cross_entropy_with_logits")
    x, y = _last(x, axis), _last(y, axis if y.ndim == x.ndim else -1)
    if y._array.shape != x._array.shape:
        y = _spread_labels(y, x)
    return apply(normalising.softmax_cross_entropy, (y, x))


def _last(x: Tensor, axis: int) -> Tensor:
    """`x` with `axis` moved to the end."""
    if axis in (-1, x.ndim - 1):
        return x
    return transpose(x, perm=(*(i for i in range(x.ndim) if i != axis), axis))


def _spread_labels(labels: Tensor, logits: Tensor) -> Tensor:
    """Labels in the shape of the logits: as matrices, one row or one class stands for all."""
    shape = logits._array.shape
    wanted = (math.prod(shape[:-1]), shape[-1])
    given = labels._array.shape
    given = (math.prod(given[:-1]), given[-1] if given else 0)
    if any(n not in (1, m) for n, m in zip(given, wanted, strict=True)):
        raise invalid(
            "softmax_cross_entropy_with_logits: logits and labels must be broadcastable. "
            f"Received: logits of shape {shape}, labels of shape {labels._array.shape}."
        )
    matrix = broadcast_to(reshape(labels, shape=given), shape=wanted)
    return reshape(matrix, shape=shape)


_LABEL_DTYPES = frozenset({np.dtype(np.int32), np.dtype(np.int64)})


def sparse_softmax_cross_entropy_with_logits(
    labels: Any, logits: Any, name: str | None = None
) -> Tensor:
    """The cross entropy of `labels`, one class each, and `softmax(logits)` along the last axis.

    >>> tf.nn.sparse_softmax_cross_entropy_with_logits([1], [[2.0, 2.0]]).numpy()
    array([0.6931472], dtype=float32)
    """
    what = "sparse_softmax_cross_entropy_with_logits"
    _provided(labels, logits, what)
    y, x = as_tensor(labels), as_tensor(logits)
    if not x._array.ndim:
        raise ValueError(f"{what}: `logits` cannot be a scalar. Received: {x}.")
    if y._array.shape != x._array.shape[:-1]:
        raise ValueError(
            f"{what}: `labels.shape` must equal `logits.shape` except for the last dimension. "
            f"Received: labels.shape={y._array.shape} and logits.shape={x._array.shape}."
        )
    if y._array.dtype not in _LABEL_DTYPES or x._array.dtype not in dtypes.FLOATING:
        _accept(y, ("int32", "int64"), "labels", what)
        _accept(x, ("float16", "bfloat16", "float32", "float64"), "logits", what)
    if not x._array.shape[-1]:
        raise invalid(f"{what}: must have at least one class, but got shape {x._array.shape}.")
    return apply(normalising.sparse_softmax_cross_entropy, (y, x))


def _accept(x: Tensor, allowed: tuple, argument: str, what: str) -> None:
    if dtype_name(x) not in allowed:
        raise invalid(
            f"{what}: `{argument}` has dtype {dtype_name(x)}. Expected one of {', '.join(allowed)}."
        )


def _provided(labels: Any, logits: Any, what: str) -> None:
    if labels is None or logits is None:
        raise ValueError(
            f"{what}: both `labels` and `logits` must be provided. Received: labels={labels} and "
            f"logits={logits}."
        )


def _same_shape(labels: Any, logits: Any, what: str) -> tuple[Tensor, Tensor]:
    _provided(labels, logits, what)
    y, x = as_tensor(labels), as_tensor(logits)
    if y._array.shape != x._array.shape:
        raise ValueError(
            f"{what}: `logits` and `labels` must have the same shape. Received: {x._array.shape} "
            f"and {y._array.shape}."
        )
    return y, x


def sigmoid_cross_entropy_with_logits(
    labels: Any = None, logits: Any = None, name: str | None = None
) -> Tensor:
    """The cross entropy of `labels` between 0 and 1 and `sigmoid(logits)`, without overflow.

    >>> tf.nn.sigmoid_cross_entropy_with_logits([1.0, 0.0], [1000.0, 1000.0]).numpy()
    array([   0., 1000.], dtype=float32)
    """
    y, x = _same_shape(labels, logits, "sigmoid_cross_entropy_with_logits")
    above, tail = _sides(x)
    return above - x * y + tail


def _sides(x: Tensor) -> tuple[Tensor, Tensor]:
    """`max(x, 0)` and `log(1 + exp(-|x|))`, whose sum is softplus(x); so is that of the gradients.

    At 0 both take the side of positive x, or the halves of the gradient would not add up.
    """
    positive = apply(ar.greater_equal, (x, zeros_like(x)))
    above = apply(ar.mask, (x, positive))
    minus_size = apply(ar.select, (positive, -x, x))
    return above, apply(el.softplus, (minus_size,))


def weighted_cross_entropy_with_logits(
    labels: Any, logits: Any, pos_weight: Any, name: str | None = None
) -> Tensor:
    """`sigmoid_cross_entropy_with_logits`, with positive labels counted `pos_weight` times."""
    y, x = _same_shape(labels, logits, "weighted_cross_entropy_with_logits")
    y, weight = one_dtype((y, pos_weight))
    above_of_minus, tail = _sides(-x)
    return (1 - y) * x + (1 + (weight - 1) * y) * (tail + above_of_minus)


def log_poisson_loss(
    targets: Any, log_input: Any, compute_full_loss: bool = False, name: str | None = None
) -> Tensor:
    """`exp(log_input) - log_input * targets`: how unlikely `targets` are under a Poisson law.

    With `compute_full_loss`, Stirling's approximation of log(targets!) is added where targets
    exceed 1.
    """
    y, x = as_tensor(targets), as_tensor(log_input)
    if y._array.shape != x._array.shape:
        raise ValueError(
            "log_poisson_loss: `log_input` and `targets` must have the same shape. Received: "
            f"{x._array.shape} and {y._array.shape}."
        )
    loss = apply(el.exp, (x,)) - x * y
    if not compute_full_loss:
        return loss
    large = y > 1
    safe = apply(ar.select, (large, y, ones_like(y)))
    stirling = safe * el.log(safe) - safe + el.log(safe * (2 * math.pi)) * 0.5
    return loss + apply(ar.mask, (stirling, large))


def l2_loss(t: Any, name: str | None = None) -> Tensor:
    """Half the sum of squares.

    >>> tf.nn.l2_loss([3.0, 4.0]).numpy()
    np.float32(12.5)
    """
    x = as_tensor(t)
    if x._array.dtype not in dtypes.FLOATING:
        raise invalid(f"l2_loss: dtype {dtype_name(x)} is not supported. Expected a float dtype.")
    return _over(reduction.sum, apply(ar.square, (x,)), None, False) / 2.0


# Moments and normalisation


def _over(primitive: Primitive, x: Tensor, axes: Any, keepdims: bool = True) -> Tensor:
    return apply(primitive, (x,), {"axis": axes_of(axes, x, "moments"), "keepdims": bool(keepdims)})


def moments(
    x: Any, axes: Any, shift: Any = None, keepdims: bool = False, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """The mean and the variance over `axes`; `shift` is ignored, as in TensorFlow.

    >>> [m.numpy() for m in tf.nn.moments([1.0, 2.0, 6.0], axes=[0])]
    [np.float32(3.0), np.float32(4.6666665)]
    """
    x = as_tensor(x)
    dtype = x._array.dtype
    x = _widened(x)
    mean = _over(reduction.mean, x, axes)
    distance = apply(ar.squared_difference, (x, mean))
    variance = _over(reduction.mean, distance, axes, keepdims)
    mean = mean if keepdims else _squeezed(mean, axes)
    return to_dtype(mean, dtype), to_dtype(variance, dtype)


def _widened(x: Tensor) -> Tensor:
    """`x`, as float32 if it has half precision."""
    return to_dtype(x, _FLOAT32) if x._array.dtype in _HALF else x


def _squeezed(x: Tensor, axes: Any) -> Tensor:
    """`x` without `axes`, each of size 1."""
    gone = axes_of(axes, x, "moments")
    return reshape(x, shape=tuple(n for i, n in enumerate(x._array.shape) if i not in gone))


def weighted_moments(
    x: Any, axes: Any, frequency_weights: Any, keepdims: bool = False, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """The mean and the variance over `axes`, each element counted with its weight.

    >>> mean, variance = tf.nn.weighted_moments([1.0, 5.0], [0], [3.0, 1.0])
    >>> mean.numpy(), variance.numpy()
    (np.float32(2.0), np.float32(3.0))
    """
    x, weights = as_tensor(x), as_tensor(frequency_weights)
    dtype = x._array.dtype
    x = _widened(x)
    weights = to_dtype(weights, x._array.dtype)
    weights = weights + zeros_like(x)
    total = _over(reduction.sum, weights, axes)
    mean = _over(reduction.sum, weights * x, axes) / total
    distance = weights * apply(ar.squared_difference, (x, mean))
    variance = _over(reduction.sum, distance, axes) / total
    if not keepdims:
        mean, variance = _squeezed(mean, axes), _squeezed(variance, axes)
    return to_dtype(mean, dtype), to_dtype(variance, dtype)


def sufficient_statistics(
    x: Any, axes: Any, shift: Any = None, keepdims: bool = False, name: str | None = None
) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """What `normalize_moments` needs: the count, the sum and the sum of squares, and the shift.

    Both sums are those of `x - shift` if a shift is given.
    """
    x = as_tensor(x)
    places = axes_of(list(axes), x, "sufficient_statistics")
    count = Tensor(x._array.dtype.type(reduction.count(x._array, places)))
    moved, shift = (x, None) if shift is None else _shifted(x, shift)
    total = _over(reduction.sum, moved, places, keepdims)
    squares = apply(ar.square, (moved,))
    return count, total, _over(reduction.sum, squares, places, keepdims), shift


def _shifted(x: Tensor, shift: Any) -> tuple[Tensor, Tensor]:
    shift = as_tensor(shift, None if held_by(shift) is not None else x._array.dtype)
    return x - shift, apply(identity, (shift,))


def normalize_moments(
    counts: Any, mean_ss: Any, variance_ss: Any, shift: Any, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """The mean and the variance from sufficient statistics.

    >>> [m.numpy() for m in tf.nn.normalize_moments(4.0, 2.0, 10.0, shift=1.0)]
    [np.float32(1.5), np.float32(2.25)]
    """
    counts, mean_ss, variance_ss = one_dtype((counts, mean_ss, variance_ss))
    divisor = apply(ar.reciprocal, (counts,))
    shifted_mean = mean_ss * divisor
    mean = shifted_mean if shift is None else shifted_mean + shift
    return mean, variance_ss * divisor - apply(ar.square, (shifted_mean,))


def batch_normalization(
    x: Any,
    mean: Any,
    variance: Any,
    offset: Any,
    scale: Any,
    variance_epsilon: Any,
    name: str | None = None,
) -> Tensor:
    """`(x - mean) / sqrt(variance + variance_epsilon) * scale + offset`.

    `offset` and `scale` may be `None`. The result has the dtype of `x`.

    >>> tf.nn.batch_normalization([[1.0, 5.0]], [1.0, 1.0], [1.0, 4.0], None, None, 0.0).numpy()
    array([[0., 2.]], dtype=float32)
    """
    x = as_tensor(x)
    dtype = x._array.dtype
    mean, variance = (_like(v, dtype) for v in (mean, variance))
    factor = apply(el.rsqrt, (variance + variance_epsilon,))
    if scale is not None:
        factor = factor * scale
    shift = -mean * factor if offset is None else offset - mean * factor
    return x * to_dtype(factor, dtype) + to_dtype(shift, dtype)


def _like(value: Any, dtype: np.dtype) -> Tensor:
    """`value` as a tensor; numbers and arrays take `dtype`."""
    return as_tensor(value, hint=dtype)


def bias_add(
    value: Any, bias: Any, data_format: str | None = None, name: str | None = None
) -> Tensor:
    """`value` with one bias added for each channel.

    Channels lie along the last axis, or along the second with a `data_format` that starts "NC".

    >>> tf.nn.bias_add([[1.0, 2.0], [3.0, 4.0]], [10.0, 20.0]).numpy()
    array([[11., 22.],
           [13., 24.]], dtype=float32)
    """
    second = _channels_second(data_format)
    x, b = same_dtype(value, bias)
    if x.ndim < 2:
        raise invalid(f"bias_add: value must be at least 2D. Received: shape {x._array.shape}.")
    if b.ndim != 1:
        raise invalid(f"bias_add: biases must be 1D. Received: shape {b._array.shape}.")
    axis = 1 if second else x.ndim - 1
    if b._array.shape[0] != x._array.shape[axis]:
        raise invalid(
            f"bias_add: {b._array.shape[0]} biases for the {x._array.shape[axis]} channels along "
            f"axis {axis} of shape {x._array.shape}. Expected as many."
        )
    if axis != x.ndim - 1:
        b = reshape(b, shape=(b._array.shape[0], *(1,) * (x.ndim - 2)))
    return apply(ar.add, (x, b))


def _channels_second(data_format: str | None) -> bool:
    if data_format is None or (data_format.startswith("N") and data_format.endswith("C")):
        return False
    if not data_format.startswith("NC"):
        raise ValueError(
            "bias_add: `data_format` must be of the form `N...C` or `NC...`. Received: "
            f"data_format={data_format}."
        )
    return True


# Lookups and dropout


def embedding_lookup(
    params: Any, ids: Any, max_norm: float | None = None, name: str | None = None
) -> Tensor:
    """Rows of `params`, a table or a list of parts of one, picked by `ids`.

    The gradient of the table comes as IndexedSlices. With `max_norm`, rows that are longer are
    scaled down to that norm.

    >>> tf.nn.embedding_lookup([[[1.0, 2.0], [3.0, 4.0]]], [1, 0]).numpy()
    array([[3., 4.],
           [1., 2.]], dtype=float32)
    """
    table, places = _table(params), as_tensor(ids)
    _accept(places, ("int16", "int32", "int64"), "ids", "embedding_lookup")
    rows = apply(gather, (table, places), {"axis": 0})
    if max_norm is None:
        return rows
    return clip_by_norm(rows, max_norm, axes=tuple(range(places.ndim, rows.ndim)))


def _table(params: Any) -> Tensor:
    if params is None:
        raise ValueError("embedding_lookup: params must be given. Received: None.")
    if not isinstance(params, (list, tuple)):
        return as_tensor(params)
    if not params:
        raise ValueError("embedding_lookup: need at least one table. Received: an empty list.")
    parts = one_dtype(params)
    return parts[0] if len(parts) == 1 else concat(*parts, axis=0)


def dropout(
    x: Any, rate: Any, noise_shape: Any = None, seed: int | None = None, name: str | None = None
) -> Tensor:
    """`x` with a share `rate` of its elements set to 0 by chance, the others divided by 1 - rate.

    `noise_shape` has ones, or a smaller rank, where elements shall share their fate.

    >>> sorted(set(tf.nn.dropout(tf.ones([100]), rate=0.5).numpy().tolist()))
    [0.0, 2.0]
    """
    x = as_tensor(x)
    dtype = x._array.dtype
    if dtype not in dtypes.FLOATING:
        raise ValueError(
            "dropout: x must be a floating point tensor, since it is scaled. Received: dtype "
            f"{dtype_name(x)}."
        )
    rate = _rate(rate, x)
    if isinstance(rate, float) and not rate:
        return apply(identity, (x,))
    chance = uniform(_noise_shape(noise_shape, x), seed=seed, dtype=dtypes.of(dtype))
    kept = apply(ar.greater_equal, (chance, as_tensor(rate, dtype)))
    scaled = x * (1.0 / (1.0 - rate))
    return apply(ar.mask, (scaled, kept))


def _rate(rate: Any, x: Tensor) -> float | Tensor:
    """A Python number between 0 and 1, or a scalar tensor of the dtype of `x`."""
    held = held_by(rate)
    if held is None:
        if not isinstance(rate, numbers.Real):
            raise ValueError(
                f"dropout: `rate` must be a scalar or scalar tensor. Received: {rate!r}."
            )
        if not 0 <= rate < 1:
            raise ValueError(
                "dropout: `rate` must be a scalar tensor or a float in the range [0, 1). "
                f"Received: rate={rate}."
            )
        return float(rate)
    tensor = held._read()
    if tensor.ndim or tensor._array.dtype != x._array.dtype:
        raise ValueError(
            f"dropout: `rate` must be a scalar of the dtype of x, {dtype_name(x)}. Received: shape "
            f"{tensor._array.shape}, {dtype_name(tensor)}."
        )
    return tensor


def _noise_shape(noise_shape: Any, x: Tensor) -> tuple[int, ...]:
    shape = x._array.shape
    if noise_shape is None:
        return shape
    given = [None if n is None else int(n) for n in noise_shape]
    if len(given) != len(shape):
        return tuple(given)
    return tuple(m if n is None else n for n, m in zip(given, shape, strict=True))
