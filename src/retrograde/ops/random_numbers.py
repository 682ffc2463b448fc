"""Random numbers as functions of a seed, the same on NumPy and under XLA.

The generator is 64-bit Philox, as in `numpy.random.Philox`: a block of four words is a function of
a key, which is the seed, and a counter. NumPy computes it in C; `_philox` is the same arithmetic
for XLA. Distributions that need rejection sampling, such as gamma, always use NumPy.

Seeds are pairs of integers along the last axis. Leading axes are a batch of seeds, each with its
own numbers.
"""

from __future__ import annotations

import math
import threading

import numpy as np

from retrograde.core.apply import Primitive
from retrograde.core.rules import Spec
from retrograde.ops._arrays import compute_dtype, on_host, special_function
from retrograde.ops._philox import random_uint32
from retrograde.ops.shaping import align, broadcast_batched
from retrograde.values import dtypes

STATELESS = 1 << 62  # the last word of the counter, which no other stream uses


class _Thread(threading.local):
    """One generator per thread. Setting its key takes a tenth of the time of creating one."""

    def __init__(self):
        counter = np.array([0, 0, 0, STATELESS], np.uint64)
        self.philox = np.random.Philox(key=0, counter=counter)
        self.state = self.philox.state

    def reset_to(self, key):
        """Returns the generator, reset to the start of the stream of `key`, two words."""
        self.state["state"]["key"] = key
        self.philox.state = self.state
        return self.philox


_thread = _Thread()


