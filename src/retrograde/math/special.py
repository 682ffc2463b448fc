"""tf.math.special: Bessel functions, Fresnel integrals and other special functions."""

from __future__ import annotations

from typing import Any

from retrograde._api.lazy import from_all
from retrograde.core.apply import Primitive, apply
from retrograde.core.tensor import Tensor
from retrograde.math._inputs import unary
from retrograde.ops import special as sp
from retrograde.ops.conversion import as_tensor
from retrograde.values.composites import dispatched

__all__ = [
    "bessel_i0",
    "bessel_i0e",
    "bessel_i1",
    "bessel_i1e",
    "bessel_j0",
    "bessel_j1",
    "bessel_k0",
    "bessel_k0e",
    "bessel_k1",
    "bessel_k1e",
    "bessel_y0",
    "bessel_y1",
    "dawsn",
    "expint",
    "fresnel_cos",
    "fresnel_sin",
    "spence",
]

__getattr__, __dir__ = from_all(__name__)


def _of_order(order: int, primitive: Primitive, x: Any) -> Tensor:
    return apply(primitive, (as_tensor(x),), {"order": order})


@dispatched
def bessel_i0(x: Any, name: str | None = None) -> Tensor:
    """Computes the modified Bessel function of the first kind of order 0.

    >>> tf.math.bessel_i0([0.0, 1.0]).numpy()
    array([1.       , 1.2660658], dtype=float32)
    """
    return _of_order(0, sp.bessel_i, x)


@dispatched
def bessel_i0e(x: Any, name: str | None = None) -> Tensor:
    """Computes `exp(-abs(x)) * bessel_i0(x)` without overflow."""
    return _of_order(0, sp.bessel_ie, x)


@dispatched
def bessel_i1(x: Any, name: str | None = None) -> Tensor:
    """Computes the modified Bessel function of the first kind of order 1."""
    return _of_order(1, sp.bessel_i, x)


@dispatched
def bessel_i1e(x: Any, name: str | None = None) -> Tensor:
    """Computes `exp(-abs(x)) * bessel_i1(x)` without overflow."""
    return _of_order(1, sp.bessel_ie, x)


@dispatched
def bessel_j0(x: Any, name: str | None = None) -> Tensor:
    """Computes the Bessel function of the first kind of order 0."""
    return _of_order(0, sp.bessel_j, x)


@dispatched
def bessel_j1(x: Any, name: str | None = None) -> Tensor:
    """Computes the Bessel function of the first kind of order 1."""
    return _of_order(1, sp.bessel_j, x)


@dispatched
def bessel_k0(x: Any, name: str | None = None) -> Tensor:
    """Computes the modified Bessel function of the second kind of order 0; Inf if `x <= 0`."""
    return _of_order(0, sp.bessel_k, x)


@dispatched
def bessel_k0e(x: Any, name: str | None = None) -> Tensor:
    """Computes `exp(x) * bessel_k0(x)` without underflow."""
    return _of_order(0, sp.bessel_ke, x)


@dispatched
def bessel_k1(x: Any, name: str | None = None) -> Tensor:
    """Computes the modified Bessel function of the second kind of order 1; Inf if `x <= 0`."""
    return _of_order(1, sp.bessel_k, x)


@dispatched
def bessel_k1e(x: Any, name: str | None = None) -> Tensor:
    """Computes `exp(x) * bessel_k1(x)` without underflow."""
    return _of_order(1, sp.bessel_ke, x)


@dispatched
def bessel_y0(x: Any, name: str | None = None) -> Tensor:
    """Computes the Bessel function of the second kind of order 0; -Inf if `x <= 0`."""
    return _of_order(0, sp.bessel_y, x)


@dispatched
def bessel_y1(x: Any, name: str | None = None) -> Tensor:
    """Computes the Bessel function of the second kind of order 1; -Inf if `x <= 0`."""
    return _of_order(1, sp.bessel_y, x)


def dawsn(x: Any, name: str | None = None) -> Tensor:
    """Computes Dawson's integral: exp(-x*x) times the integral of exp(t*t) from 0 to `x`."""
    return unary(sp.dawsn, x)


def expint(x: Any, name: str | None = None) -> Tensor:
    """Computes the exponential integral: the integral of exp(t) / t up to `x`; NaN below 0.

    >>> tf.math.special.expint([1.0, 2.0]).numpy()
    array([1.8951178, 4.954234 ], dtype=float32)
    """
    return unary(sp.expint, x)


def fresnel_cos(x: Any, name: str | None = None) -> Tensor:
    """Computes the Fresnel cosine integral: the integral of cos(pi/2 * t*t) from 0 to `x`."""
    return unary(sp.fresnel_cos, x)


def fresnel_sin(x: Any, name: str | None = None) -> Tensor:
    """Computes the Fresnel sine integral: the integral of sin(pi/2 * t*t) from 0 to `x`."""
    return unary(sp.fresnel_sin, x)


def spence(x: Any, name: str | None = None) -> Tensor:
    """Computes Spence's integral: the integral of log(t) / (1 - t) from 1 to `x`; NaN below 0."""
    return unary(sp.spence, x)
