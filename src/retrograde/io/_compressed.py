"""Streaming decompression of zlib and gzip data."""

from __future__ import annotations

import io
import zlib
from collections.abc import Iterator
from typing import BinaryIO

from retrograde.values.errors import DataLossError, ResourceExhaustedError

WINDOWS = {"ZLIB": zlib.MAX_WBITS, "GZIP": zlib.MAX_WBITS | 16}
_CHUNK_SIZE = 1 << 18


def decompress(data: bytes, kind: str, op_name: str) -> bytes:
    """Decompresses `data`. `kind` is "ZLIB" or "GZIP"; error messages start with `op_name`."""
    try:
        return b"".join(decompress_chunks(io.BytesIO(data), kind, op_name))
    except MemoryError:
        message = f"{op_name}: not enough memory to decompress {len(data)} bytes of {kind} data."
        raise ResourceExhaustedError(None, None, message) from None


def decompress_chunks(file: BinaryIO, kind: str, name: str) -> Iterator[bytes]:
    """Yields the content of a compressed file in chunks of at most 256 kB.

    A gzip file may have several members, followed by zeros. Data after a zlib stream is ignored.
    A corrupt or truncated file raises a `DataLossError`.
    """
    data = file.read(_CHUNK_SIZE)
    while data:
        stream = zlib.decompressobj(WINDOWS[kind])
        while not stream.eof:
            try:
                chunk = stream.decompress(data, _CHUNK_SIZE)
            except zlib.error as error:
                raise DataLossError(None, None, f"{name}: {error}") from None
            if chunk:
                yield chunk
            data = stream.unconsumed_tail or (b"" if stream.eof else file.read(_CHUNK_SIZE))
            if not (data or chunk or stream.eof):
                raise DataLossError(None, None, f"{name}: the compressed data is truncated")
        if kind == "ZLIB":
            return
        data = _skip_zeros(stream.unused_data, file)


def _skip_zeros(data: bytes, file: BinaryIO) -> bytes:
    data = data.lstrip(b"\0")
    while not data:
        chunk = file.read(_CHUNK_SIZE)
        if not chunk:
            return b""
        data = chunk.lstrip(b"\0")
    return data


class DecompressedFile(io.RawIOBase):
    """A file object that decompresses another file."""

    def __init__(self, file: BinaryIO, kind: str, name: str) -> None:
        self._file, self._chunks, self._buffer = (
            file,
            decompress_chunks(file, kind, name),
            memoryview(b""),
        )

    def readable(self) -> bool:
        """Returns `True`."""
        return True

    def readinto(self, buffer: memoryview) -> int:
        """Reads at most one chunk into `buffer`. Returns the number of bytes."""
        if not self._buffer:
            self._buffer = memoryview(next(self._chunks, b""))
        count = min(len(buffer), len(self._buffer))
        buffer[:count], self._buffer = self._buffer[:count], self._buffer[count:]
        return count

    def close(self) -> None:
        """Closes the file object and the compressed file."""
        self._file.close()
        super().close()
