"""TensorFlow's string hashes, bit for bit: FarmHash, MurmurHash and SipHash."""

from __future__ import annotations

from functools import lru_cache

_MASK = (1 << 64) - 1
_K0 = 0xC3A5C85C97CB3127
_K1 = 0xB492B66FBE98F273
_K2 = 0x9AE16A3B2F90404F
_MURMUR = 0xC6A4A7935BD1E995


@lru_cache(maxsize=1 << 14)
def fingerprint64(data: bytes) -> int:
    """Returns the FarmHash fingerprint of a byte string, a 64-bit integer.

    There are separate formulas for up to 16, 32 and 64 bytes. Longer strings are processed in
    blocks of 64 bytes.
    """
    size = len(data)
    if size <= 16:
        return _up_to_16(data, size)
    if size <= 32:
        return _up_to_32(data, size)
    if size <= 64:
        return _up_to_64(data, size)
    return _over_64(data, size)


def combine_fingerprints(first: int, second: int) -> int:
    """Returns one fingerprint of an ordered pair of fingerprints."""
    result = (first ^ _MURMUR) ^ (_shift_mix(second * _MURMUR & _MASK) * _MURMUR & _MASK)
    result = result * _MURMUR & _MASK
    return _shift_mix(_shift_mix(result) * _MURMUR & _MASK)


def _word(data: bytes, offset: int, size: int = 8) -> int:
    return int.from_bytes(data[offset : offset + size], "little")


def _rotate_right(x: int, by: int) -> int:
    x &= _MASK
    return (x >> by | x << (64 - by)) & _MASK


def _shift_mix(x: int) -> int:
    return x ^ (x >> 47)


def _mix(u: int, v: int, factor: int) -> int:
    a = _shift_mix(((u ^ v) & _MASK) * factor & _MASK)
    b = _shift_mix(((v & _MASK) ^ a) * factor & _MASK)
    return b * factor & _MASK


def _up_to_16(data: bytes, size: int) -> int:
    factor = _K2 + 2 * size
    if size >= 8:
        a, b = _word(data, 0) + _K2, _word(data, size - 8)
        return _mix(_rotate_right(b, 37) * factor + a, (_rotate_right(a, 25) + b) * factor, factor)
    if size >= 4:
        return _mix(size + (_word(data, 0, 4) << 3), _word(data, size - 4, 4), factor)
    if not size:
        return _K2
    y = data[0] + (data[size >> 1] << 8)
    z = size + (data[-1] << 2)
    return _shift_mix((y * _K2 ^ z * _K0) & _MASK) * _K2 & _MASK


def _up_to_32(data: bytes, size: int) -> int:
    factor = _K2 + 2 * size
    a, b = _word(data, 0) * _K1, _word(data, 8)
    c, d = _word(data, size - 8) * factor, _word(data, size - 16) * _K2
    return _mix(
        _rotate_right(a + b, 43) + _rotate_right(c, 30) + d,
        a + _rotate_right(b + _K2, 18) + c,
        factor,
    )


def _up_to_64(data: bytes, size: int) -> int:
    factor = _K2 + 2 * size
    a, b = _word(data, 0) * _K2, _word(data, 8)
    c, d = _word(data, size - 8) * factor, _word(data, size - 16) * _K2
    y = _rotate_right(a + b, 43) + _rotate_right(c, 30) + d
    z = _mix(y, a + _rotate_right(b + _K2, 18) + c, factor)
    e, f = _word(data, 16) * factor, _word(data, 24)
    g, h = (y + _word(data, size - 32)) * factor, (z + _word(data, size - 24)) * factor
    return _mix(
        _rotate_right(e + f, 43) + _rotate_right(g, 30) + h,
        e + _rotate_right(f + a, 18) + g,
        factor,
    )


