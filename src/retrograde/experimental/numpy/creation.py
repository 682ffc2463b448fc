"""Creation of arrays from values, ranges, diagonals and triangles."""

from __future__ import annotations

from typing import Any

import numpy as np

import retrograde as tf
from retrograde import linalg, math
from retrograde.core.tensor import Tensor
from retrograde.experimental.numpy._inputs import FLOAT, array_of, tensor_of, unsupported_argument
from retrograde.experimental.numpy.dtypes import common_dtype, parse_dtype
from retrograde.experimental.numpy.shaping import moveaxis, ravel
from retrograde.numpy_functions import shaping as shared
from retrograde.ops.arguments import integer, shape_from
from retrograde.ops.casting import to_dtype
from retrograde.values.arguments import as_text
from retrograde.values.errors import invalid, reports_out_of_memory

_MAX_AXES = 32


# From values

ndarray = Tensor
"""The class of tensors, under NumPy's name."""


def array(val: Any, dtype: Any = None, copy: bool = True, ndmin: int = 0) -> Tensor:
    """Converts `val` to a tensor with at least `ndmin` axes.

    Tensors are immutable, so nothing is copied.

    >>> tf.experimental.numpy.array([1, 2], ndmin=2)
    <tf.Tensor: shape=(1, 2), dtype=int64, numpy=array([[1, 2]])>
    """
    if ndmin > _MAX_AXES:
        raise ValueError(f"array: `ndmin` is {as_text(ndmin)}. Expected at most {_MAX_AXES}.")
    x = array_of(val, parse_dtype(dtype))
    if x.ndim < ndmin:
        return tf.reshape(x, (1,) * (ndmin - x.ndim) + x._spec.shape)
    return x


def asarray(a: Any, dtype: Any = None) -> Tensor:
    """Converts `a` to a tensor. A list of integers becomes int64, one with floats float64.

    >>> tf.experimental.numpy.asarray([1, 2.5])
    <tf.Tensor: shape=(2,), dtype=float64, numpy=array([1. , 2.5])>
    """
    return array_of(a, parse_dtype(dtype))


def asanyarray(a: Any, dtype: Any = None) -> Tensor:
    """Does the same as `asarray`: there are no subclasses of arrays."""
    return asarray(a, dtype)


def ascontiguousarray(a: Any, dtype: Any = None) -> Tensor:
    """Converts `a` to a tensor with at least one axis."""
    return array(a, dtype, ndmin=1)


def copy(a: Any) -> Tensor:
    """Returns `a` as a new tensor."""
    return array(a, copy=True)


# Filled with one value


def zeros(shape: Any, dtype: Any = float) -> Tensor:
    """Creates a tensor of zeros."""
    return tf.zeros(shape, parse_dtype(dtype) or common_dtype(1.0))


def ones(shape: Any, dtype: Any = float) -> Tensor:
    """Creates a tensor of ones."""
    return tf.ones(shape, parse_dtype(dtype) or FLOAT)


def empty(shape: Any, dtype: Any = float) -> Tensor:
    """Creates a tensor of zeros, because tensors cannot be filled later."""
    return zeros(shape, dtype)


def zeros_like(a: Any, dtype: Any = None) -> Tensor:
    """Creates a tensor of zeros with the shape of `a`."""
    return tf.zeros_like(tensor_of(a), parse_dtype(dtype))


def ones_like(a: Any, dtype: Any = None) -> Tensor:
    """Creates a tensor of ones with the shape of `a`."""
    return tf.ones_like(tensor_of(a), parse_dtype(dtype))


def empty_like(a: Any, dtype: Any = None) -> Tensor:
    """Creates a tensor of zeros with the shape of `a`."""
    return zeros_like(a, dtype)


def full(shape: Any, fill_value: Any, dtype: Any = None) -> Tensor:
    """Broadcasts `fill_value` to `shape`."""
    return tf.broadcast_to(tensor_of(fill_value, parse_dtype(dtype)), shape_from(shape, "full"))


