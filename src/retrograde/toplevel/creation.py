"""Creation of tensors from values, shapes and ranges."""

from __future__ import annotations

import builtins
import math
from typing import Any

import numpy as np

from retrograde.core import namespaces
from retrograde.core.hooks import hook
from retrograde.core.tensor import Tensor
from retrograde.ops import arithmetic, casting, indexing, shaping
from retrograde.ops.arguments import MAX_ELEMENTS, integer, integers, shape_from
from retrograde.ops.casting import to_dtype
from retrograde.ops.conversion import as_tensor, holds_tensor, numpy_dtype
from retrograde.ops.host_functions import host_function
from retrograde.shape_inference.abstract_array import AbstractArray, is_abstract
from retrograde.shape_inference.inference import created_from_sizes
from retrograde.values import dtypes
from retrograde.values.arguments import shown
from retrograde.values.composites import CompositeTensor, dispatched
from retrograde.values.conversion import tensor_or_variable
from retrograde.values.errors import allocate, exhausted, invalid
from retrograde.values.shapes import normalize_axis
from retrograde.values.sizes import has_size


def constant(value: Any, dtype: Any = None, shape: Any = None, name: Any = "Const") -> Tensor:
    """Creates a tensor from numbers, strings, or nested lists of them, with `shape` if given.

    Python numbers become int32, float32, bool or complex128 unless `dtype` is given. A single value
    fills all of `shape`.

    >>> tf.constant([1, 2, 3, 4], shape=[2, 2]).numpy()
    array([[1, 2], [3, 4]], dtype=int32)
    """
    numpy_type, x = numpy_dtype(dtype), tensor_or_variable(value)
    if numpy_type is not None and x is not None and x._spec.dtype != numpy_type:
        raise TypeError(
            f"Cannot create a constant of dtype {dtypes.of(numpy_type).name} from a tensor of "
            f"dtype {x.dtype.name}. Use tf.cast."
        )
    tensor = convert_to_tensor(value, dtype)
    return tensor if shape is None else _reshape_or_fill(tensor, integers(shape, "constant"))


def _reshape_or_fill(tensor: Tensor, shape: tuple[int, ...]) -> Tensor:
    size, expected = tensor._spec.size, math.prod(shape)
    if min(shape, default=0) < 0:
        raise ValueError(f"constant: dimensions must be >= 0. Received: shape {shape}.")
    if size == expected:
        return shaping.reshape(tensor, shape=shape)
    if size != 1:
        raise TypeError(
            f"constant: received {size} values for shape {shape}, which has {expected}."
        )
    return shaping.broadcast_to(shaping.reshape(tensor, shape=()), shape=shape)


def convert_to_tensor(
    value: Any, dtype: Any = None, dtype_hint: Any = None, name: Any = None
) -> Tensor:
    """Converts `value` to a tensor; a tensor is returned unchanged, a variable gives its value.

    Requesting another dtype than a tensor's own raises a `ValueError`. `dtype_hint` is used only if
    the value can be converted to it.

    >>> tf.convert_to_tensor([tf.constant(1.0), 2]).numpy()
    array([1., 2.], dtype=float32)
    """
    tensor = as_tensor(value, numpy_dtype(dtype), numpy_dtype(dtype_hint))
    x = tensor_or_variable(value)
    if namespaces.foreign and not (holds_tensor(value) or isinstance(value, CompositeTensor)):
        return hook("place")(tensor)
    return tensor if x is None or x is tensor else casting.identity(tensor)


def zeros(shape: Any, dtype: Any = dtypes.float32, name: Any = None, layout: Any = None) -> Tensor:
    """Creates a tensor of zeros, of `False` for bool, or of empty strings for string.

    >>> tf.zeros([2, 3], tf.int32).numpy()
    array([[0, 0, 0],
           [0, 0, 0]], dtype=int32)
    """
    return _full(shape_from(shape, "zeros", TypeError), dtypes.as_dtype(dtype).numpy_dtype, 0)


