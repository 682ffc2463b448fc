"""JPEG: the coefficients of blocks, out of their Huffman codes.

The loops here run once for each code. They keep to local names and write out what could be shared.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from retrograde.image._errors import DecodeError
from retrograde.image._jpeg_tables import ZIGZAG

_PLACES = ZIGZAG.tolist()
_Units = list[list[tuple[int, int]]]


def _windows(data: bytes) -> list[int]:
    """The 32 bits that begin at each byte; behind the end there are zeros."""
    padded = np.frombuffer(data + bytes(8), np.uint8).astype(np.uint32)
    parts = [padded[i : len(padded) - 3 + i] << (24 - 8 * i) for i in range(4)]
    return (parts[0] | parts[1] | parts[2] | parts[3]).tolist()


def _check_end(place: int, data: bytes) -> None:
    if place > 8 * len(data):
        raise DecodeError("the data end too soon")


class Scan:
    """One scan: for each of its components the coefficients, and the tables of codes.

    `band` are the coefficients that the scan is about. Progressive files give each but for its
    lowest `low` bits; if `high` is not 0, it tells the next bit of what is known already.
    """

    def __init__(self, slots: list, band: range, high: int, low: int) -> None:
        self.slots = slots
        self.band = band
        self.high, self.low = high, low

    def decoder(self, progressive: bool) -> Callable:
        """The method for this kind of scan: `decode(data, units)`."""
        if not progressive:
            return self._sequential
        if self.band.start == 0:
            return self._next_bits_of_means if self.high else self._means
        return self._refined if self.high else self._first_bits

    def _sequential(self, data: bytes, units: _Units) -> None:
        words, slots, places, p = _windows(data), self.slots, _PLACES, 0
        means = [0] * len(slots)
        for unit in units:
            for k, offset in unit:
                out, dc, ac = slots[k]
                entry = dc[(words[p >> 3] >> (16 - (p & 7))) & 0xFFFF]
                p += entry >> 8
                size = entry & 255
                if size:
                    value = (words[p >> 3] >> (32 - (p & 7) - size)) & ((1 << size) - 1)
                    p += size
                    means[k] += value if value >> (size - 1) else value - (1 << size) + 1
                out[offset] = means[k]
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
                    out[offset + places[i]] = value
                    i += 1
        _check_end(p, data)

    def _means(self, data: bytes, units: _Units) -> None:
        words, slots, low, p = _windows(data), self.slots, self.low, 0
        means = [0] * len(slots)
        for unit in units:
            for k, offset in unit:
                out, dc, _ = slots[k]
                entry = dc[(words[p >> 3] >> (16 - (p & 7))) & 0xFFFF]
                p += entry >> 8
                size = entry & 255
                if size:
                    value = (words[p >> 3] >> (32 - (p & 7) - size)) & ((1 << size) - 1)
                    p += size
                    means[k] += value if value >> (size - 1) else value - (1 << size) + 1
                out[offset] = means[k] << low
        _check_end(p, data)

    def _next_bits_of_means(self, data: bytes, units: _Units) -> None:
        words, slots, low, p = _windows(data), self.slots, self.low, 0
        for unit in units:
            for k, offset in unit:
                slots[k][0][offset] |= ((words[p >> 3] >> (31 - (p & 7))) & 1) << low
                p += 1
        _check_end(p, data)

    def _first_bits(self, data: bytes, units: _Units) -> None:
        words, places, low, p = _windows(data), _PLACES, self.low, 0
        out, _, ac = self.slots[0]
        empty = 0  # blocks from here on of which nothing follows
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
                    out[offset + places[i]] = value * (1 << low)
                    i += 1
                elif run == 15:
                    i += 16
                else:
                    more = (words[p >> 3] >> (32 - (p & 7) - run)) & ((1 << run) - 1) if run else 0
                    p += run
                    empty = (1 << run) + more - 1
                    break
        _check_end(p, data)

    def _refined(self, data: bytes, units: _Units) -> None:
        words, places, step, p = _windows(data), _PLACES, 1 << self.low, 0
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
                    place = offset + places[i]
                    if out[place]:
                        if (words[p >> 3] >> (31 - (p & 7))) & 1 and not out[place] & step:
                            out[place] += step if out[place] > 0 else -step
                        p += 1
                    else:
                        zeros -= 1
                        if zeros < 0:
                            if value:
                                out[place] = value
                            i += 1
                            break
                    i += 1
            if empty:
                for place in places[i : self.band.stop]:
                    place += offset
                    if out[place]:
                        if (words[p >> 3] >> (31 - (p & 7))) & 1 and not out[place] & step:
                            out[place] += step if out[place] > 0 else -step
                        p += 1
                empty -= 1
        _check_end(p, data)
