"""Matrix decompositions, determinants and rank."""

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
from retrograde.ops.conversion import as_tensor, numeric_dtype
from retrograde.ops.elementary import log
from retrograde.values import dtypes
from retrograde.values.composites import dispatched
from retrograde.values.errors import invalid


class Qr(NamedTuple):
    """The result of `qr`: orthonormal columns and an upper triangular matrix."""

    q: Tensor
    r: Tensor


class Lu(NamedTuple):
    """The result of `lu`: both triangular factors in one matrix, and the row permutation."""

    lu: Tensor
    p: Tensor


class LogMatrixDeterminant(NamedTuple):
    """The result of `slogdet`: the sign and the logarithm of the absolute value."""

    sign: Tensor
    log_abs_determinant: Tensor


@dispatched
def cholesky(input: Any, name: str | None = None) -> Tensor:
    """Computes the lower triangular L with L L^H = `input`, for positive definite matrices.

    Only the lower triangle of `input` is read. The gradient assumes a Hermitian matrix and is
    itself Hermitian. A matrix that is not positive definite gives NaN.

    >>> tf.linalg.cholesky([[4.0, 0.0], [2.0, 5.0]]).numpy()
    array([[2., 0.],
           [1., 2.]], dtype=float32)
    """
    return apply(dc.cholesky, (squares_of(input, "cholesky"),))


