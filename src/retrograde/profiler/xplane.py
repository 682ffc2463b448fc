"""The XSpace format of profiles, which TensorBoard and `jax.profiler.ProfileData` read."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from retrograde.protobuf.wire import FIXED64, encode_bytes_field, encode_varint, encode_varint_field


class Event(NamedTuple):
    """A call that was recorded. Times are nanoseconds since the profile began."""

    name: str
    start: int
    duration: int
    metadata: dict[str, Any]


def encode_space(host: str, begin: int, events: Mapping[tuple[int, str], Sequence[Event]]) -> bytes:
    """Encodes the events of each thread, (id, name), as a serialized XSpace."""
    names, keys = _Numbers(), _Numbers()
    lines = [
        encode_varint_field(1, thread)
        + _text_field(2, name)
        + encode_varint_field(3, begin)
        + b"".join([encode_bytes_field(4, _event(event, names, keys)) for event in sequence])
        for (thread, name), sequence in events.items()
    ]
    plane = encode_varint_field(1, 1) + _text_field(2, "/host:CPU")
    plane += b"".join([encode_bytes_field(3, line) for line in lines])
    plane += names.encode(4) + keys.encode(5)
    return encode_bytes_field(1, plane) + _text_field(4, host)


class _Numbers:
    """Numbers names from 1 on."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def __getitem__(self, name: str) -> int:
        return self._numbers.setdefault(name, len(self._numbers) + 1)

    def encode(self, field: int) -> bytes:
        """Encodes a map from numbers to messages with the number and the name."""
        entries = [
            encode_varint_field(1, number)
            + encode_bytes_field(2, encode_varint_field(1, number) + _text_field(2, name))
            for name, number in self._numbers.items()
        ]
        return b"".join([encode_bytes_field(field, entry) for entry in entries])


def _event(event: Event, names: _Numbers, keys: _Numbers) -> bytes:
    picoseconds = encode_varint_field(2, event.start * 1000) + encode_varint_field(
        3, event.duration * 1000
    )
    stats = [
        encode_bytes_field(4, _stat(keys[key], value)) for key, value in event.metadata.items()
    ]
    return encode_varint_field(1, names[event.name]) + picoseconds + b"".join(stats)


def _stat(number: int, value: Any) -> bytes:
    if isinstance(value, int):
        encoded = encode_varint_field(4, value)
    elif isinstance(value, float):
        encoded = encode_varint(2 << 3 | FIXED64) + struct.pack("<d", value)
    else:
        encoded = _text_field(5, str(value))
    return encode_varint_field(1, number) + encoded


def _text_field(number: int, text: str) -> bytes:
    return encode_bytes_field(number, text.encode())
