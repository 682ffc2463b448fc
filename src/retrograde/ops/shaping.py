"""Reshaping, broadcasting, slicing and joining: pairs of linear primitives and transposes."""

from __future__ import annotations

import itertools
import math
from functools import lru_cache

import numpy as np

from retrograde.core.apply import Primitive
from retrograde.fusion.lazy_calls import allow_lazy_reduction
from retrograde.ops._arrays import array_sum
from retrograde.values import dtypes


def _reshape_error_message(x, *, shape):
    return (
        f"reshape: a tensor of shape {x.shape} has {math.prod(x.shape)} values, but the requested "
        f"shape {tuple(shape)} has {math.prod(shape)}. Expected the same number."
    )


reshape = Primitive(
    "reshape",
    lambda _, x, *, shape: x.reshape(shape),
    vjps=(lambda g, _y, _x, **_: reshape(g, shape=_x.shape),),
    batch=lambda _, x, *, shape: reshape(x, shape=(x.shape[0], *shape)),
    linear=True,
    error_message=_reshape_error_message,
)


def _inverse(perm):
    return tuple(sorted(range(len(perm)), key=perm.__getitem__))


transpose = Primitive(
    "transpose",
    lambda _, x, *, perm: x.transpose(perm),
    vjps=(lambda g, _y, _x, *, perm: transpose(g, perm=_inverse(perm)),),
    batch=lambda _, x, *, perm: transpose(x, perm=(0, *(p + 1 for p in perm))),
    linear=True,
)

reverse = Primitive(
    "reverse",
    lambda xp, x, *, axis: xp.flip(x, axis) if axis else x,
    vjps=(lambda g, _y, _x, *, axis: reverse(g, axis=axis),),
    batch=lambda _, x, *, axis: reverse(x, axis=tuple(a + 1 for a in axis)),
    linear=True,
)


def align(x, ndim):
    """Inserts axes of size 1 after the batch axis of `x`, so that `ndim` axes follow it."""
    missing = ndim + 1 - x.ndim
    return x if missing <= 0 else reshape(x, shape=(x.shape[0], *(1,) * missing, *x.shape[1:]))


_SMALL = 4096


def _broadcast_to_kernel(xp, x, *, shape):
    # For small results, copying is faster than creating a view.
    if xp is np and math.prod(shape) < _SMALL and x.ndim <= len(shape):
        y = np.empty(shape, x.dtype)
        y[...] = x
        return y
    return xp.broadcast_to(x, shape)


broadcast_to = Primitive(
    "broadcast_to",
    _broadcast_to_kernel,
    vjps=(lambda g, _y, _x, **_: sum_to(g, shape=_x.shape),),
    batch=lambda _, x, *, shape: broadcast_to(align(x, len(shape)), shape=(x.shape[0], *shape)),
    linear=True,
    error_message=lambda x, *, shape: (
        f"broadcast_to: shape {x.shape} does not broadcast to {tuple(shape)}. Expected each "
        "dimension, from the last, to be 1 or equal to the new one."
    ),
)


def _sum_to_kernel(xp, x, *, shape):
    """Sums over the axes that a broadcast added or stretched."""
    axes = _broadcast_axes(x.shape, shape)
    y = array_sum(xp, x, axes)
    return y if len(axes) == x.ndim - len(shape) else y.reshape(shape)


@lru_cache(maxsize=1024)
def _broadcast_axes(full_shape, shape):
    """Returns the axes that a broadcast from `shape` to `full_shape` added or stretched."""
    added = len(full_shape) - len(shape)
    stretched = [i for i, n in enumerate(shape, added) if n == 1 and full_shape[i] != 1]
    return (*range(added), *stretched)


def _sum_to_batch(_, x, *, shape):
    size, added = x.shape[0], x.ndim - 1 - len(shape)
    return reshape(sum_to(x, shape=(size, *(1,) * added, *shape)), shape=(size, *shape))


sum_to = Primitive(
    "sum_to",
    _sum_to_kernel,
    vjps=(lambda g, _y, _x, **_: broadcast_to(g, shape=_x.shape),),
    batch=_sum_to_batch,
    linear=True,
)
allow_lazy_reduction(sum_to)


