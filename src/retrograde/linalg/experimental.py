"""tf.linalg.experimental: the conjugate gradient method."""

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
    """The state of `conjugate_gradient`: iteration, solution, residual, direction and gamma."""

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
    """Solves `operator.matvec(x) = rhs` iteratively for positive definite operators.

    `operator` and `preconditioner` have a `matvec` method. `is_self_adjoint` and
    `is_positive_definite` of `operator` must be true. The iteration starts at `x`, by default 0,
    and stops when the norm of the residual is below `tol` times the norm of `rhs`, or after
    `max_iter` iterations.
    """
    for attribute in ("matvec", "is_self_adjoint", "is_positive_definite"):
        if not hasattr(operator, attribute):
            raise TypeError(
                f"conjugate_gradient: expected an operator with {attribute!r}. Received: "
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
    limits = tol * _norms(b)
    if x is None:
        x, r = zeros_like(b), b
    else:
        x = as_tensor(x, b._spec.dtype)
        r = b - operator.matvec(x)
    precondition = (lambda r: r) if preconditioner is None else preconditioner.matvec
    q = p = precondition(r)
    gamma = _inner(r, q)
    i = 0
    while i < max_iter and np.any(_norms(r) > limits):
        z = operator.matvec(p)
        step = divide_no_nan(gamma, _inner(p, z))
        x = x + _append_axis(step) * p
        r = r - _append_axis(step) * z
        q = precondition(r)
        previous, gamma = gamma, _inner(r, q)
        p = q + _append_axis(divide_no_nan(gamma, previous)) * p
        i += 1
    return CGState(Tensor(np.int32(i)), x, r, p, gamma)


def _norms(x: Tensor) -> np.ndarray:
    with np.errstate(over="ignore"):
        return np.linalg.norm(np.asarray(x), axis=-1)


def _inner(x1: Tensor, x2: Tensor) -> Tensor:
    products = conj(x1) * x2
    return apply(reduction.sum, (products,), {"axis": (products.ndim - 1,), "keepdims": False})


def _append_axis(weights: Tensor) -> Tensor:
    """Appends an axis, so that each weight broadcasts over its vector."""
    return reshape(weights, shape=(*weights._spec.shape, 1))
