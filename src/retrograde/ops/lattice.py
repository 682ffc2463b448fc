"""Paths through a lattice of time and states, as in connectionist temporal classification.

From one time to the next a path stays in its state, or goes on to the next one or the one after
that: by 0, 1 or 2 places. Arrays have the time in front and the states last; those with a weight
or a penalty for each kind of step have one more axis in front, of size 3.
"""

from __future__ import annotations

from retrograde.core.apply import Primitive
from retrograde.ops._arrays import add_part, along_time, widened
from retrograde.ops.normalization import softmax
from retrograde.ops.shaping import everywhere, put_slice, reshape, stack, take_slice, transpose
from retrograde.values import dtypes

STEPS = 3
NEVER = -1e30  # the logarithm of no probability at all, but such that differences are numbers


def _came_from(xp, x):
    """In each place of the last axis what lies 0, 1 and 2 places before it; 0 beyond the start."""
    zeros = xp.zeros((*x.shape[:-1], STEPS - 1), x.dtype)
    padded = xp.concatenate([zeros, x], -1)
    size = x.shape[-1]
    return xp.stack([padded[..., 2 - k : 2 - k + size] for k in range(STEPS)])


def _goes_to(xp, x):
    """The transpose of `_came_from`; `x` is ours to change."""
    y, size = x[0], x.shape[-1]
    rows = (slice(None),) * (y.ndim - 1)
    for k in range(1, min(STEPS, size)):
        y = add_part(xp, y, (*rows, slice(0, size - k)), x[k][..., k:])
    return y


def _spread_kernel(xp, weights, x, *, reverse):
    """Time by time, from where the last has come."""
    w, x = xp.moveaxis(widened(weights), 1, 0), widened(x)
    dtype = weights.dtype

    def onwards(y, at):
        x, w = at
        y = x + xp.sum(w * _came_from(xp, y), 0)
        return y, y

    def back(later, at):
        x, w = at
        y = x + later
        return _goes_to(xp, w * y), y

    start = xp.zeros(x.shape[1:], x.dtype)
    step = back if reverse else onwards
    return along_time(xp, step, start, (x, w), reverse).astype(dtype)


def _before(x):
    """For each kind of step, where it starts: one time earlier, in an earlier place; else 0."""
    shape = tuple(x.shape)
    time, *middle, states = shape
    whole = [(0, n, 1) for n in middle]
    parts = []
    for k in range(STEPS):
        count, ahead = max(time - 1, 0), max(states - k, 0)
        source = ((0, count, 1), *whole, (0, ahead, 1))
        target = ((time - count, time, 1), *whole, (states - ahead, states, 1))
        parts.append(put_slice(take_slice(x, where=source), shape=shape, where=target))
    return stack(*parts, axis=0)


def _spread_weights_vjp(g, y, weights, _x, *, reverse):
    pulled = spread(weights, g, reverse=not reverse)
    earlier, later = (pulled, y) if reverse else (y, pulled)
    return _before(earlier) * reshape(later, shape=(1, *later.shape))


def _batch_behind_time(x, axis):
    """`x` with its batch axis moved from the front to `axis`."""
    return transpose(x, perm=(*range(1, axis + 1), 0, *range(axis + 1, x.ndim)))


def _spread_batch(batched, weights, x, *, reverse):
    weights, x = everywhere(batched, (weights, x))
    weights, x = _batch_behind_time(weights, 2), _batch_behind_time(x, 1)
    return _batch_behind_time(spread(weights, x, reverse=reverse), 1)


# y[t] = x[t] + the sum of weights[k, t] * y[t - 1], k places earlier; with `reverse`, the transpose
spread = Primitive(
    "spread",
    _spread_kernel,
    vjps=(
        _spread_weights_vjp,
        lambda g, _y, weights, _x, *, reverse: spread(weights, g, reverse=not reverse),
    ),
    batch=_spread_batch,
    accepts=dtypes.FLOATING,
)


def _path_sums_kernel(xp, x, penalty):
    """A path begins one time before the first, in state 0."""
    logs, fine = widened(x), widened(penalty)

    def onwards(y, at):
        arriving = _came_from(xp, y) + fine
        top = xp.max(arriving, 0)
        y = at[0] + top + xp.log(xp.sum(xp.exp(arriving - top), 0))
        return y, y

    outside = xp.arange(x.shape[-1]) > 0
    start = xp.broadcast_to(xp.where(outside, NEVER, 0).astype(logs.dtype), logs.shape[1:])
    return along_time(xp, onwards, start, (logs,), False).astype(x.dtype)


def _path_sums_vjp(g, y, _x, penalty):
    """Each state hands g on to those it was reached from, by their share in its sum."""
    shares = softmax(_before(y) + reshape(penalty, shape=(STEPS, 1, *penalty.shape[1:])), axis=0)
    return spread(shares, g, reverse=True)


def _path_sums_batch(batched, x, penalty):
    x, penalty = everywhere(batched, (x, penalty))
    y = path_sums(_batch_behind_time(x, 1), _batch_behind_time(penalty, 1))
    return _batch_behind_time(y, 1)


# The logarithm of the sum of exp(all x along the path, with penalties), over all paths to a state.
path_sums = Primitive(
    "path_sums",
    _path_sums_kernel,
    vjps=(_path_sums_vjp, None),
    batch=_path_sums_batch,
    accepts=dtypes.FLOATING,
)
