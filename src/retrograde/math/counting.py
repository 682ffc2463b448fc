"""Counts, histograms and Sobol sequences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from retrograde.core.apply import apply
from retrograde.core.recorders import changes
from retrograde.core.tensor import Tensor
from retrograde.math._inputs import check_dtype
from retrograde.math.arithmetic import minimum
from retrograde.ops import sorting
from retrograde.ops.arguments import integer
from retrograde.ops.casting import to_dtype
from retrograde.ops.checks import check_range
from retrograde.ops.conversion import as_tensor, numpy_dtype
from retrograde.ops.host_functions import host_function
from retrograde.ops.indexing import scatter_add
from retrograde.ops.shaping import reshape, take_slice
from retrograde.values import dtypes
from retrograde.values.arguments import as_text
from retrograde.values.composites import dispatched
from retrograde.values.errors import allocate, invalid
from retrograde.values.scipy_import import import_scipy

_INT64 = np.dtype(np.int64)


@dispatched
def bincount(
    arr: Any,
    weights: Any = None,
    minlength: Any = None,
    maxlength: Any = None,
    dtype: Any = dtypes.int32,
    name: str | None = None,
    axis: int | None = None,
    binary_output: bool = False,
) -> Tensor:
    """Counts how often each of the numbers 0, 1, 2, ... occurs in `arr`, or sums their weights.

    The length of the result is the largest number plus 1, but at least `minlength` and at most
    `maxlength`. Numbers that do not fit are not counted. With `axis=-1` each row is counted
    separately. With `binary_output` the result is 1 for each number that occurs. A gradient flows
    to the weights.

    >>> tf.math.bincount([1, 1, 3]).numpy()
    array([0, 2, 0, 1], dtype=int32)
    """
    if axis not in (None, 0, -1):
        raise ValueError(f"bincount: expected an axis of 0, -1 or None. Received: {as_text(axis)}.")
    if weights is not None and binary_output:
        raise ValueError("bincount: expected either `binary_output` or `weights`, not both.")
    numbers = _numbers(arr, axis)
    weights = _weights(weights, numbers, numpy_dtype(dtype))
    flatten = axis != -1 or numbers.ndim < 2
    if flatten:
        one_row = (1, numbers._spec.size)
        numbers, weights = reshape(numbers, shape=one_row), reshape(weights, shape=one_row)
    y = _sum_by_number(numbers, weights, _length(numbers, minlength, maxlength))
    y = reshape(y, shape=y._spec.shape[1:]) if flatten else y
    return minimum(y, 1) if binary_output else y


def _numbers(arr: Any, axis: int | None) -> Tensor:
    x = as_tensor(arr)
    check_dtype(x, ("int32", "int64", "float32", "float64"), "arr", "bincount")
    if x.ndim > 2 and axis == -1:
        raise invalid(
            "bincount: expected `arr` of rank at most 2 with axis=-1. Received: shape "
            f"{x._spec.shape}."
        )
    return _in_range(to_dtype(x, _INT64), None, "bincount: expected numbers")


def _in_range(x: Tensor, high: int | None, op_name: str) -> Tensor:
    return apply(check_range, (x,), {"low": 0, "high": high, "requirement": op_name})


def _weights(weights: Any, numbers: Tensor, dtype: np.dtype) -> Tensor:
    if weights is None:
        return Tensor(np.ones(numbers._spec.shape, dtype))
    w = as_tensor(weights)
    check_dtype(w, ("int32", "int64", "float32", "float64"), "weights", "bincount")
    if w._spec.shape != numbers._spec.shape:
        raise invalid(
            f"bincount: expected weights of shape {numbers._spec.shape}, the shape of arr. "
            f"Received: shape {w._spec.shape}."
        )
    return w


def _length(numbers: Tensor, minlength: Any, maxlength: Any) -> int:
    low = None if minlength is None else integer(minlength, "bincount: minlength")
    high = None if maxlength is None else integer(maxlength, "bincount: maxlength")
    if low is not None and low == high:
        return low
    return _up_to_largest((numbers,), low or 0, high)._spec.size


@host_function(dynamic_shapes=True)
def _up_to_largest(numbers: Sequence[Tensor], minimum: int, maximum: int | None) -> Tensor:
    """Returns a tensor whose length is the largest of `numbers` plus one, within limits."""
    length = max([int(np.asarray(x).max(initial=-1)) + 1 for x in numbers] + [minimum])
    return Tensor(np.zeros(length if maximum is None else min(length, maximum), bool))


def _sum_by_number(numbers: Tensor, weights: Tensor, length: int) -> Tensor:
    """Sums the weights in each row by number; numbers beyond `length` are dropped."""
    rows, columns = numbers._spec.shape
    width = length + 1
    starts = Tensor((np.arange(rows) * width).reshape(rows, 1))
    positions = reshape(minimum(numbers, length) + starts, shape=(rows * columns,))
    flat = reshape(weights, shape=(rows * columns,))
    y = reshape(scatter_add(flat, positions, shape=(rows * width,)), shape=(rows, width))
    return take_slice(y, where=((0, rows, 1), (0, length, 1)))


def confusion_matrix(
    labels: Any,
    predictions: Any,
    num_classes: Any = None,
    weights: Any = None,
    dtype: Any = dtypes.int32,
    name: str | None = None,
) -> Tensor:
    """Counts how often each label (row) was predicted as each class (column).

    >>> tf.math.confusion_matrix([0, 1, 1], [0, 0, 1]).numpy()
    array([[1, 0],
           [1, 1]], dtype=int32)
    """
    x, y = _squeeze_last_axis(as_tensor(labels), as_tensor(predictions))
    if x.ndim != 1 or x._spec.shape != y._spec.shape:
        raise invalid(
            "confusion_matrix: expected labels and predictions of rank 1 and of the same length. "
            f"Received: shapes {x._spec.shape} and {y._spec.shape}."
        )
    x, y = to_dtype(x, _INT64), to_dtype(y, _INT64)
    size = _classes(x, y, num_classes)
    x = _in_range(x, size, "confusion_matrix: expected labels")
    y = _in_range(y, size, "confusion_matrix: expected predictions")
    numpy_type = numpy_dtype(dtype)
    w = Tensor(np.ones(x._spec.shape, numpy_type)) if weights is None else as_tensor(weights)
    if w._spec.shape != x._spec.shape:
        raise ValueError(
            f"confusion_matrix: expected weights of shape {x._spec.shape}, the shape of labels. "
            f"Received: shape {w._spec.shape}."
        )
    flat = scatter_add(to_dtype(w, numpy_type), x * size + y, shape=(size * size,))
    return reshape(flat, shape=(size, size))


def _squeeze_last_axis(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Removes a last axis of size 1 that only one of `x` and `y` has."""
    if x.ndim == y.ndim + 1 and x._spec.shape[-1] == 1:
        x = reshape(x, shape=x._spec.shape[:-1])
    elif y.ndim == x.ndim + 1 and y._spec.shape[-1] == 1:
        y = reshape(y, shape=y._spec.shape[:-1])
    return x, y


