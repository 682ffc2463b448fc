"""Event files: records with checksums, whose contents are protocol buffers.

Of these only a few messages are needed, and only written; so they are put together here, each as
its fields: a number, a kind of content, the content.
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
from retrograde.summary._crc import masked_crc
from retrograde.values import dtypes
from retrograde.values.locks import fork_safe_lock

# TensorFlow's numbers for the dtypes of tensors in files
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


def _varint(number: int) -> bytes:
    number &= (1 << 64) - 1
    parts = bytearray()
    while number > 127:
        parts.append(number & 127 | 128)
        number >>= 7
    parts.append(number)
    return bytes(parts)


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _double(field: int, value: float) -> bytes:
    return _varint(field << 3 | 1) + struct.pack("<d", value)


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def event(wall_time: float, step: int | None, *content: bytes) -> bytes:
    """Something that happened: at a time, in a step."""
    steps = b"" if step is None else _number(2, step)
    return _double(1, wall_time) + steps + b"".join(content)


def file_version() -> bytes:
    """What the first event of a file holds."""
    return _bytes(3, b"brain.Event:2") + _bytes(10, _bytes(1, b"retrograde.summary"))


def summary(raw: bytes) -> bytes:
    """A summary as the content of an event."""
    return _bytes(5, raw)


def summary_value(tag: str, array: np.ndarray, metadata: bytes) -> bytes:
    """A summary of one tensor under the name `tag`."""
    return _bytes(1, _bytes(1, tag.encode()) + _bytes(8, _tensor(array)) + _bytes(9, metadata))


def plugin_metadata(plugin: str, description: str | None, content: bytes = b"") -> bytes:
    """Which part of TensorBoard shows a value, and what to say about it."""
    named = _bytes(1, plugin.encode()) + (_bytes(2, content) if content else b"")
    described = _bytes(3, description.encode()) if description else b""
    return _bytes(1, named) + described


def _tensor(array: np.ndarray) -> bytes:
    name = "string" if array.dtype.kind == "O" else dtypes.of(array.dtype).name
    sizes = b"".join(_bytes(2, _number(1, size)) for size in array.shape)
    head = _number(1, _DTYPES[name]) + _bytes(2, sizes)
    if name == "string":
        return head + b"".join(_bytes(8, value) for value in array.reshape(-1).tolist())
    return head + _bytes(4, array.tobytes())


def record(data: bytes) -> bytes:
    """A record: length and data, each with its checksum."""
    length = struct.pack("<Q", len(data))
    sums = (struct.pack("<I", masked_crc(part)) for part in (length, data))
    return length + next(sums) + data + next(sums)


_numbers = itertools.count()


class EventFile:
    """A file that events are appended to, by any thread.

    They reach the file once there are more than `max_queue` of them, or one comes `flush_seconds`
    after the last that did, or it is flushed; at the latest when nobody holds it any more.
    """

    def __init__(self, directory: str, max_queue: int, flush_seconds: float, suffix: str) -> None:
        with tensorflow_errors(directory):
            os.makedirs(directory, exist_ok=True)
        now = time.time()
        place = f"{int(now)}.{socket.gethostname()}.{os.getpid()}.{next(_numbers)}"
        self.path = os.path.join(directory, f"events.out.tfevents.{place}{suffix}")
        self._waiting: list[bytes] = [record(event(now, None, file_version()))]
        self._max_queue, self._flush_seconds = max_queue, flush_seconds
        self._lock = fork_safe_lock()
        with tensorflow_errors(self.path):
            file = open(self.path, "wb", buffering=0)  # noqa: SIM115 (`close` closes it)
        self._file = file
        self.close: Any = weakref.finalize(self, _close, file, self._waiting, self._lock)
        self.flush()

    def append(self, data: bytes) -> None:
        """Adds an event."""
        with self._lock:
            self._waiting.append(record(data))
        late = time.monotonic() - self._flushed > self._flush_seconds
        if late or len(self._waiting) > self._max_queue:
            self.flush()

    def flush(self) -> None:
        """Brings all events to the file."""
        self._flushed = time.monotonic()
        _write(self._file, self._waiting, self._lock)


def _write(file: BinaryIO, waiting: list[bytes], lock: Any) -> None:
    """Appends all events or none: an error in the middle takes back what was written of them."""
    with lock:
        if not waiting or file.closed:
            waiting.clear()
            return
        start = file.tell()
        try:
            with full_disk_as_resource_exhausted(file.name):
                _write_all(file, b"".join(waiting))
            waiting.clear()
        except BaseException:
            if waiting:
                file.truncate(start)
                file.seek(start)
            raise


def _write_all(file: BinaryIO, data: bytes) -> None:
    """Writes all bytes. A disk may take a part of them before it is full."""
    rest = memoryview(data)
    while rest:
        rest = rest[file.write(rest) :]


def _close(file: BinaryIO, waiting: list[bytes], lock: Any) -> None:
    try:
        _write(file, waiting, lock)
    finally:
        file.close()
