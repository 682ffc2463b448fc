"""Linear equations, inverses and least squares."""

from __future__ import annotations

from typing import Any

import numpy as np

from retrograde.core.apply import apply
from retrograde.core.tensor import Tensor
from retrograde.linalg._inputs import check_compatible, equations_of, matrices_of, squares_of
from retrograde.linalg.decompositions import cholesky, inexact_matrices
from retrograde.ops import decomposition, matrices, solvers
from retrograde.ops.casting import identity, to_dtype
from retrograde.ops.conversion import as_tensor, same_dtype
from retrograde.ops.indexing import argsort, gather, gather_nd
from retrograde.ops.shaping import broadcast_to, reshape
from retrograde.values.composites import dispatched
from retrograde.values.errors import invalid


@dispatched
def inv(input: Any, adjoint: bool = False, name: str | None = None) -> Tensor:
    """Computes the inverses of square matrices, or of their adjoints with `adjoint`.

    >>> tf.linalg.inv([[2.0, 1.0], [1.0, 1.0]]).numpy()
    array([[ 1., -1.],
           [-1.,  2.]], dtype=float32)
    """
    x = squares_of(input, "inv")
    return apply(solvers.inv, (matrices.adjoint(x) if adjoint else x,))


@dispatched
def solve(matrix: Any, rhs: Any, adjoint: bool = False, name: str | None = None) -> Tensor:
    """Solves `matrix @ x = rhs`, or `adjoint(matrix) @ x = rhs` with `adjoint`.

    The right-hand sides are columns. All axes but the last two must be equal.

    >>> tf.linalg.solve([[2.0, 0.0], [1.0, 1.0]], [[4.0], [5.0]]).numpy()
    array([[2.],
           [3.]], dtype=float32)
    """
    a, b = equations_of(matrix, rhs, "solve")
    if a._spec.shape[:-2] != b._spec.shape[:-2]:
        raise invalid(
            f"solve: leading axes differ in shapes {a._spec.shape} and {b._spec.shape}. Expected "
            "equal leading axes."
        )
    return apply(solvers.solve, (a, b), {"adjoint": bool(adjoint)})


def triangular_solve(
    matrix: Any, rhs: Any, lower: bool = True, adjoint: bool = False, name: str | None = None
) -> Tensor:
    """Solves linear equations with triangular matrices.

    Only the `lower`, or otherwise the upper, triangle is read. Leading axes broadcast. If the
    diagonal has a zero, the solution is not finite.

    >>> tf.linalg.triangular_solve([[2.0, 9.0], [1.0, 1.0]], [[4.0], [5.0]]).numpy()
    array([[2.],
           [3.]], dtype=float32)
    """
    a, b = equations_of(matrix, rhs, "triangular_solve")
    return _triangular(a, b, bool(lower), bool(adjoint))


def _triangular(a: Tensor, b: Tensor, lower: bool, adjoint: bool = False) -> Tensor:
    return apply(solvers.triangular_solve, (a, b), {"lower": lower, "adjoint": adjoint})


def cholesky_solve(chol: Any, rhs: Any, name: str | None = None) -> Tensor:
    """Solves `a @ x = rhs`, where `chol` is `cholesky(a)`. Leading axes broadcast."""
    a, b = equations_of(chol, rhs, "cholesky_solve")
    return _triangular(a, _triangular(a, b, True), True, adjoint=True)


# From the results of `lu`


def lu_solve(
    lower_upper: Any,
    perm: Any,
    rhs: Any,
    validate_args: bool = False,
    name: str | None = None,
) -> Tensor:
    """Solves `a @ x = rhs`, where `lower_upper` and `perm` are `lu(a)`.

    >>> tf.linalg.lu_solve(*tf.linalg.lu([[2.0, 0.0], [1.0, 1.0]]), [[4.0], [5.0]]).numpy()
    array([[2.],
           [3.]], dtype=float32)
    """
    lu, order = _check_lu(lower_upper, perm, "lu_solve")
    b = as_tensor(rhs, lu._spec.dtype)
    if b.ndim < 2:
        raise ValueError(f"lu_solve: `rhs` must have at least 2 axes. Received: {b.ndim}.")
    if b._spec.shape[-2] != lu._spec.shape[-1]:
        raise ValueError(
            f"lu_solve: `rhs` has {b._spec.shape[-2]} rows. Expected {lu._spec.shape[-1]}."
        )
    lu, b = check_compatible(lu, b, "lu_solve")
    half = _triangular(decomposition.unit_lower_triangle(lu), _permute_rows(b, order), True)
    return _triangular(lu, half, False)


def lu_reconstruct(
    lower_upper: Any, perm: Any, validate_args: bool = False, name: str | None = None
) -> Tensor:
    """Reconstructs the matrices from their LU decomposition."""
    lu, order = _check_lu(lower_upper, perm, "lu_reconstruct")
    product = matrices.product(decomposition.unit_lower_triangle(lu), matrices.upper_triangle(lu))
    return _permute_rows(
        product, apply(argsort, (order,), {"axis": order.ndim - 1, "descending": False})
    )


