"""Reductions, running sums and products, and what is normalised by a reduction."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from retrograde.core.apply import Primitive, apply
from retrograde.core.tensor import Tensor
from retrograde.math._inputs import axes_of, axis_of, dtype_name, truth, unary
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

# What is most often asked for, all axes, is not worked out anew each time.
_ALL_AXES = [{"axis": tuple(range(ndim)), "keepdims": False} for ndim in range(8)]


def _reduced(primitive: Primitive, x: Any, axis: Any, keepdims: Any, what: str) -> Tensor:
    try:
        x = as_tensor(x)
    except NotOneTensor as refusal:
        return dispatch_to_composite(refusal, primitive, x, axis, keepdims)
    if axis is None and not keepdims and x._spec.ndim < len(_ALL_AXES):
        return apply(primitive, (x,), _ALL_AXES[x._spec.ndim])
    attrs = {"axis": axes_of(axis, x, what), "keepdims": bool(keepdims)}
    return apply(primitive, (x,), attrs)


def reduce_sum(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """The sum of elements over `axis`: one axis, several, or `None` for all.

    >>> tf.math.reduce_sum([[1.0, 2.0], [3.0, 4.0]], axis=0).numpy()
    array([4., 6.], dtype=float32)
    """
    return _reduced(reduction.sum, input_tensor, axis, keepdims, "reduce_sum")


def reduce_mean(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """The mean of elements over `axis`; of integers an integer, rounded towards zero.

    >>> tf.math.reduce_mean([[1.0, 2.0], [3.0, 4.0]], axis=1).numpy()
    array([1.5, 3.5], dtype=float32)
    """
    return _reduced(reduction.mean, input_tensor, axis, keepdims, "reduce_mean")


def reduce_prod(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """The product of elements over `axis`. Its gradient is exact where there are zeros too."""
    return _reduced(reduction.prod, input_tensor, axis, keepdims, "reduce_prod")


def reduce_max(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """The largest element over `axis`. Elements that tie share the gradient evenly."""
    return _reduced(reduction.max, input_tensor, axis, keepdims, "reduce_max")


def reduce_min(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """The smallest element over `axis`. Elements that tie share the gradient evenly."""
    return _reduced(reduction.min, input_tensor, axis, keepdims, "reduce_min")


@dispatched
def reduce_any(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """Whether some element over `axis` is true."""
    return _reduced(reduction.any, truth(input_tensor), axis, keepdims, "reduce_any")


@dispatched
def reduce_all(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """Whether all elements over `axis` are true."""
    return _reduced(reduction.all, truth(input_tensor), axis, keepdims, "reduce_all")


def reduce_logsumexp(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """`log(sum(exp(x)))` over `axis`, without overflow.

    >>> round(float(tf.math.reduce_logsumexp([1000.0, 1000.0])), 3)
    1000.693
    """
    return _reduced(reduction.logsumexp, input_tensor, axis, keepdims, "reduce_logsumexp")


@dispatched
def reduce_variance(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """The mean squared distance from the mean over `axis`; real for complex numbers too.

    >>> tf.math.reduce_variance([1.0, 2.0, 6.0]).numpy()
    np.float32(4.6666665)
    """
    x = as_tensor(input_tensor)
    mean = _reduced(reduction.mean, x, axis, True, "reduce_variance")
    if x._spec.dtype not in dtypes.INEXACT:
        raise TypeError(
            f"reduce_variance: input must be real or complex. Received: dtype {dtype_name(x)}. "
            "Use tf.cast to make it float."
        )
    return _reduced(reduction.mean, _power(x - mean), axis, keepdims, "reduce_variance")


def _power(x: Tensor) -> Tensor:
    """|x| squared."""
    if x._spec.dtype.kind != "c":
        return apply(ar.square, (x,))
    parts = (apply(part, (x,)) for part in (cx.real, cx.imag))
    return apply(ar.add, tuple(apply(ar.square, (part,)) for part in parts))


def reduce_std(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """The square root of `reduce_variance`. Its gradient is nan where all elements are equal."""
    return unary(el.sqrt, reduce_variance(input_tensor, axis, keepdims))


def reduce_euclidean_norm(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """The square root of the sum of squares over `axis`, in the dtype of the input.

    Its gradient is nan where all elements are 0.

    >>> tf.math.reduce_euclidean_norm([[3.0, 4.0], [6.0, 8.0]], axis=1).numpy()
    array([ 5., 10.], dtype=float32)
    """
    x = as_tensor(input_tensor)
    dtype = x._spec.dtype
    total = _reduced(reduction.sum, _power(x), axis, keepdims, "reduce_euclidean_norm")
    if dtype in dtypes.INTEGER:
        total = to_dtype(total, np.dtype(np.float64))
    return to_dtype(apply(el.sqrt, (total,)), dtype)


def argmax(
    input: Any, axis: Any = None, output_type: Any = dtypes.int64, name: str | None = None
) -> Tensor:
    """The index of the largest element along `axis`, the first axis if none is given.

    Of several as large, it is the first.

    >>> tf.math.argmax([[1, 5], [7, 2]], axis=1).numpy()
    array([1, 0])
    """
    return _place(reduction.argmax, input, axis, output_type, ("int16", "uint16", "int32", "int64"))


def argmin(
    input: Any, axis: Any = None, output_type: Any = dtypes.int64, name: str | None = None
) -> Tensor:
    """The index of the smallest element along `axis`, the first axis if none is given."""
    return _place(reduction.argmin, input, axis, output_type, ("int32", "int64"))


def _place(primitive: Primitive, x: Any, axis: Any, output_type: Any, allowed: tuple) -> Tensor:
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
    """How many elements over `axis` are not 0; of strings, how many are not empty.

    >>> tf.math.count_nonzero([[0, 1], [2, 3]], axis=0).numpy()
    array([1, 2])
    """
    x, wanted = as_tensor(input), numpy_dtype(dtype)
    if wanted.kind == "O":
        raise TypeError("count_nonzero: expected a numeric dtype. Received: string.")
    counts = to_dtype(apply(ar.not_equal, (x, _zero_of(x))), wanted)
    return _reduced(reduction.sum, counts, axis, keepdims, "count_nonzero")


def _zero_of(x: Tensor) -> Tensor:
    if x.dtype is dtypes.string:
        return Tensor(np.array(b"", object))
    return Tensor(np.zeros((), x._spec.dtype))


def zero_fraction(value: Any, name: str | None = None) -> Tensor:
    """The share of elements that are 0, as float32.

    >>> tf.math.zero_fraction([0.0, 1.0, 0.0, 2.0]).numpy()
    np.float32(0.5)
    """
    x = as_tensor(value)
    size = math.prod(x._spec.shape)
    nonzero = count_nonzero(x, dtype=dtypes.int64)
    zeros = to_dtype(Tensor(np.int64(size)) - nonzero, np.dtype(np.float32))
    return zeros / float(size)


def is_non_decreasing(x: Any, name: str | None = None) -> Tensor:
    """Whether no element of the flattened `x` is smaller than the one before."""
    return _ordered(ar.less_equal, x, "is_non_decreasing")


def is_strictly_increasing(x: Any, name: str | None = None) -> Tensor:
    """Whether every element of the flattened `x` is larger than the one before.

    >>> tf.math.is_strictly_increasing([1, 2, 2]).numpy()
    np.False_
    """
    return _ordered(ar.less, x, "is_strictly_increasing")


def _ordered(comparison: Primitive, x: Any, what: str) -> Tensor:
    x = as_tensor(x)
    if x._spec.dtype not in dtypes.NUMERIC:
        raise TypeError(f"{what}: expected numbers. Received: dtype {dtype_name(x)}.")
    size = math.prod(x._spec.shape)
    flat = reshape(x, shape=(size,))
    earlier = take_slice(flat, where=((0, max(size - 1, 0), 1),))
    later = take_slice(flat, where=((min(1, size), size, 1),))
    return _reduced(reduction.all, apply(comparison, (earlier, later)), None, False, what)


# Along one axis


@dispatched
def cumsum(
    x: Any,
    axis: Any = 0,
    exclusive: bool = False,
    reverse: bool = False,
    name: str | None = None,
) -> Tensor:
    """Running sums along `axis`.

    With `exclusive`, an element itself does not count; with `reverse`, sums run from the end.

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
    """Running products along `axis`, with `exclusive` and `reverse` as for `cumsum`.

    Unlike TensorFlow's, the gradient is right where there are zeros too.

    >>> tf.math.cumprod([2.0, 3.0, 4.0]).numpy()
    array([ 2.,  6., 24.], dtype=float32)
    """
    return _running(scan.cumprod, x, axis, exclusive, reverse)


