"""Reads corrupt and malicious files and decompression bombs, in every supported format.

A trial creates a valid file, corrupts it and reads it. Reading must end within 10 s, use at most
64 MB plus 20 times the size of the file and of the result, create no other file, and return a
result or raise one of the exception classes of the format. Unless the corruption also updates the
checksums, it must be detected or change nothing.
"""

from __future__ import annotations

import base64
import contextlib
import os
import pathlib
import random
import signal
import tempfile
import time
import traceback
import tracemalloc
import warnings
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np

import retrograde as tf
from campaigns._files.corruption import corrupt
from campaigns._files.formats import FORMATS, Files, Format

SHORT = 200
_SECONDS, _BYTES, _TIMES = 10, 64 << 20, 20
_RARE = {"zlib bomb": 0.05}  # takes long to read


def trial(seed: int) -> str | None:
    """Runs one trial. Returns a description of the problem, if any."""
    rng = random.Random(seed)
    weights = [_RARE.get(name, 1) for name in FORMATS]
    (name,) = rng.choices(list(FORMATS), weights)
    form = FORMATS[name]
    with tempfile.TemporaryDirectory() as folder:
        canary = os.path.join(folder, "canary")
        here = pathlib.Path(folder) / "files"
        files = form.make(rng)
        part = rng.choice(list(files))
        data, corruption = files[part], "intact"
        if "bomb" not in name or rng.random() < 0.3:
            data, corruption = corrupt(rng, part, data, canary)
        _write(here, files | {part: data})
        if rng.random() < 0.02:
            (here / part).unlink()
            corruption = "deleted"
        problem = _problem(form, here, files, part, data, corruption)
        if problem is None and (os.path.exists(canary) or set(_names(here)) - set(files)):
            problem = f"new files: {os.listdir(folder)}, {sorted(_names(here))}"
    return None if problem is None else _report(name, part, data, corruption, problem)


def _write(folder: pathlib.Path, files: Files) -> None:
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)


def _names(folder: pathlib.Path) -> list[str]:
    return [str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()]


def _problem(
    form: Format, folder: pathlib.Path, files: Files, part: str, data: bytes, corruption: str
) -> str | None:
    """Reads the files. Returns a description of the problem, if any."""
    start, result = time.monotonic(), None
    tracemalloc.start()
    try:
        with _timeout(), warnings.catch_warnings():
            warnings.simplefilter("error")
            result = form.read(folder)
    except form.errors:
        pass
    except (FileNotFoundError, tf.errors.NotFoundError):
        if corruption != "deleted":
            return traceback.format_exc()
    except (Exception, _TooLong):
        return traceback.format_exc()
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    seconds = time.monotonic() - start
    if seconds > _SECONDS:
        return f"took {seconds:.1f} s"
    limit = _BYTES + _TIMES * (sum(map(len, files.values())) + len(data) + _size(result))
    if peak > limit:
        return f"used {peak} bytes of memory; the limit is {limit}"
    detectable = "right" not in corruption and corruption != "deleted" and data
    if form.has_checksums and result is not None and detectable:
        return _difference(form, folder, files, part, result, corruption)
    return None


class _TooLong(BaseException):
    """Raised when reading takes too long; `except Exception` does not catch it."""


@contextlib.contextmanager
def _timeout() -> Iterator[None]:
    def stop(*_: Any) -> None:
        raise _TooLong

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(2 * _SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def _size(result: Any) -> int:
    """Returns the bytes of all tensors and strings in a result."""
    if isinstance(result, (list, tuple)):
        return sum(map(_size, result))
    if isinstance(result, dict):
        return sum(map(_size, result.values()))
    if isinstance(result, (bytes, str)):
        return len(result)
    array = np.asarray(result.numpy() if isinstance(result, tf.Tensor) else 0)
    return sum(map(len, array.ravel().tolist())) if array.dtype == object else array.nbytes


def _difference(
    form: Format, folder: pathlib.Path, files: Files, part: str, result: Any, corruption: str
) -> str | None:
    """Compares with the result of the intact files. Returns `None` if they are equal."""
    (folder / part).write_bytes(files[part])
    if repr(form.read(folder)) != repr(result) and "inside" not in corruption:
        return "the corruption was not detected, and the result differs"
    return None


def _report(name: str, part: str, data: bytes, corruption: str, problem: str) -> str:
    written = base64.b85encode(zlib.compress(data, 9)).decode()
    contents = f"zlib.decompress(base64.b85decode({written!r}))" if len(written) < 8000 else "..."
    lines = problem.strip().splitlines()
    return "\n".join(
        [
            f"{name}, {part}, {len(data)} bytes, corrupted by: {corruption}",
            *lines[:3],
            *lines[3:][-12:],
            f"open({part!r}, 'wb').write({contents})",
        ]
    )
