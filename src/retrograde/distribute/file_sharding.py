"""Sharding of datasets by files: each worker reads its own files."""

from __future__ import annotations

import copy
from typing import Any

from retrograde.data import _nodes
from retrograde.data._saving import DiskCache
from retrograde.data._workers import Run
from retrograde.values import dtypes, nest
from retrograde.values.specs import TensorSpec

# Steps that can follow the shard of the file names. A shuffle has to: workers that shuffle the
# same names in different orders would skip some files and read others twice.
_STEPS_AFTER_SHARD = (
    _nodes.Shuffle,
    _nodes.Map,
    _nodes.Cache,
    _nodes.Repeat,
    _nodes.Prefetch,
)


class TooFewFilesError(Exception):
    """A dataset reads fewer files than there are workers."""

    def __init__(self, num_files: int) -> None:
        super().__init__(num_files)
        self.num_files = num_files


def shard_files(node: _nodes.Node, num_workers: int, index: int) -> _nodes.Node | None:
    """Returns a copy of a pipeline that reads every `num_workers`-th file, starting at `index`.

    Returns `None` if any of its sources reads no files. Raises a `TooFewFilesError` if there are
    fewer files than workers.
    """
    if _is_file_reader(node):
        return _replace_inputs(node, [_shard_names(node.inputs[0], num_workers, index)])
    if not node.inputs or isinstance(node, DiskCache):  # workers would write to the same directory
        return None
    inputs = []
    for input_node in node.inputs:
        sharded = shard_files(input_node, num_workers, index)
        if sharded is None:
            return None
        inputs.append(sharded)
    return _replace_inputs(node, inputs)


def _is_file_reader(node: _nodes.Node) -> bool:
    """Returns whether `node` reads the files that its input names."""
    if node.reads_files:
        return True
    if node.make_dataset is None:
        return False
    names = node.inputs[0]
    if not any(map(_is_string, nest.leaves(names.spec))) or not names.cardinality():
        return False
    try:
        element = names.first()
    except StopIteration:
        return False
    return _contains_file_reader(node.make_dataset(element)._node)


def _contains_file_reader(node: _nodes.Node) -> bool:
    return _is_file_reader(node) or any(map(_contains_file_reader, node.inputs))


def _is_string(spec: Any) -> bool:
    return isinstance(spec, TensorSpec) and spec.dtype == dtypes.string


def _shard_names(node: _nodes.Node, num_workers: int, index: int) -> _nodes.Node:
    if isinstance(node, _STEPS_AFTER_SHARD):
        return _replace_inputs(node, [_shard_names(node.inputs[0], num_workers, index)])
    count = _count_elements(node)
    if _nodes.INFINITE_CARDINALITY < count < num_workers:
        raise TooFewFilesError(count)
    return _nodes.Shard(node, num_workers, index)


def _count_elements(node: _nodes.Node) -> int:
    count = node.cardinality()
    if count != _nodes.UNKNOWN_CARDINALITY:
        return count
    run = Run()
    try:
        return sum(1 for _ in node.open(run))
    finally:
        run.close()


def _replace_inputs(node: _nodes.Node, inputs: list[_nodes.Node]) -> _nodes.Node:
    """Returns a copy of `node` with other inputs, which have the same element specs."""
    result = copy.copy(node)
    result.inputs = tuple(inputs)
    if isinstance(node, _nodes.Step):
        (result.input,) = inputs
    if isinstance(node, _nodes.Cache):
        result.cached = None
    return result
