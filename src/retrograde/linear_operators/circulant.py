"""Circulant matrices, which a Fourier transform diagonalizes."""

from __future__ import annotations

import math
from typing import Any

from retrograde.core.tensor import Tensor
from retrograde.debugging.comparisons import assert_near, assert_none_equal, assert_positive
from retrograde.linear_operators.arguments import (
    as_hints,
    conjugate_transpose,
    constructor_arguments,
    dtype_of,
    parameter_tensor,
)
from retrograde.linear_operators.linear_operator import LinearOperator
from retrograde.math.elementary import abs as absolute
from retrograde.math.elementary import conj, imag, log, real
from retrograde.math.reductions import reduce_max, reduce_mean, reduce_min, reduce_prod, reduce_sum
from retrograde.ops.conversion import as_tensor
from retrograde.signal.fourier import fft, fft2d, fft3d, ifft, ifft2d, ifft3d
from retrograde.toplevel.shaping import broadcast_to, cast, expand_dims, reshape
from retrograde.values import dtypes
from retrograde.values.shapes import TensorShape

_TRANSFORMS = {1: (fft, ifft), 2: (fft2d, ifft2d), 3: (fft3d, ifft3d)}


class _Circulant(LinearOperator):
    """A block circulant matrix of `block_depth` levels, given by its eigenvalues.

    The eigenvalues, the `spectrum`, are the Fourier transform of the first column.
    """

    _depth = 1

    def __init__(self, spectrum: Any, input_output_dtype: Any, hints: dict, name: str,
                 parameters: dict) -> None:  # fmt: skip
        self._spectrum = parameter_tensor(spectrum, "spectrum")
        dtype = dtype_of(self._spectrum)
        if not (dtype.is_floating or dtype.is_complex):
            raise TypeError(f"Argument `spectrum` must be floating point. Received: {dtype.name}.")
        if self._spectrum.shape.rank < self._depth:
            raise ValueError(
                f"Argument `spectrum` must have at least {self._depth} dimensions. Received: "
                f"shape {self._spectrum.shape}."
            )
        if hints["is_square"] is False:
            raise ValueError("A circulant operator is always square.")
        if not dtype.is_complex:
            if hints["is_self_adjoint"] is False:
                raise ValueError("A real spectrum always corresponds to a self-adjoint operator.")
            hints["is_self_adjoint"] = True
        super().__init__(input_output_dtype, name=name, parameters=parameters, **hints)

    @property
    def spectrum(self) -> Any:
        """The eigenvalues, with one axis for each level."""
        return self._spectrum

    @property
    def block_depth(self) -> int:
        """The number of levels."""
        return self._depth

    @property
    def block_shape(self) -> TensorShape:
        """The sizes of the levels."""
        return self._spectrum.shape[-self._depth :]

    def block_shape_tensor(self) -> Tensor:
        """Returns the sizes of the levels as an int32 tensor."""
        return as_tensor(self.block_shape.as_list(), dtypes.int32.numpy_dtype)

    def convolution_kernel(self, name: str = "convolution_kernel") -> Tensor:
        """Returns the first column, with one axis for each level."""
        return self._to_dtype(_TRANSFORMS[self._depth][1](self._complex_spectrum()))

    def assert_hermitian_spectrum(self, name: str = "assert_hermitian_spectrum") -> None:
        """Raises an `InvalidArgumentError` if the operator is not real."""
        kernel = _TRANSFORMS[self._depth][1](self._complex_spectrum())
        assert_near(imag(kernel), imag(kernel) * 0, message="The spectrum is not Hermitian.")

    def _complex_spectrum(self) -> Tensor:
        spectrum = as_tensor(self._spectrum)
        is_double = dtypes.of(spectrum._spec.dtype) in (dtypes.float64, dtypes.complex128)
        is_double = is_double or self.dtype in (dtypes.float64, dtypes.complex128)
        return cast(spectrum, dtypes.complex128 if is_double else dtypes.complex64)

    def _to_dtype(self, x: Tensor) -> Tensor:
        return cast(x if self.dtype.is_complex else real(x), self.dtype)

    def _shape(self) -> Any:
        size = math.prod(self.block_shape)
        return (*self._spectrum.shape[: -self._depth], size, size)

    def _filter(self, x: Tensor, spectrum: Tensor) -> Tensor:
        """Multiplies the Fourier transforms of the columns of x by `spectrum`."""
        forward, backward = _TRANSFORMS[self._depth]
        rows = conjugate_transpose(conj(x))  # each column becomes the last axis
        blocks = reshape(rows, (*rows.shape[:-1], *self.block_shape))
        batch_rank = len(spectrum.shape) - self._depth
        factors = expand_dims(spectrum, batch_rank)  # an axis for the columns
        y = backward(forward(cast(blocks, spectrum.dtype)) * factors)
        y = reshape(y, (*y.shape[: -self._depth], self.domain_dimension))
        return conjugate_transpose(conj(self._to_dtype(y)))

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        spectrum = self._complex_spectrum()
        x = conjugate_transpose(x, adjoint_arg)
        return self._filter(x, conj(spectrum) if adjoint else spectrum)

    def _solve(self, rhs: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        spectrum = self._complex_spectrum()
        rhs = conjugate_transpose(rhs, adjoint_arg)
        return self._filter(rhs, 1 / (conj(spectrum) if adjoint else spectrum))

    def _with_spectrum(self, spectrum: Tensor) -> LinearOperator:
        return type(self)(spectrum, self.dtype, **self._hints())

    def _adjoint(self) -> LinearOperator:
        return self._with_spectrum(conj(as_tensor(self._spectrum)))

    def _inverse(self) -> LinearOperator:
        return self._with_spectrum(1 / as_tensor(self._spectrum))

    def _axes(self) -> list[int]:
        return list(range(-self._depth, 0))

    def _diag_part(self) -> Tensor:
        mean = reduce_mean(self._complex_spectrum(), axis=self._axes())
        return broadcast_to(expand_dims(self._to_dtype(mean), -1), self.shape[:-1])

    def _trace(self) -> Tensor:
        return self._to_dtype(reduce_sum(self._complex_spectrum(), axis=self._axes()))

    def _determinant(self) -> Tensor:
        return self._to_dtype(reduce_prod(self._complex_spectrum(), axis=self._axes()))

    def _log_abs_determinant(self) -> Tensor:
        sizes = absolute(self._complex_spectrum())
        return cast(reduce_sum(log(sizes), axis=self._axes()), self.dtype)

    def _eigvals(self) -> Tensor:
        spectrum = as_tensor(self._spectrum)
        flat = reshape(spectrum, (*self.batch_shape, self.domain_dimension))
        return self._to_dtype(cast(flat, self._complex_spectrum().dtype))

    def _cond(self) -> Tensor:
        sizes = absolute(self._complex_spectrum())
        ratio = reduce_max(sizes, axis=self._axes()) / reduce_min(sizes, axis=self._axes())
        return cast(ratio, self.dtype)

    def _assert_non_singular(self) -> None:
        sizes = absolute(self._complex_spectrum())
        assert_none_equal(sizes, sizes * 0, message="Singular operator: the spectrum has zeros.")

    def _assert_positive_definite(self) -> None:
        assert_positive(real(self._complex_spectrum()), message="The real part is not positive.")

    def _assert_self_adjoint(self) -> None:
        part = imag(self._complex_spectrum())
        assert_near(part, part * 0, message="The spectrum is not real.")


class LinearOperatorCirculant(_Circulant):
    """A circulant matrix: each column is the previous one, shifted by one.

    `spectrum` is the Fourier transform of the first column. `input_output_dtype` is the dtype of
    arguments and results.

    >>> spectrum = tf.signal.fft(tf.constant([1.0, 2.0, 3.0], tf.complex64))
    >>> operator = tf.linalg.LinearOperatorCirculant(spectrum, tf.float32)
    >>> operator.to_dense().numpy().round(3)
    array([[1., 3., 2.],
           [2., 1., 3.],
           [3., 2., 1.]], dtype=float32)
    """

    def __init__(
        self,
        spectrum: Any,
        input_output_dtype: Any = dtypes.complex64,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = True,
        name: str = "LinearOperatorCirculant",
    ) -> None:
        hints = as_hints(is_non_singular, is_self_adjoint, is_positive_definite, is_square)
        parameters = constructor_arguments(locals())
        super().__init__(spectrum, input_output_dtype, hints, name, parameters)


class LinearOperatorCirculant2D(_Circulant):
    """A block circulant matrix with circulant blocks: a convolution in two dimensions.

    >>> operator = tf.linalg.LinearOperatorCirculant2D(tf.ones([2, 3]))
    >>> operator.shape
    TensorShape([6, 6])
    """

    _depth = 2

    def __init__(
        self,
        spectrum: Any,
        input_output_dtype: Any = dtypes.complex64,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = True,
        name: str = "LinearOperatorCirculant2D",
    ) -> None:
        hints = as_hints(is_non_singular, is_self_adjoint, is_positive_definite, is_square)
        parameters = constructor_arguments(locals())
        super().__init__(spectrum, input_output_dtype, hints, name, parameters)


class LinearOperatorCirculant3D(_Circulant):
    """A nested block circulant matrix: a convolution in three dimensions.

    >>> operator = tf.linalg.LinearOperatorCirculant3D(tf.ones([2, 2, 2]))
    >>> operator.shape
    TensorShape([8, 8])
    """

    _depth = 3

    def __init__(
        self,
        spectrum: Any,
        input_output_dtype: Any = dtypes.complex64,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = True,
        name: str = "LinearOperatorCirculant3D",
    ) -> None:
        hints = as_hints(is_non_singular, is_self_adjoint, is_positive_definite, is_square)
        parameters = constructor_arguments(locals())
        super().__init__(spectrum, input_output_dtype, hints, name, parameters)
