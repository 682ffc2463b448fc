"""Counts, histograms and Sobol sequences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from retrograde.core.apply import apply
from retrograde.core.recorders import changes
from retrograde.core.tensor import Tensor
from retrograde.math._inputs import accept
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
    """How often each of the numbers 0, 1, 2, ... is in `arr`; or the sums of their weights.

    The result is as long as it takes, but at least `minlength` and at most `maxlength`; numbers
    that do not fit are not counted. With `axis=-1` each row is counted by itself. With
    `binary_output` it is 1 for the numbers that are there. A gradient flows to the weights.

    >>> tf.math.bincount([1, 1, 3]).numpy()
    array([0, 2, 0, 1], dtype=int32)
    """
    if axis not in (None, 0, -1):
        raise ValueError(f"bincount: expected an axis of 0, -1 or None. Received: {as_text(axis)}.")
    if weights is not None and binary_output:
        raise ValueError("bincount: expected either `binary_output` or `weights`, not both.")
    numbers = _numbers(arr)
    weights = _weights(weights, numbers, numpy_dtype(dtype))
    together = axis != -1 or numbers.ndim < 2
    if together:
        one_row = (1, numbers._spec.size)
        numbers, weights = reshape(numbers, shape=one_row), reshape(weights, shape=one_row)
    y = _counted(numbers, weights, _length(numbers, minlength, maxlength))
    y = reshape(y, shape=y._spec.shape[1:]) if together else y
    return minimum(y, 1) if binary_output else y


def _numbers(arr: Any) -> Tensor:
    x = as_tensor(arr)
    accept(x, ("int32", "int64", "float32", "float64"), "arr", "bincount")
    if x.ndim > 2:
        raise invalid(f"bincount: expected at most two axes. Received: shape {x._spec.shape}.")
    return _in_range(to_dtype(x, _INT64), None, "bincount: expected numbers")


def _in_range(x: Tensor, high: int | None, what: str) -> Tensor:
    return apply(check_range, (x,), {"low": 0, "high": high, "what": what})


def _weights(weights: Any, numbers: Tensor, dtype: np.dtype) -> Tensor:
    if weights is None:
        return Tensor(np.ones(numbers._spec.shape, dtype))
    w = as_tensor(weights)
    accept(w, ("int32", "int64", "float32", "float64"), "weights", "bincount")
    if w._spec.shape != numbers._spec.shape:
        raise invalid(
            f"bincount: expected weights of shape {numbers._spec.shape}, that of arr. "
            f"Received: shape {w._spec.shape}."
        )
    return w


def _length(numbers: Tensor, minlength: Any, maxlength: Any) -> int:
    least = None if minlength is None else integer(minlength, "bincount: minlength")
    most = None if maxlength is None else integer(maxlength, "bincount: maxlength")
    if least is not None and least == most:
        return least  # whatever the numbers are
    return _classes_in((numbers,), least or 0, most)._spec.size


@host_function(dynamic_shapes=True)
def _classes_in(numbers: Sequence[Tensor], least: int, most: int | None) -> Tensor:
    """Something as long as there are classes up to the largest of `numbers`, within limits."""
    length = max([int(np.asarray(x).max(initial=-1)) + 1 for x in numbers] + [least])
    return Tensor(np.zeros(length if most is None else min(length, most), bool))


def _counted(numbers: Tensor, weights: Tensor, length: int) -> Tensor:
    """The sums of weights in each row, by number; what does not fit is put last and cut off."""
    rows, columns = numbers._spec.shape
    width = length + 1
    starts = Tensor((np.arange(rows) * width).reshape(rows, 1))
    places = reshape(minimum(numbers, length) + starts, shape=(rows * columns,))
    flat = reshape(weights, shape=(rows * columns,))
    y = reshape(scatter_add(flat, places, shape=(rows * width,)), shape=(rows, width))
    return take_slice(y, where=((0, rows, 1), (0, length, 1)))


def confusion_matrix(
    labels: Any,
    predictions: Any,
    num_classes: Any = None,
    weights: Any = None,
    dtype: Any = dtypes.int32,
    name: str | None = None,
) -> Tensor:
    """How often each label (a row) was predicted to be each class (a column).

    >>> tf.math.confusion_matrix([0, 1, 1], [0, 0, 1]).numpy()
    array([[1, 0],
           [1, 1]], dtype=int32)
    """
    x, y = _squeezed(as_tensor(labels), as_tensor(predictions))
    if x.ndim != 1 or x._spec.shape != y._spec.shape:
        raise invalid(
            "confusion_matrix: expected labels and predictions along one axis, of the same length. "
            f"Received: shapes {x._spec.shape} and {y._spec.shape}."
        )
    x, y = to_dtype(x, _INT64), to_dtype(y, _INT64)
    size = _classes(x, y, num_classes)
    x = _in_range(x, size, "confusion_matrix: expected labels")
    y = _in_range(y, size, "confusion_matrix: expected predictions")
    wanted = numpy_dtype(dtype)
    w = Tensor(np.ones(x._spec.shape, wanted)) if weights is None else as_tensor(weights)
    if w._spec.shape != x._spec.shape:
        raise ValueError(
            f"confusion_matrix: expected weights of shape {x._spec.shape}, that of labels. "
            f"Received: shape {w._spec.shape}."
        )
    flat = scatter_add(to_dtype(w, wanted), x * size + y, shape=(size * size,))
    return reshape(flat, shape=(size, size))


def _squeezed(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """The one that has an axis of size 1 more than the other, without it."""
    if x.ndim == y.ndim + 1 and x._spec.shape[-1] == 1:
        x = reshape(x, shape=x._spec.shape[:-1])
    elif y.ndim == x.ndim + 1 and y._spec.shape[-1] == 1:
        y = reshape(y, shape=y._spec.shape[:-1])
    return x, y


def _classes(labels: Tensor, predictions: Tensor, num_classes: Any) -> int:
    if num_classes is not None:
        return integer(num_classes, "confusion_matrix: num_classes")
    if not labels._spec.size:
        raise invalid("confusion_matrix: there are no labels. Pass num_classes.")
    return _classes_in((labels, predictions), 0, None)._spec.size


def histogram_fixed_width_bins(
    values: Any,
    value_range: Any,
    nbins: Any = 100,
    dtype: Any = dtypes.int32,
    name: str | None = None,
) -> Tensor:
    """Which of `nbins` equal parts of the range each value is in; those outside, at its ends.

    As in TensorFlow the result is int32, whatever `dtype` is.

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
    """How many values are in each of `nbins` equal parts of the range.

    Those below it count in the first part, those above it in the last.

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
    accept(x, ("int32", "int64", "float32", "float64"), "values", "histogram_fixed_width")
    places = reshape(_bins(x, low, high, count, True), shape=(x._spec.size,))
    return scatter_add(Tensor(np.ones(x._spec.size, kind)), places, shape=(count,))


_hosted_histogram = host_function(_histogram, dynamic_shapes=True)


def _bins(x: Tensor, low: float, high: float, count: int, strict: bool) -> Tensor:
    return apply(sorting.bins, (x,), {"low": low, "high": high, "count": count, "strict": strict})


def _range(value_range: Any, nbins: Any, what: str) -> tuple[float, float, int]:
    ends = np.asarray(as_tensor(value_range))
    if ends.shape != (2,):
        raise invalid(
            f"{what}: expected two numbers for value_range. Received: shape {ends.shape}."
        )
    count = integer(nbins, f"{what}: nbins")
    if count < 1:
        raise invalid(f"{what}: expected nbins > 0. Received: {count}.")
    return float(ends[0]), float(ends[1]), count


def sobol_sample(
    dim: Any,
    num_results: Any,
    skip: Any = 0,
    dtype: Any = dtypes.float32,
    name: str | None = None,
) -> Tensor:
    """Points of the Sobol sequence, which fill the unit cube evenly; without its first, 0.

    >>> tf.math.sobol_sample(dim=2, num_results=3).numpy()
    array([[0.5 , 0.5 ],
           [0.75, 0.25],
           [0.25, 0.75]], dtype=float32)
    """
    qmc = import_scipy("stats.qmc", "sobol_sample")
    sizes = {"dim": dim, "num_results": num_results, "skip": skip}
    sizes = {key: integer(value, f"sobol_sample: {key}") for key, value in sizes.items()}
    least, most = {"dim": 1, "num_results": 1, "skip": 0}, {"dim": qmc.Sobol.MAXDIM}
    for key, value in sizes.items():
        if not least[key] <= value <= most.get(key, value):
            upper = f" <= {most[key]}" if key in most else ""
            raise invalid(
                f"sobol_sample: expected {least[key]} <= {key}{upper}. Received: {value}."
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
    """Skips `count` points at once: SciPy does it one by one, which takes minutes for many.

    The bits of a point are those of the direction numbers that the Gray code of its place names.
    """
    directions = getattr(points, "_sv", None)
    if directions is None or not hasattr(points, "_quasi"):
        points.fast_forward(count)
        return
    place = count - 1
    code = place ^ place >> 1
    for bit in range(code.bit_length()):
        if code >> bit & 1:
            points._quasi ^= directions[:, bit]
    points.num_generated = count
