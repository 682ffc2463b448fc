"""Products, Kronecker products and low-rank updates of operators."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from typing import Any

from retrograde.core.tensor import Tensor
from retrograde.linalg.decompositions import cholesky, det, slogdet
from retrograde.linalg.diagonals import diag_part
from retrograde.linalg.products import matmul
from retrograde.linalg.solvers import cholesky_solve, solve
from retrograde.linear_operators.arguments import (
    as_hints,
    broadcast_batch,
    common_batch,
    conjugate_transpose,
    constructor_arguments,
    parameter_tensor,
)
from retrograde.linear_operators.dense import LinearOperatorLowerTriangular, matrix_parameter
from retrograde.linear_operators.diagonal import (
    LinearOperatorDiag,
    LinearOperatorIdentity,
    LinearOperatorScaledIdentity,
    LinearOperatorZeros,
    is_identity,
)
from retrograde.linear_operators.linear_operator import LinearOperator
from retrograde.math.elementary import abs as absolute
from retrograde.math.elementary import conj, log
from retrograde.math.reductions import reduce_sum
from retrograde.ops.conversion import as_tensor
from retrograde.toplevel.shaping import broadcast_to, cast, expand_dims, reshape, transpose
from retrograde.values.arguments import expect, shown


def product(left: LinearOperator, right: LinearOperator) -> LinearOperator:
    """Returns the product of two operators, as a simpler class than a composition if possible."""
    if is_identity(right):
        return left
    if isinstance(right, LinearOperatorZeros) or isinstance(left, LinearOperatorZeros):
        batch = common_batch([left, right])
        rows, columns = left.range_dimension, right.domain_dimension
        is_square = rows == columns
        return LinearOperatorZeros(
            rows, columns, batch, left.dtype, is_square=is_square, is_self_adjoint=is_square
        )
    diagonal = (LinearOperatorDiag, LinearOperatorScaledIdentity)
    if isinstance(left, diagonal) and isinstance(right, diagonal):
        hints = _product_hints(left, right)
        hints["is_self_adjoint"] = _all_true(left.is_self_adjoint, right.is_self_adjoint)
        return LinearOperatorDiag(left.diag_part() * right.diag_part(), **hints)
    if isinstance(left, diagonal) and isinstance(right, LinearOperatorLowerTriangular):
        scaled = expand_dims(left.diag_part(), -1) * right.to_dense()
        return LinearOperatorLowerTriangular(scaled, **_product_hints(left, right))
    if isinstance(right, diagonal) and isinstance(left, LinearOperatorLowerTriangular):
        scaled = left.to_dense() * expand_dims(right.diag_part(), -2)
        return LinearOperatorLowerTriangular(scaled, **_product_hints(left, right))
    return LinearOperatorComposition([left, right], **_product_hints(left, right))


def _all_true(*hints: bool | None) -> bool | None:
    return True if all(hints) else None


def _product_hints(left: LinearOperator, right: LinearOperator) -> dict[str, bool | None]:
    return {"is_non_singular": _all_true(left.is_non_singular, right.is_non_singular)}


def check_operators(operators: Any, minimum: int = 1) -> list[LinearOperator]:
    """Returns the operators as a list, after checking their class and dtype."""
    if isinstance(operators, LinearOperator):
        raise TypeError("Expected a list of operators. Received: a LinearOperator.")
    operators = list(operators)
    if len(operators) < minimum:
        raise ValueError(f"Expected a non-empty list of operators. Received: {operators}.")
    for operator in operators:
        if not isinstance(operator, LinearOperator):
            raise TypeError(f"Expected a LinearOperator. Received: {shown(operator)}.")
        if operator.dtype != operators[0].dtype:
            names = [(o.name, o.dtype.name) for o in operators]
            raise TypeError(f"Expected all operators to have the same dtype. Received: {names}.")
    return operators


class _CombinedOperators(LinearOperator):
    """A base class of operators that combine several operators."""

    def __init__(
        self, operators: list[LinearOperator], hints: dict, name: str, parameters: dict
    ) -> None:
        self._operators = operators
        if all(operator.is_non_singular for operator in operators):
            if hints["is_non_singular"] is False:
                raise ValueError(
                    f"The {type(self).__name__} of non-singular operators is always non-singular."
                )
            hints["is_non_singular"] = True
        parameters["operators"] = list(operators)
        super().__init__(operators[0].dtype, name=name, parameters=parameters, **hints)

    @property
    def operators(self) -> list[LinearOperator]:
        """The combined operators."""
        return list(self._operators)

    def _assert_non_singular(self) -> None:
        if all(operator.is_square for operator in self._operators):
            for operator in self._operators:
                operator.assert_non_singular()
        else:
            super()._assert_non_singular()


class LinearOperatorComposition(_CombinedOperators):
    """The product of operators, applied one after the other instead of multiplied.

    >>> a = tf.linalg.LinearOperatorFullMatrix([[1.0, 2.0], [3.0, 4.0]])
    >>> b = tf.linalg.LinearOperatorFullMatrix([[0.0, 1.0], [1.0, 0.0]])
    >>> tf.linalg.LinearOperatorComposition([a, b]).to_dense().numpy()
    array([[2., 1.],
           [4., 3.]], dtype=float32)
    """

    def __init__(
        self,
        operators: Sequence[LinearOperator],
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str | None = None,
    ) -> None:
        parameters = constructor_arguments(locals())
        hints = as_hints(is_non_singular, is_self_adjoint, is_positive_definite, is_square)
        operators = check_operators(operators)
        for left, right in itertools.pairwise(operators):
            if left.domain_dimension != right.range_dimension:
                raise ValueError(
                    f"Operators are incompatible: shapes {left.shape} and {right.shape} cannot be "
                    "multiplied."
                )
        common_batch(operators)
        super().__init__(operators, hints, name or _join_names(operators, "_o_"), parameters)

    def _shape(self) -> Any:
        first, last = self._operators[0], self._operators[-1]
        return (*common_batch(self._operators), first.range_dimension, last.domain_dimension)

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        operators = self._operators if adjoint else reversed(self._operators)
        y = conjugate_transpose(x, adjoint_arg)
        for operator in operators:
            y = operator.matmul(y, adjoint=adjoint)
        return y

    def _solve(self, rhs: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        if not all(operator.is_square for operator in self._operators):
            return super()._solve(rhs, adjoint, adjoint_arg)
        operators = reversed(self._operators) if adjoint else self._operators
        y = conjugate_transpose(rhs, adjoint_arg)
        for operator in operators:
            y = operator.solve(y, adjoint=adjoint)
        return y

    def _adjoint(self) -> LinearOperator:
        adjoints = [operator.adjoint() for operator in reversed(self._operators)]
        return LinearOperatorComposition(adjoints, **self._hints())

    def _inverse(self) -> LinearOperator:
        if not all(operator.is_square for operator in self._operators):
            return super()._inverse()
        inverses = [operator.inverse() for operator in reversed(self._operators)]
        return LinearOperatorComposition(inverses, **(self._hints() | {"is_non_singular": True}))

    def _determinant(self) -> Tensor:
        if not all(operator.is_square for operator in self._operators):
            return det(self.to_dense())
        return math.prod(operator.determinant() for operator in self._operators)

    def _log_abs_determinant(self) -> Tensor:
        if not all(operator.is_square for operator in self._operators):
            return slogdet(self.to_dense()).log_abs_determinant
        return sum(operator.log_abs_determinant() for operator in self._operators)


def _join_names(operators: list[LinearOperator], separator: str) -> str:
    return separator.join(operator.name for operator in operators)


class LinearOperatorKronecker(_CombinedOperators):
    """The Kronecker product of operators.

    >>> a = tf.linalg.LinearOperatorDiag([1.0, 2.0])
    >>> b = tf.linalg.LinearOperatorIdentity(2)
    >>> tf.linalg.LinearOperatorKronecker([a, b]).diag_part().numpy()
    array([1., 1., 2., 2.], dtype=float32)
    """

    def __init__(
        self,
        operators: Sequence[LinearOperator],
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str | None = None,
    ) -> None:
        parameters = constructor_arguments(locals())
        operators = check_operators(operators)
        if all(operator.is_self_adjoint for operator in operators):
            is_self_adjoint = True if is_self_adjoint is None else is_self_adjoint
        if all(operator.is_positive_definite for operator in operators) and is_self_adjoint:
            is_positive_definite = True if is_positive_definite is None else is_positive_definite
        hints = as_hints(is_non_singular, is_self_adjoint, is_positive_definite, is_square)
        common_batch(operators)
        super().__init__(operators, hints, name or _join_names(operators, "_x_"), parameters)

    def _shape(self) -> Any:
        rows = math.prod(operator.range_dimension for operator in self._operators)
        columns = math.prod(operator.domain_dimension for operator in self._operators)
        return (*common_batch(self._operators), rows, columns)

    def _map_factors(self, x: Tensor, method: str, adjoint: bool) -> Tensor:
        """Applies a method of each operator to its factor of the second-last axis."""
        (x,) = broadcast_batch(x)
        batch = common_batch([self, _TensorBatch(x)])
        x = broadcast_to(x, (*batch, *x.shape[-2:]))
        after = x.shape[-2]
        before = 1
        for operator in self._operators:
            uses_rows = adjoint != (method == "solve")
            size = operator.range_dimension if uses_rows else operator.domain_dimension
            after //= size
            columns = x.shape[-1] * after
            y = _swap_axes(reshape(x, (*batch, before, size, columns)))
            y = getattr(operator, method)(
                reshape(y, (*batch, size, before * columns)), adjoint=adjoint
            )
            size = y.shape[-2]
            y = _swap_axes(reshape(y, (*batch, size, before, columns)))
            before *= size
            x = reshape(y, (*batch, before * after, x.shape[-1]))
        return x

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        return self._map_factors(conjugate_transpose(x, adjoint_arg), "matmul", adjoint)

    def _solve(self, rhs: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        if not all(operator.is_square for operator in self._operators):
            return super()._solve(rhs, adjoint, adjoint_arg)
        return self._map_factors(conjugate_transpose(rhs, adjoint_arg), "solve", adjoint)

    def _adjoint(self) -> LinearOperator:
        return LinearOperatorKronecker([operator.adjoint() for operator in self._operators])

    def _inverse(self) -> LinearOperator:
        if not all(operator.is_square for operator in self._operators):
            return super()._inverse()
        return LinearOperatorKronecker([operator.inverse() for operator in self._operators])

    def _cholesky(self) -> LinearOperator:
        if not all(operator._uses_cholesky() for operator in self._operators):
            return super()._cholesky()
        return LinearOperatorKronecker([operator.cholesky() for operator in self._operators])

    def _diag_part(self) -> Tensor:
        if not all(operator.is_square for operator in self._operators):
            return super()._diag_part()
        return functools.reduce(_kronecker_vectors, [o.diag_part() for o in self._operators])

    def _eigvals(self) -> Tensor:
        if not all(operator.is_self_adjoint for operator in self._operators):
            return super()._eigvals()
        return functools.reduce(_kronecker_vectors, [o.eigvals() for o in self._operators])

    def _trace(self) -> Tensor:
        if not all(operator.is_square for operator in self._operators):
            return super()._trace()
        return math.prod(operator.trace() for operator in self._operators)

    def _determinant(self) -> Tensor:
        if not all(operator.is_square for operator in self._operators):
            return super()._determinant()
        n = self.domain_dimension
        parts = [o.determinant() ** (n // o.domain_dimension) for o in self._operators]
        return math.prod(parts)

    def _log_abs_determinant(self) -> Tensor:
        if not all(operator.is_square for operator in self._operators):
            return super()._log_abs_determinant()
        n = self.domain_dimension
        return sum(o.log_abs_determinant() * (n // o.domain_dimension) for o in self._operators)


class _TensorBatch:
    """The batch shape of a tensor, with the attribute that operators have."""

    def __init__(self, x: Tensor) -> None:
        self.batch_shape = x.shape[:-2]


def _swap_axes(x: Tensor) -> Tensor:
    """Swaps the third-last and the second-last axis."""
    n = len(x.shape)
    return transpose(x, [*range(n - 3), n - 2, n - 3, n - 1])


def _kronecker_vectors(x1: Tensor, x2: Tensor) -> Tensor:
    y = expand_dims(x1, -1) * expand_dims(x2, -2)
    return reshape(y, (*y.shape[:-2], y.shape[-2] * y.shape[-1]))


class LinearOperatorLowRankUpdate(LinearOperator):
    """The operator `L + U D V^H` with a base operator L and thin matrices U and V.

    `u` and `v` have shape `[..., N, K]`, and `diag_update`, the diagonal of D, has K elements. `v`
    defaults to `u`, and D to the identity. Equations are solved by the Woodbury identity, which
    needs a `base_operator` that is easy to invert.

    >>> base = tf.linalg.LinearOperatorIdentity(2)
    >>> operator = tf.linalg.LinearOperatorLowRankUpdate(base, [[1.0], [2.0]])
    >>> operator.to_dense().numpy()
    array([[2., 2.],
           [2., 5.]], dtype=float32)
    """

    def __init__(
        self,
        base_operator: LinearOperator,
        u: Any,
        diag_update: Any = None,
        v: Any = None,
        is_diag_update_positive: bool | None = None,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str = "LinearOperatorLowRankUpdate",
    ) -> None:
        parameters = constructor_arguments(locals())
        expect(base_operator, LinearOperator, "LinearOperatorLowRankUpdate", "a LinearOperator")
        dtype = base_operator.dtype
        if diag_update is None:
            if is_diag_update_positive is False:
                raise ValueError("The default diag_update is the identity, which is positive.")
            is_diag_update_positive = True
        if (
            v is None
            and base_operator.is_self_adjoint
            and (not dtype.is_complex or is_diag_update_positive)
        ):
            if is_self_adjoint is False:
                raise ValueError("L + U D U^H is self-adjoint if L is, and D is real.")
            is_self_adjoint = True
            if base_operator.is_positive_definite and is_diag_update_positive:
                if is_positive_definite is False:
                    raise ValueError("L + U D U^H is positive definite if L and D are.")
                is_positive_definite = True
        self._base_operator = base_operator
        self._u = matrix_parameter(u, "u")
        self._v = self._u if v is None else matrix_parameter(v, "v")
        self._diag_update = (
            None if diag_update is None else parameter_tensor(diag_update, "diag_update")
        )
        self._is_diag_update_positive = is_diag_update_positive
        rank = self._u.shape[-1]
        sizes = base_operator.range_dimension, base_operator.domain_dimension
        if (self._u.shape[-2], self._v.shape[-2]) != sizes or self._v.shape[-1] != rank:
            raise ValueError(
                f"u and v have shapes {self._u.shape} and {self._v.shape}, and the base operator "
                f"has shape {base_operator.shape}. Expected [..., rows, K] and [..., columns, K]."
            )
        super().__init__(
            dtype, None, is_non_singular, is_self_adjoint, is_positive_definite, is_square, name,
            parameters,
        )  # fmt: skip

    @property
    def u(self) -> Any:
        """The left factor."""
        return self._u

    @property
    def v(self) -> Any:
        """The right factor."""
        return self._v

    @property
    def base_operator(self) -> LinearOperator:
        """The operator that is updated."""
        return self._base_operator

    @property
    def diag_update(self) -> Any:
        """The diagonal of D, or `None`."""
        return self._diag_update

    @property
    def diag_operator(self) -> LinearOperator:
        """D as an operator."""
        if self._diag_update is None:
            return LinearOperatorIdentity(self._u.shape[-1], dtype=self.dtype)
        return LinearOperatorDiag(
            self._diag_update, is_positive_definite=self._is_diag_update_positive
        )

    @property
    def is_diag_update_positive(self) -> bool | None:
        """Whether D is known to be positive."""
        return self._is_diag_update_positive

    def _shape(self) -> Any:
        batches = [
            self._base_operator,
            _TensorBatch(self._u),
            _TensorBatch(self._v),
            self.diag_operator,
        ]
        return (*common_batch(batches), *self._base_operator.shape[-2:])

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        u, v = as_tensor(self._u), as_tensor(self._v)
        left, right = (v, u) if adjoint else (u, v)
        x = conjugate_transpose(x, adjoint_arg)
        inner = self.diag_operator.matmul(matmul(right, x, adjoint_a=True), adjoint=adjoint)
        return self._base_operator.matmul(x, adjoint=adjoint) + matmul(left, inner)

    def _capacitance(self) -> Tensor:
        """Returns `D^-1 + V^H L^-1 U`."""
        u, v = as_tensor(self._u), as_tensor(self._v)
        inner = matmul(v, self._base_operator.solve(u), adjoint_a=True)
        return self.diag_operator.inverse().add_to_tensor(inner)

    def _solve(self, rhs: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        if self._base_operator.is_non_singular is False:
            return super()._solve(rhs, adjoint, adjoint_arg)
        u, v = as_tensor(self._u), as_tensor(self._v)
        left, right = (v, u) if adjoint else (u, v)
        y = self._base_operator.solve(conjugate_transpose(rhs, adjoint_arg), adjoint=adjoint)
        capacitance, inner = broadcast_batch(self._capacitance(), matmul(right, y, adjoint_a=True))
        if self._uses_cholesky() and self._is_diag_update_positive:
            inner = cholesky_solve(cholesky(capacitance), inner)
        else:
            inner = solve(capacitance, inner, adjoint=adjoint)
        return y - self._base_operator.solve(matmul(left, inner), adjoint=adjoint)

    def _diag_part(self) -> Tensor:
        u, v = as_tensor(self._u), as_tensor(self._v)
        product = u * expand_dims(self.diag_operator.diag_part(), -2) * conj(v)
        return reduce_sum(product, axis=-1) + self._base_operator.diag_part()

    def _determinant(self) -> Tensor:
        if self._base_operator.is_non_singular is False:
            return det(self.to_dense())
        return (
            det(self._capacitance())
            * self.diag_operator.determinant()
            * self._base_operator.determinant()
        )

    def _log_abs_determinant(self) -> Tensor:
        if self._base_operator.is_non_singular is False:
            return slogdet(self.to_dense()).log_abs_determinant
        if self._uses_cholesky() and self._is_diag_update_positive:
            d = diag_part(cholesky(self._capacitance()))
            logarithm = 2 * reduce_sum(log(absolute(d)), axis=-1)
        else:
            logarithm = slogdet(self._capacitance()).log_abs_determinant
        return (
            cast(logarithm, self.dtype)
            + self.diag_operator.log_abs_determinant()
            + self._base_operator.log_abs_determinant()
        )
