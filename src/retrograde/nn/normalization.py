"""Moments, batch normalization and local response normalization."""

from __future__ import annotations

from typing import Any

import numpy as np

from retrograde.core.apply import Primitive, apply
from retrograde.core.tensor import Tensor
from retrograde.math._inputs import axes_of
from retrograde.ops import arithmetic as ar
from retrograde.ops import elementary as el
from retrograde.ops import reduction
from retrograde.ops.casting import identity, to_dtype, zeros_like
from retrograde.ops.contraction import matmul
from retrograde.ops.conversion import as_tensor, one_dtype, same_dtype
from retrograde.ops.shaping import reshape
from retrograde.values import dtypes
from retrograde.values.arguments import as_int, as_text
from retrograde.values.conversion import tensor_or_variable
from retrograde.values.errors import invalid, to_list

_FLOAT32 = np.dtype(np.float32)
_HALF = frozenset({dtypes.float16.numpy_dtype, dtypes.bfloat16.numpy_dtype})


def _reduce(
    primitive: Primitive, x: Tensor, axes: Any, op_name: str, keepdims: bool = True
) -> Tensor:
    return apply(primitive, (x,), {"axis": axes_of(axes, x, op_name), "keepdims": bool(keepdims)})


def moments(
    x: Any, axes: Any, shift: Any = None, keepdims: bool = False, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Computes the mean and the variance over `axes`; `shift` is ignored, as in TensorFlow.

    >>> [m.numpy() for m in tf.nn.moments([1.0, 2.0, 6.0], axes=[0])]
    [np.float32(3.0), np.float32(4.6666665)]
    """
    x = as_tensor(x)
    dtype = x._spec.dtype
    x = _to_full_precision(x)
    mean = _reduce(reduction.mean, x, axes, "moments")
    squared_deviation = apply(ar.squared_difference, (x, mean))
    variance = _reduce(reduction.mean, squared_deviation, axes, "moments", keepdims)
    mean = mean if keepdims else _squeeze(mean, axes, "moments")
    return to_dtype(mean, dtype), to_dtype(variance, dtype)


def _to_full_precision(x: Tensor) -> Tensor:
    """Converts half precision to float32."""
    return to_dtype(x, _FLOAT32) if x._spec.dtype in _HALF else x


def _squeeze(x: Tensor, axes: Any, op_name: str) -> Tensor:
    """Removes `axes`, each of size 1."""
    removed = axes_of(axes, x, op_name)
    return reshape(x, shape=tuple(n for i, n in enumerate(x._spec.shape) if i not in removed))


def weighted_moments(
    x: Any, axes: Any, frequency_weights: Any, keepdims: bool = False, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Computes the weighted mean and variance over `axes`.

    Both are 0 where the weights add up to 0.

    >>> mean, variance = tf.nn.weighted_moments([1.0, 5.0], [0], [3.0, 1.0])
    >>> mean.numpy(), variance.numpy()
    (np.float32(2.0), np.float32(3.0))
    """
    op_name = "weighted_moments"
    x, weights = as_tensor(x), as_tensor(frequency_weights)
    dtype = x._spec.dtype
    if dtype not in dtypes.NUMERIC:
        raise invalid(f"{op_name}: expected a numeric dtype. Received: {dtypes.of(dtype).name}.")
    x = _to_full_precision(x)
    weights = to_dtype(weights, x._spec.dtype)
    weights = weights + zeros_like(x)
    total = _reduce(reduction.sum, weights, axes, op_name)
    mean = ar.divide_no_nan(_reduce(reduction.sum, weights * x, axes, op_name), total)
    squared_deviation = weights * apply(ar.squared_difference, (x, mean))
    variance = ar.divide_no_nan(_reduce(reduction.sum, squared_deviation, axes, op_name), total)
    if not keepdims:
        mean, variance = _squeeze(mean, axes, op_name), _squeeze(variance, axes, op_name)
    return to_dtype(mean, dtype), to_dtype(variance, dtype)


def sufficient_statistics(
    x: Any, axes: Any, shift: Any = None, keepdims: bool = False, name: str | None = None
) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """Returns the count, the sum, the sum of squares and the shift for `normalize_moments`.

    If a shift is given, both sums are taken over `x - shift`.
    """
    op_name = "sufficient_statistics"
    x = as_tensor(x)
    axes = axes_of(to_list(op_name, axes), x, op_name)
    count = Tensor(x._spec.dtype.type(reduction.count(x._array, axes)))
    shifted, shift = (x, None) if shift is None else _shift(x, shift)
    total = _reduce(reduction.sum, shifted, axes, op_name, keepdims)
    squares = apply(ar.square, (shifted,))
    return count, total, _reduce(reduction.sum, squares, axes, op_name, keepdims), shift


def _shift(x: Tensor, shift: Any) -> tuple[Tensor, Tensor]:
    shift = as_tensor(shift, None if tensor_or_variable(shift) is not None else x._spec.dtype)
    return x - shift, apply(identity, (shift,))


def normalize_moments(
    counts: Any, mean_ss: Any, variance_ss: Any, shift: Any, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Computes the mean and the variance from sufficient statistics.

    >>> [m.numpy() for m in tf.nn.normalize_moments(4.0, 2.0, 10.0, shift=1.0)]
    [np.float32(1.5), np.float32(2.25)]
    """
    counts, mean_ss, variance_ss = one_dtype((counts, mean_ss, variance_ss))
    inverse_count = apply(ar.reciprocal, (counts,))
    shifted_mean = mean_ss * inverse_count
    mean = shifted_mean if shift is None else shifted_mean + shift
    return mean, variance_ss * inverse_count - apply(ar.square, (shifted_mean,))


def batch_normalization(
    x: Any,
    mean: Any,
    variance: Any,
    offset: Any,
    scale: Any,
    variance_epsilon: Any,
    name: str | None = None,
) -> Tensor:
    """Computes `(x - mean) / sqrt(variance + variance_epsilon) * scale + offset`.

    `offset` and `scale` may be `None`. The result has the dtype of `x`.

    >>> tf.nn.batch_normalization([[1.0, 5.0]], [1.0, 1.0], [1.0, 4.0], None, None, 0.0).numpy()
    array([[0., 2.]], dtype=float32)
    """
    x = as_tensor(x)
    dtype = x._spec.dtype
    mean, variance = (_as_tensor_like(v, dtype) for v in (mean, variance))
    offset, scale = (None if v is None else _as_tensor_like(v, dtype) for v in (offset, scale))
    factor = apply(el.rsqrt, (as_tensor(variance + variance_epsilon),))
    if scale is not None:
        factor = factor * scale
    shift = -mean * factor if offset is None else offset - mean * factor
    return x * to_dtype(factor, dtype) + to_dtype(shift, dtype)


def _as_tensor_like(value: Any, dtype: np.dtype) -> Tensor:
    """Converts `value` to a tensor; Python numbers and arrays are converted to `dtype`."""
    return as_tensor(value, hint=dtype)


def bias_add(
    value: Any, bias: Any, data_format: str | None = None, name: str | None = None
) -> Tensor:
    """Adds one bias per channel to `value`.

    Channels are the last axis, or the second if `data_format` starts with "NC".

    >>> tf.nn.bias_add([[1.0, 2.0], [3.0, 4.0]], [10.0, 20.0]).numpy()
    array([[11., 22.],
           [13., 24.]], dtype=float32)
    """
    channels_first = _is_channels_first(data_format)
    x, b = same_dtype(value, bias)
    if x.ndim < 2:
        raise invalid(f"bias_add: value must be at least 2D. Received: shape {x._spec.shape}.")
    if b.ndim != 1:
        raise invalid(f"bias_add: biases must be 1D. Received: shape {b._spec.shape}.")
    axis = 1 if channels_first else x.ndim - 1
    if b._spec.shape[0] != x._spec.shape[axis]:
        raise invalid(
            f"bias_add: expected one bias per channel. Received: {b._spec.shape[0]} biases for "
            f"{x._spec.shape[axis]} channels (axis {axis} of shape {x._spec.shape})."
        )
    if axis != x.ndim - 1:
        b = reshape(b, shape=(b._spec.shape[0], *(1,) * (x.ndim - 2)))
    return apply(ar.add, (x, b))


def _is_channels_first(data_format: str | None) -> bool:
    if data_format is None:
        return False
    layout = data_format if isinstance(data_format, str) else ""
    if layout.startswith("N") and layout.endswith("C"):
        return False
    if not layout.startswith("NC"):
        raise ValueError(
            "bias_add: `data_format` must be of the form `N...C` or `NC...`. Received: "
            f"data_format={as_text(data_format)}."
        )
    return True


def batch_norm_with_global_normalization(
    input: Any,
    mean: Any,
    variance: Any,
    beta: Any,
    gamma: Any,
    variance_epsilon: Any,
    scale_after_normalization: bool,
    name: str | None = None,
) -> Tensor:
    """Computes `batch_normalization` with offset `beta`.

    The scale is `gamma`, or 1 if `scale_after_normalization` is false.
    """
    scale = gamma if scale_after_normalization else None
    return batch_normalization(input, mean, variance, beta, scale, variance_epsilon)


def local_response_normalization(
    input: Any,
    depth_radius: int = 5,
    bias: float = 1,
    alpha: float = 1,
    beta: float = 0.5,
    name: str | None = None,
) -> Tensor:
    """Computes `input / (bias + alpha * s) ** beta`, where `s` sums the squares of nearby channels.

    Channels up to `depth_radius` away are included.

    >>> x = tf.reshape([1.0, 2.0, 2.0], [1, 1, 1, 3])
    >>> tf.nn.local_response_normalization(x, depth_radius=1, bias=0.0).numpy().ravel()
    array([0.4472136 , 0.6666667 , 0.70710677], dtype=float32)
    """
    x = as_tensor(input)
    if x.ndim != 4:
        raise invalid(
            f"local_response_normalization: expected 4 axes. Received: shape {x._spec.shape}."
        )
    if depth_radius < 0:
        raise invalid(
            "local_response_normalization: depth_radius must not be negative. Received: "
            f"{as_text(depth_radius)}."
        )
    dtype, wide = x._spec.dtype, _to_full_precision(x)
    channels = np.arange(x._spec.shape[-1])
    in_window = abs(channels[:, None] - channels) <= as_int(depth_radius, "depth_radius")
    squares = apply(ar.square, (wide,))
    total = apply(matmul, (squares, Tensor(in_window.astype(wide._spec.dtype))))
    return to_dtype(wide * (total * alpha + bias) ** -beta, dtype)


lrn = local_response_normalization
