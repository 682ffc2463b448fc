"""JPEG encoder: sequential files with the standard Huffman tables, identical to libjpeg's."""

from __future__ import annotations

import struct

import numpy as np

from retrograde.image._jpeg_tables import AC_CODES, DC_CODES, QUANTIZATION, ZIGZAG, codes
from retrograde.image._jpeg_transforms import accurate_coefficients


def encode(
    image: np.ndarray, quality: int, chroma_downsampling: bool, density: bytes, metadata: bytes
) -> bytes:
    """Encodes a uint8 image of 1 or 3 channels.

    With `chroma_downsampling`, chroma is stored at half the height and width. `density` are the
    bytes of the header for the pixel density; `metadata` are additional segments.
    """
    height, width, channels = image.shape
    steps = [_steps(table, quality) for table in QUANTIZATION[: min(channels, 2)]]
    planes = _planes(image)
    block = 16 if chroma_downsampling and channels == 3 else 8
    blocks = []
    for i, plane in enumerate(planes):
        if block == 16 and i:
            plane = _downsample(_pad(plane, 2, 16))
        plane = _pad(plane, 8 if i else block, 8 if i else block)
        blocks.append(_quantize(plane, steps[min(i, 1)]))
    _flatten_padding(blocks[0], -(-height // 8), -(-width // 8))
    return b"".join([
        b"\xff\xd8",
        _segment(0xE0, b"JFIF\0\1\1" + density + b"\0\0"),
        metadata,
        *(_segment(0xDB, bytes([i]) + table[ZIGZAG].astype(np.uint8).tobytes())
          for i, table in enumerate(steps)),
        _segment(0xC0, _frame(height, width, channels, block)),
        *_tables(len(steps)),
        _segment(0xDA, _scan(channels)),
        _huffman_encode(_file_order(blocks, block)),
        b"\xff\xd9",
    ])  # fmt: skip


def _segment(kind: int, part: bytes) -> bytes:
    return b"\xff" + bytes([kind]) + struct.pack(">H", len(part) + 2) + part


def xmp_segment(text: bytes) -> bytes:
    """Returns a segment with XMP metadata."""
    return _segment(0xE1, b"http://ns.adobe.com/xap/1.0/\0" + text)


def _steps(table: np.ndarray, quality: int) -> np.ndarray:
    quality = max(quality, 1)
    scale = 5000 // quality if quality < 50 else 200 - 2 * quality
    return ((table * scale + 50) // 100).clip(1, 255)


def _frame(height: int, width: int, channels: int, block: int) -> bytes:
    part = struct.pack(">BHHB", 8, height, width, channels)
    for i in range(channels):
        sampling = 0x22 if block == 16 and not i else 0x11
        part += bytes([i + 1, sampling, min(i, 1)])
    return part


def _tables(count: int) -> list[bytes]:
    return [
        _segment(0xC4, bytes([kind << 4 | i]) + lengths + symbols)
        for i in range(count)
        for kind, (lengths, symbols) in enumerate((DC_CODES[i], AC_CODES[i]))
    ]


def _scan(channels: int) -> bytes:
    parts = b"".join(bytes([i + 1, 0x11 * min(i, 1)]) for i in range(channels))
    return bytes([channels]) + parts + bytes([0, 63, 0])


# Samples


def _planes(image: np.ndarray) -> list[np.ndarray]:
    """Converts RGB to YCbCr in fixed point."""
    x = image.astype(np.int64)
    if x.shape[-1] == 1:
        return [x[..., 0]]
    half = 1 << 15
    middle = (128 << 16) + half - 1
    return [
        (x @ np.array([19595, 38470, 7471]) + half) >> 16,
        (x @ np.array([-11059, -21709, 32768]) + middle) >> 16,
        (x @ np.array([32768, -27439, -5329]) + middle) >> 16,
    ]


def _pad(plane: np.ndarray, rows: int, columns: int) -> np.ndarray:
    """Pads a plane to multiples of `rows` and `columns` by repeating its edge."""
    margins = (0, -len(plane) % rows), (0, -plane.shape[1] % columns)
    return np.pad(plane, margins, mode="edge")


def _downsample(plane: np.ndarray) -> np.ndarray:
    """Averages blocks of 2 by 2 samples, alternately rounding down and up."""
    rows, columns = plane.shape
    total = plane.reshape(rows // 2, 2, columns // 2, 2).sum((1, 3))
    return (total + 1 + np.arange(columns // 2) % 2) >> 2


def _quantize(plane: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """Computes the quantized coefficients of blocks in zigzag order: `(rows, columns, 64)`."""
    rows, columns = (size // 8 for size in plane.shape)
    blocks = plane.reshape(rows, 8, columns, 8).swapaxes(1, 2) - 128
    coefficients = accurate_coefficients(blocks)
    sizes = (np.abs(coefficients) + 4 * steps) // (8 * steps)
    return (np.sign(coefficients) * sizes)[:, ZIGZAG].reshape(rows, columns, 64)


def _flatten_padding(blocks: np.ndarray, rows: int, columns: int) -> None:
    """Reduces the blocks outside the image to the DC coefficient of the neighboring block."""
    if columns < blocks.shape[1]:
        blocks[:, columns] = 0
        blocks[:, columns, 0] = blocks[:, columns - 1, 0]
    if rows < blocks.shape[0]:
        blocks[rows] = 0
        blocks[rows, :, 0] = blocks[rows - 1, 1::2, 0].repeat(2)


# Codes


def _file_order(blocks: list[np.ndarray], block: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns the blocks in file order, and the component of each."""
    if len(blocks) == 1:
        ordered = blocks[0].reshape(-1, 64)
        return ordered, np.zeros(len(ordered), int)
    parts, numbers = [], []
    for i, x in enumerate(blocks):
        rows, columns, _ = x.shape
        side = 2 if block == 16 and not i else 1
        x = x.reshape(rows // side, side, columns // side, side, 64).swapaxes(1, 2)
        parts.append(x.reshape(-1, side * side, 64))
        numbers += [i] * side * side
    ordered = np.concatenate(parts, axis=1)
    return ordered.reshape(-1, 64), np.tile(numbers, len(ordered))


def _lookup(tables: tuple) -> tuple[np.ndarray, np.ndarray]:
    """Returns the codes and their lengths, indexed by table and symbol."""
    values, lengths = np.zeros((2, 256), np.int64), np.zeros((2, 256), np.int64)
    for i, (counts, symbols) in enumerate(tables):
        for (code, length), symbol in zip(codes(counts), symbols, strict=True):
            values[i, symbol], lengths[i, symbol] = code, length
    return values, lengths


def _huffman_encode(ordered: tuple[np.ndarray, np.ndarray]) -> bytes:
    """Encodes blocks as Huffman codes, each followed by the bits of its coefficient."""
    blocks, numbers = ordered
    blocks = blocks.copy()
    for i in set(numbers.tolist()):  # DC coefficients are stored as differences
        in_component = numbers == i
        blocks[in_component, 0] = np.diff(blocks[in_component, 0], prepend=0)
    tables = np.minimum(numbers, 1)
    keys, values, lengths = _symbols(blocks, tables)
    order = np.argsort(keys, kind="stable")
    return _bytes(values[order], lengths[order])


def _symbols(blocks: np.ndarray, tables: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns sort keys for file order, and all codes with their lengths."""
    dc, ac = _lookup(DC_CODES), _lookup(AC_CODES)
    count = len(blocks)
    mean_size = _bit_length(blocks[:, 0])
    codes = [_find_codes(np.arange(count) * 256, dc, tables, mean_size, blocks[:, 0])]
    rows, positions = np.nonzero(blocks[:, 1:])
    positions = positions + 1
    first = np.ones(len(rows), bool)
    first[1:] = rows[1:] != rows[:-1]
    before = np.where(first, 0, np.concatenate([[0], positions[:-1]]))
    zeros = positions - before - 1
    values = blocks[rows, positions]
    symbols = (zeros % 16) << 4 | _bit_length(values)
    codes.append(_find_codes(rows * 256 + positions * 4 + 3, ac, tables[rows], symbols, values))
    for skipped in (1, 2, 3):  # a code for sixteen zeros each
        long_runs = zeros >= 16 * skipped
        keys = rows[long_runs] * 256 + positions[long_runs] * 4 + skipped - 1
        codes.append(_find_codes(keys, ac, tables[rows[long_runs]], np.full(long_runs.sum(), 0xF0)))
    last = np.zeros(count, int)
    np.maximum.at(last, rows, positions)
    ended = np.flatnonzero(last < 63)
    codes.append(_find_codes(ended * 256 + 255, ac, tables[ended], np.zeros(len(ended), int)))
    return tuple(np.concatenate(parts) for parts in zip(*codes, strict=True))


def _bit_length(values: np.ndarray) -> np.ndarray:
    """Returns the number of bits of integers."""
    return np.frexp(np.abs(values).astype(float))[1]


def _find_codes(
    keys: np.ndarray,
    table: tuple[np.ndarray, np.ndarray],
    tables: np.ndarray,
    symbols: np.ndarray,
    values: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns the codes of symbols, each followed by the bits of its value if `values` is given."""
    code, length = table[0][tables, symbols], table[1][tables, symbols]
    if values is not None:
        size = symbols & 15
        bits = np.where(values < 0, values + (1 << size) - 1, values)
        code, length = code << size | bits, length + size
    return keys, code, length


def _bytes(values: np.ndarray, lengths: np.ndarray) -> bytes:
    """Concatenates the bits of all codes, padded with ones to ordered bytes."""
    ends = np.cumsum(lengths)
    code_index = np.repeat(np.arange(len(values)), lengths)
    shift = ends[code_index] - 1 - np.arange(ends[-1])
    bits = (values[code_index] >> shift & 1).astype(np.uint8)
    bits = np.concatenate([bits, np.ones(-len(bits) % 8, np.uint8)])
    return np.packbits(bits).tobytes().replace(b"\xff", b"\xff\0")
