"""Pooling: the largest cell that a window sees, or the average of them.

Both go axis by axis, the last one first. Of several largest cells the first in row-major order
counts: along the last axis the first in its row, then the first row that has one.
"""

from __future__ import annotations

import math

import numpy as np

from retrograde.core.apply import Primitive
from retrograde.fusion.blocks import over_batch
from retrograde.ops._arrays import add_part, placed, widened
from retrograde.ops._windows import folded, unfolded
from retrograde.ops.casting import zeros_like
from retrograde.ops.shaping import everywhere
from retrograde.values import dtypes


def _axes(windows):
    return range(windows.ndim - 1, -1, -1)


def _shape_along(x, windows, axis):
    """The shape after pooling along one axis."""
    space = x.shape[1:-1]
    return (*x.shape[: axis + 1], windows.positions(space)[axis], *x.shape[axis + 2 :])


def _pooled(windows, x):
    return (len(x), *windows.positions(x.shape[1:-1]), x.shape[-1])


def _seen(xp, x, windows, axis, nothing):
    """For each tap along one axis: the cells it sees from each position; `nothing` is padding."""
    shape = _shape_along(x, windows, axis)
    for positions, cells in windows.along(axis, x.shape[axis + 1]):
        part = x[cells]
        yield part if part.shape == shape else placed(xp, part, shape, positions, nothing)


def _combined(xp, combine, nothing, x, windows, axis, out=None):
    """`combine` over what windows along one axis see; `nothing` is its neutral element."""
    y, *others = _seen(xp, x, windows, axis, nothing)
    for cells in others:
        if xp is not np:
            y = combine(y, cells)
        else:
            y = out = combine(y, cells, out=out)
    return y


def _max_along(xp, x, windows, axis, out=None):
    lowest = -np.inf if x.dtype in dtypes.FLOATING else np.iinfo(x.dtype).min
    return _combined(xp, xp.maximum, lowest, x, windows, axis, out)


def _largest(xp, x, windows, out=None):
    for axis in _axes(windows):
        x = _max_along(xp, x, windows, axis, out if axis == 0 else None)
    return x


def _hits(xp, x, y, windows, axis):
    """For each tap along one axis: whether it sees the first cell of x that is equal to y."""
    taken = None
    for positions, cells in windows.along(axis, x.shape[axis + 1]):
        hit = x[cells] == y[positions]
        if hit.shape != y.shape:
            hit = placed(xp, hit, y.shape, positions, False)
        if taken is not None:
            hit = xp.greater(hit, taken)
        yield hit
        taken = hit if taken is None else taken | hit


def _put(xp, g, x, windows, out=None):
    """`g` at the cells that were the largest."""
    levels = [x]
    for axis in _axes(windows):
        levels.append(_max_along(xp, levels[-1], windows, axis))
    # Times the truth values is much faster than `where`, and right for what is finite.
    quick = xp is np and g.dtype in _QUICK and np.isfinite(np.add.reduce(g, axis=None))
    for axis in range(windows.ndim):
        y, x = levels.pop(), levels[-1]
        room = out if axis == windows.ndim - 1 else None
        hits = zip(
            windows.along(axis, x.shape[axis + 1]), _hits(xp, x, y, windows, axis), strict=True
        )
        if quick and windows.cover(axis, x.shape[axis + 1]):
            g = _written(g, hits, x.shape, room)
            continue
        spread = _zeros(xp, x.shape, g.dtype, room)
        for (positions, cells), hit in hits:
            part, hit = g[positions], hit[positions]
            kept = part * hit if quick else xp.where(hit, part, part.dtype.type(0))
            spread = add_part(xp, spread, cells, kept)
        g = spread
    return g


def _written(g, hits, shape, out):
    """`g` where it hits, each cell being seen just once."""
    y = np.empty(shape, g.dtype) if out is None else out
    for (_, cells), hit in hits:
        np.multiply(g, hit, out=y[cells])
    return y


def _zeros(xp, shape, dtype, out):
    if out is None:
        return xp.zeros(shape, dtype)
    out.fill(0)
    return out


_QUICK = frozenset({np.dtype(np.float32), np.dtype(np.float64)})


def _take(xp, t, x, windows):
    """What `t` holds at the cells of `x` that are the largest."""
    for axis in _axes(windows):
        y = _max_along(xp, x, windows, axis)
        taken = xp.zeros(y.shape, t.dtype)
        seen = _seen(xp, t, windows, axis, 0)
        for cells, hit in zip(seen, _hits(xp, x, y, windows, axis), strict=True):
            taken = xp.where(hit, cells, taken)
        x, t = y, taken
    return t


def _max_pool_kernel(xp, x, *, windows):
    if xp is not np:
        return _largest(xp, x, windows)
    out = np.empty(_pooled(windows, x), x.dtype)
    return over_batch(lambda x, out: _largest(np, x, windows, out), out, x)


def _put_kernel(xp, g, x, *, windows):
    if xp is not np:
        return _put(xp, widened(g), x, windows).astype(g.dtype)
    out = np.empty(x.shape, g.dtype)
    quick = g.dtype in _QUICK  # the others are added up in float32

    def put(g, x, out):
        return _put(np, widened(g), x, windows, out if quick else None)

    return over_batch(put, out, g, x)


