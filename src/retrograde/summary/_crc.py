"""CRC-32C, the checksum of event files."""

from __future__ import annotations

import functools

import numpy as np

_POLYNOMIAL = 0x82F63B78  # Castagnoli polynomial, least significant bit first
_BLOCKS = 512  # number of blocks of long inputs, which are processed in parallel


def masked_crc(data: bytes) -> int:
    """Returns the masked checksum of `data` that event files use."""
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def crc32c(data: bytes) -> int:
    """Returns the CRC-32C of `data`."""
    length = len(data) // _BLOCKS
    start = 0xFFFFFFFF
    if length >= 16:
        blocks_length = length * _BLOCKS
        start, data = _crc_of_blocks(start, data[:blocks_length], length), data[blocks_length:]
    return _crc_of_bytes(start, data) ^ 0xFFFFFFFF


@functools.cache
def _table() -> np.ndarray:
    """Returns the lookup table of the byte-wise algorithm."""
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = table >> 1 ^ np.where(table & 1, np.uint32(_POLYNOMIAL), np.uint32(0))
    return table


@functools.cache
def _table_as_list() -> list[int]:
    return _table().tolist()


def _crc_of_bytes(crc: int, data: bytes) -> int:
    table = _table_as_list()
    for byte in data:
        crc = crc >> 8 ^ table[(crc ^ byte) & 255]
    return crc


def _crc_of_blocks(start: int, data: bytes, length: int) -> int:
    """Computes the checksums of all blocks, each starting at 0, and combines them.

    The checksum is linear: for two blocks it is the checksum of the second, xor the checksum of
    the first followed by as many zeros.
    """
    columns = np.frombuffer(data, np.uint8).reshape(_BLOCKS, length).T
    table = _table()
    crcs = np.zeros(_BLOCKS, np.uint32)
    for column in columns:
        crcs = crcs >> 8 ^ table[(crcs ^ column) & 255]
    shifts = _after_zeros(length)
    for crc in crcs.tolist():
        start = (
            shifts[0][start & 255]
            ^ shifts[1][start >> 8 & 255]
            ^ shifts[2][start >> 16 & 255]
            ^ shifts[3][start >> 24]
            ^ crc
        )
    return start


def _after_zeros(count: int) -> list[list[int]]:
    """Returns tables that map each byte of a checksum to its state after `count` zeros."""
    shifts = np.arange(256, dtype=np.uint32) << np.arange(0, 32, 8, dtype=np.uint32)[:, None]
    table = _table()
    for _ in range(count):
        shifts = shifts >> 8 ^ table[shifts & 255]
    return shifts.tolist()
