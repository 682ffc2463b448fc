"""Reductions over segments: the rows of x that have the same id.

`ids` has the segment of each row. Segment sums are `scatter_add`.
"""

from __future__ import annotations

import math

import numpy as np

from retrograde.core.apply import Primitive
from retrograde.ops._arrays import numpy_dtype_of, sum_at, widen
from retrograde.ops._families import conj
from retrograde.ops.arithmetic import equal, select
from retrograde.ops.casting import cast, ones_like, zeros_like
from retrograde.ops.indexing import argsort, gather, offset_indices, scatter_add
from retrograde.ops.shaping import broadcast_batched, concat, reshape, take_slice, transpose
from retrograde.values import dtypes
from retrograde.values.arguments import shown
from retrograde.values.errors import invalid


def _row_kernel(xp, ids, *, num_segments):
    if xp is np and ids.size and ids.max() >= num_segments:
        index = tuple(int(i) for i in np.argwhere(ids >= num_segments)[0])
        raise invalid(
            f"segment_ids{shown(list(index))} = {ids[index]} is not in [0, {num_segments}). Only "
            "negative ids are ignored."
        )
    return xp.where(ids < 0, np.array(num_segments, ids.dtype), ids)


segment_rows = Primitive(  # replaces negative ids, which are ignored, with num_segments
    "segment_rows",
    _row_kernel,
    vjps=None,
    batch=lambda _, ids, *, num_segments: segment_rows(ids, num_segments=num_segments),
    accepts=dtypes.INTEGER,
)


# Sorted segments


def _sorted_segments(x, ids):
    """Returns the rows of x sorted by id, the start of each segment, and its id."""
    if not (ids[1:] >= ids[:-1]).all():
        order = np.argsort(ids, kind="stable")
        x, ids = x[order], ids[order]
    starts = np.flatnonzero(np.concatenate([[True], ids[1:] != ids[:-1]]))
    return x, starts, ids[starts]


def _reduce_segments(xp, name, x, ids, num_segments, start, empty):
    """Reduces each segment with the ufunc `name`. The result of an empty segment is `empty`."""
    shape = (num_segments, *x.shape[1:])
    if xp is np:
        y = np.full(shape, empty, x.dtype)
        if x.size:
            rows, starts, present = _sorted_segments(x, ids)
            y[present] = getattr(np, name).reduceat(rows, starts, axis=0)
        return y
    method = {"maximum": "max", "minimum": "min"}.get(name, name)
    y = getattr(xp.full(shape, start, x.dtype).at[ids], method)(x)
    present = xp.zeros(num_segments, bool).at[ids].set(True)
    return xp.where(present.reshape((-1,) + (1,) * (x.ndim - 1)), y, xp.asarray(empty, x.dtype))


