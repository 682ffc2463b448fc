"""Linear maps along one axis with few inputs per output, as in resizing and blurring."""

from __future__ import annotations

import functools
import math
from functools import partial

import numpy as np

from retrograde.core.apply import Primitive
from retrograde.fusion.blocks import run_in_slices
from retrograde.ops._arrays import widen
from retrograde.values import dtypes


class Weights:
    """A sparse matrix with few entries in each row.

    Output i is the sum over k of `factors[i, k]` times the input at `indices[i, k]`, one of `size`
    inputs. Rows with fewer entries are padded with factors of 0.
    """

    def __init__(self, indices, factors, size):
        self.indices = indices
        self.factors = factors
        self.size = size

    @functools.cached_property
    def is_gather(self):
        """Returns whether each output is one of the inputs."""
        return self.indices.shape[1] == 1 and bool((self.factors == 1).all())

    @functools.cached_property
    def matrix(self):
        """The dense matrix."""
        rows = np.arange(len(self.indices))[:, None]
        matrix = np.zeros((len(self.indices), self.size), self.factors.dtype)
        np.add.at(matrix, (rows, self.indices), self.factors)
        return matrix

    @functools.cached_property
    def is_dense(self):
        """Returns whether every output depends on every input, and there are several inputs."""
        return self.size > 1 and self.indices.shape[1] >= self.size and bool(self.matrix.all())

    @functools.cached_property
    def T(self):
        """The transposed matrix."""
        rows, taps = np.nonzero(self.factors)
        columns = self.indices[rows, taps]
        order = np.argsort(columns, kind="stable")
        columns = columns[order]
        counts = np.bincount(columns, minlength=self.size)
        ranks = np.arange(len(columns)) - np.repeat(np.cumsum(counts) - counts, counts)
        shape = (self.size, max(1, counts.max(initial=0)))
        indices, factors = np.zeros(shape, np.int64), np.zeros(shape, self.factors.dtype)
        indices[columns, ranks] = rows[order]
        factors[columns, ranks] = self.factors[rows, taps][order]
        # Padding reads an input that the row reads anyway, so that a NaN elsewhere does not spread.
        indices = np.where(factors == 0, indices[:, :1], indices)
        transposed = Weights(indices, factors, len(self.indices))
        transposed.__dict__["T"] = self
        return transposed


def _resample_kernel(xp, x, *, axis, weights):
    dtype, shape = x.dtype, x.shape
    if weights.is_gather:
        return xp.take(x, weights.indices[:, 0], axis)
    x = widen(x)
    x = x.reshape((math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])))
    if weights.is_dense:
        y = xp.matmul(weights.matrix.astype(x.dtype), x)
    elif xp is np:
        y = _sum_by_blocks(x, weights)
    else:
        factors = weights.factors.astype(x.dtype).T[:, :, None]
        taps = zip(weights.indices.T, factors, strict=True)
        y = sum(xp.take(x, indices, 1) * factor for indices, factor in taps)
    y = y.reshape((*shape[:axis], len(weights.indices), *shape[axis + 1 :]))
    return y if y.dtype == dtype else y.astype(dtype)


_SHORT = 16  # elements: shorter rows are gathered element by element


def _sum_by_blocks(x, weights):
    """Sums, over k, the inputs at the k-th indices of all rows times their factors."""
    outer, size, inner = x.shape
    indices, factors = weights.indices, weights.factors.astype(x.dtype)
    y = np.empty((outer, len(indices), inner), x.dtype)
    if not y.size:
        return y
    if inner < _SHORT:
        steps = np.arange(inner)[:, None]
        indices = (indices[:, None] * inner + steps).reshape(-1, indices.shape[1])
        factors = np.repeat(factors, inner, axis=0)
        kernel = partial(_weighted_sum, indices=indices.T, factors=factors.T)
        run_in_slices(kernel, y.reshape(outer, -1), x.reshape(outer, size * inner))
    elif outer == 1:
        run_in_slices(partial(_weighted_sum_of_rows, x[0]), y[0], indices, factors)
    else:
        kernel = partial(_weighted_sum, indices=indices.T, factors=factors.T[:, :, None])
        run_in_slices(kernel, y, x)
    return y


def _weighted_sum(x, out, *, indices, factors):
    np.take(x, indices[0], 1, out=out, mode="clip")
    out *= factors[0]
    for indices_k, factors_k in zip(indices[1:], factors[1:], strict=True):
        part = np.take(x, indices_k, 1, mode="clip")
        part *= factors_k
        out += part
    return out


def _weighted_sum_of_rows(x, indices, factors, out):
    np.take(x, indices[:, 0], 0, out=out, mode="clip")
    out *= factors[:, :1]
    for k in range(1, indices.shape[1]):
        part = np.take(x, indices[:, k], 0, mode="clip")
        part *= factors[:, k : k + 1]
        out += part
    return out


resample = Primitive(
    "resample",
    _resample_kernel,
    vjps=(lambda g, _y, _x, *, axis, weights: resample(g, axis=axis, weights=weights.T),),
    batch=lambda _, x, *, axis, weights: resample(x, axis=axis + 1, weights=weights),
    linear=True,
    accepts=dtypes.NUMERIC,
)
