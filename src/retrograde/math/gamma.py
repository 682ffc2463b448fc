"""The gamma function and its relatives, the error functions and their inverses."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from retrograde.core.apply import apply
from retrograde.core.tensor import Tensor
from retrograde.math._inputs import binary, unary
from retrograde.ops import elementary as el
from retrograde.ops import reduction
from retrograde.ops import special as sp
from retrograde.ops._arrays import scalar
from retrograde.ops.conversion import as_tensor, one_dtype
from retrograde.values.composites import dispatched
from retrograde.values.conversion import tensor_or_variable
from retrograde.values.errors import invalid


def lgamma(x: Any, name: str | None = None) -> Tensor:
    """The logarithm of the absolute value of the gamma function.

    >>> tf.exp(tf.math.lgamma([1.0, 5.0])).numpy().round(3)
    array([ 1., 24.], dtype=float32)
    """
    return unary(sp.lgamma, x)


def digamma(x: Any, name: str | None = None) -> Tensor:
    """The derivative of `lgamma`; nan at 0 and the negative integers."""
    return unary(sp.digamma, x)


def polygamma(a: Any, x: Any, name: str | None = None) -> Tensor:
    """`digamma(x)` differentiated `a` times; nan unless `a` is 0, 1, 2, ...

    >>> tf.math.polygamma([0.0, 1.0, 2.0], 1.0).numpy().round(3)
    array([-0.577,  1.645, -2.404], dtype=float32)
    """
    return binary(sp.polygamma, a, x)


def zeta(x: Any, q: Any, name: str | None = None) -> Tensor:
    """The Hurwitz zeta function: the sum of (q + n) ** -x for n = 0, 1, 2, ..."""
    return binary(sp.zeta, x, q)


def lbeta(x: Any, name: str | None = None) -> Tensor:
    """The logarithm of the beta function of all elements along the last axis.

    >>> tf.math.lbeta([1.0, 2.0]).numpy()
    np.float32(-0.6931472)
    """
    x = as_tensor(x)
    if not x.ndim:
        raise invalid("lbeta: expected at least one axis. Received: shape ().")
    attrs = {"axis": (x.ndim - 1,), "keepdims": False}
    total = apply(sp.lgamma, (apply(reduction.sum, (x,), attrs),))
    return apply(reduction.sum, (apply(sp.lgamma, (x,)),), attrs) - total


def igamma(a: Any, x: Any, name: str | None = None) -> Tensor:
    """The lower regularised incomplete gamma function, from 0 at `x` = 0 to 1.

    It can be differentiated by `a` as well as by `x`, and any number of times.

    >>> tf.math.igamma(1.0, [0.0, np.log(2.0)]).numpy().round(4)
    array([0. , 0.5], dtype=float32)
    """
    return binary(sp.igamma, a, x)


def igammac(a: Any, x: Any, name: str | None = None) -> Tensor:
    """`1 - igamma(a, x)`, exact in the tail too."""
    return binary(sp.igammac, a, x)


def betainc(a: Any, b: Any, x: Any, name: str | None = None) -> Tensor:
    """The regularised incomplete beta function, from 0 at `x` = 0 to 1 at `x` = 1.

    As in TensorFlow, no gradient flows to `a` and `b`.

    >>> tf.math.betainc(2.0, 2.0, [0.0, 0.5, 1.0]).numpy()
    array([0. , 0.5, 1. ], dtype=float32)
    """
    return apply(sp.betainc, tuple(one_dtype((a, b, x))))


def erfc(x: Any, name: str | None = None) -> Tensor:
    """`1 - erf(x)`, exact in the tail too."""
    return unary(el.erfc, x)


def erfinv(x: Any, name: str | None = None) -> Tensor:
    """The inverse of `erf`; infinite at -1 and 1, nan beyond."""
    return unary(sp.erfinv, x)


@dispatched
def erfcinv(x: Any, name: str | None = None) -> Tensor:
    """The inverse of `erfc`; infinite at 0 and 2, nan beyond."""
    x = as_tensor(x)
    return unary(sp.ndtri, x * 0.5) * Tensor(scalar(-math.sqrt(0.5), x))


def ndtri(x: Any, name: str | None = None) -> Tensor:
    """The number below which a standard normal variable lies with probability `x`.

    >>> tf.math.ndtri([0.5, 0.975]).numpy().round(2)
    array([0.  , 1.96], dtype=float32)
    """
    return unary(sp.ndtri, x)


def nextafter(x1: Any, x2: Any, name: str | None = None) -> Tensor:
    """The next number that can be held after `x1`, on the way to `x2`.

    >>> tf.math.nextafter(1.0, 2.0).numpy()
    np.float32(1.0000001)
    """
    if tensor_or_variable(x1) is None and tensor_or_variable(x2) is None:
        x1, x2 = (as_tensor(x, np.dtype(np.float32)) for x in (x1, x2))
    y = binary(sp.nextafter, x1, x2)
    if y.dtype.size < 4:  # TensorFlow has it in full precision only
        raise invalid(
            f"nextafter: dtype {y.dtype.name} is not supported. Expected float32 or float64."
        )
    return y
