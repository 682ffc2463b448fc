"""GIF: one image or several, of at most 256 colours each."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from retrograde.image._errors import DecodeError

SIGNATURE = b"GIF8"
_IMAGE, _EXTENSION, _END, _CONTROL = 0x2C, 0x21, 0x3B, 0xF9
_MOST_PER_BYTE = 4096  # pixels: a code has at least 3 bits and stands for at most 4,096 pixels
_MOST_PIXELS = 1 << 29  # of all frames together, however small the file is


class _Frame(NamedTuple):
    """Where a frame lies on the canvas, its colours, which of them is clear, and its pixels."""

    top: int
    left: int
    palette: np.ndarray | None
    clear: int | None
    pixels: np.ndarray


def decode(contents: bytes, count: int | None = None) -> np.ndarray:
    """The frames in `contents`, each drawn over the one before: `[frames, height, width, 3]`.

    `count` is for the first so many frames only. The canvas is as high as the highest frame and as
    wide as the widest, whatever the header says, as in TensorFlow. It is black before the first
    frame. A file that cannot be read is `DecodeError`, or an error of the tools that read it.
    """
    flags = contents[10]
    place, common = _palette(contents, 13, flags)
    frames = _readable(_frames(contents, place))
    height = max(frame.pixels.shape[0] for frame in frames)
    width = max(frame.pixels.shape[1] for frame in frames)
    frames = frames[:count]
    most = max(_MOST_PIXELS, _MOST_PER_BYTE * len(contents))
    if len(frames) * height * width > most:
        raise DecodeError(f"{len(frames)} frames of {height} by {width} pixels are too large")
    images = np.empty((len(frames), height, width, 3), np.uint8)
    below: np.ndarray | int = 0
    for image, frame in zip(images, frames, strict=True):
        image[...] = below
        _draw(frame, common if frame.palette is None else frame.palette, image)
        below = image
    return images


def _draw(frame: _Frame, palette: np.ndarray | None, image: np.ndarray) -> None:
    if palette is None:
        raise DecodeError("a frame has no colours")
    rows, columns = frame.pixels.shape
    part = image[frame.top : frame.top + rows, frame.left : frame.left + columns]
    pixels = frame.pixels[: part.shape[0], : part.shape[1]]
    if frame.clear is None:
        part[...] = palette[pixels]
    else:
        shown = pixels != frame.clear
        part[shown] = palette[pixels[shown]]


def _readable(frames: Iterator[_Frame]) -> list[_Frame]:
    """The frames of a file, up to where it is cut off if that is behind the first."""
    found = []
    try:
        for frame in frames:
            found.append(frame)
    except (IndexError, ValueError, struct.error):
        if not found:
            raise
    if not found:
        raise DecodeError("there is no image in it")
    return found


def _palette(contents: bytes, place: int, flags: int) -> tuple[int, np.ndarray | None]:
    """The place after a table of colours, and the table, if `flags` say that there is one."""
    if not flags & 0x80:
        return place, None
    count = 2 << (flags & 7)
    table = np.frombuffer(contents, np.uint8, 3 * count, place).reshape(count, 3)
    return place + 3 * count, table


def _frames(contents: bytes, place: int) -> Iterator[_Frame]:
    clear = None
    while contents[place] != _END:
        kind = contents[place]
        if kind == _EXTENSION:
            label = contents[place + 1]
            place, data = _blocks(contents, place + 2)
            if label == _CONTROL:
                clear = data[3] if data[0] & 1 else None
        elif kind == _IMAGE:
            left, top, width, height, flags = struct.unpack_from("<HHHHB", contents, place + 1)
            place, palette = _palette(contents, place + 10, flags)
            bits = contents[place]
            place, data = _blocks(contents, place + 1)
            pixels = _pixels(data, bits, width * height).reshape(height, width)
            yield _Frame(top, left, palette, clear, _in_order(pixels) if flags & 0x40 else pixels)
            clear = None
        else:
            raise DecodeError(f"a block of unknown kind {kind} at byte {place}")


def _blocks(contents: bytes, place: int) -> tuple[int, bytes]:
    """The place after a row of blocks, and what they hold."""
    parts = []
    while contents[place]:
        parts.append(contents[place + 1 : place + 1 + contents[place]])
        place += 1 + contents[place]
    return place + 1, b"".join(parts)


def _in_order(pixels: np.ndarray) -> np.ndarray:
    """The rows of an interlaced image, which come in four passes."""
    height = len(pixels)
    passes = ((0, 8), (4, 8), (2, 4), (1, 2))
    order = np.concatenate([np.arange(start, height, step) for start, step in passes])
    y = np.empty_like(pixels)
    y[order] = pixels
    return y


def _pixels(data: bytes, bits: int, count: int) -> np.ndarray:
    """The first `count` pixels in packed data; all of them have to be there."""
    if not 1 <= bits <= 8:
        raise DecodeError(f"the codes of a frame begin with {bits} bits, not with 1 to 8")
    if not 0 < count <= _MOST_PER_BYTE * len(data):
        raise DecodeError(f"a frame of {count} pixels cannot be packed into {len(data)} bytes")
    return np.frombuffer(_unpacked(data, bits, count), np.uint8, count)


def _unpacked(data: bytes, bits: int, count: int) -> bytes:
    """At least `count` bytes, if there are as many, that Lempel, Ziv and Welch's method packed.

    Codes stand for strings that came before.
    """
    clear, end = 1 << bits, (1 << bits) + 1
    singles = [bytes([i]) for i in range(clear)] + [b"", b""]
    table, size, last = list(singles), bits + 1, b""
    result, buffer, held = [], 0, 0
    for byte in data:
        buffer |= byte << held
        held += 8
        while held >= size:
            code = buffer & ((1 << size) - 1)
            buffer >>= size
            held -= size
            if code == clear:
                table, size, last = list(singles), bits + 1, b""
                continue
            if code == end:
                return b"".join(result)
            if code > len(table) or (code == len(table) and not last):
                raise DecodeError(f"code {code} stands for nothing")
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
