"""Decodes serialized examples to arrays without creating messages."""

from __future__ import annotations

from typing import Any

import numpy as np

from retrograde.protobuf import wire
from retrograde.strings._elementwise import array_of

STRING = np.dtype(object)
_KINDS = {1: "string", 2: "float32", 3: "int64"}
EMPTY = {
    "string": np.empty(0, object),
    "float32": np.empty(0, np.float32),
    "int64": np.empty(0, np.int64),
}

Values = tuple[str, np.ndarray] | None  # a dtype and values; `None` if the feature is not set


def decode_example(example: bytes) -> dict[str, bytes]:
    """Returns the serialized features of a serialized example, by name."""
    return _read_map(_read_submessage(example, 1))


def decode_sequence_example(example: bytes) -> tuple[dict[str, bytes], dict[str, list[bytes]]]:
    """Returns the features and the feature lists of a serialized sequence example, by name."""
    lists = _read_map(_read_submessage(example, 2))
    steps = {
        name: [
            value
            for number, wire_type, value, _, _ in wire.read_fields(data)
            if (number, wire_type) == (1, wire.BYTES)
        ]
        for name, data in lists.items()
    }
    return _read_map(_read_submessage(example, 1)), steps


def _read_submessage(data: bytes, field: int) -> bytes:
    """Returns a submessage. Repeated occurrences are concatenated, which merges them."""
    parts = []
    for number, wire_type, value, _, _ in wire.read_fields(data):
        if number == field:
            if wire_type != wire.BYTES:
                raise wire.WireFormatError("a message has a wrong wire type")
            parts.append(value)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _read_map(data: bytes) -> dict[str, bytes]:
    entries = {}
    for number, wire_type, entry, _, _ in wire.read_fields(data):
        if number != 1 or wire_type != wire.BYTES:
            continue
        key, content = b"", b""
        for part, part_type, value, _, _ in wire.read_fields(entry):
            if part_type == wire.BYTES and part == 1:
                key = value
            elif part_type == wire.BYTES and part == 2:
                content = value
        entries[key.decode(errors="replace")] = content
    return entries


def decode_feature(feature: bytes | None) -> Values:
    """Returns the dtype and the values of a serialized feature, or `None` if it is empty."""
    result: Values = None
    for number, wire_type, value, _, _ in wire.read_fields(feature or b""):
        if number in _KINDS and wire_type == wire.BYTES:
            kind = _KINDS[number]
            result = kind, _read_list(kind, value)
    return result


def _read_list(kind: str, data: bytes) -> np.ndarray:
    parts: list[Any] = []
    for number, wire_type, value, _, _ in wire.read_fields(data):
        if number != 1:
            continue
        if kind == "string":
            if wire_type != wire.BYTES:
                raise wire.WireFormatError("a string has a wrong wire type")
            parts.append(value)
        elif wire_type == wire.BYTES:
            packed = wire.read_packed(value, "<f4") if kind == "float32" else None
            parts.append(wire.read_packed_varints(value) if packed is None else packed)
        elif kind == "int64" and wire_type == wire.VARINT:
            parts.append(np.array([wire.to_signed(value)], np.int64))
        elif kind == "float32" and wire_type == wire.FIXED32:
            parts.append(np.frombuffer(value, "<f4"))
        else:
            raise wire.WireFormatError("a number has a wrong wire type")
    if kind == "string":
        return array_of(parts, STRING)
    return concatenate(parts, kind)


def concatenate(parts: list[np.ndarray], dtype: str) -> np.ndarray:
    """Concatenates arrays of `dtype`. The list may be empty."""
    if len(parts) == 1:
        return parts[0]
    return np.concatenate([EMPTY[dtype], *parts])
