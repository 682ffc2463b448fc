"""Special functions."""

from __future__ import annotations

import math

import jax.scipy.special
import numpy as np
import scipy.special

from tests.ops.cases._table import between, binary, case, from_to, off_zero, unary

_POINTS, _WEIGHTS = np.polynomial.legendre.leggauss(60)
_CIRCLE = np.arange(64) * 2 * math.pi / 64
_LINE = np.linspace(0, 6, 121)


def _from_zero(f):
    """Integrates `f(t)` from 0 to x with Gauss-Legendre quadrature."""
    return lambda x: np.sum(f((_POINTS + 1) / 2 * x[..., None]) * _WEIGHTS, -1) * x / 2


def _over_circle(f):
    """Averages `f(t, x)` over t from 0 to 2 pi, where equal weights are exact."""
    return lambda x: np.mean(f(_CIRCLE, x[..., None]), -1)


def _over_line(f):
    """Integrates `f(t, x)` over t from 0, where f is flat, to where f vanishes."""
    weights = np.where(_LINE == 0, 0.5, 1.0) * _LINE[1]
    return lambda x: np.sum(f(_LINE, x[..., None]) * weights, -1)


unary("erfc", lambda x: 1 - scipy.special.erf(x), -2, 2)
unary("erfinv", lambda x: scipy.special.ndtri((x + 1) / 2) / math.sqrt(2), -0.9, 0.9)
unary("ndtri", lambda x: math.sqrt(2) * scipy.special.erfinv(2 * x - 1), 0.1, 0.9)
unary("dawsn", lambda x: np.exp(-x * x) * _from_zero(lambda t: np.exp(t * t))(x), -2, 2,
      jax_rule=hasattr(jax.scipy.special, "dawsn"))  # fmt: skip
unary("lgamma", lambda x: np.log(scipy.special.gamma(x)), 0.2, 4)
unary("digamma", lambda x: scipy.special.digamma(x + 1) - 1 / x, 0.2, 4)
unary("fresnel_sin", _from_zero(lambda t: np.sin(math.pi / 2 * t * t)), -2, 2)
unary("fresnel_cos", _from_zero(lambda t: np.cos(math.pi / 2 * t * t)), -2, 2)
unary("expint", lambda x: -np.real(scipy.special.exp1(-x + 0j)), 0.2, 4)
case("lgamma", off_zero(2, 3) - 0.1, "both_signs", lambda x: np.log(abs(scipy.special.gamma(x))))
case("digamma", off_zero(2, 3), "both_signs", lambda x: scipy.special.digamma(x + 1) - 1 / x)
for label, x in (("below_1", between(0.1, 0.9, 3)), ("above_1", between(1.2, 3, 2, 2))):
    # JAX's gradient is NaN above 2.
    case("spence", x, label, lambda x: np.real(scipy.special.spence(x + 0j)), jax_rule=False)

for label, shapes in {"both": ((2, 1), (3,)), "scalars": ((), ()), "empty": ((0,), (2, 1))}.items():
    inputs = [between(0.5, 4, *shapes[0]), between(0.3, 5, *shapes[1])]
    case("igamma", inputs, label, lambda a, x: 1 - scipy.special.gammaincc(a, x), jax_rule=False)
case("igammac", [between(0.5, 4, 2, 1), between(0.3, 5, 3)], "both",
     lambda a, x: 1 - scipy.special.gammainc(a, x), jax_rule=False)  # fmt: skip


def _differentiate_igamma(a, x, *, order):
    """Differentiates igamma with Cauchy's formula, a mean over a circle."""
    n = 32
    radius, rotations = a / 3, np.exp(2j * np.pi * np.arange(n) / n)
    values = [_complex_igamma(a + radius * rotation, x) / rotation**order for rotation in rotations]
    return math.factorial(order) * np.real(sum(values)) / n / radius**order


def _complex_igamma(a, x):
    term = total = np.exp(a * np.log(x) - x - scipy.special.loggamma(a + 1))
    for n in range(1, 80):
        term = term * x / (a + n)
        total = total + term
    return total


for order in (1, 2):  # x below and above a, which use different formulas
    inputs = [between(1, 3, 2, 1), np.array([0.4, 0.9, 2.5, 5.0])]
    case("igamma_derivative", inputs, str(order), _differentiate_igamma, attrs={"order": order},
         jax_rule=False)  # fmt: skip


def _zeta(x, q):
    """Sums thirty terms, and the rest with the Euler-Maclaurin formula."""
    y, n = sum((q + k) ** -x for k in range(30)), q + 30
    rest = n ** (1 - x) / (x - 1) + n**-x / 2
    factor = x * n ** (-x - 1)
    for k, share in ((1, 1 / 12), (3, -1 / 720), (5, 1 / 30240)):
        rest = rest + share * factor
        factor = factor * (x + k) * (x + k + 1) / n**2
    return y + rest


binary("zeta", _zeta, from_to(1.5, 4), from_to(0.5, 3))
binary("polygamma", scipy.special.polygamma, lambda *shape: np.floor(between(0, 4, *shape)),
       from_to(0.5, 3), jax_rule=False)  # fmt: skip
inputs = [between(0.5, 3, 2, 1), between(0.5, 3, 3), between(0.1, 0.9, 2, 3)]
case(
    "betainc",
    inputs,
    "three",
    lambda a, b, x: 1 - scipy.special.betainc(b, a, 1 - x),
    jax_rule=False,
)
binary("nextafter", lambda a, b: a + np.where(b > a, 1, -1) * np.spacing(a), from_to(0.2, 0.4),
       off_zero, differences=False, jax_rule=False)  # fmt: skip

BESSEL = {
    "bessel_i": lambda n: _over_circle(lambda t, x: np.cos(n * t) * np.exp(x * np.cos(t))),
    "bessel_j": lambda n: _over_circle(lambda t, x: np.cos(n * t - x * np.sin(t))),
    "bessel_k": lambda n: _over_line(lambda t, x: np.cosh(n * t) * np.exp(-x * np.cosh(t))),
    "bessel_y": lambda n: lambda x: scipy.special.yn(n, x),
    "bessel_ie": lambda n: lambda x: BESSEL["bessel_i"](n)(x) * np.exp(-abs(x)),
    "bessel_ke": lambda n: lambda x: BESSEL["bessel_k"](n)(x) * np.exp(x),
}
for name, of_order in BESSEL.items():
    either = name[-1] in "j" or name.startswith("bessel_i")
    for order in (0, 1, 2):
        reference = lambda x, *, order, of_order=of_order: of_order(order)(x)  # noqa: E731
        x = off_zero(2, 3) * 2 if either else between(0.4, 4, 2, 3)
        case(name, x, str(order), reference, attrs={"order": order},
             jax_rule=order < 2 and name in ("bessel_i", "bessel_ie"))  # fmt: skip
