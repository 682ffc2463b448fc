"""Datasets that are divided among replicas."""

from __future__ import annotations

import enum
import itertools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from retrograde.core.tensor import Tensor
from retrograde.data import _nodes
from retrograde.data._base import BaseDataset
from retrograde.data.dataset import Dataset
from retrograde.data.options import AutoShardPolicy
from retrograde.distribute.values import of_replicas
from retrograde.ops.collectives import current_group
from retrograde.values import nest
from retrograde.values.arguments import as_text, expect
from retrograde.values.specs import TensorSpec


class InputContext:
    """Describes the workers and replicas to a function that creates a dataset."""

    def __init__(
        self,
        num_input_pipelines: int = 1,
        input_pipeline_id: int = 0,
        num_replicas_in_sync: int = 1,
    ) -> None:
        self.num_input_pipelines = num_input_pipelines
        self.input_pipeline_id = input_pipeline_id
        self.num_replicas_in_sync = num_replicas_in_sync

    def get_per_replica_batch_size(self, global_batch_size: int) -> int:
        """Returns the share of one replica in a global batch."""
        if global_batch_size % self.num_replicas_in_sync:
            raise ValueError(
                f"get_per_replica_batch_size: {as_text(global_batch_size)} cannot be divided by "
                f"{self.num_replicas_in_sync} replicas. Use a multiple of that."
            )
        return global_batch_size // self.num_replicas_in_sync

    def __repr__(self) -> str:
        return (
            f"InputContext(pipeline {self.input_pipeline_id} of {self.num_input_pipelines}, "
            f"{self.num_replicas_in_sync} replicas)"
        )


class ValueContext:
    """The replica that `experimental_distribute_values_from_function` calls its function for."""

    def __init__(self, replica_id_in_sync_group: int = 0, num_replicas_in_sync: int = 1) -> None:
        self.replica_id_in_sync_group = replica_id_in_sync_group
        self.num_replicas_in_sync = num_replicas_in_sync

    def __repr__(self) -> str:
        return f"<replica {self.replica_id_in_sync_group} of {self.num_replicas_in_sync}>"


class InputReplicationMode(enum.Enum):
    """The number of calls of a dataset function. Accepted and ignored: one per worker."""

    PER_WORKER = "PER_WORKER"
    PER_REPLICA = "PER_REPLICA"


class InputOptions(NamedTuple):
    """Options of distributed datasets. Accepted and ignored: elements are made on the host."""

    experimental_fetch_to_device: bool | None = None
    experimental_replication_mode: InputReplicationMode = InputReplicationMode.PER_WORKER
    experimental_place_dataset_on_device: bool = False
    experimental_per_replica_buffer_size: int = 1


class RunOptions(NamedTuple):
    """Options of `Strategy.run`. Accepted and ignored."""

    experimental_enable_dynamic_batch_size: bool = True
    experimental_bucketizing_dynamic_shape: bool = False
    experimental_xla_options: Any = None


class DistributedDataset(Dataset):
    """A dataset whose elements are the share of one worker in a global batch."""


def distributed_dataset(strategy: Any, dataset: Any) -> Any:
    """Returns `dataset` divided among the replicas of `strategy`.

    Each element is a global batch. With `AutoShardPolicy.DATA`, all workers read all elements in
    the same order, and each keeps its rows. With `FILE`, each worker reads its share of the files
    and divides the size of batches. With `OFF`, workers read all elements, and each keeps the rows
    of its place in a batch.
    """
    expect(dataset, BaseDataset, "experimental_distribute_dataset", "a tf.data.Dataset")
    workers = strategy._input_context.num_input_pipelines
    rank = strategy._input_context.input_pipeline_id
    if workers == 1:
        replicas = strategy.num_replicas_in_sync
        if replicas == 1:
            return dataset
        return _transformed(
            dataset, lambda elements: (shares(element, replicas) for element in elements)
        )
    policy = dataset.options().experimental_distribute.auto_shard_policy or AutoShardPolicy.AUTO
    if policy in (AutoShardPolicy.FILE, AutoShardPolicy.AUTO):
        by_files = sharded_by_files(dataset._node, workers, rank)
        if by_files is not None:
            return DistributedDataset(by_files, dataset._options)
        if policy is AutoShardPolicy.FILE:
            raise ValueError(
                "experimental_distribute_dataset: AutoShardPolicy.FILE needs a dataset that reads "
                f"at least {workers} files, one for each worker. Use AutoShardPolicy.DATA."
            )
    return _transformed(
        dataset, lambda elements: (share(element, workers, rank) for element in elements)
    )


