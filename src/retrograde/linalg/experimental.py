"""tf.linalg.experimental."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from retrograde._api.lazy import from_all
from retrograde.core.apply import apply
from retrograde.core.tensor import Tensor
from retrograde.ops import reduction
from retrograde.ops._families import conj
from retrograde.ops.arithmetic import divide_no_nan
from retrograde.ops.casting import zeros_like
from retrograde.ops.conversion import as_tensor
from retrograde.ops.shaping import reshape
from retrograde.values import dtypes
from retrograde.values.arguments import brief
from retrograde.values.errors import invalid

__all__ = ["conjugate_gradient"]

__getattr__, __dir__ = from_all(__name__)


class CGState(NamedTuple):
    """Where `conjugate_gradient` stands: steps made, solution, residual, direction, its weight."""

    i: Tensor
    x: Tensor
    r: Tensor
    p: Tensor
    gamma: Tensor


def conjugate_gradient(
    operator: Any,
    rhs: Any,
    preconditioner: Any = None,
    x: Any = None,
    tol: float = 1e-5,
    max_iter: int = 20,
    name: str | None = "conjugate_gradient",
) -> CGState:
    """Solves `operator.matvec(x) = rhs` step by step, for Hermitian positive definite operators.

    `operator` and `preconditioner` have a method `matvec`; of the first, `is_self_adjoint` and
    `is_positive_definite` must be true. It begins at `x`, or else at 0, and ends when the length of
    the residual is below `tol` times that of `rhs`, or after `max_iter` steps.
    """
    for needed in ("matvec", "is_self_adjoint", "is_positive_definite"):
        if not hasattr(operator, needed):
            raise TypeError(
                f"conjugate_gradient: expected an operator with {needed!r}. Received: "
                f"{brief(operator)}."
            )
    if preconditioner is not None and not hasattr(preconditioner, "matvec"):
        raise TypeError(
            "conjugate_gradient: expected a preconditioner with 'matvec'. Received: "
            f"{brief(preconditioner)}."
        )
    if not (operator.is_self_adjoint and operator.is_positive_definite):
        raise ValueError("Expected a self-adjoint, positive definite operator.")
    b = as_tensor(rhs)
    if not b.ndim or b._spec.dtype not in dtypes.INEXACT:
        raise invalid(
            "conjugate_gradient: expected vectors of floating-point or complex numbers. Received: "
            f"shape {b._spec.shape}, dtype {b.dtype.name}."
        )
    limits = tol * _lengths(b)
    if x is None:
        x, r = zeros_like(b), b
    else:
        x = as_tensor(x, b._spec.dtype)
        r = b - operator.matvec(x)
    precondition = (lambda r: r) if preconditioner is None else preconditioner.matvec
    q = p = precondition(r)
    gamma = _inner(r, q)
    i = 0
    while i < max_iter and np.any(_lengths(r) > limits):
        z = operator.matvec(p)
        step = divide_no_nan(gamma, _inner(p, z))
        x = x + _each(step) * p
        r = r - _each(step) * z
        q = precondition(r)
        before, gamma = gamma, _inner(r, q)
        p = q + _each(divide_no_nan(gamma, before)) * p
        i += 1
    return CGState(Tensor(np.int32(i)), x, r, p, gamma)


def _lengths(x: Tensor) -> np.ndarray:
    with np.errstate(over="ignore"):
        return np.linalg.norm(np.asarray(x), axis=-1)


def _inner(x1: Tensor, x2: Tensor) -> Tensor:
    products = conj(x1) * x2
    return apply(reduction.sum, (products,), {"axis": (products.ndim - 1,), "keepdims": False})


def _each(weights: Tensor) -> Tensor:
    """One number for each vector, to multiply it with."""
    return reshape(weights, shape=(*weights._spec.shape, 1))