def _integers(xp, seed, shape, bits):
    """Returns random unsigned integers of 32 or 64 bits, of `shape` for each seed."""
    batch, count = seed.shape[:-1], math.prod(shape) * bits // 32
    if xp is np:
        keys = seed.astype(np.uint64).reshape(-1, 2)
        rows = [_thread.reset_to(key).random_raw(-(-count // 2)) for key in keys]
        words = np.asarray(rows[0] if len(rows) == 1 else rows, "<u8")
        words = words.reshape((*batch, -(-count // 2)))
        numbers = words if bits == 64 else words.view("<u4")[..., :count]
    else:
        numbers = random_uint32(xp, seed, count, STATELESS)
        if bits == 64:
            low, high = (numbers[..., i::2].astype(np.uint64) for i in range(2))
            numbers = high << np.uint64(32) | low
    return numbers.reshape((*batch, *shape))


_BLOCK = 1 << 15  # words that fit into the processor's cache


def _floats(xp, seed, shape, dtype, from_words):
    """Returns random floats of `shape` for each seed. `from_words` converts unsigned integers.

    Large arrays are computed in blocks.
    """
    bits, count = 8 * dtype.itemsize, math.prod(shape)
    if xp is not np or seed.ndim > 1 or count <= _BLOCK:
        return from_words(_integers(xp, seed, shape, bits))
    philox = _thread.reset_to(seed.astype(np.uint64))
    y = np.empty(count, dtype)
    for start in range(0, count, _BLOCK):
        part = y[start : start + _BLOCK]
        words = philox.random_raw(-(-part.size * bits // 64)).astype("<u8", copy=False)
        part[:] = from_words(words if bits == 64 else words.view("<u4")[: part.size])
    return y.reshape(shape)


_FRACTION = {  # the number of random bits in a number from [0, 1)
    dtypes.float16.numpy_dtype: 11,
    dtypes.bfloat16.numpy_dtype: 8,
    dtypes.float32.numpy_dtype: 24,
    dtypes.float64.numpy_dtype: 53,
}


def _uniform_kernel(xp, seed, *, shape, dtype):
    """Draws uniform numbers from [0, 1)."""
    wide, precision = compute_dtype(dtype), _FRACTION[dtype]

    def from_words(words):
        shift = words.dtype.type(8 * wide.itemsize - precision)
        return (words >> shift).astype(wide) * 2.0**-precision

    return _floats(xp, seed, shape, wide, from_words).astype(dtype, copy=False)


def _normal_by_inverse_cdf(xp, seed, shape, dtype, tail_probability):
    """Draws normal numbers by the inverse CDF, without tails of `tail_probability` on each side.

    One bit is the sign. The others are a probability below one half.
    """
    precision = _FRACTION[dtype] - 1
    scale = dtype.type((0.5 - tail_probability) * 2.0**-precision)
    inverse_cdf = special_function(xp, "ndtri")

    def from_words(words):
        one = words.dtype.type(1)
        shift = words.dtype.type(8 * dtype.itemsize - precision)
        rest = (words >> shift).astype(dtype) + dtype.type(0.5)
        size = -inverse_cdf(rest * scale + dtype.type(tail_probability))
        return xp.where((words & one) == one, -size, size)

    return _floats(xp, seed, shape, dtype, from_words)


def _normal_kernel(xp, seed, *, shape, dtype):
    return _normal_by_inverse_cdf(xp, seed, shape, compute_dtype(dtype), 0.0).astype(
        dtype, copy=False
    )


_BEYOND_TWO = 0.5 * math.erfc(math.sqrt(2.0))


def _truncated_kernel(xp, seed, *, shape, dtype):
    """Draws normal numbers within two standard deviations of the mean."""
    y = _normal_by_inverse_cdf(xp, seed, shape, compute_dtype(dtype), _BEYOND_TWO)
    return xp.clip(y, -2, 2).astype(dtype, copy=False)


def _random_primitive(name, kernel):
    """Creates a primitive `(seed, *, shape, dtype)` of floats."""
    primitive = Primitive(
        name,
        kernel,
        vjps=None,
        batch=lambda _, seed, **attrs: primitive(seed, **attrs),
        accepts=dtypes.INTEGER,
    )
    return primitive


random_uniform = _random_primitive("random_uniform", _uniform_kernel)
random_normal = _random_primitive("random_normal", _normal_kernel)
random_truncated_normal = _random_primitive("random_truncated_normal", _truncated_kernel)


def _random_primitive_with_parameters(name, kernel):
    """Creates a primitive `(seed, *parameters, *, shape, dtype)`."""

    def batch(batched, seed, *parameters, shape, dtype):
        seed, *parameters = broadcast_batched(batched, (seed, *parameters))
        parameters = [align(p, len(shape)) for p in parameters]
        return primitive(seed, *parameters, shape=shape, dtype=dtype)

    primitive = Primitive(name, kernel, vjps=None, batch=batch)
    return primitive


def _random_integers_kernel(xp, seed, low, high, *, shape, dtype):
    """Draws integers from [low, high). Both bounds are 64-bit integers."""
    words = _integers(xp, seed, shape, 64)
    span = (high - low).astype(np.uint64)
    return ((words % span).astype(np.int64) + low).astype(dtype)


random_integers = _random_primitive_with_parameters("random_integers", _random_integers_kernel)


def _numpy_kernel(method):
    """Creates a kernel that draws with a method of `numpy.random.Generator`, on the host."""

    def kernel(xp, seed, *parameters, shape, dtype):
        full_shape = (*seed.shape[:-1], *shape)

        def draw(seed, *parameters):
            keys = seed.astype(np.uint64).reshape(-1, 2)
            rows = [np.broadcast_to(p, full_shape).reshape(len(keys), *shape) for p in parameters]
            drawn = [
                method(np.random.Generator(_thread.reset_to(key)), *own)
                for key, *own in zip(keys, *rows, strict=True)
            ]
            return np.array(drawn).reshape(full_shape).astype(dtype)

        return on_host(xp, draw, Spec(full_shape, dtype), seed, *parameters)

    return kernel


def _gamma(generator, alpha):
    return generator.standard_gamma(alpha.astype(np.float64))


def _binomial(generator, counts, probabilities):
    return generator.binomial(counts.astype(np.int64), probabilities.astype(np.float64))


random_gamma = _random_primitive_with_parameters("random_gamma", _numpy_kernel(_gamma))
random_binomial = _random_primitive_with_parameters("random_binomial", _numpy_kernel(_binomial))
