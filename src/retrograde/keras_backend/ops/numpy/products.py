"""Products of vectors and matrices, and what is made of such."""

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
    axis_of,
    inexact,
    numbers,
    of_dtype,
    pair,
    promoted,
    single,
    tensor,
    whole,
)
from retrograde.keras_backend.ops.numpy.reductions import mean, sum
from retrograde.keras_backend.ops.numpy.shaping import flip, moveaxis, pad, ravel, reshape
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
    """Tensors of one dtype in which to multiply and add up; int8 as int32, and bool too."""
    given = [tensor(x) for x in xs]
    xs = promoted(*given)
    dtype = xs[0]._spec.dtype
    if dtype == _INT8 and all(x._spec.dtype == _INT8 for x in given):
        dtype = INT32
        xs = [to_dtype(x, dtype) for x in xs]
    return ([to_dtype(x, INT32) for x in xs] if dtype == BOOL else xs), dtype


def matmul(x1, x2):
    a, b = pair(x1, x2)
    if a._spec.ndim >= 2 <= b._spec.ndim and a._spec.dtype in dtypes.INEXACT:
        return apply(product, (a, b))
    (x1, x2), dtype = _factors(x1, x2)
    return to_dtype(shared.matmul(x1, x2), dtype)


def _multiplied(function, x1, x2, *args):
    """The product of values of one dtype, which it has, too; int8 as well."""
    x1, x2 = pair(x1, x2)
    return to_dtype(function(numbers(x1), numbers(x2), *args), x1._spec.dtype)


def _product(function):
    return lambda x1, x2: _multiplied(function, x1, x2)


dot = _product(shared.dot)
inner = _product(shared.inner)
outer = _product(shared.outer)
vdot = _product(shared.vdot)
kron = _product(shared.kron)


def tensordot(x1, x2, axes=2):
    return _multiplied(linalg.tensordot, x1, x2, axes)


def cross(x1, x2, axisa=-1, axisb=-1, axisc=-1, axis=None):
    return _multiplied(shared.cross, x1, x2, axisa, axisb, axisc, axis)


def einsum(subscripts, *operands, **kwargs):
    xs, dtype = _factors(*operands)
    optimize = "optimal" if kwargs.get("optimize") == "optimal" else "greedy"
    return to_dtype(linalg.einsum(subscripts, *xs, optimize=optimize), dtype)


# What is made of products


def correlate(x1, x2, mode="valid"):
    """The products of one vector with the parts of the other under it, as it slides along."""
    x1, x2 = promoted(x1, x2)
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
    """The correlation of each row with each other."""
    own = tensor(x)
    own = to_dtype(own, FLOAT64) if own._spec.dtype == INT64 else inexact(own)
    x = single(own)
    rows = x if x.ndim > 1 else reshape(x, (1, -1))
    rows = rows - mean(rows, 1, True)
    length = sqrt(sum(rows * rows, 1, True))
    y = product(rows, rows, transpose_b=True) / length / reshape(length, (1, -1))
    return to_dtype(y if x.ndim > 1 else reshape(y, ()), own._spec.dtype)


def diff(a, n=1, axis=-1):
    return shared_diff(tensor(a), whole(n), whole(axis))


def trapezoid(y, x=None, dx=1.0, axis=-1):
    """The area under a curve through the points `y`, at the places `x` or `dx` apart."""
    y = inexact(y)
    at = axis_of(axis, y.ndim, "trapezoid")
    y = moveaxis(y, at, -1)
    if x is None:
        width = of_dtype(dx, y._spec.dtype)
    else:
        x = of_dtype(x, y._spec.dtype)
        width = shared_diff(x if x.ndim == 1 else moveaxis(x, at, -1))
    left, right = neighbors(y, y.ndim - 1)
    return sum((left + right) * width, -1) * Tensor(y._spec.dtype.type(0.5))


def vander(x, N=None, increasing=False):
    """The powers of the elements, those of each in a row, the highest first."""
    own = tensor(x)
    y = shared_vander(inexact(own), None if N is None else whole(N), increasing)
    return to_dtype(y, own._spec.dtype)


def slogdet(x):
    return tuple(linalg.slogdet(inexact(x)))
