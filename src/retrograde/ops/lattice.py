"""Paths through a lattice of times and states, as in connectionist temporal classification (CTC).

At each time step a path advances by 0, 1 or 2 states. Time is the first axis of arrays, and states
are the last. Weights and penalties have one more axis in front, of size 3, for the kind of step.
"""

from __future__ import annotations

from retrograde.core.apply import Primitive
from retrograde.ops._arrays import add_to_slice, scan_over_time, widen
from retrograde.ops.normalization import softmax
from retrograde.ops.shaping import (
    broadcast_batched,
    put_slice,
    reshape,
    stack,
    take_slice,
    transpose,
)
from retrograde.values import dtypes

STEPS = 3
NEVER = -1e30  # log(0), but finite, so that differences are not NaN


def _predecessors(xp, x):
    """Returns, stacked, the elements 0, 1 and 2 states before each state; 0 before the first."""
    zeros = xp.zeros((*x.shape[:-1], STEPS - 1), x.dtype)
    padded = xp.concatenate([zeros, x], -1)
    size = x.shape[-1]
    return xp.stack([padded[..., 2 - k : 2 - k + size] for k in range(STEPS)])


def _predecessors_transpose(xp, x):
    """Computes the transpose of `_predecessors`. `x` may be overwritten."""
    y, size = x[0], x.shape[-1]
    rows = (slice(None),) * (y.ndim - 1)
    for k in range(1, min(STEPS, size)):
        y = add_to_slice(xp, y, (*rows, slice(0, size - k)), x[k][..., k:])
    return y


def _lattice_recurrence_kernel(xp, weights, x, *, reverse):
    w, x = xp.moveaxis(widen(weights), 1, 0), widen(x)
    dtype = weights.dtype

    def forward(y, inputs):
        x, w = inputs
        y = x + xp.sum(w * _predecessors(xp, y), 0)
        return y, y

    def backward(later, inputs):
        x, w = inputs
        y = x + later
        return _predecessors_transpose(xp, w * y), y

    start = xp.zeros(x.shape[1:], x.dtype)
    step = backward if reverse else forward
    return scan_over_time(xp, step, start, (x, w), reverse).astype(dtype)


def _step_sources(x):
    """Returns, for each kind of step, the element of `x` where it starts; 0 if there is none."""
    shape = tuple(x.shape)
    time, *middle, states = shape
    full = [(0, n, 1) for n in middle]
    parts = []
    for k in range(STEPS):
        count, ahead = max(time - 1, 0), max(states - k, 0)
        source = ((0, count, 1), *full, (0, ahead, 1))
        target = ((time - count, time, 1), *full, (states - ahead, states, 1))
        parts.append(put_slice(take_slice(x, where=source), shape=shape, where=target))
    return stack(*parts, axis=0)


def _lattice_recurrence_weights_vjp(g, y, weights, _x, *, reverse):
    pulled = lattice_recurrence(weights, g, reverse=not reverse)
    earlier, later = (pulled, y) if reverse else (y, pulled)
    return _step_sources(earlier) * reshape(later, shape=(1, *later.shape))


def _move_batch_axis(x, axis):
    """Moves the batch axis of `x` from the front to `axis`."""
    return transpose(x, perm=(*range(1, axis + 1), 0, *range(axis + 1, x.ndim)))


def _lattice_recurrence_batch(batched, weights, x, *, reverse):
    weights, x = broadcast_batched(batched, (weights, x))
    weights, x = _move_batch_axis(weights, 2), _move_batch_axis(x, 1)
    return _move_batch_axis(lattice_recurrence(weights, x, reverse=reverse), 1)


# y[t, s] = x[t, s] + the sum over k of weights[k, t, s] * y[t - 1, s - k]; `reverse`: the transpose
lattice_recurrence = Primitive(
    "lattice_recurrence",
    _lattice_recurrence_kernel,
    vjps=(
        _lattice_recurrence_weights_vjp,
        lambda g, _y, weights, _x, *, reverse: lattice_recurrence(weights, g, reverse=not reverse),
    ),
    batch=_lattice_recurrence_batch,
    accepts=dtypes.FLOATING,
)


def _path_log_sums_kernel(xp, x, penalty):
    """Sums over paths that start in state 0, one time step before the first."""
    logs, penalty = widen(x), widen(penalty)

    def forward(y, inputs):
        arriving = _predecessors(xp, y) + penalty
        top = xp.max(arriving, 0)
        y = inputs[0] + top + xp.log(xp.sum(xp.exp(arriving - top), 0))
        return y, y

    outside = xp.arange(x.shape[-1]) > 0
    start = xp.broadcast_to(xp.where(outside, NEVER, 0).astype(logs.dtype), logs.shape[1:])
    return scan_over_time(xp, forward, start, (logs,), False).astype(x.dtype)


def _path_log_sums_vjp(g, y, _x, penalty):
    """Distributes g over the predecessors of each state, by their share of its sum."""
    shares = softmax(
        _step_sources(y) + reshape(penalty, shape=(STEPS, 1, *penalty.shape[1:])), axis=0
    )
    return lattice_recurrence(shares, g, reverse=True)


def _path_log_sums_batch(batched, x, penalty):
    x, penalty = broadcast_batched(batched, (x, penalty))
    y = path_log_sums(_move_batch_axis(x, 1), _move_batch_axis(penalty, 1))
    return _move_batch_axis(y, 1)


# The log of the sum, over all paths to a state, of exp(sum of x and penalties along the path).
path_log_sums = Primitive(
    "path_log_sums",
    _path_log_sums_kernel,
    vjps=(_path_log_sums_vjp, None),
    batch=_path_log_sums_batch,
    accepts=dtypes.FLOATING,
)
