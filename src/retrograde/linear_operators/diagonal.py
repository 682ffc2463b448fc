"""Operators with zeros outside the diagonal: identity, multiples of it, diagonal, zeros."""

from __future__ import annotations

from typing import Any

from retrograde.core.tensor import Tensor
from retrograde.debugging.comparisons import assert_equal, assert_none_equal, assert_positive
from retrograde.linalg.diagonals import diag, diag_part, set_diag
from retrograde.linear_operators.arguments import (
    broadcast_batch,
    conjugate_transpose,
    constructor_arguments,
    dtype_of,
    parameter_tensor,
)
from retrograde.linear_operators.linear_operator import LinearOperator
from retrograde.math.elementary import abs as absolute
from retrograde.math.elementary import conj, imag, log, real, sqrt
from retrograde.math.reductions import reduce_max, reduce_min, reduce_prod, reduce_sum
from retrograde.ops.arguments import integer, integers
from retrograde.ops.conversion import as_tensor
from retrograde.toplevel.creation import ones, zeros
from retrograde.toplevel.shaping import broadcast_to, cast, expand_dims
from retrograde.values import dtypes
from retrograde.values.shapes import broadcast


def _as_count(value: Any, name: str) -> int:
    count = integer(value, name)
    if count < 0:
        raise ValueError(f"{name} must be non-negative. Received: {count}.")
    return count


def _as_batch_shape(batch_shape: Any) -> tuple[int, ...]:
    return () if batch_shape is None else tuple(integers(batch_shape, "batch_shape"))


class LinearOperatorIdentity(LinearOperator):
    """The identity matrix, with `num_rows` rows.

    >>> tf.linalg.LinearOperatorIdentity(2).matvec([1.0, 2.0]).numpy()
    array([1., 2.], dtype=float32)
    """

    def __init__(
        self,
        num_rows: Any,
        batch_shape: Any = None,
        dtype: Any = None,
        is_non_singular: bool | None = True,
        is_self_adjoint: bool | None = True,
        is_positive_definite: bool | None = True,
        is_square: bool | None = True,
        assert_proper_shapes: bool = False,
        name: str = "LinearOperatorIdentity",
    ) -> None:
        parameters = constructor_arguments(locals())
        _check_true(
            "An identity operator is always",
            {"square": is_square, "self-adjoint": is_self_adjoint},
            {"non-singular": is_non_singular, "positive-definite": is_positive_definite},
        )
        self._num_rows = _as_count(num_rows, "num_rows")
        self._batch = _as_batch_shape(batch_shape)
        super().__init__(
            dtype or dtypes.float32, None, is_non_singular, is_self_adjoint,
            is_positive_definite, is_square, name, parameters,
        )  # fmt: skip

    def _shape(self) -> Any:
        return (*self._batch, self._num_rows, self._num_rows)

    def _broadcast(self, x: Tensor) -> Tensor:
        batch = broadcast(self._batch, tuple(x.shape[:-2]))
        return x if batch == tuple(x.shape[:-2]) else broadcast_to(x, (*batch, *x.shape[-2:]))

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        return self._broadcast(conjugate_transpose(x, adjoint_arg))

    _solve = _matmul

    def _adjoint(self) -> LinearOperator:
        return self

    _inverse = _cholesky = _adjoint

    def _product(self, right: LinearOperator) -> LinearOperator:
        if not self._batch:
            return right
        return super()._product(right)

    def _to_dense(self) -> Tensor:
        return self._identity()

    def _diag_part(self) -> Tensor:
        return ones((*self._batch, self._num_rows), self.dtype)

    def _trace(self) -> Tensor:
        return ones(self._batch, self.dtype) * self._num_rows

    def _determinant(self) -> Tensor:
        return ones(self._batch, self.dtype)

    def _log_abs_determinant(self) -> Tensor:
        return zeros(self._batch, self.dtype)

    def _eigvals(self) -> Tensor:
        return self._diag_part()

    def _cond(self) -> Tensor:
        return ones(self._batch, self.dtype)

    def _assert_non_singular(self) -> None:
        pass

    _assert_positive_definite = _assert_self_adjoint = _assert_non_singular

    def _add_to_tensor(self, x: Tensor) -> Tensor:
        matrix = self._broadcast(x)
        return set_diag(matrix, diag_part(matrix) + 1)


def _check_true(message: str, *hints: dict[str, bool | None]) -> None:
    """Raises a `ValueError` if one of the hints is `False`."""
    for name, hint in {k: v for group in hints for k, v in group.items()}.items():
        if hint is False:
            raise ValueError(f"{message} {name}.")


