"""Elements in files: datasets that are saved, loaded, and cached on the disk.

A directory holds `dataset.json`, which says what the elements look like and how many there are, and
for each shard a directory of tensor files, each with some of its elements in a row.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from retrograde._tensor_files import SUFFIX, TensorFile, write_tensors
from retrograde.core import nest
from retrograde.core.errors import DataLossError, NotFoundError
from retrograde.core.spec import TensorSpec, TypeSpec
from retrograde.core.tensor import wrap
from retrograde.data._nodes import Made, Node, Step
from retrograde.data._structure import NoneTensorSpec, common_spec, spec_of_element
from retrograde.data._workers import Run
from retrograde.ragged.spec import RaggedTensorSpec
from retrograde.ragged.tensor import RaggedTensor
from retrograde.sparse.tensor import SparseTensor, SparseTensorSpec

_INDEX = "dataset.json"
_KIND = "part of a saved dataset"
_CHUNK = 1 << 25  # bytes after which a file ends

# What elements look like, in words of JSON


def spec_in_words(spec: Any) -> Any:
    """A structure of specs as lists and dicts."""
    if isinstance(spec, TypeSpec):
        return _leaf_in_words(spec)
    if isinstance(spec, dict):
        return {"dict": {key: spec_in_words(part) for key, part in spec.items()}}
    return {"tuple": [spec_in_words(part) for part in spec]}


def _leaf_in_words(spec: TypeSpec) -> dict[str, Any]:
    kinds = {TensorSpec: "tensor", RaggedTensorSpec: "ragged", SparseTensorSpec: "sparse"}
    if isinstance(spec, NoneTensorSpec):
        return {"none": {}}
    if type(spec) not in kinds:
        raise TypeError(f"Elements of {type(spec).__name__} cannot be written to files.")
    shape = None if spec.shape.rank is None else spec.shape.as_list()
    words = {"shape": shape, "dtype": spec.dtype.name}
    if isinstance(spec, RaggedTensorSpec):
        words |= {"ragged_rank": spec.ragged_rank, "row_splits_dtype": spec.row_splits_dtype.name}
    return {kinds[type(spec)]: words}


def spec_from_words(words: Any) -> Any:
    """What `spec_in_words` put into words."""
    ((kind, content),) = words.items()
    if kind == "dict":
        return {key: spec_from_words(part) for key, part in content.items()}
    if kind == "tuple":
        return tuple(map(spec_from_words, content))
    made = {
        "none": NoneTensorSpec,
        "tensor": TensorSpec,
        "ragged": RaggedTensorSpec,
        "sparse": SparseTensorSpec,
    }
    return made[kind](**content)


def _arrays(element: Any) -> list[np.ndarray]:
    """The arrays of all tensors in an element."""
    parts = nest.leaves(element, expand_composites=True)
    return [np.asarray(part._array) for part in parts if part is not None]


def _element(spec: Any, arrays: Iterator[np.ndarray]) -> Any:
    """An element of these arrays."""
    flat, pack = nest.flatten_with_pack(spec)
    return pack([_leaf(leaf, arrays) for leaf in flat])


def _leaf(spec: TypeSpec, arrays: Iterator[np.ndarray]) -> Any:
    if isinstance(spec, NoneTensorSpec):
        return None
    if isinstance(spec, SparseTensorSpec):
        return SparseTensor(*(wrap(next(arrays)) for _ in range(3)))
    first = wrap(next(arrays))
    if isinstance(spec, TensorSpec) or not spec.ragged_rank:
        return first
    splits = [wrap(next(arrays)) for _ in range(spec.ragged_rank)]
    return RaggedTensor.from_nested_row_splits(first, splits, validate=False)


# Writing


class Writer:
    """Writes elements into a directory that appears when all of them are there."""

    _numbers = itertools.count()

    def __init__(self, path: str, node: Node) -> None:
        self._path, self._node = path, node
        self._workplace = f"{path}.tmp-{os.getpid()}-{next(Writer._numbers)}"
        self._shards: dict[int, _Shard] = {}
        self._spec: Any = None
        os.makedirs(self._workplace)

    def add(self, element: Any, shard: int = 0) -> None:
        """Writes one element."""
        if shard not in self._shards:
            self._shards[shard] = _Shard(os.path.join(self._workplace, f"{shard:08d}"))
        spec = spec_of_element(element)
        self._spec = spec if self._spec is None else common_spec(self._spec, spec) or self._spec
        self._shards[shard].add(_arrays(element))

    def commit(self) -> None:
        """Puts the directory in its place."""
        for shard in self._shards.values():
            shard.flush()
        # No function is tried where the elements themselves can tell what they look like.
        seen = self._node.tries and self._spec is not None
        words = spec_in_words(self._spec if seen else self._node.spec)
        counts = {str(number): shard.count for number, shard in sorted(self._shards.items())}
        with open(os.path.join(self._workplace, _INDEX), "w", encoding="utf-8") as file:
            json.dump({"version": 1, "element_spec": words, "shards": counts}, file)
            file.flush()
            os.fsync(file.fileno())
        old = f"{self._workplace}.old"
        if os.path.exists(self._path):
            os.rename(self._path, old)
        os.rename(self._workplace, self._path)
        shutil.rmtree(old, ignore_errors=True)

    def close(self) -> None:
        """Clears away what was not put in place."""
        shutil.rmtree(self._workplace, ignore_errors=True)


class _Shard:
    def __init__(self, path: str) -> None:
        os.makedirs(path)
        self._path, self._waiting, self._size, self._files = path, [], 0, 0
        self.count = 0

    def add(self, arrays: list[np.ndarray]) -> None:
        self._waiting.append(arrays)
        self._size += sum(array.nbytes for array in arrays)
        self.count += 1
        if self._size >= _CHUNK:
            self.flush()

    def flush(self) -> None:
        if not self._waiting:
            return
        tensors = {
            f"{row}/{place}": array
            for row, arrays in enumerate(self._waiting)
            for place, array in enumerate(arrays)
        }
        shape = {"elements": len(self._waiting), "tensors": len(self._waiting[0])}
        path = os.path.join(self._path, f"{self._files:08d}{SUFFIX}")
        write_tensors(path, _KIND, tensors, shape)
        self._waiting, self._size, self._files = [], 0, self._files + 1


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
    """Whether there is a dataset in this directory."""
    return os.path.exists(os.path.join(path, _INDEX))


def shards(path: str) -> list[Made]:
    """The shards of a saved dataset."""
    index = os.path.join(path, _INDEX)
    try:
        with open(index, encoding="utf-8") as file:
            found = json.load(file)
        spec = spec_from_words(found["element_spec"])
        counts = {int(number): int(count) for number, count in found["shards"].items()}
    except FileNotFoundError:
        raise NotFoundError(
            None, None, f"There is no saved dataset in {path}: {index} does not exist."
        ) from None
    except (KeyError, TypeError, ValueError, AttributeError):
        raise DataLossError(
            None, None, f"Cannot read {index}: it is damaged or of another format."
        ) from None
    if not counts:
        return [Made(lambda _run: iter(()), spec, 0, "Load")]
    return [_shard(os.path.join(path, f"{n:08d}"), spec, count) for n, count in counts.items()]


def _shard(path: str, spec: Any, count: int) -> Made:
    return Made(lambda _run: _read(path, spec, count), spec, count, "Load")


def _read(path: str, spec: Any, count: int) -> Iterator:
    left = count
    for number in itertools.count():
        if not left:
            return
        file = TensorFile(os.path.join(path, f"{number:08d}{SUFFIX}"), _KIND)
        rows, width = file.description["elements"], file.description["tensors"]
        for row in range(rows):
            yield _element(spec, (file.array(f"{row}/{place}") for place in range(width)))
        left -= rows


class Stored(Step):
    """Elements that the first whole pass writes to the disk, and all later ones read from there."""

    def __init__(
        self, input: Node, path: str, name: str, shard_of: Callable | None, read: Callable
    ) -> None:
        super().__init__(input)
        self.path, self.name, self.shard_of, self.read = path, name, shard_of, read

    def elements(self, run: Run) -> Iterator:
        if is_saved(self.path):
            return self.read(self.path).open(run)
        return self._write(run)

    def _write(self, run: Run) -> Iterator:
        writer = Writer(self.path, self.input)
        run.add(writer)
        for element in self.input.open(run):
            writer.add(element, 0 if self.shard_of is None else self.shard_of(element))
            yield element
        writer.commit()
        run.discard(writer)

    def cardinality(self) -> int:
        return self.input.cardinality()
