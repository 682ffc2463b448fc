"""Products of vectors and matrices."""

from __future__ import annotations

from typing import Any

import retrograde as tf
from retrograde import linalg, math
from retrograde.core.tensor import Tensor
from retrograde.experimental.numpy._inputs import promote, tensor_of
from retrograde.experimental.numpy.shaping import ravel
from retrograde.numpy_functions import products as shared
from retrograde.values.arguments import shown


def matmul(x1: Any, x2: Any) -> Tensor:
    """Multiplies the matrices in the last two axes; vectors are supported as in NumPy.

    >>> tf.experimental.numpy.matmul([[1, 2], [3, 4]], [0.5, 1.0]).numpy()
    array([2.5, 5.5])
    """
    return shared.matmul(*promote(x1, x2))


def dot(a: Any, b: Any) -> Tensor:
    """Contracts the last axis of `a` with the second to last of `b`; multiplies scalars."""
    return shared.dot(*promote(a, b))


def inner(a: Any, b: Any) -> Tensor:
    """Contracts the last axes of `a` and `b`; multiplies scalars."""
    return shared.inner(*promote(a, b))


def outer(a: Any, b: Any) -> Tensor:
    """Multiplies each element of `a` by each element of `b`."""
    return shared.outer(*promote(a, b))


def vdot(a: Any, b: Any) -> Tensor:
    """Computes the dot product of all elements, with `a` conjugated."""
    return shared.vdot(*promote(a, b))


def tensordot(a: Any, b: Any, axes: Any = 2) -> Tensor:
    """Contracts `axes`: a number of axes, or a pair of lists of axes."""
    return linalg.tensordot(*promote(a, b), axes)


def cross(
    a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None
) -> Tensor:
    """Computes the cross product of vectors of length 3 or 2; for length 2, its third component.

    >>> tf.experimental.numpy.cross([1, 0, 0], [0, 1, 0]).numpy()
    array([0, 0, 1])
    """
    return shared.cross(*promote(a, b), axisa, axisb, axisc, axis)


def kron(a: Any, b: Any) -> Tensor:
    """Computes the Kronecker product.

    >>> tf.experimental.numpy.kron([1, 2], [1, 10]).numpy()
    array([ 1, 10,  2, 20])
    """
    return shared.kron(*promote(a, b))


def einsum(subscripts: str, *operands: Any, **kwargs: Any) -> Tensor:
    """Computes the sum of products of `operands` that `subscripts` describes.

    >>> tf.experimental.numpy.einsum("i,i->", [1, 2], [3.0, 4.0]).numpy()
    np.float64(11.0)
    """
    casting, optimize = kwargs.get("casting", "safe"), kwargs.get("optimize", False)
    if casting not in ("safe", "no"):
        raise ValueError(f"einsum: `casting` must be 'safe' or 'no'. Received: {shown(casting)}.")
    if optimize not in (False, True, "greedy", "optimal"):
        raise ValueError(
            "einsum: `optimize` must be a bool, 'greedy' or 'optimal'. Received: "
            f"{shown(optimize)}."
        )
    xs = promote(*operands) if casting == "safe" else [tensor_of(x) for x in operands]
    return linalg.einsum(subscripts, *xs, optimize="optimal" if optimize == "optimal" else "greedy")


def polyval(p: Any, x: Any) -> Tensor:
    """Evaluates the polynomial with coefficients `p`, highest power first, at `x`.

    >>> tf.experimental.numpy.polyval([1, 0, 2], [1, 2, 3]).numpy()
    array([ 3,  6, 11])
    """
    p, x = promote(p, x)
    coefficients = tf.unstack(ravel(p) if not p.ndim else p)
    return tf.broadcast_to(math.polyval(coefficients, x), x._spec.shape)
