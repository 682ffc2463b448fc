"""CRC-32C, the checksum of event files, TFRecord files and TensorFlow's checkpoints."""

from __future__ import annotations

import functools

import numpy as np

_POLYNOMIAL = 0x82F63B78  # Castagnoli polynomial, least significant bit first
_CHUNK = 1024  # bytes whose contributions are looked up at once
_SHORT = 48  # for at most this many bytes, a Python loop is faster
_MASK_DELTA = 0xA282EAD8


def masked_crc(data: bytes) -> int:
    """Returns the masked checksum of `data` that TensorFlow's files store."""
    return mask(crc32c(data))


def mask(crc: int) -> int:
    """Masks a checksum to store it: CRCs of data that contains unmasked CRCs are not reliable."""
    return ((crc >> 15 | crc << 17) + _MASK_DELTA) & 0xFFFFFFFF


def crc32c(data: bytes) -> int:
    """Returns the CRC-32C of `data`, which may be any buffer of bytes."""
    crc = 0xFFFFFFFF
    if len(data) > _SHORT:
        octets, tables = np.frombuffer(data, np.uint8), _tables()
        while len(octets) > _SHORT:
            crc = _crc_of_chunk(crc, octets[:_CHUNK], tables)
            octets = octets[_CHUNK:]
        data = octets.tobytes()
    table = _first_table()
    for byte in data:
        crc = crc >> 8 ^ table[(crc ^ byte) & 255]
    return crc ^ 0xFFFFFFFF


def _crc_of_chunk(crc: int, octets: np.ndarray, tables: np.ndarray) -> int:
    """Returns the checksum after a chunk of more than 4 bytes.

    The checksum is linear: it is the xor of the checksums of each byte followed by zeros. The
    previous checksum is xored into the first 4 bytes.
    """
    indices = octets.astype(np.intp)
    indices[:4] ^= np.frombuffer(crc.to_bytes(4, "little"), np.uint8)
    indices += _offsets()[-len(octets) :]
    return int(np.bitwise_xor.reduce(tables[indices]))


@functools.cache
def _tables() -> np.ndarray:
    """Returns the checksum of each byte followed by 0, 1, 2, ... zeros, flattened."""
    tables = np.empty((_CHUNK, 256), np.uint32)
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = table >> 1 ^ np.where(table & 1, np.uint32(_POLYNOMIAL), np.uint32(0))
    tables[0] = table
    for zeros in range(1, _CHUNK):
        tables[zeros] = tables[zeros - 1] >> 8 ^ table[tables[zeros - 1] & 255]
    return tables.reshape(-1)


@functools.cache
def _offsets() -> np.ndarray:
    """Returns the offset of the table for each byte of a full chunk."""
    return np.arange(_CHUNK - 1, -1, -1) * 256


@functools.cache
def _first_table() -> list[int]:
    return _tables()[:256].tolist()