def _transformed(
    dataset: Any, make: Callable[[Iterator], Iterator], preserves_count: bool = True
) -> DistributedDataset:
    node = _nodes.Transform(
        dataset._node,
        lambda elements, _run: make(elements),
        "Distribute",
        spec=lambda: _with_unknown_rows(dataset.element_spec),
        cardinality=_nodes.preserve_count if preserves_count else _unknown_count,
    )
    return DistributedDataset(node, dataset._options)


def _unknown_count(_count: int) -> int:
    return _nodes.UNKNOWN_CARDINALITY


def sharded_by_files(node: _nodes.Node, workers: int, rank: int) -> _nodes.Node | None:
    """Returns the node with a share of the files it reads; `None` if it does not read files."""
    del node, workers, rank
    return None


def share(element: Any, workers: int, rank: int) -> Any:
    """Returns the rows of worker `rank` in a global batch.

    All workers have as many rows as the first one, but for the last ones of an uneven batch.
    """
    leaves = list(nest.leaves(element, expand_composites=True))
    rows = next((x._spec.shape[0] for x in leaves if isinstance(x, Tensor) and x.ndim), 0)
    count = -(-rows // workers)
    kept = [_rows(x, rank * count, (rank + 1) * count) for x in leaves]
    return nest.pack(element, iter(kept), expand_composites=True)


def shares(element: Any, replicas: int) -> Any:
    """Returns the rows of each replica of this process in a global batch."""
    return of_replicas([share(element, replicas, i) for i in range(replicas)])


def _rows(x: Any, start: int, stop: int) -> Any:
    return Tensor(x._array[start:stop]) if isinstance(x, Tensor) and x.ndim else x


def _with_unknown_rows(specs: Any) -> Any:
    def unknown(spec: Any) -> Any:
        if not isinstance(spec, TensorSpec) or not spec.shape.rank:
            return spec
        return TensorSpec([None, *spec.shape[1:]], spec.dtype)

    return nest.pack(specs, iter([unknown(spec) for spec in nest.leaves(specs)]))


def distributed_dataset_from_function(strategy: Any, dataset_fn: Callable) -> Any:
    """Returns the dataset that `dataset_fn` creates for this worker.

    If workers have different numbers of elements, those that have none left get batches without
    rows, until all have finished.
    """
    dataset = dataset_fn(strategy._input_context)
    workers = strategy._input_context.num_input_pipelines
    if not isinstance(dataset, BaseDataset):
        return dataset
    if workers == 1:
        replicas = strategy.num_replicas_in_sync
        if replicas == 1:
            return dataset
        return _transformed(
            dataset, lambda elements: _one_for_each(elements, replicas, dataset), False
        )
    return _transformed(
        dataset, lambda elements: _until_all_have_finished(elements, dataset), False
    )


def _one_for_each(elements: Iterator, replicas: int, dataset: Any) -> Iterator:
    """Yields an element for each replica; empty ones after the last."""
    while group := list(itertools.islice(elements, replicas)):
        missing = replicas - len(group)
        yield of_replicas(group + [_without_rows(dataset.element_spec) for _ in range(missing)])


def _until_all_have_finished(elements: Iterator, dataset: Any) -> Iterator:
    """Yields elements, and empty ones while other workers still have some."""
    group = current_group()
    count = dataset._node.cardinality()
    counts = group.gather_integers(count)
    if count >= 0 and len(set(counts)) == 1:
        yield from elements
        return
    empty = None
    while True:
        element = next(elements, None)
        if not any(group.gather_integers(int(element is not None))):
            return
        if element is None:
            empty = empty or _without_rows(dataset.element_spec)
            element = empty
        yield element


def _without_rows(specs: Any) -> Any:
    def made(spec: Any) -> Tensor:
        shape = [0, *[n or 0 for n in spec.shape.as_list()[1:]]] if spec.shape.rank else []
        return Tensor(np.zeros(shape, spec.dtype.as_numpy_dtype))

    return nest.pack(specs, iter([made(spec) for spec in nest.leaves(specs)]))
