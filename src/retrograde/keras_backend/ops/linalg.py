"""Implements `keras.ops.linalg`. Keras documents the functions."""

from __future__ import annotations

import builtins

import numpy as np

from retrograde import linalg
from retrograde.autodiff import ForwardAccumulator
from retrograde.core.apply import apply
from retrograde.core.tensor import Tensor
from retrograde.keras_backend.ops._inputs import (
    at_least_float32,
    canonicalize_axis,
    inexact,
    inexact_pair,
    of_dtype,
    shape_of,
    tensor,
)
from retrograde.keras_backend.ops.numpy import (
    absolute,
    expand_dims,
    max,
    min,
    moveaxis,
    squeeze,
    sum,
    take_along_axis,
)
from retrograde.ops import decomposition, matrices, solvers
from retrograde.ops.arithmetic import not_equal
from retrograde.ops.casting import identity, to_dtype, zeros_like
from retrograde.ops.elementary import sqrt
from retrograde.ops.shaping import concat
from retrograde.values import nest
from retrograde.values.arguments import shown


def _lapack_precision(x):
    """Converts matrices to a precision that LAPACK supports."""
    return at_least_float32(inexact(x))


def _in_input_dtype(f, x):
    """Computes `f(x)` in at least float32 and casts the result to the dtype of `x`."""
    x = inexact(x)
    return to_dtype(f(at_least_float32(x)), x._spec.dtype)


# Decompositions


def cholesky(a, upper=False):
    y = _in_input_dtype(linalg.cholesky, a)
    if isinstance(y._array, np.ndarray) and np.isnan(y._array).any():  # not under XLA
        raise ValueError(
            "Cholesky decomposition failed. The input might not be a valid positive definite "
            "matrix."
        )
    return matrices.adjoint(y) if upper else y


def cholesky_inverse(a, upper=False):
    """Computes the inverse of the matrix whose Cholesky factor is `a`."""

    def from_cholesky(a):
        unit = Tensor(np.eye(a._spec.shape[-1], dtype=a._spec.dtype))
        inverse = linalg.triangular_solve(a, unit, lower=not upper)
        return matrices.product(inverse, inverse, adjoint_a=not upper, adjoint_b=upper)

    return _in_input_dtype(from_cholesky, a)


def eig(a):
    return linalg.eig(_lapack_precision(a))


def eigh(a):
    return linalg.eigh(_lapack_precision(a))


def qr(x, mode="reduced"):
    if mode not in {"reduced", "complete"}:
        raise ValueError(
            "`mode` argument value not supported. Expected one of {'reduced', 'complete'}. "
            f"Received: mode={mode}"
        )
    return tuple(linalg.qr(_lapack_precision(x), full_matrices=mode == "complete"))


def svd(x, full_matrices=True, compute_uv=True):
    x = _lapack_precision(x)
    if not compute_uv:
        return linalg.svd(x, compute_uv=False)
    s, u, v = linalg.svd(x, full_matrices)
    return u, s, matrices.adjoint(v)


def lu_factor(a):
    """Computes the LU factors, packed in one matrix, and the row swapped with each row.

    It permutes the rows first, factorizes the leading square block and computes the remaining
    columns or rows by triangular solves.
    """
    x = _lapack_precision(a)
    rows, columns = x._spec.shape[-2:]
    pivots, order = apply(decomposition.pivots, (x,))
    x = take_along_axis(x, expand_dims(order, -1), -2)
    n = builtins.min(rows, columns)
    corner, _ = apply(
        decomposition.lu, (matrices.block(x, (0, n), (0, n)),), {"dtype": np.dtype(np.int32)}
    )
    if rows < columns:
        lower = decomposition.unit_lower_triangle(corner)
        right = matrices.block(x, columns=(n, columns))
        right = solvers.triangular_solve(lower, right, lower=True, adjoint=False)
        return concat(corner, right, axis=x.ndim - 1), pivots
    if rows > columns:
        upper = matrices.upper_triangle(corner)
        below = matrices.adjoint(matrices.block(x, rows=(n, rows)))
        below = matrices.adjoint(solvers.triangular_solve(upper, below, lower=False, adjoint=True))
        return concat(corner, below, axis=x.ndim - 2), pivots
    return corner, pivots


# Linear systems


def _solve(f, a, b):
    """Computes `f(a, b)` in at least float32. A vector `b` is passed as a column."""
    a, b = inexact_pair(a, b)
    dtype, vector = a._spec.dtype, b.ndim == a.ndim - 1
    y = f(at_least_float32(a), at_least_float32(expand_dims(b, -1) if vector else b))
    return to_dtype(squeeze(y, -1) if vector else y, dtype)


