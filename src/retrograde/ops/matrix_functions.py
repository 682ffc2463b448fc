"""Functions of matrices: the exponential, the logarithm, the square root."""

from __future__ import annotations

import math
import warnings

import numpy as np

from retrograde.core.rules import Spec
from retrograde.ops import reduction
from retrograde.ops._arrays import on_host, plain_dtype
from retrograde.ops.arithmetic import absolute, select
from retrograde.ops.casting import cast, ones_like, stop_gradient, zeros_like
from retrograde.ops.complex_numbers import complex_abs
from retrograde.ops.matrices import adjoint, block, of_matrices
from retrograde.ops.shaping import concat
from retrograde.values import dtypes
from retrograde.values.scipy_import import import_scipy


def _of_blocks(function):
    """The rule of a function of matrices, by that function itself.

    In f([[a, t], [0, a]]) the derivative of f at a, in the direction t, stands where t stood. What
    flows back is the derivative at a^H, in the direction g. It is linear in g, which is first
    brought down to a size that does no harm to the accuracy.
    """

    def rule(g, _y, x):
        n, last = x.shape[-1], x.ndim - 1
        a, scale = adjoint(x), _size(g)
        above = concat(a, g / scale, axis=last)
        below = concat(zeros_like(a), a, axis=last)
        y = function()(concat(above, below, axis=last - 1))
        return block(y, rows=(0, n), columns=(n, 2 * n)) * scale

    return rule


def _size(g):
    """The largest absolute value in each matrix, or 1 if there is none."""
    sizes = complex_abs(g) if g.dtype.kind == "c" else absolute(g)
    top = stop_gradient(reduction.max(sizes, axis=(g.ndim - 2, g.ndim - 1), keepdims=True))
    return cast(select(top > 0, top, ones_like(top)), dtype=plain_dtype(g))


# The exponential: by Padé approximants, of a matrix halved until it is small, then squared as often


def _pade(degree):
    """The coefficients of the numerator, even and odd powers apart."""
    whole = [
        math.comb(degree, j) * math.factorial(2 * degree - j) / math.factorial(2 * degree)
        for j in range(degree + 1)
    ]
    return whole[::2], whole[1::2]


# For each precision, the coefficients and the largest norm for which they give all digits.
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
    """The powers 0, 2, 4 and 6."""
    second = a @ a
    fourth = second @ second
    return np.eye(a.shape[-1], dtype=a.dtype), second, fourth, fourth @ second


def _polynomial(coefficients, powers):
    """That of the square of a, of which `powers` has the first; of degree 3 or 6."""
    low, high = coefficients[:4], coefficients[4:]
    y = sum(c * p for c, p in zip(low, powers, strict=True))
    if high:
        y += powers[3] @ sum(c * p for c, p in zip(high, powers[1:], strict=True))
    return y


expm = of_matrices("expm", _expm_kernel, vjps=(_of_blocks(lambda: expm),))


# The logarithm and the square root: by SciPy, one matrix at a time


def _one_by_one(f):
    def examples_of(x):
        y = np.full(x.shape, np.nan, x.dtype)
        with warnings.catch_warnings():  # they speak of singular matrices
            warnings.simplefilter("ignore")
            for place in np.ndindex(*x.shape[:-2]):
                if x[place].size and np.isfinite(x[place]).all():
                    y[place] = f(x[place])
        return y

    return lambda xp, x: on_host(xp, examples_of, Spec(x.shape, x.dtype), x)


def _logm(x):
    if np.linalg.slogdet(x)[0] == 0:
        return np.nan
    return import_scipy("linalg", "logm").logm(x.astype(np.complex128))


def _sqrtm(x):
    """A real matrix whose square root is complex gives nan, as in TensorFlow."""
    y = import_scipy("linalg", "sqrtm").sqrtm(x)
    return np.nan if y.dtype.kind == "c" and x.dtype.kind != "c" else y


logm = of_matrices(
    "logm", _one_by_one(_logm), vjps=(_of_blocks(lambda: logm),), accepts=dtypes.COMPLEX
)
sqrtm = of_matrices("sqrtm", _one_by_one(_sqrtm), vjps=(_of_blocks(lambda: sqrtm),))
