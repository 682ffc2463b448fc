"""Sorted tables of strings: the format of index files, the same as in LevelDB.

A table consists of blocks with checksums. The footer locates the index block, which locates the
data blocks. Keys in a block are stored without the prefix that they share with the previous key.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from retrograde.files.crc32c import masked_crc
from retrograde.protobuf.wire import WireFormatError, read_varint
from retrograde.tensorflow_files.snappy import decompress

_FOOTER_SIZE = 48
_MAGIC = 0xDB4775248B80FB57
_TRAILER_SIZE = 5  # a byte for the compression, and the checksum


def read_table(data: bytes) -> dict[bytes, bytes]:
    """Returns the keys and values of a table. Raises `ValueError` if it is corrupt."""
    if len(data) < _FOOTER_SIZE:
        raise WireFormatError("it is too short")
    footer = data[-_FOOTER_SIZE:]
    if struct.unpack("<Q", footer[40:])[0] != _MAGIC:
        raise WireFormatError("it does not end like a table")
    offset, size, position = _read_handle(footer, 0)
    _read_block(data, offset, size)  # filters, which are not used, but must be intact
    offset, size, _ = _read_handle(footer, position)
    table: dict[bytes, bytes] = {}
    end = 0
    for _, handle in _entries(_read_block(data, offset, size)):
        offset, size, _ = _read_handle(handle, 0)
        if offset < end:  # otherwise a small file could contain one block many times
            raise WireFormatError("its blocks overlap")
        end = offset + size
        for key, value in _entries(_read_block(data, offset, size)):
            if key in table:
                raise WireFormatError("a key occurs twice")
            table[key] = value
    return table


def _read_handle(data: bytes, position: int) -> tuple[int, int, int]:
    offset, position = read_varint(data, position)
    size, position = read_varint(data, position)
    return offset, size, position


def _read_block(data: bytes, offset: int, size: int) -> bytes:
    end = offset + size + _TRAILER_SIZE
    if end > len(data) - _FOOTER_SIZE:
        raise WireFormatError("a block is outside the file")
    content, trailer = data[offset : offset + size], data[offset + size : end]
    if masked_crc(content + trailer[:1]) != struct.unpack("<I", trailer[1:])[0]:
        raise WireFormatError("a block has a wrong checksum")
    if trailer[0] == 1:
        return decompress(content)
    if trailer[0]:
        raise WireFormatError(f"a block has the unknown compression {trailer[0]}")
    return content


def _entries(block: bytes) -> Iterator[tuple[bytes, bytes]]:
    if len(block) < 4:
        raise WireFormatError("a block is too short")
    (restarts,) = struct.unpack("<I", block[-4:])
    end = len(block) - 4 * (restarts + 1)
    if end < 0:
        raise WireFormatError("a block has too many restart points")
    key, position = b"", 0
    while position < end:
        shared, position = read_varint(block, position)
        unshared, position = read_varint(block, position)
        length, position = read_varint(block, position)
        if shared > len(key) or position + unshared + length > end:
            raise WireFormatError("an entry of a block is corrupt")
        key = key[:shared] + block[position : position + unshared]
        position += unshared
        yield key, block[position : position + length]
        position += length