def full_like(
    a: Any,
    fill_value: Any,
    dtype: Any = None,
    order: str = "K",
    subok: bool = True,
    shape: Any = None,
) -> Tensor:
    """Broadcasts `fill_value` to the shape of `a` and casts it to the dtype of `a`."""
    for name, is_default in (("order", order == "K"), ("subok", subok), ("shape", not shape)):
        if not is_default:
            raise unsupported_argument(name, "full_like")
    x = tensor_of(a)
    value = tensor_of(fill_value, parse_dtype(dtype) or x._spec.dtype)
    return tf.broadcast_to(value, x._spec.shape)


# Ranges


def arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = None) -> Tensor:
    """Returns the numbers from `start`, by default 0, up to `stop`, in steps of `step`.

    >>> tf.experimental.numpy.arange(3)
    <tf.Tensor: shape=(3,), dtype=int64, numpy=array([0, 1, 2])>
    """
    if not step:
        raise ValueError(f"arange: `step` must not be zero. Received: {as_text(step)}.")
    if stop is None:
        start, stop = 0, start
    common = common_dtype(start, stop, step)
    first, last, delta = (tensor_of(value, common) for value in (start, stop, step))
    if bool(last < first if delta > 0 else last > first):
        last = first
    return to_dtype(tf.range(first, last, delta), parse_dtype(dtype) or common)


def linspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = float,
    axis: int = 0,
) -> Tensor | tuple[Tensor, Tensor]:
    """Returns `num` evenly spaced numbers from `start` to `stop`; with `retstep`, the step too.

    They have the widest float dtype of `start` and `stop`, unless `dtype` is given.

    >>> tf.experimental.numpy.linspace(0, 1, 4, endpoint=False).numpy()
    array([0.  , 0.25, 0.5 , 0.75])
    """
    num = integer(num, "linspace: num")
    if num < 0:
        raise ValueError(f"linspace: `num` must not be negative. Received: {num}.")
    common = common_dtype(start, stop, 1.0)
    first, last = tensor_of(start, common), tensor_of(stop, common)
    span = last - first
    intervals = num - 1 if endpoint else num
    step = span / intervals if intervals > 0 else tf.zeros_like(span) + np.nan
    if not endpoint and num > 1:
        last = last - step
    y = tf.linspace(first, last, num, axis=axis)
    if dtype is not None and dtype is not float:
        numpy_type = parse_dtype(dtype)
        y = to_dtype(math.floor(y) if numpy_type.kind in "iu" else y, numpy_type)
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
    """Returns `base` to the power of `num` evenly spaced exponents from `start` to `stop`."""
    exponents = linspace(start, stop, num, endpoint, axis=axis)
    y = math.pow(tensor_of(base, exponents._spec.dtype), exponents)
    return y if dtype is None else to_dtype(y, parse_dtype(dtype))


def geomspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    dtype: Any = None,
    axis: int = 0,
) -> Tensor:
    """Returns `num` numbers from `start` to `stop` in geometric progression.

    >>> tf.experimental.numpy.geomspace(1, 1000, 4).numpy().round(6)
    array([   1.,   10.,  100., 1000.])
    """
    numpy_type = parse_dtype(dtype) or common_dtype(start, stop, FLOAT)
    compute_dtype = np.promote_types(numpy_type, np.float32)
    first, last = (tensor_of(value, compute_dtype) for value in (start, stop))
    first, last = first + tf.zeros_like(last), last + tf.zeros_like(first)
    growth = math.log(last / first) / float(np.log(10))
    y = first * 10.0 ** linspace(tf.zeros_like(growth), growth, num, endpoint)
    return to_dtype(y if axis == 0 else moveaxis(y, 0, axis), numpy_type)


def meshgrid(*xi: Any, **kwargs: Any) -> list[Tensor]:
    """Returns coordinate grids from coordinate vectors.

    `indexing` is "xy", which swaps the first two axes, or "ij".
    """
    if kwargs.pop("sparse", False):
        raise unsupported_argument("sparse", "meshgrid")
    if not kwargs.pop("copy", True):
        raise unsupported_argument("copy", "meshgrid")
    return tf.meshgrid(*map(tensor_of, xi), **kwargs)


