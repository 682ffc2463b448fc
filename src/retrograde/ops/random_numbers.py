"""Random numbers as functions of a seed, the same on NumPy and under XLA.

The generator is Philox with words of 64 bits, as in `numpy.random.Philox`: a block of four words is
a function of a key, the seed, and of a counter. NumPy computes it in C; `_philox` is the same
arithmetic for XLA. Numbers that are rejected and drawn again, as gamma variates are, come from
NumPy in both.

Seeds are pairs of integers along the last axis; axes before it are a batch of seeds, each of which
has numbers of its own.
"""

from __future__ import annotations

import math
import threading

import numpy as np

from retrograde.core.apply import Primitive
from retrograde.core.rules import Spec
from retrograde.ops._arrays import on_host, special, wide
from retrograde.ops._philox import halves
from retrograde.ops.shaping import align, everywhere
from retrograde.values import dtypes

STATELESS = 1 << 62  # the last word of the counter keeps these streams apart from all others


class _Thread(threading.local):
    """One generator for each thread: to set its key takes a tenth of the time of a new one."""

    def __init__(self):
        counter = np.array([0, 0, 0, STATELESS], np.uint64)
        self.philox = np.random.Philox(key=0, counter=counter)
        self.state = self.philox.state

    def restarted(self, key):
        """The generator, about to draw the first numbers of `key`, two words."""
        self.state["state"]["key"] = key
        self.philox.state = self.state
        return self.philox


_thread = _Thread()


def _integers(xp, seed, shape, bits):
    """Unsigned integers of 32 or 64 bits, of `shape` for each seed."""
    batch, count = seed.shape[:-1], math.prod(shape) * bits // 32
    if xp is np:
        keys = seed.astype(np.uint64).reshape(-1, 2)
        rows = [_thread.restarted(key).random_raw(-(-count // 2)) for key in keys]
        words = np.array(rows, "<u8").reshape((*batch, -(-count // 2)))
        numbers = words if bits == 64 else words.view("<u4")[..., :count]
    else:
        numbers = halves(xp, seed, count, STATELESS)
        if bits == 64:
            low, high = (numbers[..., i::2].astype(np.uint64) for i in range(2))
            numbers = high << np.uint64(32) | low
    return numbers.reshape((*batch, *shape))


_FRACTION = {  # how many bits after the point are exact
    dtypes.float16.numpy_dtype: 11,
    dtypes.bfloat16.numpy_dtype: 8,
    dtypes.float32.numpy_dtype: 24,
    dtypes.float64.numpy_dtype: 53,
}


def _uniform_kernel(xp, seed, *, shape, dtype):
    """From 0 up to but without 1."""
    bits, places = 8 * wide(dtype).itemsize, _FRACTION[dtype]
    whole = _integers(xp, seed, shape, bits)
    y = (whole >> whole.dtype.type(bits - places)).astype(wide(dtype)) * 2.0**-places
    return y.astype(dtype, copy=False)


def _tail(xp, seed, shape, dtype, least):
    """Normal variates by the inverse of their distribution function, none less likely than `least`.

    One bit is the sign; the others are a probability below one half.
    """
    bits, places = 8 * dtype.itemsize, _FRACTION[dtype] - 1
    whole = _integers(xp, seed, shape, bits)
    one = whole.dtype.type(1)
    rest = (whole >> whole.dtype.type(bits - places)).astype(dtype) + dtype.type(0.5)
    p = rest * dtype.type((0.5 - least) * 2.0**-places) + dtype.type(least)
    size = -special(xp, "ndtri")(p)
    return xp.where((whole & one) == one, -size, size)


def _normal_kernel(xp, seed, *, shape, dtype):
    return _tail(xp, seed, shape, wide(dtype), 0.0).astype(dtype, copy=False)


_BEYOND_TWO = 0.5 * math.erfc(math.sqrt(2.0))


def _truncated_kernel(xp, seed, *, shape, dtype):
    """None further than two standard deviations from the mean."""
    y = _tail(xp, seed, shape, wide(dtype), _BEYOND_TWO)
    return xp.clip(y, -2, 2).astype(dtype, copy=False)


def _drawing(name, kernel):
    """A primitive `(seed, *, shape, dtype)` of floats."""
    primitive = Primitive(
        name,
        kernel,
        vjps=None,
        batch=lambda _, seed, **attrs: primitive(seed, **attrs),
        accepts=dtypes.INTEGER,
    )
    return primitive


random_uniform = _drawing("random_uniform", _uniform_kernel)
random_normal = _drawing("random_normal", _normal_kernel)
random_truncated_normal = _drawing("random_truncated_normal", _truncated_kernel)


def _with_parameters(name, kernel):
    """A primitive `(seed, *parameters, *, shape, dtype)`; the parameters broadcast to `shape`."""

    def batch(batched, seed, *parameters, shape, dtype):
        seed, *parameters = everywhere(batched, (seed, *parameters))
        parameters = [align(p, len(shape)) for p in parameters]
        return primitive(seed, *parameters, shape=shape, dtype=dtype)

    primitive = Primitive(name, kernel, vjps=None, batch=batch)
    return primitive


def _random_integers_kernel(xp, seed, low, high, *, shape, dtype):
    """From `low` up to but without `high`, which are 64 bits wide."""
    words = _integers(xp, seed, shape, 64)
    span = (high - low).astype(np.uint64)
    return ((words % span).astype(np.int64) + low).astype(dtype)


random_integers = _with_parameters("random_integers", _random_integers_kernel)


def _by_numpy(method):
    """A kernel that draws with a method of NumPy's generator, by a callback if compiled."""

    def kernel(xp, seed, *parameters, shape, dtype):
        whole = (*seed.shape[:-1], *shape)

        def draw(seed, *parameters):
            keys = seed.astype(np.uint64).reshape(-1, 2)
            rows = [np.broadcast_to(p, whole).reshape(len(keys), *shape) for p in parameters]
            drawn = [
                method(np.random.Generator(_thread.restarted(key)), *own)
                for key, *own in zip(keys, *rows, strict=True)
            ]
            return np.array(drawn).reshape(whole).astype(dtype)

        return on_host(xp, draw, Spec(whole, dtype), seed, *parameters)

    return kernel


def _gamma(generator, alpha):
    return generator.standard_gamma(alpha.astype(np.float64))


def _binomial(generator, counts, probabilities):
    return generator.binomial(counts.astype(np.int64), probabilities.astype(np.float64))


random_gamma = _with_parameters("random_gamma", _by_numpy(_gamma))
random_binomial = _with_parameters("random_binomial", _by_numpy(_binomial))
