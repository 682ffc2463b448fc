"""JPEG, read: images packed by what the eye would miss.

Pixels are those of libjpeg, by its fast or its accurate transform. Files may be sequential or
progressive, with Huffman codes and eight bits for each sample.
"""

from __future__ import annotations

import array
import functools
import struct
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from retrograde.image._errors import DecodeError
from retrograde.image._jpeg_scans import Scan
from retrograde.image._jpeg_tables import ZIGZAG, codes
from retrograde.image._jpeg_transforms import samples

SIGNATURE = b"\xff\xd8\xff"
_END, _SCAN, _QUANTISATION, _HUFFMAN, _RESTART, _JFIF, _ADOBE = (
    0xD9, 0xDA, 0xDB, 0xC4, 0xDD, 0xE0, 0xEE,
)  # fmt: skip
_FRAMES = {0xC0: False, 0xC1: False, 0xC2: True}  # whether they are progressive
_NO_FRAMES = frozenset({0xC4, 0xC8, 0xCC})
_MOST_SCANS = 100  # of a progressive file; each may pass over all blocks with few bits


def segments(data: bytes) -> Iterator[tuple[int, int, int]]:
    """The segments of a file up to its first scan: what they are, and where they begin and end."""
    place = 2
    while True:
        while data[place] == data[place + 1] == 0xFF:  # bytes that fill a gap
            place += 1
        if data[place] != 0xFF:
            raise DecodeError(f"no segment begins at byte {place}")
        kind = data[place + 1]
        if kind == _END:
            return
        (length,) = struct.unpack_from(">H", data, place + 2)
        start, place = place + 4, place + 2 + length
        if place > len(data):
            raise DecodeError("a segment reaches beyond the end")
        yield kind, start, place
        if kind == _SCAN:
            place = _after_scan(data, place)


def _after_scan(data: bytes, place: int) -> int:
    """Where the next segment begins: at a marker that is neither data nor a restart."""
    while True:
        place = data.index(b"\xff", place)
        if place + 1 >= len(data):
            raise DecodeError("the data end too soon")
        if data[place + 1] and not 0xD0 <= data[place + 1] <= 0xD7:
            return place
        place += 2


def shape(data: bytes) -> tuple[int, int, int]:
    """Height, width and channels."""
    for kind, start, _ in segments(data):
        if 0xC0 <= kind <= 0xCF and kind not in _NO_FRAMES:
            height, width, channels = struct.unpack_from(">HHB", data, start + 1)
            return height, width, channels
    raise DecodeError("it has no frame")


