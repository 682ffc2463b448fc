"""The adjoint and the inverse of an operator, computed on use."""

from __future__ import annotations

from typing import Any

from retrograde.core.tensor import Tensor
from retrograde.linalg.diagonals import adjoint as conjugate_transpose
from retrograde.linear_operators.arguments import constructor_arguments
from retrograde.linear_operators.linear_operator import LinearOperator
from retrograde.math.elementary import conj
from retrograde.values.arguments import expect


def _merge_hints(hint: bool | None, inherited: bool | None, name: str) -> bool | None:
    if hint is not None and inherited is not None and hint != inherited:
        raise ValueError(f"The hint {name}={hint} contradicts {name}={inherited} of the operator.")
    return inherited if hint is None else hint


class _WrappedOperator(LinearOperator):
    """A base class of operators that wrap one operator and inherit its hints."""

    def __init__(self, operator: LinearOperator, hints: dict, name: str, parameters: dict) -> None:
        self._operator = operator
        merged = {key: _merge_hints(hints[key], getattr(operator, key), key) for key in hints}
        super().__init__(operator.dtype, name=name, parameters=parameters, **merged)

    @property
    def operator(self) -> LinearOperator:
        """The wrapped operator."""
        return self._operator

    def _shape(self) -> Any:
        *batch, rows, columns = self._operator.shape
        return (*batch, columns, rows)


class LinearOperatorAdjoint(_WrappedOperator):
    """The conjugate transpose of an operator.

    >>> operator = tf.linalg.LinearOperatorFullMatrix([[1.0, 2.0], [3.0, 4.0]])
    >>> tf.linalg.LinearOperatorAdjoint(operator).to_dense().numpy()
    array([[1., 3.],
           [2., 4.]], dtype=float32)
    """

    def __init__(
        self,
        operator: LinearOperator,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str | None = None,
    ) -> None:
        hints = {
            "is_non_singular": is_non_singular,
            "is_self_adjoint": is_self_adjoint,
            "is_positive_definite": is_positive_definite,
            "is_square": is_square,
        }
        parameters = constructor_arguments(locals())
        expect(operator, LinearOperator, "LinearOperatorAdjoint", "a LinearOperator")
        super().__init__(operator, hints, name or f"{operator.name}_adjoint", parameters)

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        return self.operator.matmul(x, adjoint=not adjoint, adjoint_arg=adjoint_arg)

    def _solve(self, rhs: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        return self.operator.solve(rhs, adjoint=not adjoint, adjoint_arg=adjoint_arg)

    def _adjoint(self) -> LinearOperator:
        return self.operator

    def _inverse(self) -> LinearOperator:
        return self.operator.inverse().adjoint()

    def _to_dense(self) -> Tensor:
        return conjugate_transpose(self.operator.to_dense())

    def _diag_part(self) -> Tensor:
        return conj(self.operator.diag_part())

    def _trace(self) -> Tensor:
        return conj(self.operator.trace())

    def _determinant(self) -> Tensor:
        return conj(self.operator.determinant())

    def _log_abs_determinant(self) -> Tensor:
        return self.operator.log_abs_determinant()

    def _cond(self) -> Tensor:
        return self.operator.cond()

    def _assert_non_singular(self) -> None:
        self.operator.assert_non_singular()


class LinearOperatorInversion(_WrappedOperator):
    """The inverse of an operator. Products with it solve linear equations.

    >>> operator = tf.linalg.LinearOperatorFullMatrix([[2.0, 0.0], [0.0, 4.0]])
    >>> tf.linalg.LinearOperatorInversion(operator).matvec([2.0, 2.0]).numpy()
    array([1. , 0.5], dtype=float32)
    """

    def __init__(
        self,
        operator: LinearOperator,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str | None = None,
    ) -> None:
        parameters = constructor_arguments(locals())
        expect(operator, LinearOperator, "LinearOperatorInversion", "a LinearOperator")
        if operator.is_non_singular is False or is_non_singular is False:
            raise ValueError(
                "operator and supplied hints must have is_non_singular=True or None. Received: "
                "is_non_singular=False."
            )
        if not operator.is_square or is_square is False:
            raise ValueError(
                f"operator must be square. Received: an operator of shape {operator.shape}."
            )
        hints = {
            "is_non_singular": True,
            "is_self_adjoint": is_self_adjoint,
            "is_positive_definite": is_positive_definite,
            "is_square": True,
        }
        super().__init__(operator, hints, name or f"{operator.name}_inverse", parameters)

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        return self.operator.solve(x, adjoint=adjoint, adjoint_arg=adjoint_arg)

    def _solve(self, rhs: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        return self.operator.matmul(rhs, adjoint=adjoint, adjoint_arg=adjoint_arg)

    def _inverse(self) -> LinearOperator:
        return self.operator

    def _determinant(self) -> Tensor:
        return 1 / self.operator.determinant()

    def _log_abs_determinant(self) -> Tensor:
        return -self.operator.log_abs_determinant()

    def _eigvals(self) -> Tensor:
        return 1 / self.operator.eigvals()

    def _cond(self) -> Tensor:
        return self.operator.cond()

    def _assert_non_singular(self) -> None:
        self.operator.assert_non_singular()
