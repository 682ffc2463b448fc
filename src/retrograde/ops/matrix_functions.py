"""Matrix functions: the exponential, the logarithm, the square root."""

from __future__ import annotations

import math
import warnings

import numpy as np

from retrograde.core.rules import Spec
from retrograde.ops import reduction
from retrograde.ops._arrays import numpy_dtype_of, on_host
from retrograde.ops.arithmetic import absolute, select
from retrograde.ops.casting import cast, ones_like, stop_gradient, zeros_like
from retrograde.ops.complex_numbers import complex_abs
from retrograde.ops.matrices import adjoint, block, matrix_primitive
from retrograde.ops.shaping import concat
from retrograde.values import dtypes
from retrograde.values.scipy_import import import_scipy


def _vjp_by_block_matrix(function):
    """Creates the vjp rule of a matrix function f from f itself.

    The upper right block of f([[a, t], [0, a]]) is the derivative of f at a in the direction t. The
    vjp is the derivative at a^H in the direction g. It is linear in g, which is scaled to norm 1
    for accuracy.
    """

    def rule(g, _y, x):
        n, last = x.shape[-1], x.ndim - 1
        a, scale = adjoint(x), _max_abs(g)
        above = concat(a, g / scale, axis=last)
        below = concat(zeros_like(a), a, axis=last)
        y = function()(concat(above, below, axis=last - 1))
        return block(y, rows=(0, n), columns=(n, 2 * n)) * scale

    return rule


def _max_abs(g):
    """Returns the largest absolute value in each matrix, or 1 if that is 0."""
    sizes = complex_abs(g) if g.dtype.kind == "c" else absolute(g)
    top = stop_gradient(reduction.max(sizes, axis=(g.ndim - 2, g.ndim - 1), keepdims=True))
    return cast(select(top > 0, top, ones_like(top)), dtype=numpy_dtype_of(g))


# The exponential: scaling and squaring with Padé approximants


def _pade(degree):
    """Returns the numerator's coefficients of the even powers and of the odd powers."""
    coefficients = [
        math.comb(degree, j) * math.factorial(2 * degree - j) / math.factorial(2 * degree)
        for j in range(degree + 1)
    ]
    return coefficients[::2], coefficients[1::2]


# For each precision, the coefficients and the largest norm for which they are exact to rounding.
_SINGLE, _DOUBLE = (_pade(7), 3.9), (_pade(13), 5.3)


def _expm_kernel(xp, x):
    if xp is not np:
        import jax

        return jax.scipy.linalg.expm(x) if x.size else x
    if not x.size:
        return x.copy()
    (even, odd), small = _SINGLE if x.dtype.char in "fF" else _DOUBLE
    norms = np.abs(x).sum(-2, keepdims=True).max(-1, keepdims=True)
    halvings = np.maximum(np.frexp(norms / small)[1], 0)
    a = x * np.ldexp(1, -halvings).astype(norms.dtype)
    powers = _even_powers(a)
    u, v = a @ _polynomial(odd, powers), _polynomial(even, powers)
    y = np.linalg.solve(v - u, v + u)
    for i in range(halvings.max()):
        y = np.where(halvings > i, y @ y, y)
    return y


def _even_powers(a):
    """Returns the powers 0, 2, 4 and 6 of `a`."""
    second = a @ a
    fourth = second @ second
    return np.eye(a.shape[-1], dtype=a.dtype), second, fourth, fourth @ second


def _polynomial(coefficients, powers):
    """Evaluates a polynomial of degree 3 or 6 in a squared, given its first `powers`."""
    low, high = coefficients[:4], coefficients[4:]
    y = sum(c * p for c, p in zip(low, powers, strict=True))
    if high:
        y += powers[3] @ sum(c * p for c, p in zip(high, powers[1:], strict=True))
    return y


expm = matrix_primitive("expm", _expm_kernel, vjps=(_vjp_by_block_matrix(lambda: expm),))


# The logarithm and the square root: SciPy, one matrix at a time


def _one_by_one(f):
    def apply_to_each(x):
        y = np.full(x.shape, np.nan, x.dtype)
        with warnings.catch_warnings():  # about singular matrices
            warnings.simplefilter("ignore")
            for i in np.ndindex(*x.shape[:-2]):
                if x[i].size and np.isfinite(x[i]).all():
                    y[i] = f(x[i])
        return y

    return lambda xp, x: on_host(xp, apply_to_each, Spec(x.shape, x.dtype), x)


def _logm(x):
    if np.linalg.slogdet(x)[0] == 0:
        return np.nan
    logm = import_scipy("linalg", "logm").logm
    state = np.random.get_state()  # SciPy draws from this generator
    try:
        return logm(x.astype(np.complex128))
    finally:
        np.random.set_state(state)


def _sqrtm(x):
    """Returns the square root; NaN for a real matrix with a complex root, as in TensorFlow."""
    y = import_scipy("linalg", "sqrtm").sqrtm(x)
    return np.nan if y.dtype.kind == "c" and x.dtype.kind != "c" else y


logm = matrix_primitive(
    "logm", _one_by_one(_logm), vjps=(_vjp_by_block_matrix(lambda: logm),), accepts=dtypes.COMPLEX
)
sqrtm = matrix_primitive("sqrtm", _one_by_one(_sqrtm), vjps=(_vjp_by_block_matrix(lambda: sqrtm),))
