"""Decompositions of matrices, and what follows from them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from retrograde.core.apply import apply
from retrograde.core.tensor import Tensor
from retrograde.linalg._inputs import matrices_of, squares_of
from retrograde.math._inputs import dtype_name
from retrograde.ops import decomposition as dc
from retrograde.ops import matrices, reduction, solvers
from retrograde.ops.casting import to_dtype
from retrograde.ops.complex_numbers import real
from retrograde.ops.conversion import as_tensor, count_dtype
from retrograde.ops.elementary import log
from retrograde.values import dtypes
from retrograde.values.errors import invalid


class Qr(NamedTuple):
    """What `qr` returns: orthonormal columns, and an upper triangle."""

    q: Tensor
    r: Tensor


class Lu(NamedTuple):
    """What `lu` returns: both triangles in one matrix, and the order of the rows."""

    lu: Tensor
    p: Tensor


class LogMatrixDeterminant(NamedTuple):
    """What `slogdet` returns: the sign, and the logarithm of the absolute value."""

    sign: Tensor
    log_abs_determinant: Tensor


def cholesky(input: Any, name: str | None = None) -> Tensor:
    """The lower triangle L with L L^H = `input`, for matrices that are positive definite.

    Only the lower triangle of `input` is read; the gradient is that of a Hermitian matrix, and so
    Hermitian itself. A matrix that is not positive definite gives nan.

    >>> tf.linalg.cholesky([[4.0, 0.0], [2.0, 5.0]]).numpy()
    array([[2., 0.],
           [1., 2.]], dtype=float32)
    """
    return apply(dc.cholesky, (squares_of(input, "cholesky"),))


def qr(input: Any, full_matrices: bool = False, name: str | None = None) -> Qr:
    """Orthonormal columns `q` and an upper triangle `r` whose product is `input`.

    With `full_matrices`, `q` is square. The columns that it has more can be any that complete the
    others: only functions that do not depend on the choice have a meaningful gradient.

    >>> q, r = tf.linalg.qr([[3.0], [4.0]])
    >>> r.numpy()
    array([[-5.]], dtype=float32)
    """
    x = matrices_of(input, "qr")
    dtype = x._spec.dtype
    if dtype == np.float16:
        x = to_dtype(x, np.dtype(np.float32))
    parts = apply(dc.qr, (x,), {"full": bool(full_matrices)})
    return Qr(*(to_dtype(part, dtype) for part in parts))


def svd(
    tensor: Any, full_matrices: bool = False, compute_uv: bool = True, name: str | None = None
) -> Any:
    """Singular values, the largest first, with left and right singular vectors as columns.

    `tensor` is `u @ diag(s) @ adjoint(v)`, and what is returned are `s`, `u` and `v`; or `s` alone
    if `compute_uv` is false. The signs of vectors, and their phases if they are complex, are not
    fixed; nor are the vectors of values that repeat, nor those that `full_matrices` adds. Only
    functions that do not depend on the choice have a meaningful gradient.

    >>> s, u, v = tf.linalg.svd([[3.0, 0.0], [0.0, 5.0]])
    >>> s.numpy()
    array([5., 3.], dtype=float32)
    """
    x = matrices_of(tensor, "svd")
    if not compute_uv:
        return apply(dc.singular_values, (x,))
    return apply(dc.svd, (x,), {"full": bool(full_matrices)})


def eigh(tensor: Any, name: str | None = None) -> tuple[Tensor, Tensor]:
    """Eigenvalues of Hermitian matrices, the smallest first, and eigenvectors as columns.

    Only the lower triangle is read, and the gradient lies there. The signs of vectors are not
    fixed, nor are the vectors of values that repeat: only functions that do not depend on the
    choice have a meaningful gradient.

    >>> e, v = tf.linalg.eigh([[2.0, 0.0], [1.0, 2.0]])
    >>> e.numpy()
    array([1., 3.], dtype=float32)
    """
    return apply(dc.eigh, (squares_of(tensor, "eigh"),))


def eigvalsh(tensor: Any, name: str | None = None) -> Tensor:
    """Eigenvalues of Hermitian matrices, the smallest first. Only the lower triangle is read."""
    return apply(dc.eigvalsh, (squares_of(tensor, "eigvalsh"),))


def eig(tensor: Any, name: str | None = None) -> tuple[Tensor, Tensor]:
    """Eigenvalues of square matrices in no special order, and eigenvectors of length 1 as columns.

    Both are complex.

    >>> e, v = tf.linalg.eig([[0.0, -1.0], [1.0, 0.0]])
    >>> e.numpy()
    array([0.+1.j, 0.-1.j], dtype=complex64)
    """
    return apply(dc.eig, (squares_of(tensor, "eig"),))


def eigvals(tensor: Any, name: str | None = None) -> Tensor:
    """Eigenvalues of square matrices in no special order. They are complex."""
    return apply(dc.eigvals, (squares_of(tensor, "eigvals"),))


def lu(input: Any, output_idx_type: Any = dtypes.int32, name: str | None = None) -> Lu:
    """A unit lower and an upper triangle whose product is `input` with its rows in order `p`.

    Both triangles are in one matrix, without the ones on the diagonal of the first.

    >>> triangles, p = tf.linalg.lu([[1.0, 2.0], [4.0, 6.0]])
    >>> triangles.numpy(), p.numpy()
    (array([[4.  , 6.  ],
           [0.25, 0.5 ]], dtype=float32), array([1, 0], dtype=int32))
    """
    dtype = count_dtype(output_idx_type, np.int32, "lu")
    if dtype not in (np.dtype(np.int32), np.dtype(np.int64)):
        raise invalid(f"lu: `output_idx_type` must be int32 or int64. Received: {dtype.name}.")
    return Lu(*apply(dc.lu, (squares_of(input, "lu"),), {"dtype": dtype}))


# Determinants and rank


def det(input: Any, name: str | None = None) -> Tensor:
    """The determinants of square matrices. The gradient is there for singular ones too.

    >>> tf.linalg.det([[1.0, 2.0], [3.0, 5.0]]).numpy().round(5)
    np.float32(-1.0)
    """
    return apply(solvers.det, (squares_of(input, "det"),))


def slogdet(input: Any, name: str | None = None) -> LogMatrixDeterminant:
    """The sign of determinants, and the logarithm of their absolute values.

    For complex matrices the sign is a number of modulus 1. A singular matrix gives 0 and -inf.
    """
    return LogMatrixDeterminant(*apply(solvers.slogdet, (squares_of(input, "slogdet"),)))


def logdet(matrix: Any, name: str | None = None) -> Tensor:
    """The logarithm of the determinants of Hermitian matrices that are positive definite.

    >>> tf.linalg.logdet([[1.0, 0.0], [0.0, 1.0]]).numpy()
    np.float32(0.0)
    """
    d = matrices.diagonal(cholesky(matrix))
    logarithms = log(real(d) if d._spec.dtype.kind == "c" else d)
    return 2.0 * apply(reduction.sum, (logarithms,), {"axis": (d.ndim - 1,), "keepdims": False})


def matrix_rank(
    a: Any, tol: Any = None, validate_args: bool = False, name: str | None = None
) -> Tensor:
    """How many singular values are larger than `tol`, an integer for each matrix.

    Without `tol`, that is the rounding error to expect: the largest singular value times the larger
    dimension times the machine epsilon.

    >>> tf.linalg.matrix_rank([[1.0, 2.0], [2.0, 4.0]]).numpy()
    np.int32(1)
    """
    x = inexact_matrices(a, "matrix_rank")
    s = apply(dc.singular_values, (x,))
    last = s.ndim - 1
    if tol is None:
        largest = apply(reduction.max, (s,), {"axis": (last,), "keepdims": True})
        limit = largest * float(max(x._spec.shape[-2:]) * np.finfo(s._spec.dtype).eps)
    else:
        limit = as_tensor(tol, s._spec.dtype)
    counted = to_dtype(s > limit, np.dtype(np.int32))
    return apply(reduction.sum, (counted,), {"axis": (last,), "keepdims": False})


def inexact_matrices(value: Any, op_name: str) -> Tensor:
    """Matrices of floating or complex numbers, with the errors of `pinv` and `matrix_rank`."""
    x = as_tensor(value)
    if x._spec.dtype.kind not in "fc":
        raise TypeError(
            f"{op_name}: `a` must have a floating or complex dtype. Received: {dtype_name(x)}."
        )
    if x.ndim < 2:
        raise ValueError(f"{op_name}: `a` must have at least 2 axes. Received: {x.ndim}.")
    return x
