"""Reductions, cumulative sums and products, and normalization by a reduction."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from retrograde.core.apply import Primitive, apply
from retrograde.core.tensor import Tensor
from retrograde.math._inputs import as_bool, axes_of, axis_of, dtype_name, unary
from retrograde.ops import (
    arithmetic as ar,
)
from retrograde.ops import (
    complex_numbers as cx,
)
from retrograde.ops import (
    elementary as el,
)
from retrograde.ops import (
    normalization,
    reduction,
    scan,
)
from retrograde.ops.casting import to_dtype
from retrograde.ops.conversion import as_tensor, numpy_dtype
from retrograde.ops.shaping import reshape, take_slice
from retrograde.values import dtypes
from retrograde.values.composites import NotOneTensor, dispatch_to_composite, dispatched
from retrograde.values.errors import invalid

# The attributes of the most common case, all axes, are computed once.
_ALL_AXES = [{"axis": tuple(range(ndim)), "keepdims": False} for ndim in range(8)]


def _reduce(primitive: Primitive, x: Any, axis: Any, keepdims: Any, op_name: str) -> Tensor:
    try:
        x = as_tensor(x)
    except NotOneTensor as error:
        return dispatch_to_composite(error, primitive, x, axis, keepdims)
    if axis is None and not keepdims and x._spec.ndim < len(_ALL_AXES):
        return apply(primitive, (x,), _ALL_AXES[x._spec.ndim])
    attrs = {"axis": axes_of(axis, x, op_name), "keepdims": bool(keepdims)}
    return apply(primitive, (x,), attrs)


def reduce_sum(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """Computes the sum over `axis`: one axis, several, or `None` for all.

    >>> tf.math.reduce_sum([[1.0, 2.0], [3.0, 4.0]], axis=0).numpy()
    array([4., 6.], dtype=float32)
    """
    return _reduce(reduction.sum, input_tensor, axis, keepdims, "reduce_sum")


def reduce_mean(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """Computes the mean over `axis`. The mean of integers is rounded toward zero.

    >>> tf.math.reduce_mean([[1.0, 2.0], [3.0, 4.0]], axis=1).numpy()
    array([1.5, 3.5], dtype=float32)
    """
    return _reduce(reduction.mean, input_tensor, axis, keepdims, "reduce_mean")


def reduce_prod(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """Computes the product over `axis`. Its gradient is exact even if elements are zero."""
    return _reduce(reduction.prod, input_tensor, axis, keepdims, "reduce_prod")


def reduce_max(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """Computes the maximum over `axis`. Elements that tie share the gradient evenly."""
    return _reduce(reduction.max, input_tensor, axis, keepdims, "reduce_max")


def reduce_min(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """Computes the minimum over `axis`. Elements that tie share the gradient evenly."""
    return _reduce(reduction.min, input_tensor, axis, keepdims, "reduce_min")


@dispatched
def reduce_any(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """Returns whether any element over `axis` is true."""
    return _reduce(reduction.any, as_bool(input_tensor), axis, keepdims, "reduce_any")


@dispatched
def reduce_all(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """Returns whether all elements over `axis` are true."""
    return _reduce(reduction.all, as_bool(input_tensor), axis, keepdims, "reduce_all")


def reduce_logsumexp(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """Computes `log(sum(exp(x)))` over `axis` without overflow.

    >>> round(float(tf.math.reduce_logsumexp([1000.0, 1000.0])), 3)
    1000.693
    """
    return _reduce(reduction.logsumexp, input_tensor, axis, keepdims, "reduce_logsumexp")


@dispatched
def reduce_variance(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """Computes the variance over `axis`, which is real for complex numbers too.

    >>> tf.math.reduce_variance([1.0, 2.0, 6.0]).numpy()
    np.float32(4.6666665)
    """
    x = as_tensor(input_tensor)
    mean = _reduce(reduction.mean, x, axis, True, "reduce_variance")
    if x._spec.dtype not in dtypes.INEXACT:
        raise TypeError(
            f"reduce_variance: input must be real or complex. Received: dtype {dtype_name(x)}. Use "
            "tf.cast to convert it to float."
        )
    return _reduce(reduction.mean, _squared_magnitude(x - mean), axis, keepdims, "reduce_variance")


def _squared_magnitude(x: Tensor) -> Tensor:
    """Computes `|x| ** 2`."""
    if x._spec.dtype.kind != "c":
        return apply(ar.square, (x,))
    parts = (apply(part, (x,)) for part in (cx.real, cx.imag))
    return apply(ar.add, tuple(apply(ar.square, (part,)) for part in parts))


def reduce_std(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """Computes the square root of `reduce_variance`. Its gradient is NaN if the variance is 0."""
    return unary(el.sqrt, reduce_variance(input_tensor, axis, keepdims))


def reduce_euclidean_norm(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """Computes the square root of the sum of squares over `axis`, in the dtype of the input.

    Its gradient is NaN if all elements are 0.

    >>> tf.math.reduce_euclidean_norm([[3.0, 4.0], [6.0, 8.0]], axis=1).numpy()
    array([ 5., 10.], dtype=float32)
    """
    x = as_tensor(input_tensor)
    dtype = x._spec.dtype
    total = _reduce(reduction.sum, _squared_magnitude(x), axis, keepdims, "reduce_euclidean_norm")
    if dtype in dtypes.INTEGER:
        total = to_dtype(total, np.dtype(np.float64))
    return to_dtype(apply(el.sqrt, (total,)), dtype)


def argmax(
    input: Any, axis: Any = None, output_type: Any = dtypes.int64, name: str | None = None
) -> Tensor:
    """Returns the index of the largest element along `axis`, by default the first axis.

    In a tie it is the lowest index.

    >>> tf.math.argmax([[1, 5], [7, 2]], axis=1).numpy()
    array([1, 0])
    """
    return _arg_reduce(
        reduction.argmax, input, axis, output_type, ("int16", "uint16", "int32", "int64")
    )


def argmin(
    input: Any, axis: Any = None, output_type: Any = dtypes.int64, name: str | None = None
) -> Tensor:
    """Returns the index of the smallest element along `axis`, by default the first axis."""
    return _arg_reduce(reduction.argmin, input, axis, output_type, ("int32", "int64"))


def _arg_reduce(
    primitive: Primitive, x: Any, axis: Any, output_type: Any, allowed: tuple
) -> Tensor:
    x = as_tensor(x)
    dtype = dtypes.as_dtype(output_type)
    if dtype.name not in allowed:
        raise invalid(
            f"{primitive.name}: output_type {dtype.name} is not supported. Expected one of "
            f"{', '.join(allowed)}."
        )
    axis = axis_of(0 if axis is None else axis, x, primitive.name)
    return apply(primitive, (x,), {"axis": axis, "dtype": dtype.numpy_dtype})


def count_nonzero(
    input: Any,
    axis: Any = None,
    keepdims: bool | None = None,
    dtype: Any = dtypes.int64,
    name: str | None = None,
) -> Tensor:
    """Counts the elements over `axis` that are not 0, or the strings that are not empty.

    >>> tf.math.count_nonzero([[0, 1], [2, 3]], axis=0).numpy()
    array([1, 2])
    """
    x, numpy_type = as_tensor(input), numpy_dtype(dtype)
    if numpy_type.kind == "O":
        raise TypeError("count_nonzero: expected a numeric dtype. Received: string.")
    counts = to_dtype(apply(ar.not_equal, (x, _zero_of(x))), numpy_type)
    return _reduce(reduction.sum, counts, axis, keepdims, "count_nonzero")


def _zero_of(x: Tensor) -> Tensor:
    if x.dtype is dtypes.string:
        return Tensor(np.array(b"", object))
    return Tensor(np.zeros((), x._spec.dtype))


def zero_fraction(value: Any, name: str | None = None) -> Tensor:
    """Computes the fraction of elements that are 0, as float32.

    >>> tf.math.zero_fraction([0.0, 1.0, 0.0, 2.0]).numpy()
    np.float32(0.5)
    """
    x = as_tensor(value)
    size = math.prod(x._spec.shape)
    nonzero = count_nonzero(x, dtype=dtypes.int64)
    zeros = to_dtype(Tensor(np.int64(size)) - nonzero, np.dtype(np.float32))
    return zeros / float(size)


def is_non_decreasing(x: Any, name: str | None = None) -> Tensor:
    """Returns whether no element of the flattened `x` is smaller than its predecessor."""
    return _compare_neighbors(ar.less_equal, x, "is_non_decreasing")


def is_strictly_increasing(x: Any, name: str | None = None) -> Tensor:
    """Returns whether every element of the flattened `x` is larger than its predecessor.

    >>> tf.math.is_strictly_increasing([1, 2, 2]).numpy()
    np.False_
    """
    return _compare_neighbors(ar.less, x, "is_strictly_increasing")


def _compare_neighbors(comparison: Primitive, x: Any, op_name: str) -> Tensor:
    x = as_tensor(x)
    if x._spec.dtype not in dtypes.NUMERIC:
        raise TypeError(f"{op_name}: expected a numeric tensor. Received: dtype {dtype_name(x)}.")
    size = math.prod(x._spec.shape)
    flat = reshape(x, shape=(size,))
    earlier = take_slice(flat, where=((0, max(size - 1, 0), 1),))
    later = take_slice(flat, where=((min(1, size), size, 1),))
    return _reduce(reduction.all, apply(comparison, (earlier, later)), None, False, op_name)


# Along one axis


@dispatched
def cumsum(
    x: Any,
    axis: Any = 0,
    exclusive: bool = False,
    reverse: bool = False,
    name: str | None = None,
) -> Tensor:
    """Computes the cumulative sum along `axis`.

    With `exclusive` each sum leaves out its own element. With `reverse` the sums run from the end.

    >>> tf.math.cumsum([1, 2, 3]).numpy(), tf.math.cumsum([1, 2, 3], exclusive=True).numpy()
    (array([1, 3, 6], dtype=int32), array([0, 1, 3], dtype=int32))
    """
    x = as_tensor(x)
    attrs = {"exclusive": bool(exclusive), "reverse": bool(reverse)}
    return apply(scan.cumsum, (x,), {"axis": axis_of(axis, x, "cumsum"), **attrs})


def cumprod(
    x: Any,
    axis: Any = 0,
    exclusive: bool = False,
    reverse: bool = False,
    name: str | None = None,
) -> Tensor:
    """Computes the cumulative product along `axis`; see `cumsum` for `exclusive` and `reverse`.

    Unlike TensorFlow's, the gradient is also correct where elements are zero.

    >>> tf.math.cumprod([2.0, 3.0, 4.0]).numpy()
    array([ 2.,  6., 24.], dtype=float32)
    """
    return _cumulative(scan.cumprod, x, axis, exclusive, reverse)


def cumulative_logsumexp(
    x: Any,
    axis: Any = 0,
    exclusive: bool = False,
    reverse: bool = False,
    name: str | None = None,
) -> Tensor:
    """Computes `log(cumsum(exp(x)))` along `axis` without overflow."""
    return _cumulative(scan.cumulative_logsumexp, x, axis, exclusive, reverse)


def _cumulative(primitive: Primitive, x: Any, axis: Any, exclusive: Any, reverse: Any) -> Tensor:
    x = as_tensor(x)
    axis = axis_of(axis, x, primitive.name)
    return scan.directed_scan(primitive, x, axis=axis, exclusive=exclusive, reverse=reverse)


@dispatched
def softmax(logits: Any, axis: Any = None, name: str | None = None) -> Tensor:
    """Computes `exp(x) / sum(exp(x))` along `axis`, by default the last one.

    >>> tf.nn.softmax([[0.0, 0.0], [1000.0, 0.0]]).numpy()
    array([[0.5, 0.5],
           [1. , 0. ]], dtype=float32)
    """
    x = as_tensor(logits)
    axis = axis_of(-1 if axis is None else axis, x, "softmax")
    return apply(normalization.softmax, (x,), {"axis": axis})


def log_softmax(logits: Any, axis: Any = None, name: str | None = None) -> Tensor:
    """Computes `log(softmax(x))` along `axis`, by default the last one, accurately in the tails."""
    x = as_tensor(logits)
    axis = axis_of(-1 if axis is None else axis, x, "log_softmax")
    return apply(normalization.log_softmax, (x,), {"axis": axis})


def l2_normalize(
    x: Any, axis: Any = None, epsilon: float = 1e-12, name: str | None = None, dim: Any = None
) -> Tensor:
    """Computes `x / sqrt(max(sum(|x| ** 2), epsilon))` over `axis`; `dim` is an old name for it.

    >>> tf.math.l2_normalize([3.0, 4.0]).numpy()
    array([0.6, 0.8], dtype=float32)
    """
    if axis is not None and dim is not None:
        raise ValueError("l2_normalize: received both `axis` and `dim`. Use `axis` alone.")
    x = as_tensor(x)
    axis = dim if axis is None else axis
    total = _reduce(reduction.sum, _squared_magnitude(x), axis, True, "l2_normalize")
    floor = as_tensor(epsilon, total._spec.dtype)
    scale = apply(el.rsqrt, (apply(ar.maximum, (total, floor)),))
    return x * to_dtype(scale, x._spec.dtype)
