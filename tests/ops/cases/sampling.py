"""Samples with implicit gradients, and the functions in their derivatives."""

from __future__ import annotations

import math

import numpy as np
import scipy.special
import scipy.stats

from tests.ops.cases._table import between, binary, case


def _gamma_sample_derivative(a, x, *, order):
    """Uses the power series of the incomplete gamma function and Cauchy's formula."""
    n = 32
    radius, rotations = a / 3, np.exp(2j * np.pi * np.arange(n) / n)
    values = [
        _derivative_by_series(a + radius * rotation, x) / rotation**order for rotation in rotations
    ]
    return math.factorial(order) * np.real(sum(values)) / n / radius**order


def _derivative_by_series(a, x):
    term, harmonic = np.ones(np.broadcast_shapes(a.shape, x.shape), complex), 0
    total, derivative = term, 0
    for n in range(1, 80):
        term = term * x / (a + n)
        harmonic = harmonic + 1 / (a + n)
        total, derivative = total + term, derivative - term * harmonic
    return -x / a * (total * (np.log(x) - scipy.special.digamma(a + 1)) + derivative)


for order in (0, 1):
    inputs = [np.array([[0.7], [2.0], [3.5]]), np.array([0.4, 1.7, 5.0])]
    # JAX cannot differentiate the zeta function.
    case("gamma_sample_derivative", inputs, str(order), _gamma_sample_derivative,
         attrs={"order": order}, jax_rule=False)  # fmt: skip


def _normal_span(a, b):
    probability = scipy.stats.norm.cdf
    return (probability(b) - probability(a)) / scipy.stats.norm.pdf(a)


LOW, HIGH = np.array([-2.0, -1.0, 0.6]), np.array([-0.7, 1.2, 1.8])  # left, around 0, right
case("normal_span", [LOW, HIGH + between(-0.1, 0.1, 2, 3)], "every_side", _normal_span)


# The kernels return the sample unchanged, so neither finite differences nor JAX know its
# derivative. Tests of tf.random compare it with the derivative of the quantile function.


def _sample(x, *parameters):
    return x + 0 * sum(parameters)


binary("implicit_gamma", _sample, lambda *shape: between(0.3, 3, *shape),
       lambda *shape: between(0.5, 3, *shape), differences=False, jax_rule=False)  # fmt: skip
case("implicit_truncated_normal",
     [between(0.3, 0.7, 2, 3) * (HIGH - LOW) + LOW, between(-0.2, 0.2, 3), between(0.8, 1.2, 2, 1),
      LOW, HIGH], "every_side", _sample, differences=False, jax_rule=False)  # fmt: skip
