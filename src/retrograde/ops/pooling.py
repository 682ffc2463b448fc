"""Max pooling and average pooling.

Both work axis by axis, starting with the last. If several cells of a window are the largest, the
first in row-major order is selected: the first in its row, then the first row that contains one.
"""

from __future__ import annotations

import math

import numpy as np

from retrograde.core.apply import Primitive
from retrograde.fusion.blocks import run_in_slices
from retrograde.ops._arrays import add_to_slice, full_with_slice, widen
from retrograde.ops._windows import merge_batch, split_batch
from retrograde.ops.casting import zeros_like
from retrograde.ops.shaping import broadcast_batched
from retrograde.values import dtypes


def _axes(windows):
    return range(windows.ndim - 1, -1, -1)


def _shape_along(x, windows, axis):
    """Returns the shape after pooling along one axis."""
    space = x.shape[1:-1]
    return (*x.shape[: axis + 1], windows.positions(space)[axis], *x.shape[axis + 2 :])


def _pooled_shape(windows, x):
    return (len(x), *windows.positions(x.shape[1:-1]), x.shape[-1])


def _cells_by_tap(xp, x, windows, axis, padding):
    """Yields, for each tap along one axis, the cells that it reads at each position."""
    shape = _shape_along(x, windows, axis)
    for positions, cells in windows.tap_slices_along(axis, x.shape[axis + 1]):
        part = x[cells]
        yield part if part.shape == shape else full_with_slice(xp, part, shape, positions, padding)


def _reduce_along(xp, combine, identity, x, windows, axis, out=None):
    """Reduces the cells of each window along one axis with `combine`."""
    y, *others = _cells_by_tap(xp, x, windows, axis, identity)
    for cells in others:
        if xp is not np:
            y = combine(y, cells)
        else:
            y = out = combine(y, cells, out=out)
    return y


def _max_along(xp, x, windows, axis, out=None):
    lowest = -np.inf if x.dtype in dtypes.FLOATING else np.iinfo(x.dtype).min
    return _reduce_along(xp, xp.maximum, lowest, x, windows, axis, out)


def _max_pool(xp, x, windows, out=None):
    for axis in _axes(windows):
        x = _max_along(xp, x, windows, axis, out if axis == 0 else None)
    return x


def _hits(xp, x, y, windows, axis):
    """Yields, for each tap along one axis, whether it reads the first cell of x equal to y."""
    taken = None
    for positions, cells in windows.tap_slices_along(axis, x.shape[axis + 1]):
        hit = x[cells] == y[positions]
        if hit.shape != y.shape:
            hit = full_with_slice(xp, hit, y.shape, positions, False)
        if taken is not None:
            hit = xp.greater(hit, taken)
        yield hit
        taken = hit if taken is None else taken | hit


def _scatter(xp, g, x, windows, out=None):
    """Returns `g` at the cells of `x` that are the largest, else 0."""
    levels = [x]
    for axis in _axes(windows):
        levels.append(_max_along(xp, levels[-1], windows, axis))
    # Multiplying by booleans is much faster than `where`, and correct for finite values.
    is_fast = xp is np and g.dtype in _FAST and np.isfinite(np.add.reduce(g, axis=None))
    for axis in range(windows.ndim):
        y, x = levels.pop(), levels[-1]
        target = out if axis == windows.ndim - 1 else None
        hits = zip(
            windows.tap_slices_along(axis, x.shape[axis + 1]),
            _hits(xp, x, y, windows, axis),
            strict=True,
        )
        if is_fast and windows.tiles(axis, x.shape[axis + 1]):
            g = _write_once(g, hits, x.shape, target)
            continue
        result = _zeros(xp, x.shape, g.dtype, target)
        for (positions, cells), hit in hits:
            part, hit = g[positions], hit[positions]
            kept = part * hit if is_fast else xp.where(hit, part, part.dtype.type(0))
            result = add_to_slice(xp, result, cells, kept)
        g = result
    return g


def _write_once(g, hits, shape, out):
    """Returns `g` at the hits, for windows that do not overlap."""
    y = np.empty(shape, g.dtype) if out is None else out
    for (_, cells), hit in hits:
        np.multiply(g, hit, out=y[cells])
    return y


def _zeros(xp, shape, dtype, out):
    if out is None:
        return xp.zeros(shape, dtype)
    out.fill(0)
    return out


_FAST = frozenset({np.dtype(np.float32), np.dtype(np.float64)})


def _gather(xp, t, x, windows):
    """Returns the elements of `t` at the cells of `x` that are the largest."""
    for axis in _axes(windows):
        y = _max_along(xp, x, windows, axis)
        gathered = xp.zeros(y.shape, t.dtype)
        parts = _cells_by_tap(xp, t, windows, axis, 0)
        for cells, hit in zip(parts, _hits(xp, x, y, windows, axis), strict=True):
            gathered = xp.where(hit, cells, gathered)
        x, t = y, gathered
    return t


def _max_pool_kernel(xp, x, *, windows):
    if xp is not np:
        return _max_pool(xp, x, windows)
    out = np.empty(_pooled_shape(windows, x), x.dtype)
    return run_in_slices(lambda x, out: _max_pool(np, x, windows, out), out, x)


