"""Checkpoint files."""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np

from retrograde.files.tensors import SUFFIX, TensorFile
from retrograde.values import dtypes
from retrograde.values.arguments import as_text
from retrograde.values.dtypes import DType
from retrograde.values.errors import DataLossError, NotFoundError

KIND = "checkpoint"
GRAPH_KEY = "_CHECKPOINTABLE_OBJECT_GRAPH"


def file_of(prefix: str) -> str:
    """Returns the file name of the checkpoint `prefix`."""
    return prefix if prefix.endswith(SUFFIX) else prefix + SUFFIX


class CheckpointReader:
    """Reads the tensors of a checkpoint on demand. TensorFlow's checkpoints are read, too."""

    def __init__(self, prefix: str) -> None:
        self._file = _open_file(prefix.removesuffix(SUFFIX))
        self.converts_integers: bool = getattr(self._file, "converts_integers", False)
        self._table_keys: set[str] = getattr(self._file, "table_keys", set())
        self.objects = self._file.description
        if not _is_consistent(self.objects, self._table_keys | set(self._file.keys)):
            raise self._file.read_error("its metadata do not match its tensors")

    def has_tensor(self, tensor_str: str) -> bool:
        """Returns whether there is a tensor of this name."""
        return tensor_str == GRAPH_KEY or tensor_str in self._file.keys

    def get_tensor(self, tensor_str: str) -> Any:
        """Returns the tensor of this name as an array or a scalar."""
        if tensor_str == GRAPH_KEY and GRAPH_KEY not in self._file.keys:
            return json.dumps(self.objects).encode()
        if tensor_str not in self._file.keys and tensor_str not in self._table_keys:
            raise NotFoundError(None, None, f"Key {as_text(tensor_str)} not found in checkpoint")
        return self.array(tensor_str)[()]

    def array(self, key: str) -> np.ndarray:
        """Returns the tensor of this name as an array, also if it is a scalar."""
        return self._file.array(key)

    def get_variable_to_shape_map(self) -> dict[str, list[int]]:
        """Returns the shapes of all tensors by name."""
        return {GRAPH_KEY: []} | {key: self._file.shape(key) for key in self._file.keys}

    def get_variable_to_dtype_map(self) -> dict[str, DType]:
        """Returns the dtypes of all tensors by name."""
        return {key: self._file.dtype(key) for key in self._file.keys} | {GRAPH_KEY: dtypes.string}

    def debug_string(self) -> bytes:
        """Returns a line of text for each tensor."""
        dtypes_by_key = self.get_variable_to_dtype_map()
        shapes = sorted(self.get_variable_to_shape_map().items())
        return "".join(
            f"{key} ({dtypes_by_key[key].name}) {shape}\n" for key, shape in shapes
        ).encode()


def _is_consistent(nodes: Any, keys: set[str]) -> bool:
    """Returns whether an object graph refers only to existing objects and tensors."""
    try:
        return all(
            all(child in range(len(nodes)) for child in node["children"].values())
            and keys.issuperset(node["values"].values())
            for node in nodes
        ) and bool(nodes)
    except (AttributeError, KeyError, TypeError):
        return False


def exists(prefix: str) -> bool:
    """Returns whether there is a checkpoint, of retrograde or of TensorFlow."""
    return os.path.exists(file_of(prefix)) or os.path.exists(f"{prefix}.index")


def _open_file(prefix: str) -> Any:
    path = file_of(prefix)
    if os.path.exists(path):
        return TensorFile(path, KIND)
    prefix = prefix.removesuffix(".index")
    if os.path.exists(f"{prefix}.index"):
        from retrograde.tensorflow_files.bundle import Bundle  # rarely needed

        return Bundle(prefix)
    if os.path.isdir(prefix):
        raise DataLossError(
            None,
            None,
            f"{prefix} is a directory. Expected a checkpoint path, such as the result of "
            "tf.train.latest_checkpoint.",
        )
    raise NotFoundError(
        None,
        None,
        f"There is no checkpoint {prefix}: the file {path} does not exist. The path may lack "
        "the number at its end (such as '-1' in 'path/to/ckpt-1').",
    )
