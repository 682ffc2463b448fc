"""Gamma and related functions, error functions and their inverses."""

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
    """Computes the logarithm of the absolute value of the gamma function.

    >>> tf.exp(tf.math.lgamma([1.0, 5.0])).numpy().round(3)
    array([ 1., 24.], dtype=float32)
    """
    return unary(sp.lgamma, x)


def digamma(x: Any, name: str | None = None) -> Tensor:
    """Computes the derivative of `lgamma`; NaN at 0 and the negative integers."""
    return unary(sp.digamma, x)


def polygamma(a: Any, x: Any, name: str | None = None) -> Tensor:
    """Computes the `a`-th derivative of `digamma`; NaN unless `a` is 0, 1, 2, ...

    >>> tf.math.polygamma([0.0, 1.0, 2.0], 1.0).numpy().round(3)
    array([-0.577,  1.645, -2.404], dtype=float32)
    """
    return binary(sp.polygamma, a, x)


def zeta(x: Any, q: Any, name: str | None = None) -> Tensor:
    """Computes the Hurwitz zeta function: the sum of (q + n) ** -x for n = 0, 1, 2, ..."""
    return binary(sp.zeta, x, q)


def lbeta(x: Any, name: str | None = None) -> Tensor:
    """Computes the logarithm of the beta function of the elements along the last axis.

    >>> tf.math.lbeta([1.0, 2.0]).numpy()
    np.float32(-0.6931472)
    """
    x = as_tensor(x)
    if not x.ndim:
        raise invalid("lbeta: expected a tensor of rank >= 1. Received: shape ().")
    attrs = {"axis": (x.ndim - 1,), "keepdims": False}
    total = apply(sp.lgamma, (apply(reduction.sum, (x,), attrs),))
    return apply(reduction.sum, (apply(sp.lgamma, (x,)),), attrs) - total


def igamma(a: Any, x: Any, name: str | None = None) -> Tensor:
    """Computes the lower regularized incomplete gamma function.

    It rises from 0 at `x` = 0 to 1. It is differentiable with respect to `a` and `x` to any order.

    >>> tf.math.igamma(1.0, [0.0, np.log(2.0)]).numpy().round(4)
    array([0. , 0.5], dtype=float32)
    """
    return binary(sp.igamma, a, x)


def igammac(a: Any, x: Any, name: str | None = None) -> Tensor:
    """Computes `1 - igamma(a, x)`, accurately in the tail."""
    return binary(sp.igammac, a, x)


def betainc(a: Any, b: Any, x: Any, name: str | None = None) -> Tensor:
    """Computes the regularized incomplete beta function.

    It rises from 0 at `x` = 0 to 1 at `x` = 1. As in TensorFlow, no gradient flows to `a` and `b`.

    >>> tf.math.betainc(2.0, 2.0, [0.0, 0.5, 1.0]).numpy()
    array([0. , 0.5, 1. ], dtype=float32)
    """
    return apply(sp.betainc, tuple(one_dtype((a, b, x))))


def erfc(x: Any, name: str | None = None) -> Tensor:
    """Computes `1 - erf(x)`, accurately in the tail."""
    return unary(el.erfc, x)


def erfinv(x: Any, name: str | None = None) -> Tensor:
    """Computes the inverse of `erf`; infinite at -1 and 1, NaN outside [-1, 1]."""
    return unary(sp.erfinv, x)


@dispatched
def erfcinv(x: Any, name: str | None = None) -> Tensor:
    """Computes the inverse of `erfc`; infinite at 0 and 2, NaN outside [0, 2]."""
    x = as_tensor(x)
    return unary(sp.ndtri, x * 0.5) * Tensor(scalar(-math.sqrt(0.5), x))


def ndtri(x: Any, name: str | None = None) -> Tensor:
    """Computes the quantile function of the standard normal distribution.

    >>> tf.math.ndtri([0.5, 0.975]).numpy().round(2)
    array([0.  , 1.96], dtype=float32)
    """
    return unary(sp.ndtri, x)


def nextafter(x1: Any, x2: Any, name: str | None = None) -> Tensor:
    """Returns the next representable number after `x1` in the direction of `x2`.

    >>> tf.math.nextafter(1.0, 2.0).numpy()
    np.float32(1.0000001)
    """
    if tensor_or_variable(x1) is None and tensor_or_variable(x2) is None:
        x1, x2 = (as_tensor(x, np.dtype(np.float32)) for x in (x1, x2))
    y = binary(sp.nextafter, x1, x2)
    if y.dtype.size < 4:  # TensorFlow supports float32 and float64 only
        raise invalid(
            f"nextafter: dtype {y.dtype.name} is not supported. Expected float32 or float64."
        )
    return y
