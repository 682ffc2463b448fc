"""Tensor files, which are written atomically and verified when they are read.

They are safetensors files. Strings and dtypes that safetensors does not support are written as
bytes; the metadata describe how to read them. Each tensor and the metadata have a CRC-32.
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
from retrograde.values.errors import DataLossError, NotFoundError

SUFFIX = ".safetensors"
_VERSION = "1"
_METADATA = ("kind", "version", "description", "encoded", "checksums")
_LENGTHS = "/.LENGTHS"  # suffix of the key under which the lengths of a string tensor are stored
# safetensors dtypes and their NumPy names; other dtypes are written as bytes.
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
    """Writes a file of this `kind` with tensors and a JSON-serializable description."""
    replace_file(
        path, lambda temporary: write_tensors_in_place(temporary, kind, tensors, description)
    )


def write_tensors_in_place(
    path: str, kind: str, tensors: Mapping[str, np.ndarray], description: Any
) -> None:
    """Writes the file in place, for directories that are renamed after they are complete."""
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
    os.chmod(path, os.stat(os.path.dirname(path)).st_mode & 0o666)  # apply the umask


def _checksum(key: str, array: np.ndarray) -> int:
    """Returns a checksum of the name, dtype, shape and bytes of a tensor."""
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
    """Returns whether the checksum matches. safetensors does not keep the order of entries."""
    written = {name: metadata.get(name) for name in _METADATA}
    return metadata.get("checksum") == str(json_checksum(written))


def _is_encoding(data: Any) -> bool:
    """Returns whether the dtype and shape of a tensor that was written as bytes are valid."""
    match data:
        case {"dtype": str(name), "shape": list(shape)}:
            return name in _AS_BYTES and all(type(size) is int and size >= 0 for size in shape)
    return False


class TensorFile:
    """A tensor file. Tensors are read on demand."""

    def __init__(self, path: str, kind: str) -> None:
        from safetensors import SafetensorError, safe_open

        self.path, self._kind, self._error = path, kind, SafetensorError
        try:
            self._file = safe_open(path, framework="np").__enter__()
        except FileNotFoundError:
            raise NotFoundError(None, None, f"There is no {kind} at {path}.") from None
        except (SafetensorError, OSError) as error:
            raise self.read_error(f"it is corrupt or has another format ({error})") from None
        metadata = self._file.metadata() or {}
        if metadata.get("kind") != kind:
            raise self.read_error(f"it has tensors, but is not a {kind}")
        if metadata.get("version") != _VERSION:
            raise self.read_error(f"its version is {metadata.get('version')}, not {_VERSION}")
        if not _has_checksum(metadata):
            raise self.read_error("the checksum of its metadata is missing or wrong")
        try:
            self.description = parse_json(metadata["description"], path)
            self._encoded = dict(parse_json(metadata["encoded"], path))
            if not all(map(_is_encoding, self._encoded.values())):
                raise ValueError
            self._checksums = dict(parse_json(metadata["checksums"], path))
        except (DataLossError, KeyError, TypeError, ValueError):
            raise self.read_error("its metadata is corrupt") from None
        stored = self._file.keys()
        if set(stored) != set(self._checksums):
            raise self.read_error("its tensors do not match its metadata")
        self.keys = [key for key in stored if not key.endswith(_LENGTHS)]

    def read_error(self, reason: str) -> DataLossError:
        """Returns the error for a corrupt or unexpected file."""
        return DataLossError(None, None, f"Cannot read {self.path} as a {self._kind}: {reason}.")

    def array(self, key: str) -> np.ndarray:
        """Returns the tensor of this name."""
        try:
            return self._decode(key, self._read_checked(key))
        except (KeyError, TypeError, ValueError, self._error) as error:
            raise self.read_error(f"its tensor {key} is corrupt ({error})") from None

    def _read_checked(self, key: str) -> np.ndarray:
        array = self._file.get_tensor(key)
        if _checksum(key, array) != self._checksums[key]:
            raise self.read_error(f"the checksum of its tensor {key} does not match its data")
        return array

    def _decode(self, key: str, array: np.ndarray) -> np.ndarray:
        if key not in self._encoded:
            return array
        shape = self._encoded[key]["shape"]
        if self._encoded[key]["dtype"] != "string":
            return array.view(self.dtype(key).numpy_dtype).reshape(shape)
        text = array.tobytes()
        ends = np.cumsum(self._read_checked(key + _LENGTHS)).tolist()
        result = np.empty(len(ends), object)
        result[:] = [text[a:b] for a, b in zip([0, *ends], ends, strict=False)]
        return result.reshape(shape)

    def dtype(self, key: str) -> DType:
        """Returns the dtype of a tensor."""
        encoded = self._encoded.get(key)
        return dtypes.as_dtype(
            encoded["dtype"] if encoded else _NAMES[self._file.get_slice(key).get_dtype()]
        )

    def shape(self, key: str) -> list[int]:
        """Returns the shape of a tensor."""
        encoded = self._encoded.get(key)
        return list(encoded["shape"] if encoded else self._file.get_slice(key).get_shape())
