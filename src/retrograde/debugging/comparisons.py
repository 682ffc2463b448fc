"""Assertions about the values of tensors."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from retrograde.core.tensor import Tensor
from retrograde.math import abs as magnitude
from retrograde.math import equal, not_equal, reduce_all
from retrograde.ops.conversion import as_tensor
from retrograde.values import dtypes
from retrograde.values.arguments import as_text, shown
from retrograde.values.errors import invalid

_DEFAULT_SUMMARIZE = 3


def Assert(condition: Any, data: Any, summarize: int | None = None, name: Any = None) -> None:
    """Raises `InvalidArgumentError` with the tensors in `data` if `condition` is false.

    >>> tf.debugging.Assert(tf.reduce_all(tf.constant([1.0]) > 0.0), ["negative"])
    """
    if condition is not None and condition:
        return
    if not isinstance(data, (list, tuple)):
        raise TypeError(f"Assert: `data` must be a list. Received: {shown(data)}.")
    lines = [_summarize(as_tensor(value), summarize) for value in data]
    raise invalid(
        f"Expected '{as_text(condition)}' to be true. Summarized data: " + "\n".join(lines)
    )


def _summarize(x: Tensor, summarize: int | None) -> str:
    """Returns the first elements of `x` as text."""
    flat = np.asarray(x._array).reshape(-1)
    shown = flat[: _count(summarize, flat.size)]
    return ", ".join([*(str(v) for v in shown), *(["..."] if shown.size < flat.size else [])])


def _count(summarize: int | None, size: int) -> int:
    """Returns the number of elements to show: all of them if `summarize` is negative."""
    if summarize is None:
        return min(_DEFAULT_SUMMARIZE, size)
    return size if summarize < 0 else min(summarize, size)


# Elementwise comparisons of two tensors


def assert_equal(
    x: Any, y: Any, message: str | None = None, summarize: int | None = None, name: Any = None
) -> None:
    """Raises `InvalidArgumentError` unless `x == y` everywhere.

    >>> tf.debugging.assert_equal([1, 2], [1, 2])
    """
    _compare(equal, "==", x, y, message, summarize)


def assert_none_equal(
    x: Any, y: Any, summarize: int | None = None, message: str | None = None, name: Any = None
) -> None:
    """Raises `InvalidArgumentError` unless `x != y` everywhere."""
    _compare(not_equal, "!=", x, y, message, summarize)


def assert_greater(
    x: Any, y: Any, message: str | None = None, summarize: int | None = None, name: Any = None
) -> None:
    """Raises `InvalidArgumentError` unless `x > y` everywhere."""
    _compare(operator.gt, ">", x, y, message, summarize)


def assert_greater_equal(
    x: Any, y: Any, message: str | None = None, summarize: int | None = None, name: Any = None
) -> None:
    """Raises `InvalidArgumentError` unless `x >= y` everywhere."""
    _compare(operator.ge, ">=", x, y, message, summarize)


def assert_less(
    x: Any, y: Any, message: str | None = None, summarize: int | None = None, name: Any = None
) -> None:
    """Raises `InvalidArgumentError` unless `x < y` everywhere."""
    _compare(operator.lt, "<", x, y, message, summarize)


def assert_less_equal(
    x: Any, y: Any, message: str | None = None, summarize: int | None = None, name: Any = None
) -> None:
    """Raises `InvalidArgumentError` unless `x <= y` everywhere."""
    _compare(operator.le, "<=", x, y, message, summarize)


def _compare(
    holds: Callable, sign: str, x: Any, y: Any, message: str | None, summarize: int | None
) -> None:
    x, y = as_tensor(x), as_tensor(y)
    result = holds(x, y)
    if not reduce_all(result):
        lines = [as_text(message)] if message else []
        lines += [f"Condition x {sign} y did not hold."]
        if x.shape == y.shape and x.ndim:
            lines += _differences(result, x, y, summarize)
        for name, values in (("x", x), ("y", y)):
            flat = np.asarray(values._array).reshape(-1)
            count = _count(summarize, flat.size)
            lines += [f"First {count} elements of {name}:", str(flat[:count])]
        raise invalid("\n".join(lines))


def _differences(result: Tensor, x: Tensor, y: Tensor, summarize: int | None) -> list[str]:
    """Returns the indices where the condition did not hold, and the values there."""
    indices = np.argwhere(~result._array)
    indices = indices[: _count(summarize, len(indices))]
    positions = tuple(indices.T)
    return [
        f"Indices of first {len(indices)} different values:",
        str(indices),
        "Corresponding x values:",
        str(x._array[positions]),
        "Corresponding y values:",
        str(y._array[positions]),
    ]


def assert_near(
    x: Any,
    y: Any,
    rtol: Any = None,
    atol: Any = None,
    message: str | None = None,
    summarize: int | None = None,
    name: Any = None,
) -> None:
    """Raises `InvalidArgumentError` unless `abs(x - y) < atol + rtol * abs(y)` everywhere.

    The default of both tolerances is ten times the machine epsilon of the dtype.

    >>> tf.debugging.assert_near(1.0, 1.0 + 1e-7)
    """
    x = as_tensor(x)
    dtype = x._spec.dtype
    if dtype not in dtypes.INEXACT:
        raise ValueError(
            f"assert_near: `x` has dtype {x.dtype.name}. Expected a floating-point or complex "
            "dtype. Use assert_equal for other dtypes."
        )
    y = as_tensor(y, dtype)
    real = x.dtype.real_dtype
    default = 10 * float(ml_dtypes.finfo(real.numpy_dtype).eps)
    rtol, atol = (
        as_tensor(default if tolerance is None else tolerance, real.numpy_dtype)
        for tolerance in (rtol, atol)
    )
    if not reduce_all(magnitude(x - y) < atol + rtol * magnitude(y)):
        lines = [f"{as_text(message)}.  "] if message else []
        lines += [f"x and y not equal to tolerance rtol = {rtol._array}, atol = {atol._array}"]
        lines += [_format("x", x, summarize), _format("y", y, summarize)]
        raise invalid("\n".join(lines))


# Comparisons with zero


def assert_positive(
    x: Any, message: str | None = None, summarize: int | None = None, name: Any = None
) -> None:
    """Raises `InvalidArgumentError` unless `x > 0` everywhere."""
    _compare_with_zero(operator.gt, ">", x, message, summarize)


def assert_negative(
    x: Any, message: str | None = None, summarize: int | None = None, name: Any = None
) -> None:
    """Raises `InvalidArgumentError` unless `x < 0` everywhere."""
    _compare_with_zero(operator.lt, "<", x, message, summarize)


def assert_non_negative(
    x: Any, message: str | None = None, summarize: int | None = None, name: Any = None
) -> None:
    """Raises `InvalidArgumentError` unless `x >= 0` everywhere."""
    _compare_with_zero(operator.ge, ">=", x, message, summarize)


def assert_non_positive(
    x: Any, message: str | None = None, summarize: int | None = None, name: Any = None
) -> None:
    """Raises `InvalidArgumentError` unless `x <= 0` everywhere."""
    _compare_with_zero(operator.le, "<=", x, message, summarize)


def _compare_with_zero(
    holds: Callable, sign: str, x: Any, message: str | None, summarize: int | None
) -> None:
    x = as_tensor(x)
    zero = as_tensor(0, x._spec.dtype)
    if not reduce_all(holds(x, zero)):
        lines = [f"{as_text(message)}.  "] if message else []
        lines += [f"Condition x {sign} 0 did not hold element-wise:", _format("x", x, summarize)]
        raise invalid("\n".join(lines))


def _format(name: str, x: Tensor, summarize: int | None) -> str:
    return f"{name} (shape={x.shape} dtype={x.dtype.name}) = \n{_summarize(x, summarize)}"
