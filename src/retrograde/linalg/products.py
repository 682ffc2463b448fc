"""Products of matrices, vectors and tensors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from retrograde.core.apply import apply
from retrograde.core.tensor import Tensor
from retrograde.ops import contraction
from retrograde.ops._families import conj
from retrograde.ops.arguments import integer_array
from retrograde.ops.casting import to_dtype
from retrograde.ops.conversion import one_dtype, same_dtype
from retrograde.ops.indexing import gather
from retrograde.ops.shaping import reshape, transpose
from retrograde.values import dtypes
from retrograde.values.arguments import shown
from retrograde.values.composites import NotOneTensor, dispatch_to_composite
from retrograde.values.conversion import tensor_or_variable
from retrograde.values.errors import FailedPreconditionError, invalid
from retrograde.values.shapes import normalize_axes


def matmul(
    a: Any,
    b: Any,
    transpose_a: bool = False,
    transpose_b: bool = False,
    adjoint_a: bool = False,
    adjoint_b: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
    output_type: Any = None,
    grad_a: bool = False,
    grad_b: bool = False,
    name: str | None = None,
) -> Tensor:
    """Multiplies matrices; leading axes broadcast.

    `transpose_a` and `adjoint_a` multiply by the transpose or the conjugate transpose of `a`.
    `output_type` is the dtype to compute in. `a_is_sparse` and `b_is_sparse` are hints that have no
    effect.

    >>> tf.linalg.matmul([[1.0, 2.0]], [[3.0, 4.0]], transpose_b=True).numpy()
    array([[11.]], dtype=float32)
    """
    _check_exclusive(transpose_a, adjoint_a, "a")
    _check_exclusive(transpose_b, adjoint_b, "b")
    if type(a) is not Tensor or type(b) is not Tensor:
        try:
            a, b = same_dtype(a, b)
        except NotOneTensor as refusal:
            adjoints = {"adjoint_a": adjoint_a, "adjoint_b": adjoint_b}
            return dispatch_to_composite(refusal, matmul, a, b, **adjoints)
    if output_type is not None:
        dtype = dtypes.as_dtype(output_type).numpy_dtype
        a, b = to_dtype(a, dtype), to_dtype(b, dtype)
    a = conj(a) if adjoint_a else a
    b = conj(b) if adjoint_b else b
    flip_a, flip_b = bool(transpose_a or adjoint_a), bool(transpose_b or adjoint_b)
    if not (flip_a or flip_b):
        return apply(contraction.matmul, (a, b))
    return apply(contraction.matmul, (a, b), {"transpose_a": flip_a, "transpose_b": flip_b})


def _check_exclusive(transpose: Any, adjoint: Any, matrix: str) -> None:
    if transpose and adjoint:
        raise ValueError(
            f"Only one of `transpose_{matrix}` and `adjoint_{matrix}` can be True. Received: both."
        )


def matvec(
    a: Any,
    b: Any,
    transpose_a: bool = False,
    adjoint_a: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
    name: str | None = None,
) -> Tensor:
    """Multiplies matrices by vectors, along the leading axes.

    >>> tf.linalg.matvec([[1.0, 2.0], [3.0, 4.0]], [1.0, 1.0]).numpy()
    array([3., 7.], dtype=float32)
    """
    a, b = same_dtype(a, b)
    if not b.ndim:
        raise invalid("matvec: b must have rank >= 1. Received: a scalar.")
    column = reshape(b, shape=(*b._spec.shape, 1))
    y = matmul(a, column, transpose_a=transpose_a, adjoint_a=adjoint_a)
    return reshape(y, shape=y._spec.shape[:-1])


def tensordot(a: Any, b: Any, axes: Any, name: str | None = None) -> Tensor:
    """Contracts `a` and `b` along `axes`.

    `axes` is a number n, for the last n axes of `a` and the first n of `b`, or a pair of lists of
    axes, one for each.

    >>> tf.linalg.tensordot([[1.0, 2.0], [3.0, 4.0]], [10.0, 100.0], axes=1).numpy()
    array([210., 430.], dtype=float32)
    """
    a, b = same_dtype(a, b)
    axes_a, axes_b = _contracted_axes(axes, a, b)
    if _sizes(a, axes_a) != _sizes(b, axes_b):
        raise invalid(
            f"tensordot: axes {shown(list(axes_a))} of shape {a._spec.shape} and "
            f"{shown(list(axes_b))} of {b._spec.shape} differ in size. Expected equal sizes."
        )
    free_a = tuple(i for i in range(a.ndim) if i not in axes_a)
    free_b = tuple(i for i in range(b.ndim) if i not in axes_b)
    factors = _matrix(a, free_a, axes_a), _matrix(b, free_b, axes_b)
    product = apply(contraction.matmul, factors, {"transpose_a": False, "transpose_b": True})
    return reshape(product, shape=_sizes(a, free_a) + _sizes(b, free_b))


def _sizes(x: Tensor, axes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(x._spec.shape[i] for i in axes)


def _matrix(x: Tensor, rows: tuple[int, ...], columns: tuple[int, ...]) -> Tensor:
    """Reshapes `x` to a matrix, with some axes as rows and the others as columns."""
    perm = rows + columns
    transposed = x if perm == tuple(range(x.ndim)) else transpose(x, perm=perm)
    return reshape(transposed, shape=(math.prod(_sizes(x, rows)), math.prod(_sizes(x, columns))))


def _contracted_axes(axes: Any, a: Tensor, b: Tensor) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Returns the axes of `a` and `b` to sum over."""
    if isinstance(axes, (int, np.integer)):
        n = int(axes)
        if n < 0:
            raise ValueError(f"tensordot: `axes` must be at least 0. Received: {n}.")
        for x in (a, b):
            if n > x.ndim:
                raise ValueError(
                    f"tensordot: `axes` must not be larger than the number of axes of either "
                    f"tensor. Received: {n} for shape {x._spec.shape}."
                )
        return tuple(range(a.ndim - n, a.ndim)), tuple(range(n))
    if tensor_or_variable(axes) is not None:
        axes = integer_array(axes, "tensordot").tolist()
    if not isinstance(axes, (list, tuple, np.ndarray)) or len(axes) != 2:
        raise ValueError(
            f"tensordot: `axes` must be an integer or have length 2. Received: {shown(axes)}."
        )
    axes_a, axes_b = (_normalized_in_order(part, x) for part, x in zip(axes, (a, b), strict=True))
    if len(axes_a) != len(axes_b):
        raise ValueError(
            f"tensordot: different numbers of axes for `a` and `b`. Received: {len(axes_a)} and "
            f"{len(axes_b)}."
        )
    return axes_a, axes_b


