"""Random numbers as functions of a seed, the same on NumPy and under XLA.

The generator is Philox with words of 64 bits, as in `numpy.random.Philox`: a block of four words is
a function of a key, the seed, and of a counter. NumPy computes it in C; `_blocks` is the same
arithmetic for XLA. Numbers that are rejected and drawn again, as gamma variates are, come from
NumPy in both.

Seeds are pairs of integers along the last axis; axes before it are a batch of seeds, each of which
has numbers of its own.
"""

from __future__ import annotations

import math
import threading

import numpy as np

from retrograde.core import dtypes
from retrograde.core.dispatch import Primitive
from retrograde.core.rules import Spec
from retrograde.ops._arrays import on_host, special, wide
from retrograde.ops.shaping import align, everywhere

STATELESS = 1 << 62  # the last word of the counter keeps these streams apart from all others

_MULTIPLIERS = 0xD2E7470EE14C6C93, 0xCA5A826395121157
_STEPS = 0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B  # from the key of one round to that of the next
_ROUNDS = 10
_LOW = np.uint64(0xFFFFFFFF)
_HALF_WORD = np.uint64(32)


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


def _words(xp, seed, count):
    """`count` words of 64 bits for each seed, along a last axis."""
    if xp is np:
        keys = seed.astype(np.uint64).reshape(-1, 2)
        rows = [_thread.restarted(key).random_raw(count) for key in keys]
        return np.array(rows, np.uint64).reshape((*seed.shape[:-1], count))
    blocks = -(-count // 4)
    words = _blocks(xp, seed.astype(np.uint64), blocks)
    return xp.stack(words, -1).reshape((*seed.shape[:-1], 4 * blocks))[..., :count]


def _blocks(xp, key, count):
    """The four words of each block, by the rounds of Philox."""
    zero = xp.zeros((*key.shape[:-1], count), np.uint64)
    words = (zero + xp.arange(1, count + 1, dtype=np.uint64), zero, zero, zero + STATELESS)
    keys = key[..., :1], key[..., 1:]
    for number in range(_ROUNDS):
        k0, k1 = (
            k + np.uint64(number * step % (1 << 64)) for k, step in zip(keys, _STEPS, strict=True)
        )
        high0, low0 = _product(words[0], _MULTIPLIERS[0])
        high1, low1 = _product(words[2], _MULTIPLIERS[1])
        words = (high1 ^ words[1] ^ k0, low1, high0 ^ words[3] ^ k1, low0)
    return words


def _product(x, number):
    """The high and the low word of a product of words."""
    high, low = np.uint64(number >> 32), np.uint64(number & 0xFFFFFFFF)
    x_high, x_low = x >> _HALF_WORD, x & _LOW
    middle = high * x_low + (low * x_low >> _HALF_WORD)
    carried = low * x_high + (middle & _LOW)
    top = high * x_high + (middle >> _HALF_WORD) + (carried >> _HALF_WORD)
    return top, x * np.uint64(number)


def _integers(xp, seed, shape, dtype):
    """Random unsigned integers, as wide as a float of `dtype`; and how many bits they have."""
    count = math.prod(shape)
    if dtype.itemsize == 8:
        return _words(xp, seed, count).reshape((*seed.shape[:-1], *shape)), 64
    words = _words(xp, seed, -(-count // 2))
    if xp is np:
        halves = words.astype("<u8", copy=False).view("<u4")
    else:
        halves = xp.stack([words & _LOW, words >> _HALF_WORD], -1).astype(np.uint32)
        halves = halves.reshape((*seed.shape[:-1], 2 * words.shape[-1]))
    return halves[..., :count].reshape((*seed.shape[:-1], *shape)), 32


_FRACTION = {  # how many bits after the point are exact
    dtypes.float16.numpy_dtype: 11,
    dtypes.bfloat16.numpy_dtype: 8,
    dtypes.float32.numpy_dtype: 24,
    dtypes.float64.numpy_dtype: 53,
}


def _uniform_kernel(xp, seed, *, shape, dtype):
    """From 0 up to but without 1."""
    whole, bits = _integers(xp, seed, shape, wide(dtype))
    places = _FRACTION[dtype]
    y = (whole >> whole.dtype.type(bits - places)).astype(wide(dtype)) * 2.0**-places
    return y.astype(dtype, copy=False)


def _tail(xp, seed, shape, dtype, least):
    """Normal variates by the inverse of their distribution function, none less likely than `least`.

    One bit is the sign; the others are a probability below one half.
    """
    whole, bits = _integers(xp, seed, shape, dtype)
    one = whole.dtype.type(1)
    places = _FRACTION[dtype] - 1
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
    words = _words(xp, seed, math.prod(shape)).reshape((*seed.shape[:-1], *shape))
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
