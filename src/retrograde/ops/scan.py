"""Cumulative sums, products and logsumexp, and linear recurrences, along one axis."""

from __future__ import annotations

import math

from retrograde.core.apply import Primitive
from retrograde.ops import shaping
from retrograde.ops._arrays import compute_dtype, widen
from retrograde.ops._families import conj
from retrograde.ops.arithmetic import mask, select
from retrograde.ops.casting import ones_like, zeros_like
from retrograde.ops.elementary import exp
from retrograde.ops.shaping import broadcast_batched, concat, put_slice, take_slice
from retrograde.values import dtypes


def _span(x, axis, start, stop):
    """Returns the strided slice of `x` from `start` to `stop` along `axis`."""
    full = tuple((0, n, 1) for n in x.shape)
    return (*full[:axis], (start, stop, 1), *full[axis + 1 :])


def _previous(x, axis, reverse):
    """Returns, for each element, the previous one along `axis`; 0 for the first."""
    n = x.shape[axis]
    early, late = _span(x, axis, 0, max(n - 1, 0)), _span(x, axis, min(1, n), n)
    source, target = (late, early) if reverse else (early, late)
    return put_slice(take_slice(x, where=source), shape=tuple(x.shape), where=target)


def _delay(x, axis, start):
    """Shifts `x` by one along `axis`. The new first element is `start` of the old one."""
    if not x.shape[axis]:
        return x
    head = take_slice(x, where=_span(x, axis, 0, 1))
    rest = take_slice(x, where=_span(x, axis, 0, x.shape[axis] - 1))
    return concat(start(head), rest, axis=axis)


def directed_scan(primitive, x, *, axis, exclusive, reverse):
    """Computes `cumprod` or `cumulative_logsumexp`, optionally reversed or exclusive.

    The first result of an exclusive scan is the empty product, or the logarithm of an empty sum.
    """
    if reverse:
        x = shaping.reverse(x, axis=(axis,))
    if exclusive:
        empty = ones_like if primitive is cumprod else _minus_infinity
        x = _delay(x, axis, empty)
    y = primitive(x, axis=axis)
    return shaping.reverse(y, axis=(axis,)) if reverse else y


def _minus_infinity(x):
    return zeros_like(x) - math.inf


def _cumsum_kernel(xp, x, *, axis, exclusive, reverse):
    if reverse:
        x = xp.flip(x, axis)
    y = xp.cumsum(x, axis=axis, dtype=compute_dtype(x.dtype)).astype(x.dtype, copy=False)
    if exclusive and x.shape[axis]:
        kept = (slice(None),) * axis
        head = xp.zeros_like(y[(*kept, slice(0, 1))])
        y = xp.concatenate([head, y[(*kept, slice(0, -1))]], axis)
    return xp.flip(y, axis) if reverse else y


cumsum = Primitive(
    "cumsum",
    _cumsum_kernel,
    vjps=(
        lambda g, _y, _x, *, axis, exclusive, reverse: cumsum(
            g, axis=axis, exclusive=exclusive, reverse=not reverse
        ),
    ),
    batch=lambda _, x, *, axis, **attrs: cumsum(x, axis=axis + 1, **attrs),
    linear=True,
    accepts=dtypes.NUMERIC,
)


def _recurrence_kernel(xp, factor, x, *, axis, reverse):
    """Uses recursive doubling: after each step, elements include the last 2, 4, 8, ... terms."""
    a, y = xp.moveaxis(factor, axis, 0), xp.moveaxis(x, axis, 0)
    if reverse:
        a, y = xp.flip(a, 0), xp.flip(y, 0)
    reach = 1
    while reach < x.shape[axis]:
        y = xp.concatenate([y[:reach], y[reach:] + a[reach:] * y[:-reach]])
        a = xp.concatenate([a[:reach], a[reach:] * a[:-reach]])
        reach *= 2
    return xp.moveaxis(xp.flip(y, 0) if reverse else y, 0, axis)


def _transposed_recurrence(g, factor, axis, reverse):
    """Computes the transpose of a recurrence: the same recurrence in the other direction."""
    following = _previous(conj(factor), axis, not reverse)
    return recurrence(following, g, axis=axis, reverse=not reverse)


recurrence = Primitive(  # y[k] = x[k] + factor[k] * y[k - 1]; with `reverse`, y[k + 1]
    "recurrence",
    _recurrence_kernel,
    vjps=(
        lambda g, y, factor, _x, *, axis, reverse: (
            _transposed_recurrence(g, factor, axis, reverse) * conj(_previous(y, axis, reverse))
        ),
        lambda g, _y, factor, _x, *, axis, reverse: _transposed_recurrence(
            g, factor, axis, reverse
        ),
    ),
    batch=lambda batched, *xs, axis, reverse: recurrence(
        *broadcast_batched(batched, xs), axis=axis + 1, reverse=reverse
    ),
    accepts=dtypes.NUMERIC,
)


def _cumprod_kernel(xp, x, *, axis):
    return xp.cumprod(x, axis=axis, dtype=compute_dtype(x.dtype)).astype(x.dtype, copy=False)


def _cumprod_vjp(g, y, x, *, axis):
    """Multiplies the product of the previous elements by a recurrence over the following ones.

    There is no division, so zeros are handled exactly.
    """
    return _transposed_recurrence(g, x, axis, False) * conj(_delay(y, axis, ones_like))


cumprod = Primitive(
    "cumprod",
    _cumprod_kernel,
    vjps=(_cumprod_vjp,),
    batch=lambda _, x, *, axis: cumprod(x, axis=axis + 1),
    accepts=dtypes.NUMERIC,
)


def _cumulative_logsumexp_kernel(xp, x, *, axis):
    return xp.logaddexp.accumulate(widen(x), axis=axis).astype(x.dtype, copy=False)


def _cumulative_logsumexp_vjp(g, y, x, *, axis):
    """Sums g[i] * exp(x[k] - y[i]) over i >= k, with exponentials that never exceed 1."""
    live = y > -math.inf
    following = _previous(y, axis, True)
    quotient = exp(select(live, y - following, zeros_like(y)))
    total = recurrence(quotient, g, axis=axis, reverse=True)
    return mask(total, live) * exp(select(live, x - y, zeros_like(y)))


cumulative_logsumexp = Primitive(
    "cumulative_logsumexp",
    _cumulative_logsumexp_kernel,
    vjps=(_cumulative_logsumexp_vjp,),
    batch=lambda _, x, *, axis: cumulative_logsumexp(x, axis=axis + 1),
    accepts=dtypes.FLOATING,
)
