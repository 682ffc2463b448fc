"""A linear map along one axis where each output looks at a few inputs: resizing and blurring."""

from __future__ import annotations

import functools
import math
from functools import partial

import numpy as np

from retrograde.core.apply import Primitive
from retrograde.fusion.blocks import over_batch
from retrograde.ops._arrays import widened
from retrograde.values import dtypes


class Weights:
    """A matrix with few entries in each row.

    Output i is the sum over k of `shares[i, k]` times the input at `places[i, k]`, one of `size`
    inputs. Where a row has fewer entries than others, its last shares are 0.
    """

    def __init__(self, places, shares, size):
        self.places = places
        self.shares = shares
        self.size = size

    @functools.cached_property
    def picks(self):
        """Whether each output is just one of the inputs."""
        return self.places.shape[1] == 1 and bool((self.shares == 1).all())

    @functools.cached_property
    def matrix(self):
        """The whole matrix."""
        rows = np.arange(len(self.places))[:, None]
        matrix = np.zeros((len(self.places), self.size), self.shares.dtype)
        np.add.at(matrix, (rows, self.places), self.shares)
        return matrix

    @functools.cached_property
    def full(self):
        """Whether every output looks at every input, of which there are several."""
        return self.size > 1 and self.places.shape[1] >= self.size and bool(self.matrix.all())

    @functools.cached_property
    def T(self):
        """The transposed matrix."""
        rows, taps = np.nonzero(self.shares)
        columns = self.places[rows, taps]
        order = np.argsort(columns, kind="stable")
        columns = columns[order]
        counts = np.bincount(columns, minlength=self.size)
        ranks = np.arange(len(columns)) - np.repeat(np.cumsum(counts) - counts, counts)
        shape = (self.size, max(1, counts.max(initial=0)))
        places, shares = np.zeros(shape, np.int64), np.zeros(shape, self.shares.dtype)
        places[columns, ranks] = rows[order]
        shares[columns, ranks] = self.shares[rows, taps][order]
        # What fills up a row looks where the row looks anyway: a nan elsewhere is none of its own.
        places = np.where(shares == 0, places[:, :1], places)
        transposed = Weights(places, shares, len(self.places))
        transposed.__dict__["T"] = self
        return transposed


def _resample_kernel(xp, x, *, axis, weights):
    dtype, shape = x.dtype, x.shape
    if weights.picks:
        return xp.take(x, weights.places[:, 0], axis)
    x = widened(x)
    x = x.reshape((math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])))
    if weights.full:
        y = xp.matmul(weights.matrix.astype(x.dtype), x)
    elif xp is np:
        y = _sum_by_blocks(x, weights)
    else:
        shares = weights.shares.astype(x.dtype).T[:, :, None]
        taps = zip(weights.places.T, shares, strict=True)
        y = sum(xp.take(x, places, 1) * share for places, share in taps)
    y = y.reshape((*shape[:axis], len(weights.places), *shape[axis + 1 :]))
    return y if y.dtype == dtype else y.astype(dtype)


_SHORT = 16  # runs of fewer elements than this are sooner picked one by one


def _sum_by_blocks(x, weights):
    """For the k-th entries of all rows at once, the inputs there times their shares; summed."""
    outer, size, inner = x.shape
    places, shares = weights.places, weights.shares.astype(x.dtype)
    y = np.empty((outer, len(places), inner), x.dtype)
    if not y.size:
        return y
    if inner < _SHORT:
        steps = np.arange(inner)[:, None]
        places = (places[:, None] * inner + steps).reshape(-1, places.shape[1])
        shares = np.repeat(shares, inner, axis=0)
        taps = partial(_weigh, places=places.T, shares=shares.T)
        over_batch(taps, y.reshape(outer, -1), x.reshape(outer, size * inner))
    elif outer == 1:
        over_batch(partial(_weigh_rows, x[0]), y[0], places, shares)
    else:
        over_batch(partial(_weigh, places=places.T, shares=shares.T[:, :, None]), y, x)
    return y


def _weigh(lines, room, *, places, shares):
    np.take(lines, places[0], 1, out=room, mode="clip")
    room *= shares[0]
    for places_k, shares_k in zip(places[1:], shares[1:], strict=True):
        part = np.take(lines, places_k, 1, mode="clip")
        part *= shares_k
        room += part
    return room


def _weigh_rows(image, places, shares, room):
    np.take(image, places[:, 0], 0, out=room, mode="clip")
    room *= shares[:, :1]
    for k in range(1, places.shape[1]):
        part = np.take(image, places[:, k], 0, mode="clip")
        part *= shares[:, k : k + 1]
        room += part
    return room


resample = Primitive(
    "resample",
    _resample_kernel,
    vjps=(lambda g, _y, _x, *, axis, weights: resample(g, axis=axis, weights=weights.T),),
    batch=lambda _, x, *, axis, weights: resample(x, axis=axis + 1, weights=weights),
    linear=True,
    accepts=dtypes.NUMERIC,
)
