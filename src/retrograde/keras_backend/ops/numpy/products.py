"""Products of vectors and matrices, correlation, differences and integration."""

from __future__ import annotations

import numpy as np

from retrograde import linalg
from retrograde.core.apply import apply
from retrograde.core.tensor import Tensor
from retrograde.keras_backend.ops._inputs import (
    BOOL,
    FLOAT32,
    FLOAT64,
    INT32,
    INT64,
    at_least_float32,
    canonicalize_axis,
    inexact,
    numeric,
    of_dtype,
    pair,
    promote,
    tensor,
    to_int,
)
from retrograde.keras_backend.ops.numpy.manipulation import flip, moveaxis, pad, ravel, reshape
from retrograde.keras_backend.ops.numpy.reductions import mean, sum
from retrograde.numpy_functions import products as shared
from retrograde.numpy_functions.elementwise import diff as shared_diff
from retrograde.numpy_functions.elementwise import neighbors
from retrograde.numpy_functions.shaping import vander as shared_vander
from retrograde.ops import framing
from retrograde.ops._families import conj
from retrograde.ops.casting import to_dtype
from retrograde.ops.contraction import matmul as product
from retrograde.ops.elementary import sqrt
from retrograde.values import dtypes
from retrograde.values.arguments import shown

_INT8 = np.dtype(np.int8)


def _factors(*xs):
    """Promotes the factors; int8 and bool become int32. Returns them and the result dtype."""
    tensors = [tensor(x) for x in xs]
    xs = promote(*tensors)
    dtype = xs[0]._spec.dtype
    if dtype == _INT8 and all(x._spec.dtype == _INT8 for x in tensors):
        dtype = INT32
        xs = [to_dtype(x, dtype) for x in xs]
    return ([to_dtype(x, INT32) for x in xs] if dtype == BOOL else xs), dtype


def matmul(x1, x2):
    a, b = pair(x1, x2)
    if a._spec.ndim >= 2 <= b._spec.ndim and a._spec.dtype in dtypes.INEXACT:
        return apply(product, (a, b))
    (x1, x2), dtype = _factors(x1, x2)
    return to_dtype(shared.matmul(x1, x2), dtype)


def _multiply(function, x1, x2, *args):
    """Computes the product in the promoted dtype of the factors."""
    x1, x2 = pair(x1, x2)
    return to_dtype(function(numeric(x1), numeric(x2), *args), x1._spec.dtype)


def _binary_product(function):
    return lambda x1, x2: _multiply(function, x1, x2)


dot = _binary_product(shared.dot)
inner = _binary_product(shared.inner)
outer = _binary_product(shared.outer)
vdot = _binary_product(shared.vdot)
kron = _binary_product(shared.kron)


def tensordot(x1, x2, axes=2):
    return _multiply(linalg.tensordot, x1, x2, axes)


def cross(x1, x2, axisa=-1, axisb=-1, axisc=-1, axis=None):
    return _multiply(shared.cross, x1, x2, axisa, axisb, axisc, axis)


def einsum(subscripts, *operands, **kwargs):
    xs, dtype = _factors(*operands)
    optimize = "optimal" if kwargs.get("optimize") == "optimal" else "greedy"
    return to_dtype(linalg.einsum(subscripts, *xs, optimize=optimize), dtype)


# Functions built on products


def correlate(x1, x2, mode="valid"):
    """Computes the cross-correlation of two vectors."""
    x1, x2 = promote(x1, x2)
    dtype = x1._spec.dtype
    if dtype not in dtypes.INEXACT:
        dtype = FLOAT64 if dtype == INT64 else FLOAT32
        x1, x2 = to_dtype(x1, dtype), to_dtype(x2, dtype)
    x2 = conj(x2)
    swapped = x1._spec.shape[0] < x2._spec.shape[0]
    if swapped:
        x1, x2 = x2, x1
    n = x2._spec.shape[0]
    margins = {"valid": (0, 0), "same": (n // 2, n - 1 - n // 2), "full": (n - 1, n - 1)}
    if mode not in margins:
        raise ValueError(
            f"correlate: `mode` must be one of {list(margins)}. Received: {shown(mode)}."
        )
    x1 = pad(x1, [margins[mode]])
    count = x1._spec.shape[0] - n + 1
    parts = framing.frame(x1, axis=0, count=count, length=n, step=1)
    y = ravel(product(parts, reshape(x2, (n, 1))))
    return flip(y) if swapped else y


def corrcoef(x):
    """Computes the correlation matrix of the rows."""
    x_in = tensor(x)
    x_in = to_dtype(x_in, FLOAT64) if x_in._spec.dtype == INT64 else inexact(x_in)
    x = at_least_float32(x_in)
    rows = x if x.ndim > 1 else reshape(x, (1, -1))
    rows = rows - mean(rows, 1, True)
    length = sqrt(sum(rows * rows, 1, True))
    y = product(rows, rows, transpose_b=True) / length / reshape(length, (1, -1))
    return to_dtype(y if x.ndim > 1 else reshape(y, ()), x_in._spec.dtype)


def diff(a, n=1, axis=-1):
    return shared_diff(tensor(a), to_int(n), to_int(axis))


def trapezoid(y, x=None, dx=1.0, axis=-1):
    """Integrates `y` with the trapezoidal rule; the points are at `x`, or `dx` apart."""
    y = inexact(y)
    axis = canonicalize_axis(axis, y.ndim, "trapezoid")
    y = moveaxis(y, axis, -1)
    if x is None:
        width = of_dtype(dx, y._spec.dtype)
    else:
        x = of_dtype(x, y._spec.dtype)
        width = shared_diff(x if x.ndim == 1 else moveaxis(x, axis, -1))
    left, right = neighbors(y, y.ndim - 1)
    return sum((left + right) * width, -1) * Tensor(y._spec.dtype.type(0.5))


def vander(x, N=None, increasing=False):
    """Computes the Vandermonde matrix: the powers of each element in a row."""
    x_in = tensor(x)
    y = shared_vander(inexact(x_in), None if N is None else to_int(N), increasing)
    return to_dtype(y, x_in._spec.dtype)


def slogdet(x):
    return tuple(linalg.slogdet(inexact(x)))
