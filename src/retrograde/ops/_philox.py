"""The generator Philox in arithmetic of 32 bits, which XLA always has.

It is `numpy.random.Philox`: from a key of two words and a counter of four, all of 64 bits, ten
rounds make a block of four random words. A word is a pair here, its high and its low half.
"""

from __future__ import annotations

import numpy as np

_MULTIPLIERS = 0xD2E7470EE14C6C93, 0xCA5A826395121157
_STEPS = 0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B  # from the key of one round to that of the next
_ROUNDS = 10
_SHORT = np.uint32(0xFFFF)
_SIXTEEN = np.uint32(16)


def halves(xp, seed, count, stream):
    """`count` random integers of 32 bits for each seed, a pair of integers along its last axis.

    `stream` is the last word of the counter. Of each word the low half comes first.
    """
    blocks = -(-count // 8)
    words = _blocks(xp, _key(xp, seed), blocks, stream, seed.shape[:-1])
    parts = [half for high, low in words for half in (low, high)]
    return xp.stack(parts, -1).reshape((*seed.shape[:-1], 8 * blocks))[..., :count]


def _key(xp, seed):
    """The two words of a key, each with an axis for the blocks."""
    low = seed.astype(np.uint32)
    if seed.dtype.itemsize == 8:
        high = (seed >> 32).astype(np.uint32)
    else:
        high = xp.where(seed < 0, np.uint32(0xFFFFFFFF), np.uint32(0))
    return [(high[..., i : i + 1], low[..., i : i + 1]) for i in range(2)]


def _halves_of(number):
    return np.uint32(number >> 32 & 0xFFFFFFFF), np.uint32(number & 0xFFFFFFFF)


def _blocks(xp, key, count, stream, batch):
    """The four words of each block."""
    import jax

    zero = xp.zeros((*batch, count), np.uint32)
    high, low = _halves_of(stream)
    # NumPy, too, counts on before it draws.
    words = [(zero, zero + xp.arange(1, count + 1, dtype=np.uint32)), (zero, zero), (zero, zero)]
    words.append((zero + high, zero + low))

    def one_round(_, state):
        words, (k0, k1) = state
        high0, low0 = _product(words[0], _MULTIPLIERS[0])
        high1, low1 = _product(words[2], _MULTIPLIERS[1])
        words = [_xor(high1, words[1], k0), low1, _xor(high0, words[3], k1), low0]
        return words, [_sum(k, step) for k, step in zip((k0, k1), _STEPS, strict=True)]

    # A loop, for XLA takes minutes to compile the rounds one after the other.
    return jax.lax.fori_loop(0, _ROUNDS, one_round, (words, key))[0]


def _xor(*words):
    return tuple(a ^ b ^ c for a, b, c in zip(*words, strict=True))


def _sum(word, number):
    """A word plus a number, modulo 2 ** 64."""
    high, low = _halves_of(number)
    total, carry = _carried(word[1], low)
    return word[0] + high + carry, total


def _carried(a, b):
    """A sum, and 1 where it is beyond 32 bits."""
    total = a + b
    return total, (total < a).astype(np.uint32)


def _product(word, number):
    """The high and the low word of a product, by that of halves."""
    m_high, m_low = _halves_of(number)
    high, low = word
    top0, first = _product_of_halves(low, m_low)
    top1, low1 = _product_of_halves(low, m_high)
    top2, low2 = _product_of_halves(high, m_low)
    top3, low3 = _product_of_halves(high, m_high)
    second, carry1 = _carried(top0, low1)
    second, carry2 = _carried(second, low2)
    third, carry3 = _carried(top1, top2)
    third, carry4 = _carried(third, low3)
    third, carry5 = _carried(third, carry1 + carry2)
    fourth = top3 + carry3 + carry4 + carry5
    return (fourth, third), (second, first)


def _product_of_halves(a, b):
    """The high and the low half of a product, by that of quarters."""
    a_high, a_low, b_high, b_low = a >> _SIXTEEN, a & _SHORT, b >> _SIXTEEN, b & _SHORT
    first, second = a_low * b_high, a_high * b_low
    middle = (a_low * b_low >> _SIXTEEN) + (first & _SHORT) + (second & _SHORT)
    high = a_high * b_high + (first >> _SIXTEEN) + (second >> _SIXTEEN) + (middle >> _SIXTEEN)
    return high, a * b
