"""CRC-32C, the checksum of event files."""

from __future__ import annotations

import functools

import numpy as np

_POLYNOMIAL = 0x82F63B78  # Castagnoli's, the lowest bit first
_BLOCKS = 512  # that long inputs are cut into, to go through all of them at the same time


def masked_crc(data: bytes) -> int:
    """The checksum of `data`, turned and shifted as event files have it."""
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def crc32c(data: bytes) -> int:
    """The checksum of `data`."""
    length = len(data) // _BLOCKS
    start = 0xFFFFFFFF
    if length >= 16:
        whole = length * _BLOCKS
        start, data = _in_blocks(start, data[:whole], length), data[whole:]
    return _bytewise(start, data) ^ 0xFFFFFFFF


@functools.cache
def _table() -> np.ndarray:
    """What a byte does to the checksum that it is shifted out of."""
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = table >> 1 ^ np.where(table & 1, np.uint32(_POLYNOMIAL), np.uint32(0))
    return table


@functools.cache
def _table_as_list() -> list[int]:
    return _table().tolist()


def _bytewise(crc: int, data: bytes) -> int:
    table = _table_as_list()
    for byte in data:
        crc = crc >> 8 ^ table[(crc ^ byte) & 255]
    return crc


def _in_blocks(start: int, data: bytes, length: int) -> int:
    """Checksums of all blocks, each from 0, put together afterwards.

    A checksum is linear in what it starts from: that of two blocks is that of the second, and
    what the first becomes when as many zeros follow.
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
    """What each byte of a checksum becomes when `count` zeros follow."""
    shifts = np.arange(256, dtype=np.uint32) << np.arange(0, 32, 8, dtype=np.uint32)[:, None]
    table = _table()
    for _ in range(count):
        shifts = shifts >> 8 ^ table[shifts & 255]
    return shifts.tolist()
