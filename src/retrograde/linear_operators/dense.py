"""Operators given by all their entries: full and lower triangular matrices."""

from __future__ import annotations

from typing import Any

from retrograde.core.tensor import Tensor
from retrograde.debugging.comparisons import assert_none_equal
from retrograde.linalg.diagonals import band_part, diag_part
from retrograde.linalg.products import matmul
from retrograde.linalg.solvers import triangular_solve
from retrograde.linear_operators.arguments import (
    conjugate_transpose,
    constructor_arguments,
    dtype_of,
    parameter_tensor,
)
from retrograde.linear_operators.linear_operator import LinearOperator
from retrograde.math.elementary import abs as absolute
from retrograde.math.elementary import log
from retrograde.math.reductions import reduce_prod, reduce_sum
from retrograde.ops.conversion import as_tensor
from retrograde.toplevel.shaping import cast


class LinearOperatorFullMatrix(LinearOperator):
    """A dense matrix.

    >>> operator = tf.linalg.LinearOperatorFullMatrix([[1.0, 2.0], [3.0, 4.0]])
    >>> operator.matvec([1.0, 1.0]).numpy()
    array([3., 7.], dtype=float32)
    """

    def __init__(
        self,
        matrix: Any,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str = "LinearOperatorFullMatrix",
    ) -> None:
        parameters = constructor_arguments(locals())
        self._matrix = matrix_parameter(matrix, "matrix")
        super().__init__(
            dtype_of(self._matrix), None, is_non_singular, is_self_adjoint, is_positive_definite,
            is_square, name, parameters,
        )  # fmt: skip

    @property
    def matrix(self) -> Any:
        """The matrix."""
        return self._matrix

    def _shape(self) -> Any:
        return self._matrix.shape

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        return matmul(self.to_dense(), x, adjoint_a=adjoint, adjoint_b=adjoint_arg)

    def _to_dense(self) -> Tensor:
        return as_tensor(self._matrix)


class LinearOperatorLowerTriangular(LinearOperator):
    """A lower triangular matrix. Entries above the diagonal of `tril` are ignored.

    >>> operator = tf.linalg.LinearOperatorLowerTriangular([[2.0, 9.0], [1.0, 1.0]])
    >>> operator.solvevec([4.0, 5.0]).numpy()
    array([2., 3.], dtype=float32)
    """

    def __init__(
        self,
        tril: Any,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str = "LinearOperatorLowerTriangular",
    ) -> None:
        parameters = constructor_arguments(locals())
        if is_square is False:
            raise ValueError("Only square lower triangular operators supported at this time.")
        self._tril = matrix_parameter(tril, "tril")
        super().__init__(
            dtype_of(self._tril), None, is_non_singular, is_self_adjoint, is_positive_definite,
            True, name, parameters,
        )  # fmt: skip

    @property
    def tril(self) -> Any:
        """The matrix, whose upper triangle is ignored."""
        return self._tril

    def _shape(self) -> Any:
        return self._tril.shape

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        return matmul(self.to_dense(), x, adjoint_a=adjoint, adjoint_b=adjoint_arg)

    def _solve(self, rhs: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        rhs = conjugate_transpose(rhs, adjoint_arg)
        return triangular_solve(self.to_dense(), rhs, lower=True, adjoint=adjoint)

    def _to_dense(self) -> Tensor:
        return band_part(as_tensor(self._tril), -1, 0)

    def _diag_part(self) -> Tensor:
        return diag_part(as_tensor(self._tril))

    def _determinant(self) -> Tensor:
        return reduce_prod(self.diag_part(), axis=-1)

    def _log_abs_determinant(self) -> Tensor:
        return cast(reduce_sum(log(absolute(self.diag_part())), axis=-1), self.dtype)

    def _assert_non_singular(self) -> None:
        assert_none_equal(
            self.diag_part(),
            cast(0, self.dtype),
            message="Singular operator: the diagonal has zeros.",
        )


def matrix_parameter(value: Any, name: str) -> Any:
    """Converts a parameter to a tensor of rank 2 or more."""
    x = parameter_tensor(value, name)
    if x.shape.rank < 2:
        raise ValueError(f"Argument `{name}` must have at least 2 dimensions. Received: {value}.")
    return x
