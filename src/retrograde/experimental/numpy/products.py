"""Products of vectors and matrices."""

from __future__ import annotations

from typing import Any

import retrograde as tf
from retrograde import linalg, math
from retrograde.core.tensor import Tensor
from retrograde.experimental.numpy._inputs import axis_to_end, broadcast_all, promoted, tensor_of
from retrograde.experimental.numpy.shaping import moveaxis, ravel
from retrograde.values.arguments import shown
from retrograde.values.errors import FailedPreconditionError, InvalidArgumentError


def matmul(x1: Any, x2: Any) -> Tensor:
    """The product of matrices in the last two axes; vectors lose their axis in it.

    >>> tf.experimental.numpy.matmul([[1, 2], [3, 4]], [0.5, 1.0]).numpy()
    array([2.5, 5.5])
    """
    x1, x2 = promoted(x1, x2)
    if not (x1.ndim and x2.ndim):
        raise ValueError(
            f"matmul: expected vectors or matrices. Received: shapes {x1._array.shape} and "
            f"{x2._array.shape}."
        )
    try:
        if x2.ndim == 1:
            return linalg.tensordot(x1, x2, 1)
        return linalg.tensordot(x1, x2, [[0], [-2]]) if x1.ndim == 1 else linalg.matmul(x1, x2)
    except InvalidArgumentError as error:
        raise ValueError(str(error)) from None


def dot(a: Any, b: Any) -> Tensor:
    """The sum over the last axis of `a` and the last but one of `b`; of scalars, the product."""
    a, b = promoted(a, b)
    if not (a.ndim and b.ndim):
        return math.multiply(a, b)
    return linalg.tensordot(a, b, [[-1], [-1 if b.ndim == 1 else -2]])


def inner(a: Any, b: Any) -> Tensor:
    """The sum over the last axes of `a` and `b`; of scalars, the product."""
    a, b = promoted(a, b)
    if not (a.ndim and b.ndim):
        return math.multiply(a, b)
    return linalg.tensordot(a, b, [[-1], [-1]])


def outer(a: Any, b: Any) -> Tensor:
    """The products of each element of `a` with each of `b`."""
    a, b = promoted(a, b)
    return math.multiply(tf.reshape(a, [-1, 1]), tf.reshape(b, [1, -1]))


def vdot(a: Any, b: Any) -> Tensor:
    """The sum of the products of all elements; those of `a` are conjugated."""
    a, b = promoted(a, b)
    return dot(ravel(math.conj(a)), ravel(b))


def tensordot(a: Any, b: Any, axes: Any = 2) -> Tensor:
    """The sum over products along `axes`: a number of axes, or a pair of lists of them."""
    return linalg.tensordot(*promoted(a, b), axes)


def cross(
    a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None
) -> Tensor:
    """The vector product of vectors of length 3 or 2; of two of length 2, its third component.

    >>> tf.experimental.numpy.cross([1, 0, 0], [0, 1, 0]).numpy()
    array([0, 0, 1])
    """
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = promoted(a, b)
    a, b = axis_to_end(a, axisa, "cross"), axis_to_end(b, axisb, "cross")
    lengths = a._array.shape[-1], b._array.shape[-1]
    if not set(lengths) <= {2, 3}:
        raise FailedPreconditionError(
            message=f"cross: expected vectors of length 2 or 3. Received: lengths {lengths}."
        )
    c = linalg.cross(*broadcast_all([_of_length_3(a), _of_length_3(b)]))
    return c[..., 2] if lengths == (2, 2) else moveaxis(c, -1, axisc)


def _of_length_3(x: Tensor) -> Tensor:
    """Vectors with a third component of zero, if they have only two."""
    if x._array.shape[-1] == 3:
        return x
    return tf.pad(x, [[0, 0]] * (x.ndim - 1) + [[0, 1]])


def kron(a: Any, b: Any) -> Tensor:
    """`b`, once for each element of `a`, multiplied by it.

    >>> tf.experimental.numpy.kron([1, 2], [1, 10]).numpy()
    array([ 1, 10,  2, 20])
    """
    a, b = promoted(a, b)
    count = max(a.ndim, b.ndim)
    sizes_a, sizes_b = ((1,) * (count - x.ndim) + x._array.shape for x in (a, b))
    apart_a = [size for n in sizes_a for size in (n, 1)]
    apart_b = [size for n in sizes_b for size in (1, n)]
    y = math.multiply(tf.reshape(a, apart_a), tf.reshape(b, apart_b))
    return tf.reshape(y, [n * m for n, m in zip(sizes_a, sizes_b, strict=True)])


def einsum(subscripts: str, *operands: Any, **kwargs: Any) -> Tensor:
    """The sum of products of `operands` that `subscripts` describe.

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
    xs = promoted(*operands) if casting == "safe" else [tensor_of(x) for x in operands]
    return linalg.einsum(subscripts, *xs, optimize="optimal" if optimize == "optimal" else "greedy")


def polyval(p: Any, x: Any) -> Tensor:
    """The polynomial with coefficients `p`, that of the highest power first, at `x`.

    >>> tf.experimental.numpy.polyval([1, 0, 2], [1, 2, 3]).numpy()
    array([ 3,  6, 11])
    """
    p, x = promoted(p, x)
    coefficients = tf.unstack(ravel(p) if not p.ndim else p)
    return tf.broadcast_to(math.polyval(coefficients, x), x._array.shape)
