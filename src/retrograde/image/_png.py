"""PNG codec. Decodes all color types and bit depths; encodes images of 1 to 4 channels."""

from __future__ import annotations

import struct
import zlib
from typing import NamedTuple

import numpy as np

from retrograde.image._errors import DecodeError

SIGNATURE = b"\x89PNG\r\n\x1a\n"
_GRAY, _RGB, _PALETTE, _GRAY_ALPHA, _RGB_ALPHA = 0, 2, 3, 4, 6
_SAMPLES = {_GRAY: 1, _RGB: 3, _PALETTE: 1, _GRAY_ALPHA: 2, _RGB_ALPHA: 4}
_DEPTHS = {
    _GRAY: (1, 2, 4, 8, 16), _RGB: (8, 16), _PALETTE: (1, 2, 4, 8), _GRAY_ALPHA: (8, 16),
    _RGB_ALPHA: (8, 16),
}  # fmt: skip
_KINDS = {1: _GRAY, 2: _GRAY_ALPHA, 3: _RGB, 4: _RGB_ALPHA}
_CRITICAL = (b"IHDR", b"PLTE", b"IDAT", b"IEND")
_MAX_SIDE, _MAX_PIXELS = 1_000_000, 1 << 29  # TensorFlow's limits
_MAX_EXPANSION = 1032  # bytes that one byte of deflate data can expand to
_PASSES = (  # interlacing: first row, first column, row step, column step
    (0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2),
    (1, 0, 2, 1),
)  # fmt: skip


class _Header(NamedTuple):
    width: int
    height: int
    depth: int
    kind: int
    compression: int
    filtering: int
    interlaced: int


def decode(contents: bytes, channels: int, dtype: np.dtype) -> np.ndarray:
    """Decodes a PNG file to `channels` channels; 0 keeps the file's channels.

    Malformed data raises `DecodeError`, or an error from `struct`, `zlib` or NumPy.
    """
    chunks = _chunks(contents)
    header = _Header(*struct.unpack(">IIBBBBB", chunks[b"IHDR"]))
    _check(header)
    samples = _samples(_decompress(chunks[b"IDAT"], _count_bytes(header)), header)
    image, alpha = _to_image_and_alpha(samples, header, chunks)
    own_alpha = alpha is not None and header.kind not in (_GRAY, _RGB)
    channels = channels or image.shape[-1] + own_alpha
    if channels < 3 and image.shape[-1] == 3:
        image = _gray(image, chunks)
    elif channels >= 3 and image.shape[-1] == 1:
        image = np.repeat(image, 3, axis=-1)
    if channels in (2, 4):
        if alpha is None:
            alpha = np.full(image.shape[:2], np.iinfo(image.dtype).max)
        image = np.concatenate([image, alpha[..., None].astype(image.dtype)], axis=-1)
    if image.dtype == np.uint8 and dtype == np.uint16:
        return image.astype(np.uint16) * 257
    return (image >> 8).astype(dtype) if image.dtype.itemsize > dtype.itemsize else image


def _check(header: _Header) -> None:
    """Raises `DecodeError` unless the header is valid and the image is not too large."""
    sides = (header.width, header.height)
    if not all(sides) or header.depth not in _DEPTHS.get(header.kind, ()):
        raise DecodeError("the header is not valid")
    if header.compression or header.filtering or header.interlaced > 1:
        raise DecodeError("the header is not valid")
    if max(sides) > _MAX_SIDE or header.width * header.height >= _MAX_PIXELS:
        raise DecodeError(f"{header.width} by {header.height} pixels are too large")


def _chunks(contents: bytes) -> dict[bytes, bytes]:
    """Returns the chunks by name, with all data joined, without corrupt optional chunks."""
    chunks, parts, offset = {}, [], len(SIGNATURE)
    while b"IEND" not in chunks:
        (length,) = struct.unpack_from(">I", contents, offset)
        name, data = contents[offset + 4 : offset + 8], contents[offset + 8 : offset + 8 + length]
        (check,) = struct.unpack_from(">I", contents, offset + 8 + length)
        offset += length + 12
        critical = not name[0] & 0x20
        if critical and (name not in _CRITICAL or (name in chunks and name != b"IDAT")):
            raise DecodeError(f"the chunk {name!r} is unknown or repeated")
        if zlib.crc32(data, zlib.crc32(name)) == check:
            chunks[name] = data
        elif critical:
            raise DecodeError(f"the checksum of the chunk {name!r} is wrong")
        if name == b"IDAT":
            parts.append(data)
    return chunks | {b"IDAT": b"".join(parts)}