def _classes(labels: Tensor, predictions: Tensor, num_classes: Any) -> int:
    if num_classes is not None:
        return integer(num_classes, "confusion_matrix: num_classes")
    if not labels._spec.size:
        raise invalid("confusion_matrix: `labels` is empty. Pass num_classes.")
    return _up_to_largest((labels, predictions), 0, None)._spec.size


def histogram_fixed_width_bins(
    values: Any,
    value_range: Any,
    nbins: Any = 100,
    dtype: Any = dtypes.int32,
    name: str | None = None,
) -> Tensor:
    """Returns which of `nbins` equal-width bins each value falls into.

    Values below the range fall into the first bin, values above it into the last. As in TensorFlow
    the result is int32, regardless of `dtype`.

    >>> tf.histogram_fixed_width_bins([-1.0, 1.5, 5.0], [0.0, 5.0], nbins=5).numpy()
    array([0, 1, 4], dtype=int32)
    """
    ends = as_tensor(value_range)
    bins = _hosted_bins if changes(ends) else _bins_between
    return bins(values, ends, nbins)


def _bins_between(values: Any, value_range: Any, nbins: Any) -> Tensor:
    low, high, count = _range(value_range, nbins, "histogram_fixed_width_bins")
    return _bins(as_tensor(values), low, high, count, False)


_hosted_bins = host_function(_bins_between)