def cumulative_logsumexp(
    x: Any,
    axis: Any = 0,
    exclusive: bool = False,
    reverse: bool = False,
    name: str | None = None,
) -> Tensor:
    """`log(cumsum(exp(x)))` along `axis`, without overflow."""
    return _running(scan.cumulative_logsumexp, x, axis, exclusive, reverse)


def _running(primitive: Primitive, x: Any, axis: Any, exclusive: Any, reverse: Any) -> Tensor:
    x = as_tensor(x)
    axis = axis_of(axis, x, primitive.name)
    return scan.along(primitive, x, axis=axis, exclusive=exclusive, reverse=reverse)


@dispatched
def softmax(logits: Any, axis: Any = None, name: str | None = None) -> Tensor:
    """`exp(x) / sum(exp(x))` along `axis`, the last one if none is given.

    >>> tf.nn.softmax([[0.0, 0.0], [1000.0, 0.0]]).numpy()
    array([[0.5, 0.5],
           [1. , 0. ]], dtype=float32)
    """
    x = as_tensor(logits)
    axis = axis_of(-1 if axis is None else axis, x, "softmax")
    return apply(normalization.softmax, (x,), {"axis": axis})


def log_softmax(logits: Any, axis: Any = None, name: str | None = None) -> Tensor:
    """`log(softmax(x))` along `axis`, the last one if none is given; exact in the tails."""
    x = as_tensor(logits)
    axis = axis_of(-1 if axis is None else axis, x, "log_softmax")
    return apply(normalization.log_softmax, (x,), {"axis": axis})


def l2_normalize(
    x: Any, axis: Any = None, epsilon: float = 1e-12, name: str | None = None, dim: Any = None
) -> Tensor:
    """`x / sqrt(max(sum(|x| ** 2), epsilon))` over `axis`; `dim` is an old name for it.

    >>> tf.math.l2_normalize([3.0, 4.0]).numpy()
    array([0.6, 0.8], dtype=float32)
    """
    if axis is not None and dim is not None:
        raise ValueError("l2_normalize: received both `axis` and `dim`. Use `axis` alone.")
    x = as_tensor(x)
    axis = dim if axis is None else axis
    total = _reduced(reduction.sum, _power(x), axis, True, "l2_normalize")
    floor = as_tensor(epsilon, total._spec.dtype)
    scale = apply(el.rsqrt, (apply(ar.maximum, (total, floor)),))
    return x * to_dtype(scale, x._spec.dtype)
