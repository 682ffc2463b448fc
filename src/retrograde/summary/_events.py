"""Event files: records with checksums that contain protocol buffers.

Only a few messages are needed, and they are only written, so this module encodes them directly.
"""

from __future__ import annotations

import itertools
import os
import socket
import struct
import time
import weakref
from typing import Any, BinaryIO

import numpy as np

from retrograde.files.atomic import full_disk_as_resource_exhausted
from retrograde.io.files import tensorflow_errors
from retrograde.protobuf.wire import (
    FIXED64,
    encode_bytes_field,
    encode_varint,
    encode_varint_field,
)
from retrograde.records.files import encode_record
from retrograde.values import dtypes
from retrograde.values.locks import fork_safe_lock

# TensorFlow's numbers of dtypes in protocol buffers
_DTYPES = {
    "float32": 1,
    "float64": 2,
    "int32": 3,
    "uint8": 4,
    "int16": 5,
    "int8": 6,
    "string": 7,
    "complex64": 8,
    "int64": 9,
    "bool": 10,
    "bfloat16": 14,
    "uint16": 17,
    "complex128": 18,
    "float16": 19,
    "uint32": 22,
    "uint64": 23,
}


def _double_field(field: int, value: float) -> bytes:
    return encode_varint(field << 3 | FIXED64) + struct.pack("<d", value)


def event(wall_time: float, step: int | None, *content: bytes) -> bytes:
    """Encodes an event with its time and step."""
    steps = b"" if step is None else encode_varint_field(2, step)
    return _double_field(1, wall_time) + steps + b"".join(content)


def file_version() -> bytes:
    """Encodes the content of the first event of a file."""
    return encode_bytes_field(3, b"brain.Event:2") + encode_bytes_field(
        10, encode_bytes_field(1, b"retrograde.summary")
    )


def summary(raw: bytes) -> bytes:
    """Encodes a summary as the content of an event."""
    return encode_bytes_field(5, raw)


def summary_value(tag: str, array: np.ndarray, metadata: bytes) -> bytes:
    """Encodes a summary of one tensor with the name `tag`."""
    return encode_bytes_field(
        1,
        encode_bytes_field(1, tag.encode())
        + encode_bytes_field(8, _tensor(array))
        + encode_bytes_field(9, metadata),
    )


def plugin_metadata(plugin: str, description: str | None, content: bytes = b"") -> bytes:
    """Encodes the TensorBoard plugin of a value and its description."""
    plugin_data = encode_bytes_field(1, plugin.encode()) + (
        encode_bytes_field(2, content) if content else b""
    )
    description_field = encode_bytes_field(3, description.encode()) if description else b""
    return encode_bytes_field(1, plugin_data) + description_field


def _tensor(array: np.ndarray) -> bytes:
    name = "string" if array.dtype.kind == "O" else dtypes.of(array.dtype).name
    sizes = b"".join(encode_bytes_field(2, encode_varint_field(1, size)) for size in array.shape)
    header = encode_varint_field(1, _DTYPES[name]) + encode_bytes_field(2, sizes)
    if name == "string":
        return header + b"".join(
            encode_bytes_field(8, value) for value in array.reshape(-1).tolist()
        )
    return header + encode_bytes_field(4, array.tobytes())


_numbers = itertools.count()


class EventFile:
    """A file to which any thread can append events.

    Events are written when more than `max_queue` are pending, when an event is added
    `flush_seconds` after the last write, by `flush`, or when the object is garbage-collected.
    """

    def __init__(self, directory: str, max_queue: int, flush_seconds: float, suffix: str) -> None:
        with tensorflow_errors(directory):
            os.makedirs(directory, exist_ok=True)
        now = time.time()
        unique_id = f"{int(now)}.{socket.gethostname()}.{os.getpid()}.{next(_numbers)}"
        self.path = os.path.join(directory, f"events.out.tfevents.{unique_id}{suffix}")
        self._pending: list[bytes] = [encode_record(event(now, None, file_version()))]
        self._max_queue, self._flush_seconds = max_queue, flush_seconds
        self._lock = fork_safe_lock()
        with tensorflow_errors(self.path):
            file = open(self.path, "wb", buffering=0)  # noqa: SIM115 (`close` closes it)
        self._file = file
        self.close: Any = weakref.finalize(self, _close, file, self._pending, self._lock)
        self.flush()

    def append(self, data: bytes) -> None:
        """Adds an event."""
        with self._lock:
            self._pending.append(encode_record(data))
        late = time.monotonic() - self._flushed > self._flush_seconds
        if late or len(self._pending) > self._max_queue:
            self.flush()

    def flush(self) -> None:
        """Writes all pending events to the file."""
        self._flushed = time.monotonic()
        _write(self._file, self._pending, self._lock)


def _write(file: BinaryIO, pending: list[bytes], lock: Any) -> None:
    """Appends all events or none: after an error the file is truncated to its previous size."""
    with lock:
        if not pending or file.closed:
            pending.clear()
            return
        start = file.tell()
        try:
            with full_disk_as_resource_exhausted(file.name):
                _write_all(file, b"".join(pending))
            pending.clear()
        except BaseException:
            if pending:
                file.truncate(start)
                file.seek(start)
            raise


def _write_all(file: BinaryIO, data: bytes) -> None:
    """Writes all bytes. A single call may write only a part of them."""
    remaining = memoryview(data)
    while remaining:
        remaining = remaining[file.write(remaining) :]


def _close(file: BinaryIO, pending: list[bytes], lock: Any) -> None:
    try:
        _write(file, pending, lock)
    finally:
        file.close()