def _take_kernel(xp, t, x, *, windows):
    if xp is not np:
        return _take(xp, t, x, windows)
    out = np.empty(_pooled(windows, x), t.dtype)
    return over_batch(lambda t, x, _: _take(np, t, x, windows), out, t, x)


max_pool = Primitive(
    "max_pool",
    _max_pool_kernel,
    vjps=(lambda g, _y, x, *, windows: max_pool_put(g, x, windows=windows),),
    batch=lambda _, x, *, windows: unfolded(max_pool(folded(x), windows=windows), x),
    accepts=dtypes.REAL,
)


def _over_batches(primitive):
    def batch(batched, *xs, windows):
        xs = everywhere(batched, xs)
        return unfolded(primitive()(*map(folded, xs), windows=windows), xs[0])

    return batch


# Which cell is the largest does not change, for small changes of x: the derivative by x is 0.

max_pool_put = Primitive(  # g at the cells of x that are the largest, other cells 0
    "max_pool_put",
    _put_kernel,
    vjps=(
        lambda h, _y, _g, x, *, windows: max_pool_take(h, x, windows=windows),
        lambda _h, _y, _g, x, *, windows: zeros_like(x),  # noqa: ARG005
    ),
    batch=_over_batches(lambda: max_pool_put),
    accepts=dtypes.FLOATING,
)

max_pool_take = Primitive(  # what t holds at the cells of x that are the largest
    "max_pool_take",
    _take_kernel,
    vjps=(
        lambda h, _y, _t, x, *, windows: max_pool_put(h, x, windows=windows),
        lambda _h, _y, _t, x, *, windows: zeros_like(x),  # noqa: ARG005
    ),
    batch=_over_batches(lambda: max_pool_take),
    accepts=dtypes.FLOATING,
)


def _index_kernel(xp, x, *, windows):
    space = x.shape[1:-1]
    cells = xp.arange(math.prod(space), dtype=np.int64).reshape(1, *space, 1)
    return _take(xp, xp.broadcast_to(cells, x.shape), x, windows)


max_pool_index = Primitive(  # which cell of space is the largest, counted in row-major order
    "max_pool_index",
    _index_kernel,
    vjps=None,
    batch=lambda _, x, *, windows: unfolded(max_pool_index(folded(x), windows=windows), x),
    accepts=dtypes.REAL,
)


def _counts(windows, space, dtype):
    """How many cells each window sees, shaped to divide a result by."""
    counts = np.ones((1,) * (windows.ndim + 2), dtype)
    for axis, (n, positions) in enumerate(zip(space, windows.positions(space), strict=True)):
        seen = np.zeros((1, *(1,) * axis, positions, *(1,) * (windows.ndim - axis)), dtype)
        for places, _ in windows.along(axis, n):
            seen[places] += 1
        counts = counts * seen
    return counts


def _average(xp, x, windows):
    counts = _counts(windows, x.shape[1:-1], x.dtype)
    for axis in _axes(windows):
        x = _combined(xp, xp.add, 0, x, windows, axis)
    return x / counts


def _average_put(xp, g, windows, space):
    g = g / _counts(windows, space, g.dtype)
    for axis in range(windows.ndim):
        spread = xp.zeros((*g.shape[: axis + 1], space[axis], *g.shape[axis + 2 :]), g.dtype)
        for positions, cells in windows.along(axis, space[axis]):
            spread = add_part(xp, spread, cells, g[positions])
        g = spread
    return g


def _average_kernel(xp, x, *, windows):
    if xp is not np:
        return _average(xp, widened(x), windows).astype(x.dtype)
    out = np.empty(_pooled(windows, x), x.dtype)
    return over_batch(lambda x, _: _average(np, widened(x), windows), out, x)


def _average_put_kernel(xp, g, *, windows, space):
    if xp is not np:
        return _average_put(xp, widened(g), windows, space).astype(g.dtype)
    out = np.empty((len(g), *space, g.shape[-1]), g.dtype)
    return over_batch(lambda g, _: _average_put(np, widened(g), windows, space), out, g)


average_pool = Primitive(
    "average_pool",
    _average_kernel,
    vjps=(
        lambda g, _y, _x, *, windows: average_pool_put(
            g, windows=windows, space=tuple(_x.shape[1:-1])
        ),
    ),
    batch=lambda _, x, *, windows: unfolded(average_pool(folded(x), windows=windows), x),
    linear=True,
    accepts=dtypes.FLOATING,
)

average_pool_put = Primitive(  # each element of g in equal parts to the cells its window sees
    "average_pool_put",
    _average_put_kernel,
    vjps=(lambda g, _y, _x, *, windows, space: average_pool(g, windows=windows),),  # noqa: ARG005
    batch=lambda _, x, *, windows, space: unfolded(
        average_pool_put(folded(x), windows=windows, space=space), x
    ),
    linear=True,
    accepts=dtypes.FLOATING,
)