def _count_bytes(header: _Header) -> int:
    """Returns the number of bytes of all lines, including their filter bytes."""
    passes = _PASSES if header.interlaced else ((0, 0, 1, 1),)
    total = 0
    for top, left, down, across in passes:
        height, width = -(-(header.height - top) // down), -(-(header.width - left) // across)
        if height > 0 and width > 0:
            total += height * (_line_bytes(width, _SAMPLES[header.kind], header.depth) + 1)
    return total


def _line_bytes(width: int, samples: int, depth: int) -> int:
    return -(-width * samples * depth // 8)


def _decompress(data: bytes, count: int) -> bytes:
    """Decompresses the first `count` bytes and no more; raises if there are fewer."""
    if count > _MAX_EXPANSION * len(data):
        raise DecodeError(
            f"{count} bytes are needed, which {len(data)} compressed bytes cannot hold"
        )
    stream = zlib.decompressobj()
    lines = stream.decompress(data, count)
    more = stream.decompress(stream.unconsumed_tail, 1)  # at the end, this verifies the checksum
    if len(lines) < count or not (more or stream.eof):
        raise DecodeError(f"{count} bytes are needed, but there are {len(lines)}")
    return lines


def _samples(data: bytes, header: _Header) -> np.ndarray:
    """Unfilters the data: one or more samples per pixel."""
    shape = (header.height, header.width, _SAMPLES[header.kind])
    if not header.interlaced:
        return _lines(data, shape, header.depth)[0]
    image = np.zeros(shape, np.uint16 if header.depth == 16 else np.uint8)
    for top, left, down, across in _PASSES:
        part = image[top::down, left::across]
        if part.size:
            part[...], data = _lines(data, part.shape, header.depth)
    return image


def _lines(data: bytes, shape: tuple[int, int, int], depth: int) -> tuple[np.ndarray, bytes]:
    """Returns the image of this shape at the start of the data, and the remaining data."""
    height, width, samples = shape
    length = _line_bytes(width, samples, depth)
    filtered = np.frombuffer(data, np.uint8, height * (length + 1)).reshape(height, length + 1)
    step = max(1, samples * depth // 8)
    lines = _unfilter(filtered[:, 0], filtered[:, 1:].reshape(height, -1, step)).reshape(height, -1)
    if depth == 16:
        lines = lines.view(">u2").astype(np.uint16)
    elif depth < 8:
        bits = np.unpackbits(lines, axis=1).reshape(height, -1, depth)
        lines = np.packbits(bits, axis=2)[..., 0] >> (8 - depth)
    return lines[:, : width * samples].reshape(shape), data[height * (length + 1) :]


def _unfilter(filters: np.ndarray, lines: np.ndarray) -> np.ndarray:
    """Adds to each byte its filter's prediction from the bytes to the left and above."""
    if filters.max() > 4:
        raise DecodeError(f"a line has the unknown filter {filters.max()}")
    if filters.max() > 2 and min(lines.shape[:2]) >= 32:
        return _unfilter_diagonals(filters, lines)
    y = np.empty_like(lines)
    above = np.zeros_like(lines[0])
    for line, kind, out in zip(lines, filters.tolist(), y, strict=True):
        if kind == 1:
            np.cumsum(line, axis=0, dtype=np.uint8, out=out)
        elif kind < 3:
            np.add(line, above if kind else 0, out=out)
        else:
            out.reshape(-1)[:] = _unfilter_line(line, above, kind == 4)
        above = out
    return y


def _unfilter_line(line: np.ndarray, above: np.ndarray, is_paeth: bool) -> list[int]:
    """Unfilters one line byte by byte, since each byte depends on the previous one."""
    step = line.shape[1]
    packed, previous = line.reshape(-1).tolist(), [0] * step + above.reshape(-1).tolist()
    y = [0] * step
    for i, value in enumerate(packed):
        a, b, c = y[i], previous[i + step], previous[i]
        if not is_paeth:
            prediction = (a + b) >> 1
        else:
            from_a, from_b, from_c = abs(b - c), abs(a - c), abs(a + b - 2 * c)
            prediction = b if from_b <= from_c else c
            if from_a <= from_b and from_a <= from_c:
                prediction = a
        y.append((value + prediction) & 255)
    return y[step:]


def _unfilter_diagonals(filters: np.ndarray, lines: np.ndarray) -> np.ndarray:
    """Unfilters by diagonals: all bytes of one depend only on the previous two diagonals."""
    height, width, step = lines.shape
    y = np.zeros((height + 1, width + 1, step), np.uint8)
    kinds = filters[:, None]
    for diagonal in range(height + width - 1):
        rows = np.arange(max(0, diagonal - width + 1), min(height, diagonal + 1))
        columns = diagonal - rows
        before = y[rows + 1, columns].astype(np.int16)
        above = y[rows, columns + 1].astype(np.int16)
        corner = y[rows, columns].astype(np.int16)
        prediction = np.choose(
            kinds[rows],
            [0, before, above, (before + above) >> 1, _paeth(before, above, corner)],
        )
        y[rows + 1, columns + 1] = lines[rows, columns] + prediction.astype(np.uint8)
    return y[1:, 1:]


def _paeth(before: np.ndarray, above: np.ndarray, corner: np.ndarray) -> np.ndarray:
    """Returns the value nearest to `before + above - corner`; ties go to the first."""
    from_before, from_above = abs(above - corner), abs(before - corner)
    from_corner = abs(before + above - 2 * corner)
    best = np.where(from_above <= from_corner, above, corner)
    return np.where((from_before <= from_above) & (from_before <= from_corner), before, best)


def _transparency(header: _Header, chunks: dict[bytes, bytes]) -> bytes | None:
    """Returns the tRNS chunk; as in libpng, a chunk of the wrong length is ignored."""
    clear = chunks.get(b"tRNS", b"")
    if header.kind == _PALETTE:
        fits = 0 < len(clear) <= min(len(chunks[b"PLTE"]) // 3, 1 << header.depth)
    else:
        fits = len(clear) == 2 * _SAMPLES[header.kind]
    return clear if fits else None


def _to_image_and_alpha(
    samples: np.ndarray, header: _Header, chunks: dict[bytes, bytes]
) -> tuple[np.ndarray, np.ndarray | None]:
    """Returns the image, and the alpha channel if the file has one."""
    clear = _transparency(header, chunks)
    if header.kind == _PALETTE:
        palette = np.zeros((256, 3), np.uint8)  # black where the file has no entry
        known = np.frombuffer(chunks[b"PLTE"], np.uint8).reshape(-1, 3)
        palette[: len(known)] = known
        index = samples[..., 0]
        if clear is None:
            return palette[index], None
        opacity = np.full(256, 255, np.uint8)
        opacity[: len(clear)] = np.frombuffer(clear, np.uint8)
        return palette[index], opacity[index]
    if header.kind in (_GRAY_ALPHA, _RGB_ALPHA):
        return samples[..., :-1], samples[..., -1]
    opacity = None
    if clear is not None:  # a single transparent color
        color = np.frombuffer(clear, ">u2")
        opacity = np.where((samples == color).all(-1), 0, np.iinfo(samples.dtype).max)
    scale = 255 // ((1 << header.depth) - 1) if header.depth < 8 else 1
    return samples * samples.dtype.type(scale), opacity


_GRAY_WEIGHTS = np.array([9797, 19234, 3737], np.uint32)  # of RGB, times 2 ** 15


def _gray(image: np.ndarray, chunks: dict[bytes, bytes]) -> np.ndarray:
    """Converts RGB to grayscale, in linear light if the file has a gamma value."""
    gamma = struct.unpack(">I", chunks[b"gAMA"])[0] if b"gAMA" in chunks else 0
    gamma = gamma / 1e5 if 16 <= gamma <= 625_000_000 else 1  # like libpng, ignores other values
    gamma = 1 / 2.2 if b"sRGB" in chunks else gamma
    max_value = np.iinfo(image.dtype).max
    if abs(gamma - 1) < 0.05:
        half = 0 if max_value == 255 else 1 << 14
        gray = (image @ _GRAY_WEIGHTS + half) >> 15
    else:
        linear = max_value * (image / max_value) ** (1 / gamma)
        if max_value == 255:
            linear = np.floor((np.floor(linear + 0.5) @ _GRAY_WEIGHTS) / (1 << 15) + 0.5)
        else:
            linear = linear @ _GRAY_WEIGHTS / (1 << 15)
        gray = np.floor(max_value * (linear / max_value) ** gamma + 0.5)
    same = (image == image[..., :1]).all(-1)
    return np.where(same, image[..., 0], gray).astype(image.dtype)[..., None]


def encode(image: np.ndarray, level: int) -> bytes:
    """Encodes a uint8 or uint16 image of 1 to 4 channels, compressed with zlib's `level`."""
    height, width, channels = image.shape
    depth = 8 * image.dtype.itemsize
    header = struct.pack(">IIBBBBB", width, height, depth, _KINDS[channels], 0, 0, 0)
    lines = np.frombuffer(image.astype(f">u{depth // 8}").tobytes(), np.uint8).reshape(height, -1)
    above = np.concatenate([np.zeros_like(lines[:1]), lines[:-1]])
    filtered = np.empty((height, lines.shape[1] + 1), np.uint8)
    filtered[:, 0] = 2  # the "up" filter: differences to the line above
    np.subtract(lines, above, out=filtered[:, 1:])
    data = zlib.compress(filtered.tobytes(), level)
    chunks = ((b"IHDR", header), (b"IDAT", data), (b"IEND", b""))
    return SIGNATURE + b"".join(_chunk(name, data) for name, data in chunks)


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
