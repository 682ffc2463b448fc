"""LinearOperator: the base class of batches of structured matrices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from retrograde.core.tensor import Tensor
from retrograde.debugging.comparisons import assert_near, assert_positive
from retrograde.linalg.decompositions import cholesky, det, eigvalsh, slogdet, svd
from retrograde.linalg.diagonals import adjoint, diag_part
from retrograde.linalg.solvers import cholesky_solve, solve
from retrograde.linear_operators.arguments import broadcast_batch, conjugate_transpose
from retrograde.linear_operators.components import (
    LinearOperatorSpec,
    describe_static_values,
    find_tensors,
    replace_tensors,
)
from retrograde.math.elementary import abs as absolute
from retrograde.math.elementary import exp, log, real
from retrograde.math.reductions import reduce_max, reduce_min, reduce_sum
from retrograde.ops.conversion import as_tensor
from retrograde.toplevel.creation import constant, eye
from retrograde.toplevel.module import Module
from retrograde.toplevel.shaping import cast, expand_dims, squeeze
from retrograde.values import dtypes
from retrograde.values.arguments import expect, shown
from retrograde.values.composites import CompositeTensor
from retrograde.values.dtypes import DType
from retrograde.values.shapes import TensorShape
from retrograde.values.specs import TensorSpec


class LinearOperator(Module, CompositeTensor):
    """A batch of matrices, of shape `[..., M, N]`, given by an algorithm instead of its entries.

    Subclasses represent matrices with structure, such as diagonal or low-rank ones, and multiply,
    solve and compute determinants in less time than dense matrices take. Hints such as
    `is_positive_definite` select algorithms. They are not checked.

    Custom subclasses define `_shape` and `_matmul`. The other methods have defaults that use the
    dense matrix.

    >>> operator = tf.linalg.LinearOperatorDiag([1.0, 2.0]) @ tf.linalg.LinearOperatorIdentity(2)
    >>> operator.matvec([3.0, 4.0]).numpy()
    array([3., 8.], dtype=float32)
    >>> operator.log_abs_determinant().numpy()
    np.float32(0.6931472)
    """

    def __init__(
        self,
        dtype: Any,
        graph_parents: Any = None,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str | None = None,
        parameters: dict[str, Any] | None = None,
    ) -> None:
        for hint in (is_non_singular, is_self_adjoint, is_positive_definite, is_square):
            if not (hint is None or isinstance(hint, (bool, np.bool_))):
                raise TypeError(f"Hints must be Python bools or None. Received: {shown(hint)}.")
        if is_positive_definite:
            if is_non_singular is False:
                raise ValueError("A positive definite operator is always non-singular.")
            is_non_singular = True
        if is_non_singular:
            if is_square is False:
                raise ValueError("A non-singular operator is always square.")
            is_square = True
        if is_self_adjoint:
            if is_square is False:
                raise ValueError("A self-adjoint operator is always square.")
            is_square = True
        self._dtype = None if dtype is None else dtypes.as_dtype(dtype)
        self._is_non_singular = is_non_singular
        self._is_self_adjoint = is_self_adjoint
        self._is_positive_definite = is_positive_definite
        self._is_square_hint = is_square
        self._parameters = dict(parameters or {})
        self._graph_parents = list(graph_parents or ())
        super().__init__(name=_to_identifier(name or type(self).__name__))
        self._name = name or type(self).__name__

    # Attributes

    @property
    def parameters(self) -> dict[str, Any]:
        """The arguments of the constructor."""
        return dict(self._parameters)

    @property
    def graph_parents(self) -> list[Any]:
        """The tensors that the operator depends on, if a subclass states them."""
        return list(self._graph_parents)

    @property
    def dtype(self) -> DType:
        """The dtype of the entries."""
        return self._dtype

    @property
    def is_non_singular(self) -> bool | None:
        """Whether the operator is known to be invertible."""
        return self._is_non_singular

    @property
    def is_self_adjoint(self) -> bool | None:
        """Whether the operator is known to equal its conjugate transpose."""
        return self._is_self_adjoint

    @property
    def is_positive_definite(self) -> bool | None:
        """Whether `real(x^H A x) > 0` is known to hold for all `x`."""
        return self._is_positive_definite

    @property
    def is_square(self) -> bool:
        """Whether the operator has as many rows as columns."""
        rows, columns = self.shape[-2:]
        is_square = rows == columns
        if self._is_square_hint is not None and self._is_square_hint != is_square:
            raise ValueError(
                f"The shape {self.shape} contradicts the hint is_square={self._is_square_hint}."
            )
        return is_square

    @property
    def shape(self) -> TensorShape:
        """The shape `[..., M, N]`."""
        return TensorShape(self._shape())

    @property
    def batch_shape(self) -> TensorShape:
        """The sizes of the batch axes, which precede the last two."""
        return self.shape[:-2]

    @property
    def tensor_rank(self) -> int:
        """The number of axes, including the last two."""
        return len(self.shape)

    @property
    def domain_dimension(self) -> int:
        """The number of columns."""
        return self.shape[-1]

    @property
    def range_dimension(self) -> int:
        """The number of rows."""
        return self.shape[-2]

    def shape_tensor(self, name: str = "shape_tensor") -> Tensor:
        """Returns the shape as an int32 tensor."""
        return constant(self.shape.as_list(), dtypes.int32)

    def batch_shape_tensor(self, name: str = "batch_shape_tensor") -> Tensor:
        """Returns `batch_shape` as an int32 tensor."""
        return constant(self.batch_shape.as_list(), dtypes.int32)

    def tensor_rank_tensor(self, name: str = "tensor_rank_tensor") -> Tensor:
        """Returns the number of axes as an int32 tensor."""
        return constant(self.tensor_rank, dtypes.int32)

    def domain_dimension_tensor(self, name: str = "domain_dimension_tensor") -> Tensor:
        """Returns the number of columns as an int32 tensor."""
        return constant(self.domain_dimension, dtypes.int32)

    def range_dimension_tensor(self, name: str = "range_dimension_tensor") -> Tensor:
        """Returns the number of rows as an int32 tensor."""
        return constant(self.range_dimension, dtypes.int32)

    # Products and linear equations

    def matmul(
        self, x: Any, adjoint: bool = False, adjoint_arg: bool = False, name: str = "matmul"
    ) -> Any:
        """Multiplies by matrices, or by another operator.

        `adjoint` and `adjoint_arg` use the conjugate transpose of the operator or of `x`. The
        product with an operator is an operator.
        """
        if isinstance(x, LinearOperator):
            left = self.adjoint() if adjoint else self
            right = x.adjoint() if adjoint_arg else x
            if left.domain_dimension != right.range_dimension:
                raise ValueError(
                    f"Operators are incompatible. Expected `x` to have dimension "
                    f"{left.domain_dimension} but got {right.range_dimension}."
                )
            return left._product(right)
        x = self._check_argument(x, "x", adjoint, adjoint_arg)
        return self._matmul(x, adjoint=adjoint, adjoint_arg=adjoint_arg)

    def __matmul__(self, other: Any) -> Any:
        return self.matmul(other)

    def matvec(self, x: Any, adjoint: bool = False, name: str = "matvec") -> Tensor:
        """Multiplies by vectors, the last axis of `x`."""
        return self._matvec(as_tensor(x, self._numpy_dtype()), adjoint=adjoint)

    def solve(
        self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False, name: str = "solve"
    ) -> Any:
        """Solves `A X = rhs` for matrices, or for another operator.

        `adjoint` and `adjoint_arg` use the conjugate transpose of the operator or of `rhs`.
        """
        self._check_invertible("Exact solve not implemented for an operator that is expected to")
        if isinstance(rhs, LinearOperator):
            left = self.adjoint() if adjoint else self
            right = rhs.adjoint() if adjoint_arg else rhs
            if left.domain_dimension != right.range_dimension:
                raise ValueError(
                    f"Operators are incompatible. Expected `rhs` to have dimension "
                    f"{left.domain_dimension} but got {right.range_dimension}."
                )
            return left.inverse()._product(right)
        rhs = self._check_argument(rhs, "rhs", not adjoint, adjoint_arg)
        return self._solve(rhs, adjoint=adjoint, adjoint_arg=adjoint_arg)

    def solvevec(self, rhs: Any, adjoint: bool = False, name: str = "solve") -> Tensor:
        """Solves `A x = rhs` for vectors, the last axis of `rhs`."""
        self._check_invertible("Exact solve not implemented for an operator that is expected to")
        return self._solvevec(as_tensor(rhs, self._numpy_dtype()), adjoint=adjoint)

    # Other operators

    @property
    def H(self) -> LinearOperator:
        """The adjoint, as in `operator.H @ x`."""
        return self.adjoint()

    def adjoint(self, name: str = "adjoint") -> LinearOperator:
        """Returns the conjugate transpose."""
        return self if self.is_self_adjoint else self._adjoint()

    def inverse(self, name: str = "inverse") -> LinearOperator:
        """Returns the inverse."""
        if not self.is_square:
            raise NotImplementedError(
                "Cannot take the Inverse: This operator represents a non square matrix."
            )
        if self.is_non_singular is False:
            raise NotImplementedError(
                "Cannot take the Inverse: This operator represents a singular matrix."
            )
        return self._inverse()

    def cholesky(self, name: str = "cholesky") -> LinearOperator:
        """Returns the Cholesky factor of a self-adjoint positive definite operator."""
        if not self._uses_cholesky():
            raise NotImplementedError(
                "Cannot take the Cholesky decomposition: Not a positive definite self adjoint "
                "matrix."
            )
        return self._cholesky()

    # Values

    def to_dense(self, name: str = "to_dense") -> Tensor:
        """Returns the dense matrix."""
        return self._to_dense()

    def add_to_tensor(self, x: Any, name: str = "add_to_tensor") -> Tensor:
        """Adds the operator to matrices."""
        return self._add_to_tensor(as_tensor(x, self._numpy_dtype()))

    def diag_part(self, name: str = "diag_part") -> Tensor:
        """Returns the main diagonal."""
        return self._diag_part()

    def trace(self, name: str = "trace") -> Tensor:
        """Returns the sum of the main diagonal."""
        return self._trace()

    def determinant(self, name: str = "det") -> Tensor:
        """Returns the determinant."""
        self._check_square("Determinant not implemented for an operator that is expected to")
        return self._determinant()

    def log_abs_determinant(self, name: str = "log_abs_det") -> Tensor:
        """Returns the logarithm of the absolute value of the determinant."""
        self._check_square("Determinant not implemented for an operator that is expected to")
        return cast(self._log_abs_determinant(), self.dtype)

    def eigvals(self, name: str = "eigvals") -> Tensor:
        """Returns the eigenvalues of a self-adjoint operator."""
        if not self.is_self_adjoint:
            raise NotImplementedError("Only self-adjoint matrices are supported.")
        return self._eigvals()

    def cond(self, name: str = "cond") -> Tensor:
        """Returns the condition number: the ratio of the largest to the smallest singular value."""
        self._check_square("cond not implemented for an operator that is expected to")
        return self._cond()

    # Checks

    def assert_non_singular(self, name: str = "assert_non_singular") -> None:
        """Raises an `InvalidArgumentError` if the operator is singular, to working precision."""
        self._check_square("assert_non_singular needs an operator that is expected to")
        self._assert_non_singular()

    def assert_positive_definite(self, name: str = "assert_positive_definite") -> None:
        """Raises an `InvalidArgumentError` if the operator is not positive definite."""
        self._check_square("assert_positive_definite needs an operator that is expected to")
        self._assert_positive_definite()

    def assert_self_adjoint(self, name: str = "assert_self_adjoint") -> None:
        """Raises an `InvalidArgumentError` if the operator is not self-adjoint."""
        self._check_square("assert_self_adjoint needs an operator that is expected to")
        self._assert_self_adjoint()

    # Methods that subclasses override, with TensorFlow's names and arguments.

    def _shape(self) -> Any:
        raise NotImplementedError(f"{type(self).__name__} does not define _shape.")

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} does not define _matmul.")

    def _matvec(self, x: Tensor, adjoint: bool = False) -> Tensor:
        return squeeze(self.matmul(expand_dims(x, -1), adjoint=adjoint), -1)

    def _solve(self, rhs: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        matrix, rhs = broadcast_batch(self.to_dense(), conjugate_transpose(rhs, adjoint_arg))
        if self._uses_cholesky():
            return cholesky_solve(cholesky(matrix), rhs)
        return solve(matrix, rhs, adjoint=adjoint)

    def _solvevec(self, rhs: Tensor, adjoint: bool = False) -> Tensor:
        return squeeze(self.solve(expand_dims(rhs, -1), adjoint=adjoint), -1)

    def _product(self, right: LinearOperator) -> LinearOperator:
        from retrograde.linear_operators.composition import product

        return product(self, right)

    def _adjoint(self) -> LinearOperator:
        from retrograde.linear_operators.adjoint_and_inverse import LinearOperatorAdjoint

        return LinearOperatorAdjoint(
            self,
            is_non_singular=self.is_non_singular,
            is_self_adjoint=self.is_self_adjoint,
            is_positive_definite=self.is_positive_definite,
        )

    def _inverse(self) -> LinearOperator:
        from retrograde.linear_operators.adjoint_and_inverse import LinearOperatorInversion

        return LinearOperatorInversion(
            self,
            is_non_singular=True,
            is_self_adjoint=self.is_self_adjoint,
            is_positive_definite=self.is_positive_definite,
            is_square=True,
        )

    def _cholesky(self) -> LinearOperator:
        from retrograde.linear_operators.dense import LinearOperatorLowerTriangular

        return LinearOperatorLowerTriangular(
            cholesky(self.to_dense()),
            is_non_singular=True,
            is_self_adjoint=False,
            is_square=True,
        )

    def _to_dense(self) -> Tensor:
        return self.matmul(self._identity())

    def _add_to_tensor(self, x: Tensor) -> Tensor:
        return self.to_dense() + x

    def _diag_part(self) -> Tensor:
        return diag_part(self.to_dense())

    def _trace(self) -> Tensor:
        return reduce_sum(self.diag_part(), axis=-1)

    def _determinant(self) -> Tensor:
        if self._uses_cholesky():
            return exp(self.log_abs_determinant())
        return det(self.to_dense())

    def _log_abs_determinant(self) -> Tensor:
        if self._uses_cholesky():
            d = diag_part(cholesky(self.to_dense()))
            return 2 * reduce_sum(log(absolute(d)), axis=-1)
        return slogdet(self.to_dense()).log_abs_determinant

    def _eigvals(self) -> Tensor:
        return eigvalsh(self.to_dense())

    def _cond(self) -> Tensor:
        if self.is_self_adjoint:
            values = absolute(self.eigvals())
        else:
            values = svd(self.to_dense(), compute_uv=False)
        return reduce_max(values, axis=-1) / reduce_min(values, axis=-1)

    def _assert_non_singular(self) -> None:
        # Singular to working precision: the condition number exceeds 1 / (precision * rows).
        singular_values = svd(self.to_dense(), compute_uv=False)
        ratio = reduce_min(singular_values, axis=-1) / reduce_max(singular_values, axis=-1)
        precision = np.finfo(singular_values.dtype.as_numpy_dtype).eps
        assert_positive(
            ratio - precision * self.range_dimension, message="Singular matrix encountered."
        )

    def _assert_positive_definite(self) -> None:
        assert_positive(
            real(diag_part(cholesky(self.to_dense()))),
            message="The matrix is not positive definite.",
        )

    def _assert_self_adjoint(self) -> None:
        dense = self.to_dense()
        assert_near(dense, adjoint(dense), message="Matrix was not equal to its adjoint.")

    # Shared by subclasses

    def _numpy_dtype(self) -> Any:
        return None if self._dtype is None else self._dtype.numpy_dtype

    def _identity(self) -> Tensor:
        return eye(self.domain_dimension, batch_shape=self.batch_shape.as_list(), dtype=self.dtype)

    def _uses_cholesky(self) -> bool:
        return bool(self.is_self_adjoint and self.is_positive_definite)

    def _hints(self, *names: str) -> dict[str, bool | None]:
        """Returns hints as constructor arguments. The default is all hints except `is_square`."""
        names = names or ("is_non_singular", "is_self_adjoint", "is_positive_definite")
        return {name: getattr(self, name) for name in names}

    def _check_argument(self, x: Any, name: str, uses_rows: bool, adjoint_arg: bool) -> Any:
        """Converts an argument of `matmul` or `solve`, and checks its number of rows."""
        x = as_tensor(x, self._numpy_dtype())
        if x.ndim < 2:
            raise ValueError(f"Shape {x.shape} of `{name}` must have rank at least 2.")
        expected = self.range_dimension if uses_rows else self.domain_dimension
        actual = x.shape[-1 if adjoint_arg else -2]
        if actual != expected:
            raise ValueError(
                f"Dimensions {expected} and {actual} are not compatible: {type(self).__name__} of "
                f"shape {self.shape}, `{name}` of shape {x.shape}."
            )
        return x

    def _check_square(self, message: str) -> None:
        if not self.is_square:
            raise NotImplementedError(f"{message} not be square.")

    def _check_invertible(self, message: str) -> None:
        if self.is_non_singular is False:
            raise NotImplementedError(f"{message} be singular.")
        self._check_square(message)

    # The interface of composite tensors. `tf.function` replaces the tensors among the parameters.

    def _components(self) -> tuple[Tensor, ...]:
        return tuple(find_tensors(self._parameters))

    def _with_components(self, components: Iterator[Any]) -> LinearOperator:
        return type(self)(**replace_tensors(self._parameters, components))

    def _static_key(self) -> Any:
        return describe_static_values(self._parameters)

    @property
    def _type_spec(self) -> LinearOperatorSpec:
        specs = [TensorSpec.from_tensor(x) for x in self._components()]
        return LinearOperatorSpec(type(self), self._static_key(), *specs)

    @property
    def _followed(self) -> Tensor:
        raise NotImplementedError(
            "A LinearOperator is not a source of gradients. Differentiate with respect to its "
            "tensors or variables."
        )

    def _handler(self, operation: Any) -> Any:
        method = _METHODS.get(getattr(operation, "__name__", ""))
        return method and (lambda operator, *args, **kwargs: method(operator, *args, **kwargs))

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__}: shape={self.shape}, dtype={self.dtype.name}, "
            f"name={self.name!r}>"
        )


def _logdet(operator: LinearOperator, name: str | None = None) -> Tensor:
    return operator.log_abs_determinant()


def _matmul(
    operator: Any,
    x: Any,
    adjoint_a: bool = False,
    adjoint_b: bool = False,
    name: str | None = None,
) -> Any:
    if not isinstance(operator, LinearOperator):
        raise AttributeError("Only the first argument of matmul can be a LinearOperator.")
    return operator.matmul(x, adjoint_a, adjoint_b)


# Public functions that accept an operator as the first argument.
_METHODS = {
    "adjoint": LinearOperator.adjoint,
    "cholesky": LinearOperator.cholesky,
    "det": LinearOperator.determinant,
    "diag_part": LinearOperator.diag_part,
    "eigvalsh": LinearOperator.eigvals,
    "matmul": _matmul,
    "inv": LinearOperator.inverse,
    "logdet": _logdet,
    "solve": LinearOperator.solve,
    "trace": LinearOperator.trace,
}


def _to_identifier(name: str) -> str:
    expect(name, str, "name", "a string")
    return "".join(c if c.isidentifier() or c.isdigit() else "_" for c in name)
