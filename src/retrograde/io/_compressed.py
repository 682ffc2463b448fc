"""Data compressed by zlib or gzip, decompressed piece by piece."""

from __future__ import annotations

import io
import zlib
from collections.abc import Iterator
from typing import BinaryIO

from retrograde.values.errors import DataLossError, ResourceExhaustedError

WINDOWS = {"ZLIB": zlib.MAX_WBITS, "GZIP": zlib.MAX_WBITS | 16}
_PIECE = 1 << 18


def decompressed(data: bytes, kind: str, what: str) -> bytes:
    """Returns all that `data` hold; `kind` is "ZLIB" or "GZIP", and `what` begins errors."""
    try:
        return b"".join(pieces(io.BytesIO(data), kind, what))
    except MemoryError:
        message = f"{what}: there is no memory for what {len(data)} bytes of {kind} hold."
        raise ResourceExhaustedError(None, None, message) from None


def pieces(file: BinaryIO, kind: str, what: str) -> Iterator[bytes]:
    """Yields what a compressed file holds, no more than 256 kB at once.

    A gzip file may have several members, and zeros after them. What follows the data of zlib is
    ignored. A damaged or truncated file raises a `DataLossError`.
    """
    data = file.read(_PIECE)
    while data:
        stream = zlib.decompressobj(WINDOWS[kind])
        while not stream.eof:
            try:
                piece = stream.decompress(data, _PIECE)
            except zlib.error as error:
                raise DataLossError(None, None, f"{what}: {error}") from None
            if piece:
                yield piece
            data = stream.unconsumed_tail or (b"" if stream.eof else file.read(_PIECE))
            if not (data or piece or stream.eof):
                raise DataLossError(None, None, f"{what}: the compressed data end too soon")
        if kind == "ZLIB":
            return
        data = _after_zeros(stream.unused_data, file)


def _after_zeros(data: bytes, file: BinaryIO) -> bytes:
    data = data.lstrip(b"\0")
    while not data:
        following = file.read(_PIECE)
        if not following:
            return b""
        data = following.lstrip(b"\0")
    return data


class Decompressed(io.RawIOBase):
    """A compressed file, as a file of what it holds."""

    def __init__(self, file: BinaryIO, kind: str, what: str) -> None:
        self._file, self._pieces, self._left = file, pieces(file, kind, what), memoryview(b"")

    def readable(self) -> bool:
        """Returns `True`."""
        return True

    def readinto(self, buffer: memoryview) -> int:
        """Fills `buffer` as far as the next piece goes; returns the number of bytes."""
        if not self._left:
            self._left = memoryview(next(self._pieces, b""))
        count = min(len(buffer), len(self._left))
        buffer[:count], self._left = self._left[:count], self._left[count:]
        return count

    def close(self) -> None:
        """Closes the compressed file, too."""
        self._file.close()
        super().close()
