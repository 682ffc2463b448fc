"""Isotonic regression: which neighbours share a value when a sequence must not rise."""

from __future__ import annotations

import numpy as np

from retrograde.core import dtypes
from retrograde.core.dispatch import Primitive
from retrograde.core.rules import Spec
from retrograde.ops._arrays import on_host


def _pooled(x):
    """By pooling adjacent violators, step by step in all rows at once.

    Blocks of neighbours lie on a stack, in each row one. A block that is larger than the one below
    it is merged with it; else the next element comes on top, as a block of its own. Blocks of the
    same value stay apart.
    """
    size = x.shape[-1]
    if not x.size:
        return np.zeros(x.shape, np.int32)
    values = x.reshape(-1, size).astype(np.float64)
    rows, every = len(values), np.arange(len(values))
    sums, counts = np.zeros((rows, size + 1)), np.zeros((rows, size + 1), np.int64)
    top, taken = np.full(rows, -1), np.zeros(rows, np.int64)
    for _ in range(2 * size):
        under = np.maximum(top - 1, 0)
        below, above = sums[every, under], sums[every, top]
        rises = below * counts[every, top] < above * counts[every, under]
        merge = every[(top > 0) & rises]
        push = every[((top <= 0) | ~rises) & (taken < size)]
        sums[merge, top[merge] - 1] += sums[merge, top[merge]]
        counts[merge, top[merge] - 1] += counts[merge, top[merge]]
        counts[merge, top[merge]] = 0
        top[merge] -= 1
        top[push] += 1
        sums[push, top[push]] = values[push, taken[push]]
        counts[push, top[push]] = 1
        taken[push] += 1
    numbers = np.tile(np.arange(size + 1, dtype=np.int32), rows)
    return np.repeat(numbers, counts.ravel()).reshape(x.shape)


pooled_blocks = Primitive(  # the number of its block for each element of the last axis
    "pooled_blocks",
    lambda xp, x: on_host(xp, _pooled, Spec(x.shape, np.dtype(np.int32)), x),
    vjps=None,
    batch=lambda _, x: pooled_blocks(x),
    accepts=dtypes.REAL,
)