def _batch(primitive):
    """Creates the batch rule. Batches with separate ids are concatenated, with offset ids."""

    def batch(batched, x, ids, *, num_segments, **attrs):
        if batched == (True, False):
            moved = transpose(x, perm=(1, 0, *range(2, x.ndim)))
            y = primitive(moved, ids, num_segments=num_segments, **attrs)
            return transpose(y, perm=(1, 0, *range(2, y.ndim)))
        x, ids = broadcast_batched(batched, (x, ids))
        size, count = ids.shape
        rows = reshape(x, shape=(size * count, *x.shape[2:]))
        segments = reshape(offset_indices(ids, size=num_segments, axis=0), shape=(size * count,))
        y = primitive(rows, segments, num_segments=size * num_segments, **attrs)
        return reshape(y, shape=(size, y.shape[0] // size, *y.shape[1:]))

    return batch


def _extreme(name, function, identity):
    """Creates `segment_max` or `segment_min`. The result of an empty segment is `empty`."""

    def kernel(xp, x, ids, *, num_segments, empty):
        start = identity if x.dtype.kind not in "iu" else _limit(x.dtype, identity)
        return _reduce_segments(xp, function, x, ids, num_segments, start, empty)

    def rule(g, y, x, ids, *, num_segments, **_):
        """Shares the gradient evenly among the elements that tie."""
        dtype = numpy_dtype_of(g)
        hits = cast(equal(x, gather(y, ids, axis=0)), dtype=dtype)
        ties = scatter_add(hits, ids, shape=(num_segments, *x.shape[1:]))
        return hits * gather(g / ties, ids, axis=0)

    primitive = Primitive(name, kernel, vjps=(rule, None), batch=None)
    primitive.batch = _batch(primitive)
    return primitive


def _limit(dtype, identity):
    return np.iinfo(dtype).min if identity < 0 else np.iinfo(dtype).max


segment_max = _extreme("segment_max", "maximum", -math.inf)
segment_min = _extreme("segment_min", "minimum", math.inf)


# Products


def _prod_kernel(xp, x, ids, *, num_segments):
    y = _reduce_segments(xp, "multiply", widen(x), ids, num_segments, 1, 1)
    return y.astype(x.dtype, copy=False)


def _others_kernel(xp, x, ids, *, num_segments):
    """Divides the product of nonzero rows by the row itself; 0 where another row is zero."""
    zero = x == 0
    usable = xp.where(zero, 1, widen(x))
    product = _reduce_segments(xp, "multiply", usable, ids, num_segments, 1, 1)
    zeros = sum_at(xp, zero.astype(np.float32), ids, product.shape)
    others = xp.where(zeros[ids] == zero, product[ids] / usable, 0)
    return others.astype(x.dtype)


def _others_vjp(h, _y, x, ids, **_):
    """Sums, over the other rows, h times the product of all rows but these two.

    It combines sums over the rows before with products of the rows after, and the reverse. There is
    no division, so any number of zeros is handled exactly.
    """
    order = argsort(ids, axis=0, descending=False)
    inverse_order = argsort(order, axis=0, descending=False)
    ids, x, h = (gather(v, order, axis=0) for v in (ids, conj(x), h))
    before, after = (_running_products(x, h, ids, sign) for sign in (1, -1))
    return gather(before[1] * after[0] + before[0] * after[1], inverse_order, axis=0)


def _running_products(p, q, ids, sign):
    """Returns the products p of the rows before (or after) each row.

    Also returns the sums, over these rows, of the product with one factor replaced by its q. Uses
    recursive doubling: after each step, a row includes the last 2, 4, 8, ... rows of its segment.
    """
    p, q = _shift_rows(p, ids, sign, ones_like), _shift_rows(q, ids, sign, zeros_like)
    reach = 1
    while reach < p.shape[0]:
        p_far = _shift_rows(p, ids, sign * reach, ones_like)
        q = q * p_far + p * _shift_rows(q, ids, sign * reach, zeros_like)
        p = p * p_far
        reach *= 2
    return p, q


def _shift_rows(x, ids, by, fill):
    """Shifts rows within their segment by `by`. `fill` creates the new rows."""
    count, ahead = x.shape[0], min(abs(by), x.shape[0])

    def part(v, start, stop):
        return take_slice(v, where=((start, stop, 1), *((0, n, 1) for n in v.shape[1:])))

    kept, dropped = ((0, count - ahead), (count - ahead, count))
    if by < 0:
        kept, dropped = (ahead, count), (0, ahead)
    y = [fill(part(x, *dropped)), part(x, *kept)]
    from_ids = [part(ids, *dropped) * 0 - 1, part(ids, *kept)]
    if by < 0:
        y, from_ids = y[::-1], from_ids[::-1]
    same_segment = equal(concat(*from_ids, axis=0), ids)
    same_segment = reshape(same_segment, shape=(count,) + (1,) * (x.ndim - 1))
    y = concat(*y, axis=0)
    return select(same_segment, y, fill(y))


segment_others = Primitive(  # for each row, the product of the other rows of its segment
    "segment_others",
    _others_kernel,
    vjps=(_others_vjp, None),
    batch=None,
)
segment_others.batch = _batch(segment_others)

segment_prod = Primitive(
    "segment_prod",
    _prod_kernel,
    vjps=(
        lambda g, _y, x, ids, **attrs: (
            gather(g, ids, axis=0) * segment_others(conj(x), ids, **attrs)
        ),
        None,
    ),
    batch=None,
)
segment_prod.batch = _batch(segment_prod)