# Diagonals, triangles and powers


@reports_out_of_memory("eye")
def eye(N: int, M: int | None = None, k: int = 0, dtype: Any = float) -> Tensor:
    """Creates an `N` by `M` matrix with ones on diagonal `k` and zeros elsewhere.

    >>> tf.experimental.numpy.eye(2, 3, 1).numpy()
    array([[0., 1., 0.],
           [0., 0., 1.]])
    """
    rows, columns = shape_from((N, M or N), "eye")
    mask = np.eye(rows, columns, integer(k, "eye: k"), dtype=bool)
    return Tensor(mask.astype(parse_dtype(dtype) or FLOAT))


def identity(n: int, dtype: Any = float) -> Tensor:
    """Creates the `n` by `n` identity matrix."""
    return eye(n, n, dtype=dtype)


@reports_out_of_memory("tri")
def tri(N: int, M: int | None = None, k: int = 0, dtype: Any = None) -> Tensor:
    """Creates a matrix with ones on and below diagonal `k` and zeros above it."""
    rows, columns = shape_from((N, N if M is None else M), "tri")
    below = np.tri(rows, columns, integer(k, "tri: k"), dtype=bool)
    return Tensor(below.astype(parse_dtype(dtype) or FLOAT))


def tril(m: Any, k: int = 0) -> Tensor:
    """Returns the lower triangle of matrices, with zeros above diagonal `k`."""
    return shared.tril(tensor_of(m), integer(k, "tril: k"))


def triu(m: Any, k: int = 0) -> Tensor:
    """Returns the upper triangle of matrices, with zeros below diagonal `k`."""
    return shared.triu(tensor_of(m), integer(k, "triu: k"))


def diag(v: Any, k: int = 0) -> Tensor:
    """Creates a matrix with the vector `v` on diagonal `k`, or extracts diagonal `k` of a matrix.

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
    """Creates a matrix with all elements of `v` on diagonal `k`."""
    return diag(ravel(v), k)


def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """Extracts diagonal `offset` of the matrices in two axes, as a new last axis."""
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
    """Creates a Vandermonde matrix: one power of `x` per column, the highest first.

    >>> tf.experimental.numpy.vander([2, 3], 3).numpy()
    array([[4, 2, 1],
           [9, 3, 1]])
    """
    if N is not None:
        N = integer(N, "vander: N")
        if N < 0:
            raise ValueError(f"vander: `N` must not be negative. Received: {N}.")
    return shared.vander(tensor_of(x), N, increasing)


# Indices


def diag_indices(n: int, ndim: int = 2) -> tuple[Tensor, ...]:
    """Returns the indices of the main diagonal of an array with `ndim` axes of size `n`."""
    n, ndim = integer(n, "diag_indices: n"), integer(ndim, "diag_indices: ndim")
    for name, value in (("n", n), ("ndim", ndim)):
        if value < 0:
            raise ValueError(f"diag_indices: `{name}` must not be negative. Received: {value}.")
    if ndim > _MAX_AXES:
        raise ValueError(f"diag_indices: `ndim` must be at most {_MAX_AXES}. Received: {ndim}.")
    return (tf.range(n),) * ndim


def ix_(*args: Any) -> list[Tensor]:
    """Reshapes vectors of indices so that they broadcast to a grid.

    Boolean vectors are replaced by the indices where they are true.
    """
    grid = []
    for position, arg in enumerate(args):
        x = tensor_of(arg)
        if x.ndim != 1:
            raise ValueError(
                f"ix_: expected vectors. Received: shape {x._spec.shape} for argument {position}."
            )
        if x._spec.dtype.kind not in "biu":
            raise ValueError(
                f"ix_: expected integers or bool. Received: {x.dtype.name} for argument {position}."
            )
        if x._spec.dtype.kind == "b":
            x = ravel(tf.where(x))
        shape = [-1 if axis == position else 1 for axis in range(len(args))]
        grid.append(tf.reshape(x, shape))
    return grid
