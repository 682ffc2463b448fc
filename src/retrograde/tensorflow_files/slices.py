"""The keys of slices of tensors in a checkpoint.

A tensor that is split has one entry that lists its slices, and an entry for each slice. The key of
a slice encodes the name of the tensor and the extents, such that keys sort like their content.
"""

from __future__ import annotations

from collections.abc import Sequence

_HEADERS = (0x0000, 0x8000, 0xC000, 0xE000, 0xF000, 0xF800, 0xFC00, 0xFE00, 0xFF00, 0xFF80, 0xFFC0)


def slice_key(name: str, extents: Sequence[tuple[int, int]]) -> bytes:
    """Returns the key of a slice with these starts and lengths; -1 means the whole axis."""
    parts = [_encode_unsigned(0), _encode_string(name.encode()), _encode_unsigned(len(extents))]
    parts += [_encode_signed(number) for extent in extents for number in extent]
    return b"".join(parts)


def _encode_unsigned(number: int) -> bytes:
    data = number.to_bytes((number.bit_length() + 7) // 8, "big")
    return bytes([len(data)]) + data


def _encode_string(data: bytes) -> bytes:
    escapes = {0: b"\x00\xff", 255: b"\xff\x00"}
    return b"".join(escapes.get(byte, bytes([byte])) for byte in data) + b"\x00\x01"


def _encode_signed(number: int) -> bytes:
    bits = (~number if number < 0 else number).bit_length()
    if bits <= 6:
        return bytes([0x80 ^ number & 0xFF])
    length = bits // 7 + 1
    value = number & (1 << 8 * length) - 1
    return (value ^ _HEADERS[length] << 8 * (length - 2)).to_bytes(length, "big")