class _Component:
    """One channel: how its samples lie, and the coefficients of its blocks."""

    def __init__(self, number: int, sampling: int, table: int) -> None:
        self.number = number
        self.across, self.down = sampling >> 4, sampling & 15
        self.table = table

    def place(self, width: int, height: int, most_across: int, most_down: int) -> None:
        """Sets how many samples and blocks an image of this size has."""
        self.width = -(-width * self.across // most_across)
        self.height = -(-height * self.down // most_down)
        self.columns = -(-width // (8 * most_across)) * self.across
        self.rows = -(-height // (8 * most_down)) * self.down

    def blocks(self) -> int:
        """How many blocks there are."""
        return self.rows * self.columns

    def allocate(self) -> None:
        """Makes room for the coefficients."""
        self.coefficients = array.array("i", bytes(256 * self.blocks()))


class _File:
    """What was read of a file so far."""

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
            raise DecodeError("it has no frame")

    def is_rgb(self) -> bool:
        """Whether three components are red, green and blue, not brightness and colour."""
        numbers = bytes(c.number for c in self.components)
        plain = numbers == b"RGB" if self.adobe is None else self.adobe == 0
        return len(numbers) == 3 and plain and not self.jfif

    def _read(self, kind: int, start: int, end: int) -> None:
        part = self.data[start:end]
        if kind in _FRAMES:
            self._frame(part, _FRAMES[kind])
        elif kind == _QUANTISATION:
            self._quantisation(part)
        elif kind == _HUFFMAN:
            self._huffman(part)
        elif kind == _RESTART:
            (self.interval,) = struct.unpack(">H", part[:2])
        elif kind == _JFIF:
            self.jfif = self.jfif or part.startswith(b"JFIF\0")
        elif kind == _ADOBE and part.startswith(b"Adobe"):
            self.adobe = part[11]
        elif kind == _SCAN:
            self._scan(part, end)
        elif 0xC0 <= kind <= 0xCF and kind not in _NO_FRAMES:
            raise DecodeError(f"it is packed in a way (marker {kind:#x}) that cannot be read here")

    def _frame(self, part: bytes, progressive: bool) -> None:
        bits, self.height, self.width, count = struct.unpack_from(">BHHB", part)
        if bits != 8 or not self.height or not self.width or self.components:
            raise DecodeError("the header makes no sense")
        if count not in (1, 3, 4):
            raise DecodeError(f"it has {count} channels, not 1, 3 or 4")
        self.progressive = progressive
        for i in range(count):
            self.components.append(_Component(*part[6 + 3 * i : 9 + 3 * i]))
        self.most_across = max(c.across for c in self.components)
        self.most_down = max(c.down for c in self.components)
        for c in self.components:
            if not c.across or self.most_across % c.across or not c.down or self.most_down % c.down:
                raise DecodeError("its channels have sizes that do not fit together")
            c.place(self.width, self.height, self.most_across, self.most_down)
        if max(self.most_across, self.most_down) > 4:
            raise DecodeError("its channels have sizes that do not fit together")
        if sum(c.blocks() for c in self.components) > 8 * len(self.data):  # not a bit for each
            raise DecodeError("the data end too soon")
        for c in self.components:
            c.allocate()

    def _quantisation(self, part: bytes) -> None:
        while part:
            deep, number = part[0] >> 4, part[0] & 15
            size = 64 * (1 + deep)
            steps = np.frombuffer(part[1 : 1 + size], ">u2" if deep else np.uint8)
            self.steps[number] = np.zeros(64, np.int32)
            self.steps[number][ZIGZAG] = steps
            part = part[1 + size :]

    def _huffman(self, part: bytes) -> None:
        while part:
            counts = part[1:17]
            total = sum(counts)
            self.codes[part[0]] = counts, part[17 : 17 + total]
            part = part[17 + total :]

    def _table(self, number: int) -> list[int] | None:
        """The table of codes of this number, if there is one."""
        return _table(*self.codes[number]) if number in self.codes else None

    def _scan(self, part: bytes, start: int) -> None:
        self.scans += 1
        if self.scans > _MOST_SCANS:
            raise DecodeError(f"it has more than {_MOST_SCANS} scans")
        count = part[0]
        known = {component.number: component for component in self.components}
        slots = []
        for i in range(count):
            number, tables = part[1 + 2 * i], part[2 + 2 * i]
            dc, ac = self._table(tables >> 4), self._table(16 | tables & 15)
            slots.append((known[number], dc, ac))
        first, last, approximation = part[1 + 2 * count : 4 + 2 * count]
        units = self._units([slot[0] for slot in slots])
        scan = Scan(
            [(component.coefficients, dc, ac) for component, dc, ac in slots],
            range(first, last + 1),
            approximation >> 4,
            approximation & 15,
        )
        decode = scan.decoder(self.progressive)
        runs = _runs(self.data[start : _after_scan(self.data, start)])
        step = self.interval or len(units)
        if len(runs) * step < len(units):
            raise DecodeError("the data end too soon")
        for i, run in zip(range(0, len(units), step), runs, strict=False):
            decode(run, units[i : i + step])

    def _units(self, components: list[_Component]) -> list[list[tuple[int, int]]]:
        """What comes together in the data: blocks, each by its component and where it begins there.

        Of a component alone, that is one block after the other; of several, the blocks of all for
        each part of the image.
        """
        if len(components) == 1:
            (c,) = components
            rows, columns = -(-c.height // 8), -(-c.width // 8)
            return [[(0, 64 * (i * c.columns + j))] for i in range(rows) for j in range(columns)]
        within = [
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
                for k, c, i, j in within
            ]
            for row, column in parts
        ]


@functools.lru_cache(8)
def _table(counts: bytes, symbols: bytes) -> list[int]:
    """A table by the next 16 bits: the length of a code, and its meaning in the lower byte."""
    table = [0] * 65536
    for (code, length), symbol in zip(codes(counts), symbols, strict=True):
        if code >> length:
            raise DecodeError("there are more codes of a length than it has room for")
        first, many = code << (16 - length), 1 << (16 - length)
        table[first : first + many] = [length << 8 | symbol] * many
    return table


def _runs(data: bytes) -> list[bytes]:
    """The data between restarts, without the zeros that follow each byte 0xff."""
    runs, start, place = [], 0, data.find(b"\xff")
    while place >= 0:
        if data[place + 1]:
            runs.append(data[start:place])
            start = place + 2
        place = data.find(b"\xff", place + 2)
    runs.append(data[start:])
    return [run.replace(b"\xff\0", b"\xff") for run in runs]


# Pixels


class Options(NamedTuple):
    """How to make pixels of coefficients.

    `fancy` says that colours which are stored more coarsely are to be interpolated, `accurate`
    which transform to use for whole blocks. `side` is that of the square of pixels which is made of
    a block where most is stored: 8, or less for a smaller image.
    """

    fancy: bool = True
    accurate: bool = False
    side: int = 8


def decode(data: bytes, channels: int, options: Options) -> np.ndarray:
    """The image in `data`, with 1 or 3 `channels`, or its own if that is 0.

    What is wrong with the data is `DecodeError`, or an error of the tools that read them.
    """
    file = _File(data)
    own = len(file.components)
    if channels == 1 and own == 4:
        raise DecodeError("four inks do not make grey")
    if channels == 1 and not file.is_rgb():  # brightness comes first
        file.components = file.components[:1]
    image = _colours([_plane(file, c, options) for c in file.components], file)
    if channels == 1 and own == 3 and file.is_rgb():
        image = (image @ np.array([19595, 38470, 7471]) + (1 << 15)) >> 16
        image = image[..., None].astype(np.uint8)
    if channels == 3 and own == 1:
        image = np.repeat(image, 3, axis=-1)
    return image


def _plane(file: _File, component: _Component, options: Options) -> np.ndarray:
    """The samples of one component, one for each pixel."""
    across, down = file.most_across // component.across, file.most_down // component.down
    side = options.side
    while side < 8 and across % 2 == down % 2 == 0:  # rather more of a block than twice the same
        side, across, down = 2 * side, across // 2, down // 2
    blocks = np.frombuffer(component.coefficients, np.intc).reshape(-1, 64)
    blocks = samples(blocks, file.steps[component.table], side, options.accurate)
    plane = blocks.reshape(component.rows, component.columns, side, side).swapaxes(1, 2)
    plane = plane.reshape(side * component.rows, -1)
    height = -(-file.height * component.down * side // (8 * file.most_down))
    width = -(-file.width * component.across * side // (8 * file.most_across))
    fancy = options.fancy and options.side > 1
    plane = _enlarged(plane[:height, :width], across, down, fancy)
    height, width = (-(-size * options.side // 8) for size in (file.height, file.width))
    return plane[:height, :width]


def _enlarged(plane: np.ndarray, across: int, down: int, fancy: bool) -> np.ndarray:
    """A plane with each sample repeated, or interpolated if `fancy`."""
    if fancy and (across, down) in ((2, 1), (2, 2)) and plane.shape[1] > 2:
        if down == 2:
            plane = _between_lines(plane)
            low, high, bits = 8, 7, 4
        else:
            low, high, bits = 1, 2, 2
        before = np.concatenate([plane[:, :1], plane[:, :-1]], axis=1)
        after = np.concatenate([plane[:, 1:], plane[:, -1:]], axis=1)
        pairs = (3 * plane + before + low) >> bits, (3 * plane + after + high) >> bits
        return np.stack(pairs, axis=-1).reshape(len(plane), -1)
    if fancy and (across, down) == (1, 2):
        lines = _between_lines(plane)
        lines[::2] += 1
        lines[1::2] += 2
        return lines >> 2
    return plane.repeat(down, axis=0).repeat(across, axis=1)


def _between_lines(plane: np.ndarray) -> np.ndarray:
    """Two lines of each one: three times it, plus the one above or below."""
    above = np.concatenate([plane[:1], plane[:-1]])
    below = np.concatenate([plane[1:], plane[-1:]])
    pairs = np.stack([3 * plane + above, 3 * plane + below], axis=1)
    return pairs.reshape(-1, plane.shape[1])


def _colours(planes: list[np.ndarray], file: _File) -> np.ndarray:
    """The planes as grey or RGB."""
    if len(planes) == 3 and not file.is_rgb():
        planes = _rgb(*planes)
    elif len(planes) == 4:
        if file.adobe == 2:
            planes = [*(255 - plane for plane in _rgb(*planes[:3])), planes[3]]
        if file.adobe is None:
            planes = [255 - plane for plane in planes]
        planes = [planes[3] * plane // 255 for plane in planes[:3]]
    return np.stack(planes, axis=-1).astype(np.uint8)


def _rgb(y: np.ndarray, blue: np.ndarray, red: np.ndarray) -> list[np.ndarray]:
    """RGB of brightness and the differences of blue and of red, in fixed point."""
    blue, red = blue - 128, red - 128
    half = 1 << 15
    parts = (
        y + ((91881 * red + half) >> 16),
        y + ((-22554 * blue - 46802 * red + half) >> 16),
        y + ((116130 * blue + half) >> 16),
    )
    return [part.clip(0, 255) for part in parts]