def qr(input: Any, full_matrices: bool = False, name: str | None = None) -> Qr:
    """Computes the QR decomposition: `input` is the product of orthonormal `q` and triangular `r`.

    With `full_matrices`, `q` is square. The additional columns are an arbitrary completion, so only
    functions that do not depend on them have a meaningful gradient.

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
    """Computes singular values, in descending order, and singular vectors as columns.

    `tensor` is `u @ diag(s) @ adjoint(v)`. Returns `s`, `u` and `v`, or only `s` if `compute_uv` is
    false. The signs (for complex matrices, the phases) of the vectors are arbitrary. So are the
    vectors of repeated singular values and those that `full_matrices` adds. Only functions that do
    not depend on these choices have a meaningful gradient.

    >>> s, u, v = tf.linalg.svd([[3.0, 0.0], [0.0, 5.0]])
    >>> s.numpy()
    array([5., 3.], dtype=float32)
    """
    x = matrices_of(tensor, "svd")
    if not compute_uv:
        return apply(dc.singular_values, (x,))
    return apply(dc.svd, (x,), {"full": bool(full_matrices)})


def eigh(tensor: Any, name: str | None = None) -> tuple[Tensor, Tensor]:
    """Computes eigenvalues of Hermitian matrices, in ascending order, and eigenvectors as columns.

    Only the lower triangle is read, and the gradient is lower triangular. The signs of the vectors
    and the vectors of repeated eigenvalues are arbitrary. Only functions that do not depend on
    these choices have a meaningful gradient.

    >>> e, v = tf.linalg.eigh([[2.0, 0.0], [1.0, 2.0]])
    >>> e.numpy()
    array([1., 3.], dtype=float32)
    """
    return apply(dc.eigh, (squares_of(tensor, "eigh"),))


@dispatched
def eigvalsh(tensor: Any, name: str | None = None) -> Tensor:
    """Computes the eigenvalues of Hermitian matrices, in ascending order.

    Only the lower triangle is read.
    """
    return apply(dc.eigvalsh, (squares_of(tensor, "eigvalsh"),))


def eig(tensor: Any, name: str | None = None) -> tuple[Tensor, Tensor]:
    """Computes the eigenvalues of square matrices, and normalized eigenvectors as columns.

    Both are complex, and their order is arbitrary.

    >>> e, v = tf.linalg.eig([[0.0, -1.0], [1.0, 0.0]])
    >>> e.numpy()
    array([0.+1.j, 0.-1.j], dtype=complex64)
    """
    return apply(dc.eig, (squares_of(tensor, "eig"),))


def eigvals(tensor: Any, name: str | None = None) -> Tensor:
    """Computes the eigenvalues of square matrices. They are complex, in arbitrary order."""
    return apply(dc.eigvals, (squares_of(tensor, "eigvals"),))


def lu(input: Any, output_idx_type: Any = dtypes.int32, name: str | None = None) -> Lu:
    """Computes the LU decomposition of `input` with its rows permuted by `p`.

    The unit lower and the upper triangular factor are stored in one matrix, without the unit
    diagonal.

    >>> triangles, p = tf.linalg.lu([[1.0, 2.0], [4.0, 6.0]])
    >>> triangles.numpy(), p.numpy()
    (array([[4.  , 6.  ],
           [0.25, 0.5 ]], dtype=float32), array([1, 0], dtype=int32))
    """
    dtype = numeric_dtype(output_idx_type, np.int32, "lu")
    if dtype not in (np.dtype(np.int32), np.dtype(np.int64)):
        raise invalid(f"lu: `output_idx_type` must be int32 or int64. Received: {dtype.name}.")
    return Lu(*apply(dc.lu, (squares_of(input, "lu"),), {"dtype": dtype}))


# Determinants and rank


@dispatched
def det(input: Any, name: str | None = None) -> Tensor:
    """Computes the determinants of square matrices. The gradient exists for singular matrices too.

    >>> tf.linalg.det([[1.0, 2.0], [3.0, 5.0]]).numpy().round(5)
    np.float32(-1.0)
    """
    return apply(solvers.det, (squares_of(input, "det"),))


def slogdet(input: Any, name: str | None = None) -> LogMatrixDeterminant:
    """Computes the sign and the logarithm of the absolute value of the determinants.

    For complex matrices the sign is a number of modulus 1. A singular matrix gives 0 and -Inf.
    """
    return LogMatrixDeterminant(*apply(solvers.slogdet, (squares_of(input, "slogdet"),)))


@dispatched
def logdet(matrix: Any, name: str | None = None) -> Tensor:
    """Computes the log determinants of Hermitian positive definite matrices.

    >>> tf.linalg.logdet([[1.0, 0.0], [0.0, 1.0]]).numpy()
    np.float32(0.0)
    """
    d = matrices.diagonal(cholesky(matrix))
    logarithms = log(real(d) if d._spec.dtype.kind == "c" else d)
    return 2.0 * apply(reduction.sum, (logarithms,), {"axis": (d.ndim - 1,), "keepdims": False})


def matrix_rank(
    a: Any, tol: Any = None, validate_args: bool = False, name: str | None = None
) -> Tensor:
    """Counts the singular values of each matrix that are larger than `tol`.

    By default, `tol` is the expected rounding error: the largest singular value times the larger
    dimension times the machine epsilon.

    >>> tf.linalg.matrix_rank([[1.0, 2.0], [2.0, 4.0]]).numpy()
    np.int32(1)
    """
    x = inexact_matrices(a, "matrix_rank")
    s = apply(dc.singular_values, (x,))
    if tol is None:
        largest = apply(reduction.max, (s,), {"axis": (s.ndim - 1,), "keepdims": True})
        limit = largest * float(max(x._spec.shape[-2:]) * np.finfo(s._spec.dtype).eps)
    else:
        limit = as_tensor(tol, s._spec.dtype)
    counted = to_dtype(s > limit, np.dtype(np.int32))
    return apply(reduction.sum, (counted,), {"axis": (counted.ndim - 1,), "keepdims": False})


def inexact_matrices(value: Any, op_name: str) -> Tensor:
    """Converts `value` to float or complex matrices, with the errors of `pinv`."""
    x = as_tensor(value)
    if x._spec.dtype.kind not in "fc":
        raise TypeError(
            f"{op_name}: `a` must have a floating or complex dtype. Received: {dtype_name(x)}."
        )
    if x.ndim < 2:
        raise ValueError(f"{op_name}: `a` must have at least 2 axes. Received: {x.ndim}.")
    return x
