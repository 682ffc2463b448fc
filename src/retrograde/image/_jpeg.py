"""JPEG decoder: reads the segments of a file and converts coefficients to pixels.

Pixels are identical to libjpeg's, for its fast and its accurate inverse DCT. Files may be
sequential or progressive, Huffman-coded, with eight bits per sample.
"""

from __future__ import annotations

import array
import functools
import struct
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from retrograde.image import _libjpeg
from retrograde.image._errors import DecodeError
from retrograde.image._jpeg_scans import Scan
from retrograde.image._jpeg_tables import ZIGZAG, codes
from retrograde.image._jpeg_transforms import samples

SIGNATURE = b"\xff\xd8\xff"
_END, _SCAN, _QUANTIZATION, _HUFFMAN, _RESTART, _JFIF, _ADOBE = (
    0xD9, 0xDA, 0xDB, 0xC4, 0xDD, 0xE0, 0xEE,
)  # fmt: skip
_FRAMES = {0xC0: False, 0xC1: False, 0xC2: True}  # marker -> whether the frame is progressive
_NOT_FRAMES = frozenset({0xC4, 0xC8, 0xCC})
_MAX_SCANS = 100  # a malicious progressive file could have a great many scans of a few bytes each


def segments(data: bytes) -> Iterator[tuple[int, int, int]]:
    """Yields the segments of a file: marker, start and end of the payload."""
    offset = 2
    while True:
        while data[offset] == data[offset + 1] == 0xFF:  # fill bytes
            offset += 1
        if data[offset] != 0xFF:
            raise DecodeError(f"no segment starts at byte {offset}")
        kind = data[offset + 1]
        if kind == _END:
            return
        (length,) = struct.unpack_from(">H", data, offset + 2)
        start, offset = offset + 4, offset + 2 + length
        if offset > len(data):
            raise DecodeError("a segment extends beyond the end of the data")
        yield kind, start, offset
        if kind == _SCAN:
            offset = _skip_scan(data, offset)


def _skip_scan(data: bytes, offset: int) -> int:
    """Returns the start of the next segment: a marker that is neither data nor a restart."""
    while True:
        offset = data.index(b"\xff", offset)
        if offset + 1 >= len(data):
            raise DecodeError("the data is truncated")
        if data[offset + 1] and not 0xD0 <= data[offset + 1] <= 0xD7:
            return offset
        offset += 2


def _find_frame(data: bytes) -> tuple[int, int]:
    """Returns the marker of the frame header and the start of its payload."""
    for kind, start, _ in segments(data):
        if 0xC0 <= kind <= 0xCF and kind not in _NOT_FRAMES:
            return kind, start
    raise DecodeError("it has no frame header")


def shape(data: bytes) -> tuple[int, int, int]:
    """Reads the height, width and number of channels."""
    _, start = _find_frame(data)
    height, width, channels = struct.unpack_from(">HHB", data, start + 1)
    return height, width, channels


