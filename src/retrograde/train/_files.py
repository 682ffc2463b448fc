"""Files of tensors: written whole or not at all, read without running anything."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from retrograde.core import dtypes
from retrograde.core.dtypes import DType
from retrograde.core.errors import DataLossError, NotFoundError

SUFFIX = ".safetensors"
GRAPH_KEY = "_CHECKPOINTABLE_OBJECT_GRAPH"
_KIND, _VERSION = "retrograde checkpoint", "1"
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


def file_of(prefix: str) -> str:
    """The file of the checkpoint that is called `prefix`."""
    return prefix if prefix.endswith(SUFFIX) else prefix + SUFFIX


def prefix_of(path: str) -> str:
    """What a checkpoint is called, whose file may have been named instead."""
    return path.removesuffix(SUFFIX)


# Writing


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


def write_tensors(path: str, tensors: Mapping[str, np.ndarray], objects: Any) -> None:
    """Writes tensors and a description of the objects that they belong to."""
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
        "kind": _KIND,
        "version": _VERSION,
        "objects": json.dumps(objects),
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


# Reading


class CheckpointReader:
    """The tensors of one checkpoint, read when they are asked for."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix_of(prefix)
        self._file = _opened(self._prefix)
        metadata = self._file.metadata() or {}
        if metadata.get("kind") != _KIND:
            raise _unreadable(file_of(self._prefix), "it holds tensors but no checkpoint")
        if metadata.get("version") != _VERSION:
            raise _unreadable(
                file_of(self._prefix), f"its version is {metadata.get('version')}, not {_VERSION}"
            )
        try:
            self.objects = json.loads(metadata["objects"])
            self._encoded = json.loads(metadata["encoded"])
        except (KeyError, ValueError):
            raise _unreadable(file_of(self._prefix), "its description is damaged") from None
        self._graph = metadata["objects"].encode()
        self._keys = [key for key in self._file.keys() if not key.endswith(_LENGTHS)]  # noqa: SIM118
        self._check_objects()

    def _check_objects(self) -> None:
        nodes, keys = self.objects, set(self._keys)
        sound = isinstance(nodes, list) and all(
            isinstance(node, dict)
            and all(child in range(len(nodes)) for child in node["children"].values())
            and keys.issuperset(node["values"].values())
            for node in nodes
        )
        if not sound:
            raise _unreadable(file_of(self._prefix), "its description does not fit its tensors")

    def has_tensor(self, tensor_str: str) -> bool:
        """Whether there is a tensor of this name."""
        return tensor_str == GRAPH_KEY or tensor_str in self._keys

    def get_tensor(self, tensor_str: str) -> Any:
        """The tensor of this name, as an array or a scalar."""
        if tensor_str == GRAPH_KEY:
            return self._graph
        if tensor_str not in self._keys:
            raise NotFoundError(None, None, f"Key {tensor_str} not found in checkpoint")
        return self.array(tensor_str)[()]

    def array(self, key: str) -> np.ndarray:
        """The tensor of this name, as an array even if it has no axes."""
        array = self._file.get_tensor(key)
        if key not in self._encoded:
            return array
        shape = self._encoded[key]["shape"]
        if self._encoded[key]["dtype"] != "string":
            return array.view(self._dtype(key).numpy_dtype).reshape(shape)
        text = array.tobytes()
        ends = np.cumsum(self._file.get_tensor(key + _LENGTHS)).tolist()
        result = np.empty(len(ends), object)
        result[:] = [text[a:b] for a, b in zip([0, *ends], ends, strict=False)]
        return result.reshape(shape)

    def _dtype(self, key: str) -> DType:
        encoded = self._encoded.get(key)
        return dtypes.as_dtype(
            encoded["dtype"] if encoded else _NAMES[self._file.get_slice(key).get_dtype()]
        )

    def get_variable_to_shape_map(self) -> dict[str, list[int]]:
        """The shapes of all tensors, by name."""
        shapes = {key: list(self._file.get_slice(key).get_shape()) for key in self._keys}
        shapes |= {key: list(entry["shape"]) for key, entry in self._encoded.items()}
        return shapes | {GRAPH_KEY: []}

    def get_variable_to_dtype_map(self) -> dict[str, DType]:
        """The dtypes of all tensors, by name."""
        return {key: self._dtype(key) for key in self._keys} | {GRAPH_KEY: dtypes.string}

    def debug_string(self) -> bytes:
        """A line of text for each tensor."""
        kinds = self.get_variable_to_dtype_map()
        shapes = sorted(self.get_variable_to_shape_map().items())
        return "".join(f"{key} ({kinds[key].name}) {shape}\n" for key, shape in shapes).encode()


def _opened(prefix: str) -> Any:
    from safetensors import SafetensorError, safe_open

    path = file_of(prefix)
    if not os.path.exists(path):
        if os.path.isdir(prefix):
            raise DataLossError(
                None,
                None,
                f"{prefix} is a directory. Expected a checkpoint, such as "
                "tf.train.latest_checkpoint finds in it.",
            )
        if os.path.exists(f"{prefix}.index"):
            raise _unreadable(
                f"{prefix}.index",
                "it was written by TensorFlow. Save the variables from there as NumPy arrays",
            )
        raise NotFoundError(
            None,
            None,
            f"There is no checkpoint {prefix}: the file {path} does not exist. The path may lack "
            "the number at its end (as the '-1' of 'path/to/ckpt-1').",
        )
    try:
        return safe_open(path, framework="np").__enter__()
    except (SafetensorError, OSError) as error:
        raise _unreadable(path, f"it is damaged or of another format ({error})") from None


def _unreadable(path: str, reason: str) -> DataLossError:
    return DataLossError(None, None, f"Cannot read {path} as a checkpoint: {reason}.")