def _normalized_in_order(axes: Any, x: Tensor) -> tuple[int, ...]:
    """Returns the axes of `x` in the requested order."""
    requested = np.ravel(integer_array(axes, "tensordot")).tolist()
    if not requested:
        return ()
    normalize_axes(requested, x.ndim, "tensordot")
    return tuple(axis % x.ndim for axis in requested)


def cross(a: Any, b: Any, name: str | None = None) -> Tensor:
    """Computes the cross product of vectors of length 3 along the last axis.

    >>> tf.linalg.cross([1.0, 0.0, 0.0], [0.0, 1.0, 0.0]).numpy()
    array([0., 0., 1.], dtype=float32)
    """
    a, b = one_dtype((a, b))
    if a._spec.shape != b._spec.shape or not a.ndim:
        raise invalid(
            f"cross: both inputs must have the same shape and rank >= 1. Received: {a._spec.shape} "
            f"and {b._spec.shape}."
        )
    if a._spec.shape[-1] != 3:
        raise FailedPreconditionError(
            None,
            None,
            f"cross: expected vectors of length 3. Received: shape {a._spec.shape}.",
        )
    next_index, previous_index = (
        Tensor(np.array(order, np.int32)) for order in ([1, 2, 0], [2, 0, 1])
    )
    attrs = {"axis": a.ndim - 1, "dense_gradient": True}
    first = apply(gather, (a, next_index), attrs) * apply(gather, (b, previous_index), attrs)
    return first - apply(gather, (a, previous_index), attrs) * apply(gather, (b, next_index), attrs)
