"""Permutations, reflections, tridiagonal and Toeplitz matrices."""

from __future__ import annotations

from typing import Any

from retrograde.core.tensor import Tensor
from retrograde.linalg.banded import _compact, tridiagonal_matmul, tridiagonal_solve
from retrograde.linalg.diagonals import diag
from retrograde.linalg.norms import norm
from retrograde.linear_operators.arguments import (
    broadcast_batch,
    conjugate_transpose,
    constructor_arguments,
    dtype_of,
    parameter_tensor,
)
from retrograde.linear_operators.linear_operator import LinearOperator
from retrograde.math.elementary import conj, real
from retrograde.math.reductions import reduce_sum
from retrograde.ops.conversion import as_tensor
from retrograde.signal.fourier import fft, ifft
from retrograde.toplevel.creation import one_hot, ones, zeros
from retrograde.toplevel.creation import range as integer_range
from retrograde.toplevel.indexing import argsort, gather
from retrograde.toplevel.shaping import broadcast_to, cast, concat, expand_dims, reverse
from retrograde.values import dtypes
from retrograde.values.shapes import broadcast


class LinearOperatorPermutation(LinearOperator):
    """A permutation matrix: row i of the product is row `perm[i]` of the argument.

    >>> tf.linalg.LinearOperatorPermutation([2, 0, 1]).matvec([1.0, 2.0, 3.0]).numpy()
    array([3., 1., 2.], dtype=float32)
    """

    def __init__(
        self,
        perm: Any,
        dtype: Any = dtypes.float32,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str = "LinearOperatorPermutation",
    ) -> None:
        parameters = constructor_arguments(locals())
        if is_non_singular is False or is_square is False:
            raise ValueError("A permutation operator is always non-singular and square.")
        self._perm = parameter_tensor(perm, "perm")
        if not dtype_of(self._perm).is_integer:
            raise TypeError(
                f"Argument `perm` must be an integer tensor. Received: {self._perm.dtype}."
            )
        if not self._perm.shape.rank:
            raise ValueError(f"Argument `perm` must have at least 1 dimension. Received: {perm}.")
        super().__init__(
            dtype, None, True, is_self_adjoint, is_positive_definite, True, name, parameters
        )

    @property
    def perm(self) -> Any:
        """The permutation."""
        return self._perm

    def _shape(self) -> Any:
        return (*self._perm.shape, self._perm.shape[-1])

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        perm = as_tensor(self._perm)
        order = argsort(perm, axis=-1) if adjoint else perm
        x = conjugate_transpose(x, adjoint_arg)
        batch = broadcast(tuple(order.shape[:-1]), tuple(x.shape[:-2]))
        x = broadcast_to(x, (*batch, *x.shape[-2:]))
        order = broadcast_to(order, (*batch, order.shape[-1]))
        return gather(x, order, axis=-2, batch_dims=len(batch))

    def _solve(self, rhs: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        return self._matmul(rhs, not adjoint, adjoint_arg)

    def _inverse(self) -> LinearOperator:
        order = argsort(as_tensor(self._perm), axis=-1)
        return LinearOperatorPermutation(order, self.dtype, is_self_adjoint=self.is_self_adjoint)

    _adjoint = _inverse

    def _to_dense(self) -> Tensor:
        return one_hot(as_tensor(self._perm), self.domain_dimension, dtype=self.dtype)

    def _log_abs_determinant(self) -> Tensor:
        return zeros(self.batch_shape, self.dtype)

    def _cond(self) -> Tensor:
        return ones(self.batch_shape, self.dtype)

    def _assert_non_singular(self) -> None:
        pass


class LinearOperatorHouseholder(LinearOperator):
    """The reflection `I - 2 v v^H` at the hyperplane orthogonal to `reflection_axis`.

    The axis is normalized.

    >>> tf.linalg.LinearOperatorHouseholder([1.0, 0.0]).matvec([3.0, 4.0]).numpy()
    array([-3.,  4.], dtype=float32)
    """

    def __init__(
        self,
        reflection_axis: Any,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str = "LinearOperatorHouseholder",
    ) -> None:
        parameters = constructor_arguments(locals())
        if is_positive_definite:
            raise ValueError("A Householder operator is always non-positive definite.")
        if False in (is_non_singular, is_self_adjoint, is_square):
            raise ValueError("A Householder operator is always non-singular and self-adjoint.")
        self._reflection_axis = parameter_tensor(reflection_axis, "reflection_axis")
        if not self._reflection_axis.shape.rank:
            raise ValueError(
                f"Argument reflection_axis must have at least 1 dimension. Received: "
                f"{reflection_axis}."
            )
        super().__init__(
            dtype_of(self._reflection_axis), None, True, True, False, True, name, parameters
        )

    @property
    def reflection_axis(self) -> Any:
        """The normal of the hyperplane."""
        return self._reflection_axis

    def _shape(self) -> Any:
        return (*self._reflection_axis.shape, self._reflection_axis.shape[-1])

    def _normal(self) -> Tensor:
        axis = as_tensor(self._reflection_axis)
        return axis / norm(axis, axis=-1, keepdims=True)

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        x = conjugate_transpose(x, adjoint_arg)
        v = expand_dims(self._normal(), -1)
        return x - 2 * v * reduce_sum(conj(v) * x, axis=-2, keepdims=True)

    _solve = _matmul

    def _inverse(self) -> LinearOperator:
        return self

    def _diag_part(self) -> Tensor:
        v = self._normal()
        return 1 - 2 * v * conj(v)

    def _trace(self) -> Tensor:
        return ones(self.batch_shape, self.dtype) * (self.domain_dimension - 2)

    def _determinant(self) -> Tensor:
        return -ones(self.batch_shape, self.dtype)

    def _log_abs_determinant(self) -> Tensor:
        return zeros(self.batch_shape, self.dtype)

    def _eigvals(self) -> Tensor:
        positive = ones((*self.batch_shape, self.domain_dimension - 1), self.dtype)
        return concat([-ones((*self.batch_shape, 1), self.dtype), positive], -1)

    def _cond(self) -> Tensor:
        return ones(self.batch_shape, self.dtype)

    def _assert_non_singular(self) -> None:
        pass

    _assert_self_adjoint = _assert_non_singular


class LinearOperatorTridiag(LinearOperator):
    """A tridiagonal matrix, given by its three diagonals.

    The formats are the same as in `tf.linalg.tridiagonal_solve`.

    >>> diagonals = [[1.0, 1.0, 0.0], [2.0, 2.0, 2.0], [0.0, 1.0, 1.0]]
    >>> tf.linalg.LinearOperatorTridiag(diagonals).to_dense().numpy()
    array([[2., 1., 0.],
           [1., 2., 1.],
           [0., 1., 2.]], dtype=float32)
    """

    def __init__(
        self,
        diagonals: Any,
        diagonals_format: str = "compact",
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str = "LinearOperatorTridiag",
    ) -> None:
        parameters = constructor_arguments(locals())
        if is_square is False:
            raise ValueError("A tridiagonal operator is always square.")
        if diagonals_format == "sequence":
            diagonals = [parameter_tensor(d, "diagonals") for d in diagonals]
        else:
            diagonals = parameter_tensor(diagonals, "diagonals")
        self._diagonals = diagonals
        self._diagonals_format = diagonals_format
        compact = self._compact()
        super().__init__(
            dtype_of(compact), None, is_non_singular, is_self_adjoint, is_positive_definite, True,
            name, parameters,
        )  # fmt: skip

    @property
    def diagonals(self) -> Any:
        """The diagonals, as given."""
        return self._diagonals

    @property
    def diagonals_format(self) -> str:
        """The format of the diagonals: "compact", "sequence" or "matrix"."""
        return self._diagonals_format

    def _compact(self) -> Tensor:
        """Returns the three diagonals as rows."""
        return _compact(self._diagonals, self._diagonals_format, "LinearOperatorTridiag")

    def _get_diagonals(self, adjoint: bool) -> Tensor:
        """Returns the diagonals of the operator or of its adjoint."""
        d = self._compact()
        if not adjoint:
            return d
        above, main, below = (conj(d[..., i, :]) for i in (0, 1, 2))
        edge = main[..., :1] * 0
        return stack_rows(
            concat([below[..., 1:], edge], -1), main, concat([edge, above[..., :-1]], -1)
        )

    def _shape(self) -> Any:
        *batch, _, n = self._compact().shape
        return (*batch, n, n)

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        d, x = broadcast_batch(self._get_diagonals(adjoint), conjugate_transpose(x, adjoint_arg))
        return tridiagonal_matmul(d, x)

    def _solve(self, rhs: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        d, rhs = broadcast_batch(
            self._get_diagonals(adjoint), conjugate_transpose(rhs, adjoint_arg)
        )
        return tridiagonal_solve(d, rhs)

    def _adjoint(self) -> LinearOperator:
        return LinearOperatorTridiag(self._get_diagonals(adjoint=True), **self._hints())

    def _to_dense(self) -> Tensor:
        return diag(self._compact(), k=(-1, 1), align="LEFT_RIGHT", num_rows=self.domain_dimension)

    def _diag_part(self) -> Tensor:
        return self._compact()[..., 1, :]


def stack_rows(*rows: Tensor) -> Tensor:
    """Stacks vectors as rows."""
    return concat([expand_dims(row, -2) for row in rows], -2)


class LinearOperatorToeplitz(LinearOperator):
    """A Toeplitz matrix, with equal entries along each diagonal: its first column and row.

    Products are convolutions, by fast Fourier transforms.

    >>> tf.linalg.LinearOperatorToeplitz([1.0, 2.0], [1.0, 3.0]).to_dense().numpy()
    array([[1., 3.],
           [2., 1.]], dtype=float32)
    """

    def __init__(
        self,
        col: Any,
        row: Any,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str = "LinearOperatorToeplitz",
    ) -> None:
        parameters = constructor_arguments(locals())
        self._col = parameter_tensor(col, "col")
        self._row = parameter_tensor(row, "row")
        for argument, value in (("col", self._col), ("row", self._row)):
            if not value.shape.rank:
                raise ValueError(f"Argument {argument} must have at least 1 dimension.")
        if is_square is False:
            raise ValueError("A Toeplitz operator is always square.")
        if self._col.shape[-1] != self._row.shape[-1]:
            raise ValueError(
                f"Expected square matrices. Received: a column of {self._col.shape[-1]} and a row "
                f"of {self._row.shape[-1]} elements."
            )
        super().__init__(
            dtype_of(self._row), None, is_non_singular, is_self_adjoint, is_positive_definite,
            True, name, parameters,
        )  # fmt: skip

    @property
    def col(self) -> Any:
        """The first column."""
        return self._col

    @property
    def row(self) -> Any:
        """The first row. Its first element is not used."""
        return self._row

    def _shape(self) -> Any:
        batch = broadcast(tuple(self._col.shape[:-1]), tuple(self._row.shape[:-1]))
        return (*batch, self._col.shape[-1], self._row.shape[-1])

    def _entries(self, adjoint: bool) -> tuple[Tensor, Tensor]:
        """Returns the first column, and the first row without its first element."""
        col, row = as_tensor(self._col), as_tensor(self._row)
        if adjoint:
            col, row = conj(concat([col[..., :1] + 0 * row[..., :1], row[..., 1:]], -1)), conj(col)
        batch = tuple(self.batch_shape)
        n = self.domain_dimension
        return broadcast_to(col, (*batch, n)), broadcast_to(row, (*batch, n))[..., 1:]

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        x = conjugate_transpose(x, adjoint_arg)
        col, row = self._entries(adjoint)
        n = self.domain_dimension
        kernel = concat([col, reverse(row, [-1])], -1)
        columns = conjugate_transpose(conj(x))  # vectors in the last axis
        padded = concat([columns, zeros((*columns.shape[:-1], n - 1), x.dtype)], -1)
        wide = (
            dtypes.complex128
            if self.dtype.size > 8 or self.dtype == dtypes.float64
            else (dtypes.complex64)
        )
        y = ifft(fft(cast(padded, wide)) * expand_dims(fft(cast(kernel, wide)), -2))[..., :n]
        return conjugate_transpose(conj(y if self.dtype.is_complex else cast(real(y), self.dtype)))

    def _to_dense(self) -> Tensor:
        col, row = self._entries(adjoint=False)
        n = self.domain_dimension
        diagonals = concat([reverse(row, [-1]), col], -1)
        offsets = expand_dims(integer_range(n), -1) - integer_range(n) + (n - 1)
        return gather(diagonals, offsets, axis=-1)

    def _diag_part(self) -> Tensor:
        col, _ = self._entries(adjoint=False)
        return broadcast_to(col[..., :1], (*self.batch_shape, self.domain_dimension))

    def _adjoint(self) -> LinearOperator:
        col, row = self._entries(adjoint=True)
        return LinearOperatorToeplitz(col, concat([col[..., :1], row], -1), **self._hints())