def ones(shape: Any, dtype: Any = dtypes.float32, name: Any = None, layout: Any = None) -> Tensor:
    """Creates a tensor of ones, or of `True` for bool.

    >>> tf.ones([3]).numpy()
    array([1., 1., 1.], dtype=float32)
    """
    return _full(shape_from(shape, "ones", TypeError), dtypes.as_dtype(dtype).numpy_dtype, 1)


def _full(shape: tuple[int, ...], dtype: np.dtype, value: int) -> Tensor:
    if namespaces.foreign and has_size(shape):
        return Tensor(AbstractArray(shape, dtype))
    if dtype.kind == "O":
        if value:
            raise TypeError(f"Cannot convert {value} to a tensor of dtype string.")
        return Tensor(allocate("zeros", np.full, shape, b"", object))
    try:
        array = (np.ones if value else np.zeros)(shape, dtype)
    except MemoryError as error:
        raise exhausted(error, "ones" if value else "zeros") from None
    tensor = Tensor(array)
    return hook("place")(tensor) if namespaces.foreign else tensor


@dispatched
def zeros_like(input: Any, dtype: Any = None, name: Any = None, layout: Any = None) -> Tensor:
    """Creates a tensor of zeros with the shape of `input`, and its dtype unless one is given.

    >>> tf.zeros_like([[1.0, 2.0]]).numpy()
    array([[0., 0.]], dtype=float32)
    """
    x = as_tensor(input)
    numpy_type = numpy_dtype(dtype) or x._spec.dtype
    if numpy_type != x._spec.dtype or numpy_type.kind == "O":
        return _full(x._spec.shape, numpy_type, 0)
    return casting.zeros_like(x)


@dispatched
def ones_like(input: Any, dtype: Any = None, name: Any = None, layout: Any = None) -> Tensor:
    """Creates a tensor of ones with the shape of `input`, and its dtype unless one is given."""
    x = as_tensor(input)
    numpy_type = numpy_dtype(dtype) or x._spec.dtype
    if numpy_type != x._spec.dtype:
        return _full(x._spec.shape, numpy_type, 1)
    return casting.ones_like(x)


def fill(dims: Any, value: Any, name: Any = None, layout: Any = None) -> Tensor:
    """Creates a tensor of shape `dims` filled with the scalar `value`.

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
    """Creates an identity matrix, or a batch of them of shape `batch_shape`.

    >>> tf.eye(2).numpy()
    array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    rows = shape_from(num_rows, "eye", TypeError)
    columns = rows if num_columns is None else shape_from(num_columns, "eye", TypeError)
    if len(rows) != 1 or len(columns) != 1:
        raise TypeError(
            "eye: `num_rows` and `num_columns` must be integers. Received: "
            f"num_rows={shown(num_rows)}, num_columns={shown(num_columns)}."
        )
    batch = () if batch_shape is None else shape_from(batch_shape, "eye")
    shape = shape_from((*batch, *rows, *columns), "eye")
    if namespaces.foreign and has_size(shape):
        return zeros(shape, dtype)
    matrix = allocate("eye", np.eye, *shape[-2:], dtype=numpy_dtype(dtype))
    return Tensor(np.broadcast_to(matrix, shape) if batch else matrix)


