"""Products of vectors and matrices."""

from __future__ import annotations

from typing import Any

import retrograde as tf
from retrograde import linalg, math
from retrograde.core.tensor import Tensor
from retrograde.numpy_functions.shaping import axis_to_end, broadcast_all, moveaxis
from retrograde.ops import arithmetic as ar
from retrograde.ops.shaping import reshape
from retrograde.values.errors import FailedPreconditionError, InvalidArgumentError
from retrograde.values.shapes import normalize_axis


def matmul(x1: Tensor, x2: Tensor) -> Tensor:
    """Multiplies matrices in the last two axes. The axis of a vector is removed."""
    if not (x1.ndim and x2.ndim):
        raise ValueError(
            f"matmul: expected vectors or matrices. Received: shapes {x1._spec.shape} and "
            f"{x2._spec.shape}."
        )
    try:
        if x2.ndim == 1:
            return linalg.tensordot(x1, x2, 1)
        return linalg.tensordot(x1, x2, [[0], [-2]]) if x1.ndim == 1 else linalg.matmul(x1, x2)
    except InvalidArgumentError as error:
        raise ValueError(str(error)) from None


def dot(x1: Tensor, x2: Tensor) -> Tensor:
    """Contracts the last axis of `x1` with the second-to-last of `x2`; multiplies scalars."""
    return _contract(x1, x2, -1 if x2.ndim == 1 else -2)


def inner(x1: Tensor, x2: Tensor) -> Tensor:
    """Contracts the last axes of `x1` and `x2`; multiplies scalars."""
    return _contract(x1, x2, -1)


def _contract(x1: Tensor, x2: Tensor, axis: int) -> Tensor:
    if not (x1.ndim and x2.ndim):
        return ar.multiply(x1, x2)
    return linalg.tensordot(x1, x2, [[-1], [axis]])


def outer(x1: Tensor, x2: Tensor) -> Tensor:
    """Multiplies each element of `x1` by each element of `x2`."""
    return ar.multiply(tf.reshape(x1, [-1, 1]), tf.reshape(x2, [1, -1]))


def vdot(x1: Tensor, x2: Tensor) -> Tensor:
    """Sums the products of all elements, with `x1` conjugated."""
    return dot(tf.reshape(math.conj(x1), [-1]), tf.reshape(x2, [-1]))


def kron(x1: Tensor, x2: Tensor) -> Tensor:
    """Computes the Kronecker product: `x2` times each element of `x1`."""
    count = max(x1.ndim, x2.ndim)
    sizes1, sizes2 = ((1,) * (count - x.ndim) + x._spec.shape for x in (x1, x2))
    shape1 = tuple(size for n in sizes1 for size in (n, 1))
    shape2 = tuple(size for n in sizes2 for size in (1, n))
    y = ar.multiply(reshape(x1, shape=shape1), reshape(x2, shape=shape2))
    return reshape(y, shape=tuple(n * m for n, m in zip(sizes1, sizes2, strict=True)))


def cross(
    x1: Tensor, x2: Tensor, axis1: int = -1, axis2: int = -1, axis3: int = -1, axis: Any = None
) -> Tensor:
    """Computes the cross product along `axis3`; for vectors of length 2, its third component."""
    if axis is not None:
        axis1 = axis2 = axis3 = axis
    x1, x2 = (
        axis_to_end(x, normalize_axis(cross_axis, x.ndim, "cross"))
        for x, cross_axis in ((x1, axis1), (x2, axis2))
    )
    lengths = x1._spec.shape[-1], x2._spec.shape[-1]
    if not set(lengths) <= {2, 3}:
        raise FailedPreconditionError(
            message=f"cross: expected vectors of length 2 or 3. Received: lengths {lengths}."
        )
    y = linalg.cross(*broadcast_all([_pad_to_length_3(x1), _pad_to_length_3(x2)]))
    return y[..., 2] if lengths == (2, 2) else moveaxis(y, (-1,), (axis3,))


def _pad_to_length_3(x: Tensor) -> Tensor:
    """Appends a zero to vectors of length 2."""
    if x._spec.shape[-1] == 3:
        return x
    return tf.pad(x, [[0, 0]] * (x.ndim - 1) + [[0, 1]])
