"""The wire format of protocol buffers: fields with numbers, varints and fixed-size values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
_GROUP_START, _GROUP_END = 3, 4
_MAX_GROUP_DEPTH = 100  # nested
_MIN_NUMPY_SIZE = 32  # in bytes; NumPy decodes larger data faster than Python


class WireFormatError(ValueError):
    """Data is not a valid protocol buffer."""


def encode_varint(number: int) -> bytes:
    """Encodes an integer. Negative integers are encoded as 64-bit two's complements."""
    number &= (1 << 64) - 1
    if number < 0x80:
        return bytes((number,))
    parts = bytearray()
    while number > 0x7F:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    parts.append(number)
    return bytes(parts)


def read_varint(data: bytes, position: int) -> tuple[int, int]:
    """Returns the unsigned integer at `position` and the position after it."""
    try:
        byte = data[position]
        if byte < 0x80:
            return byte, position + 1
        number = byte & 0x7F
        for shift in range(7, 70, 7):
            position += 1
            byte = data[position]
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                return number & (1 << 64) - 1, position + 1
    except IndexError:
        raise WireFormatError("a number is truncated") from None
    raise WireFormatError("a number has more than 10 bytes")


def to_signed(number: int) -> int:
    """Returns an unsigned 64-bit integer as the signed integer with the same bits."""
    return number - (1 << 64) if number >> 63 else number


def encode_varint_field(number: int, value: int) -> bytes:
    """Encodes a field with an integer."""
    return encode_varint(number << 3 | VARINT) + encode_varint(value)


def encode_bytes_field(number: int, value: bytes) -> bytes:
    """Encodes a field with bytes: a string, a message or packed numbers."""
    return encode_varint(number << 3 | BYTES) + encode_varint(len(value)) + value


def read_fields(data: bytes) -> Iterator[tuple[int, int, Any, int, int]]:
    """Yields the number, wire type, value, start and end of each field.

    The value is an unsigned integer for varints, and bytes for all other types.
    """
    position, size = 0, len(data)
    while position < size:
        start = position
        tag, position = read_varint(data, position)
        number, wire_type = tag >> 3, tag & 7
        if not 0 < number < 1 << 29:
            raise WireFormatError(f"a field has the number {number}")
        value, position = _read_value(data, position, number, wire_type, 0)
        yield number, wire_type, value, start, position


def _read_value(
    data: bytes, position: int, number: int, wire_type: int, depth: int
) -> tuple[Any, int]:
    if wire_type == VARINT:
        return read_varint(data, position)
    if wire_type == BYTES:
        length, position = read_varint(data, position)
    elif wire_type in (FIXED32, FIXED64):
        length = 4 if wire_type == FIXED32 else 8
    elif wire_type == _GROUP_START and depth < _MAX_GROUP_DEPTH:
        end = _skip_group(data, position, number, depth + 1)
        return data[position:end], end
    else:
        raise WireFormatError(f"a field has the wire type {wire_type}")
    if length > len(data) - position:
        raise WireFormatError("a field is truncated")
    return data[position : position + length], position + length


def _skip_group(data: bytes, position: int, group: int, depth: int) -> int:
    while True:
        tag, position = read_varint(data, position)
        if tag & 7 == _GROUP_END:
            if tag >> 3 != group:
                raise WireFormatError("the end of a group is missing")
            return position
        _, position = _read_value(data, position, tag >> 3, tag & 7, depth)


def encode_packed_varints(values: Iterable[int]) -> bytes:
    """Encodes integers one after the other."""
    return b"".join(map(encode_varint, values))


def read_packed_varints(data: bytes) -> np.ndarray:
    """Returns packed integers as an int64 array."""
    if len(data) < _MIN_NUMPY_SIZE:
        position, values = 0, []
        while position < len(data):
            value, position = read_varint(data, position)
            values.append(to_signed(value))
        return np.array(values, np.int64)
    octets = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(octets < 0x80)
    if not len(ends) or ends[-1] != len(octets) - 1:
        raise WireFormatError("a number is truncated")
    if len(ends) == len(octets):
        return octets.astype(np.int64)
    starts = np.concatenate([[0], ends[:-1] + 1])
    lengths = ends - starts + 1
    if lengths.max() > 10:
        raise WireFormatError("a number has more than 10 bytes")
    shifts = (np.arange(len(octets)) - np.repeat(starts, lengths)) * 7
    parts = (octets & 0x7F).astype(np.uint64) << shifts.astype(np.uint64)
    return np.add.reduceat(parts, starts).view(np.int64)


def read_packed(data: bytes, dtype: str) -> np.ndarray:
    """Returns packed numbers of fixed size as an array."""
    kind = np.dtype(dtype)
    if len(data) % kind.itemsize:
        raise WireFormatError("packed numbers are truncated")
    return np.frombuffer(data, kind)
