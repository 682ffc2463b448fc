"""Samples whose parameters have gradients, and what their derivatives are made of."""

from __future__ import annotations

import math

import numpy as np
import scipy.special
import scipy.stats

from tests.ops.cases._table import between, binary, case


def _gamma_sample_slope(a, x, *, order):
    """By the power series of the incomplete gamma function, and the formula of Cauchy."""
    n = 32
    radius, turns = a / 3, np.exp(2j * np.pi * np.arange(n) / n)
    values = [_slope_by_series(a + radius * turn, x) / turn**order for turn in turns]
    return math.factorial(order) * np.real(sum(values)) / n / radius**order


def _slope_by_series(a, x):
    term, harmonic = np.ones(np.broadcast_shapes(a.shape, x.shape), complex), 0
    total, slope = term, 0
    for n in range(1, 80):
        term = term * x / (a + n)
        harmonic = harmonic + 1 / (a + n)
        total, slope = total + term, slope - term * harmonic
    return -x / a * (total * (np.log(x) - scipy.special.digamma(a + 1)) + slope)


for order in (0, 1, 2):
    for label, a, x in [("below", (2, 4), (0.3, 1.9)), ("above", (1, 2), (2.1, 5))]:
        inputs = [between(*a, 2, 1), between(*x, 3)]
        # JAX cannot differentiate the zeta function.
        case("gamma_sample_slope", inputs, f"{order}_{label}", _gamma_sample_slope,
             attrs={"order": order}, jax_rule=False)  # fmt: skip


def _normal_span(a, b):
    probability = scipy.stats.norm.cdf
    return (probability(b) - probability(a)) / scipy.stats.norm.pdf(a)


for label, low, high in [
    ("left", (-2, -1.5), (-1, -0.5)),
    ("around_zero", (-2, -0.5), (0.5, 2)),
    ("right", (0.5, 1), (1.5, 2)),
]:
    inputs = [between(*low, 2, 1), between(*high, 3)]
    case("normal_span", inputs, label, _normal_span)


# A sample is given back as it was drawn. How it would move with its parameters neither
# differences nor JAX can know; tests of tf.random compare it with the quantile.


def _drawn(x, *parameters):
    return x + 0 * sum(parameters)


binary("implicit_gamma", _drawn, lambda *shape: between(0.3, 3, *shape),
       lambda *shape: between(0.5, 3, *shape), differences=False, jax_rule=False)  # fmt: skip
for label, (low, high) in {"left": (-3, -1), "around_zero": (-1, 1.5), "right": (1, 3)}.items():
    inputs = [between(low + 0.3, high - 0.3, 2, 3), between(-0.2, 0.2, 3), between(0.8, 1.2, 2, 1),
              between(low, low + 0.2, 3), between(high - 0.2, high)]  # fmt: skip
    case("implicit_truncated_normal", inputs, label, _drawn, differences=False, jax_rule=False)