def histogram_fixed_width(
    values: Any,
    value_range: Any,
    nbins: Any = 100,
    dtype: Any = dtypes.int32,
    name: str | None = None,
) -> Tensor:
    """Counts the values in each of `nbins` equal-width bins of the range.

    Values below the range are counted in the first bin, values above it in the last.

    >>> tf.histogram_fixed_width([-1.0, 0.0, 1.5, 2.0, 5.0, 15.0], [0.0, 5.0], nbins=5).numpy()
    array([2, 1, 1, 0, 2], dtype=int32)
    """
    kind = numpy_dtype(dtype)
    if kind not in (np.int32, np.int64):
        raise invalid(
            "histogram_fixed_width: expected a dtype of int32 or int64. "
            f"Received: {dtypes.of(kind).name}."
        )
    ends = as_tensor(value_range)
    histogram = _hosted_histogram if changes(ends) else _histogram
    return histogram(values, ends, nbins, kind)


def _histogram(values: Any, value_range: Any, nbins: Any, kind: np.dtype) -> Tensor:
    low, high, count = _range(value_range, nbins, "histogram_fixed_width")
    if not low < high:
        raise invalid(
            "histogram_fixed_width: expected value_range[0] < value_range[1]. "
            f"Received: [{low}, {high}]."
        )
    x = as_tensor(values)
    check_dtype(x, ("int32", "int64", "float32", "float64"), "values", "histogram_fixed_width")
    positions = reshape(_bins(x, low, high, count, True), shape=(x._spec.size,))
    return scatter_add(Tensor(np.ones(x._spec.size, kind)), positions, shape=(count,))


_hosted_histogram = host_function(_histogram, dynamic_shapes=True)


def _bins(x: Tensor, low: float, high: float, count: int, strict: bool) -> Tensor:
    return apply(sorting.bins, (x,), {"low": low, "high": high, "count": count, "strict": strict})


def _range(value_range: Any, nbins: Any, op_name: str) -> tuple[float, float, int]:
    ends = np.asarray(as_tensor(value_range))
    if ends.shape != (2,):
        raise invalid(
            f"{op_name}: expected value_range to hold two numbers. Received: shape {ends.shape}."
        )
    count = integer(nbins, f"{op_name}: nbins")
    if count < 1:
        raise invalid(f"{op_name}: expected nbins > 0. Received: {count}.")
    return float(ends[0]), float(ends[1]), count


def sobol_sample(
    dim: Any,
    num_results: Any,
    skip: Any = 0,
    dtype: Any = dtypes.float32,
    name: str | None = None,
) -> Tensor:
    """Returns points of the Sobol sequence in the unit cube, without the first point, 0.

    >>> tf.math.sobol_sample(dim=2, num_results=3).numpy()
    array([[0.5 , 0.5 ],
           [0.75, 0.25],
           [0.25, 0.75]], dtype=float32)
    """
    qmc = import_scipy("stats.qmc", "sobol_sample")
    sizes = {"dim": dim, "num_results": num_results, "skip": skip}
    sizes = {key: integer(value, f"sobol_sample: {key}") for key, value in sizes.items()}
    minimums, maximums = {"dim": 1, "num_results": 1, "skip": 0}, {"dim": qmc.Sobol.MAXDIM}
    for key, value in sizes.items():
        if not minimums[key] <= value <= maximums.get(key, value):
            upper = f" <= {maximums[key]}" if key in maximums else ""
            raise invalid(
                f"sobol_sample: expected {minimums[key]} <= {key}{upper}. Received: {value}."
            )
    kind = numpy_dtype(dtype)
    if kind not in (np.float32, np.float64):
        raise invalid(
            f"sobol_sample: expected a dtype of float32 or float64. "
            f"Received: {dtypes.of(kind).name}."
        )
    if sizes["skip"] + sizes["num_results"] >= 2**31:
        raise invalid(
            "sobol_sample: expected skip + num_results < 2**31. Received: "
            f"{sizes['skip']} + {sizes['num_results']}."
        )
    points = qmc.Sobol(sizes["dim"], scramble=False, bits=32)
    _skip(points, 1 + sizes["skip"])
    return Tensor(allocate("sobol_sample", points.random, sizes["num_results"]).astype(kind))


def _skip(points: Any, count: int) -> None:
    """Skips `count` points at once; SciPy's `fast_forward` generates them one by one.

    A point is the XOR of the direction numbers that are selected by the Gray code of its index.
    """
    directions = getattr(points, "_sv", None)
    if directions is None or not hasattr(points, "_quasi"):
        points.fast_forward(count)
        return
    index = count - 1
    code = index ^ index >> 1
    for bit in range(code.bit_length()):
        if code >> bit & 1:
            points._quasi ^= directions[:, bit]
    points.num_generated = count