def _over_64(data: bytes, size: int) -> int:
    x, y = 81, 81 * _K1 + 113
    z = _shift_mix((y * _K2 + 113) & _MASK) * _K2 & _MASK
    x = x * _K2 + _word(data, 0)
    state = (x, y, z, (0, 0), (0, 0))
    for offset in range(0, (size - 1) // 64 * 64, 64):
        state = _mix_block(data, offset, state, _K1, 1)
    x, y, z, v, w = state
    factor = _K1 + ((z & 0xFF) << 1)
    w0 = w[0] + ((size - 1) & 63)
    v = (v[0] + w0, v[1])
    w = (w0 + v[0], w[1])
    x, y, z, v, w = _mix_block(data, size - 64, (x, y, z, v, w), factor, 9)
    return _mix(
        _mix(v[0], w[0], factor) + _shift_mix(y & _MASK) * _K0 + z,
        _mix(v[1], w[1], factor) + x,
        factor,
    )


def _mix_block(data: bytes, offset: int, state: tuple, factor: int, weight: int) -> tuple:
    """Returns the state after one block, with x and z swapped."""
    x, y, z, v, w = state
    x = _rotate_right(x + y + v[0] + _word(data, offset + 8), 37) * factor
    y = _rotate_right(y + v[1] + _word(data, offset + 48), 42) * factor
    x = (x ^ w[1] * weight) & _MASK
    y = (y + v[0] * weight + _word(data, offset + 40)) & _MASK
    z = _rotate_right(z + w[0], 33) * factor & _MASK
    v = _hash_32_bytes(data, offset, v[1] * factor, x + w[0])
    w = _hash_32_bytes(data, offset + 32, z + w[1], y + _word(data, offset + 16))
    return z, y, x, v, w


def _hash_32_bytes(data: bytes, offset: int, a: int, b: int) -> tuple[int, int]:
    """Returns two hashes of 32 bytes."""
    first, second, third, fourth = (_word(data, offset + 8 * i) for i in range(4))
    a += first
    b = _rotate_right(b + a + fourth, 21)
    total = a + second + third
    return (total + fourth) & _MASK, (b + _rotate_right(total, 44) + a) & _MASK


def murmur64(data: bytes, seed: int = 0xDECAFCAFFE) -> int:
    """Returns the MurmurHash64A of `data`, by default with the seed of older TensorFlow ops."""
    h = (seed ^ len(data) * _MURMUR) & _MASK
    words_end = len(data) // 8 * 8
    for offset in range(0, words_end, 8):
        word = _shift_mix(_word(data, offset) * _MURMUR & _MASK) * _MURMUR & _MASK
        h = (h ^ word) * _MURMUR & _MASK
    if words_end < len(data):
        h = (h ^ _word(data, words_end)) * _MURMUR & _MASK
    return _shift_mix(_shift_mix(h) * _MURMUR & _MASK)


def siphash64(data: bytes, key: tuple[int, int]) -> int:
    """Returns the SipHash-2-4 of `data`, a keyed hash that resists chosen collisions."""
    k0, k1 = (k & _MASK for k in key)
    state = (
        k0 ^ 0x736F6D6570736575,
        k1 ^ 0x646F72616E646F6D,
        k0 ^ 0x6C7967656E657261,
        k1 ^ 0x7465646279746573,
    )
    words_end = len(data) // 8 * 8
    words = [_word(data, offset) for offset in range(0, words_end, 8)]
    words.append(_word(data, words_end) | (len(data) & 0xFF) << 56)
    for word in words:
        a, b, c, d = state
        a, b, c, d = _sip_round(_sip_round((a, b, c, d ^ word)))
        state = (a ^ word, b, c, d)
    a, b, c, d = state
    state = (a, b, c ^ 0xFF, d)
    for _ in range(4):
        state = _sip_round(state)
    a, b, c, d = state
    return a ^ b ^ c ^ d


def _sip_round(state: tuple) -> tuple:
    """Returns the state after one SipRound."""
    a, b, c, d = state
    a, c = (a + b) & _MASK, (c + d) & _MASK
    b, d = _rotate_right(b, 51) ^ a, _rotate_right(d, 48) ^ c
    a = _rotate_right(a, 32)
    c, a = (c + b) & _MASK, (a + d) & _MASK
    b, d = _rotate_right(b, 47) ^ c, _rotate_right(d, 43) ^ a
    return a, b, _rotate_right(c, 32), d
