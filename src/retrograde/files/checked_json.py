"""JSON files with checksums. Corrupt or hostile files raise `DataLossError`."""

from __future__ import annotations

import collections
import json
import os
import re
import zlib
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

import numpy as np

from retrograde.values.errors import DataLossError, ResourceExhaustedError

MAX_LEVELS = 200  # limits the nesting, because code that reads the result may recurse
MAX_BYTES = 1 << 27

_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"?', re.DOTALL)
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))


def read_json(path: str | os.PathLike[str], description: str | None = None) -> Any:
    """Returns the data in a file. Raises `OSError` if it cannot be opened.

    `description` describes the file in errors, for example "model.json as a saved model".
    """
    with open(path, "rb") as file:
        text = b"".join(_pieces(file))
    return parse_json(text, description or os.fspath(path))


def _pieces(file: BinaryIO) -> Iterator[bytes]:
    """Yields the content of a file, but not much more than `parse_json` accepts."""
    remaining = MAX_BYTES + 1
    while remaining > 0 and (piece := file.read(min(remaining, 1 << 20))):
        remaining -= len(piece)
        yield piece


def dump_with_checksum(content: Mapping[str, Any]) -> bytes:
    """Returns the content as JSON with a checksum."""
    content = {name: part for name, part in content.items() if name != "checksum"}
    return json.dumps(content | {"checksum": json_checksum(content)}, indent=1).encode()


def read_with_checksum(
    path: str | os.PathLike[str], description: str | None = None
) -> dict[str, Any]:
    """Reads JSON of `dump_with_checksum`. Raises `DataLossError` if the checksum is wrong."""
    content = read_json(path, description)
    checksum = content.pop("checksum", None) if isinstance(content, dict) else None
    if checksum is None or checksum != json_checksum(content):
        raise DataLossError(
            None,
            None,
            f"Cannot read {description or os.fspath(path)}: its checksum is missing or does not "
            "match.",
        )
    return content


def json_checksum(content: Any) -> int:
    """Returns the CRC-32 of the data as one line of JSON."""
    return zlib.crc32(json.dumps(content).encode())


def parse_json(text: str | bytes, description: str) -> Any:
    """Parses JSON.

    Raises a `DataLossError` that names `description` if the text is not JSON in UTF-8, is longer
    than `MAX_BYTES`, nests more than `MAX_LEVELS` levels, or repeats a key in one dict. The nesting
    is checked before parsing, because the parser recurses.
    """
    try:
        data = text.encode() if isinstance(text, str) else text
        _check_size(data)
        _check_levels(data)
        return json.loads(data.decode("utf-8-sig"), object_pairs_hook=_dict)
    except ValueError as error:
        raise DataLossError(None, None, f"Cannot read {description}: {_reason(error)}.") from None
    except MemoryError:
        raise ResourceExhaustedError(
            None,
            None,
            f"Cannot read {description}: not enough memory for {len(text)} bytes of JSON.",
        ) from None


class _InvalidText(ValueError):
    """A text that is rejected even if it is JSON."""


def _reason(error: ValueError) -> str:
    return str(error) if isinstance(error, _InvalidText) else f"it is not JSON ({error})"


def _check_size(data: bytes) -> None:
    if len(data) > MAX_BYTES:
        raise _InvalidText(f"it has more than {MAX_BYTES} bytes of JSON")


def _check_levels(data: bytes) -> None:
    if data.count(b"[") + data.count(b"{") <= MAX_LEVELS:
        return
    brackets = np.frombuffer(_STRING.sub(b"", data).translate(None, _NO_BRACKETS), np.uint8)
    opening = (brackets == ord("[")) | (brackets == ord("{"))
    levels = np.where(opening, np.int8(1), np.int8(-1)).cumsum(dtype=np.int32)
    if levels.max(initial=0) > MAX_LEVELS:
        raise _InvalidText(f"it nests more than {MAX_LEVELS} levels of lists and dicts")


def _dict(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        duplicate = collections.Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise _InvalidText(f"the key {duplicate[:80]!r} appears twice in one dict")
    return result
