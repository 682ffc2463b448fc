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
    """The product of two matrices, or of many along the leading axes, which broadcast.

    A matrix may be transposed, or conjugated as well (`adjoint_a`), on the way in. `output_type` is
    the dtype to multiply in. `a_is_sparse` and its like are hints, which are not needed here.

    >>> tf.linalg.matmul([[1.0, 2.0]], [[3.0, 4.0]], transpose_b=True).numpy()
    array([[11.]], dtype=float32)
    """
    _one_of(transpose_a, adjoint_a, "a")
    _one_of(transpose_b, adjoint_b, "b")
    if type(a) is not Tensor or type(b) is not Tensor:
        a, b = same_dtype(a, b)
    if output_type is not None:
        dtype = dtypes.as_dtype(output_type).numpy_dtype
        a, b = to_dtype(a, dtype), to_dtype(b, dtype)
    a = conj(a) if adjoint_a else a
    b = conj(b) if adjoint_b else b
    flip_a, flip_b = bool(transpose_a or adjoint_a), bool(transpose_b or adjoint_b)
    if not (flip_a or flip_b):
        return apply(contraction.matmul, (a, b))
    return apply(contraction.matmul, (a, b), {"transpose_a": flip_a, "transpose_b": flip_b})


def _one_of(transpose: Any, adjoint: Any, which: str) -> None:
    if transpose and adjoint:
        raise ValueError(
            f"Only one of `transpose_{which}` and `adjoint_{which}` can be True. Received: both."
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
    """The product of a matrix and a vector, or of many along the leading axes.

    >>> tf.linalg.matvec([[1.0, 2.0], [3.0, 4.0]], [1.0, 1.0]).numpy()
    array([3., 7.], dtype=float32)
    """
    a, b = same_dtype(a, b)
    if not b.ndim:
        raise invalid("matvec: b must have at least one axis. Received: a scalar.")
    column = reshape(b, shape=(*b._spec.shape, 1))
    y = matmul(a, column, transpose_a=transpose_a, adjoint_a=adjoint_a)
    return reshape(y, shape=y._spec.shape[:-1])


def tensordot(a: Any, b: Any, axes: Any, name: str | None = None) -> Tensor:
    """The sum over products of `a` and `b` along `axes`.

    `axes` is a number n, for the last n axes of `a` and the first n of `b`, or a pair of lists of
    axes, one for each.

    >>> tf.linalg.tensordot([[1.0, 2.0], [3.0, 4.0]], [10.0, 100.0], axes=1).numpy()
    array([210., 430.], dtype=float32)
    """
    a, b = same_dtype(a, b)
    of_a, of_b = _contracted(axes, a, b)
    if _sizes(a, of_a) != _sizes(b, of_b):
        raise invalid(
            f"tensordot: axes {shown(list(of_a))} of shape {a._spec.shape} and "
            f"{shown(list(of_b))} of {b._spec.shape} differ in size. Expected the same."
        )
    free_a = tuple(i for i in range(a.ndim) if i not in of_a)
    free_b = tuple(i for i in range(b.ndim) if i not in of_b)
    factors = _matrix(a, free_a, of_a), _matrix(b, free_b, of_b)
    product = apply(contraction.matmul, factors, {"transpose_a": False, "transpose_b": True})
    return reshape(product, shape=_sizes(a, free_a) + _sizes(b, free_b))


def _sizes(x: Tensor, axes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(x._spec.shape[i] for i in axes)


def _matrix(x: Tensor, rows: tuple[int, ...], columns: tuple[int, ...]) -> Tensor:
    """`x` as a matrix: some of its axes as rows, the others as columns."""
    perm = rows + columns
    moved = x if perm == tuple(range(x.ndim)) else transpose(x, perm=perm)
    return reshape(moved, shape=(math.prod(_sizes(x, rows)), math.prod(_sizes(x, columns))))


def _contracted(axes: Any, a: Tensor, b: Tensor) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The axes of `a` and of `b` to sum over."""
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
    of_a, of_b = (_places(part, x) for part, x in zip(axes, (a, b), strict=True))
    if len(of_a) != len(of_b):
        raise ValueError(
            f"tensordot: different numbers of axes for `a` and `b`. Received: {len(of_a)} and "
            f"{len(of_b)}."
        )
    return of_a, of_b


def _places(axes: Any, x: Tensor) -> tuple[int, ...]:
    """Axes of `x` in the order in which they are given."""
    given = np.ravel(integer_array(axes, "tensordot")).tolist()
    if not given:
        return ()
    normalize_axes(given, x.ndim, "tensordot")
    return tuple(axis % x.ndim for axis in given)


def cross(a: Any, b: Any, name: str | None = None) -> Tensor:
    """The vector product of vectors of length 3, which lie along the last axis.

    >>> tf.linalg.cross([1.0, 0.0, 0.0], [0.0, 1.0, 0.0]).numpy()
    array([0., 0., 1.], dtype=float32)
    """
    a, b = one_dtype((a, b))
    if a._spec.shape != b._spec.shape or not a.ndim:
        raise invalid(
            "cross: both inputs must have the same shape, with at least one axis. Received: "
            f"{a._spec.shape} and {b._spec.shape}."
        )
    if a._spec.shape[-1] != 3:
        raise FailedPreconditionError(
            None,
            None,
            f"cross: expected vectors of length 3. Received: shape {a._spec.shape}.",
        )
    ahead, behind = (Tensor(np.array(order, np.int32)) for order in ([1, 2, 0], [2, 0, 1]))
    at = {"axis": a.ndim - 1, "whole": True}
    first = apply(gather, (a, ahead), at) * apply(gather, (b, behind), at)
    return first - apply(gather, (a, behind), at) * apply(gather, (b, ahead), at)