class _DiagonalOperator(LinearOperator):
    """An operator given by its diagonal, or by one value for the whole diagonal."""

    def _entries(self) -> Tensor:
        """Returns the diagonal. Its last axis has the size of the matrix, or size 1."""
        raise NotImplementedError

    def _with_entries(self, entries: Tensor, **hints: Any) -> LinearOperator:
        """Returns an operator of the same kind with other entries."""
        raise NotImplementedError

    def _column(self, adjoint: bool) -> Tensor:
        entries = self._entries()
        return expand_dims(conj(entries) if adjoint else entries, -1)

    def _full_diagonal(self) -> Tensor:
        return broadcast_to(self._entries(), (*self.batch_shape, self.domain_dimension))

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        return self._column(adjoint) * conjugate_transpose(x, adjoint_arg)

    def _solve(self, rhs: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        return conjugate_transpose(rhs, adjoint_arg) / self._column(adjoint)

    def _adjoint(self) -> LinearOperator:
        return self._with_entries(conj(self._entries()), **self._hints())

    def _inverse(self) -> LinearOperator:
        return self._with_entries(1 / self._entries(), **self._hints())

    def _cholesky(self) -> LinearOperator:
        return self._with_entries(sqrt(self._entries()), is_non_singular=True, is_self_adjoint=True,
                        is_positive_definite=True)  # fmt: skip

    def _to_dense(self) -> Tensor:
        return diag(self._full_diagonal())

    def _diag_part(self) -> Tensor:
        return self._full_diagonal()

    def _determinant(self) -> Tensor:
        return reduce_prod(self._full_diagonal(), axis=-1)

    def _log_abs_determinant(self) -> Tensor:
        return cast(reduce_sum(log(absolute(self._full_diagonal())), axis=-1), self.dtype)

    def _eigvals(self) -> Tensor:
        return self._full_diagonal()

    def _cond(self) -> Tensor:
        sizes = absolute(self._full_diagonal())
        return cast(reduce_max(sizes, axis=-1) / reduce_min(sizes, axis=-1), self.dtype)

    def _add_to_tensor(self, x: Tensor) -> Tensor:
        (matrix,) = broadcast_batch(x + zeros(self.shape, self.dtype))
        return set_diag(matrix, diag_part(matrix) + self._full_diagonal())

    def _assert_non_singular(self) -> None:
        assert_none_equal(self._entries(), cast(0, self.dtype), message="Singular operator")

    def _assert_positive_definite(self) -> None:
        assert_positive(real(self._entries()), message="The diagonal is not positive.")

    def _assert_self_adjoint(self) -> None:
        if self.dtype.is_complex:
            part = imag(self._entries())
            assert_equal(part, part * 0, message="The diagonal is not real.")


class LinearOperatorScaledIdentity(_DiagonalOperator):
    """A multiple of the identity matrix, with one multiplier for each matrix.

    >>> tf.linalg.LinearOperatorScaledIdentity(2, 3.0).determinant().numpy()
    np.float32(9.0)
    """

    def __init__(
        self,
        num_rows: Any,
        multiplier: Any,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = True,
        assert_proper_shapes: bool = False,
        name: str = "LinearOperatorScaledIdentity",
    ) -> None:
        parameters = constructor_arguments(locals())
        _check_true("A scaled identity operator is always", {"square": is_square})
        self._num_rows = _as_count(num_rows, "num_rows")
        self._multiplier = parameter_tensor(multiplier, "multiplier")
        dtype = dtype_of(self._multiplier)
        if not dtype.is_complex:
            _check_true("A real diagonal operator is always", {"self-adjoint": is_self_adjoint})
            is_self_adjoint = True
        super().__init__(
            dtype, None, is_non_singular, is_self_adjoint, is_positive_definite, is_square, name,
            parameters,
        )  # fmt: skip

    @property
    def multiplier(self) -> Any:
        """The multiplier of each matrix."""
        return self._multiplier

    def _shape(self) -> Any:
        return (*self._multiplier.shape, self._num_rows, self._num_rows)

    def _entries(self) -> Tensor:
        return expand_dims(as_tensor(self._multiplier), -1)

    def _with_entries(self, entries: Tensor, **hints: Any) -> LinearOperator:
        return LinearOperatorScaledIdentity(self._num_rows, entries[..., 0], **hints)


class LinearOperatorDiag(_DiagonalOperator):
    """A diagonal matrix.

    >>> operator = tf.linalg.LinearOperatorDiag([1.0, -2.0])
    >>> operator.solvevec([3.0, 4.0]).numpy()
    array([ 3., -2.], dtype=float32)
    """

    def __init__(
        self,
        diag: Any,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str = "LinearOperatorDiag",
    ) -> None:
        parameters = constructor_arguments(locals())
        self._diag = parameter_tensor(diag, "diag")
        if not self._diag.shape.rank:
            raise ValueError(f"Argument diag must have rank >= 1. Received: {diag}.")
        dtype = dtype_of(self._diag)
        _check_true("Only square diagonal operators are supported: they are", {"square": is_square})
        if not dtype.is_complex:
            _check_true("A real diagonal operator is always", {"self-adjoint": is_self_adjoint})
            is_self_adjoint = True
        super().__init__(
            dtype, None, is_non_singular, is_self_adjoint, is_positive_definite, True, name,
            parameters,
        )  # fmt: skip

    @property
    def diag(self) -> Any:
        """The diagonal."""
        return self._diag

    def _shape(self) -> Any:
        return (*self._diag.shape, self._diag.shape[-1])

    def _entries(self) -> Tensor:
        return as_tensor(self._diag)

    def _with_entries(self, entries: Tensor, **hints: Any) -> LinearOperator:
        return LinearOperatorDiag(entries, **hints)


class LinearOperatorZeros(LinearOperator):
    """The zero matrix, which need not be square.

    >>> tf.linalg.LinearOperatorZeros(2, 3, is_square=False, is_self_adjoint=False).shape
    TensorShape([2, 3])
    """

    def __init__(
        self,
        num_rows: Any,
        num_columns: Any = None,
        batch_shape: Any = None,
        dtype: Any = None,
        is_non_singular: bool | None = False,
        is_self_adjoint: bool | None = True,
        is_positive_definite: bool | None = False,
        is_square: bool | None = True,
        assert_proper_shapes: bool = False,
        name: str = "LinearOperatorZeros",
    ) -> None:
        parameters = constructor_arguments(locals())
        if is_non_singular or is_positive_definite:
            raise ValueError("A zero operator is never non-singular or positive definite.")
        rows = _as_count(num_rows, "num_rows")
        columns = rows if num_columns is None else _as_count(num_columns, "num_columns")
        self._sizes = (*_as_batch_shape(batch_shape), rows, columns)
        super().__init__(
            dtype or dtypes.float32, None, is_non_singular, is_self_adjoint,
            is_positive_definite, is_square, name, parameters,
        )  # fmt: skip

    def _shape(self) -> Any:
        return self._sizes

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        rows = self.domain_dimension if adjoint else self.range_dimension
        columns = x.shape[-2 if adjoint_arg else -1]
        batch = broadcast(tuple(self.batch_shape), tuple(x.shape[:-2]))
        return zeros((*batch, rows, columns), x.dtype)

    def _adjoint(self) -> LinearOperator:
        *batch, rows, columns = self._sizes
        return LinearOperatorZeros(
            columns, rows, batch, self.dtype, is_self_adjoint=self.is_self_adjoint,
            is_square=self._is_square_hint,
        )  # fmt: skip

    def _to_dense(self) -> Tensor:
        return zeros(self._sizes, self.dtype)

    def _diag_part(self) -> Tensor:
        return zeros((*self.batch_shape, min(self._sizes[-2:])), self.dtype)

    def _determinant(self) -> Tensor:
        return zeros(self.batch_shape, self.dtype)

    def _log_abs_determinant(self) -> Tensor:
        return log(zeros(self.batch_shape, self.dtype))

    def _trace(self) -> Tensor:
        return zeros(self.batch_shape, self.dtype)

    def _eigvals(self) -> Tensor:
        return self._diag_part()

    def _add_to_tensor(self, x: Tensor) -> Tensor:
        return x + self._to_dense()

    def _assert_non_singular(self) -> None:
        assert_none_equal(self._trace(), 0, message="Zero operators are always non-invertible.")

    def _assert_positive_definite(self) -> None:
        assert_positive(self._trace(), message="Zero operators are not positive definite.")

    def _assert_self_adjoint(self) -> None:
        pass


def is_identity(operator: LinearOperator) -> bool:
    """Returns whether `operator` is the identity without batch axes."""
    return type(operator) is LinearOperatorIdentity and not operator._batch
