"""Making arrays: of given values, of one value, of ranges, of diagonals and triangles."""

from __future__ import annotations

from typing import Any

import numpy as np

import retrograde as tf
from retrograde import linalg, math
from retrograde.core.tensor import Tensor
from retrograde.experimental.numpy._inputs import FLOAT, array_of, refuse, tensor_of
from retrograde.experimental.numpy.dtypes import common_dtype, wanted_dtype
from retrograde.experimental.numpy.shaping import moveaxis, ravel
from retrograde.numpy_functions import shaping as shared
from retrograde.ops.arguments import integer, shape_from
from retrograde.ops.casting import to_dtype
from retrograde.values.arguments import as_text
from retrograde.values.errors import invalid, reports_out_of_memory

_MOST_AXES = 32


# Of given values

ndarray = Tensor
"""The class of tensors, under the name that it has in NumPy."""


def array(val: Any, dtype: Any = None, copy: bool = True, ndmin: int = 0) -> Tensor:
    """`val` as a tensor with at least `ndmin` axes. Tensors never change, so nothing is copied.

    >>> tf.experimental.numpy.array([1, 2], ndmin=2)
    <tf.Tensor: shape=(1, 2), dtype=int64, numpy=array([[1, 2]])>
    """
    if ndmin > _MOST_AXES:
        raise ValueError(f"array: `ndmin` is {as_text(ndmin)}. Expected at most {_MOST_AXES}.")
    x = array_of(val, wanted_dtype(dtype))
    if x.ndim < ndmin:
        return tf.reshape(x, (1,) * (ndmin - x.ndim) + x._spec.shape)
    return x


def asarray(a: Any, dtype: Any = None) -> Tensor:
    """`a` as a tensor. A list of integers becomes int64, one with floats in it float64.

    >>> tf.experimental.numpy.asarray([1, 2.5])
    <tf.Tensor: shape=(2,), dtype=float64, numpy=array([1. , 2.5])>
    """
    return array_of(a, wanted_dtype(dtype))


def asanyarray(a: Any, dtype: Any = None) -> Tensor:
    """The same as `asarray`: there are no other kinds of arrays."""
    return asarray(a, dtype)


def ascontiguousarray(a: Any, dtype: Any = None) -> Tensor:
    """`a` as a tensor with at least one axis."""
    return array(a, dtype, ndmin=1)


def copy(a: Any) -> Tensor:
    """`a` as another tensor."""
    return array(a, copy=True)


# Of one value


def zeros(shape: Any, dtype: Any = float) -> Tensor:
    """Zeros."""
    return tf.zeros(shape, wanted_dtype(dtype) or common_dtype(1.0))


def ones(shape: Any, dtype: Any = float) -> Tensor:
    """Ones."""
    return tf.ones(shape, wanted_dtype(dtype) or FLOAT)


def empty(shape: Any, dtype: Any = float) -> Tensor:
    """Zeros: a tensor cannot be filled later."""
    return zeros(shape, dtype)


def zeros_like(a: Any, dtype: Any = None) -> Tensor:
    """Zeros, in the shape of `a`."""
    return tf.zeros_like(tensor_of(a), wanted_dtype(dtype))


def ones_like(a: Any, dtype: Any = None) -> Tensor:
    """Ones, in the shape of `a`."""
    return tf.ones_like(tensor_of(a), wanted_dtype(dtype))


def empty_like(a: Any, dtype: Any = None) -> Tensor:
    """Zeros, in the shape of `a`."""
    return zeros_like(a, dtype)


def full(shape: Any, fill_value: Any, dtype: Any = None) -> Tensor:
    """`fill_value`, broadcast to `shape`."""
    return tf.broadcast_to(tensor_of(fill_value, wanted_dtype(dtype)), shape_from(shape, "full"))


def full_like(
    a: Any,
    fill_value: Any,
    dtype: Any = None,
    order: str = "K",
    subok: bool = True,
    shape: Any = None,
) -> Tensor:
    """`fill_value`, broadcast to the shape of `a` and cast to its dtype."""
    for name, usual in (("order", order == "K"), ("subok", subok), ("shape", not shape)):
        if not usual:
            raise refuse(name, "full_like")
    x = tensor_of(a)
    value = tensor_of(fill_value, wanted_dtype(dtype) or x._spec.dtype)
    return tf.broadcast_to(value, x._spec.shape)


# Of ranges


def arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = None) -> Tensor:
    """The numbers from `start`, or from 0, up to but without the end, by steps of `step`.

    >>> tf.experimental.numpy.arange(3)
    <tf.Tensor: shape=(3,), dtype=int64, numpy=array([0, 1, 2])>
    """
    if not step:
        raise ValueError(f"arange: `step` must not be zero. Received: {as_text(step)}.")
    if stop is None:
        start, stop = 0, start
    own = common_dtype(start, stop, step)
    first, last, by = (tensor_of(value, own) for value in (start, stop, step))
    if bool(last < first if by > 0 else last > first):
        last = first
    return to_dtype(tf.range(first, last, by), wanted_dtype(dtype) or own)


def linspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = float,
    axis: int = 0,
) -> Tensor | tuple[Tensor, Tensor]:
    """`num` numbers from `start` to `stop`, at equal distances; with `retstep`, the distance too.

    They are floats of the widest dtype among `start` and `stop`, unless `dtype` is given.

    >>> tf.experimental.numpy.linspace(0, 1, 4, endpoint=False).numpy()
    array([0.  , 0.25, 0.5 , 0.75])
    """
    num = integer(num, "linspace: num")
    if num < 0:
        raise ValueError(f"linspace: `num` must not be negative. Received: {num}.")
    own = common_dtype(start, stop, 1.0)
    first, last = tensor_of(start, own), tensor_of(stop, own)
    whole = last - first
    intervals = num - 1 if endpoint else num
    step = whole / intervals if intervals > 0 else tf.zeros_like(whole) + np.nan
    if not endpoint and num > 1:
        last = last - step
    y = tf.linspace(first, last, num, axis=axis)
    if dtype is not None and dtype is not float:
        wanted = wanted_dtype(dtype)
        y = to_dtype(math.floor(y) if wanted.kind in "iu" else y, wanted)
    return (y, step) if retstep else y


def logspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    base: Any = 10.0,
    dtype: Any = None,
    axis: int = 0,
) -> Tensor:
    """`base` to the power of `num` exponents from `start` to `stop`, at equal distances."""
    exponents = linspace(start, stop, num, endpoint, axis=axis)
    y = math.pow(tensor_of(base, exponents._spec.dtype), exponents)
    return y if dtype is None else to_dtype(y, wanted_dtype(dtype))


def geomspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    dtype: Any = None,
    axis: int = 0,
) -> Tensor:
    """`num` numbers from `start` to `stop`, each the same multiple of the one before.

    >>> tf.experimental.numpy.geomspace(1, 1000, 4).numpy().round(6)
    array([   1.,   10.,  100., 1000.])
    """
    wanted = wanted_dtype(dtype) or common_dtype(start, stop, FLOAT)
    working = np.promote_types(wanted, np.float32)
    first, last = (tensor_of(value, working) for value in (start, stop))
    first, last = first + tf.zeros_like(last), last + tf.zeros_like(first)
    growth = math.log(last / first) / float(np.log(10))
    y = first * 10.0 ** linspace(tf.zeros_like(growth), growth, num, endpoint)
    return to_dtype(y if axis == 0 else moveaxis(y, 0, axis), wanted)


def meshgrid(*xi: Any, **kwargs: Any) -> list[Tensor]:
    """Each of some vectors, repeated along the axes of the others.

    `indexing` is "xy", where the first two axes are swapped, or "ij".
    """
    if kwargs.pop("sparse", False):
        raise refuse("sparse", "meshgrid")
    if not kwargs.pop("copy", True):
        raise refuse("copy", "meshgrid")
    return tf.meshgrid(*map(tensor_of, xi), **kwargs)


# Of diagonals, triangles and powers


@reports_out_of_memory("eye")
def eye(N: int, M: int | None = None, k: int = 0, dtype: Any = float) -> Tensor:
    """Ones on diagonal `k` of a matrix of `N` rows and `M` columns, zeros elsewhere.

    >>> tf.experimental.numpy.eye(2, 3, 1).numpy()
    array([[0., 1., 0.],
           [0., 0., 1.]])
    """
    rows, columns = shape_from((N, M or N), "eye")
    ones_there = np.eye(rows, columns, integer(k, "eye: k"), dtype=bool)
    return Tensor(ones_there.astype(wanted_dtype(dtype) or FLOAT))


