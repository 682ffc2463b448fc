"""Creates tensors from values, shapes and ranges."""

from __future__ import annotations

import builtins
import math
from typing import Any

import numpy as np

from retrograde.core import namespaces
from retrograde.core.tensor import Tensor
from retrograde.ops import arithmetic, casting, indexing, shaping
from retrograde.ops.arguments import MOST_ELEMENTS, integer, integers, shape_from
from retrograde.ops.casting import to_dtype
from retrograde.ops.conversion import as_tensor, holds_tensor, numpy_dtype
from retrograde.ops.host_functions import host_function
from retrograde.values import dtypes
from retrograde.values.arguments import shown
from retrograde.values.composites import CompositeTensor, dispatched
from retrograde.values.conversion import tensor_or_variable
from retrograde.values.errors import allocate, exhausted, invalid
from retrograde.values.shapes import normalize_axis


def constant(value: Any, dtype: Any = None, shape: Any = None, name: Any = "Const") -> Tensor:
    """A tensor of numbers, strings, or nested lists of them, with `shape` if it is given.

    Python numbers become int32, float32, bool or complex128 unless `dtype` says otherwise. One
    value alone fills all of `shape`.

    >>> tf.constant([1, 2, 3, 4], shape=[2, 2]).numpy()
    array([[1, 2], [3, 4]], dtype=int32)
    """
    wanted, held = numpy_dtype(dtype), tensor_or_variable(value)
    if wanted is not None and held is not None and held._spec.dtype != wanted:
        raise TypeError(
            f"Cannot make a constant of dtype {dtypes.of(wanted).name} out of a tensor of dtype "
            f"{held.dtype.name}. Use tf.cast."
        )
    tensor = convert_to_tensor(value, dtype)
    return tensor if shape is None else _with_shape(tensor, integers(shape, "constant"))


def _with_shape(tensor: Tensor, shape: tuple[int, ...]) -> Tensor:
    size, wanted = tensor._spec.size, math.prod(shape)
    if min(shape, default=0) < 0:
        raise ValueError(f"constant: dimensions must be >= 0. Received: shape {shape}.")
    if size == wanted:
        return shaping.reshape(tensor, shape=shape)
    if size != 1:
        raise TypeError(f"constant: {size} values do not fill shape {shape}, which has {wanted}.")
    return shaping.broadcast_to(shaping.reshape(tensor, shape=()), shape=shape)


def convert_to_tensor(
    value: Any, dtype: Any = None, dtype_hint: Any = None, name: Any = None
) -> Tensor:
    """`value` as a tensor: the same object if it is one already, the present value of a variable.

    A tensor keeps its dtype; another one asked for is a `ValueError`. `dtype_hint` is
    taken only if the value fits it.

    >>> tf.convert_to_tensor([tf.constant(1.0), 2]).numpy()
    array([1., 2.], dtype=float32)
    """
    tensor = as_tensor(value, numpy_dtype(dtype), numpy_dtype(dtype_hint))
    held = tensor_or_variable(value)
    if namespaces.has_place() and not (holds_tensor(value) or isinstance(value, CompositeTensor)):
        return Tensor(namespaces.placed(tensor._array))
    return tensor if held is None or held is tensor else casting.identity(tensor)


def zeros(shape: Any, dtype: Any = dtypes.float32, name: Any = None, layout: Any = None) -> Tensor:
    """A tensor of this shape full of zeros; of `False` for bool, of empty strings for string.

    >>> tf.zeros([2, 3], tf.int32).numpy()
    array([[0, 0, 0],
           [0, 0, 0]], dtype=int32)
    """
    return _full(shape_from(shape, "zeros", TypeError), dtypes.as_dtype(dtype).numpy_dtype, 0)


def ones(shape: Any, dtype: Any = dtypes.float32, name: Any = None, layout: Any = None) -> Tensor:
    """A tensor of this shape full of ones; of `True` for bool.

    >>> tf.ones([3]).numpy()
    array([1., 1., 1.], dtype=float32)
    """
    return _full(shape_from(shape, "ones", TypeError), dtypes.as_dtype(dtype).numpy_dtype, 1)


def _full(shape: tuple[int, ...], dtype: np.dtype, value: int) -> Tensor:
    if dtype.kind == "O":
        if value:
            raise TypeError(f"Cannot convert {value} to a tensor of dtype string.")
        return Tensor(allocate("zeros", np.full, shape, b"", object))
    try:
        array = (np.ones if value else np.zeros)(shape, dtype)
    except MemoryError as error:
        raise exhausted(error, "ones" if value else "zeros") from None
    return Tensor(namespaces.placed(array))


