"""The Philox generator in 32-bit arithmetic, for XLA without 64-bit dtypes.

It matches `numpy.random.Philox`: from a key of two 64-bit words and a counter of four, ten rounds
compute a block of four random words. Here a word is a pair of its high and low 32 bits.
"""

from __future__ import annotations

import numpy as np

_MULTIPLIERS = 0xD2E7470EE14C6C93, 0xCA5A826395121157
_STEPS = 0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B  # added to the key after each round
_ROUNDS = 10
_SHORT = np.uint32(0xFFFF)
_SIXTEEN = np.uint32(16)


def random_uint32(xp, seed, count, stream):
    """Returns `count` random uint32 for each seed, a pair of integers along the last axis.

    `stream` is the last word of the counter. The low half of each word comes first.
    """
    blocks = -(-count // 8)
    words = _blocks(xp, _key(xp, seed), blocks, stream, seed.shape[:-1])
    parts = [half for high, low in words for half in (low, high)]
    return xp.stack(parts, -1).reshape((*seed.shape[:-1], 8 * blocks))[..., :count]


def _key(xp, seed):
    """Returns the two words of a key, each with an axis for the blocks."""
    low = seed.astype(np.uint32)
    if seed.dtype.itemsize == 8:
        high = (seed >> 32).astype(np.uint32)
    else:
        high = xp.where(seed < 0, np.uint32(0xFFFFFFFF), np.uint32(0))
    return [(high[..., i : i + 1], low[..., i : i + 1]) for i in range(2)]


def _high_and_low(number):
    return np.uint32(number >> 32 & 0xFFFFFFFF), np.uint32(number & 0xFFFFFFFF)


def _blocks(xp, key, count, stream, batch):
    """Returns the four words of each block."""
    import jax

    zero = xp.zeros((*batch, count), np.uint32)
    high, low = _high_and_low(stream)
    # NumPy also increments the counter before it draws.
    words = [(zero, zero + xp.arange(1, count + 1, dtype=np.uint32)), (zero, zero), (zero, zero)]
    words.append((zero + high, zero + low))

    def one_round(_, state):
        words, (k0, k1) = state
        high0, low0 = _multiply_64(words[0], _MULTIPLIERS[0])
        high1, low1 = _multiply_64(words[2], _MULTIPLIERS[1])
        words = [_xor(high1, words[1], k0), low1, _xor(high0, words[3], k1), low0]
        return words, [_add(k, step) for k, step in zip((k0, k1), _STEPS, strict=True)]

    # In a loop, because XLA takes minutes to compile the unrolled rounds.
    return jax.lax.fori_loop(0, _ROUNDS, one_round, (words, key))[0]


def _xor(*words):
    return tuple(a ^ b ^ c for a, b, c in zip(*words, strict=True))


def _add(word, number):
    """Returns a word plus a number, modulo 2 ** 64."""
    high, low = _high_and_low(number)
    total, carry = _add_with_carry(word[1], low)
    return word[0] + high + carry, total


def _add_with_carry(a, b):
    """Returns a sum modulo 2 ** 32, and its carry."""
    total = a + b
    return total, (total < a).astype(np.uint32)


def _multiply_64(word, number):
    """Returns the high and the low word of a 128-bit product."""
    m_high, m_low = _high_and_low(number)
    high, low = word
    top0, first = _multiply_32(low, m_low)
    top1, low1 = _multiply_32(low, m_high)
    top2, low2 = _multiply_32(high, m_low)
    top3, low3 = _multiply_32(high, m_high)
    second, carry1 = _add_with_carry(top0, low1)
    second, carry2 = _add_with_carry(second, low2)
    third, carry3 = _add_with_carry(top1, top2)
    third, carry4 = _add_with_carry(third, low3)
    third, carry5 = _add_with_carry(third, carry1 + carry2)
    fourth = top3 + carry3 + carry4 + carry5
    return (fourth, third), (second, first)


def _multiply_32(a, b):
    """Returns the high and the low half of a 64-bit product."""
    a_high, a_low, b_high, b_low = a >> _SIXTEEN, a & _SHORT, b >> _SIXTEEN, b & _SHORT
    first, second = a_low * b_high, a_high * b_low
    middle = (a_low * b_low >> _SIXTEEN) + (first & _SHORT) + (second & _SHORT)
    high = a_high * b_high + (first >> _SIXTEEN) + (second >> _SIXTEEN) + (middle >> _SIXTEEN)
    return high, a * b
