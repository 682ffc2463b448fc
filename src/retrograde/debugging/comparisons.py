"""Assertions about values."""

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

_FEW = 3  # elements to show in a message, unless `summarize` says otherwise


def Assert(condition: Any, data: Any, summarize: int | None = None, name: Any = None) -> None:
    """Raises `InvalidArgumentError` with the tensors in `data` if `condition` is not true.

    >>> tf.debugging.Assert(tf.reduce_all(tf.constant([1.0]) > 0.0), ["negative"])
    """
    if condition is not None and condition:
        return
    if not isinstance(data, (list, tuple)):
        raise TypeError(f"Assert: `data` must be a list. Received: {shown(data)}.")
    lines = [_few(as_tensor(value), summarize) for value in data]
    raise invalid(
        f"Expected '{as_text(condition)}' to be true. Summarized data: " + "\n".join(lines)
    )


def _few(x: Tensor, summarize: int | None) -> str:
    """The first elements of `x`, in words."""
    flat = np.asarray(x._array).reshape(-1)
    shown = flat[: _count(summarize, flat.size)]
    return ", ".join([*(str(v) for v in shown), *(["..."] if shown.size < flat.size else [])])


def _count(summarize: int | None, size: int) -> int:
    """How many of `size` elements to show: all of them for a negative number."""
    if summarize is None:
        return min(_FEW, size)
    return size if summarize < 0 else min(summarize, size)


# Two tensors, compared element by element


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
        words = [as_text(message)] if message else []
        words += [f"Condition x {sign} y did not hold."]
        if x.shape == y.shape and x.ndim:
            words += _differences(result, x, y, summarize)
        for name, values in (("x", x), ("y", y)):
            flat = np.asarray(values._array).reshape(-1)
            count = _count(summarize, flat.size)
            words += [f"First {count} elements of {name}:", str(flat[:count])]
        raise invalid("\n".join(words))


def _differences(result: Tensor, x: Tensor, y: Tensor, summarize: int | None) -> list[str]:
    """Where the condition did not hold, and the values there."""
    places = np.argwhere(~result._array)
    places = places[: _count(summarize, len(places))]
    at = tuple(places.T)
    return [
        f"Indices of first {len(places)} different values:",
        str(places),
        "Corresponding x values:",
        str(x._array[at]),
        "Corresponding y values:",
        str(y._array[at]),
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

    Both tolerances are ten times the distance between 1 and the next number, unless given.

    >>> tf.debugging.assert_near(1.0, 1.0 + 1e-7)
    """
    x = as_tensor(x)
    dtype = x._spec.dtype
    if dtype not in dtypes.INEXACT:
        raise ValueError(
            f"assert_near: `x` has dtype {x.dtype.name}. Expected a floating-point or complex "
            "dtype: use assert_equal for others."
        )
    y = as_tensor(y, dtype)
    part = x.dtype.real_dtype
    default = 10 * float(ml_dtypes.finfo(part.numpy_dtype).eps)
    rtol, atol = (
        as_tensor(default if tolerance is None else tolerance, part.numpy_dtype)
        for tolerance in (rtol, atol)
    )
    if not reduce_all(magnitude(x - y) < atol + rtol * magnitude(y)):
        words = [f"{as_text(message)}.  "] if message else []
        words += [f"x and y not equal to tolerance rtol = {rtol._array}, atol = {atol._array}"]
        words += [_shown("x", x, summarize), _shown("y", y, summarize)]
        raise invalid("\n".join(words))


# One tensor, compared with zero


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
        words = [f"{as_text(message)}.  "] if message else []
        words += [f"Condition x {sign} 0 did not hold element-wise:", _shown("x", x, summarize)]
        raise invalid("\n".join(words))


def _shown(name: str, x: Tensor, summarize: int | None) -> str:
    return f"{name} (shape={x.shape} dtype={x.dtype.name}) = \n{_few(x, summarize)}"