def linspace(start: Any, stop: Any, num: Any, name: Any = None, axis: int = 0) -> Tensor:
    """Returns `num` evenly spaced values from `start` to `stop`, inclusive, along a new `axis`.

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
    interior = allocate("linspace", np.arange, 1, max(count - 1, 1)).astype(x1._spec.dtype)
    rows = Tensor(interior.reshape((-1,) + (1,) * ndim))
    ends = [shaping.broadcast_to(x, shape=(1, *step._spec.shape)) for x in (x1, x2)]
    y = shaping.concat(ends[0], rows * step + x1, ends[1], axis=0)
    y = shaping.take_slice(y, where=((0, count, 1), *((0, n, 1) for n in step._spec.shape)))
    position = normalize_axis(axis, ndim + 1, "linspace")
    return shaping.transpose(
        y, perm=(*builtins.range(1, position + 1), 0, *builtins.range(position + 1, ndim + 1))
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
    """Returns the numbers from `start` up to but excluding `limit`, in steps of `delta`.

    >>> tf.range(5).numpy(), tf.range(3, 0, -1).numpy()
    (array([0, 1, 2, 3, 4], dtype=int32), array([3, 2, 1], dtype=int32))
    """
    if limit is None:
        start, limit = 0, start
    fixed_start = tensor_or_variable(start) is None and tensor_or_variable(delta) is None
    if fixed_start or is_abstract(start) or is_abstract(delta):
        return _range(start, limit, delta, dtype)  # a trace need only check the length
    return _dynamic_range(start, limit, delta, dtype)


def _range(start: Any, limit: Any, delta: Any, dtype: Any) -> Tensor:
    abstract = created_from_sizes(_range, start, limit, delta, dtype)
    if abstract is not None:
        return abstract
    numpy_type = numpy_dtype(dtype)
    ends = [
        np.asarray(as_tensor(x, None if tensor_or_variable(x) is not None else numpy_type))
        for x in (start, limit, delta)
    ]
    numpy_type = numpy_type or _widest(ends)
    for x, argument in zip(ends, ("start", "limit", "delta"), strict=True):
        if x.ndim:
            raise invalid(f"range: {argument} must be a scalar. Received: shape {x.shape}.")
        if x.dtype not in dtypes.REAL:
            name = dtypes.of(x.dtype).name
            raise TypeError(f"range: {argument} must be a real number. Received: dtype {name}.")
    first, last, step = (x.astype(numpy_type)[()] for x in ends)
    if step == 0:
        raise invalid("range: requires delta != 0.")
    if numpy_type.kind in "iu":
        first, last, step = int(first), int(last), int(step)  # the difference may not fit
    if not (last - first) * (1 if step > 0 else -1) >= 0:
        sign = ("<=", ">") if step > 0 else (">=", "<")
        raise invalid(
            f"range: requires start {sign[0]} limit when delta {sign[1]} 0: {first}, {last}."
        )
    if numpy_type.kind in "iu":
        return Tensor(allocate("range", np.arange, first, last, step).astype(numpy_type))
    steps = abs(float((last - first) / step))
    if not steps < MAX_ELEMENTS:
        raise invalid(f"range: requires a finite number of steps: {first}, {last}, {step}.")
    count = math.ceil(steps)
    return Tensor(allocate("range", np.arange, count).astype(numpy_type) * step + first)


_dynamic_range = host_function(_range, dynamic_shapes=True)


def _widest(arrays: list[np.ndarray]) -> np.dtype:
    """Returns the widest dtype in TensorFlow's order."""
    for array in arrays:
        if array.dtype not in _RANGE_DTYPES:
            return array.dtype
    return max((array.dtype for array in arrays), key=_RANGE_DTYPES.index)


