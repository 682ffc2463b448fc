"""Parsing of numbers in strings, by the rules of C."""

from __future__ import annotations

import math
import re

from retrograde.values.dtypes import DType

_DECIMAL = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?|[+-]?(inf|infinity|nan)", re.I)
_HEXADECIMAL = re.compile(rb"[+-]?0x([0-9a-f]+\.?[0-9a-f]*|\.[0-9a-f]+)(p[+-]?\d+)?", re.I)
_INTEGER = re.compile(rb"([+-]?)0*(\d{1,20})")  # 20 digits are enough for uint64


def parse_number(string: bytes, dtype: DType) -> int | float | None:
    """Parses a number of an integer or floating `dtype`; returns `None` if it is not valid."""
    word = string.strip()
    if dtype.is_integer:
        match = _INTEGER.fullmatch(word)
        value = int(b"".join(match.groups())) if match else None
        return value if value is not None and dtype.min <= value <= dtype.max else None
    if _DECIMAL.fullmatch(word):
        return float(word)
    return _hexadecimal(word.decode()) if _HEXADECIMAL.fullmatch(word) else None


def _hexadecimal(word: str) -> float:
    try:
        return float.fromhex(word)
    except OverflowError:
        return -math.inf if word.startswith("-") else math.inf
