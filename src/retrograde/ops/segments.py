"""Reductions over segments: the rows of x that have the same id.

`ids`, along one axis, says of each row which segment it belongs to. Sums are `scatter_add`.
"""

from __future__ import annotations

import math

import numpy as np

from retrograde.core.apply import Primitive
from retrograde.ops._arrays import sum_at, widened
from retrograde.ops._families import conj
from retrograde.ops.arithmetic import equal, select
from retrograde.ops.casting import cast, ones_like, zeros_like
from retrograde.ops.indexing import argsort, gather, offset, scatter_add
from retrograde.ops.shaping import concat, everywhere, reshape, take_slice, transpose
from retrograde.values import dtypes
from retrograde.values.arguments import shown
from retrograde.values.errors import invalid


def _row_kernel(xp, ids, *, num_segments):
    if xp is np and ids.size and ids.max() >= num_segments:
        place = tuple(int(i) for i in np.argwhere(ids >= num_segments)[0])
        raise invalid(
            f"segment_ids{shown(list(place))} = {ids[place]} is not in [0, {num_segments}), and "
            "not negative, which would leave the row out."
        )
    return xp.where(ids < 0, np.array(num_segments, ids.dtype), ids)


segment_rows = Primitive(  # ids that do not count, the negative ones, become the last
    "segment_rows",
    _row_kernel,
    vjps=None,
    batch=lambda _, ids, *, num_segments: segment_rows(ids, num_segments=num_segments),
    accepts=dtypes.INTEGER,
)


# Segments, laid out one behind the other


def _laid_out(x, ids):
    """The rows of x in the order of their ids; where each segment begins; and its id."""
    if not (ids[1:] >= ids[:-1]).all():
        order = np.argsort(ids, kind="stable")
        x, ids = x[order], ids[order]
    starts = np.flatnonzero(np.concatenate([[True], ids[1:] != ids[:-1]]))
    return x, starts, ids[starts]


def _reduced_at(xp, name, x, ids, num_segments, start, empty):
    """`np.maximum`, `np.minimum` or `np.multiply` over each segment, from `start`; or `empty`."""
    shape = (num_segments, *x.shape[1:])
    if xp is np:
        y = np.full(shape, empty, x.dtype)
        if x.size:
            rows, starts, present = _laid_out(x, ids)
            y[present] = getattr(np, name).reduceat(rows, starts, axis=0)
        return y
    method = {"maximum": "max", "minimum": "min"}.get(name, name)
    y = getattr(xp.full(shape, start, x.dtype).at[ids], method)(x)
    present = xp.zeros(num_segments, bool).at[ids].set(True)
    return xp.where(present.reshape((-1,) + (1,) * (x.ndim - 1)), y, xp.asarray(empty, x.dtype))


def _batch(primitive):
    """All batches at once: side by side, or one behind the other if they have ids of their own."""

    def batch(batched, x, ids, *, num_segments, **attrs):
        if batched == (True, False):
            moved = transpose(x, perm=(1, 0, *range(2, x.ndim)))
            y = primitive(moved, ids, num_segments=num_segments, **attrs)
            return transpose(y, perm=(1, 0, *range(2, y.ndim)))
        x, ids = everywhere(batched, (x, ids))
        size, count = ids.shape
        rows = reshape(x, shape=(size * count, *x.shape[2:]))
        places = reshape(offset(ids, size=num_segments, axis=0), shape=(size * count,))
        y = primitive(rows, places, num_segments=size * num_segments, **attrs)
        return reshape(y, shape=(size, y.shape[0] // size, *y.shape[1:]))

    return batch


def _extreme(name, function, worst):
    """`segment_max` or `segment_min`, which is `empty` where a segment is."""

    def kernel(xp, x, ids, *, num_segments, empty):
        start = worst if x.dtype.kind not in "iu" else _limit(x.dtype, worst)
        return _reduced_at(xp, function, x, ids, num_segments, start, empty)

    def rule(g, y, x, ids, *, num_segments, **_):
        """Shared evenly among all that tie."""
        dtype = getattr(g.dtype, "numpy_dtype", g.dtype)
        hits = cast(equal(x, gather(y, ids, axis=0)), dtype=dtype)
        ties = scatter_add(hits, ids, shape=(num_segments, *x.shape[1:]))
        return hits * gather(g / ties, ids, axis=0)

    primitive = Primitive(name, kernel, vjps=(rule, None), batch=None)
    primitive.batch = _batch(primitive)
    return primitive


def _limit(dtype, worst):
    return np.iinfo(dtype).min if worst < 0 else np.iinfo(dtype).max


segment_max = _extreme("segment_max", "maximum", -math.inf)
segment_min = _extreme("segment_min", "minimum", math.inf)


# Products


def _prod_kernel(xp, x, ids, *, num_segments):
    y = _reduced_at(xp, "multiply", widened(x), ids, num_segments, 1, 1)
    return y.astype(x.dtype, copy=False)


def _others_kernel(xp, x, ids, *, num_segments):
    """The product of what is not zero, over the row itself; 0 where another row is zero."""
    zero = x == 0
    usable = xp.where(zero, 1, widened(x))
    product = _reduced_at(xp, "multiply", usable, ids, num_segments, 1, 1)
    zeros = sum_at(xp, zero.astype(np.float32), ids, product.shape)
    others = xp.where(zeros[ids] == zero, product[ids] / usable, 0)
    return others.astype(x.dtype)


def _others_vjp(h, _y, x, ids, **_):
    """The sum over the other rows of h times the product of all but these two.

    It is that of the rows before, with the product of those behind, and the reverse. Nothing is
    divided, so zeros are no trouble, however many there are.
    """
    order = argsort(ids, axis=0, descending=False)
    back = argsort(order, axis=0, descending=False)
    ids, x, h = (gather(v, order, axis=0) for v in (ids, conj(x), h))
    before, behind = (_running(x, h, ids, sign) for sign in (1, -1))
    return gather(before[1] * behind[0] + before[0] * behind[1], back, axis=0)


def _running(p, q, ids, sign):
    """Products p of the rows before each one (or behind it), and the sums of such with one h.

    By doubling: after each step a row holds what the last 1, 2, 4, ... rows of its segment make.
    """
    p, q = _moved(p, ids, sign, ones_like), _moved(q, ids, sign, zeros_like)
    reach = 1
    while reach < p.shape[0]:
        p_far = _moved(p, ids, sign * reach, ones_like)
        q = q * p_far + p * _moved(q, ids, sign * reach, zeros_like)
        p = p * p_far
        reach *= 2
    return p, q


def _moved(x, ids, by, fill):
    """Rows moved on by so many places within their segment; what comes in is made by `fill`."""
    count, ahead = x.shape[0], min(abs(by), x.shape[0])

    def part(v, start, stop):
        return take_slice(v, where=((start, stop, 1), *((0, n, 1) for n in v.shape[1:])))

    kept, lost = ((0, count - ahead), (count - ahead, count))
    if by < 0:
        kept, lost = (ahead, count), (0, ahead)
    y = [fill(part(x, *lost)), part(x, *kept)]
    from_ids = [part(ids, *lost) * 0 - 1, part(ids, *kept)]
    if by < 0:
        y, from_ids = y[::-1], from_ids[::-1]
    same = equal(concat(*from_ids, axis=0), ids)
    same = reshape(same, shape=(count,) + (1,) * (x.ndim - 1))
    y = concat(*y, axis=0)
    return select(same, y, fill(y))


segment_others = Primitive(  # in each place, the product of the other rows of its segment
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