@dispatched
def zeros_like(input: Any, dtype: Any = None, name: Any = None, layout: Any = None) -> Tensor:
    """Zeros with the shape of `input`, and its dtype unless another is given.

    >>> tf.zeros_like([[1.0, 2.0]]).numpy()
    array([[0., 0.]], dtype=float32)
    """
    x = as_tensor(input)
    wanted = numpy_dtype(dtype) or x._spec.dtype
    if wanted != x._spec.dtype or wanted.kind == "O":
        return _full(x._spec.shape, wanted, 0)
    return casting.zeros_like(x)


@dispatched
def ones_like(input: Any, dtype: Any = None, name: Any = None, layout: Any = None) -> Tensor:
    """Ones with the shape of `input`, and its dtype unless another is given."""
    x = as_tensor(input)
    wanted = numpy_dtype(dtype) or x._spec.dtype
    if wanted != x._spec.dtype:
        return _full(x._spec.shape, wanted, 1)
    return casting.ones_like(x)


def fill(dims: Any, value: Any, name: Any = None, layout: Any = None) -> Tensor:
    """`value`, which has no axes, repeated all over the shape `dims`.

    >>> tf.fill([2, 2], 9).numpy()
    array([[9, 9], [9, 9]], dtype=int32)
    """
    x = as_tensor(value)
    if x._spec.ndim:
        raise invalid(f"fill: value must be a scalar. Received: shape {x._spec.shape}.")
    return shaping.broadcast_to(x, shape=shape_from(dims, "fill"))


def eye(
    num_rows: Any,
    num_columns: Any = None,
    batch_shape: Any = None,
    dtype: Any = dtypes.float32,
    name: Any = None,
) -> Tensor:
    """The identity matrix, once or for each place of `batch_shape`.

    >>> tf.eye(2).numpy()
    array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    rows = shape_from(num_rows, "eye", TypeError)
    columns = rows if num_columns is None else shape_from(num_columns, "eye", TypeError)
    if len(rows) != 1 or len(columns) != 1:
        raise TypeError(
            "eye: `num_rows` and `num_columns` must be one integer each. Received: "
            f"num_rows={shown(num_rows)}, num_columns={shown(num_columns)}."
        )
    batch = () if batch_shape is None else shape_from(batch_shape, "eye")
    shape = shape_from((*batch, *rows, *columns), "eye")
    matrix = allocate("eye", np.eye, *shape[-2:], dtype=numpy_dtype(dtype))
    return Tensor(np.broadcast_to(matrix, shape) if batch else matrix)


def linspace(start: Any, stop: Any, num: Any, name: Any = None, axis: int = 0) -> Tensor:
    """`num` values from `start` to `stop`, both included, spaced evenly along a new `axis`.

    >>> tf.linspace(0.0, 1.0, 5).numpy()
    array([0.  , 0.25, 0.5 , 0.75, 1.  ], dtype=float32)
    """
    count = _count(num)
    x1 = as_tensor(start)
    x2 = as_tensor(stop, x1._spec.dtype)
    if x1._spec.dtype.kind in "iu":
        x1, x2 = (to_dtype(x, np.dtype(np.float64)) for x in (x1, x2))
    ndim = max(x1._spec.ndim, x2._spec.ndim)
    step = (x2 - x1) / max(count - 1, 1)
    middle = allocate("linspace", np.arange, 1, max(count - 1, 1)).astype(x1._spec.dtype)
    rows = Tensor(middle.reshape((-1,) + (1,) * ndim))
    ends = [shaping.broadcast_to(x, shape=(1, *step._spec.shape)) for x in (x1, x2)]
    y = shaping.concat(ends[0], rows * step + x1, ends[1], axis=0)
    y = shaping.take_slice(y, where=((0, count, 1), *((0, n, 1) for n in step._spec.shape)))
    to = normalize_axis(axis, ndim + 1, "linspace")
    return shaping.transpose(
        y, perm=(*builtins.range(1, to + 1), 0, *builtins.range(to + 1, ndim + 1))
    )


def _count(num: Any) -> int:
    array = np.asarray(as_tensor(num))
    if array.dtype.kind not in "iu":
        raise TypeError(f"linspace: `num` must be an integer. Received: {shown(num)}.")
    if array.ndim:
        raise invalid(f"linspace: `num` must be a scalar. Received: shape {array.shape}.")
    if array < 0:
        raise invalid(f"linspace: `num` must not be negative. Received: {shown(num)}.")
    return int(array)


_RANGE_DTYPES = tuple(map(np.dtype, (np.int32, np.int64, np.float16, np.float32, np.float64)))


def range(
    start: Any, limit: Any = None, delta: Any = 1, dtype: Any = None, name: Any = "range"
) -> Tensor:
    """The numbers from `start` up to but without `limit`, by steps of `delta`.

    >>> tf.range(5).numpy(), tf.range(3, 0, -1).numpy()
    (array([0, 1, 2, 3, 4], dtype=int32), array([3, 2, 1], dtype=int32))
    """
    if limit is None:
        start, limit = 0, start
    if tensor_or_variable(start) is None and tensor_or_variable(delta) is None:
        return _steps(start, limit, delta, dtype)  # the length says all
    return _open_steps(start, limit, delta, dtype)


def _steps(start: Any, limit: Any, delta: Any, dtype: Any) -> Tensor:
    wanted = numpy_dtype(dtype)
    ends = [
        np.asarray(as_tensor(x, None if tensor_or_variable(x) is not None else wanted))
        for x in (start, limit, delta)
    ]
    wanted = wanted or _widest(ends)
    for x, op_name in zip(ends, ("start", "limit", "delta"), strict=True):
        if x.ndim:
            raise invalid(f"range: {op_name} must be a scalar. Received: shape {x.shape}.")
        if x.dtype not in dtypes.REAL:
            name = dtypes.of(x.dtype).name
            raise TypeError(f"range: {op_name} must be a real number. Received: dtype {name}.")
    first, last, step = (x.astype(wanted)[()] for x in ends)
    if step == 0:
        raise invalid("range: requires delta != 0.")
    if not (last - first) * np.sign(step) >= 0:
        sign = ("<=", ">") if step > 0 else (">=", "<")
        raise invalid(
            f"range: requires start {sign[0]} limit when delta {sign[1]} 0: {first}, {last}."
        )
    if wanted.kind in "iu":
        ends = int(first), int(last), int(step)
        return Tensor(allocate("range", np.arange, *ends).astype(wanted))
    steps = abs(float((last - first) / step))
    if not steps < MOST_ELEMENTS:
        raise invalid(f"range: requires a finite number of steps: {first}, {last}, {step}.")
    count = math.ceil(steps)
    return Tensor(allocate("range", np.arange, count).astype(wanted) * step + first)


_open_steps = host_function(_steps, dynamic_shapes=True)


def _widest(arrays: list[np.ndarray]) -> np.dtype:
    """The last of the dtypes in TensorFlow's order that occurs."""
    for array in arrays:
        if array.dtype not in _RANGE_DTYPES:
            return array.dtype
    return max((array.dtype for array in arrays), key=_RANGE_DTYPES.index)


