"""Decompresses Snappy data, the compression of blocks in tables."""

from __future__ import annotations

from retrograde.protobuf.wire import WireFormatError, read_varint

_MAX_SIZE = 1 << 26  # bytes; blocks of tables have about 256 kB


def decompress(data: bytes) -> bytes:
    """Returns the decompressed data. Raises `ValueError` if `data` is corrupt."""
    size, position = read_varint(data, 0)
    if size > _MAX_SIZE:
        raise WireFormatError(f"a compressed block has {size} bytes")
    result = bytearray()
    while position < len(data):
        tag = data[position]
        position += 1
        if tag & 3 == 0:
            length, position = _literal_length(data, position, tag >> 2)
            result += _take(data, position, length)
            position += length
        else:
            length, offset, position = _copy(data, position, tag)
            if not 0 < offset <= len(result):
                raise WireFormatError("a copy starts outside the data")
            start = len(result) - offset
            while length > 0:  # a copy may overlap its own result
                part = result[start : start + length]
                result += part
                length -= len(part)
        if len(result) > size:
            raise WireFormatError("a block has more bytes than it declares")
    if len(result) != size:
        raise WireFormatError("a block has fewer bytes than it declares")
    return bytes(result)


def _take(data: bytes, position: int, count: int) -> bytes:
    if position + count > len(data):
        raise WireFormatError("a compressed block is truncated")
    return data[position : position + count]


def _literal_length(data: bytes, position: int, code: int) -> tuple[int, int]:
    if code < 60:
        return code + 1, position
    count = code - 59
    return int.from_bytes(_take(data, position, count), "little") + 1, position + count


def _copy(data: bytes, position: int, tag: int) -> tuple[int, int, int]:
    """Returns the length and the offset of a copy, and the position after it."""
    kind = tag & 3
    if kind == 1:
        low = _take(data, position, 1)[0]
        return (tag >> 2 & 7) + 4, (tag >> 5) << 8 | low, position + 1
    count = 2 if kind == 2 else 4
    offset = int.from_bytes(_take(data, position, count), "little")
    return (tag >> 2) + 1, offset, position + count
