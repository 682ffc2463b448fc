"""Files of tensors: written whole or not at all, read without running anything.

They are safetensors files. Strings and the dtypes that these lack are written as bytes; how to read
them back stands in the file beside the rest of its description.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from retrograde.core import dtypes
from retrograde.core.dtypes import DType
from retrograde.core.errors import DataLossError

SUFFIX = ".safetensors"
_VERSION = "1"
_LENGTHS = "/.LENGTHS"  # behind the key of a tensor of strings, for how long each of them is
# The dtypes that safetensors reads into NumPy arrays, by its names; others are written as bytes.
_NAMES = {
    "BOOL": "bool",
    "BF16": "bfloat16",
    "C64": "complex64",
    **{f"F{bits}": f"float{bits}" for bits in (16, 32, 64)},
    **{f"I{bits}": f"int{bits}" for bits in (8, 16, 32, 64)},
    **{f"U{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
}


def write_whole(path: str, write: Callable[[str], None]) -> None:
    """Puts a file at `path` that `write(temporary)` makes, once all of it is on the disk.

    Whenever the process is killed, `path` is what it was before or what it is to be. What was left
    behind is cleared away the next time.
    """
    workplace = f"{path}.tmp"
    shutil.rmtree(workplace, ignore_errors=True)
    os.mkdir(workplace)
    try:
        temporary = os.path.join(workplace, "file")
        write(temporary)
        os.chmod(temporary, os.stat(workplace).st_mode & 0o666)
        with open(temporary, "rb+") as file:
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        shutil.rmtree(workplace, ignore_errors=True)
    if os.name == "posix":  # the directory knows the new name only then
        directory = os.open(os.path.dirname(path) or ".", os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)


def write_tensors(
    path: str, kind: str, tensors: Mapping[str, np.ndarray], description: Any
) -> None:
    """Writes a file of one `kind`: tensors, and a description that JSON can hold."""
    from safetensors.numpy import save_file

    stored: dict[str, np.ndarray] = {}
    encoded: dict[str, Any] = {}
    for key, array in tensors.items():
        name = "string" if array.dtype.kind == "O" else array.dtype.name
        if name in _NAMES.values():
            stored[key] = np.asarray(array, order="C")
            continue
        encoded[key] = {"dtype": name, "shape": array.shape}
        stored |= _as_bytes(key, array)
    metadata = {
        "kind": kind,
        "version": _VERSION,
        "description": json.dumps(description),
        "encoded": json.dumps(encoded),
    }
    write_whole(path, lambda temporary: save_file(stored, temporary, metadata))


def _as_bytes(key: str, array: np.ndarray) -> dict[str, np.ndarray]:
    if array.dtype.kind != "O":
        return {key: np.frombuffer(array.tobytes(), np.uint8)}
    strings = array.reshape(-1).tolist()
    return {
        key: np.frombuffer(b"".join(strings), np.uint8),
        key + _LENGTHS: np.array([len(string) for string in strings], np.int64),
    }


class TensorFile:
    """A file of tensors, each read when it is asked for."""

    def __init__(self, path: str, kind: str) -> None:
        from safetensors import SafetensorError, safe_open

        self.path, self._kind, self._error = path, kind, SafetensorError
        try:
            self._file = safe_open(path, framework="np").__enter__()
        except (SafetensorError, OSError) as error:
            raise self.unreadable(f"it is damaged or of another format ({error})") from None
        metadata = self._file.metadata() or {}
        if metadata.get("kind") != kind:
            raise self.unreadable(f"it holds tensors but no {kind}")
        if metadata.get("version") != _VERSION:
            raise self.unreadable(f"its version is {metadata.get('version')}, not {_VERSION}")
        try:
            self.description = json.loads(metadata["description"])
            self._encoded = dict(json.loads(metadata["encoded"]))
        except (KeyError, TypeError, ValueError):
            raise self.unreadable("its description is damaged") from None
        self.keys = [key for key in self._file.keys() if not key.endswith(_LENGTHS)]  # noqa: SIM118

    def unreadable(self, reason: str) -> DataLossError:
        """The error for a file that is not what it should be."""
        return DataLossError(None, None, f"Cannot read {self.path} as a {self._kind}: {reason}.")

    def array(self, key: str) -> np.ndarray:
        """The tensor of this name."""
        try:
            return self._decoded(key, self._file.get_tensor(key))
        except (KeyError, TypeError, ValueError, self._error) as error:
            raise self.unreadable(f"its tensor {key} is damaged ({error})") from None

    def _decoded(self, key: str, array: np.ndarray) -> np.ndarray:
        if key not in self._encoded:
            return array
        shape = self._encoded[key]["shape"]
        if self._encoded[key]["dtype"] != "string":
            return array.view(self.dtype(key).numpy_dtype).reshape(shape)
        text = array.tobytes()
        ends = np.cumsum(self._file.get_tensor(key + _LENGTHS)).tolist()
        result = np.empty(len(ends), object)
        result[:] = [text[a:b] for a, b in zip([0, *ends], ends, strict=False)]
        return result.reshape(shape)

    def dtype(self, key: str) -> DType:
        """The dtype of a tensor."""
        encoded = self._encoded.get(key)
        return dtypes.as_dtype(
            encoded["dtype"] if encoded else _NAMES[self._file.get_slice(key).get_dtype()]
        )

    def shape(self, key: str) -> list[int]:
        """The shape of a tensor."""
        encoded = self._encoded.get(key)
        return list(encoded["shape"] if encoded else self._file.get_slice(key).get_shape())
