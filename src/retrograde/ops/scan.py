"""Running along one axis: sums, products and their like, and linear recurrences."""

from __future__ import annotations

import math

from retrograde.core.apply import Primitive
from retrograde.ops import shaping
from retrograde.ops._arrays import wide, widened
from retrograde.ops._families import conj
from retrograde.ops.arithmetic import mask, select
from retrograde.ops.casting import ones_like, zeros_like
from retrograde.ops.elementary import exp
from retrograde.ops.shaping import concat, everywhere, put_slice, take_slice
from retrograde.values import dtypes


def _span(x, axis, start, stop):
    """The strided slice of `x` from `start` to `stop` along `axis`."""
    whole = tuple((0, n, 1) for n in x.shape)
    return (*whole[:axis], (start, stop, 1), *whole[axis + 1 :])


def _before(x, axis, reverse):
    """In each place, the element met just before it on the way along `axis`; 0 at the start."""
    n = x.shape[axis]
    early, late = _span(x, axis, 0, max(n - 1, 0)), _span(x, axis, min(1, n), n)
    source, target = (late, early) if reverse else (early, late)
    return put_slice(take_slice(x, where=source), shape=tuple(x.shape), where=target)


def _delayed(x, axis, start):
    """`x` moved on by one place along `axis`; `start` makes the first element of ones."""
    if not x.shape[axis]:
        return x
    head = take_slice(x, where=_span(x, axis, 0, 1))
    rest = take_slice(x, where=_span(x, axis, 0, x.shape[axis] - 1))
    return concat(start(head), rest, axis=axis)


def along(primitive, x, *, axis, exclusive, reverse):
    """`cumprod` or `cumulative_logsumexp` of `x`, from the other end or without the element itself.

    What comes before the first element is the product, or the logarithm of the sum, of nothing.
    """
    if reverse:
        x = shaping.reverse(x, axis=(axis,))
    if exclusive:
        nothing = ones_like if primitive is cumprod else _minus_infinity
        x = _delayed(x, axis, nothing)
    y = primitive(x, axis=axis)
    return shaping.reverse(y, axis=(axis,)) if reverse else y


def _minus_infinity(x):
    return zeros_like(x) - math.inf


def _cumsum_kernel(xp, x, *, axis, exclusive, reverse):
    if reverse:
        x = xp.flip(x, axis)
    y = xp.cumsum(x, axis=axis, dtype=wide(x.dtype)).astype(x.dtype, copy=False)
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
    """By doubling: after each step an element holds what the last 2, 4, 8, ... contribute."""
    a, y = xp.moveaxis(factor, axis, 0), xp.moveaxis(x, axis, 0)
    if reverse:
        a, y = xp.flip(a, 0), xp.flip(y, 0)
    reach = 1
    while reach < x.shape[axis]:
        y = xp.concatenate([y[:reach], y[reach:] + a[reach:] * y[:-reach]])
        a = xp.concatenate([a[:reach], a[reach:] * a[:-reach]])
        reach *= 2
    return xp.moveaxis(xp.flip(y, 0) if reverse else y, 0, axis)


def _back(g, factor, axis, reverse):
    """What reaches each place from all that come after it: the same recurrence, the other way."""
    after = _before(conj(factor), axis, not reverse)
    return recurrence(after, g, axis=axis, reverse=not reverse)


recurrence = Primitive(  # y[k] = x[k] + factor[k] * y[k - 1]; with `reverse`, y[k + 1]
    "recurrence",
    _recurrence_kernel,
    vjps=(
        lambda g, y, factor, _x, *, axis, reverse: (
            _back(g, factor, axis, reverse) * conj(_before(y, axis, reverse))
        ),
        lambda g, _y, factor, _x, *, axis, reverse: _back(g, factor, axis, reverse),
    ),
    batch=lambda batched, *xs, axis, reverse: recurrence(
        *everywhere(batched, xs), axis=axis + 1, reverse=reverse
    ),
    accepts=dtypes.NUMERIC,
)


def _cumprod_kernel(xp, x, *, axis):
    return xp.cumprod(x, axis=axis, dtype=wide(x.dtype)).astype(x.dtype, copy=False)


def _cumprod_vjp(g, y, x, *, axis):
    """The product of all before, times what the products of those after make of it.

    Nothing is divided, so zeros are no trouble.
    """
    return _back(g, x, axis, False) * conj(_delayed(y, axis, ones_like))


cumprod = Primitive(
    "cumprod",
    _cumprod_kernel,
    vjps=(_cumprod_vjp,),
    batch=lambda _, x, *, axis: cumprod(x, axis=axis + 1),
    accepts=dtypes.NUMERIC,
)


def _cumulative_logsumexp_kernel(xp, x, *, axis):
    return xp.logaddexp.accumulate(widened(x), axis=axis).astype(x.dtype, copy=False)


def _cumulative_logsumexp_vjp(g, y, x, *, axis):
    """Sums of g[i] * exp(x[k] - y[i]) over i >= k, from quotients that never exceed 1."""
    live = y > -math.inf
    following = _before(y, axis, True)
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
