"""Elementwise functions."""

from __future__ import annotations

import math
from typing import Any

from retrograde.core.apply import Primitive, apply
from retrograde.core.tensor import Tensor
from retrograde.ops import arithmetic as ar
from retrograde.ops import elementary as el
from retrograde.ops import reduction
from retrograde.ops.arguments import integer
from retrograde.ops.shaping import take_slice
from retrograde.values import dtypes
from retrograde.values.arguments import as_text, brief
from retrograde.values.shapes import normalize_axis

_MAX_DECIMALS = 308  # 10**309 overflows float64

# Replacements of primitives for booleans.
BOOL_PRIMITIVES = {
    ar.add: ar.logical_or,
    ar.multiply: ar.logical_and,
    ar.maximum: ar.logical_or,
    ar.minimum: ar.logical_and,
    ar.bitwise_and: ar.logical_and,
    ar.bitwise_or: ar.logical_or,
    ar.bitwise_xor: ar.logical_xor,
    ar.invert: ar.logical_not,
    reduction.max: reduction.any,
    reduction.min: reduction.all,
}


def is_bool(x: Tensor) -> bool:
    """Returns whether `x` holds booleans."""
    return x._spec.dtype.kind == "b"


def numeric_or_logical(primitive: Primitive, *xs: Tensor) -> Tensor:
    """Applies `primitive`, or its replacement for booleans."""
    return apply(BOOL_PRIMITIVES[primitive] if is_bool(xs[0]) else primitive, xs)


def replace_nan(x: Tensor, value: float) -> tuple[Tensor, Tensor | None]:
    """Replaces NaN by `value`. Also returns a mask of NaN, or `None` if the dtype has no NaN."""
    dtype = x._spec.dtype
    if dtype not in dtypes.INEXACT:
        return x, None
    missing = ar.is_nan(x)
    return ar.select(missing, Tensor(dtype.type(value)), x), missing


def heaviside(x1: Tensor, x2: Tensor) -> Tensor:
    """Returns 0 where `x1` is negative, 1 where it is positive, `x2` where it is zero."""
    kind = x2._spec.dtype.type
    y = ar.select(x1 > 0, Tensor(kind(1)), x2)
    return ar.select(x1 < 0, Tensor(kind(0)), y)


def trunc(x: Tensor) -> Tensor:
    """Rounds towards zero."""
    return ar.select(x < 0, el.ceil(x), el.floor(x))


def around(x: Tensor, decimals: Any) -> Tensor:
    """Rounds to a number of decimals. Negative numbers round to tens, hundreds and so on."""
    decimals = integer(decimals, "around: decimals")
    if abs(decimals) > _MAX_DECIMALS:
        raise ValueError(
            f"around: `decimals` must be from {-_MAX_DECIMALS} to {_MAX_DECIMALS}. Received: "
            f"{brief(decimals)}."
        )
    factor = 10.0 ** abs(decimals)
    return el.round_(x * factor) / factor if decimals >= 0 else el.round_(x / factor) * factor


def sinc(x: Tensor) -> Tensor:
    """Computes `sin(pi * x) / (pi * x)`, which is 1 at zero."""
    angle = x * math.pi
    near_zero = 1.0 - ar.square(angle) / 6.0  # so that derivatives are right there too
    return ar.select(angle == 0.0, near_zero, el.sin(angle) / angle)


def logaddexp(x1: Tensor, x2: Tensor, log_base: float = 1.0) -> Tensor:
    """Computes the logarithm of a sum of powers; `log_base` is the natural logarithm of the base.

    If the numbers are equal, each receives half of the gradient.
    """
    larger, smaller = ar.select(x1 >= x2, x1, x2), ar.select(x1 >= x2, x2, x1)
    difference = smaller - larger
    y = larger + el.softplus(difference * log_base) / log_base
    return ar.select(ar.is_nan(difference), x1 + x2, y)  # infinities of one sign, or NaN


def logaddexp2(x1: Tensor, x2: Tensor) -> Tensor:
    """Computes `log2(2**x1 + 2**x2)`."""
    return logaddexp(x1, x2, math.log(2))


def diff(x: Tensor, n: int = 1, axis: Any = -1) -> Tensor:
    """Computes differences of neighboring elements `n` times; for booleans, whether they differ."""
    if n < 0:
        raise ValueError(f"diff: `n` must not be negative. Received: {n}.")
    if not -x.ndim <= axis < x.ndim:
        raise ValueError(f"diff: there is no axis {as_text(axis)} in shape {x._spec.shape}.")
    position = normalize_axis(axis, x.ndim, "diff")
    difference = ar.not_equal if is_bool(x) else ar.subtract
    for _ in range(n):
        lower, upper = neighbors(x, position)
        x = difference(upper, lower)
    return x


def neighbors(x: Tensor, axis: int) -> tuple[Tensor, Tensor]:
    """Returns all elements along `axis` but the last, and all but the first."""
    shape = x._spec.shape
    count, full = shape[axis], [(0, n, 1) for n in shape]
    ends = ((0, max(count - 1, 0), 1), (min(1, count), count, 1))
    return tuple(take_slice(x, where=(*full[:axis], end, *full[axis + 1 :])) for end in ends)
