"""The format of TFRecord files: a length and data, each followed by its masked checksum."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import BinaryIO

from retrograde.files.crc32c import masked_crc
from retrograde.values.errors import DataLossError

_HEADER = struct.Struct("<QI")
_CHECKSUM = struct.Struct("<I")
_CHUNK_SIZE = 1 << 20


def encode_record(data: bytes) -> bytes:
    """Returns a record with its length and checksums."""
    length = struct.pack("<Q", len(data))
    checksums = [_CHECKSUM.pack(masked_crc(part)) for part in (length, data)]
    return b"".join((length, checksums[0], data, checksums[1]))


def read_records(file: BinaryIO, path: str) -> Iterator[bytes]:
    """Yields the records of an open file and closes it.

    A corrupt record raises `DataLossError`. A partial length at the end of the file is ignored, as
    in TensorFlow.
    """
    position = 0
    with file:
        while len(header := file.read(_HEADER.size)) == _HEADER.size:
            length, checksum = _HEADER.unpack(header)
            if masked_crc(header[:8]) != checksum:
                raise _data_loss_error(path, position, "corrupted")
            data = _read_exactly(file, length)
            tail = file.read(_CHECKSUM.size)
            if len(data) < length or len(tail) < _CHECKSUM.size:
                raise _data_loss_error(path, position, "truncated")
            if masked_crc(data) != _CHECKSUM.unpack(tail)[0]:
                raise _data_loss_error(path, position, "corrupted")
            yield data
            position += _HEADER.size + length + _CHECKSUM.size


def _read_exactly(file: BinaryIO, length: int) -> bytes:
    """Reads up to `length` bytes in chunks, since a corrupt length must not allocate memory."""
    if length <= _CHUNK_SIZE:
        return file.read(length)
    chunks = []
    while length and (chunk := file.read(min(length, _CHUNK_SIZE))):
        chunks.append(chunk)
        length -= len(chunk)
    return b"".join(chunks)


def _data_loss_error(path: str, position: int, state: str) -> DataLossError:
    return DataLossError(None, None, f"{path}: {state} record at {position}.")
