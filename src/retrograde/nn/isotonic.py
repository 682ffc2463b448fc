"""Isotonic regression."""

from __future__ import annotations

from typing import Any

import numpy as np

from retrograde.core.apply import apply
from retrograde.core.tensor import Tensor
from retrograde.math._inputs import axis_of, check_dtype
from retrograde.ops._arrays import compute_dtype
from retrograde.ops.arithmetic import maximum
from retrograde.ops.casting import identity, ones_like, to_dtype
from retrograde.ops.conversion import as_tensor
from retrograde.ops.indexing import gather, offset_indices, scatter_add
from retrograde.ops.isotonic import pooled_blocks
from retrograde.ops.shaping import reshape, transpose
from retrograde.values import dtypes

_DTYPES = tuple(d.name for d in dtypes.ALL if d.numpy_dtype in dtypes.REAL)


def isotonic_regression(
    inputs: Any, decreasing: bool = True, axis: Any = -1
) -> tuple[Tensor, Tensor]:
    """Fits the non-increasing sequence along `axis` that is closest to `inputs`.

    Returns the sequence and the block number of each element; within a block all elements are
    replaced by their mean. Without `decreasing` the sequence is non-decreasing. Integers become
    floats.

    >>> y, blocks = tf.nn.isotonic_regression([3.0, 1.0, 2.0])
    >>> y.numpy(), blocks.numpy()
    (array([3. , 1.5, 1.5], dtype=float32), array([0, 1, 1], dtype=int32))
    """
    x = as_tensor(inputs)
    check_dtype(x, _DTYPES, "inputs", "isotonic_regression")
    if x._spec.dtype not in dtypes.FLOATING:
        x = to_dtype(x, np.dtype(np.float64 if x._spec.dtype.itemsize > 2 else np.float32))
    if not x.ndim:
        y, blocks = isotonic_regression(reshape(x, shape=(1,)), decreasing)
        return reshape(y, shape=()), reshape(blocks, shape=())
    axis = axis_of(axis, x, "isotonic_regression")
    perm = (*(i for i in range(x.ndim) if i != axis), axis)
    inverse = tuple(np.argsort(perm).tolist())
    rows = transpose(x, perm=perm)
    blocks = apply(pooled_blocks, (rows if decreasing else -rows,))
    return transpose(_block_means(rows, blocks), perm=inverse), transpose(blocks, perm=inverse)


def _block_means(x: Tensor, blocks: Tensor) -> Tensor:
    """Replaces each element of the last axis by the mean of its block."""
    dtype, shape, size = x._spec.dtype, x._spec.shape, x._spec.size
    if not size:
        return apply(identity, (x,))
    rows = reshape(blocks, shape=(size // shape[-1], shape[-1]))
    segments = reshape(
        apply(offset_indices, (rows,), {"size": shape[-1], "axis": 0}), shape=(size,)
    )
    flat = reshape(to_dtype(x, compute_dtype(dtype)), shape=(size,))
    sums, counts = (scatter_add(v, segments, shape=(size,)) for v in (flat, ones_like(flat)))
    means = sums / apply(maximum, (counts, ones_like(counts)))
    return reshape(to_dtype(gather(means, segments, axis=0), dtype), shape=shape)