def identity(n: int, dtype: Any = float) -> Tensor:
    """The unit matrix of `n` rows."""
    return eye(n, n, dtype=dtype)


@reports_out_of_memory("tri")
def tri(N: int, M: int | None = None, k: int = 0, dtype: Any = None) -> Tensor:
    """Ones on and below diagonal `k`, zeros above it."""
    rows, columns = shape_from((N, N if M is None else M), "tri")
    below = np.tri(rows, columns, integer(k, "tri: k"), dtype=bool)
    return Tensor(below.astype(wanted_dtype(dtype) or FLOAT))


def tril(m: Any, k: int = 0) -> Tensor:
    """Matrices with zeros above diagonal `k`."""
    return shared.tril(tensor_of(m), integer(k, "tril: k"))


def triu(m: Any, k: int = 0) -> Tensor:
    """Matrices with zeros below diagonal `k`."""
    return shared.triu(tensor_of(m), integer(k, "triu: k"))


def diag(v: Any, k: int = 0) -> Tensor:
    """A matrix with the vector `v` on diagonal `k`; or diagonal `k` of the matrix `v`.

    >>> tf.experimental.numpy.diag([1, 2], 1).numpy()
    array([[0, 1, 0],
           [0, 0, 2],
           [0, 0, 0]])
    """
    x = tensor_of(v)
    if x.ndim == 2:
        return diagonal(x, k)
    if x.ndim != 1:
        error = invalid if x.ndim < 1 else ValueError
        raise error(f"diag: expected a vector or a matrix. Received: shape {x._spec.shape}.")
    if not x._spec.size:
        return tf.zeros((abs(k), abs(k)), x.dtype)
    return linalg.diag(x, k=k)


def diagflat(v: Any, k: int = 0) -> Tensor:
    """A matrix with all elements of `v` on diagonal `k`."""
    return diag(ravel(v), k)


def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """Diagonal `offset` of the matrices in two axes, which end up as one axis, the last."""
    x = tensor_of(a)
    if x.ndim < 2:
        raise invalid(f"diagonal: expected at least two axes. Received: shape {x._spec.shape}.")
    offset = integer(offset, "diagonal: offset")
    x = moveaxis(x, (axis1, axis2), (-2, -1))
    rows, columns = x._spec.shape[-2:]
    if not -rows < offset < columns:
        return tf.zeros((*x._spec.shape[:-2], 0), x.dtype)
    return linalg.diag_part(x, k=offset)


@reports_out_of_memory("vander")
def vander(x: Any, N: int | None = None, increasing: bool = False) -> Tensor:
    """The matrix of the powers of `x`, one power for each column, the highest first.

    >>> tf.experimental.numpy.vander([2, 3], 3).numpy()
    array([[4, 2, 1],
           [9, 3, 1]])
    """
    if N is not None:
        N = integer(N, "vander: N")
        if N < 0:
            raise ValueError(f"vander: `N` must not be negative. Received: {N}.")
    return shared.vander(tensor_of(x), N, increasing)


# Of places


def diag_indices(n: int, ndim: int = 2) -> tuple[Tensor, ...]:
    """The indices of the main diagonal of an array of `ndim` axes of size `n`."""
    n, ndim = integer(n, "diag_indices: n"), integer(ndim, "diag_indices: ndim")
    for name, value in (("n", n), ("ndim", ndim)):
        if value < 0:
            raise ValueError(f"diag_indices: `{name}` must not be negative. Received: {value}.")
    if ndim > _MOST_AXES:
        raise ValueError(f"diag_indices: `ndim` must be at most {_MOST_AXES}. Received: {ndim}.")
    return (tf.range(n),) * ndim


def ix_(*args: Any) -> list[Tensor]:
    """Each of some vectors of indices along an axis of its own, so that they span a grid.

    Booleans stand for the places where they are true.
    """
    grid = []
    for place, arg in enumerate(args):
        x = tensor_of(arg)
        if x.ndim != 1:
            raise ValueError(
                f"ix_: expected vectors. Received: shape {x._spec.shape} for argument {place}."
            )
        if x._spec.dtype.kind not in "biu":
            raise ValueError(
                f"ix_: expected integers or bool. Received: {x.dtype.name} for argument {place}."
            )
        if x._spec.dtype.kind == "b":
            x = ravel(tf.where(x))
        shape = [-1 if axis == place else 1 for axis in range(len(args))]
        grid.append(tf.reshape(x, shape))
    return grid