def meshgrid(*args: Any, **kwargs: Any) -> list[Tensor]:
    """Each of some vectors, repeated along the axes of the others.

    `indexing` is "xy", where the first two axes are swapped, or "ij".

    >>> [x.numpy().tolist() for x in tf.meshgrid([1, 2], [3, 4, 5])]
    [[[1, 2], [1, 2], [1, 2]], [[3, 3], [4, 4], [5, 5]]]
    """
    indexing = kwargs.pop("indexing", "xy")
    kwargs.pop("name", None)
    if kwargs:
        raise TypeError(f"{next(iter(kwargs))!r} is an invalid keyword argument for this function")
    if indexing not in ("xy", "ij"):
        raise ValueError(f"meshgrid: `indexing` must be 'xy' or 'ij'. Received: {shown(indexing)}.")
    xs = [as_tensor(x) for x in args]
    axes = [*builtins.range(len(xs))]
    if indexing == "xy":
        axes[:2] = axes[1::-1]
    shape = [1] * len(xs)
    for axis, x in zip(axes, xs, strict=True):
        shape[axis] = x._spec.size
    grids = []
    for axis, x in zip(axes, xs, strict=True):
        along = tuple(n if i == axis else 1 for i, n in enumerate(shape))
        grids.append(shaping.broadcast_to(shaping.reshape(x, shape=along), shape=tuple(shape)))
    return grids


