"""JSON in files, with checksums. Damaged or hostile text is plain data or a `DataLossError`."""

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

MOST_LEVELS = 200  # nested lists and dicts; readers of the result may recurse
MOST_BYTES = 1 << 27

_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"?', re.DOTALL)
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))


def read_json(path: str | os.PathLike[str], what: str | None = None) -> Any:
    """Returns the data in a file. Raises `OSError` if it cannot be opened.

    `what` describes the file in errors, for example "model.json as a saved model".
    """
    with open(path, "rb") as file:
        text = b"".join(_pieces(file))
    return parse_json(text, what or os.fspath(path))


def _pieces(file: BinaryIO) -> Iterator[bytes]:
    """Yields the pieces of a file, up to the first one that is more than `parse_json` accepts."""
    left = MOST_BYTES + 1
    while left > 0 and (piece := file.read(min(left, 1 << 20))):
        left -= len(piece)
        yield piece


def sealed(content: Mapping[str, Any]) -> bytes:
    """Returns the text of a file with this content and a checksum of it."""
    content = {name: part for name, part in content.items() if name != "checksum"}
    return json.dumps(content | {"checksum": json_checksum(content)}, indent=1).encode()


def read_sealed(path: str | os.PathLike[str], what: str | None = None) -> dict[str, Any]:
    """Returns the content of a file that `sealed` wrote. Raises `DataLossError` for any other."""
    content = read_json(path, what)
    checksum = content.pop("checksum", None) if isinstance(content, dict) else None
    if checksum is None or checksum != json_checksum(content):
        raise DataLossError(
            None,
            None,
            f"Cannot read {what or os.fspath(path)}: its checksum is missing or does not match.",
        )
    return content


def json_checksum(content: Any) -> int:
    """Returns the CRC-32 of data, as one line of JSON."""
    return zlib.crc32(json.dumps(content).encode())


def parse_json(text: str | bytes, what: str) -> Any:
    """Returns the data that `text` describes: dicts, lists, strings, numbers, bools and `None`.

    Raises a `DataLossError` that names `what` if the text is not JSON in UTF-8, is longer than
    `MOST_BYTES`, nests more than `MOST_LEVELS` levels deep, or has a key twice in one dict. The
    nesting is checked before parsing, because the parser recurses.
    """
    try:
        data = text.encode() if isinstance(text, str) else text
        _check_size(data)
        _check_levels(data)
        return json.loads(data.decode("utf-8-sig"), object_pairs_hook=_dict)
    except ValueError as error:
        raise DataLossError(None, None, f"Cannot read {what}: {_reason(error)}.") from None
    except MemoryError:
        raise ResourceExhaustedError(
            None, None, f"Cannot read {what}: there is no memory for {len(text)} bytes of JSON."
        ) from None


class _Refused(ValueError):
    """A text that is refused, whether or not it is JSON."""


def _reason(error: ValueError) -> str:
    return str(error) if isinstance(error, _Refused) else f"it is not JSON ({error})"


def _check_size(data: bytes) -> None:
    if len(data) > MOST_BYTES:
        raise _Refused(f"it has more than {MOST_BYTES} bytes of JSON")


def _check_levels(data: bytes) -> None:
    if data.count(b"[") + data.count(b"{") <= MOST_LEVELS:
        return
    brackets = np.frombuffer(_STRING.sub(b"", data).translate(None, _NO_BRACKETS), np.uint8)
    opening = (brackets == ord("[")) | (brackets == ord("{"))
    levels = np.where(opening, np.int8(1), np.int8(-1)).cumsum(dtype=np.int32)
    if levels.max(initial=0) > MOST_LEVELS:
        raise _Refused(f"it nests more than {MOST_LEVELS} levels of lists and dicts")


def _dict(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        twice = collections.Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise _Refused(f"the key {twice[:80]!r} appears twice in one dict")
    return result
