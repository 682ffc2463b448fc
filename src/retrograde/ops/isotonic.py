"""Isotonic regression of non-increasing sequences."""

from __future__ import annotations

import numpy as np

from retrograde.core.apply import Primitive
from retrograde.core.rules import Spec
from retrograde.ops._arrays import on_host
from retrograde.values import dtypes


def _pool_adjacent_violators(x):
    """Returns the block index of each element, by pooling adjacent violators.

    Each pass merges all neighboring blocks whose mean increases, in all rows, until none are left.
    Blocks with equal means are not merged.
    """
    size = x.shape[-1]
    sums, counts = x.astype(np.float64).ravel(), np.ones(x.size, np.int64)
    starts = np.arange(x.size)
    while True:
        means = sums / counts
        rises = (means[1:] > means[:-1]) & (starts[1:] % size != 0)
        if not rises.any():
            break
        kept = np.flatnonzero(np.append(True, ~rises))
        sums, counts = np.add.reduceat(sums, kept), np.add.reduceat(counts, kept)
        starts = starts[kept]
    begins = np.zeros(x.size, np.int32)
    begins[starts] = 1
    return np.cumsum(begins.reshape(x.shape), axis=-1, dtype=np.int32) - np.int32(1)


pooled_blocks = Primitive(  # the index of the block of each element of the last axis
    "pooled_blocks",
    lambda xp, x: on_host(xp, _pool_adjacent_violators, Spec(x.shape, np.dtype(np.int32)), x),
    vjps=None,
    batch=lambda _, x: pooled_blocks(x),
    accepts=dtypes.REAL,
)
