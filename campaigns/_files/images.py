"""Creates image files and decompression bombs, without the encoders under test."""

from __future__ import annotations

import random
import struct
import zlib

import numpy as np

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_KINDS = {0: (1, 2, 4, 8, 16), 2: (8, 16), 3: (1, 2, 4, 8), 4: (8, 16), 6: (8, 16)}
_SAMPLES = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
_PASSES = (
    (0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2),
    (1, 0, 2, 1),
)  # fmt: skip


def png(rng: random.Random) -> bytes:
    """Returns a PNG of a random kind and size, with random filters."""
    kind = rng.choice(list(_KINDS))
    depth, interlaced = rng.choice(_KINDS[kind]), rng.random() < 0.3
    width, height = rng.randint(1, 40), rng.randint(1, 40)
    lines = b"".join(
        bytes([rng.randrange(5)]) + rng.randbytes(-(-across * _SAMPLES[kind] * depth // 8))
        for down, across in _parts(width, height, interlaced)
        for _ in range(down)
    )
    chunks = [(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, kind, 0, 0, interlaced))]
    if kind == 3:
        chunks.append((b"PLTE", rng.randbytes(3 * rng.randint(1, 256))))
    if rng.random() < 0.2:
        chunks.append((b"gAMA", struct.pack(">I", rng.choice([45455, 100000, 1, 0]))))
    if kind == 3 and rng.random() < 0.5:
        chunks.append((b"tRNS", rng.randbytes(rng.randint(1, 9))))
    return png_of([*chunks, (b"IDAT", zlib.compress(lines)), (b"IEND", b"")])


def _parts(width: int, height: int, interlaced: bool) -> list[tuple[int, int]]:
    if not interlaced:
        return [(height, width)]
    sizes = [(-(-(height - a) // c), -(-(width - b) // d)) for a, b, c, d in _PASSES]
    return [(down, across) for down, across in sizes if down > 0 and across > 0]


def png_of(chunks: list[tuple[bytes, bytes]]) -> bytes:
    """Returns a PNG with these chunks and their checksums."""
    return _SIGNATURE + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        for name, data in chunks
    )


def chunks_of(contents: bytes) -> list[tuple[bytes, bytes]]:
    """Returns the chunks of a PNG."""
    chunks, offset = [], 8
    while offset + 8 <= len(contents):
        (length,) = struct.unpack_from(">I", contents, offset)
        chunks.append(
            (contents[offset + 4 : offset + 8], contents[offset + 8 : offset + 8 + length])
        )
        offset += length + 12
    return chunks


def gif(rng: random.Random) -> bytes:
    """Returns a GIF of some frames, which may be smaller than the screen and transparent."""
    width, height, bits = rng.randint(1, 30), rng.randint(1, 30), rng.randint(1, 7)
    colors = 2 << bits
    start = struct.pack("<HHBBB", width, height, 0x80 | bits, 0, 0)
    parts = [b"GIF89a", start, rng.randbytes(3 * colors)]
    for _ in range(rng.randint(1, 4)):
        if rng.random() < 0.5:
            parts.append(b"\x21\xf9\x04" + rng.randbytes(4) + b"\0")
        parts.append(_frame(rng, width, height, max(bits + 1, 2)))
    return b"".join([*parts, b";"])


def _frame(rng: random.Random, width: int, height: int, bits: int) -> bytes:
    left, top = rng.randrange(width), rng.randrange(height)
    across, down = rng.randint(1, width), rng.randint(1, height)
    flags = 0x40 if rng.random() < 0.3 else 0
    header = b"\x2c" + struct.pack("<HHHHB", left, top, across, down, flags)
    pixels = [rng.randrange(1 << bits) for _ in range(across * down)]
    return header + bytes([bits]) + blocks(_pack_codes(pixels, bits)) + b"\0"


def blocks(data: bytes) -> bytes:
    """Returns `data` in the blocks of a GIF."""
    pieces = [data[i : i + 255] for i in range(0, len(data), 255)]
    return b"".join(bytes([len(piece)]) + piece for piece in pieces)


def _pack_codes(pixels: list[int], bits: int) -> bytes:
    """Encodes pixels as codes of constant length, by clearing the table before it grows."""
    clear, number, written = 1 << bits, 0, 0
    codes = []
    for offset, pixel in enumerate(pixels):
        if offset % (clear - 2) == 0:
            codes.append(clear)
        codes.append(pixel)
    for code in [*codes, clear + 1]:
        number |= code << written
        written += bits + 1
    return number.to_bytes(-(-written // 8), "little")


def bmp(rng: random.Random) -> bytes:
    """Returns a BMP with 8, 24 or 32 bits per pixel."""
    width, height, depth = rng.randint(1, 40), rng.randint(1, 40), rng.choice((1, 3, 4))
    sign = rng.choice((1, -1))
    header = b"BM" + struct.pack("<IHHI", 0, 0, 0, 54)
    header += struct.pack("<IiiHH", 40, width, sign * height, 1, 8 * depth) + bytes(24)
    return header + rng.randbytes(height * (-(-width * depth // 4) * 4))


def pixels(rng: random.Random) -> np.ndarray:
    """Returns an image for an encoder."""
    shape = rng.randint(1, 40), rng.randint(1, 40), rng.choice((1, 3))
    seed = np.random.default_rng(rng.randrange(1 << 32))
    if rng.random() < 0.5:
        return seed.integers(0, 256, shape, np.uint8)
    return np.full(shape, rng.randrange(256), np.uint8)


def bomb(rng: random.Random, zeros: bytes) -> bytes:
    """Returns a small file that declares, or decompresses to, a huge image.

    `zeros` are many zeros that were compressed by zlib.
    """
    huge = rng.choice((65535, 1 << 20, (1 << 31) - 1, 1 << 31, (1 << 32) - 1))
    small, kind = rng.randint(1, 9), rng.choice(("png data", "png size", "gif", "bmp", "jpeg"))
    if kind == "png data":
        header = struct.pack(">IIBBBBB", small, rng.randint(1, 9), 8, 0, 0, 0, rng.randrange(2))
        return png_of([(b"IHDR", header), (b"IDAT", zeros), (b"IEND", b"")])
    if kind == "png size":
        sides = rng.sample((huge, rng.choice((small, huge))), 2)
        header = struct.pack(">IIBBBBB", *sides, 8, rng.choice((0, 2, 6)), 0, 0, rng.randrange(2))
        data = zlib.compress(bytes(1000))
        return png_of([(b"IHDR", header), (b"IDAT", data), (b"IEND", b"")])
    if kind == "gif":
        return _gif_bomb(rng)
    if kind == "bmp":
        sides = rng.choice((huge, small)) & 0x7FFFFFFF, rng.choice((huge, small)) & 0x7FFFFFFF
        header = b"BM" + struct.pack("<IHHI", 0, 0, 0, rng.choice((54, huge & 0xFFFFFFFF)))
        return header + struct.pack("<IiiHH", 40, *sides, 1, 24) + bytes(1000)
    frame = struct.pack(">BHHB", 8, 65535, 65535, small)
    frame += b"".join(bytes([i, rng.choice((0x11, 0x44, 0xFF)), 0]) for i in range(small))
    return b"\xff\xd8\xff\xc0" + struct.pack(">H", len(frame) + 2) + frame + b"\xff\xd9"


def _gif_bomb(rng: random.Random) -> bytes:
    """Returns a GIF with a large canvas and many tiny or highly compressed frames."""
    side = rng.choice((10, 1000, 65535))
    start = b"GIF89a" + struct.pack("<HHBBB", side, side, 0x80, 0, 0) + bytes(6)
    number, written, size, table = 0, 0, 9, 258
    for code in [256, 0, *range(258, 258 + rng.choice((10, 1500, 3800)))]:
        number |= code << written
        written += size
        table += code not in (0, 256)
        size = min(12, table.bit_length())
    data = number.to_bytes(written // 8 + 1, "little")
    large = b"\x2c" + struct.pack("<HHHHB", 0, 0, side, side, 0) + b"\x08" + blocks(data) + b"\0"
    small = b"\x2c" + struct.pack("<HHHHB", 0, 0, 1, 1, 0) + b"\x02\x02\x4c\x01\x00"
    return start + large + rng.choice((0, 5)) * small + b";"
