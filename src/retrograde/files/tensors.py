"""Files of tensors: replaced as a whole, checked when they are read, and never executed.

They are safetensors files. Strings and the dtypes that these lack are written as bytes; the
metadata of the file describes how to read them. Each tensor and the metadata have a CRC-32.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from retrograde.files.atomic import error_number, replace_file
from retrograde.files.checked_json import json_checksum, parse_json
from retrograde.values import dtypes
from retrograde.values.dtypes import DType
from retrograde.values.errors import DataLossError

SUFFIX = ".safetensors"
_VERSION = "1"
_METADATA = ("kind", "version", "description", "encoded", "checksums")
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
_AS_BYTES = frozenset(
    d.name for d in (*dtypes.ALL, dtypes.float8_e5m2, dtypes.float8_e4m3fn)
) - frozenset(_NAMES.values())


def write_tensors(
    path: str, kind: str, tensors: Mapping[str, np.ndarray], description: Any
) -> None:
    """Writes a file of one `kind`: tensors, and a description that JSON can hold."""
    replace_file(path, lambda temporary: put_tensors(temporary, kind, tensors, description))


def put_tensors(path: str, kind: str, tensors: Mapping[str, np.ndarray], description: Any) -> None:
    """Writes the file in place, for directories that are renamed when they are complete."""
    from safetensors import SafetensorError
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
        "checksums": json.dumps({key: _checksum(key, array) for key, array in stored.items()}),
    }
    metadata["checksum"] = str(json_checksum(metadata))
    try:
        save_file(stored, path, metadata)
    except SafetensorError as error:
        number = error_number(error)
        if number is None:
            raise
        raise OSError(number, os.strerror(number), path) from error
    os.chmod(path, os.stat(os.path.dirname(path)).st_mode & 0o666)  # as the umask has it


def _checksum(key: str, array: np.ndarray) -> int:
    """A checksum of the name, dtype, shape and bytes of a tensor."""
    dtype = array.dtype
    start = zlib.crc32(f"{key} {dtype.kind}{dtype.itemsize} {array.shape}".encode())
    return zlib.crc32(array.reshape(-1).view(np.uint8), start)


def _as_bytes(key: str, array: np.ndarray) -> dict[str, np.ndarray]:
    if array.dtype.kind != "O":
        return {key: np.frombuffer(array.tobytes(), np.uint8)}
    strings = array.reshape(-1).tolist()
    return {
        key: np.frombuffer(b"".join(strings), np.uint8),
        key + _LENGTHS: np.array([len(string) for string in strings], np.int64),
    }


def _has_checksum(metadata: Mapping[str, str]) -> bool:
    """Whether the metadata are what was written. Safetensors keeps no order of them."""
    written = {name: metadata.get(name) for name in _METADATA}
    return metadata.get("checksum") == str(json_checksum(written))


def _is_encoding(data: Any) -> bool:
    """Whether a tensor that was written as bytes has a dtype and a shape."""
    match data:
        case {"dtype": str(name), "shape": list(shape)}:
            return name in _AS_BYTES and all(type(size) is int and size >= 0 for size in shape)
    return False


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
        if not _has_checksum(metadata):
            raise self.unreadable("the checksum of its description is missing or wrong")
        try:
            self.description = parse_json(metadata["description"], path)
            self._encoded = dict(parse_json(metadata["encoded"], path))
            if not all(map(_is_encoding, self._encoded.values())):
                raise ValueError
            self._checksums = dict(parse_json(metadata["checksums"], path))
        except (DataLossError, KeyError, TypeError, ValueError):
            raise self.unreadable("its description is damaged") from None
        stored = self._file.keys()
        if set(stored) != set(self._checksums):
            raise self.unreadable("its tensors are not those that it describes")
        self.keys = [key for key in stored if not key.endswith(_LENGTHS)]

    def unreadable(self, reason: str) -> DataLossError:
        """The error for a file that is not what it should be."""
        return DataLossError(None, None, f"Cannot read {self.path} as a {self._kind}: {reason}.")

    def array(self, key: str) -> np.ndarray:
        """The tensor of this name."""
        try:
            return self._decoded(key, self._checked(key))
        except (KeyError, TypeError, ValueError, self._error) as error:
            raise self.unreadable(f"its tensor {key} is damaged ({error})") from None

    def _checked(self, key: str) -> np.ndarray:
        array = self._file.get_tensor(key)
        if _checksum(key, array) != self._checksums[key]:
            raise self.unreadable(f"the checksum of its tensor {key} does not match its data")
        return array

    def _decoded(self, key: str, array: np.ndarray) -> np.ndarray:
        if key not in self._encoded:
            return array
        shape = self._encoded[key]["shape"]
        if self._encoded[key]["dtype"] != "string":
            return array.view(self.dtype(key).numpy_dtype).reshape(shape)
        text = array.tobytes()
        ends = np.cumsum(self._checked(key + _LENGTHS)).tolist()
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