def _scatter_kernel(xp, g, x, *, windows):
    if xp is not np:
        return _scatter(xp, widen(g), x, windows).astype(g.dtype)
    out = np.empty(x.shape, g.dtype)
    is_fast = g.dtype in _FAST  # others accumulate in float32

    def scatter(g, x, out):
        return _scatter(np, widen(g), x, windows, out if is_fast else None)

    return run_in_slices(scatter, out, g, x)


def _gather_kernel(xp, t, x, *, windows):
    if xp is not np:
        return _gather(xp, t, x, windows)
    out = np.empty(_pooled_shape(windows, x), t.dtype)
    return run_in_slices(lambda t, x, _: _gather(np, t, x, windows), out, t, x)


max_pool = Primitive(
    "max_pool",
    _max_pool_kernel,
    vjps=(lambda g, _y, x, *, windows: max_pool_scatter(g, x, windows=windows),),
    batch=lambda _, x, *, windows: split_batch(max_pool(merge_batch(x), windows=windows), x),
    accepts=dtypes.REAL,
)


def _batch_rule(primitive):
    def batch(batched, *xs, windows):
        xs = broadcast_batched(batched, xs)
        return split_batch(primitive()(*map(merge_batch, xs), windows=windows), xs[0])

    return batch


# Small changes of x do not change which cell is the largest, so the derivative w.r.t. x is 0.

max_pool_scatter = Primitive(  # g at the cells of x that are the largest, other cells 0
    "max_pool_scatter",
    _scatter_kernel,
    vjps=(
        lambda h, _y, _g, x, *, windows: max_pool_gather(h, x, windows=windows),
        lambda _h, _y, _g, x, *, windows: zeros_like(x),  # noqa: ARG005
    ),
    batch=_batch_rule(lambda: max_pool_scatter),
    accepts=dtypes.FLOATING,
)

max_pool_gather = Primitive(  # t at the cells of x that are the largest
    "max_pool_gather",
    _gather_kernel,
    vjps=(
        lambda h, _y, _t, x, *, windows: max_pool_scatter(h, x, windows=windows),
        lambda _h, _y, _t, x, *, windows: zeros_like(x),  # noqa: ARG005
    ),
    batch=_batch_rule(lambda: max_pool_gather),
    accepts=dtypes.FLOATING,
)


def _index_kernel(xp, x, *, windows):
    space = x.shape[1:-1]
    cells = xp.arange(math.prod(space), dtype=np.int64).reshape(1, *space, 1)
    return _gather(xp, xp.broadcast_to(cells, x.shape), x, windows)


max_pool_index = Primitive(  # the flat index of the largest cell, in row-major order
    "max_pool_index",
    _index_kernel,
    vjps=None,
    batch=lambda _, x, *, windows: split_batch(max_pool_index(merge_batch(x), windows=windows), x),
    accepts=dtypes.REAL,
)


def _counts(windows, space, dtype):
    """Returns the number of cells in each window, in a shape that broadcasts against results."""
    counts = np.ones((1,) * (windows.ndim + 2), dtype)
    for axis, (n, positions) in enumerate(zip(space, windows.positions(space), strict=True)):
        along = np.zeros((1, *(1,) * axis, positions, *(1,) * (windows.ndim - axis)), dtype)
        for taps, _ in windows.tap_slices_along(axis, n):
            along[taps] += 1
        counts = counts * along
    return counts


def _average(xp, x, windows):
    counts = _counts(windows, x.shape[1:-1], x.dtype)
    for axis in _axes(windows):
        x = _reduce_along(xp, xp.add, 0, x, windows, axis)
    return x / counts


def _average_transpose(xp, g, windows, space):
    g = g / _counts(windows, space, g.dtype)
    for axis in range(windows.ndim):
        result = xp.zeros((*g.shape[: axis + 1], space[axis], *g.shape[axis + 2 :]), g.dtype)
        for positions, cells in windows.tap_slices_along(axis, space[axis]):
            result = add_to_slice(xp, result, cells, g[positions])
        g = result
    return g


def _average_kernel(xp, x, *, windows):
    if xp is not np:
        return _average(xp, widen(x), windows).astype(x.dtype)
    out = np.empty(_pooled_shape(windows, x), x.dtype)
    return run_in_slices(lambda x, _: _average(np, widen(x), windows), out, x)


def _average_transpose_kernel(xp, g, *, windows, space):
    if xp is not np:
        return _average_transpose(xp, widen(g), windows, space).astype(g.dtype)
    out = np.empty((len(g), *space, g.shape[-1]), g.dtype)
    return run_in_slices(lambda g, _: _average_transpose(np, widen(g), windows, space), out, g)


average_pool = Primitive(
    "average_pool",
    _average_kernel,
    vjps=(
        lambda g, _y, _x, *, windows: average_pool_transpose(
            g, windows=windows, space=tuple(_x.shape[1:-1])
        ),
    ),
    batch=lambda _, x, *, windows: split_batch(average_pool(merge_batch(x), windows=windows), x),
    linear=True,
    accepts=dtypes.FLOATING,
)

average_pool_transpose = Primitive(  # distributes each element of g evenly over its window
    "average_pool_transpose",
    _average_transpose_kernel,
    vjps=(lambda g, _y, _x, *, windows, space: average_pool(g, windows=windows),),  # noqa: ARG005
    batch=lambda _, x, *, windows, space: split_batch(
        average_pool_transpose(merge_batch(x), windows=windows, space=space), x
    ),
    linear=True,
    accepts=dtypes.FLOATING,
)