# A strided slice is one triple (start, stop, step) for each axis, as returned by Python's
# `slice.indices`. With a negative step, a stop of -1 includes the first element.


def as_slices(where):
    """Returns the Python slices of a strided slice."""
    return tuple(slice(a, None if b < 0 else b, s) for a, b, s in where)


def _batched_slice(where, size):
    return ((0, size, 1), *where)


take_slice = Primitive(
    "take_slice",
    lambda _, x, *, where: x[as_slices(where)],
    vjps=(lambda g, _y, _x, *, where: put_slice(g, shape=_x.shape, where=where),),
    batch=lambda _, x, *, where: take_slice(x, where=_batched_slice(where, x.shape[0])),
    linear=True,
)


def _put_slice_kernel(xp, x, *, shape, where):
    """Returns zeros of `shape`, with `x` at `where`."""
    y = xp.zeros(shape, x.dtype)
    if xp is not np:
        return y.at[as_slices(where)].set(x)
    y[as_slices(where)] = x
    return y


put_slice = Primitive(
    "put_slice",
    _put_slice_kernel,
    vjps=(lambda g, _y, _x, *, shape, where: take_slice(g, where=where),),  # noqa: ARG005
    batch=lambda _, x, *, shape, where: put_slice(
        x, shape=(x.shape[0], *shape), where=_batched_slice(where, x.shape[0])
    ),
    linear=True,
)


def broadcast_batched(batched, xs):
    """Gives all of `xs` a batch axis; those without one are broadcast along it."""
    size = next(x.shape[0] for x, b in zip(xs, batched, strict=True) if b)
    return [
        x if b else broadcast_to(x, shape=(size, *x.shape))
        for x, b in zip(xs, batched, strict=True)
    ]


def _concat_vjp(needed, g, _y, *_xs, axis):
    parts = split(g, sizes=tuple(x.shape[axis] for x in _xs), axis=axis)
    return tuple(part if n else None for part, n in zip(parts, needed, strict=True))


def _concat_error_message(*xs, axis):
    shapes = ", ".join(str(x.shape) for x in xs)
    return (
        f"concat: shapes {shapes} cannot be joined along axis {axis}. Expected equal dtypes, and "
        "equal shapes except along that axis."
    )


concat = Primitive(
    "concat",
    lambda xp, *xs, axis: xp.concatenate(xs, axis),
    joint=_concat_vjp,
    batch=lambda batched, *xs, axis: concat(*broadcast_batched(batched, xs), axis=axis + 1),
    linear=True,
    accepts=dtypes.ANY,
    error_message=_concat_error_message,
)


def _split_kernel(xp, x, *, sizes, axis):
    return tuple(xp.split(x, list(itertools.accumulate(sizes))[:-1], axis))


split = Primitive(
    "split",
    _split_kernel,
    vjps=(lambda gs, _y, _x, *, sizes, axis: concat(*gs, axis=axis),),  # noqa: ARG005
    batch=lambda _, x, *, sizes, axis: split(x, sizes=sizes, axis=axis + 1),
    linear=True,
    outputs=True,
)


def _stack_vjp(needed, g, _y, *_xs, axis):
    parts = unstack(g, axis=axis)
    return tuple(part if n else None for part, n in zip(parts, needed, strict=True))


stack = Primitive(
    "stack",
    lambda xp, *xs, axis: xp.stack(xs, axis),
    joint=_stack_vjp,
    batch=lambda batched, *xs, axis: stack(*broadcast_batched(batched, xs), axis=axis + 1),
    linear=True,
    accepts=dtypes.ANY,
    error_message=lambda *xs, **_: (
        f"stack: shapes {', '.join(str(x.shape) for x in xs)} differ. Expected equal shapes."
    ),
)


def _unstack_kernel(xp, x, *, axis):
    rows = xp.moveaxis(x, axis, 0)
    # Iterating over an array of strings would return bytes, not arrays.
    return tuple([rows[i, ...] for i in range(len(rows))] if x.dtype == object else rows)


unstack = Primitive(
    "unstack",
    _unstack_kernel,
    vjps=(lambda gs, _y, _x, *, axis: stack(*gs, axis=axis),),
    batch=lambda _, x, *, axis: unstack(x, axis=axis + 1),
    linear=True,
    outputs=True,
)
