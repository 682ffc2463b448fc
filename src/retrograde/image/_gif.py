"""Decoder for GIF files: one or more frames of at most 256 colors each."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from retrograde.image._errors import DecodeError

SIGNATURE = b"GIF8"
_IMAGE, _EXTENSION, _END, _CONTROL = 0x2C, 0x21, 0x3B, 0xF9
_MAX_PIXELS_PER_BYTE = 4096  # a code has at least 3 bits and decodes to at most 4,096 pixels
_MAX_PIXELS = 1 << 29  # in all frames together, even if the file is small


class _Frame(NamedTuple):
    """A frame: its position on the canvas, palette, transparent color index and pixels."""

    top: int
    left: int
    palette: np.ndarray | None
    transparent: int | None
    pixels: np.ndarray


def decode(contents: bytes, count: int | None = None) -> np.ndarray:
    """Decodes the frames, each drawn over the previous one: `[frames, height, width, 3]`.

    `count` limits the number of frames. As in TensorFlow, the canvas has the height of the tallest
    frame and the width of the widest one, regardless of the header, and is initially black.
    Malformed data raises `DecodeError`, or an error from `struct` or NumPy.
    """
    flags = contents[10]
    offset, global_palette = _palette(contents, 13, flags)
    frames = _readable_frames(_frames(contents, offset))
    height = max(frame.pixels.shape[0] for frame in frames)
    width = max(frame.pixels.shape[1] for frame in frames)
    frames = frames[:count]
    limit = max(_MAX_PIXELS, _MAX_PIXELS_PER_BYTE * len(contents))
    if len(frames) * height * width > limit:
        raise DecodeError(f"{len(frames)} frames of {height} by {width} pixels are too large")
    images = np.empty((len(frames), height, width, 3), np.uint8)
    previous: np.ndarray | int = 0
    for image, frame in zip(images, frames, strict=True):
        image[...] = previous
        _draw(frame, global_palette if frame.palette is None else frame.palette, image)
        previous = image
    return images


def _draw(frame: _Frame, palette: np.ndarray | None, image: np.ndarray) -> None:
    if palette is None:
        raise DecodeError("a frame has no color palette")
    rows, columns = frame.pixels.shape
    part = image[frame.top : frame.top + rows, frame.left : frame.left + columns]
    pixels = frame.pixels[: part.shape[0], : part.shape[1]]
    if frame.transparent is None:
        part[...] = palette[pixels]
    else:
        opaque = pixels != frame.transparent
        part[opaque] = palette[pixels[opaque]]


def _readable_frames(frames: Iterator[_Frame]) -> list[_Frame]:
    """Returns the frames before the point where the file is truncated; raises if there are none."""
    result = []
    try:
        for frame in frames:
            result.append(frame)
    except (IndexError, ValueError, struct.error):
        if not result:
            raise
    if not result:
        raise DecodeError("there is no image in it")
    return result


def _palette(contents: bytes, offset: int, flags: int) -> tuple[int, np.ndarray | None]:
    """Returns the offset after a color table, and the table if `flags` say that there is one."""
    if not flags & 0x80:
        return offset, None
    count = 2 << (flags & 7)
    table = np.frombuffer(contents, np.uint8, 3 * count, offset).reshape(count, 3)
    return offset + 3 * count, table


def _frames(contents: bytes, offset: int) -> Iterator[_Frame]:
    transparent = None
    while contents[offset] != _END:
        kind = contents[offset]
        if kind == _EXTENSION:
            label = contents[offset + 1]
            offset, data = _blocks(contents, offset + 2)
            if label == _CONTROL:
                transparent = data[3] if data[0] & 1 else None
        elif kind == _IMAGE:
            left, top, width, height, flags = struct.unpack_from("<HHHHB", contents, offset + 1)
            offset, palette = _palette(contents, offset + 10, flags)
            bits = contents[offset]
            offset, data = _blocks(contents, offset + 1)
            pixels = _pixels(data, bits, width * height).reshape(height, width)
            pixels = _deinterlace(pixels) if flags & 0x40 else pixels
            yield _Frame(top, left, palette, transparent, pixels)
            transparent = None
        else:
            raise DecodeError(f"a block of unknown kind {kind} at byte {offset}")


def _blocks(contents: bytes, offset: int) -> tuple[int, bytes]:
    """Returns the offset after a sequence of data blocks, and their joined contents."""
    parts = []
    while contents[offset]:
        parts.append(contents[offset + 1 : offset + 1 + contents[offset]])
        offset += 1 + contents[offset]
    return offset + 1, b"".join(parts)


def _deinterlace(pixels: np.ndarray) -> np.ndarray:
    """Puts the rows of an interlaced image, stored in four passes, in order."""
    height = len(pixels)
    passes = ((0, 8), (4, 8), (2, 4), (1, 2))
    order = np.concatenate([np.arange(start, height, step) for start, step in passes])
    y = np.empty_like(pixels)
    y[order] = pixels
    return y


def _pixels(data: bytes, bits: int, count: int) -> np.ndarray:
    """Decompresses the first `count` pixels; raises if there are fewer."""
    if not 1 <= bits <= 8:
        raise DecodeError(f"the minimum LZW code size of a frame is {bits} bits, not 1 to 8")
    if not 0 < count <= _MAX_PIXELS_PER_BYTE * len(data):
        raise DecodeError(f"a frame of {count} pixels cannot be compressed into {len(data)} bytes")
    return np.frombuffer(_decompress_lzw(data, bits, count), np.uint8, count)


def _decompress_lzw(data: bytes, bits: int, count: int) -> bytes:
    """Decompresses LZW data until at least `count` bytes have been written or the data end."""
    clear, end = 1 << bits, (1 << bits) + 1
    initial = [bytes([i]) for i in range(clear)] + [b"", b""]
    table, size, last = list(initial), bits + 1, b""
    result, buffer, buffered_bits = [], 0, 0
    for byte in data:
        buffer |= byte << buffered_bits
        buffered_bits += 8
        while buffered_bits >= size:
            code = buffer & ((1 << size) - 1)
            buffer >>= size
            buffered_bits -= size
            if code == clear:
                table, size, last = list(initial), bits + 1, b""
                continue
            if code == end:
                return b"".join(result)
            if code > len(table) or (code == len(table) and not last):
                raise DecodeError(f"LZW code {code} is not defined")
            entry = table[code] if code < len(table) else last + last[:1]
            result.append(entry)
            count -= len(entry)
            if count <= 0:
                return b"".join(result)
            if last and len(table) < 4096:
                table.append(last + entry[:1])
                if len(table) == 1 << size and size < 12:
                    size += 1
            last = entry
    return b"".join(result)
