"""Saves, loads and caches datasets on disk.

A directory contains `dataset.json`, the index, and `data-TOKEN`, the data. The index has the spec
and the number of the elements, and the name of the data directory. The data directory has a
directory for each shard, with files of consecutive elements. To replace a dataset, new data is
written and a new index is renamed over the old one.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from retrograde.core.tensor import wrap
from retrograde.data._elements import NoneTensorSpec, common_spec, spec_of_element
from retrograde.data._nodes import FunctionSource, Node, Step
from retrograde.data._workers import Run
from retrograde.files.atomic import (
    TOKEN,
    Staging,
    full_disk_as_resource_exhausted,
    lock_directory,
    remove_leftovers,
    remove_superseded,
    sync,
    sync_directory,
    write_bytes,
)
from retrograde.files.checked_json import dump_with_checksum, read_with_checksum
from retrograde.files.tensors import SUFFIX, TensorFile, write_tensors_in_place
from retrograde.io.files import tensorflow_errors
from retrograde.ragged.spec import RaggedTensorSpec
from retrograde.ragged.tensor import RaggedTensor
from retrograde.sparse.tensor import SparseTensor, SparseTensorSpec
from retrograde.values import nest
from retrograde.values.errors import DataLossError, NotFoundError, OpError
from retrograde.values.specs import TensorSpec, TypeSpec

_INDEX = "dataset.json"
_COUNTS = range(1 << 48)  # valid numbers of elements in a shard
_DATA = f"data-({TOKEN})"
_KIND = "part of a saved dataset"
_CHUNK = 1 << 25  # size in bytes after which a new file starts

# Specs in JSON


def spec_to_json(spec: Any) -> Any:
    """Converts a structure of specs to JSON."""
    if isinstance(spec, TypeSpec):
        return _leaf_to_json(spec)
    if isinstance(spec, dict):
        return {"dict": {key: spec_to_json(part) for key, part in spec.items()}}
    return {"tuple": [spec_to_json(part) for part in spec]}


def _leaf_to_json(spec: TypeSpec) -> dict[str, Any]:
    kind_names = {TensorSpec: "tensor", RaggedTensorSpec: "ragged", SparseTensorSpec: "sparse"}
    if isinstance(spec, NoneTensorSpec):
        return {"none": {}}
    if type(spec) not in kind_names:
        raise TypeError(f"Elements of type {type(spec).__name__} cannot be written to files.")
    shape = None if spec.shape.rank is None else spec.shape.as_list()
    spec_json = {"shape": shape, "dtype": spec.dtype.name}
    if isinstance(spec, RaggedTensorSpec):
        spec_json |= {
            "ragged_rank": spec.ragged_rank,
            "row_splits_dtype": spec.row_splits_dtype.name,
        }
    return {kind_names[type(spec)]: spec_json}


def spec_from_json(spec_json: Any) -> Any:
    """Converts the result of `spec_to_json` to specs."""
    ((kind, content),) = spec_json.items()
    if kind == "dict":
        return {key: spec_from_json(part) for key, part in content.items()}
    if kind == "tuple":
        return tuple(map(spec_from_json, content))
    spec_types = {
        "none": NoneTensorSpec,
        "tensor": TensorSpec,
        "ragged": RaggedTensorSpec,
        "sparse": SparseTensorSpec,
    }
    return spec_types[kind](**content)


def _arrays(element: Any) -> list[np.ndarray]:
    """Returns the arrays of all tensors in an element."""
    parts = nest.leaves(element, expand_composites=True)
    return [np.asarray(part._array) for part in parts if part is not None]


def _element(spec: Any, arrays: Iterator[np.ndarray]) -> Any:
    """Creates an element from arrays."""
    flat, pack = nest.flatten_with_pack(spec)
    return pack([_leaf(leaf, arrays) for leaf in flat])


def _leaf(spec: TypeSpec, arrays: Iterator[np.ndarray]) -> Any:
    if isinstance(spec, NoneTensorSpec):
        return None
    if isinstance(spec, SparseTensorSpec):
        return SparseTensor(*[wrap(next(arrays)) for _ in range(3)])
    first = wrap(next(arrays))
    if isinstance(spec, TensorSpec) or not spec.ragged_rank:
        return first
    splits = [wrap(next(arrays)) for _ in range(spec.ragged_rank)]
    return RaggedTensor.from_nested_row_splits(first, splits)


# Writing


class Writer:
    """Writes elements into a new directory, which the index refers to once it is complete."""

    def __init__(self, path: str, node: Node) -> None:
        self._path, self._node = path, node
        self._shards: dict[int, _Shard] = {}
        self._spec: Any = None
        self._is_new = not os.path.isdir(path)
        with full_disk_as_resource_exhausted(path):
            self._staging = _create_staging(path)
        self._name = f"data-{self._staging.token}"
        self._data = os.path.join(self._staging.path, self._name)

    def add(self, element: Any, shard: int = 0) -> None:
        """Writes one element."""
        if shard not in self._shards:
            self._shards[shard] = _Shard(os.path.join(self._data, f"{shard:08d}"))
        spec = spec_of_element(element)
        self._spec = spec if self._spec is None else common_spec(self._spec, spec) or self._spec
        self._shards[shard].add(_arrays(element))

    def commit(self, replace: bool = True) -> None:
        """Publishes the elements as the dataset of the directory.

        Without `replace`, a dataset that another process wrote in the meantime is kept, because it
        may be in use.
        """
        # Use the spec of the elements where computing the spec would call a user function.
        use_actual_spec = self._node.spec_needs_call and self._spec is not None
        spec_json = spec_to_json(self._spec if use_actual_spec else self._node.spec)
        for shard in self._shards.values():
            shard.flush()
        counts = {str(number): shard.count for number, shard in sorted(self._shards.items())}
        index = {"version": 1, "element_spec": spec_json, "shards": counts, "data": self._name}
        with full_disk_as_resource_exhausted(self._path), lock_directory(self._path):
            write_bytes(os.path.join(self._staging.path, _INDEX), dump_with_checksum(index))
            os.makedirs(self._data, exist_ok=True)  # needed if there are no elements
            sync_directory(self._data)
            if replace or not is_saved(self._path):
                self._staging.move(self._name)
                self._staging.move(_INDEX)
                sync_directory(self._path)
        self.close()
        remove_superseded(self._path, _DATA, lambda: _read_index(self._path)["data"])

    def close(self) -> None:
        """Removes everything that was not committed."""
        self._staging.close()
        if self._is_new:
            with contextlib.suppress(OSError):  # the directory is not empty
                os.rmdir(self._path)


def _create_staging(path: str) -> Staging:
    """Creates a directory and a staging directory in it.

    Retries, because another writer that aborts may remove the empty directory in between.
    """
    for _ in range(100):
        os.makedirs(path, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            return Staging(path)
    return Staging(path)


class _Shard:
    def __init__(self, path: str) -> None:
        self._path, self._pending, self._size, self._files = path, [], 0, 0
        self.count = 0

    def add(self, arrays: list[np.ndarray]) -> None:
        self._pending.append(arrays)
        self._size += sum(array.nbytes for array in arrays)
        self.count += 1
        if self._size >= _CHUNK:
            self.flush()

    def flush(self) -> None:
        if not self._pending:
            return
        tensors = {
            f"{row}/{index}": array
            for row, arrays in enumerate(self._pending)
            for index, array in enumerate(arrays)
        }
        shape = {"elements": len(self._pending), "tensors": len(self._pending[0])}
        path = os.path.join(self._path, f"{self._files:08d}{SUFFIX}")
        with full_disk_as_resource_exhausted(path):
            os.makedirs(self._path, exist_ok=True)
            write_tensors_in_place(path, _KIND, tensors, shape)
            sync(path)
        self._pending, self._size, self._files = [], 0, self._files + 1


def save(elements: Iterator, path: str, node: Node, shard_of: Callable | None) -> None:
    """Writes all elements."""
    writer = Writer(path, node)
    try:
        for element in elements:
            writer.add(element, 0 if shard_of is None else shard_of(element))
        writer.commit()
    finally:
        writer.close()


# Reading


def is_saved(path: str) -> bool:
    """Returns whether there is a dataset in this directory."""
    return os.path.exists(os.path.join(path, _INDEX))


def _read_index(path: str) -> dict[str, Any]:
    """Reads and validates the index of a saved dataset."""
    index = os.path.join(path, _INDEX)
    try:
        index_data = read_with_checksum(index)
        index_data["element_spec"] = spec_from_json(index_data["element_spec"])
        index_data["shards"] = dict(map(_parse_shard, index_data["shards"].items()))
        if not re.fullmatch(_DATA, index_data["data"]):
            raise ValueError
    except FileNotFoundError:
        raise NotFoundError(
            None, None, f"There is no saved dataset in {path}: {index} does not exist."
        ) from None
    except (DataLossError, KeyError, TypeError, ValueError, AttributeError):
        raise DataLossError(
            None, None, f"Cannot read {index}: it is corrupt or has another format."
        ) from None
    return index_data


def _parse_shard(item: tuple[str, Any]) -> tuple[int, int]:
    """Returns the number of a shard and the number of its elements."""
    number, count = item
    if not re.fullmatch("[0-9]{1,18}", number) or type(count) is not int or count not in _COUNTS:
        raise ValueError
    return int(number), count


def shards(path: str) -> list[FunctionSource]:
    """Returns a node for each shard of a saved dataset."""
    index = _read_index(path)
    spec, data = index["element_spec"], os.path.join(path, index["data"])
    if not index["shards"]:
        return [FunctionSource(lambda _run: iter(()), spec, 0, "Load")]
    counts = index["shards"].items()
    return [_shard(os.path.join(data, f"{n:08d}"), spec, count) for n, count in counts]


def _shard(path: str, spec: Any, count: int) -> FunctionSource:
    return FunctionSource(lambda _run: _read(path, spec, count), spec, count, "Load")


def _read(path: str, spec: Any, count: int) -> Iterator:
    remaining = count
    for number in itertools.count():
        if not remaining:
            return
        file = TensorFile(os.path.join(path, f"{number:08d}{SUFFIX}"), _KIND)
        rows, width = _counts(file)
        for row in range(rows):
            yield _read_element(file, spec, [f"{row}/{index}" for index in range(width)])
        remaining -= rows


def _read_element(file: TensorFile, spec: Any, keys: list[str]) -> Any:
    """Reads the element of the tensors with these names."""
    arrays = [file.array(key) for key in keys]
    try:
        return _element(spec, iter(arrays))
    except (OpError, RuntimeError, StopIteration, TypeError, ValueError):
        raise file.read_error("its tensors do not match the element_spec") from None


def _counts(file: TensorFile) -> tuple[int, int]:
    """Returns the number of elements in a file and the number of tensors per element."""
    match file.description:
        case {"elements": int(rows), "tensors": int(width)} if rows > 0 and width >= 0:
            if rows * width == len(file.keys):
                return rows, width
    raise file.read_error("its metadata is corrupt")


class DiskCache(Step):
    """Writes the elements of the first complete run to disk; later runs read them."""

    def __init__(
        self, input: Node, path: str, name: str, shard_of: Callable | None, read: Callable
    ) -> None:
        super().__init__(input)
        self.path, self.name, self.shard_of, self.read = path, name, shard_of, read

    def elements(self, run: Run) -> Iterator:
        if is_saved(self.path):
            remove_leftovers(self.path)  # there may be no other writer to do this
            return self.read(self.path).open(run)
        return self._write(run)

    def _write(self, run: Run) -> Iterator:
        with tensorflow_errors(self.path):
            writer = Writer(self.path, self.input)
        run.add(writer)
        missing = self.input.cardinality()
        for element in self.input.open(run):
            writer.add(element, 0 if self.shard_of is None else self.shard_of(element))
            missing -= 1
            if missing == 0:  # a caller that reads all elements may not ask for more
                self._commit(writer, run)
            yield element
        if missing != 0:
            self._commit(writer, run)

    def _commit(self, writer: Writer, run: Run) -> None:
        writer.commit(replace=False)
        run.discard(writer)

    def cardinality(self) -> int:
        return self.input.cardinality()