class _Component:
    """One color channel: its sampling factors and the coefficients of its blocks."""

    def __init__(self, number: int, sampling: int, table: int) -> None:
        self.number = number
        self.across, self.down = sampling >> 4, sampling & 15  # horizontal, vertical factor
        self.table = table

    def set_size(self, width: int, height: int, max_across: int, max_down: int) -> None:
        """Sets the number of samples and blocks for an image of this size."""
        self.width = -(-width * self.across // max_across)
        self.height = -(-height * self.down // max_down)
        self.columns = -(-width // (8 * max_across)) * self.across
        self.rows = -(-height // (8 * max_down)) * self.down

    def blocks(self) -> int:
        """Returns the number of blocks."""
        return self.rows * self.columns

    def allocate(self) -> None:
        """Allocates the coefficients."""
        self.coefficients = array.array("i", bytes(256 * self.blocks()))


class _File:
    """The parsed contents of a JPEG file."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.steps: dict[int, np.ndarray] = {}
        self.codes: dict[int, tuple[bytes, bytes]] = {}
        self.scans = 0
        self.components: list[_Component] = []
        self.interval = 0
        self.progressive = False
        self.jfif = False
        self.adobe: int | None = None
        for kind, start, end in segments(data):
            self._read(kind, start, end)
        if not self.components:
            raise DecodeError("it has no frame header")

    def is_rgb(self) -> bool:
        """Returns whether the three components are RGB instead of YCbCr."""
        numbers = bytes(c.number for c in self.components)
        untransformed = numbers == b"RGB" if self.adobe is None else self.adobe == 0
        return len(numbers) == 3 and untransformed and not self.jfif

    def _read(self, kind: int, start: int, end: int) -> None:
        payload = self.data[start:end]
        if kind in _FRAMES:
            self._frame(payload, _FRAMES[kind])
        elif kind == _QUANTIZATION:
            self._quantization(payload)
        elif kind == _HUFFMAN:
            self._huffman(payload)
        elif kind == _RESTART:
            (self.interval,) = struct.unpack(">H", payload[:2])
        elif kind == _JFIF:
            self.jfif = self.jfif or payload.startswith(b"JFIF\0")
        elif kind == _ADOBE and payload.startswith(b"Adobe"):
            self.adobe = payload[11]
        elif kind == _SCAN:
            self._scan(payload, end)
        elif 0xC0 <= kind <= 0xCF and kind not in _NOT_FRAMES:
            raise DecodeError(f"its compression (marker {kind:#x}) is not supported")

    def _frame(self, payload: bytes, progressive: bool) -> None:
        bits, self.height, self.width, count = struct.unpack_from(">BHHB", payload)
        if bits != 8 or not self.height or not self.width or self.components:
            raise DecodeError("the header is not valid")
        if count not in (1, 3, 4):
            raise DecodeError(f"it has {count} channels, not 1, 3 or 4")
        self.progressive = progressive
        for i in range(count):
            self.components.append(_Component(*payload[6 + 3 * i : 9 + 3 * i]))
        self.max_across = max(c.across for c in self.components)
        self.max_down = max(c.down for c in self.components)
        for c in self.components:
            if not c.across or self.max_across % c.across or not c.down or self.max_down % c.down:
                raise DecodeError("the sampling factors of its channels are not valid")
            c.set_size(self.width, self.height, self.max_across, self.max_down)
        if max(self.max_across, self.max_down) > 4:
            raise DecodeError("the sampling factors of its channels are not valid")
        if sum(c.blocks() for c in self.components) > 8 * len(self.data):  # under 1 bit per block
            raise DecodeError("the data is truncated")
        for c in self.components:
            c.allocate()

    def _quantization(self, payload: bytes) -> None:
        while payload:
            is_16_bit, number = payload[0] >> 4, payload[0] & 15
            size = 64 * (1 + is_16_bit)
            steps = np.frombuffer(payload[1 : 1 + size], ">u2" if is_16_bit else np.uint8)
            self.steps[number] = np.zeros(64, np.int32)
            self.steps[number][ZIGZAG] = steps
            payload = payload[1 + size :]

    def _huffman(self, payload: bytes) -> None:
        while payload:
            counts = payload[1:17]
            total = sum(counts)
            self.codes[payload[0]] = counts, payload[17 : 17 + total]
            payload = payload[17 + total :]

    def _table(self, number: int) -> list[int] | None:
        """Returns the Huffman table with this number, if it is defined."""
        return _table(*self.codes[number]) if number in self.codes else None

    def _scan(self, payload: bytes, start: int) -> None:
        self.scans += 1
        if self.scans > _MAX_SCANS:
            raise DecodeError(f"it has more than {_MAX_SCANS} scans")
        count = payload[0]
        known = {component.number: component for component in self.components}
        slots = []
        for i in range(count):
            number, tables = payload[1 + 2 * i], payload[2 + 2 * i]
            dc, ac = self._table(tables >> 4), self._table(16 | tables & 15)
            slots.append((known[number], dc, ac))
        first, last, approximation = payload[1 + 2 * count : 4 + 2 * count]
        units = self._units([slot[0] for slot in slots])
        scan = Scan(
            [(component.coefficients, dc, ac) for component, dc, ac in slots],
            range(first, last + 1),
            approximation >> 4,
            approximation & 15,
        )
        decode = scan.decoder(self.progressive)
        intervals = _restart_intervals(self.data[start : _skip_scan(self.data, start)])
        step = self.interval or len(units)
        if len(intervals) * step < len(units):
            raise DecodeError("the data is truncated")
        for i, interval in zip(range(0, len(units), step), intervals, strict=False):
            decode(interval, units[i : i + step])

    def _units(self, components: list[_Component]) -> list[list[tuple[int, int]]]:
        """Returns the minimum coded units (MCUs): lists of (component, offset of the block).

        With one component, each unit is one block. With several, a unit has the blocks of all
        components for one part of the image.
        """
        if len(components) == 1:
            (c,) = components
            rows, columns = -(-c.height // 8), -(-c.width // 8)
            return [[(0, 64 * (i * c.columns + j))] for i in range(rows) for j in range(columns)]
        blocks_in_unit = [
            (k, c, i, j)
            for k, c in enumerate(components)
            for i in range(c.down)
            for j in range(c.across)
        ]
        c = components[0]
        parts = np.ndindex(c.rows // c.down, c.columns // c.across)
        return [
            [
                (k, 64 * ((row * c.down + i) * c.columns + column * c.across + j))
                for k, c, i, j in blocks_in_unit
            ]
            for row, column in parts
        ]


@functools.lru_cache(8)
def _table(counts: bytes, symbols: bytes) -> list[int]:
    """Builds a lookup table indexed by the next 16 bits: `code length << 8 | symbol`."""
    table = [0] * 65536
    for (code, length), symbol in zip(codes(counts), symbols, strict=True):
        if code >> length:
            raise DecodeError("a Huffman table has more codes of a length than possible")
        first, count = code << (16 - length), 1 << (16 - length)
        table[first : first + count] = [length << 8 | symbol] * count
    return table


def _restart_intervals(data: bytes) -> list[bytes]:
    """Splits the data at restart markers and removes the zero stuffed after each byte 0xff."""
    intervals, start, offset = [], 0, data.find(b"\xff")
    while offset >= 0:
        if data[offset + 1]:
            intervals.append(data[start:offset])
            start = offset + 2
        offset = data.find(b"\xff", offset + 2)
    intervals.append(data[start:])
    return [interval.replace(b"\xff\0", b"\xff") for interval in intervals]


# Pixels


class Options(NamedTuple):
    """Options for the conversion of coefficients to pixels.

    With `fancy`, subsampled channels are interpolated. With `accurate`, full blocks use the
    accurate inverse DCT. `side` is the width of a decoded block at full sampling: 8, or less to
    downscale the image.
    """

    fancy: bool = True
    accurate: bool = False
    side: int = 8


def decode(data: bytes, channels: int, options: Options) -> np.ndarray:
    """Decodes a JPEG file to `channels` (1 or 3) channels; 0 keeps the file's channels.

    Malformed data raises `DecodeError`, or an error from `struct` or NumPy.
    """
    kind, _ = _find_frame(data)
    if _FRAMES.get(kind) is False and options.side == 8:  # progressive files can have many scans
        image = _libjpeg.decode(data, shape(data), channels, options.fancy, options.accurate)
        if image is not None:
            return image
    file = _File(data)
    file_channels = len(file.components)
    if channels == 1 and file_channels == 4:
        raise DecodeError("CMYK cannot be converted to grayscale")
    if channels == 1 and not file.is_rgb():  # luma is the first component
        file.components = file.components[:1]
    image = _to_rgb([_plane(file, c, options) for c in file.components], file)
    if channels == 1 and file_channels == 3 and file.is_rgb():
        image = (image @ np.array([19595, 38470, 7471]) + (1 << 15)) >> 16
        image = image[..., None].astype(np.uint8)
    if channels == 3 and file_channels == 1:
        image = np.repeat(image, 3, axis=-1)
    return image


def _plane(file: _File, component: _Component, options: Options) -> np.ndarray:
    """Computes the samples of one component, one per pixel."""
    across, down = file.max_across // component.across, file.max_down // component.down
    side = options.side
    while side < 8 and across % 2 == down % 2 == 0:  # decode larger blocks instead of upsampling
        side, across, down = 2 * side, across // 2, down // 2
    blocks = np.frombuffer(component.coefficients, np.intc).reshape(-1, 64)
    blocks = samples(blocks, file.steps[component.table], side, options.accurate)
    plane = blocks.reshape(component.rows, component.columns, side, side).swapaxes(1, 2)
    plane = plane.reshape(side * component.rows, -1)
    height = -(-file.height * component.down * side // (8 * file.max_down))
    width = -(-file.width * component.across * side // (8 * file.max_across))
    fancy = options.fancy and options.side > 1
    plane = _upsample(plane[:height, :width], across, down, fancy)
    height, width = (-(-size * options.side // 8) for size in (file.height, file.width))
    return plane[:height, :width]


def _upsample(plane: np.ndarray, across: int, down: int, fancy: bool) -> np.ndarray:
    """Upsamples a plane by repetition, or by interpolation if `fancy`."""
    if fancy and (across, down) in ((2, 1), (2, 2)) and plane.shape[1] > 2:
        if down == 2:
            plane = _interpolate_rows(plane)
            low, high, bits = 8, 7, 4
        else:
            low, high, bits = 1, 2, 2
        before = np.concatenate([plane[:, :1], plane[:, :-1]], axis=1)
        after = np.concatenate([plane[:, 1:], plane[:, -1:]], axis=1)
        pairs = (3 * plane + before + low) >> bits, (3 * plane + after + high) >> bits
        return np.stack(pairs, axis=-1).reshape(len(plane), -1)
    if fancy and (across, down) == (1, 2):
        lines = _interpolate_rows(plane)
        lines[::2] += 1
        lines[1::2] += 2
        return lines >> 2
    return plane.repeat(down, axis=0).repeat(across, axis=1)


def _interpolate_rows(plane: np.ndarray) -> np.ndarray:
    """Doubles the rows: three times the row plus the row above or below, scaled by 4."""
    above = np.concatenate([plane[:1], plane[:-1]])
    below = np.concatenate([plane[1:], plane[-1:]])
    pairs = np.stack([3 * plane + above, 3 * plane + below], axis=1)
    return pairs.reshape(-1, plane.shape[1])


def _to_rgb(planes: list[np.ndarray], file: _File) -> np.ndarray:
    """Converts the planes to grayscale or RGB."""
    if len(planes) == 3 and not file.is_rgb():
        planes = _ycc_to_rgb(*planes)
    elif len(planes) == 4:
        if file.adobe == 2:
            planes = [*(255 - plane for plane in _ycc_to_rgb(*planes[:3])), planes[3]]
        if file.adobe is None:
            planes = [255 - plane for plane in planes]
        planes = [planes[3] * plane // 255 for plane in planes[:3]]
    return np.stack(planes, axis=-1).astype(np.uint8)


def _ycc_to_rgb(y: np.ndarray, blue: np.ndarray, red: np.ndarray) -> list[np.ndarray]:
    """Converts YCbCr to RGB in fixed point."""
    blue, red = blue - 128, red - 128
    half = 1 << 15
    parts = (
        y + ((91881 * red + half) >> 16),
        y + ((-22554 * blue - 46802 * red + half) >> 16),
        y + ((116130 * blue + half) >> 16),
    )
    return [part.clip(0, 255) for part in parts]