def meshgrid(*args: Any, **kwargs: Any) -> list[Tensor]:
    """Returns coordinate grids from coordinate vectors.

    `indexing` is "xy", which swaps the first two axes, or "ij".

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
        sizes = tuple(n if i == axis else 1 for i, n in enumerate(shape))
        grids.append(shaping.broadcast_to(shaping.reshape(x, shape=sizes), shape=tuple(shape)))
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
    """Returns `on_value` at each index along a new `axis` of size `depth`, `off_value` elsewhere.

    An index outside [0, depth) gives a row without `on_value`.

    >>> tf.one_hot([0, 2], 3).numpy()
    array([[1., 0., 0.], [0., 0., 1.]], dtype=float32)
    """
    x = as_tensor(indices)
    if not x._spec.size and tensor_or_variable(indices) is None:  # an empty list has no dtype
        x = Tensor(np.zeros(x._spec.shape, np.int32))
    classes, position = integer(depth, "one_hot", TypeError), -1 if axis is None else axis
    if classes < 0:
        raise invalid(f"one_hot: depth must be non-negative. Received: {classes}.")
    if not -1 <= position <= x._spec.ndim:
        raise invalid(
            f"one_hot: expected axis to be -1 or between 0 and {x._spec.ndim}. Received: "
            f"{position}."
        )
    on, off = _on_and_off(on_value, off_value, numpy_dtype(dtype))
    y = indexing.one_hot(x, depth=classes, dtype=np.dtype(bool))
    y = arithmetic.select(y, casting.stop_gradient(on), casting.stop_gradient(off))
    if position in (-1, x._spec.ndim):
        return y
    last = x._spec.ndim
    return shaping.transpose(
        y, perm=(*builtins.range(position), last, *builtins.range(position, last))
    )


def _on_and_off(on_value: Any, off_value: Any, dtype: np.dtype | None) -> tuple[Tensor, Tensor]:
    """Returns the two values in the dtype on which they and `dtype` must agree."""
    tensors = [as_tensor(v, hint=dtype) for v in (on_value, off_value) if v is not None]
    dtype_set = {x._spec.dtype for x in tensors} | (set() if dtype is None else {dtype})
    if len(dtype_set) > 1:
        names = " and ".join(sorted(dtypes.of(d).name for d in dtype_set))
        raise TypeError(
            f"one_hot: on_value, off_value and dtype must have the same dtype. Received: {names}."
        )
    target = dtype_set.pop() if dtype_set else np.dtype(np.float32)
    if target.kind in "bO" and None in (on_value, off_value):
        raise TypeError(
            f"one_hot: on_value and off_value are required for dtype {dtypes.of(target).name}."
        )
    if any(x._spec.ndim for x in tensors):
        shapes = " and ".join(str(tuple(x._spec.shape)) for x in tensors)
        raise invalid(f"one_hot: on_value and off_value must be scalars. Received: {shapes}.")
    values = (1 if on_value is None else on_value, 0 if off_value is None else off_value)
    return tuple([as_tensor(v, target if tensor_or_variable(v) is None else None) for v in values])


def sequence_mask(
    lengths: Any, maxlen: Any = None, dtype: Any = dtypes.bool_, name: Any = None
) -> Tensor:
    """Returns a mask for each length n: a row of `maxlen` values whose first n are true.

    >>> tf.sequence_mask([1, 3], 3).numpy()
    array([[ True, False, False], [ True,  True,  True]])
    """
    x = as_tensor(lengths)
    if maxlen is None:
        size = _longest(x, lengths)._spec.size
        columns = allocate("sequence_mask", np.arange, size).astype(x._spec.dtype)
    else:
        columns = _column_indices(np.asarray(as_tensor(maxlen)))
        x = to_dtype(x, columns.dtype)
    column = shaping.reshape(x, shape=(*x._spec.shape, 1))
    return to_dtype(arithmetic.less(Tensor(columns), column), numpy_dtype(dtype))


def _column_indices(maxlen: np.ndarray) -> np.ndarray:
    """Returns the column indices in the dtype of `maxlen`, for comparison with the lengths."""
    if maxlen.ndim:
        raise ValueError(f"sequence_mask: `maxlen` must be a scalar. Received: {shown(maxlen)}.")
    if maxlen.dtype not in dtypes.REAL or not 0 <= maxlen < np.inf:
        raise invalid(f"sequence_mask: `maxlen` must be a non-negative number. Received: {maxlen}.")
    return allocate("sequence_mask", np.arange, math.ceil(maxlen)).astype(maxlen.dtype)


@host_function(dynamic_shapes=True)
def _longest(x: Tensor, lengths: Any) -> Tensor:
    """Returns a tensor as long as the largest of `x`, the converted `lengths`."""
    values = np.asarray(x)
    if values.dtype not in dtypes.REAL or not np.isfinite(values).all():
        raise invalid(f"sequence_mask: lengths must be finite numbers. Received: {shown(lengths)}.")
    longest = math.ceil(values.max(initial=0))
    return Tensor(allocate("sequence_mask", np.zeros, longest, bool))
