"""Reshaping, casting, reordering, joining and splitting."""

from __future__ import annotations

import contextlib
import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from retrograde.core.indexed_slices import IndexedSlices
from retrograde.core.recorders import changes, escape
from retrograde.core.tensor import Tensor
from retrograde.ops import arithmetic, casting, shaping
from retrograde.ops._families import conj
from retrograde.ops.arguments import integer, integer_array, integers, shape_from
from retrograde.ops.casting import to_dtype
from retrograde.ops.complex_numbers import imag, make_complex, real
from retrograde.ops.conversion import as_tensor, holds_tensor, numpy_dtype, one_dtype
from retrograde.ops.host_functions import host_function
from retrograde.ops.indexing import gather
from retrograde.values import dtypes
from retrograde.values.arguments import as_text, shown
from retrograde.values.composites import NotOneTensor, dispatch_to_composite, dispatched
from retrograde.values.conversion import tensor_or_variable
from retrograde.values.errors import UnimplementedError, allocate, invalid, to_list
from retrograde.values.shapes import normalize_axes, normalize_axis


@dispatched
def identity(input: Any, name: Any = None) -> Tensor | IndexedSlices:
    """Returns a new tensor with the same value, or with the current value of a variable."""
    if isinstance(input, IndexedSlices):
        return IndexedSlices(identity(input.values), identity(input.indices), input.dense_shape)
    return casting.identity(as_tensor(input))


def identity_n(input: Sequence[Any], name: Any = None) -> list[Tensor]:
    """Returns new tensors with the values of several others."""
    return [identity(x) for x in to_list("identity_n", input)]


@dispatched
def stop_gradient(input: Any, name: Any = None) -> Tensor | IndexedSlices:
    """Returns the same value, but blocks the gradient.

    >>> x = tf.Variable(3.0)
    >>> with tf.GradientTape() as tape:
    ...     y = x * tf.stop_gradient(x)
    >>> tape.gradient(y, x).numpy()
    np.float32(3.0)
    """
    if isinstance(input, IndexedSlices):
        return IndexedSlices(stop_gradient(input.values), input.indices, input.dense_shape)
    return casting.stop_gradient(as_tensor(input))


@dispatched
def cast(x: Any, dtype: Any, name: Any = None) -> Tensor | IndexedSlices:
    """Casts `x` to another dtype; a tensor of that dtype is returned unchanged.

    >>> tf.cast([1.8, -1.8], tf.int32).numpy()
    array([ 1, -1], dtype=int32)
    """
    if isinstance(x, IndexedSlices):
        return IndexedSlices(cast(x.values, dtype), x.indices, x.dense_shape)
    tensor, target = as_tensor(x), dtypes.as_dtype(dtype).numpy_dtype
    source = tensor._spec.dtype
    if source == target:
        return tensor if x is tensor or tensor_or_variable(x) is None else casting.identity(tensor)
    if object in (source, target):
        names = f"{dtypes.of(source).name} to {dtypes.of(target).name}"
        raise UnimplementedError(None, None, f"Cast {names} is not supported.")
    return to_dtype(tensor, target)


@dispatched
def saturate_cast(value: Any, dtype: Any, name: Any = None) -> Tensor:
    """Casts `value` to another dtype, clipping values that are out of its range.

    >>> tf.saturate_cast([300, -5], tf.uint8).numpy()
    array([255,   0], dtype=uint8)
    """
    x, target = as_tensor(value), dtypes.as_dtype(dtype)
    if x.dtype.is_complex and target.is_complex:
        return make_complex(*(saturate_cast(part(x), target.real_dtype) for part in (real, imag)))
    if target.is_complex:
        return cast(saturate_cast(x, target.real_dtype), target)
    if x.dtype.is_complex:
        x = real(x)
    source, array_dtype = x.dtype, x._spec.dtype
    if array_dtype in dtypes.REAL and target.numpy_dtype in dtypes.REAL:
        lowest, highest = (_as_python_number(end) for end in (target.min, target.max))
        if source.is_floating or source.min < lowest:
            lowest = max(lowest, _as_python_number(source.min))
            end = Tensor(_largest_within(lowest, array_dtype))
            x = arithmetic.select(x < end, end, x)
        if source.is_floating or source.max > highest:
            highest = min(highest, _as_python_number(source.max))
            end = Tensor(_largest_within(highest, array_dtype))
            x = arithmetic.select(x > end, end, x)
    return cast(x, target) if source is not target else casting.identity(x)