def solve(a, b):
    return _solve(linalg.solve, a, b)


def solve_triangular(a, b, lower=False):
    return _solve(lambda a, b: linalg.triangular_solve(a, b, lower=lower), a, b)


def lstsq(a, b, rcond=None):
    return _solve(lambda a, b: matrices.product(pinv(a, rcond), b), a, b)


def inv(a):
    return _in_input_dtype(linalg.inv, a)


def pinv(x, rcond=None):
    x = tensor(x)
    _check_rank(x)

    def pseudo_inverse(x):
        least = builtins.max(x._spec.shape[-2:]) * np.finfo(x._spec.dtype).eps
        return linalg.pinv(x, float(least) if rcond is None else rcond)

    return _in_input_dtype(pseudo_inverse, x)


def det(a):
    return _in_input_dtype(linalg.det, a)


def matrix_rank(x, tol=None):
    x = _lapack_precision(x)
    _check_rank(x)
    return linalg.matrix_rank(x, tol)


def _check_rank(x):
    if x.ndim < 2:
        raise ValueError(
            f"Expected input to have rank >= 2. Received input with shape {shape_of(x)}."
        )


# Norms


def norm(x, ord=None, axis=None, keepdims=False):
    x_in = inexact(x)
    x = at_least_float32(x_in)
    if axis is None and ord is None:
        y = _euclidean(x, None, keepdims)
    else:
        axes = tuple(canonicalize_axis(a, x.ndim, "norm") for a in _axes(axis, x.ndim))
        if not 1 <= len(axes) <= 2:
            raise ValueError(
                f"norm: ord={ord} is defined only for vectors and matrices. Received: axis={axis} "
                f"for shape {shape_of(x)}."
            )
        y = (_vector_norm if len(axes) == 1 else _matrix_norm)(x, ord, axes, keepdims)
    return to_dtype(y, x_in._spec.dtype)


def _axes(axis, ndim):
    if axis is None:
        return range(ndim)
    return axis if isinstance(axis, (list, tuple)) else (axis,)


def _euclidean(x, axes, keepdims):
    magnitude = absolute(x) if x._spec.dtype.kind == "c" else x
    return sqrt(sum(magnitude * magnitude, axes, keepdims))


def _vector_norm(x, ord, axes, keepdims):
    if ord is None or ord == 2:
        return _euclidean(x, axes, keepdims)
    if isinstance(ord, str):
        raise ValueError(f"norm: ord={shown(ord)} is not defined for vectors.")
    magnitude = absolute(x)
    if ord in (np.inf, -np.inf):
        return (max if ord > 0 else min)(magnitude, axes, keepdims)
    if ord == 0:
        return sum(
            to_dtype(not_equal(magnitude, zeros_like(magnitude)), magnitude._spec.dtype),
            axes,
            keepdims,
        )
    if ord == 1:
        return sum(magnitude, axes, keepdims)
    return sum(magnitude ** float(ord), axes, keepdims) ** (1.0 / ord)


def _matrix_norm(x, ord, axes, keepdims):
    if ord in (None, "fro"):
        return _euclidean(x, axes, keepdims)
    x = moveaxis(x, axes, (-2, -1))
    if ord in ("nuc", 2, -2):
        s = linalg.svd(x, compute_uv=False)
        y = {"nuc": sum, 2: max, -2: min}[ord](s, -1)
    elif ord in (1, -1, np.inf, -np.inf):
        sums = sum(absolute(x), -2 if ord in (1, -1) else -1)
        y = (max if ord > 0 else min)(sums, -1)
    else:
        raise ValueError(f"norm: ord={shown(ord)} is not defined for matrices.")
    return expand_dims(y, tuple(sorted(axes))) if keepdims else y


# Derivatives


def jvp(fun, primals, tangents, has_aux=False):
    """Returns `fun(*primals)` and its Jacobian-vector product with `tangents`."""
    flat, pack = nest.flatten_with_pack(tuple(primals))
    xs = [identity(tensor(x)) for x in flat]
    input_tangents = [
        of_dtype(t, x._spec.dtype) for t, x in zip(nest.flatten(tuple(tangents)), xs, strict=True)
    ]
    with ForwardAccumulator(xs, input_tangents) as accumulator:
        y = fun(*pack(xs))
        y, *aux = y if has_aux else (y,)
        tangent = accumulator.jvp(y, unconnected_gradients="zero")
    return (y, tangent, *aux)