def lu_matrix_inverse(
    lower_upper: Any, perm: Any, validate_args: bool = False, name: str | None = None
) -> Tensor:
    """Computes the inverses of matrices from their LU decomposition."""
    lu, order = _check_lu(lower_upper, perm, "lu_matrix_inverse")
    unit = np.eye(lu._spec.shape[-1], dtype=lu._spec.dtype)
    return lu_solve(lu, order, Tensor(np.broadcast_to(unit, lu._spec.shape)))


def _check_lu(lower_upper: Any, perm: Any, op_name: str) -> tuple[Tensor, Tensor]:
    lu, order = as_tensor(lower_upper), as_tensor(perm)
    shape = lu._spec.shape
    if lu.ndim < 2 or shape[-2] != shape[-1]:
        raise ValueError(f"{op_name}: `lower_upper` must be square. Received: shape {shape}.")
    if order._spec.dtype.kind != "i" or order._spec.shape[-1:] != shape[-1:]:
        raise invalid(
            f"{op_name}: `perm` must be integers, one for each row. Received: shape "
            f"{order._spec.shape} of dtype {order.dtype.name}."
        )
    return lu, order


def _permute_rows(x: Tensor, order: Tensor) -> Tensor:
    """Permutes the rows of `x`, with one permutation for all matrices or one for each."""
    if order.ndim == 1:
        x = apply(identity, (x,))  # makes the gradient dense instead of IndexedSlices
        return apply(gather, (x, order), {"axis": x.ndim - 2, "dense_gradient": True})
    *batch, rows = np.broadcast_shapes(x._spec.shape[:-1], order._spec.shape)
    x = broadcast_to(x, shape=(*batch, *x._spec.shape[-2:]))
    order = broadcast_to(order, shape=(*batch, rows))
    indices = reshape(order, shape=(*order._spec.shape, 1))
    return apply(gather_nd, (x, indices), {"batch_dims": x.ndim - 2})


# Least squares


def lstsq(
    matrix: Any,
    rhs: Any,
    l2_regularizer: Any = 0.0,
    fast: bool = True,
    name: str | None = None,
) -> Tensor:
    """Solves linear least squares: minimizes `|matrix @ x - rhs|`, with the smallest `x` in a tie.

    The squared norm of x times `l2_regularizer` is added to the objective. If `fast`, it is solved
    with the normal equations, which require full rank. Otherwise it is solved with the
    pseudoinverse, which ignores the regularizer, is slower, and supports matrices of any rank.

    >>> tf.linalg.lstsq([[2.0], [0.0]], [[4.0], [3.0]]).numpy()
    array([[2.]], dtype=float32)
    """
    a, b = same_dtype(matrix, rhs)
    a, b = check_compatible(matrices_of(a, "lstsq"), matrices_of(b, "lstsq"), "lstsq")
    if not fast:
        return matrices.product(pinv(a), b)
    rows, columns = a._spec.shape[-2:]
    tall = rows >= columns
    gram = matrices.product(a, a, adjoint_a=tall, adjoint_b=not tall)
    chol = cholesky(_regularize(gram, l2_regularizer))
    if tall:
        return cholesky_solve(chol, matrices.product(a, b, adjoint_a=True))
    return matrices.product(a, cholesky_solve(chol, b), adjoint_a=True)


def _regularize(gram: Tensor, regularizer: Any) -> Tensor:
    if type(regularizer) is float and not regularizer:
        return gram
    dtype = gram._spec.dtype
    weight = to_dtype(as_tensor(regularizer, dtype.type(0).real.dtype), dtype)
    return gram + weight * Tensor(np.eye(gram._spec.shape[-1], dtype=dtype))


def pinv(a: Any, rcond: Any = None, validate_args: bool = False, name: str | None = None) -> Tensor:
    """Computes the pseudoinverses of matrices of any shape and rank.

    Singular values up to `rcond` times the largest count as 0. `rcond` is one number, or one per
    matrix; by default, ten times the larger dimension times the machine epsilon.

    >>> tf.linalg.pinv([[2.0, 0.0], [0.0, 0.0], [0.0, 4.0]]).numpy()
    array([[0.5 , 0.  , 0.  ],
           [0.  , 0.  , 0.25]], dtype=float32)
    """
    x = inexact_matrices(a, "pinv")
    *batch, rows, columns = x._spec.shape
    dtype = x._spec.dtype
    truncates = rcond is not None
    if not truncates:
        rcond = 10.0 * max(rows, columns) * float(np.finfo(dtype).eps)
    limit = to_dtype(as_tensor(rcond, dtype.type(0).real.dtype), dtype)
    limit = broadcast_to(limit, shape=tuple(batch))
    return apply(decomposition.pinv, (x, limit), {"truncates": truncates})