def _as_python_number(end: Any) -> Any:
    """Converts a limit of a dtype to a Python number, so that limits compare."""
    return end if isinstance(end, int) else float(end)


def _largest_within(end: Any, dtype: np.dtype) -> Any:
    """Returns the value of `dtype` closest to `end` that does not exceed it in magnitude."""
    value = dtype.type(end if dtype.kind in "iu" else float(end))
    return np.nextafter(value, dtype.type(0)) if abs(value.item()) > abs(end) else value


def complex(real: Any, imag: Any, name: Any = None) -> Tensor:
    """Returns `real + imag * 1j` for two float32 or two float64 tensors."""
    x1, x2 = as_tensor(real), as_tensor(imag)
    names = [x1.dtype.name, x2.dtype.name]
    if names not in (["float32", "float32"], ["float64", "float64"]):
        raise TypeError(
            f"The `real` and `imag` components have incorrect types: {' '.join(names)}. Expected "
            "both float32 or both float64."
        )
    return make_complex(x1, x2)


@dispatched
@host_function
def bitcast(input: Any, type: Any, name: Any = None) -> Tensor:
    """Reinterprets the bits as another dtype. No gradient flows."""
    x, target = as_tensor(input), numpy_dtype(type)
    for dtype in (x._spec.dtype, target):
        if dtype not in dtypes.NUMERIC:
            raise invalid(f"bitcast: dtype {dtypes.of(dtype).name} is not supported.")
    escape(x, "bitcast")
    array = np.array(x._array, order="C")
    ratio, rest = divmod(target.itemsize, array.dtype.itemsize)
    if ratio > 1 and (rest or array.shape[-1:] != (ratio,)):
        raise invalid(
            f"bitcast: {x.dtype.name} of shape {array.shape} cannot be read as "
            f"{dtypes.of(target).name}. Expected a last axis of size {ratio}."
        )
    if ratio > 1:
        return Tensor(array.view(target)[..., 0])
    narrow = () if ratio else (array.dtype.itemsize // target.itemsize,)
    return Tensor(array.reshape((*array.shape, 1)).view(target).reshape(array.shape + narrow))


def reshape(tensor: Any, shape: Any, name: Any = None) -> Tensor:
    """Reshapes a tensor; one size may be -1 and is inferred.

    >>> tf.reshape([[1, 2], [3, 4]], [-1]).numpy()
    array([1, 2, 3, 4], dtype=int32)
    """
    try:
        x = as_tensor(tensor)
    except NotOneTensor as refusal:
        return dispatch_to_composite(refusal, reshape, tensor, shape)
    sizes = integers(shape, "reshape")
    if -1 in sizes:
        sizes = _infer_size(sizes, x._array)
    if any(n < 0 for n in sizes):
        raise invalid(
            f"reshape: sizes must be non-negative, or -1 for one of them. Received: {sizes}."
        )
    return shaping.reshape(x, shape=sizes)


def _infer_size(sizes: tuple[int, ...], array: Any) -> tuple[int, ...]:
    if sizes.count(-1) > 1:
        raise invalid(f"reshape: only one size may be -1. Received: {sizes}.")
    unknown = sizes.index(-1)
    known = math.prod(n for n in sizes if n != -1)
    # If the known sizes are 0, TensorFlow ignores the sizes that are 0 on both sides.
    total, rest = (
        (array.size, known)
        if known
        else (math.prod(n for n in array.shape if n), math.prod(n for n in sizes if n > 0))
    )
    if total % rest:
        raise invalid(
            f"reshape: a tensor of shape {array.shape} has {array.size} values, which do not match "
            f"shape {sizes}. Expected a multiple of {known}."
        )
    return (*sizes[:unknown], total // rest, *sizes[unknown + 1 :])


def transpose(a: Any, perm: Any = None, conjugate: bool = False, name: Any = "transpose") -> Tensor:
    """Permutes the axes to the order `perm`, by default reversed; optionally conjugates.

    >>> tf.transpose([[1, 2, 3]]).numpy()
    array([[1], [2], [3]], dtype=int32)
    """
    x = as_tensor(a)
    ndim = x._spec.ndim
    order = tuple(range(ndim))[::-1]
    if perm is not None:
        order = tuple(normalize_axis(p, ndim, "transpose") for p in integers(perm, "transpose"))
        if sorted(order) != list(range(ndim)):
            raise invalid(f"transpose: {order} is not a permutation of the {ndim} axes.")
    y = shaping.transpose(x, perm=order)
    return conj(y) if conjugate else y


@dispatched
def expand_dims(input: Any, axis: Any, name: Any = None) -> Tensor:
    """Inserts an axis of size 1 at `axis`.

    >>> tf.expand_dims([1, 2], -1).shape
    TensorShape([2, 1])
    """
    x = as_tensor(input)
    shape = x._spec.shape
    position, ndim = integer(axis, "expand_dims"), len(shape)
    if not -ndim - 1 <= position <= ndim:
        raise invalid(
            f"expand_dims: cannot insert axis {position} into a tensor of {ndim} axes. Expected "
            f"{-ndim - 1} <= axis <= {ndim}."
        )
    position %= ndim + 1
    return shaping.reshape(x, shape=(*shape[:position], 1, *shape[position:]))


@dispatched
def squeeze(input: Any, axis: Any = None, name: Any = None) -> Tensor:
    """Removes all axes of size 1, or those in `axis`.

    >>> x = tf.zeros([1, 3, 1])
    >>> tf.squeeze(x).shape, tf.squeeze(x, axis=0).shape
    (TensorShape([3]), TensorShape([3, 1]))
    """
    x = as_tensor(input)
    shape = x._spec.shape
    requested = () if axis is None else integers(axis, "squeeze", TypeError)
    axes = {normalize_axis(a, len(shape), "squeeze") for a in requested} or set(range(len(shape)))
    removed = [a for a in axes if shape[a] == 1]
    if requested and len(removed) != len(axes):
        raise invalid(
            f"squeeze: cannot squeeze axes {requested} of shape {shape}. Expected them to have "
            "size 1."
        )
    return shaping.reshape(x, shape=tuple(n for i, n in enumerate(shape) if i not in removed))


@dispatched
def concat(values: Any, axis: Any, name: Any = "concat") -> Tensor:
    """Concatenates tensors along an existing axis.

    >>> tf.concat([[1, 2], [3]], 0).numpy()
    array([1, 2, 3], dtype=int32)
    """
    if not isinstance(values, (list, tuple)):
        values = [values]
    xs = one_dtype(values)
    position = integer(axis, "concat")
    if not xs:
        raise invalid("concat: received an empty list. Expected at least one tensor.")
    if len(xs) == 1:
        return casting.identity(xs[0])
    if not xs[0]._spec.ndim:
        raise invalid("concat: can't concatenate scalars. Use tf.stack instead.")
    return shaping.concat(*xs, axis=normalize_axis(position, xs[0]._spec.ndim, "concat"))


@dispatched
def stack(values: Any, axis: int = 0, name: Any = "stack") -> Tensor:
    """Stacks tensors of the same shape along a new axis.

    >>> tf.stack([[1, 2], [3, 4]], axis=1).numpy()
    array([[1, 3], [2, 4]], dtype=int32)
    """
    if not isinstance(values, (list, tuple)) or not values:
        return _move_first_axis(as_tensor(values), axis)
    if axis == 0 and not holds_tensor(values):
        with contextlib.suppress(TypeError, ValueError):  # reported below, with the shapes
            return as_tensor(values)
    xs = one_dtype(values)
    return shaping.stack(*xs, axis=_new_axis(axis, xs[0]._spec.ndim + 1))


def _move_first_axis(x: Tensor, axis: int) -> Tensor:
    """Moves the first axis of a tensor to `axis`."""
    if axis == 0 or not x._spec.size:
        return casting.identity(x)
    position, others = _new_axis(axis, x._spec.ndim), range(1, x._spec.ndim)
    return shaping.transpose(x, perm=(*others[:position], 0, *others[position:]))


def _new_axis(axis: int, ndim: int) -> int:
    if not -ndim <= axis < ndim:
        raise ValueError(f"stack: `axis` = {axis} is not in range [{-ndim}, {ndim}).")
    return axis % ndim


def unstack(
    value: Any, num: int | None = None, axis: int = 0, name: Any = "unstack"
) -> list[Tensor]:
    """Returns the slices of a tensor along one axis: the inverse of `tf.stack`.

    >>> [x.numpy().tolist() for x in tf.unstack([[1, 2], [3, 4]], axis=1)]
    [[1, 3], [2, 4]]
    """
    x = as_tensor(value)
    ndim = x._spec.ndim
    if not -ndim <= axis < ndim:
        raise (ValueError if num is None else invalid)(
            f"unstack: `axis` = {as_text(axis)} is not in range [{-ndim}, {ndim})."
        )
    size = x._spec.shape[axis]
    if num not in (None, size):
        raise invalid(
            f"unstack: axis {as_text(axis)} has size {size}, but `num` is {as_text(num)}."
        )
    return list(shaping.unstack(x, axis=axis % ndim)) if size else []


@dispatched
def split(
    value: Any, num_or_size_splits: Any, axis: Any = 0, num: int | None = None, name: Any = "split"
) -> list[Tensor]:
    """Splits a tensor along one axis, into equal parts or into parts of the given sizes.

    One of the sizes may be -1, for the remainder.

    >>> [x.numpy().tolist() for x in tf.split([1, 2, 3], [1, -1])]
    [[1], [2, 3]]
    """
    x = as_tensor(value)
    position = normalize_axis(integer(axis, "split", TypeError), x._spec.ndim, "split")
    size = x._spec.shape[position]
    if isinstance(num_or_size_splits, (int, np.integer)):
        sizes = _equal_parts(int(num_or_size_splits), size)
    else:
        sizes = _part_sizes(num_or_size_splits, size)
        if num is not None and num != len(sizes):
            raise invalid(f"split: expected num={num} sizes. Received: {len(sizes)} sizes.")
    return list(shaping.split(x, sizes=sizes, axis=position))


def _equal_parts(count: int, size: int) -> tuple[int, ...]:
    if count < 1 or size % count:
        raise invalid(f"split: cannot split {size} elements into {count} equal parts.")
    return allocate("split", operator.mul, (size // count,), count)


def _part_sizes(value: Any, size: int) -> tuple[int, ...]:
    parts = integer_array(value, "split")
    if not parts.ndim:
        raise ValueError(
            "Rank-0 tensors are not supported as the num_or_size_splits argument to split. Pass a "
            "Python integer for equal parts."
        )
    if parts.ndim > 1:
        raise invalid(f"split: expected a list of sizes. Received: shape {parts.shape}.")
    sizes = parts.tolist()
    if sizes.count(-1) > 1:
        raise invalid(f"split: only one of the sizes may be -1. Received: {sizes}.")
    if -1 in sizes:
        sizes[sizes.index(-1)] = size - sum(n for n in sizes if n != -1)
    if sum(sizes) != size or min(sizes, default=0) < 0:
        raise invalid(f"split: sizes {parts.tolist()} do not add up to {size}.")
    return tuple(sizes)


def pad(
    tensor: Any, paddings: Any, mode: str = "CONSTANT", constant_values: Any = 0, name: Any = None
) -> Tensor:
    """Pads a tensor with `paddings[i] = [before, after]` elements along each axis i.

    `mode` is "CONSTANT" (pads with `constant_values`), "REFLECT" (mirrors without the edge) or
    "SYMMETRIC" (mirrors with the edge).

    >>> tf.pad([1, 2, 3], [[1, 1]]).numpy(), tf.pad([1, 2, 3], [[1, 1]], "REFLECT").numpy()
    (array([0, 1, 2, 3, 0], dtype=int32), array([2, 1, 2, 3, 2], dtype=int32))
    """
    x = as_tensor(tensor)
    pairs = _paddings(paddings, x._spec.shape)
    match mode.upper() if isinstance(mode, str) else mode:
        case "CONSTANT":
            return _pad_constant(x, pairs, constant_values)
        case "REFLECT" | "SYMMETRIC" as name:
            return _pad_mirrored(x, pairs, edge=name == "SYMMETRIC")
    raise ValueError(
        f"pad: `mode` must be 'CONSTANT', 'REFLECT' or 'SYMMETRIC'. Received: {shown(mode)}."
    )


def _paddings(paddings: Any, shape: tuple[int, ...]) -> list[list[int]]:
    pairs = integer_array(paddings, "pad")
    if pairs.shape != (len(shape), 2):
        raise invalid(
            f"pad: paddings have shape {pairs.shape}. Expected ({len(shape)}, 2): a pair for each "
            f"axis of a tensor of shape {shape}."
        )
    if pairs.size and pairs.min() < 0:
        raise invalid(f"pad: paddings must be non-negative. Received: {pairs.tolist()}.")
    return pairs.tolist()


def _pad_constant(x: Tensor, pairs: list[list[int]], constant_values: Any) -> Tensor:
    dtype = x._spec.dtype
    if dtype.kind == "O" and type(constant_values) is int:
        constant_values = b""
    sizes = zip(x._spec.shape, pairs, strict=True)
    shape = tuple(n + before + after for n, (before, after) in sizes)
    where = tuple((a, a + n, 1) for n, (a, _) in zip(x._spec.shape, pairs, strict=True))
    y = shaping.put_slice(x, shape=shape, where=where)
    if type(constant_values) is int and constant_values == 0:
        return y
    value = as_tensor(
        constant_values, None if tensor_or_variable(constant_values) is not None else dtype
    )
    if value._spec.dtype != dtype:
        raise invalid(
            f"pad: constant_values has dtype {value.dtype.name}, the tensor {x.dtype.name}. "
            "Expected the same dtype."
        )
    inside = np.zeros(shape, bool)
    inside[tuple(slice(*w) for w in where)] = True
    return arithmetic.select(Tensor(inside), y, casting.stop_gradient(value))


def _pad_mirrored(x: Tensor, pairs: list[list[int]], edge: bool) -> Tensor:
    """Gathers the mirrored indices along each axis."""
    y = casting.identity(x)
    for axis, (before, after) in enumerate(pairs):
        size = x._spec.shape[axis]
        if max(before, after) > size - (not edge):
            raise invalid(
                f"pad: paddings {before, after} are too large to mirror {size} elements. Expected "
                f"at most {size - (not edge)}."
            )
        if before or after:
            indices = np.arange(size)
            front = indices[:before] if edge else indices[1 : before + 1]
            back = indices[size - after :] if edge else indices[size - after - 1 : size - 1]
            indices = np.concatenate([front[::-1], indices, back[::-1]])
            y = gather(y, Tensor(indices), axis=axis, dense_gradient=True)
    return y


@dispatched
def reverse(tensor: Any, axis: Any, name: Any = None) -> Tensor:
    """Reverses the elements along each of the given axes."""
    x = as_tensor(tensor)
    axes = integers(axis, "reverse", ndim=1)
    return shaping.reverse(x, axis=normalize_axes(axes, x._spec.ndim, "reverse"))


def roll(input: Any, shift: Any, axis: Any, name: Any = None) -> Tensor:
    """Shifts elements by `shift` positions along an axis; elements beyond the end wrap around.

    >>> tf.roll([1, 2, 3, 4], shift=1, axis=0).numpy()
    array([4, 1, 2, 3], dtype=int32)
    """
    x, axes = as_tensor(input), integers(axis, "roll")
    dynamic_shift = tensor_or_variable(shift)
    if dynamic_shift is not None and changes(dynamic_shift._read()):
        return _dynamic_roll(x, dynamic_shift._read(), axes)
    shifts = integers(shift, "roll")
    if len(shifts) != len(axes):
        raise invalid(
            f"roll: received {len(shifts)} shifts for {len(axes)} axes. Expected the same number."
        )
    y = casting.identity(x)
    for indices, along in zip(shifts, axes, strict=True):
        y = _roll_along(y, indices, normalize_axis(along, x._spec.ndim, "roll"))
    return y


def _dynamic_roll(x: Tensor, shift: Tensor, axes: tuple[int, ...]) -> Tensor:
    """Shifts by amounts that change between calls to a traced function."""
    shifts = shaping.reshape(shift, shape=(len(axes), 1))
    for i, along in enumerate(axes):
        position = normalize_axis(along, x._spec.ndim, "roll")
        size = x._spec.shape[position]
        if size:
            indices = (np.arange(size).astype(shift._spec.dtype) - shifts[i]) % size
            x = gather(x, indices, axis=position, dense_gradient=True)
    return x


def _roll_along(x: Tensor, indices: int, axis: int) -> Tensor:
    size = x._spec.shape[axis]
    if not size or not indices % size:
        return x
    cut = size - indices % size
    front, back = shaping.split(x, sizes=(cut, size - cut), axis=axis)
    return shaping.concat(back, front, axis=axis)


@dispatched
def tile(input: Any, multiples: Any, name: Any = None) -> Tensor:
    """Tiles the tensor `multiples[i]` times along each axis i.

    >>> tf.tile([1, 2], [2]).numpy()
    array([1, 2, 1, 2], dtype=int32)
    """
    x = as_tensor(input)
    shape, times = x._spec.shape, integers(multiples, "tile", ndim=1)
    if len(times) != len(shape) or min(times, default=0) < 0:
        raise invalid(
            f"tile: expected {len(shape)} non-negative multiples, one for each axis. Received: "
            f"{times}."
        )
    expanded = [n for size in shape for n in (1, size)]
    repeated = [n for pair in zip(times, shape, strict=True) for n in pair]
    y = shaping.broadcast_to(shaping.reshape(x, shape=tuple(expanded)), shape=tuple(repeated))
    return shaping.reshape(y, shape=tuple(n * m for n, m in zip(times, shape, strict=True)))


def repeat(input: Any, repeats: Any, axis: int | None = None, name: Any = None) -> Tensor:
    """Repeats each element `repeats` times along an axis, or each element of the flattened tensor.

    `repeats` is one number, or one for each element along the axis.

    >>> tf.repeat([1, 2], [1, 3]).numpy()
    array([1, 2, 2, 2], dtype=int32)
    """
    x = as_tensor(input)
    if axis is None:
        x, axis = shaping.reshape(x, shape=(x._spec.size,)), 0
    if not isinstance(axis, int):
        raise TypeError(f"repeat: `axis` must be an int. Received: {shown(axis)}.")
    if not x._spec.ndim:
        x = shaping.reshape(x, shape=(1,))
    ndim = x._spec.ndim
    if not -ndim <= axis < ndim:
        raise ValueError(f"repeat: `axis` = {axis} is not in range [{-ndim}, {ndim}).")
    position = axis % ndim
    indices = _repeated_indices(repeats, x._spec.shape[position])
    return gather(x, indices, axis=position, dense_gradient=True)


@host_function(dynamic_shapes=True)
def _repeated_indices(repeats: Any, size: int) -> Tensor:
    """Returns the source index of each element."""
    times = integers(repeats, "repeat", TypeError)
    if len(times) not in (1, size):
        raise ValueError(
            f"repeat: {len(times)} repeats for {size} elements. Expected the same number."
        )
    if min(times, default=0) < 0:
        raise invalid(f"repeat: repeats must be >= 0. Received: {times}.")
    shape_from((sum(times) if len(times) == size else size * times[0],), "repeat")
    return Tensor(np.repeat(np.arange(size), times))


def broadcast_to(input: Any, shape: Any, name: Any = None) -> Tensor:
    """Broadcasts a tensor to `shape`.

    >>> tf.broadcast_to([1, 2], [2, 2]).numpy()
    array([[1, 2], [1, 2]], dtype=int32)
    """
    return shaping.broadcast_to(as_tensor(input), shape=shape_from(shape, "broadcast_to"))
