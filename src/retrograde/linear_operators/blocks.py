"""Block matrices of operators: block diagonal and block lower triangular."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

from retrograde.core.tensor import Tensor
from retrograde.linear_operators.arguments import (
    broadcast_batch,
    common_batch,
    conjugate_transpose,
    constructor_arguments,
)
from retrograde.linear_operators.composition import check_operators
from retrograde.linear_operators.linear_operator import LinearOperator
from retrograde.ops.conversion import as_tensor
from retrograde.toplevel.creation import zeros
from retrograde.toplevel.shaping import broadcast_to, concat, expand_dims, split, squeeze


class _BlockOperator(LinearOperator):
    """An operator that acts on the blocks of its argument.

    The argument can be one tensor, or a list with a tensor for each block. The result has the same
    form.
    """

    def _column_sizes(self) -> list[int]:
        raise NotImplementedError

    def _row_sizes(self) -> list[int]:
        raise NotImplementedError

    def _multiply_blocks(self, xs: list[Tensor], adjoint: bool) -> list[Tensor]:
        raise NotImplementedError

    def _solve_blocks(self, xs: list[Tensor], adjoint: bool) -> list[Tensor]:
        raise NotImplementedError

    def matmul(
        self, x: Any, adjoint: bool = False, adjoint_arg: bool = False, name: str = "matmul"
    ) -> Any:
        """Multiplies by matrices, by a list of blocks, or by another operator."""
        sizes = self._row_sizes() if adjoint else self._column_sizes()
        if self._is_blockwise(x, sizes):
            return self._multiply_blocks(self._convert_blocks(x, sizes, adjoint_arg), adjoint)
        return super().matmul(x, adjoint, adjoint_arg, name)

    def matvec(self, x: Any, adjoint: bool = False, name: str = "matvec") -> Any:
        """Multiplies by vectors, or by a list of blocks of vectors."""
        if self._is_blockwise(x, self._row_sizes() if adjoint else self._column_sizes(), axis=-1):
            return _map_vectors(lambda blocks: self.matmul(blocks, adjoint), x)
        return super().matvec(x, adjoint, name)

    def solve(
        self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False, name: str = "solve"
    ) -> Any:
        """Solves for matrices, for a list of blocks, or for another operator."""
        sizes = self._column_sizes() if adjoint else self._row_sizes()
        if self._is_blockwise(rhs, sizes):
            self._check_invertible("Exact solve not implemented for an operator expected to")
            return self._solve_blocks(self._convert_blocks(rhs, sizes, adjoint_arg), adjoint)
        return super().solve(rhs, adjoint, adjoint_arg, name)

    def solvevec(self, rhs: Any, adjoint: bool = False, name: str = "solve") -> Any:
        """Solves for vectors, or for a list of blocks of vectors."""
        if self._is_blockwise(rhs, self._row_sizes(), axis=-1):
            return _map_vectors(lambda blocks: self.solve(blocks, adjoint), rhs)
        return super().solvevec(rhs, adjoint, name)

    def _is_blockwise(self, x: Any, sizes: list[int], axis: int = -2) -> bool:
        """Returns whether `x` is a list of blocks, not a matrix written as nested lists."""
        if not isinstance(x, (list, tuple)) or len(x) != len(sizes):
            return False
        blocks = [as_tensor(block, self._numpy_dtype()) for block in x]
        return all(block.ndim >= -axis for block in blocks)

    def _convert_blocks(self, xs: Any, sizes: list[int], adjoint_arg: bool) -> list[Tensor]:
        blocks = [conjugate_transpose(as_tensor(x, self._numpy_dtype()), adjoint_arg) for x in xs]
        actual = [block.shape[-2] for block in blocks]
        if actual != sizes:
            raise ValueError(f"Expected blocks with {sizes} rows. Received: {actual} rows.")
        return blocks

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        sizes = self._row_sizes() if adjoint else self._column_sizes()
        parts = split(conjugate_transpose(x, adjoint_arg), sizes, axis=-2)
        return concat(broadcast_batch(*self._multiply_blocks(parts, adjoint)), -2)

    def _solve(self, rhs: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        sizes = self._column_sizes() if adjoint else self._row_sizes()
        parts = split(conjugate_transpose(rhs, adjoint_arg), sizes, axis=-2)
        return concat(broadcast_batch(*self._solve_blocks(parts, adjoint)), -2)


def _map_vectors(f: Any, xs: Any) -> list[Tensor]:
    return [squeeze(y, -1) for y in f([expand_dims(as_tensor(x), -1) for x in xs])]


def _all_true(operators: Sequence[LinearOperator], hint: str) -> bool | None:
    return True if all(getattr(operator, hint) for operator in operators) else None


def _broadcast_to_batch(operator: LinearOperator, values: list[Tensor]) -> list[Tensor]:
    """Broadcasts vectors to the batch shape of the operator."""
    batch = tuple(operator.batch_shape)
    return [broadcast_to(x, (*batch, x.shape[-1])) for x in values]


class LinearOperatorBlockDiag(_BlockOperator):
    """A block diagonal matrix of operators.

    >>> a = tf.linalg.LinearOperatorDiag([1.0, 2.0])
    >>> b = tf.linalg.LinearOperatorFullMatrix([[3.0]])
    >>> tf.linalg.LinearOperatorBlockDiag([a, b]).matvec([1.0, 1.0, 1.0]).numpy()
    array([1., 2., 3.], dtype=float32)
    """

    def __init__(
        self,
        operators: Sequence[LinearOperator],
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = True,
        name: str | None = None,
    ) -> None:
        parameters = constructor_arguments(locals())
        self._operators = check_operators(operators)
        common_batch(self._operators)
        if is_non_singular is None:
            is_non_singular = _all_true(self._operators, "is_non_singular")
        if is_self_adjoint is None:
            is_self_adjoint = _all_true(self._operators, "is_self_adjoint")
        if is_positive_definite is None:
            is_positive_definite = _all_true(self._operators, "is_positive_definite")
        if not all(operator.is_square for operator in self._operators):
            is_square = None if is_square else is_square
        name = name or "_ds_".join(operator.name for operator in self._operators)
        parameters["operators"] = list(self._operators)
        super().__init__(
            self._operators[0].dtype, None, is_non_singular, is_self_adjoint,
            is_positive_definite, is_square, name, parameters,
        )  # fmt: skip

    @property
    def operators(self) -> list[LinearOperator]:
        """The blocks."""
        return list(self._operators)

    def _column_sizes(self) -> list[int]:
        return [operator.domain_dimension for operator in self._operators]

    def _row_sizes(self) -> list[int]:
        return [operator.range_dimension for operator in self._operators]

    def _shape(self) -> Any:
        sizes = sum(self._row_sizes()), sum(self._column_sizes())
        return (*common_batch(self._operators), *sizes)

    def _multiply_blocks(self, xs: list[Tensor], adjoint: bool) -> list[Tensor]:
        pairs = zip(self._operators, xs, strict=True)
        return [operator.matmul(x, adjoint=adjoint) for operator, x in pairs]

    def _solve_blocks(self, xs: list[Tensor], adjoint: bool) -> list[Tensor]:
        pairs = zip(self._operators, xs, strict=True)
        return [operator.solve(x, adjoint=adjoint) for operator, x in pairs]

    def _map(self, method: str) -> LinearOperator:
        hints = self._hints()
        if method == "cholesky":
            hints = {"is_non_singular": True, "is_self_adjoint": None}
        return LinearOperatorBlockDiag([getattr(o, method)() for o in self._operators], **hints)

    def _all_square(self) -> bool:
        return all(operator.is_square for operator in self._operators)

    def _adjoint(self) -> LinearOperator:
        return self._map("adjoint")

    def _inverse(self) -> LinearOperator:
        return self._map("inverse") if self._all_square() else super()._inverse()

    def _cholesky(self) -> LinearOperator:
        return self._map("cholesky")

    def _to_dense(self) -> Tensor:
        batch = tuple(self.batch_shape)
        columns, rows = self.domain_dimension, []
        start = 0
        for operator in self._operators:
            height, width = operator.range_dimension, operator.domain_dimension
            block = broadcast_to(operator.to_dense(), (*batch, height, width))
            before = zeros((*batch, height, start), self.dtype)
            after = zeros((*batch, height, columns - start - width), self.dtype)
            rows.append(concat([before, block, after], -1))
            start += width
        return concat(rows, -2)

    def _diag_part(self) -> Tensor:
        if not self._all_square():
            return super()._diag_part()
        return concat(_broadcast_to_batch(self, [o.diag_part() for o in self._operators]), -1)

    def _eigvals(self) -> Tensor:
        if not _all_true(self._operators, "is_self_adjoint"):
            return super()._eigvals()
        return concat(_broadcast_to_batch(self, [o.eigvals() for o in self._operators]), -1)

    def _trace(self) -> Tensor:
        if not self._all_square():
            return super()._trace()
        return sum(operator.trace() for operator in self._operators)

    def _determinant(self) -> Tensor:
        if not self._all_square():
            return super()._determinant()
        return math.prod(operator.determinant() for operator in self._operators)

    def _log_abs_determinant(self) -> Tensor:
        if not self._all_square():
            return super()._log_abs_determinant()
        return sum(operator.log_abs_determinant() for operator in self._operators)

    def _assert_non_singular(self) -> None:
        for operator in self._operators:
            operator.assert_non_singular()

    def _assert_self_adjoint(self) -> None:
        for operator in self._operators:
            operator.assert_self_adjoint()

    def _assert_positive_definite(self) -> None:
        for operator in self._operators:
            operator.assert_positive_definite()


class LinearOperatorBlockLowerTriangular(_BlockOperator):
    """A block lower triangular matrix: row i is a list of i + 1 operators.

    Equations are solved by substitution, so only the diagonal blocks must be invertible.

    >>> full = tf.linalg.LinearOperatorFullMatrix
    >>> rows = [[full([[2.0]])], [full([[1.0]]), full([[4.0]])]]
    >>> tf.linalg.LinearOperatorBlockLowerTriangular(rows).to_dense().numpy()
    array([[2., 0.],
           [1., 4.]], dtype=float32)
    """

    def __init__(
        self,
        operators: Sequence[Sequence[LinearOperator]],
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str = "LinearOperatorBlockLowerTriangular",
    ) -> None:
        parameters = constructor_arguments(locals())
        rows = [list(row) for row in operators]
        if not rows or [len(row) for row in rows] != list(range(1, len(rows) + 1)):
            raise ValueError(
                "Argument `operators` must be a list of rows: one operator in the first row, and "
                "one more in each row."
            )
        check_operators(itertools.chain(*rows))
        for i, row in enumerate(rows):
            for j, operator in enumerate(row):
                expected = row[-1].range_dimension, rows[j][j].domain_dimension
                if (operator.range_dimension, operator.domain_dimension) != expected:
                    raise ValueError(
                        f"Block ({i}, {j}) has shape {operator.shape}. Expected {expected}."
                    )
        self._rows = rows
        diagonal = [row[-1] for row in rows]
        if is_non_singular is None:
            is_non_singular = _all_true(diagonal, "is_non_singular")
        parameters["operators"] = [list(row) for row in rows]
        super().__init__(
            rows[0][0].dtype, None, is_non_singular, is_self_adjoint, is_positive_definite,
            is_square, name, parameters,
        )  # fmt: skip

    @property
    def operators(self) -> list[list[LinearOperator]]:
        """The blocks, row by row."""
        return [list(row) for row in self._rows]

    def _diagonal(self) -> list[LinearOperator]:
        return [row[-1] for row in self._rows]

    def _column_sizes(self) -> list[int]:
        return [operator.domain_dimension for operator in self._diagonal()]

    def _row_sizes(self) -> list[int]:
        return [operator.range_dimension for operator in self._diagonal()]

    def _shape(self) -> Any:
        sizes = sum(self._row_sizes()), sum(self._column_sizes())
        return (*common_batch(list(itertools.chain(*self._rows))), *sizes)

    def _multiply_blocks(self, xs: list[Tensor], adjoint: bool) -> list[Tensor]:
        n = len(self._rows)
        if adjoint:  # block (i, j) of the adjoint is the adjoint of block (j, i)
            return [
                sum(self._rows[j][i].matmul(xs[j], adjoint=True) for j in range(i, n))
                for i in range(n)
            ]
        return [
            sum(operator.matmul(x) for operator, x in zip(row, xs, strict=False))
            for row in self._rows
        ]

    def _solve_blocks(self, xs: list[Tensor], adjoint: bool) -> list[Tensor]:
        n = len(self._rows)
        ys: dict[int, Tensor] = {}
        for i in reversed(range(n)) if adjoint else range(n):
            rest = xs[i]
            for j, y in ys.items():
                operator = self._rows[j][i] if adjoint else self._rows[i][j]
                rest = rest - operator.matmul(y, adjoint=adjoint)
            ys[i] = self._rows[i][i].solve(rest, adjoint=adjoint)
        return [ys[i] for i in range(n)]

    def _diag_part(self) -> Tensor:
        if not all(operator.is_square for operator in self._diagonal()):
            return super()._diag_part()
        return concat(_broadcast_to_batch(self, [o.diag_part() for o in self._diagonal()]), -1)

    def _determinant(self) -> Tensor:
        if not all(operator.is_square for operator in self._diagonal()):
            return super()._determinant()
        return math.prod(operator.determinant() for operator in self._diagonal())

    def _log_abs_determinant(self) -> Tensor:
        if not all(operator.is_square for operator in self._diagonal()):
            return super()._log_abs_determinant()
        return sum(operator.log_abs_determinant() for operator in self._diagonal())

    def _assert_non_singular(self) -> None:
        for operator in self._diagonal():
            operator.assert_non_singular()
