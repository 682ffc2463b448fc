"""JPEG: Huffman decoding of the coefficients of blocks.

The loops run once per Huffman code. For speed they use only local variables and repeat code
instead of calling functions.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from retrograde.image._errors import DecodeError
from retrograde.image._jpeg_tables import ZIGZAG

_ZIGZAG = ZIGZAG.tolist()
_Units = list[list[tuple[int, int]]]


def _windows(data: bytes) -> list[int]:
    """Returns the 32 bits that start at each byte, padded with zeros at the end."""
    padded = np.frombuffer(data + bytes(8), np.uint8).astype(np.uint32)
    parts = [padded[i : len(padded) - 3 + i] << (24 - 8 * i) for i in range(4)]
    return (parts[0] | parts[1] | parts[2] | parts[3]).tolist()


def _check_end(bit_offset: int, data: bytes) -> None:
    if bit_offset > 8 * len(data):
        raise DecodeError("the data is truncated")


class Scan:
    """One scan: `slots` has the coefficients and the Huffman tables (DC, AC) of each component.

    `band` is the range of coefficients in the scan. In progressive files, a first scan (`high` is
    0) has all but the lowest `low` bits of a coefficient; later scans have one more bit each.
    """

    def __init__(self, slots: list, band: range, high: int, low: int) -> None:
        self.slots = slots
        self.band = band
        self.high, self.low = high, low

    def decoder(self, progressive: bool) -> Callable:
        """Returns the method that decodes this kind of scan: `decode(data, units)`."""
        if not progressive:
            return self._sequential
        if self.band.start == 0:
            return self._refine_dc if self.high else self._first_dc
        return self._refine_ac if self.high else self._first_ac

    def _sequential(self, data: bytes, units: _Units) -> None:
        words, slots, zigzag, p = _windows(data), self.slots, _ZIGZAG, 0
        dc_values = [0] * len(slots)
        for unit in units:
            for k, offset in unit:
                out, dc, ac = slots[k]
                entry = dc[(words[p >> 3] >> (16 - (p & 7))) & 0xFFFF]
                p += entry >> 8
                size = entry & 255
                if size:
                    value = (words[p >> 3] >> (32 - (p & 7) - size)) & ((1 << size) - 1)
                    p += size
                    dc_values[k] += value if value >> (size - 1) else value - (1 << size) + 1
                out[offset] = dc_values[k]
                i = 1
                while i < 64:
                    entry = ac[(words[p >> 3] >> (16 - (p & 7))) & 0xFFFF]
                    p += entry >> 8
                    size = entry & 15
                    if not size:
                        if entry & 0xF0 != 0xF0:
                            break
                        i += 16
                        continue
                    i += (entry >> 4) & 15
                    value = (words[p >> 3] >> (32 - (p & 7) - size)) & ((1 << size) - 1)
                    p += size
                    if not value >> (size - 1):
                        value -= (1 << size) - 1
                    out[offset + zigzag[i]] = value
                    i += 1
        _check_end(p, data)

    def _first_dc(self, data: bytes, units: _Units) -> None:
        words, slots, low, p = _windows(data), self.slots, self.low, 0
        dc_values = [0] * len(slots)
        for unit in units:
            for k, offset in unit:
                out, dc, _ = slots[k]
                entry = dc[(words[p >> 3] >> (16 - (p & 7))) & 0xFFFF]
                p += entry >> 8
                size = entry & 255
                if size:
                    value = (words[p >> 3] >> (32 - (p & 7) - size)) & ((1 << size) - 1)
                    p += size
                    dc_values[k] += value if value >> (size - 1) else value - (1 << size) + 1
                out[offset] = dc_values[k] << low
        _check_end(p, data)

    def _refine_dc(self, data: bytes, units: _Units) -> None:
        words, slots, low, p = _windows(data), self.slots, self.low, 0
        for unit in units:
            for k, offset in unit:
                slots[k][0][offset] |= ((words[p >> 3] >> (31 - (p & 7))) & 1) << low
                p += 1
        _check_end(p, data)

    def _first_ac(self, data: bytes, units: _Units) -> None:
        words, zigzag, low, p = _windows(data), _ZIGZAG, self.low, 0
        out, _, ac = self.slots[0]
        empty = 0  # number of blocks from here on without further coefficients
        for ((_, offset),) in units:
            if empty:
                empty -= 1
                continue
            i = self.band.start
            while i < self.band.stop:
                entry = ac[(words[p >> 3] >> (16 - (p & 7))) & 0xFFFF]
                p += entry >> 8
                run, size = (entry >> 4) & 15, entry & 15
                if size:
                    i += run
                    value = (words[p >> 3] >> (32 - (p & 7) - size)) & ((1 << size) - 1)
                    p += size
                    if not value >> (size - 1):
                        value -= (1 << size) - 1
                    out[offset + zigzag[i]] = value * (1 << low)
                    i += 1
                elif run == 15:
                    i += 16
                else:
                    more = (words[p >> 3] >> (32 - (p & 7) - run)) & ((1 << run) - 1) if run else 0
                    p += run
                    empty = (1 << run) + more - 1
                    break
        _check_end(p, data)

    def _refine_ac(self, data: bytes, units: _Units) -> None:
        words, zigzag, step, p = _windows(data), _ZIGZAG, 1 << self.low, 0
        out, _, ac = self.slots[0]
        empty = 0
        for ((_, offset),) in units:
            i = self.band.start
            while not empty and i < self.band.stop:
                entry = ac[(words[p >> 3] >> (16 - (p & 7))) & 0xFFFF]
                p += entry >> 8
                zeros, value = (entry >> 4) & 15, 0
                if entry & 15:
                    value = step if (words[p >> 3] >> (31 - (p & 7))) & 1 else -step
                    p += 1
                elif zeros < 15:
                    more = (words[p >> 3] >> (32 - (p & 7) - zeros)) & ((1 << zeros) - 1)
                    empty = (1 << zeros) + more
                    p += zeros
                    break
                while i < self.band.stop:
                    index = offset + zigzag[i]
                    if out[index]:
                        if (words[p >> 3] >> (31 - (p & 7))) & 1 and not out[index] & step:
                            out[index] += step if out[index] > 0 else -step
                        p += 1
                    else:
                        zeros -= 1
                        if zeros < 0:
                            if value:
                                out[index] = value
                            i += 1
                            break
                    i += 1
            if empty:
                for index in zigzag[i : self.band.stop]:
                    index += offset
                    if out[index]:
                        if (words[p >> 3] >> (31 - (p & 7))) & 1 and not out[index] & step:
                            out[index] += step if out[index] > 0 else -step
                        p += 1
                empty -= 1
        _check_end(p, data)