@dispatched
def one_hot(
    indices: Any,
    depth: Any,
    on_value: Any = None,
    off_value: Any = None,
    axis: int | None = None,
    dtype: Any = None,
    name: Any = None,
) -> Tensor:
    """`on_value` at the index along a new `axis` of size `depth`, `off_value` elsewhere.

    An index outside of [0, depth) gives a row without `on_value`.

    >>> tf.one_hot([0, 2], 3).numpy()
    array([[1., 0., 0.], [0., 0., 1.]], dtype=float32)
    """
    x = as_tensor(indices)
    if (
        not x._spec.size and tensor_or_variable(indices) is None
    ):  # an empty list has no dtype of its own
        x = Tensor(np.zeros(x._spec.shape, np.int32))
    classes, to = integer(depth, "one_hot", TypeError), -1 if axis is None else axis
    if classes < 0:
        raise invalid(f"one_hot: depth must be non-negative. Received: {classes}.")
    if not -1 <= to <= x._spec.ndim:
        raise invalid(
            f"one_hot: expected axis to be -1 or between 0 and {x._spec.ndim}. Received: {to}."
        )
    on, off = _on_and_off(on_value, off_value, numpy_dtype(dtype))
    y = indexing.one_hot(x, depth=classes, dtype=np.dtype(bool))
    y = arithmetic.select(y, casting.stop_gradient(on), casting.stop_gradient(off))
    if to in (-1, x._spec.ndim):
        return y
    last = x._spec.ndim
    return shaping.transpose(y, perm=(*builtins.range(to), last, *builtins.range(to, last)))


def _on_and_off(on_value: Any, off_value: Any, dtype: np.dtype | None) -> tuple[Tensor, Tensor]:
    """The two values, in the one dtype that they and `dtype` must agree on."""
    given = [as_tensor(v, hint=dtype) for v in (on_value, off_value) if v is not None]
    found = {x._spec.dtype for x in given} | (set() if dtype is None else {dtype})
    if len(found) > 1:
        names = " and ".join(sorted(dtypes.of(d).name for d in found))
        raise TypeError(f"one_hot: on_value, off_value and dtype disagree: {names}.")
    target = found.pop() if found else np.dtype(np.float32)
    if target.kind in "bO" and None in (on_value, off_value):
        raise TypeError(f"one_hot: give on_value and off_value for dtype {dtypes.of(target).name}.")
    if any(x._spec.ndim for x in given):
        shapes = " and ".join(str(tuple(x._spec.shape)) for x in given)
        raise invalid(f"one_hot: on_value and off_value must be scalars. Received: {shapes}.")
    values = (1 if on_value is None else on_value, 0 if off_value is None else off_value)
    return tuple([as_tensor(v, target if tensor_or_variable(v) is None else None) for v in values])


def sequence_mask(
    lengths: Any, maxlen: Any = None, dtype: Any = dtypes.bool_, name: Any = None
) -> Tensor:
    """For each length n, `maxlen` values of which the first n are true.

    >>> tf.sequence_mask([1, 3], 3).numpy()
    array([[ True, False, False], [ True,  True,  True]])
    """
    x = as_tensor(lengths)
    if maxlen is None:
        size = _up_to_longest(x, lengths)._spec.size
        columns = allocate("sequence_mask", np.arange, size).astype(x._spec.dtype)
    else:
        columns = _up_to(np.asarray(as_tensor(maxlen)))
        x = to_dtype(x, columns.dtype)
    column = shaping.reshape(x, shape=(*x._spec.shape, 1))
    return to_dtype(arithmetic.less(Tensor(columns), column), numpy_dtype(dtype))


def _up_to(maxlen: np.ndarray) -> np.ndarray:
    """The numbers of the columns, in the dtype of `maxlen`, which lengths are compared in."""
    if maxlen.ndim:
        raise ValueError(f"sequence_mask: `maxlen` must be a scalar. Received: {shown(maxlen)}.")
    if maxlen.dtype not in dtypes.REAL or not 0 <= maxlen < np.inf:
        raise invalid(
            f"sequence_mask: `maxlen` must be a number that is not negative. Received: {maxlen}."
        )
    return allocate("sequence_mask", np.arange, math.ceil(maxlen)).astype(maxlen.dtype)


@host_function(dynamic_shapes=True)
def _up_to_longest(x: Tensor, lengths: Any) -> Tensor:
    """Something as long as the longest of `x`, which were given as `lengths`."""
    values = np.asarray(x)
    if values.dtype not in dtypes.REAL or not np.isfinite(values).all():
        raise invalid(f"sequence_mask: lengths must be finite numbers. Received: {shown(lengths)}.")
    longest = math.ceil(values.max(initial=0))
    return Tensor(allocate("sequence_mask", np.zeros, longest, bool))
